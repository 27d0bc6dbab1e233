"""Extractions from start to end: what is asked, what is stored, and what is left alone."""

from collections import Counter
from datetime import timedelta
from io import BytesIO

import pytest
from django.utils import timezone

from annotate.services import draw_audit, finish_audited, mark_claim, record_imported_labels
from calibration import work
from calibration.estimates import measured_calls
from calibration.exchange import import_evalset
from calibration.extraction_claims import store_extracted
from calibration.extraction_runs import (
    cancel_extraction,
    estimate_extraction,
    resume_extraction,
    scope_of,
    start_extraction,
    what_hinders_freezing,
)
from calibration.imported_verdicts import record_imported_verdicts
from calibration.judges.extracting import built_in
from calibration.judges.parsing import ReadClaim
from calibration.models import JudgeRun, Verdict
from calibration.native_file import export_version
from calibration.queries import runs_of
from calibration.services import Refused, judge_named, run_inline, start_run
from calibration.spending import Budget
from evalsets.claims import add_claim, change_claim, origin_of, origins_of, remove_claim
from evalsets.models import Claim, SystemRun
from evalsets.services import freeze_run
from tests.calibration.extraction.conftest import claims_of
from tests.calibration.judges.fake_server import MODEL

pytestmark = pytest.mark.django_db
EXTRACTED = {
    "r1": ["The ferry leaves at noon.", "Dogs travel free."],
    "r2": ["Bicycles cost two crowns."],
    "r3": [],
    "r4": [],
    "r5": ["It came with a claim."],
}


def start(judge, run, **setting):
    return start_extraction(judge=judge, version=run.version, system_runs=[run], **setting)


def extract(judge, run, **setting):
    return run_inline(run=start(judge, run, **setting))


def labels_of(extraction):
    return dict(extraction.verdicts.values_list("response__response_id", "label"))


def failures_of(extraction):
    return Counter(extraction.verdicts.filter(state="failed").values_list("failure", flat=True))


def test_the_responses_are_told_apart(run):
    scope = scope_of([run])
    assert (len(scope.without_claims), scope.with_claims, scope.empty, scope.total) == (3, 1, 1, 5)


def test_extraction_stores_claims_where_there_were_none(judge, run, server):
    extraction = extract(judge, run)
    assert extraction.state == "complete"
    assert labels_of(extraction) == {"r1": "claims", "r2": "claims", "r3": "no_claims"}
    assert claims_of(run) == EXTRACTED
    assert server.calls == 3


def test_a_claim_says_where_it_comes_from(judge, run):
    extraction = extract(judge, run)
    claim = Claim.objects.get(text="Dogs travel free.")
    origin = origin_of(claim)
    at = origin.pop("at")
    assert origin == {
        "by": "extraction",
        "extraction": extraction.number,
        "prompt_version": "1",
        "prompt_sha256": built_in().sha256,
        "provider": "fake",
        "model": "judge-alias",
        "resolved_model": MODEL,
        "span": [26, 43],
    }
    assert claim.response.text[26:43] == claim.text
    assert at.endswith("Z")
    assert origin_of(Claim.objects.get(claim_id="own")) == {}


def test_an_extraction_is_no_judge_run(judge, run):
    extraction = extract(judge, run)
    assert runs_of(run.version) == []
    assert not JudgeRun.objects.exists()
    assert not judge.runs.exists()
    assert extraction.number == 1
    freeze_run(run=run)
    judged = start_run(judge=judge, version=run.version)
    assert judged.number == 1
    assert list(run.version.judge_runs.all()) == [judged]


def test_a_second_extraction_asks_only_about_what_is_left(judge, run, server):
    server.script("refusing")
    first = extract(judge, run)
    assert failures_of(first) == {"refused_to_judge": 1}
    second = extract(judge, run)
    assert second.verdicts.count() == 1
    assert claims_of(run) == EXTRACTED
    with pytest.raises(Refused, match="No response is left"):
        start(judge, run)


