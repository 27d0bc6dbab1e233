"""Several workers at once: every verdict once, every target asked about once."""

import threading
from collections import Counter

import pytest
from django.db import connections

from calibration import leases, services, work
from calibration.models import Endpoint, Judge, JudgeRun, Verdict
from tests.calibration.judges.conftest import make_version

pytestmark = pytest.mark.django_db(transaction=True)


def in_threads(number, work):
    errors = []

    def run():
        try:
            work()
        except BaseException as error:  # a thread's error must reach the test
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_workers_that_claim_the_same_rows_ask_about_each_target_once(judge, version, server, evalset):
    big = make_version(evalset, number=2, responses=15, claims=3)
    run = services.start_run(judge=judge, version=big)
    server.default, server.delay = "slow", 0.01
    in_threads(4, lambda: work.work_through(run_id=run.pk))
    assert Counter(run.verdicts.values_list("state", flat=True)) == {"valid": 60}
    assert set(run.verdicts.values_list("attempts", flat=True)) == {1}
    assert server.calls == 60
    assert set(server.calls_by_claim().values()) == {1}
    run.refresh_from_db()
    assert run.state == JudgeRun.State.COMPLETE


def most_at_once(server):
    """Of the calls that the server had at the same time."""
    moments = sorted([(at, 1) for at, _ in server.spans] + [(at, -1) for _, at in server.spans])
    now = most = 0
    for _at, change in moments:
        now += change
        most = max(most, now)
    return most


def test_turns_of_several_workers_keep_to_the_concurrency_of_the_judge(judge, server, evalset):
    Judge.objects.filter(pk=judge.pk).update(parameters={"concurrency": 6})
    judge.refresh_from_db()
    big = make_version(evalset, number=2, responses=20, claims=3)
    run = services.start_run(judge=judge, version=big)
    server.default, server.delay = "slow", 0.1
    in_threads(3, lambda: work.work_through(run_id=run.pk, calls=4))
    assert Counter(run.verdicts.values_list("state", flat=True)) == {"valid": 80}
    assert server.calls == 80
    assert 1 < most_at_once(server) <= 6


def test_an_endpoints_limit_holds_for_all_runs_and_workers_together(judge, version, server, evalset):
    other = services.add_judge(evalset=evalset, name="other", model="m", base_url=server.url)
    runs = [services.start_run(judge=each, version=version, repeats=2) for each in (judge, other)]
    assert runs[0].endpoint == runs[1].endpoint
    Endpoint.objects.update(concurrency=2)
    server.default, server.delay = "slow", 0.03
    work_on = iter([run.pk for run in runs for _turn in range(2)])
    in_threads(4, lambda: work.work_through(run_id=next(work_on), calls=4))
    for run in runs:
        services.run_inline(run=run)  # a turn leaves when it finds no place for a while
        assert Counter(run.verdicts.values_list("state", flat=True)) == {"valid": 18}
    assert server.calls == 36
    assert most_at_once(server) == 2


def test_one_row_that_everybody_wants_is_claimed_by_one(judge, version):
    run = services.start_run(judge=judge, version=version)
    row = run.verdicts.first()
    run.verdicts.exclude(pk=row.pk).update(state=Verdict.State.FAILED, failure="timeout")
    ready, won = threading.Barrier(6), []

    def claim():
        ready.wait(10)
        won.extend(claimed.token for claimed in leases.claim_verdicts(run=run, verdicts=[row]))

    in_threads(6, claim)
    row.refresh_from_db()
    assert [row.claim_token] == won


def test_a_second_start_at_the_same_moment_is_refused(judge, version):
    ready, outcomes = threading.Barrier(2), []

    def start():
        ready.wait(10)
        try:
            services.start_run(judge=judge, version=version)
            outcomes.append("started")
        except services.Refused:
            outcomes.append("refused")

    in_threads(2, start)
    assert sorted(outcomes) == ["refused", "started"]
