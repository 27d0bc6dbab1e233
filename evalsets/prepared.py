"""Statements that every key of a grader needs: Django writes their SQL once a process.

Writing the SQL of a queryset takes ten times as long as the database takes to answer it. A prepared query is
an ordinary queryset, made once with a mark where each value belongs; a call fills the values in, and gives
the rows or objects that the queryset would have given. PostgreSQL plans it once a connection: to plan a query
over nine tables takes it twenty times as long as to answer it.
"""

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from threading import Lock
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, models
from django.db.models import QuerySet
from django.db.models.base import ModelState
from django.db.models.expressions import Col
from django.db.models.query import FlatValuesListIterable, ModelIterable, get_related_populators
from django.utils import timezone

MARKS: dict[type, Callable[[int], Any]] = {
    int: lambda number: 2_000_000_000 + number,  # no constant of a query is as high
    str: lambda number: f"\N{REPLACEMENT CHARACTER}{number}",
    UUID: lambda number: UUID(int=number),
    datetime: lambda number: datetime(1970, 1, 1, microsecond=number, tzinfo=timezone.get_default_timezone()),
}


class Prepared:
    """`Prepared(lambda person: Grader.objects.filter(person=person), person=int)`, called with `person=7`."""

    def __init__(self, make: Callable[..., QuerySet], **kinds: type) -> None:
        self.make, self.kinds = make, kinds
        self._written: dict[str, _Written] = {}
        self._writing = Lock()

    def __call__(self, **values: Any) -> list[Any]:
        if values.keys() != self.kinds.keys() or None in values.values():
            raise TypeError(f"the query takes a value each for {', '.join(self.kinds)}")  # NULL is no value
        if any(isinstance(value, int) and value >= 2**63 for value in values.values()):
            return []  # no column holds it, and the drivers would refuse to ask
        connection = connections[DEFAULT_DB_ALIAS]
        written = self._written.get(connection.vendor) or self._write(connection)
        adapted = {name: _adapted(connection, value) for name, value in values.items()}
        params = [adapted[part] if is_value else part for part, is_value in written.params]
        with _cursor(connection) as cursor:
            cursor.execute(written.sql, params)
            rows = cursor.fetchall()
        return written.read(rows, connection)

    def first(self, **values: Any) -> Any:
        return next(iter(self(**values)), None)

    def _write(self, connection: Any) -> "_Written":
        with self._writing:
            if connection.vendor not in self._written:
                marks = {name: MARKS[kind](n) for n, (name, kind) in enumerate(self.kinds.items(), start=1)}
                name_of = {_adapted(connection, mark): name for name, mark in marks.items()}
                self._written[connection.vendor] = _Written(self.make(**marks), name_of)
        return self._written[connection.vendor]


class _Written:
    """The SQL of a queryset, and how its rows become what the queryset gives."""

    def __init__(self, queryset: QuerySet, name_of: dict[Any, str]) -> None:
        compiler = queryset.query.get_compiler(using=DEFAULT_DB_ALIAS)
        self.sql, params = compiler.as_sql()
        self.params = [(name_of.get(value, value), value in name_of) for value in params]
        if missing := set(name_of.values()) - {part for part, is_value in self.params if is_value}:
            raise TypeError(f"the query leaves out {', '.join(sorted(missing))}")
        expressions = [column[0] for column in compiler.select[: compiler.col_count]]
        self.converters = list(compiler.get_converters(expressions).items())
        self.is_json = {at for at, expression in enumerate(expressions) if _is_plain_json(expression)}
        self.is_flat = issubclass(queryset._iterable_class, FlatValuesListIterable)
        self.is_of_objects = issubclass(queryset._iterable_class, ModelIterable)
        if self.is_of_objects:
            info = compiler.klass_info
            self.model, fields = info["model"], info["select_fields"]
            self.own = slice(fields[0], fields[-1] + 1)
            self.names = [column[0].target.attname for column in compiler.select[self.own]]
            populators: Callable[..., list[Any]] = get_related_populators  # the stubs are of a later Django
            self.related = populators(info, compiler.select, DEFAULT_DB_ALIAS)
            self.annotations = list(compiler.annotation_col_map.items())

    def read(self, rows: Sequence[Sequence[Any]], connection: Any) -> list[Any]:
        if self.converters:
            rows = [self._converted(list(row), connection) for row in rows]
        if self.is_flat:
            return [row[0] for row in rows]
        return [self._object(row) for row in rows] if self.is_of_objects else list(rows)

    def _converted(self, row: list[Any], connection: Any) -> list[Any]:
        for at, (converters, expression) in self.converters:
            if at in self.is_json:
                row[at] = _json_value(row[at])
                continue
            for convert in converters:
                row[at] = convert(row[at], expression, connection)
        return row

    def _object(self, row: Sequence[Any]) -> models.Model:
        made = _made(self.model, self.names, row[self.own])
        for populator in self.related:
            _populate(populator, row, made)
        for name, at in self.annotations:
            setattr(made, name, row[at])
        return made


