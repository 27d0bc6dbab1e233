"""The stand: the cached data set, databases made from it, the real server, and the count afterwards."""

import contextlib
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests import processes, servers
from tests.bench.grading import load, world

REPOSITORY = Path(__file__).resolve().parents[3]
BARE_TABLE = "CREATE TABLE bench_label (id {key} PRIMARY KEY, item integer NOT NULL, label text NOT NULL)"


@dataclass
class Stand:
    """One database with the server on it and the bare view beside it."""

    items: int
    database: str  # sqlite or postgresql
    url: str
    folder: Path
    web: processes.WebServer
    bare: processes.WebServer
    said: list[load.Said] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.web.url.rsplit(":", 1)[1])

    @property
    def bare_port(self) -> int:
        return int(self.bare.url.rsplit(":", 1)[1])

    def rows(self, question: str) -> list[tuple]:
        if self.database == "sqlite":
            with contextlib.closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as connection:
                return connection.execute(question).fetchall()
        with psycopg.connect(self.url) as connection:
            return connection.execute(question).fetchall()


@contextlib.contextmanager
def stand(items: int, database: str) -> Iterator[Stand]:
    """Everything started, in a temporary folder that goes with it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="touchstone-bench-")))
        if database == "sqlite":
            shutil.copy(data_set(items), folder / "touchstone.sqlite3")
            url = f"sqlite:///{folder / 'touchstone.sqlite3'}"
        else:
            stack.enter_context(servers.session())
            url = _into_postgres(data_set(items), f"bench_{items}")
        made = Stand(items, database, url, folder, *_start(stack, url, folder))
        yield made


def _start(stack, url: str, folder: Path) -> tuple[processes.WebServer, processes.WebServer]:
    environment = processes.app_environment(
        folder, DATABASE_URL=url, CELERY_BROKER_URL="", TOUCHSTONE_TESTING="0"
    )
    _python(environment, "manage.py", "collectstatic", "--no-input", "--verbosity", "0")
    made = []
    for application in ("config.wsgi", "tests.bench.grading.bare"):
        web = processes.start_web(environment, folder / f"{application}.log", application)
        stack.callback(web.stop)
        made.append(web)
    return made[0], made[1]


def _python(environment: dict[str, str], *command: str) -> None:
    result = subprocess.run(
        [sys.executable, *command], cwd=REPOSITORY, env=environment, capture_output=True, text=True
    )
    if result.returncode:
        sys.exit(result.stdout + result.stderr)


# The data set


def data_set(items: int) -> Path:
    """The SQLite file, made once for these tables and this world, and kept between runs."""
    kept = Path(tempfile.gettempdir()) / f"touchstone-bench-data-{os.getuid()}"
    kept.mkdir(mode=0o700, exist_ok=True)
    made_of = sorted(REPOSITORY.glob("*/migrations/*.py")) + sorted(REPOSITORY.glob("*/triggers.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in [*made_of, Path(world.__file__)]))
    path = kept / f"{items}-{digest.hexdigest()[:16]}.sqlite3"
    if not path.exists():
        print(f"Making {items:,} items (once; kept in {kept}) ...", file=sys.stderr)
        for outdated in kept.glob(f"{items}-*.sqlite3"):
            outdated.unlink()
        with tempfile.TemporaryDirectory(dir=kept) as draft:
            environment = processes.app_environment(Path(draft), DATABASE_URL="", CELERY_BROKER_URL="")
            _python(environment, "-m", "tests.bench.grading.world", "--items", str(items))
            with contextlib.closing(sqlite3.connect(f"{draft}/touchstone.sqlite3")) as connection:
                connection.execute(BARE_TABLE.format(key="integer"))
                connection.execute("ANALYZE")
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            Path(draft, "touchstone.sqlite3").rename(path)
    return path


def _into_postgres(source: Path, name: str) -> str:
    """The same rows in a PostgreSQL that waits for its disk, as in production."""
    server = servers.postgres(durable=True)
    with psycopg.connect(servers.postgres_url(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = servers.postgres_url(server, name)
    with tempfile.TemporaryDirectory() as folder:
        environment = processes.app_environment(Path(folder), DATABASE_URL=url, CELERY_BROKER_URL="")
        _python(environment, "manage.py", "migrate", "--verbosity", "0")
    with (
        contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as rows,
        psycopg.connect(url) as connection,
    ):
        connection.execute("SET session_replication_role = replica; SET timezone = 'UTC'")
        connection.execute(BARE_TABLE.format(key="bigserial"))
        tables = [name for (name,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        copied = sorted(table for table in tables if not table.startswith(("sqlite_", "bench_")))
        quoted = ", ".join(f'"{table}"' for table in copied)
        connection.execute(f"TRUNCATE {quoted}")  # all at once: each alone would take others with it
        for table in copied:
            _copy(table, rows, connection)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
    return url


def _copy(table: str, rows: sqlite3.Connection, connection: psycopg.Connection) -> None:
    columns = [column[1] for column in rows.execute(f'PRAGMA table_info("{table}")')]
    quoted = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        with cursor.copy(f'COPY "{table}" ({quoted}) FROM STDIN') as copy:
            for row in rows.execute(f'SELECT {quoted} FROM "{table}"'):
                copy.write_row([None if value is None else str(value) for value in row])
        if "id" in columns:
            cursor.execute(
                f'SELECT setval(s, (SELECT coalesce(max(id), 0) + 1 FROM "{table}"), false) '
                f"FROM pg_get_serial_sequence('\"{table}\"', 'id') s WHERE s IS NOT NULL"
            )


# What the machine spent


def cpu_seconds(web: processes.WebServer) -> float:
    """User and system time of the server's processes so far (0 where there is no /proc)."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == web.process.pid:
                total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