def test_again_replaces_what_was_extracted_and_nothing_else(judge, run, server):
    extract(judge, run)
    before = set(Claim.objects.filter(response__response_id__in=["r1", "r2"]).values_list("pk", flat=True))
    again = extract(judge, run, again=True, use_cache=False)
    assert again.verdicts.count() == 3  # the one that makes no claim is asked about again as well
    assert claims_of(run) == EXTRACTED
    assert not before & set(Claim.objects.values_list("pk", flat=True))
    assert {origin_of(claim).get("extraction") for claim in Claim.objects.all()} == {2, None}
    assert server.calls == 6


def test_the_same_request_is_taken_from_the_cache(judge, run, server):
    extract(judge, run)
    again = extract(judge, run, again=True)
    assert (server.calls, again.verdicts.filter(from_cache=True).count()) == (3, 3)
    assert claims_of(run) == EXTRACTED


def test_one_response_can_be_extracted_anew(judge, run):
    extract(judge, run)
    response = run.responses.get(response_id="r2")
    extraction = start(judge, run, again=True, responses=[response.pk])
    assert list(extraction.verdicts.values_list("response", flat=True)) == [response.pk]


def test_failures_have_a_kind_and_are_retried_alone(judge, run, server, no_waiting):
    server.script("prose", "prose", "truncated", "good")
    extraction = extract(judge, run)
    assert failures_of(extraction) == {"unparseable": 1, "truncated": 1}
    assert claims_of(run)["r1"] == []
    resume_extraction(run=extraction, retry_failed=True)
    run_inline(run=extraction)
    assert claims_of(run) == EXTRACTED
    assert extraction.calls.count() == server.calls == 6


def test_rate_limits_are_waited_out(judge, run, server, no_waiting):
    server.script("rate_limited", "server_error")
    server.retry_after = 0
    assert extract(judge, run).state == "complete"
    assert claims_of(run) == EXTRACTED


def test_a_run_whose_first_calls_all_fail_stops(judge, evalset, server, run, monkeypatch):
    monkeypatch.setattr(work, "FIRST_CALLS", 2)
    server.default = "unauthorized"
    extraction = extract(judge, run)
    assert (extraction.state, extraction.stop_reason) == ("stopped", "breaker")


def test_a_budget_stops_it_cleanly(judge, run, server):
    extraction = start(judge, run, budget=Budget(calls=1))
    run_inline(run=extraction)
    assert (extraction.state, extraction.stop_reason, server.calls) == ("stopped", "budget", 1)
    resume_extraction(run=extraction, budget=Budget(calls=10))
    run_inline(run=extraction)
    assert claims_of(run) == EXTRACTED


def test_cancel_asks_about_nothing_more(judge, run, server):
    extraction = start(judge, run, budget=Budget(calls=1))
    run_inline(run=extraction)
    assert cancel_extraction(run=extraction) == 2
    assert (extraction.state, failures_of(extraction)) == ("complete", {"cancelled": 2})
    assert cancel_extraction(run=extraction) == 0
    extract(judge, run)
    assert claims_of(run) == EXTRACTED


def test_nothing_is_stored_in_a_run_that_was_frozen_meanwhile(judge, run, server):
    extraction = start(judge, run)
    freeze = {"state": "frozen", "content_hash": "d" * 64, "frozen_at": timezone.now()}
    type(run).objects.filter(pk=run.pk).update(**freeze)
    run_inline(run=extraction)
    assert (server.calls, failures_of(extraction)) == (0, {"overtaken": 3})
    with pytest.raises(Refused, match="frozen"):
        resume_extraction(run=extraction, retry_failed=True)


def test_claims_that_come_too_late_are_dropped_and_their_cost_is_kept(judge, run, server, monkeypatch):
    """Somebody adds a claim while the call is under way."""
    extraction, ask = start(judge, run), work._ask

    def while_somebody_adds(client, candidate):
        response = candidate.verdict.response
        if response.response_id == "r2":
            add_claim(response=response, text="By hand.")
        return ask(client, candidate)

    monkeypatch.setattr(work, "ThreadPoolExecutor", lambda _calls: work.AtOnce())
    monkeypatch.setattr(work, "_ask", while_somebody_adds)
    run_inline(run=extraction)
    assert claims_of(run)["r2"] == ["By hand."]
    late = extraction.verdicts.get(response__response_id="r2")
    assert (late.state, late.failure, late.prompt_tokens) == ("failed", "overtaken", 100)
    assert extraction.calls.filter(verdict=late).count() == 1


