"""Does a trusted judge still read the same? Sentinel runs, fresh labels, and that each is told once."""

from copy import deepcopy
from datetime import timedelta

import pytest
from django.db import DatabaseError, transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from annotate import rubric_text
from annotate.models import Grader, Round
from calibration import drift, stats, tasks
from calibration.models import Alert, DriftFinding, JudgeRun, SentinelPlan, Verdict
from calibration.reports import NotReportable, build_report, standing
from calibration.sentinels import candidates_of, plan_sentinels, start_due, start_sentinel
from calibration.services import Refused
from calibration.spending import NO_BUDGET, Budget
from evalsets.labels import GROUNDING
from evalsets.models import Membership
from tests.calibration.labelled import LabelledSet, judged
from tests.calibration.test_report import report_of, trusted_judge

pytestmark = pytest.mark.django_db


def frozen_set():
    """Its judge has passed the gate."""
    labelled, run = trusted_judge()
    defined = next(entry["labels"] for entry in rubric_text.DIMENSIONS if entry["name"] == "grounding")
    labelled.round.rubric_version.dimensions.filter(name="grounding").update(labels=defined)
    labelled.freeze()
    report = report_of(labelled, run)
    assert report.gate_state == "TRUSTED"
    return labelled, run, report


@pytest.fixture(scope="module")
def kept_trusted(kept):
    return kept(frozen_set)


@pytest.fixture
def trusted(lead, kept_trusted):
    """The set with its lead."""
    labelled, run, report = deepcopy(kept_trusted)
    Membership.objects.create(person=lead, evalset=labelled.version.evalset, role="lead")
    return labelled, run, report


def planned(run, **chosen):
    usual = {"dimensions": ["grounding"], "targets": 200, "seed": 1, "every_days": 7, "budget": NO_BUDGET}
    return plan_sentinels(judge_run=run, **(usual | chosen))


def due(plan):
    SentinelPlan.objects.filter(pk=plan.pk).update(next_at=timezone.now() - timedelta(minutes=1))
    plan.refresh_from_db()
    return plan


def answered(sentinel, say=lambda before: before, failed=0, model="model-x-2026"):
    """The sentinel run as if the judge had said so: `say` makes of each label of before one of now."""
    plan = sentinel.sentinel_plan
    before = dict(Verdict.objects.filter(run=plan.judge_run).values_list("claim", "label"))
    for number, verdict in enumerate(sentinel.verdicts.order_by("pk")):
        if number < failed:
            verdict.state, verdict.failure = "failed", "timeout"
        else:
            verdict.state, verdict.label = "valid", say(before[verdict.claim_id])
            verdict.resolved_model = model
        verdict.save()
    JudgeRun.objects.filter(pk=sentinel.pk).update(state="complete", finished_at=timezone.now())
    sentinel.refresh_from_db()
    return sentinel


def stands(labelled, run):
    return standing(judge=run.judge, version=labelled.version, dimension="grounding")


# The chart


def run_chart(hits, totals):
    return stats.run_chart(
        [stats.clustered_rate([hit], [total]) for hit, total in zip(hits, totals, strict=True)]
    )


def test_limits_come_from_the_runs_before():
    first, second, third = run_chart([40, 44, 80], [200, 200, 200])
    assert (first.lower, first.outside) == (None, False)
    # Montgomery, p chart: .2 +- 3 sqrt(.2 * .8 / 200) = .2 +- .084853
    assert second.lower == pytest.approx(0.115147, abs=1e-6)
    assert second.upper == pytest.approx(0.284853, abs=1e-6)
    assert third.centre == pytest.approx(0.21)
    assert [second.outside, third.outside] == [False, True]


def test_a_run_outside_the_limits_sets_none_and_rare_hits_have_none():
    points = run_chart([40, 100, 40], [200, 200, 200])
    assert [point.outside for point in points] == [False, True, False]
    assert points[2].centre == pytest.approx(0.2)
    rare = run_chart([1, 12], [100, 100])
    assert (rare[1].lower, rare[1].outside) == (None, False)
    assert run_chart([], []) == ()
    assert run_chart([0], [0])[0].share.value is None


# What is asked again


