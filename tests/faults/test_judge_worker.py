"""Real worker processes that are killed, doubled and stopped: every verdict ends once, and none is lost."""

import json
import random
import time
from collections import Counter

import pytest
from celery import Celery
from django.db import connection

from calibration.models import Judge, JudgeRun, Verdict
from calibration.services import add_judge, resume_run, start_run, stop_run
from tests.calibration.judges.conftest import make_version
from tests.calibration.judges.fake_server import FakeServer

pytestmark = pytest.mark.django_db(transaction=True)

TARGETS = 60
AT_ONCE = 4
FINISHED = (Verdict.State.VALID, Verdict.State.FAILED)


@pytest.fixture
def server():
    with FakeServer(default="slow") as fake:
        fake.delay = 0.1
        yield fake


@pytest.fixture
def version(evalset, server):
    add_judge(
        evalset=evalset, name="fake", model="m", base_url=server.url, parameters={"concurrency": AT_ONCE}
    )
    return make_version(evalset, responses=15, claims=3)


@pytest.fixture
def broker(request):
    """Redis with PostgreSQL; with SQLite the embedded one, which lives in the processes' DATA_DIR."""
    return request.getfixturevalue("redis_url") if connection.vendor == "postgresql" else ""


def wait_until(condition, seconds=60, every=0.05):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(every)
    return found


def states_of(run):
    return Counter(run.verdicts.values_list("state", flat=True))


def is_complete(run):
    run.refresh_from_db()
    return run.state == JudgeRun.State.COMPLETE


def started(manage, broker, *arguments):
    result = manage("judge_run", "roles@1", *arguments, "--json", broker_url=broker)
    assert result.returncode == 0, result.stderr
    return JudgeRun.objects.get(number=json.loads(result.stdout)["run"])


def test_kill_9_of_the_worker_in_mid_run(version, server, broker, manage, start_worker):
    server.delay = 0.3  # the run outlasts a test that has to wait for its processor
    worker = start_worker(concurrency=AT_ONCE, broker_url=broker, JUDGE_LEASE_SECONDS="2")
    run = started(manage, broker, "--judge", "fake")
    wait_until(lambda: run.verdicts.filter(state__in=FINISHED).count() >= 8)
    worker.kill()
    before = set(run.verdicts.filter(state__in=FINISHED).values_list("pk", "updated_at"))
    asked = server.calls
    assert 8 <= len(before) < TARGETS
    held = run.verdicts.filter(state=Verdict.State.CLAIMED).count()
    assert held > 0

    start_worker(concurrency=AT_ONCE, broker_url=broker, beat=True, JUDGE_LEASE_SECONDS="2")
    wait_until(lambda: is_complete(run))
    assert states_of(run) == {"valid": TARGETS}
    assert before <= set(run.verdicts.values_list("pk", "updated_at"))  # what was recorded stayed as it was
    assert set(run.verdicts.values_list("claim_token", flat=True)) == {None}
    # Only what was in flight when the worker died is asked about a second time.
    assert len(server.calls_by_claim()) == TARGETS
    assert server.calls - asked == TARGETS - len(before)
    assert asked - len(before) <= AT_ONCE


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ten_kills_in_one_run(version, server, broker, manage, start_worker):
    seed = random.randrange(10**6)
    print(f"moments drawn with seed {seed}")
    moments = random.Random(seed)
    server.delay = 0.3
    worker = start_worker(concurrency=AT_ONCE, broker_url=broker, beat=True, JUDGE_LEASE_SECONDS="2")
    run = started(manage, broker, "--judge", "fake", "--repeats", "8")
    targets, kills, seen = 8 * TARGETS, 10, set()
    for _ in range(kills):
        finished = len(seen)
        wait_until(lambda: run.verdicts.filter(state__in=FINISHED).count() > finished)  # noqa: B023
        time.sleep(moments.uniform(0, 0.4))
        worker.kill()
        assert not is_complete(run), "all kills fall into the run"
        now = set(run.verdicts.filter(state__in=FINISHED).values_list("pk", "updated_at"))
        assert seen <= now  # what was recorded stayed as it was
        seen = now
        worker = start_worker(concurrency=AT_ONCE, broker_url=broker, beat=True, JUDGE_LEASE_SECONDS="2")
    wait_until(lambda: is_complete(run), seconds=120)
    assert states_of(run) == {"valid": targets}
    assert seen <= set(run.verdicts.values_list("pk", "updated_at"))
    calls = server.calls_by_claim()
    assert (len(calls), min(calls.values())) == (TARGETS, 8)
    assert targets <= server.calls <= targets + kills * AT_ONCE  # paid twice: what was in flight at a kill


def ring(data_dir, run, bells):
    """As many messages as a confused broker might deliver, through the embedded one."""
    queue = data_dir / "queue"
    folders = {"data_folder_in": str(queue / "messages"), "data_folder_out": str(queue / "messages")}
    with Celery(
        broker="filesystem://",
        broker_transport_options={**folders, "control_folder": str(queue / "control")},
        task_default_queue="touchstone",
        set_as_current=False,  # a closed app that stays the current one knows no task registered later
    ) as producer:
        for _bell in range(bells):
            producer.send_task("calibration.tasks.judge_verdicts", args=[run.pk])


def test_stop_resume_and_doubled_messages(version, server, app_data_dir, start_worker):
    start_worker(concurrency=2 * AT_ONCE)
    run = start_run(judge=Judge.objects.get(), version=version)
    ring(app_data_dir, run, 3 * AT_ONCE)
    wait_until(lambda: run.verdicts.filter(state__in=FINISHED).exists())
    stop_run(run=run)
    wait_until(lambda: not run.verdicts.filter(state=Verdict.State.CLAIMED).exists())
    stopped_at = states_of(run)
    assert stopped_at["pending"] > 0
    assert stopped_at["failed"] == 0
    time.sleep(0.5)
    assert states_of(run) == stopped_at

    resume_run(run=run)
    ring(app_data_dir, run, 3 * AT_ONCE)
    wait_until(lambda: is_complete(run))
    assert states_of(run) == {"valid": TARGETS}
    assert server.calls == TARGETS
    assert set(server.calls_by_claim().values()) == {1}
