"""Rows by the thousand, past the objects: `executemany` on SQLite, COPY on PostgreSQL."""

from collections.abc import Sequence

from django.db import connection, models

from evalsets.prepared import default_of


class Bulk:
    """`Bulk(Passage, "response", "rank", ...).insert(rows)`: each row a tuple in the order of the names.

    A row holds what the database takes: keys, and JSON as its text. What is not named has its default.
    """

    def __init__(self, model: type[models.Model], *names: str) -> None:
        self.table = model._meta.db_table
        own = {field.name: field for field in model._meta.local_concrete_fields}
        self.rest = [
            field
            for name, field in own.items()
            if name not in names and not field.primary_key and (field.has_default() or not field.null)
        ]
        columns = [own[name].column for name in names] + [field.column for field in self.rest]
        self.columns = ", ".join(f'"{column}"' for column in columns)
        self.marks = ", ".join(["%s"] * len(columns))

    def insert(self, rows: Sequence[tuple]) -> None:
        rest = [field.get_db_prep_save(default_of(field), connection) for field in self.rest]
        if rest:
            rows = [(*row, *rest) for row in rows]
        with connection.cursor() as cursor:
            if connection.vendor == "postgresql":
                copied = cursor.copy(f'COPY "{self.table}" ({self.columns}) FROM STDIN')
                with connection.wrap_database_errors, copied as copy:
                    for row in rows:
                        copy.write_row(row)
            else:
                cursor.executemany(f'INSERT INTO "{self.table}" ({self.columns}) VALUES ({self.marks})', rows)


def new_keys(model: type[models.Model], number: int) -> Sequence[int]:
    """Keys for rows that are about to be inserted; nobody else gets them."""
    table, key = model._meta.db_table, model._meta.pk.column
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = f"pg_get_serial_sequence('\"{table}\"', '{key}')"
            cursor.execute(f"SELECT nextval({sequence}) FROM generate_series(1, %s)", [number])
            return [found for (found,) in cursor.fetchall()]
        if not connection.in_atomic_block:
            raise RuntimeError("only the transaction that inserts the rows can hold their keys")
        cursor.execute(
            f'SELECT max((SELECT coalesce(max("{key}"), 0) FROM "{table}"), '
            "(SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s))",
            [table],
        )
        last = cursor.fetchone()[0]
    return range(last + 1, last + 1 + number)