def test_a_sentinel_run_asks_again_about_targets_with_gold_and_past_the_cache(trusted):
    _labelled, run, _report = trusted
    plan = planned(run, targets=50, budget=Budget(calls=60))
    assert len(plan.verdicts) == 50
    assert planned(run, targets=50).verdicts == plan.verdicts, "the same seed draws the same ones"
    assert planned(run, targets=50, seed=2).verdicts != plan.verdicts
    again = planned(run, targets=50, budget=Budget(calls=60))
    sentinel = start_sentinel(plan=again)
    assert (sentinel.use_cache, sentinel.budget_calls, sentinel.repeats) == (False, 60, 1)
    assert sentinel.verdicts.count() == 50
    wanted = set(Verdict.objects.filter(pk__in=again.verdicts).values_list("claim", flat=True))
    assert set(sentinel.verdicts.values_list("claim", flat=True)) == wanted
    assert SentinelPlan.objects.filter(judge_run=run, is_active=True).get() == again


def test_items_of_a_prompt_are_not_asked_again(trusted):
    from calibration.design import record_design

    labelled, run, _report = trusted
    item = labelled.version.items.order_by("pk").first()
    [before] = candidates_of(run)
    of_item = set(run.verdicts.filter(response__item=item).values_list("pk", flat=True))
    assert of_item & set(before.verdicts)
    record_design(round=labelled.round, design="random", seed=1, few_shot=[item.item_id])
    report_of(labelled, run)
    [found] = candidates_of(run)
    assert set(found.verdicts) == set(before.verdicts) - of_item


def test_a_judge_that_is_not_trusted_cannot_be_watched(trusted):
    labelled, run, _report = trusted
    stranger = judged(labelled, [], name="judge-b")
    with pytest.raises(Refused, match="trusted"):
        planned(stranger)
    with pytest.raises(Refused, match="trusted"):
        planned(run, dimensions=["abstention"])
    with pytest.raises(Refused, match="30"):
        planned(run, targets=10)
    with pytest.raises(Refused, match="prices"):
        planned(run, budget=Budget(money=1))
    assert not SentinelPlan.objects.exists()


def test_of_two_clocks_one_starts_what_is_due(trusted):
    _labelled, run, _report = trusted
    plan = due(planned(run))
    at = plan.next_at
    assert start_sentinel(plan=plan, due_at=at) is not None
    assert start_sentinel(plan=plan, due_at=at) is None
    assert start_due() == 0
    assert plan.runs.count() == 1
    plan.refresh_from_db()
    assert plan.next_at > timezone.now() + timedelta(days=6)


def test_what_cannot_start_says_why_and_costs_nothing(trusted):
    _labelled, run, _report = trusted
    plan = due(planned(run))
    JudgeRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=91))
    assert start_due() == 0
    plan.refresh_from_db()
    assert "not trusted any more" in plan.problem
    assert plan.next_at > timezone.now()
    assert not plan.runs.exists()


# What is found


def test_a_judge_that_reads_the_same_stays_trusted(trusted):
    labelled, run, _report = trusted
    answered(start_sentinel(plan=planned(run)))
    for _twice in range(2):
        drift.watch()
    finding = DriftFinding.objects.get()
    assert finding.alarms == []
    assert finding.payload["sentinel"]["flips"]["numerator"] == 0
    assert finding.payload["sentinel"]["mcnemar"]["p"] == 1
    assert stands(labelled, run).trusted
    assert not Alert.objects.exists()


def test_a_judge_that_reads_otherwise_is_stale_and_that_is_told_once(trusted):
    labelled, run, report = trusted
    sentinel = answered(start_sentinel(plan=planned(run)), say=lambda before: "unsupported")
    for _twice in range(2):
        tasks.watch_judges()
    finding = DriftFinding.objects.get()
    assert finding.alarms == ["correctness", "flagged"]
    test = finding.payload["sentinel"]["mcnemar"]
    assert test["only_first"] > test["only_second"]
    holds = stands(labelled, run)
    assert (holds.state, holds.trusted) == ("STALE", False)
    assert f"sentinel run {sentinel.number}" in holds.changes[0]
    alert = Alert.objects.get()
    assert alert.kind == "stale"
    assert "judge-a is no longer trusted for grounding" in alert.title
    assert f"entinel run {sentinel.number}: right on " in alert.text
    with override("de"):
        assert "judge-a" in alert.title_here and alert.title_here != alert.title
        assert alert.text_here != alert.text
    assert build_report(judge_run=run, round=labelled.round, dimension="grounding") == report
    assert not stands(labelled, run).trusted, "building again does not bring trust back"


