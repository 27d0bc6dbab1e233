"""How fast the pages of a lead are where there is much: one version, two graders, three judges.

Run with ``./run bench rates`` or ``python -m tests.bench.bench_rates [--responses 100000]``; it exits 1 when
a bar is missed. Every page is asked for as a lead's browser would, in a process of its own for each database,
with the bare SQL aggregate that its figures rest on timed beside it. A page may send as many queries in the
large version as in one of 1,000 responses, and on PostgreSQL it has to be there in 1.5 s; where other work
takes the processor away, that bar moves with the share of a core that was left.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from tests import servers

REPOSITORY = Path(__file__).resolve().parents[2]
SMALL, LARGE = 1_000, 10_000  # responses; five claims each
SECONDS = 1.5
DATABASES = ("postgresql", "sqlite")


def kept() -> Path:
    """Where the SQLite files stay between runs."""
    folder = Path(tempfile.gettempdir()) / f"touchstone-bench-data-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def digest_of(*patterns: str) -> str:
    paths = [path for pattern in patterns for path in sorted(REPOSITORY.glob(pattern))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:12]


TABLES = ("*/migrations/*.py", "*/triggers.py")
CONTENTS = ("tests/bench/leading/world.py", "calibration/reports.py")


@contextlib.contextmanager
def database(kind: str, responses: int) -> Iterator[str]:
    """The address of a database for a world of that size; one with the tables alone is its template."""
    empty, name = f"leading_{digest_of(*TABLES)}", f"leading_{responses}_{digest_of(*TABLES, *CONTENTS)}"
    if kind == "sqlite":
        if not (wanted := kept() / f"{name}.sqlite3").exists():
            for outdated in kept().glob(f"leading_{responses}_*"):
                outdated.unlink()
            migrate(f"sqlite:///{kept() / empty}.sqlite3")
            shutil.copy(kept() / f"{empty}.sqlite3", wanted)
        yield f"sqlite:///{wanted}"
        return
    with servers.session():
        server = servers.postgres(durable=True)
        with psycopg.connect(servers.postgres_url(server), autocommit=True) as connection:
            known = [row[0] for row in connection.execute("SELECT datname FROM pg_database")]
            if empty not in known:
                connection.execute(f"CREATE DATABASE {empty}")
                migrate(servers.postgres_url(server, empty))
            if name not in known:
                connection.execute(f"CREATE DATABASE {name} TEMPLATE {empty}")
        yield servers.postgres_url(server, name)


def migrate(url: str) -> None:
    subprocess.run([sys.executable, "manage.py", "migrate", "-v", "0"], check=True, **child(url))


def child(url: str) -> dict[str, Any]:
    environment = {**os.environ, "TEST_DATABASE_URL": url, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    return {"cwd": REPOSITORY, "env": environment}


def measured(url: str, responses: int, options: argparse.Namespace) -> Iterator[dict]:
    """What the process that asks for the pages prints, line by line."""
    command = [sys.executable, "-m", "tests.bench.leading.pages", "--responses", str(responses)]
    command += ["--repeats", str(options.repeats)]
    command += ["--only", *options.only] if options.only else []
    command += ["--profile"] if options.profile and responses == options.responses else []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **child(url)) as process:
        assert process.stdout is not None
        for line in process.stdout:
            yield json.loads(line)
    if process.returncode:
        sys.exit(process.returncode)


def run(kind: str, options: argparse.Namespace) -> list[str]:
    """Every page at both sizes; the bars that were missed."""
    missed: list[str] = []
    queries: dict[str, int] = {}
    for responses in (SMALL, options.responses):
        print(f"\n{kind}, {responses:,} responses, about {5 * responses:,} claims", flush=True)
        with database(kind, responses) as url:
            for found in measured(url, responses, options):
                if "made" in found:
                    print(f"  made: {found['made']:<38}{found['seconds']:10.2f} s", flush=True)
                    continue
                name = found["name"]
                at_small = queries.setdefault(name, found["queries"])
                faults = faults_of(found, at_small, bar=kind == "postgresql")
                print(line_of(found) + "".join(f"   MISSED: {fault}" for fault in faults), flush=True)
                missed += [f"{name} ({kind}, {responses:,}): {fault}" for fault in faults]
    return missed


def faults_of(found: dict, at_small: int, *, bar: bool) -> list[str]:
    faults = []
    if found["queries"] != at_small:
        faults.append(f"{found['queries']} queries, {at_small} where there is little")
    if bar and statistics.median(found["wall"]) * min(1.0, found["share"]) > SECONDS:
        faults.append(f"more than {SECONDS:g} s")
    return faults


def line_of(found: dict) -> str:
    wall, cpu = statistics.median(found["wall"]), statistics.median(found["cpu"])
    ratio = f"{wall / found['bare']:8.1f} x" if found["bare"] > 0.001 else " " * 10
    return (
        f"  {found['name']:<30}{1000 * wall:9,.0f} ms   CPU {1000 * cpu:7,.0f}"
        f"   first {1000 * found['first']:8,.0f}"
        f"   bare {1000 * found['bare']:7,.1f}{ratio}   {found['queries']:3d} queries"
        f"   {found['size'] / 1000:7,.0f} kB   core {found['share']:.0%}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, default=LARGE, help="the real thing is 100000")
    parser.add_argument("--database", nargs="+", choices=DATABASES, default=DATABASES)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[], help="pages with one of these words in their name")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    missed = [fault for kind in options.database for fault in run(kind, options)]
    print("\nMissed:\n  " + "\n  ".join(missed) if missed else "\nEvery bar is held.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
