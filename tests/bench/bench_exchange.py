"""How fast files go in and out, beside the bare database work of the same rows.

Run with ``./run bench exchange`` or ``python -m tests.bench.bench_exchange [--responses N ...] [--turns N]
[--database sqlite|postgresql]``. It exits 1 when a bar is missed. Each figure is the median of some turns;
the product and the bare work follow each other, so that a busy moment hits both.

What is bare: on the way in, the rows that the import made, taken out and put into the same tables (with
their indexes and triggers) by executemany on SQLite or COPY on PostgreSQL, in one transaction; on the way
out, every row that the export reads, fetched and thrown away.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from statistics import median

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

SHARE = 0.6  # of the speed of the bare work
PEER = 2_900  # responses a second, of another tool that stores one row for each
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


def import_beside_bare(bars: Bars, responses: int, turns: int) -> None:
    from evalsets import services

    whole, checking, bare = [], [], []
    for turn in range(turns):
        name = f"Bench {responses} {turn}"
        with file_of(responses) as file:
            begin = time.perf_counter()
            checked = services.check_evalset(stream=file, filename="bench.jsonl", name=name)
            checking.append(time.perf_counter() - begin)
            imported = services.store_evalset(checked=checked, name=name)
            whole.append(time.perf_counter() - begin)
        bare.append(bare_seconds(imported.version))
    rows = sum(imported.counts.values())
    bars.say(
        "bare rows", f"{responses / median(bare):,.0f} a second", f"responses of {rows / responses:g} rows"
    )
    bars.say("checked", f"{responses / median(checking):,.0f} a second")
    share = median(alone / both for alone, both in zip(bare, whole, strict=True))
    bars.say(
        f"import of {responses:,} responses",
        f"{responses / median(whole):,.0f} a second",
        f"{share:.2f} of the bare work; at least {SHARE}",
        share >= SHARE,
    )
    bars.say("beside another tool", f"{PEER:,} a second", "no slower", responses / median(whole) >= PEER)


OF_VERSION = {
    "Item": "version_id = %s",
    "Response": "version_id = %s",
    "Passage": "response_id IN (SELECT id FROM evalsets_response WHERE version_id = %s)",
    "Claim": "response_id IN (SELECT id FROM evalsets_response WHERE version_id = %s)",
}


def bare_seconds(version) -> float:
    """The rows of a version, taken out of their tables and put back with nothing else around it."""
    from django.db import connection, transaction

    held = {}
    with connection.cursor() as cursor:
        for name, where in OF_VERSION.items():
            table = f"evalsets_{name.lower()}"
            cursor.execute(f"SELECT * FROM {table} WHERE {where}", [version.pk])
            held[table] = [column[0] for column in cursor.description], cursor.fetchall()
        for name, where in reversed(OF_VERSION.items()):
            cursor.execute(f"DELETE FROM evalsets_{name.lower()} WHERE {where}", [version.pk])
        if connection.vendor == "sqlite":
            cursor.execute("VACUUM")  # the file has to grow for the bare work as it had to for the import
    begin = time.perf_counter()
    with transaction.atomic(), connection.cursor() as cursor:
        for table, (columns, rows) in held.items():
            put(cursor, connection.vendor, table, columns, rows)
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


def export_double_graded(bars: Bars, turns: int) -> None:
    from annotate.models import Round
    from calibration import exchange
    from calibration.native_file import Export

    memory, rounds = {}, {}
    for responses in (EXPORTED // 10, EXPORTED):
        with file_of(responses, labels=True) as file:
            name = f"Graded {responses}"
            took, told = timed(
                exchange.import_evalset,
                stream=file,
                filename="b.jsonl",
                name=name,
                with_labels=True,
                freeze=True,
            )
        labels = told["counts"]["annotations"] / responses
        bars.say(
            f"import of {responses:,} responses, frozen",
            f"{responses / took:,.0f} a second",
            f"with {labels:g} labels each",
        )
        round = Round.objects.select_related("version__evalset").get(version__evalset__slug=told["evalset"])
        rounds[responses] = round
        seconds, bare = [], []
        for _turn in range(turns):
            export = Export(round.version, with_labels=True)
            seconds.append(timed(lambda export=export: sum(len(line) for line in export.lines()))[0])
            bare.append(timed(read_bare, round)[0])
        memory[responses] = peak_megabytes()
        bars.say("  bare reading of its rows", f"{median(bare):.2f} s")
        share = median(alone / whole for alone, whole in zip(bare, seconds, strict=True))
        bars.say(
            f"export of {responses:,} double-graded responses",
            f"{median(seconds):.2f} s",
            f"at most {EXPORT_SECONDS:g} s; {share:.2f} of the bare reading",
            median(seconds) <= EXPORT_SECONDS,
        )
    say_memory(bars, memory)
    gold_of(bars, rounds)


def gold_of(bars: Bars, rounds: dict) -> None:
    """The files of a gold set, and all of them read again: every figure recomputed from them alone."""
    from pathlib import Path

    from calibration.gold_export import export_gold

    memory = {}
    for responses, round in rounds.items():
        with tempfile.TemporaryDirectory() as folder:
            took, _manifest = timed(export_gold, version=round.version, round=round, out=Path(folder))
            size = sum(path.stat().st_size for path in Path(folder).iterdir()) / 2**20
        memory[responses] = peak_megabytes()
        bars.say(f"gold of {responses:,} responses", f"{took:.1f} s", f"{size:,.0f} MB of files, recomputed")
    say_memory(bars, memory)


def say_memory(bars: Bars, memory: dict[int, float]) -> None:
    small, large = memory.values()
    bars.say("memory at most", f"{large:,.0f} MB", f"{small:,.0f} MB for a tenth", large <= FLAT * small)


def read_bare(round) -> None:
    from django.db import connection

    wheres = {f"evalsets_{name.lower()}": (where, round.version_id) for name, where in OF_VERSION.items()}
    with connection.cursor() as cursor:
        for table, (where, pk) in (wheres | {"annotate_annotation": ("round_id = %s", round.pk)}).items():
            cursor.execute(f"SELECT * FROM {table} WHERE {where}", [pk])
            while cursor.fetchmany(1000):
                pass


def run_here(sizes: list[int], turns: int) -> int:
    django.setup()
    from django.db import connection
    from django.test.runner import DiscoverRunner

    runner = DiscoverRunner(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    bars = Bars()
    try:
        print(f"{connection.vendor}, medians of {turns} turns")
        for responses in sizes:
            import_beside_bare(bars, responses, turns)
        export_double_graded(bars, turns)
    finally:
        runner.teardown_databases(databases)
    return 1 if bars.missed else 0


def run_on(database: str, words: list[str]) -> int:
    """In a process of its own, whose main database is the one that is asked for."""
    command = [sys.executable, "-m", "tests.bench.bench_exchange", "--here", *words]
    if database == "postgresql":
        command = [sys.executable, "-m", "tests.servers", *command]
    return subprocess.run(command).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, nargs="+", default=[2_000, 10_000])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], nargs="+")
    parser.add_argument("--here", action="store_true", help="in this process, on its own database")
    asked = parser.parse_args()
    if asked.here:
        return run_here(asked.responses, asked.turns)
    words = ["--responses", *map(str, asked.responses), "--turns", str(asked.turns)]
    return max(run_on(database, words) for database in asked.database or ["sqlite", "postgresql"])


if __name__ == "__main__":
    sys.exit(main())