def test_a_new_resolved_model_in_a_sentinel_run_ends_the_trust(trusted):
    labelled, run, _report = trusted
    answered(start_sentinel(plan=planned(run)), model="model-x-2027")
    drift.watch()
    assert stands(labelled, run).state == "STALE"
    assert "model-x-2027" in Alert.objects.get().text


def test_too_many_failures_are_an_alarm(trusted):
    labelled, run, _report = trusted
    answered(start_sentinel(plan=planned(run)), failed=20)
    drift.watch()
    assert DriftFinding.objects.get().alarms == ["valid"]
    assert "only " in stands(labelled, run).changes[0]


def test_a_calibration_that_ages_is_told_once_however_old_it_grows(trusted):
    _labelled, run, _report = trusted
    for days in (91, 92, 200):
        JudgeRun.objects.filter(pk=run.pk).update(finished_at=timezone.now() - timedelta(days=days))
        drift.watch()
    assert "91 days old" in Alert.objects.get().text


def test_a_run_that_stopped_says_nothing_and_somebody_is_told(trusted):
    _labelled, run, _report = trusted
    sentinel = start_sentinel(plan=planned(run))
    JudgeRun.objects.filter(pk=sentinel.pk).update(
        state="stopped", stop_reason="budget", stop_detail="calls: 3"
    )
    for _twice in range(2):
        drift.watch()
    assert not DriftFinding.objects.exists()
    assert Alert.objects.get().kind == "sentinel"


def test_sentinel_runs_count_nowhere_else(trusted):
    labelled, run, _report = trusted
    sentinel = answered(start_sentinel(plan=planned(run)))
    assert list(labelled.version.judge_runs.whole()) == [run]
    with pytest.raises(NotReportable, match="sentinel"):
        build_report(judge_run=sentinel, round=labelled.round, dimension="grounding")


def test_a_finding_is_written_once(trusted):
    _labelled, run, _report = trusted
    answered(start_sentinel(plan=planned(run)))
    drift.watch()
    with pytest.raises(DatabaseError), transaction.atomic():
        DriftFinding.objects.all().delete()


# Fresh labels


def fresh(labelled, run, right, of):
    """A later round of the same set with `of` settled targets, on `right` of which the judge is right."""
    round = Round.objects.create(
        version=labelled.version, number=2, kind="first", rubric_version=labelled.round.rubric_version
    )
    round.runs.set(labelled.runs)
    later = LabelledSet(labelled.version, round, labelled.graders, labelled.runs)
    for number in range(of):
        response = later.response(f"fresh{number}")
        truth = GROUNDING[number % 4]
        claim = later.claim(response, truth, truth)
        said = truth if number < right else GROUNDING[(number + 1) % 4]
        Verdict.objects.create(
            run=run,
            response=response,
            claim=claim,
            dimension="grounding",
            state="valid",
            label=said,
            resolved_model="model-x-2026",
        )
    return round


@pytest.fixture
def thawed(db):
    """Such a set before it is frozen, so that there may be more responses."""
    labelled, run = trusted_judge("thawed")
    return labelled, run, report_of(labelled, run)


def test_fresh_labels_that_agree_as_before_change_nothing(thawed):
    labelled, run, _report = thawed
    fresh(labelled, run, right=40, of=40)
    for _twice in range(2):
        drift.look_at_fresh_labels()
    finding = DriftFinding.objects.get()
    assert (finding.alarms, finding.payload["agreement"]["n"]) == ([], 40)
    assert finding.payload["gate"]["state"] == "INSUFFICIENT", "40 are too few for the gate, and it says so"


def test_fresh_labels_that_disagree_end_the_trust(thawed):
    labelled, run, _report = thawed
    fresh(labelled, run, right=20, of=40)
    drift.look_at_fresh_labels()
    finding = DriftFinding.objects.get()
    assert finding.alarms == ["fresh"]
    counts = finding.payload["agreement"]
    assert counts["p"] == stats.two_proportion_test(counts["before"], counts["n_before"], 20, 40)
    assert stands(labelled, run).state == "STALE"
    assert "20 of 40 fresh targets" in stands(labelled, run).changes[0]


def test_fresh_labels_wait_until_all_is_graded_settled_and_enough(thawed):
    labelled, run, report = thawed
    round = fresh(labelled, run, right=10, of=20)
    assert drift.look_at_fresh_labels() == 0, "30 are needed"
    [waiting] = drift.fresh_rounds_of(report)
    assert (waiting.n, waiting.ungraded, waiting.unsettled) == (20, 0, 0)
    round.assignments.filter(pk=round.assignments.first().pk).update(state="pending")
    assert drift.fresh_rounds_of(report)[0].ungraded == 1


