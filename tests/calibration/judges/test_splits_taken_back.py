"""Verdicts that wait on the parts of a split that is taken back: nothing more is paid for them."""

import pytest
from django.urls import reverse

from annotate.models import Annotation, ClaimSplit, Grader, Round
from annotate.services import rubric_v1, split_claim, take_split_back
from calibration import sentinels
from calibration.facts import judge_run_facts
from calibration.models import Verdict
from calibration.queries import progress_of
from calibration.services import Refused, resume_run, run_inline, start_run
from evalsets.models import Claim

pytestmark = pytest.mark.django_db


@pytest.fixture
def round(version):
    made = Round.objects.create(
        version=version, number=1, kind="first", rubric_version=rubric_v1(evalset=version.evalset)
    )
    made.runs.set(version.runs.all())
    grader = Grader.objects.create(evalset=version.evalset, name="Ann", number=1)
    first = Claim.objects.order_by("pk").first()
    Annotation.objects.create(
        round=made,
        grader=grader,
        dimension="grounding",
        response=first.response,
        claim=first,
        label="unsupported",
    )
    return made


def split(round, claim, person):
    split_claim(
        round=round,
        claim=claim,
        parts=[("The ferry leaves.", "supported"), ("It leaves at noon.", "unsupported")],
        person=person,
    )
    return list(Claim.objects.filter(parent=claim, withdrawal__isnull=True).order_by("pk"))


def take_back(person):
    take_split_back(split=ClaimSplit.objects.get(state="accepted"), person=person)


@pytest.fixture
def claim(version):
    return Claim.objects.order_by("pk").first()


@pytest.fixture
def withdrawn(round, claim, judge, version, lead):
    """A run that was started while the claim was split; its two parts count no more."""
    split(round, claim, lead)
    run = start_run(judge=judge, version=version, dimensions=["grounding"])
    assert run.verdicts.filter(claim__parent=claim).count() == 2
    take_back(lead)
    return run


def test_they_are_not_asked_about_and_counted_by_their_kind(withdrawn, server):
    run = run_inline(run=withdrawn)
    assert (run.state, server.calls) == ("complete", 5)
    facts = judge_run_facts(run)
    assert facts["counts"] == {"valid": 5, "failed": 2, "pending": 0}
    assert facts["failures"] == {"withdrawn": 2}
    assert facts["calls"] == run.calls.count() == 5


def test_the_page_says_so_and_offers_no_retry_of_them(client, withdrawn, lead, server):
    run = run_inline(run=withdrawn)
    client.force_login(lead)
    place = reverse("calibration:judge_run", args=["roles", 1, run.number])
    page = client.get(place).content.decode()
    assert "its split was taken back before it was asked" in page
    assert 'id="retry-failed"' not in page
    run.verdicts.filter(state="valid").update(state="failed", label="", failure="timeout")
    assert "Retry the 5 failed" in client.get(place).content.decode()


def test_a_retry_leaves_them_alone(withdrawn, server):
    run = run_inline(run=withdrawn)
    with pytest.raises(Refused, match="nothing left"):
        resume_run(run=run, retry_failed=True)
    Verdict.objects.filter(pk=run.verdicts.filter(state="valid").first().pk).update(
        state="failed", label="", failure="timeout"
    )
    resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert (progress_of(run).failures_by_kind, server.calls) == ({"withdrawn": 2}, 6)


def test_what_waits_in_a_stopped_run_is_left_out_when_it_goes_on(round, claim, judge, version, lead, server):
    split(round, claim, lead)
    run = start_run(judge=judge, version=version, dimensions=["grounding"])
    [first, second] = run.verdicts.filter(claim__parent=claim)
    Verdict.objects.filter(pk=first.pk).update(state="failed", failure="timeout")
    Verdict.objects.filter(pk=second.pk).update(detail="rate_limited: wait", attempts=1)
    take_back(lead)
    resume_run(run=run, retry_failed=True)
    assert progress_of(run_inline(run=run)).failures_by_kind == {"withdrawn": 2}
    assert server.calls == 5


def test_a_split_that_is_made_again_is_asked_about_by_the_next_run(
    round, claim, withdrawn, judge, version, lead, server
):
    run_inline(run=withdrawn)
    parts = split(round, claim, lead)
    again = run_inline(run=start_run(judge=judge, version=version, dimensions=["grounding"]))
    asked = again.verdicts.filter(claim__parent=claim)
    assert {verdict.claim for verdict in asked} == set(parts)
    assert set(asked.values_list("state", flat=True)) == {"valid"}
    assert server.calls == 7  # the two parts; the others are known


def test_sentinel_runs_leave_them_out(round, claim, judge, version, lead, server):
    split(round, claim, lead)
    run = run_inline(run=start_run(judge=judge, version=version, dimensions=["grounding"]))
    drawn = list(run.verdicts.values_list("pk", flat=True))
    parts = {part.pk for part in Claim.objects.filter(parent=claim)}
    plan = sentinels.SentinelPlan(judge_run=run, verdicts=drawn)
    assert parts < {target.claim_id for target in sentinels.targets_of_plan(plan)}
    take_back(lead)
    kept = {target.claim_id for target in sentinels.targets_of_plan(plan)}
    assert len(kept) == 5
    assert not parts & kept
