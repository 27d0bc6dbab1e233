"""The doorbells."""

import pytest
from django.db import connection

from calibration import tasks
from calibration.models import JudgeRun, WorkerSighting
from calibration.queries import worker_seen
from calibration.services import start_run


@pytest.mark.django_db
def test_judge_verdicts_works_through_the_run_and_a_second_ring_changes_nothing(judge, version, server):
    run = start_run(judge=judge, version=version)
    for _ring in range(2):
        tasks.judge_verdicts(run.pk)
    run.refresh_from_db()
    assert run.state == JudgeRun.State.COMPLETE
    assert server.calls == 9


@pytest.mark.django_db
def test_a_bell_for_a_run_that_does_not_exist(db):
    tasks.judge_verdicts(123456)


@pytest.mark.django_db
def test_every_task_tells_that_a_worker_lives_and_does_not_write_each_time(django_assert_max_num_queries):
    assert not worker_seen()
    tasks.sweep()
    assert worker_seen()
    seen_at = WorkerSighting.objects.get().seen_at
    tasks.sweep()
    assert WorkerSighting.objects.get().seen_at == seen_at


@pytest.mark.django_db(transaction=True)
def test_a_task_leaves_no_connection_behind():
    tasks.sweep()
    assert connection.connection is None
