"""Small files for tests, written as bytes."""

import io
import json
from itertools import count

from django.db import connection

_numbers = count(1)


def line(**fields) -> dict:
    """A good line; a field given as `...` is left out."""
    number = next(_numbers)
    whole = {
        "id": f"r{number}",
        "question": "How long is the trial?",
        "answerable": True,
        "context": [{"id": "p1", "text": "The trial lasts 14 days."}],
        "response": "It lasts 14 days.",
        "system": {"model": "demo-1"},
        "claims": [{"id": "c1", "text": "The trial lasts 14 days.", "source_ids": ["p1"]}],
    }
    return {key: value for key, value in (whole | fields).items() if value is not ...}


def jsonl(*lines) -> io.BytesIO:
    texts = (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in lines)
    return io.BytesIO("".join(f"{text}\n" for text in texts).encode())


def rows_of_every_table() -> dict[str, int]:
    """How many rows each table has, to see that nothing was left behind."""
    with connection.cursor() as cursor:
        counts = {}
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")
            counts[table] = cursor.fetchone()[0]
    return counts