def test_a_late_answer_under_a_lost_lease_stores_nothing(judge, run, monkeypatch):
    extraction, ask = start(judge, run), work._ask

    def while_the_lease_is_lost(client, candidate):
        held = Verdict.objects.filter(pk=candidate.verdict.pk)
        held.update(lease_until=timezone.now() - timedelta(minutes=1))
        work.give_back_expired()
        return ask(client, candidate)

    monkeypatch.setattr(work, "ThreadPoolExecutor", lambda _calls: work.AtOnce())
    monkeypatch.setattr(work, "_ask", while_the_lease_is_lost)
    work.work_through(run_id=extraction.pk, seconds=0.0001)
    assert not Claim.objects.exclude(claim_id="own").exists()
    monkeypatch.setattr(work, "_ask", ask)
    run_inline(run=extraction)
    assert claims_of(run) == EXTRACTED


def test_claims_that_a_grader_labelled_stay(judge, run):
    extract(judge, run)
    claim = Claim.objects.get(text="Dogs travel free.")
    label = ("ada", claim.response_id, claim.pk, "grounding", "supported")
    record_imported_labels(version=run.version, runs=[run], labels=[label])
    again = start(judge, run, again=True)
    assert claim.response_id not in again.verdicts.values_list("response", flat=True)
    assert scope_of([run]).labelled == 1


def test_claims_that_another_judge_labelled_stay(judge, run, server):
    """Whatever keeps a claim from being removed ends as a failure of its kind, not in an error."""
    extract(judge, run)
    claim = Claim.objects.get(text="Dogs travel free.")
    again = start(judge, run, again=True, use_cache=False)
    verdict = ("other-judge", claim.response_id, claim.pk, "grounding", "supported")
    record_imported_verdicts(version=run.version, runs=[run], verdicts=[verdict])
    run_inline(run=again)
    assert failures_of(again) == {"overtaken": 1}
    assert Claim.objects.filter(pk=claim.pk).exists()
    assert scope_of([run]).labelled == 1


def test_a_time_without_a_zone_that_a_file_names_is_taken_for_utc(judge, run):
    claim = Claim.objects.get(claim_id="own")
    claim.extra = {"meta": {"origin": {"by": "extraction", "at": "2026-01-01T00:00:00"}}}
    claim.save()
    extraction = extract(judge, run, again=True)
    assert failures_of(extraction) == {}
    assert origin_of(run.responses.get(response_id="r5").claims.get())["extraction"] == 1


@pytest.mark.parametrize("again", [False, True])
def test_a_frozen_run_is_refused(judge, run, again):
    freeze_run(run=run)
    run.refresh_from_db()
    with pytest.raises(Refused, match="frozen"):
        start(judge, run, again=again)


def test_two_extractions_at_once_are_refused(judge, run):
    first = start(judge, run)
    with pytest.raises(Refused, match="Extraction 1 is still under way"):
        start(judge, run)
    assert "Extraction 1" in what_hinders_freezing(run)
    cancel_extraction(run=first)
    assert what_hinders_freezing(run) == ""


def test_a_judge_without_a_model_is_refused(run):
    with pytest.raises(Refused, match="no LLM"):
        start(judge_named(evalset=run.version.evalset, name="lexical-baseline"), run)


def test_a_budget_of_money_needs_prices(judge, run):
    with pytest.raises(Refused, match="prices"):
        start(judge, run, budget=Budget(money=1))


def test_the_estimate_counts_calls_and_what_is_in_the_cache(judge, run):
    asked = scope_of([run]).asked(again=False)
    before = estimate_extraction(judge=judge, responses=asked)
    assert (before.calls, before.from_cache, before.seconds) == (3, 0, None)
    assert before.prompt_tokens > 3 * 300
    extract(judge, run)
    after = estimate_extraction(judge=judge, responses=asked)
    assert (after.calls, after.from_cache, after.measured_calls) == (0, 3, 3)