# The page


def at(trusted, name="drift", *more):
    labelled, run, _report = trusted
    version = labelled.version
    return reverse(f"calibration:{name}", args=[version.evalset.slug, version.number, run.number, *more])


CHOICE = {"dimensions": ["grounding"], "targets": 60, "every_days": 7, "seed": 3, "budget_calls": 70}


def test_a_lead_reckons_and_then_sets_the_schedule(client, lead, trusted):
    client.force_login(lead)
    shown = client.get(at(trusted)).content.decode()
    assert "No schedule has been set" in shown
    reckoned = client.get(at(trusted), CHOICE).content.decode()
    assert "<strong>60 calls</strong>" in reckoned
    assert not SentinelPlan.objects.exists(), "looking costs nothing"
    for _twice in range(2):
        assert client.post(at(trusted, "plan_sentinel_runs"), CHOICE).status_code == 302
    plan = SentinelPlan.objects.get(is_active=True)
    assert (len(plan.verdicts), plan.budget_calls, plan.created_by) == (60, 70, lead)
    assert "70 calls" in client.get(at(trusted)).content.decode()
    client.post(at(trusted, "end_sentinel_runs"))
    assert not SentinelPlan.objects.filter(is_active=True).exists()


def test_asking_now_twice_asks_once(client, lead, trusted):
    _labelled, run, _report = trusted
    client.force_login(lead)
    client.post(at(trusted, "run_sentinel_now"))
    assert not JudgeRun.objects.exclude(pk=run.pk).exists(), "without a plan there is nothing to ask"
    planned(run)
    for _twice in range(2):
        client.post(at(trusted, "run_sentinel_now"))
    assert JudgeRun.objects.exclude(pk=run.pk).count() == 1


@pytest.mark.parametrize(
    "wrong", [{"targets": 5}, {"every_days": 0}, {"dimensions": ["mood"]}, {"seed": "x"}]
)
def test_bad_input_is_named_and_sets_nothing(client, lead, trusted, wrong):
    client.force_login(lead)
    for answer in (
        client.post(at(trusted, "plan_sentinel_runs"), CHOICE | wrong),
        client.get(at(trusted), CHOICE | wrong),
    ):
        assert answer.status_code == 400
        assert "errorlist" in answer.content.decode()
    assert not SentinelPlan.objects.exists()


def test_the_charts_are_drawn_and_taken_away(client, lead, trusted):
    _labelled, run, _report = trusted
    answered(start_sentinel(plan=planned(run)), say=lambda before: "unsupported")
    drift.watch()
    client.force_login(lead)
    shown = client.get(at(trusted)).content.decode()
    assert shown.count('<svg role="img"') == 3
    assert "alarm" in shown
    assert "outside" in shown
    for kind, start in (("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"run,share")):
        answer = client.get(at(trusted, "drift_chart", "grounding", "flagged", kind))
        assert answer.content.startswith(start)
    assert client.get(at(trusted, "drift_chart", "grounding", "mood", "svg")).status_code == 404
    assert client.get(at(trusted, "drift_chart", "grounding", "flagged", "pdf")).status_code == 404
    sentinel = JudgeRun.objects.exclude(pk=run.pk).get()
    page = reverse("calibration:judge_run", args=["set", 1, sentinel.number])
    assert "A sentinel run" in client.get(page).content.decode()


def test_other_roles_find_nothing(client, grader_a, stranger, trusted):
    labelled, _run, _report = trusted
    Membership.objects.create(person=grader_a, evalset=labelled.version.evalset, role="grader")
    for person in (grader_a, stranger):
        client.force_login(person)
        assert client.get(at(trusted)).status_code == 404
        for name in ("plan_sentinel_runs", "end_sentinel_runs", "run_sentinel_now"):
            assert client.post(at(trusted, name), CHOICE).status_code == 404
    assert not SentinelPlan.objects.exists()


def test_a_lead_who_still_grades_finds_it_closed(client, lead, trusted):
    labelled, _run, _report = trusted
    Grader.objects.filter(pk=labelled.graders[0].pk).update(person=lead)
    labelled.round.assignments.update(state="pending")
    client.force_login(lead)
    assert client.get(at(trusted)).status_code == 403
