"""How fast files go in and out, beside the bare database work of the same rows.

Run with ``./run bench exchange`` or ``python -m tests.bench.bench_exchange [--responses N]``; with a
PostgreSQL server: ``python -m tests.servers python -m tests.bench.bench_exchange``. It exits 1 when a bar is
missed. What is bare: the rows that the import made, taken out and put into the same tables (with their
indexes) by executemany on SQLite or COPY on PostgreSQL, in one transaction.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from contextlib import contextmanager

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

SHARE = 0.6  # of the speed of the bare work
EXPORT_SECONDS, EXPORTED = 2.0, 10_000
FLAT = 1.3  # an export of ten times as many may need that much more memory
PASSAGE = "The trial lasts 14 days and ends by itself; nobody is charged before it has ended. " * 5


def line(number: int, *, labels: bool) -> dict:
    said = {"ada": "supported", "ben": "supported" if number % 7 else "unsupported"}
    return {
        "id": f"r{number}",
        "question": f"How long is the trial of plan {number}?",
        "answerable": True,
        "strata": {"language": "en" if number % 2 else "de"},
        "context": [{"id": f"p{n}", "text": f"{n} {PASSAGE}"} for n in range(3)],
        "response": f"The trial of plan {number} lasts 14 days. It is free. It ends by itself.",
        "system": {"model": "demo-1"},
        "claims": [
            {"id": f"c{n}", "text": f"Claim {n} of plan {number}.", "source_ids": ["p0"]}
            | ({"human_labels": said} if labels else {})
            for n in range(5)
        ],
        **({"response_labels": {"ada": "ANSWERED", "ben": "ANSWERED"}} if labels else {}),
    }


@contextmanager
def file_of(responses: int, *, labels: bool = False):
    with tempfile.TemporaryFile() as file:
        for number in range(responses):
            file.write(json.dumps(line(number, labels=labels)).encode() + b"\n")
        yield file


def timed(work, *args, **words) -> tuple[float, object]:
    begin = time.perf_counter()
    found = work(*args, **words)
    return time.perf_counter() - begin, found


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Bars:
    def __init__(self):
        self.missed = []

    def say(self, name: str, value: str, bar: str = "", held: bool = True) -> None:
        print(f"  {name:<52}{value:>16}   {bar}{'' if held else '   MISSED'}")
        if not held:
            self.missed.append(name)


# In


def import_beside_bare(bars: Bars, responses: int) -> None:
    from evalsets import services

    with file_of(responses) as file:
        words = {"stream": file, "filename": "bench.jsonl", "name": "Bench"}
        checking, _nothing = timed(services.check_evalset, **words)
        storing, imported = timed(services.store_evalset, **words)
    rows = sum(imported.counts.values())
    bare = bare_seconds(imported.version)
    whole = checking + storing
    bars.say("bare rows", f"{rows / bare:,.0f} a second", f"{rows:,} rows in {bare:.1f} s")
    bars.say("checked", f"{responses / checking:,.0f} a second", "responses")
    bars.say("stored", f"{responses / storing:,.0f} a second", f"{bare / storing:.2f} of the bare work")
    share = bare / whole
    bars.say(
        "imported (checked, then stored)",
        f"{responses / whole:,.0f} a second",
        f"{share:.2f} of the bare work; at least {SHARE}",
        share >= SHARE,
    )


def bare_seconds(version) -> float:
    """The rows of a version, taken out of their tables and put back with nothing else around it."""
    from django.db import connection, transaction

    from evalsets.models import Claim, Item, Passage, Response

    of_version = {
        Item: "version_id = %s",
        Response: "version_id = %s",
        Passage: "response_id IN (SELECT id FROM evalsets_response WHERE version_id = %s)",
        Claim: "response_id IN (SELECT id FROM evalsets_response WHERE version_id = %s)",
    }
    held = {}
    with connection.cursor() as cursor:
        for model, where in of_version.items():
            cursor.execute(f"SELECT * FROM {model._meta.db_table} WHERE {where}", [version.pk])
            held[model] = [column[0] for column in cursor.description], cursor.fetchall()
        for model in reversed(of_version):
            cursor.execute(f"DELETE FROM {model._meta.db_table} WHERE {of_version[model]}", [version.pk])
    begin = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        for model, (columns, rows) in held.items():
            put(cursor, connection.vendor, model._meta.db_table, columns, rows)
    return time.perf_counter() - begin


def put(cursor, vendor: str, table: str, columns: list[str], rows: list[tuple]) -> None:
    names = ", ".join(columns)
    if vendor == "postgresql":
        with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row([json.dumps(cell) if isinstance(cell, dict | list) else cell for cell in row])
    else:
        marks = ", ".join("?" * len(columns))
        cursor.connection.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)


# Out


def export_double_graded(bars: Bars) -> None:
    from pathlib import Path

    from annotate.models import Round
    from calibration import exchange, gold_export

    seconds = {}
    for responses in (EXPORTED // 10, EXPORTED):
        with file_of(responses, labels=True) as file:
            name = f"Graded {responses}"
            told = exchange.import_evalset(
                stream=file, filename="b.jsonl", name=name, with_labels=True, freeze=True
            )
        round = Round.objects.select_related("version__evalset").get(version__evalset__slug=told["evalset"])
        export = exchange.Export(round.version, with_labels=True)
        seconds[responses], _size = timed(lambda export=export: sum(len(line) for line in export.lines()))
        memory = peak_megabytes()
        print(f"  after an export of {responses:,} responses the process has needed {memory:,.0f} MB at most")
    bars.say(
        f"export of {EXPORTED:,} double-graded responses",
        f"{seconds[EXPORTED]:.2f} s",
        f"at most {EXPORT_SECONDS:g} s",
        seconds[EXPORTED] <= EXPORT_SECONDS,
    )
    with tempfile.TemporaryDirectory() as folder:
        took, _manifest = timed(gold_export.export_gold, version=round.version, round=round, out=Path(folder))
    bars.say(f"gold of {EXPORTED:,} responses, every figure recomputed", f"{took:.1f} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=100_000)
    responses = parser.parse_args().responses
    django.setup()
    from django.db import connection
    from django.test.runner import DiscoverRunner

    runner = DiscoverRunner(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    bars = Bars()
    try:
        print(f"{connection.vendor}, {responses:,} responses of ten rows each")
        import_beside_bare(bars, responses)
        export_double_graded(bars)
    finally:
        runner.teardown_databases(databases)
    return 1 if bars.missed else 0


if __name__ == "__main__":
    sys.exit(main())