def test_calls_of_an_extraction_say_nothing_about_those_of_judging(judge, run):
    extract(judge, run)
    assert measured_calls(judge, [], JudgeRun.Purpose.JUDGING).calls == 0
    assert measured_calls(judge, [], JudgeRun.Purpose.EXTRACTION).calls == 3


def test_the_request_has_the_schema_and_room_for_claims(judge, run, server):
    extract(judge, run, max_tokens=5000)
    request = server.requests[0]
    assert request["max_tokens"] == 5000
    assert "claims" in request["response_format"]["json_schema"]["schema"]["properties"]
    assert request["temperature"] == 0


def test_a_run_tells_who_extracted_its_claims(judge, run):
    extract(judge, run)
    assert origins_of([run]).as_dict() == {
        "total": 4,
        "from_file": 1,
        "extracted": 3,
        "by_hand": 0,
        "corrected": 0,
        "extracted_by": [{"model": "judge-alias", "resolved_model": MODEL, "claims": 3}],
    }


@pytest.mark.parametrize(
    "meta", ["a word", ["a list"], {"origin": "extraction"}, {"origin": {"by": "magic"}}]
)
def test_anything_else_that_a_file_says_is_no_origin(run, meta):
    claim = Claim.objects.get(claim_id="own")
    claim.extra = {"meta": meta}
    claim.save()
    assert origin_of(claim) == {}
    assert origins_of([run]).file == 1
    changed = change_claim(claim=claim, text="Corrected.", was=claim.text)
    assert origin_of(changed)["first"] == "It came with a claim."
    assert origins_of([run]).corrected == 1


# By hand


def test_add_change_and_remove_a_claim(run):
    response = run.responses.get(response_id="r2")
    added = add_claim(response=response, text=" Bicycles are taken along. ")
    assert (added.claim_id, added.text, origin_of(added)["by"]) == ("c1", "Bicycles are taken along.", "hand")
    changed = change_claim(claim=added, text="Bicycles may be taken.", was=added.text)
    assert origin_of(changed)["first"] == "Bicycles are taken along."
    remove_claim(claim=changed)
    assert claims_of(run)["r2"] == []


def test_what_was_extracted_is_kept_beside_its_correction(judge, run):
    extract(judge, run)
    claim = Claim.objects.get(text="Dogs travel free.")
    claim = change_claim(claim=claim, text="Dogs pay nothing.", was=claim.text)
    claim = change_claim(claim=claim, text="Dogs pay nothing at all.", was=claim.text)
    origin = origin_of(claim)
    assert (origin["by"], origin["first"], "edited_at" in origin) == ("extraction", "Dogs travel free.", True)


def test_an_extracted_run_exports_and_imports_with_the_same_hash(judge, run):
    extract(judge, run)
    claim = Claim.objects.get(claim_id="own")
    change_claim(claim=claim, text="It came with one claim.", was=claim.text)
    frozen = freeze_run(run=run)
    out = BytesIO()
    export_version(version=run.version, out=out)
    out.seek(0)
    import_evalset(stream=out, filename="again.jsonl", name="Again", freeze=True)
    again = SystemRun.objects.exclude(pk=run.pk).get()
    assert again.content_hash == frozen.content_hash
    kinds = Counter(origin_of(claim).get("by") for claim in Claim.objects.filter(response__run=again))
    assert kinds == {"extraction": 3, "file": 1}


def test_storing_again_drops_what_was_marked(judge, run, lead):
    extraction = extract(judge, run)
    sample = draw_audit(version=run.version, runs=[run], size=9, seed=1, person=lead)
    response = run.responses.get(response_id="r2")
    audited = sample.responses.get(response=response)
    mark_claim(audited=audited, claim=response.claims.get(), mark="badly_split")
    finish_audited(audited=audited, missing=0, person=lead)
    store_extracted(run=extraction, response=response, claims=[ReadClaim("New.", "")], resolved_model="m")
    audited.refresh_from_db()
    assert (audited.done_at, audited.claims.count()) == (None, 0)
