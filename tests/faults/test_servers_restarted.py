"""The database and the broker go away in mid-run and come back: every verdict ends once, and none is lost."""

import subprocess
import time

import psycopg
import pytest
import redis
from django.db import connection
from psycopg import sql

from calibration.models import JudgeRun
from tests import servers
from tests.calibration.judges.fake_server import FakeServer
from tests.faults.test_judge_worker import (
    AT_ONCE,
    FINISHED,
    TARGETS,
    is_complete,
    server,
    started,
    states_of,
    version,
    wait_until,
)

__all__ = ["server", "version"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow, pytest.mark.timeout(600)]

AWAY_SECONDS = 3
REPEATS = 4


def finished(run) -> int:
    return run.verdicts.filter(state__in=FINISHED).count()


def check(run: JudgeRun, server: FakeServer, interruptions: int) -> None:
    wait_until(lambda: is_complete(run), seconds=120)
    assert states_of(run) == {"valid": REPEATS * TARGETS}
    assert set(run.verdicts.values_list("claim_token", flat=True)) == {None}
    assert REPEATS * TARGETS <= server.calls <= REPEATS * TARGETS + interruptions * AT_ONCE


class Broker:
    """Redis of its own, which keeps nothing: what it held is lost with it."""

    def __init__(self):
        self.port = servers.free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        words = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen([servers.redis_program(), *words], stdout=subprocess.DEVNULL)
        wait_until(self.answers)

    def answers(self) -> bool:
        try:
            return redis.Redis.from_url(self.url).ping()
        except redis.exceptions.ConnectionError:
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def broker():
    own = Broker()
    yield own
    own.kill()


@pytest.mark.redis
def test_the_broker_is_killed_twice_in_mid_run(version, server, broker, manage, start_worker):
    server.delay = 0.3
    start_worker(concurrency=AT_ONCE, broker_url=broker.url, beat=True, JUDGE_LEASE_SECONDS="2")
    run = started(manage, broker.url, "--judge", "fake", "--repeats", str(REPEATS))
    for _ in range(2):
        before = finished(run)
        wait_until(lambda: finished(run) > before + 8)  # noqa: B023
        broker.kill()
        assert not is_complete(run)
        time.sleep(AWAY_SECONDS)
        broker.start()
    check(run, server, interruptions=2)


def let_in(allowed: bool) -> None:
    """Whether anybody may open a connection to the test's database; who is in stays in."""
    statement = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS {}")
    with psycopg.connect(servers.postgres_url(servers.postgres()), autocommit=True) as outside:
        outside.execute(
            statement.format(sql.Identifier(connection.settings_dict["NAME"]), sql.Literal(allowed))
        )


def cut_all_others() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return cursor.fetchone()[0]


@pytest.mark.postgres
def test_the_database_is_gone_twice_in_mid_run(version, server, broker, manage, start_worker):
    if connection.vendor != "postgresql":
        pytest.skip("SQLite is a file: it does not go away")
    server.delay = 0.3
    start_worker(concurrency=AT_ONCE, broker_url=broker.url, beat=True, JUDGE_LEASE_SECONDS="2")
    run = started(manage, broker.url, "--judge", "fake", "--repeats", str(REPEATS))
    for _ in range(2):
        before = finished(run)
        wait_until(lambda: finished(run) > before + 8)  # noqa: B023
        try:
            let_in(False)
            assert cut_all_others() > 0
            assert not is_complete(run)
            time.sleep(AWAY_SECONDS)
        finally:
            let_in(True)
    check(run, server, interruptions=2)