def _made(model: type[models.Model], names: Sequence[str], values: Sequence[Any]) -> models.Model:
    """What `from_db` comes to at a third of its cost: no model here listens to its making."""
    made = model.__new__(model)
    made._state = ModelState()
    made._state.db, made._state.adding = DEFAULT_DB_ALIAS, False
    made.__dict__.update(zip(names, values, strict=True))
    return made


def _populate(populator: Any, row: Sequence[Any], owner: models.Model) -> None:
    """As the populator does it."""
    reorder = populator.reorder_for_init
    values = reorder(row) if reorder else row[populator.cols_start : populator.cols_end]
    made = None
    if values[populator.pk_idx] is not None:
        made = _made(populator.model_cls, populator.init_list, values)
        for further in populator.related_populators:
            _populate(further, row, made)
    populator.local_setter(owner, made)
    if made is not None:
        populator.remote_setter(made, owner)


def _is_plain_json(expression: Any) -> bool:
    return isinstance(expression, Col) and type(expression.output_field) is models.JSONField


_decoder: Any = json.JSONDecoder()  # the stubs leave out what is used here
_scan = _decoder.scan_once  # what `json.loads` comes to, which takes longer to come to it


def _json_value(text: str | None) -> Any:
    return None if text is None else _scan(text, 0)[0]


class PreparedInsert:
    """`PreparedInsert(Flag)(round_id=1, ...)` stores one row with its defaults and returns its id."""

    def __init__(self, model: type[models.Model]) -> None:
        self.table = model._meta.db_table
        self.fields = [field for field in model._meta.local_concrete_fields if not field.primary_key]
        columns = ", ".join(f'"{field.column}"' for field in self.fields)
        marks = ", ".join(["%s"] * len(self.fields))
        self.sql = (
            f'INSERT INTO "{self.table}" ({columns}) VALUES ({marks}) RETURNING "{model._meta.pk.column}"'
        )

    def __call__(self, **values: Any) -> int:
        connection = connections[DEFAULT_DB_ALIAS]
        if unknown := values.keys() - {field.attname for field in self.fields}:
            raise TypeError(f"{self.table} has no {', '.join(sorted(unknown))}")
        params = [
            field.get_db_prep_save(
                values[field.attname] if field.attname in values else default_of(field), connection
            )
            for field in self.fields
        ]
        with _cursor(connection) as cursor:
            cursor.execute(self.sql, params)
            return cursor.fetchone()[0]


def default_of(field: models.Field) -> Any:
    is_clock = getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False)
    return timezone.now() if is_clock else field.get_default()


def _adapted(connection: Any, value: Any) -> Any:
    """As the field of a row adapts it before it goes to the database."""
    if isinstance(value, UUID) and not connection.features.has_native_uuid_field:
        return value.hex
    if isinstance(value, int) and connection.vendor == "postgresql":
        from psycopg.types.numeric import Int8

        return Int8(value)  # or a statement would have a plan for short numbers and one for long ones
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def _cursor(connection: Any) -> Any:
    """On PostgreSQL one that sends the values apart from the statement, whose plan the server then keeps."""
    cursor = connection.cursor()
    if connection.vendor == "postgresql" and not connection.queries_logged:  # a log wants the values too
        from django.db.backends.postgresql import base

        sending_apart: Any = base.ServerBindingCursor  # the stubs give it no connection
        cursor.cursor = sending_apart(connection.connection)
    return cursor
