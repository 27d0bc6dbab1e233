"""Whole columns of integers from the database: a version may have a million labels.

A driver makes a tuple of Python numbers of every row, which takes longer than the database does to find them.
PostgreSQL sends the same columns as one text each, which NumPy reads at once.
"""

from collections.abc import Sequence
from itertools import chain

import numpy as np
from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import BigIntegerField, Case, Expression, QuerySet, Value, When
from django.db.models.functions import Cast

from calibration.table import MISSING, Ints


def int_columns(rows: QuerySet, *fields: str | Expression) -> list[Ints]:
    """These fields of the rows, in the order of the queryset; none may be NULL."""
    cast = {f"column_{place}": Cast(field, BigIntegerField()) for place, field in enumerate(fields)}
    connection = connections[rows.db]
    try:
        query = rows.annotate(**cast).values_list(*cast).query
        sql, params = query.get_compiler(connection=connection).as_sql()
    except EmptyResultSet:
        return [np.zeros(0, dtype=np.int64) for _ in fields]
    read = _gathered if connection.vendor == "postgresql" else _fetched
    return read(connection, sql, params, len(fields))


def code_of(field: str, words: Sequence[str]) -> Case:
    """The position of a word in a list, -1 where it is not in it."""
    known = [When(**{field: word}, then=Value(place)) for place, word in enumerate(words)]
    return Case(*known, default=Value(-1))


def _gathered(connection, sql: str, params: Sequence, width: int) -> list[Ints]:
    names = [f"c{place}" for place in range(width)]
    columns = ", ".join(f"array_agg({name})::text" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*), {columns} FROM ({sql}) AS found ({', '.join(names)})", params)
        n, *texts = cursor.fetchone()
    if not n:
        return [np.zeros(0, dtype=np.int64) for _ in names]
    if any("N" in text for text in texts):
        raise ValueError("a column of integers holds NULL")
    return [np.fromstring(text[1:-1], dtype=np.int64, sep=",", count=n) for text in texts]


def _fetched(connection, sql: str, params: Sequence, width: int) -> list[Ints]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        rows = cursor.fetchall()
    try:
        cells = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * width)
    except TypeError:
        raise ValueError("a column of integers holds NULL") from None
    return list(cells.reshape(-1, width).T.copy())


def row_of(known: Ints, wanted: Ints) -> Ints:
    """Where each wanted number stands among the known ones, which differ; -1 where it is not among them."""
    if not len(known):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    row = order[place]
    return np.where(known[row] == wanted, row, MISSING)
