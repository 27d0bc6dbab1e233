"""Fixtures around real servers: PostgreSQL, Redis, Chromium, and the application's own processes."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
import redis
from django.conf import settings
from filelock import FileLock
from psycopg import sql

from tests import processes, servers

TEMPLATE_DATABASE = "touchstone_template"
T = TypeVar("T")
_session_folder: pytest.StashKey[Path | None] = pytest.StashKey()
_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_session_folder] = servers.open_session()


def pytest_unconfigure(config: pytest.Config) -> None:
    if folder := config.stash.get(_session_folder, None):
        servers.close_session(folder)


def _or_say_what_is_missing(start: Callable[[], T]) -> T:
    """A machine without the program skips; the continuous integration must have it."""
    try:
        return start()
    except servers.ServerMissing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


def _worker_number() -> int:
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


# Databases beside the test's own


@pytest.fixture(scope="session")
def postgres_server() -> servers.Server:
    return _or_say_what_is_missing(servers.postgres)


def _administer(server: servers.Server, statement: sql.Composed) -> None:
    with psycopg.connect(servers.postgres_url(server), autocommit=True) as connection:
        connection.execute(statement)


@pytest.fixture
def new_postgres_database(postgres_server: servers.Server) -> Iterator[Callable[..., str]]:
    """Makes databases (empty, or a copy of a template) and drops them after the test."""
    made: list[str] = []

    def make(template: str = "template0") -> str:
        name = f"extra_{os.getpid()}_{next(_numbers)}"
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        _administer(postgres_server, statement.format(sql.Identifier(name), sql.Identifier(template)))
        made.append(name)
        return servers.postgres_url(postgres_server, name)

    yield make
    for name in made:
        _administer(postgres_server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def postgres_database(new_postgres_database: Callable[..., str]) -> str:
    """The address of an empty database."""
    return new_postgres_database()


def _manage(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def _migrate(database_url: str, data_dir: Path) -> None:
    result = _manage(["migrate", "-v", "0"], processes.app_environment(data_dir, DATABASE_URL=database_url))
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="session")
def postgres_template(postgres_server: servers.Server, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a database with all tables, migrated once for all workers, to be copied."""
    shared = Path(os.environ[servers.FOLDER_VARIABLE])
    done = shared / "template.done"
    with FileLock(shared / "template.lock"):
        if not done.exists():
            statement = sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE_DATABASE))
            _administer(postgres_server, statement)
            address = servers.postgres_url(postgres_server, TEMPLATE_DATABASE)
            _migrate(address, tmp_path_factory.mktemp("template"))
            done.touch()
    return TEMPLATE_DATABASE


@pytest.fixture
def migrated_postgres(postgres_template: str, new_postgres_database: Callable[..., str]) -> str:
    """The address of a database of its own with all tables."""
    with FileLock(Path(os.environ[servers.FOLDER_VARIABLE]) / "template.lock"):  # one copies at a time
        return new_postgres_database(postgres_template)


@pytest.fixture
def migrated_sqlite(django_db_setup: None, _migrated: Path, tmp_path: Path) -> str:
    """The address of a SQLite file of its own with all tables."""
    own = tmp_path / "own.sqlite3"
    if _migrated.exists():
        shutil.copy(_migrated, own)
    else:  # the tests' main database is another
        _migrate(f"sqlite:///{own}", tmp_path)
    return f"sqlite:///{own}"


# Redis


@pytest.fixture(scope="session")
def redis_server() -> servers.Server:
    return _or_say_what_is_missing(servers.redis_server)


@pytest.fixture
def redis_url(redis_server: servers.Server) -> str:
    """An empty Redis database that no other test uses at the same time."""
    url = servers.redis_url(redis_server, _worker_number())
    with redis.Redis.from_url(url) as client:
        client.flushdb()
    return url


# The application's own processes


@pytest.fixture
def app_data_dir(tmp_path: Path) -> Path:
    """DATA_DIR of the processes that a test starts: one for all of them, as in production."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture
def app_environment(app_data_dir: Path) -> Callable[..., dict[str, str]]:
    """The environment of a process; its database the test's own (use `transactional_db`) or the one named."""

    def make(*, database_url: str | None = None, broker_url: str = "", **variables: str) -> dict[str, str]:
        return processes.app_environment(
            app_data_dir,
            DATABASE_URL=database_url or processes.current_database_url(),
            CELERY_BROKER_URL=broker_url,
            **variables,
        )

    return make


@pytest.fixture
def started() -> Iterator[list[processes.AppProcess]]:
    """Whatever a test puts here is ended after it."""
    running: list[processes.AppProcess] = []
    yield running
    for process in reversed(running):
        process.stop()


@pytest.fixture
def start_worker(
    app_environment: Callable[..., dict[str, str]], started: list[processes.AppProcess], tmp_path: Path
) -> Callable[..., processes.AppProcess]:
    """Starts a Celery worker process and returns when it is ready; `beat=True` adds the clock.

    start_worker(database_url=..., broker_url=..., concurrency=2, beat=False, JUDGE_LEASE_SECONDS="2")
    """

    def start(*, concurrency: int = 2, beat: bool = False, **environment: Any) -> processes.AppProcess:
        log = tmp_path / f"worker-{next(_numbers)}.log"
        worker = processes.start_worker(
            app_environment(**environment), log, concurrency=concurrency, beat=beat
        )
        started.append(worker)
        return worker

    return start


@pytest.fixture
def start_web(
    app_environment: Callable[..., dict[str, str]], started: list[processes.AppProcess], tmp_path: Path
) -> Callable[..., processes.WebServer]:
    """Starts the production web server on a free port and returns when /healthz answers."""

    def start(**environment: Any) -> processes.WebServer:
        web = processes.start_web(app_environment(**environment), tmp_path / f"web-{next(_numbers)}.log")
        started.append(web)
        return web

    return start


@pytest.fixture
def manage(
    app_environment: Callable[..., dict[str, str]],
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `manage.py ...` in a process of its own: manage("check", "x@1", database_url=...)."""

    def run(*arguments: str, **environment: Any) -> subprocess.CompletedProcess[str]:
        return _manage(list(arguments), app_environment(**environment))

    return run


# Chromium


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    return {
        **browser_type_launch_args,
        "executable_path": _or_say_what_is_missing(servers.headless_program),
        "args": servers.CHROMIUM_ARGUMENTS,
    }
