"""Whole columns of integers from the database: a version may have a million labels.

A driver makes a tuple of Python numbers of every row, which takes longer than the database does to find them.
PostgreSQL sends the same columns as one text each, which NumPy reads at once.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    Expression,
    F,
    Func,
    JSONField,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Cast

from calibration.table import Ints

_NOTHING = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Small:
    """A field with values from 0 to below `size`: it can travel in one number with the field before it."""

    field: str | Expression
    size: int


class Among(Func):
    """Whether a field holds one of these ids. Of `in` each of thousands would be a parameter of its own."""

    template = "%(expressions)s IN (%(ids)s)"
    output_field = BooleanField()

    def __init__(self, field: str, ids: Ints) -> None:
        super().__init__(F(field), ids=", ".join(map(str, ids.tolist())) or "NULL")


def int_columns(rows: QuerySet, *fields: str | Expression | Small) -> list[Ints]:
    """These fields of the rows, in the order of the queryset; none may be NULL."""
    connection = connections[rows.db]
    read = _gathered if connection.vendor == "postgresql" else _fetched
    return read(connection, rows, fields)


def code_of(field: str, words: Sequence[str]) -> Small:
    """The position of a word in a list, its length for another word."""
    known = [When(**{field: word}, then=Value(place)) for place, word in enumerate(words)]
    return Small(Case(*known, default=Value(len(words))), len(words) + 1)


def json_columns(rows: QuerySet, *fields: str) -> list[list]:
    """These fields of the rows, texts, numbers or JSON, each column read as one JSON document."""
    connection = connections[rows.db]
    named = {f"column_{place}": F(field) for place, field in enumerate(fields)}
    query = rows.annotate(**named).values_list(*named).query
    columns = []
    for place, name in enumerate(named):
        column = f"c{place}"
        if connection.vendor == "postgresql":
            columns.append(f"json_agg({column})::text")
        elif isinstance(query.annotations[name].output_field, JSONField):
            columns.append(f"json_group_array(json({column}))")
        else:
            columns.append(f"json_group_array({column})")
    try:
        sql, params = query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return [[] for _ in fields]
    names = ", ".join(f"c{place}" for place in range(len(fields)))
    with connection.cursor() as cursor:
        cursor.execute(f"WITH found ({names}) AS ({sql}) SELECT {', '.join(columns)} FROM found", params)
        return [json.loads(document or "[]") for document in cursor.fetchone()]


def _gathered(connection, rows: QuerySet, fields: Sequence[str | Expression | Small]) -> list[Ints]:
    packed: list[Any] = []
    sizes: list[list[int]] = []
    for field in fields:
        if isinstance(field, Small) and packed:
            packed[-1] = packed[-1] * field.size + _cast(field)
            sizes[-1].append(field.size)
        else:
            packed.append(_cast(field))
            sizes.append([])
    found = _arrays(connection, rows, packed)
    return [column for whole, of in zip(found, sizes, strict=True) for column in _unpacked(whole, of)]


def _arrays(connection, rows: QuerySet, expressions: Sequence[Expression]) -> list[Ints]:
    names = [f"c{place}" for place in range(len(expressions))]
    columns = ", ".join(f"array_agg({name})::text" for name in names)
    if (query := _sql(connection, rows, expressions)) is None:
        return [_NOTHING for _ in names]
    sql, params = query
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {columns} FROM ({sql}) AS found ({', '.join(names)})", params)
        n, *texts = cursor.fetchone()
    if not n:
        return [_NOTHING for _ in names]
    if any("N" in text for text in texts):
        raise ValueError("a column of integers holds NULL")
    return [np.fromstring(text[1:-1], dtype=np.int64, sep=",", count=n) for text in texts]


def _unpacked(whole: Ints, sizes: Sequence[int]) -> list[Ints]:
    columns: list[Ints] = []
    for size in reversed(sizes):
        whole, part = np.divmod(whole, size)
        columns.append(part)
    return [whole, *reversed(columns)]


def _fetched(connection, rows: QuerySet, fields: Sequence[str | Expression | Small]) -> list[Ints]:
    if (query := _sql(connection, rows, [_cast(field) for field in fields])) is None:
        return [_NOTHING for _ in fields]
    with connection.cursor() as cursor:
        cursor.execute(*query)
        found = cursor.fetchall()
    try:
        cells = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=len(found) * len(fields))
    except TypeError:
        raise ValueError("a column of integers holds NULL") from None
    return list(cells.reshape(-1, len(fields)).T.copy())


def _cast(field: str | Expression | Small) -> Cast:
    return Cast(field.field if isinstance(field, Small) else field, BigIntegerField())


def _sql(connection, rows: QuerySet, expressions: Sequence[Expression]) -> tuple[str, Sequence] | None:
    """None where the queryset knows by itself that it has no rows."""
    named = {f"column_{place}": expression for place, expression in enumerate(expressions)}
    try:
        query = rows.annotate(**named).values_list(*named).query
        return query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return None
