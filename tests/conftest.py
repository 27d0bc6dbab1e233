"""Fixtures that every test may use; the servers behind some of them are in tests/services.py."""

import gc
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection, transaction
from django.db.backends.sqlite3.base import DatabaseOperations
from django.test import TransactionTestCase
from filelock import FileLock

from tests import servers

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright's sync API runs inside an event loop

pytest_plugins = ["tests.services"]

# What is imported and collected stays to the end: a quarter of that time went into looking for what could go
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)  # a look at what is young after every 700 objects finds little
    gc.enable()


DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "django_db_reset_sequences"}


# Running the database tests a second time, on PostgreSQL


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-database",
        action="store_true",
        help="only the tests that use Django's test database (for a second run on another database)",
    )


def _uses_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("own_database") or item.get_closest_marker("once"):
        return False
    if item.get_closest_marker("django_db") or DATABASE_FIXTURES & set(getattr(item, "fixturenames", ())):
        return True
    of_class = getattr(item, "cls", None)
    return isinstance(of_class, type) and issubclass(of_class, TransactionTestCase)


# What has nothing for the second run need not be read for it: that took half the time of collecting

WITHOUT_DATABASE = ("calibration/stats", "evalsets/shapes")
SAYS_ONCE = re.compile(r"^pytestmark = .*\bpytest\.mark\.once\b", re.MULTILINE)


def _is_without_database(path: Path) -> bool:
    return path.relative_to(Path(__file__).parent).as_posix().startswith(WITHOUT_DATABASE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if not config.getoption("--only-database") or collection_path.suffix != ".py":
        return None
    if _is_without_database(collection_path) or SAYS_ONCE.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


def _refuse_what_would_be_left_out(items: list[pytest.Item]) -> None:
    for item in items:
        if _is_without_database(item.path) and _uses_database(item):
            raise pytest.UsageError(f"{item.nodeid} uses the database: it cannot stand in {WITHOUT_DATABASE}")


# The long ones first, so that no worker has one left when the others are done
LONG = ("ops", "faults", "browser")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    items.sort(key=lambda item: item.path.relative_to(tests).parts[0] not in LONG)
    if not config.getoption("--only-database"):
        _refuse_what_would_be_left_out(items)
        return
    wanted = [item for item in items if _uses_database(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
    items[:] = wanted


# All migrations take long: one worker does them, the others copy. On SQLite the file outlives the run


@pytest.fixture(scope="session")
def _migrated(pytestconfig: pytest.Config) -> Path:
    root = Path(settings.BASE_DIR)
    made_of = [*sorted(root.glob("*/migrations/*.py")), root / "requirements.lock"]
    digest = sha256(b"".join(path.read_bytes() for path in made_of)).hexdigest()
    return pytestconfig.cache.mkdir("migrated") / f"{digest[:16]}.sqlite3"


@pytest.fixture(scope="session")
def _one_migrates(_migrated: Path) -> Iterator[FileLock]:
    with FileLock(f"{_migrated}.lock") as lock:
        yield lock


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings: None, request: pytest.FixtureRequest, _one_migrates: FileLock
) -> None:
    if os.environ.get(servers.OWN_VARIABLE):
        connection.settings_dict["TEST"]["TEMPLATE"] = request.getfixturevalue("postgres_template")


@pytest.fixture(scope="session")
def django_db_keepdb(django_db_modify_db_settings: None, _migrated: Path) -> bool:
    if connection.vendor != "sqlite":
        return False
    if _migrated.exists():
        _copy_sqlite(_migrated, Path(connection.settings_dict["TEST"]["NAME"]))
    return True


@pytest.fixture(scope="session")
def django_db_createdb() -> bool:
    return False


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, _migrated: Path, _one_migrates: FileLock) -> None:
    if connection.vendor == "sqlite" and not _migrated.exists():
        unfinished = _migrated.with_suffix(f".{os.getpid()}")
        _copy_sqlite(Path(connection.settings_dict["TEST"]["NAME"]), unfinished)
        for outdated in _migrated.parent.glob("*.sqlite3"):
            outdated.unlink(missing_ok=True)
        unfinished.rename(_migrated)
    _one_migrates.release()


def _copy_sqlite(source: Path, target: Path) -> None:
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)


# SQLite empties tables by DELETE, which the triggers on frozen and append-only rows rightly refuse


@pytest.fixture(autouse=True, scope="session")
def _flush_lifts_triggers() -> None:
    flush = DatabaseOperations.execute_sql_flush

    def flush_without_triggers(self: DatabaseOperations, sql_list: list[str]) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
            triggers = cursor.fetchall()
            for name, _ in triggers:
                cursor.execute(f"DROP TRIGGER {self.quote_name(name)}")
            try:
                flush(self, sql_list)
            finally:
                for _, statement in triggers:
                    cursor.execute(statement)

    DatabaseOperations.execute_sql_flush = flush_without_triggers


# A process reads what is frozen once; a test's rows go, and their ids come again


def _forget_frozen_rows() -> None:
    from annotate.material import forget_dimensions
    from calibration.contents import forget_contents
    from calibration.rates import forget_lengths

    forget_dimensions()
    forget_contents()
    forget_lengths()


@pytest.fixture(autouse=True)
def _frozen_rows_are_read_anew() -> None:
    _forget_frozen_rows()


# Rows that take long to make are made once for the tests of a module


@pytest.fixture(scope="module")
def kept(django_db_setup: None, django_db_blocker):
    """Runs what makes them: kept(make, ...). What a test does with them is taken back after it, as ever."""

    def run(make, *args):
        with django_db_blocker.unblock():
            return make(*args)

    _forget_frozen_rows()  # this comes before what is done for each test
    around = transaction.atomic()
    run(around.__enter__)
    yield run
    run(transaction.set_rollback, True)
    run(around.__exit__, None, None, None)


# Test machines may have real data sets in a folder `shared` beside the checkout


@pytest.fixture(scope="session")
def shared() -> Path:
    folder = Path(os.environ.get("TOUCHSTONE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    if not folder.is_dir():
        pytest.skip(f"the shared test data are not on this machine ({folder} is missing)")
    return folder


# The four roles of one eval set, whose rights are stated here once


@pytest.fixture
def person(db):
    """Makes a person who may log in: person("ada")."""

    def make(username: str):
        return get_user_model().objects.create_user(username, password=f"{username}-password")

    return make


@pytest.fixture
def evalset(db):
    from evalsets.models import EvalSet

    return EvalSet.objects.create(slug="roles", name="Roles")


@pytest.fixture
def member(person, evalset):
    """Makes a person with the given roles in the eval set of the test."""
    from evalsets.models import Membership

    def make(username: str, *roles: str):
        someone = person(username)
        for role in roles:
            Membership.objects.create(person=someone, evalset=evalset, role=role)
        return someone

    return make


@pytest.fixture
def lead(member):
    """May do everything in the eval set except grade."""
    return member("lead", "lead")


@pytest.fixture
def grader_a(member):
    """May grade what is assigned, and see nobody else's labels."""
    return member("grader_a", "grader")


@pytest.fixture
def grader_b(member):
    """As grader_a."""
    return member("grader_b", "grader")


@pytest.fixture
def stranger(person):
    """Logged in, but of no role here: 404 everywhere."""
    return person("stranger")
