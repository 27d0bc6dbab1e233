"""Known cases for a judge before it costs money: asked once, shown with their reasons, counted nowhere."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from calibration import judge_warm_up, tasks
from calibration.judge_warm_up import needs_warm_up, start_warm_up, warm_up_of, warning_about
from calibration.models import Call, JudgeRun, Verdict, WarmUpVerdict
from calibration.services import judge_named, rubric_in_force

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_waiting")]


@pytest.fixture
def rubric(version):
    return rubric_in_force(version)


def place(version, name, *more):
    return reverse(f"calibration:{name}", args=[version.evalset.slug, version.number, *more])


def test_every_case_is_asked_once_and_counts_nowhere(judge, rubric, server):
    cases = rubric.warm_up_cases.count()
    assert cases >= 10
    assert needs_warm_up(judge, rubric)
    assert start_warm_up(judge=judge, rubric_version=rubric) == cases
    assert start_warm_up(judge=judge, rubric_version=rubric) == 0
    for _twice in range(2):
        tasks.warm_up_judges()
    found = warm_up_of(judge, rubric)
    assert found.is_done
    assert len(server.spans) == cases
    assert not needs_warm_up(judge, rubric)
    assert (Verdict.objects.count(), JudgeRun.objects.count(), Call.objects.count()) == (0, 0, 0)


def test_what_another_worker_holds_is_left_alone_until_it_has_died(judge, rubric, server):
    start_warm_up(judge=judge, rubric_version=rubric)
    soon = timezone.now() + timedelta(minutes=1)
    WarmUpVerdict.objects.update(state="claimed", lease_until=soon)
    assert judge_warm_up.ask_waiting() == 0
    WarmUpVerdict.objects.update(lease_until=timezone.now())
    assert judge_warm_up.ask_waiting() == rubric.warm_up_cases.count()


def test_a_judge_that_calls_hedges_refusals_is_told_so(judge, rubric, version, client, lead, server):
    start_warm_up(judge=judge, rubric_version=rubric)
    answered = WarmUpVerdict.objects.filter(case__label="ANSWERED")
    n = answered.count()
    WarmUpVerdict.objects.update(state="failed", failure="timeout")
    assert warning_about(judge) == ""
    answered.update(state="valid", failure="", label="REFUSED", raw_output='{"reason": "I said so"}')
    assert f"called {n} of {n} hedged" in warning_about(judge)
    client.force_login(lead)
    for address in (
        place(version, "judges"),
        place(version, "judge_warm_up", judge.pk),
        place(version, "confirm_judge_run") + "?judge=fake&repeats=1",
    ):
        assert "its refusal rates would be too high" in client.get(address).content.decode()
    shown = client.get(place(version, "judge_warm_up", judge.pk)).content.decode()
    assert "I said so" in shown
    assert "Ask again about those without an answer" in shown
    client.post(place(version, "start_judge_warm_up", judge.pk), {"again": "1"})
    assert not WarmUpVerdict.objects.filter(state="failed").exists()


def test_a_new_judge_sees_the_cases_before_its_first_run(judge, rubric, version, client, lead, server):
    client.force_login(lead)
    start = {"judge": "fake", "repeats": "1", "warm_up": "on", "budget_calls": "50"}
    assert "known cases come first" in client.get(place(version, "confirm_judge_run"), start).content.decode()
    for _twice in range(2):
        answer = client.post(place(version, "start_judge_run"), start)
        assert answer.url.startswith(place(version, "judge_warm_up", judge.pk) + "?judge=fake")
    assert not JudgeRun.objects.exists()
    assert "Start the run without waiting" in client.get(answer.url).content.decode()
    judge_warm_up.ask_waiting()
    shown = client.get(answer.url).content.decode()
    assert "Start the run<" in shown
    assert 'name="warm_up"' not in shown
    client.post(place(version, "start_judge_run"), start | {"warm_up": ""})
    assert JudgeRun.objects.get().budget_calls == 50


def test_a_server_that_is_down_leaves_failures_that_say_so(judge, rubric, server):
    server.default = "unauthorized"
    start_warm_up(judge=judge, rubric_version=rubric)
    judge_warm_up.ask_waiting()
    found = warm_up_of(judge, rubric)
    assert (found.failed, found.waiting, found.right) == (len(found.cases), 0, 0)
    assert set(WarmUpVerdict.objects.values_list("failure", flat=True)) == {"auth"}


def test_the_phrase_matcher_can_be_tried_and_need_not(version, rubric):
    matcher = judge_named(evalset=version.evalset, name="phrase-matcher")
    assert not needs_warm_up(matcher, rubric)
    start_warm_up(judge=matcher, rubric_version=rubric)
    judge_warm_up.ask_waiting()
    said = WarmUpVerdict.objects.filter(judge=matcher)
    assert set(said.values_list("case__dimension", "state")) == {("abstention", "valid")}


def test_other_roles_find_nothing(judge, version, client, grader_a, stranger, rubric):
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(place(version, "judge_warm_up", judge.pk)).status_code == 404
        assert client.post(place(version, "start_judge_warm_up", judge.pk)).status_code == 404
    assert not WarmUpVerdict.objects.exists()