# What must hold afterwards

QUESTIONS = {
    "labels kept": "SELECT count(*) FROM annotate_annotation",
    "labels doubled": """
        SELECT count(*) FROM (SELECT 1 FROM annotate_annotationevent
        GROUP BY round_id, grader_id, response_id, claim_id, dimension HAVING count(*) > 1) AS twice""",
    "labels over the overlap": """
        SELECT count(*) FROM (SELECT n.round_id, n.response_id, count(*) AS said, (SELECT count(*)
        FROM annotate_assignment a WHERE a.round_id = n.round_id AND a.response_id = n.response_id) AS slots
        FROM annotate_annotation n GROUP BY n.round_id, n.response_id, n.claim_id, n.dimension)
        AS target WHERE said > slots""",
    "labels of nobody assigned": """
        SELECT count(*) FROM annotate_annotation n WHERE NOT EXISTS (SELECT 1 FROM annotate_assignment a
        WHERE a.round_id = n.round_id AND a.response_id = n.response_id AND a.grader_id = n.grader_id)""",
    "gold missing or too much": """
        SELECT (SELECT count(*) FROM (SELECT n.round_id FROM annotate_annotation n
        GROUP BY n.round_id, n.response_id, n.claim_id, n.dimension
        HAVING count(*) = 2 AND min(label) = max(label)) AS agreed)
        - (SELECT count(*) FROM annotate_goldlabel)""",
    "responses done without all labels": f"""
        SELECT count(*) FROM annotate_assignment a WHERE (a.state = 'done') <> ((SELECT count(*)
        FROM annotate_annotation n WHERE n.round_id = a.round_id AND n.response_id = a.response_id
        AND n.grader_id = a.grader_id) = {world.CLAIMS + 1})""",
}


def faults(place: Stand) -> list[str]:
    """What is wrong in the database after the load, in words; nothing when all is well."""
    found = [
        f"{rows[0][0]:,} {name}"
        for name, question in QUESTIONS.items()
        if name != "labels kept" and (rows := place.rows(question))[0][0]
    ]
    kept = place.rows(QUESTIONS["labels kept"])[0][0]
    acknowledged = [label for one in place.said for label in one.labels]
    before = world.LABELLED_BEFORE * (world.CLAIMS + 1)
    if kept != before + len(acknowledged):
        found.append(f"{kept - before:,} labels kept, {len(acknowledged):,} acknowledged")
    stored = {
        (assignment, claim, dimension): label
        for assignment, claim, dimension, label in place.rows(
            """SELECT a.id, n.claim_id, n.dimension, n.label FROM annotate_annotation n
            JOIN annotate_assignment a ON a.round_id = n.round_id AND a.response_id = n.response_id
            AND a.grader_id = n.grader_id"""
        )
    }
    lost = sum(stored.get(tuple(target)) != label for *target, label in acknowledged)
    if lost:
        found.append(f"{lost:,} acknowledged labels lost or changed")
    return found
