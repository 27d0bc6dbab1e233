"""The lead's pages about claims and their extraction: who may open them, what they do, what they refuse."""

import pytest
from django.urls import reverse

from annotate.services import draw_audit, finish_audited, mark_claim
from calibration.extraction import extraction_of
from calibration.extraction_runs import start_extraction
from calibration.models import JudgeRun
from calibration.services import run_inline
from evalsets.claims import change_claim, remove_claim
from evalsets.models import Claim, SystemRun
from evalsets.services import freeze_run
from tests.calibration.extraction.conftest import claims_of, let_grade

pytestmark = [pytest.mark.django_db, pytest.mark.once]
READING = ["claims", "run_claims", "response_claims"]
GETS = [
    "extractions",
    "extraction_prompts",
    "new_extraction_prompt",
    "confirm_extraction",
    "extraction_run",
    "extraction_progress",
    "extraction_answers",
]
POSTS = [
    "add_claim",
    "change_claim",
    "remove_claim",
    "start_extraction",
    "stop_extraction",
    "resume_extraction",
    "cancel_extraction",
]
START = {"judge": "fake", "max_tokens": "800", "use_cache": "on"}


@pytest.fixture
def extraction(judge, run):
    """One that has not been worked on yet."""
    return start_extraction(judge=judge, version=run.version, system_runs=[run])


@pytest.fixture
def done(extraction):
    return run_inline(run=extraction)


def path(name, run, *arguments):
    return reverse(f"calibration:{name}", args=[run.version.evalset.slug, run.version.number, *arguments])


def place(name, run):
    """An address with what the world of these tests has."""
    if name == "run_claims":
        return path(name, run, run.number)
    response = run.responses.get(response_id="r5")
    if name in ("response_claims", "add_claim"):
        return path(name, run, response.pk)
    if name in ("change_claim", "remove_claim"):
        return path(name, run, response.pk, response.claims.get().pk)
    whole = name in ("claims", "confirm_extraction", "start_extraction", *GETS[:3])
    return path(name, run) if whole else path(name, run, 1)


@pytest.mark.parametrize("who", ["grader_a", "stranger"])
def test_only_a_lead_finds_these_pages(client, run, extraction, request, who):
    client.force_login(request.getfixturevalue(who))
    answers = [client.get(place(name, run)).status_code for name in READING + GETS]
    answers += [client.post(place(name, run), {"text": "Mine."}).status_code for name in POSTS]
    assert set(answers) == {404}
    extraction.refresh_from_db()
    assert (extraction.state, JudgeRun.every.count(), Claim.objects.count()) == ("running", 1, 1)


def test_get_where_post_is_due(client, run, extraction, lead):
    client.force_login(lead)
    assert {client.get(place(name, run)).status_code for name in POSTS} == {405}


def test_a_lead_who_still_grades_sees_claims_and_no_judge(client, run, extraction, lead):
    let_grade(run.version, lead)
    client.force_login(lead)
    assert {client.get(place(name, run)).status_code for name in READING} == {200}
    closed = [client.get(place(name, run)) for name in GETS]
    assert {answer.status_code for answer in closed} == {403}
    assert "fake" not in "".join(answer.content.decode() for answer in closed)


def test_every_page_opens(client, run, done, lead):
    client.force_login(lead)
    asked = {"confirm_extraction": START | {"again": "on"}}
    answers = {name: client.get(place(name, run), asked.get(name, {})) for name in READING + GETS}
    assert [name for name, answer in answers.items() if answer.status_code != 200] == []


def test_what_is_not_here_is_not_found(client, run, lead):
    client.force_login(lead)
    for address in (
        path("extraction_run", run, 7),
        path("run_claims", run, 7),
        path("response_claims", run, 0),
    ):
        assert client.get(address).status_code == 404


# Extracting


def test_the_page_says_how_many_responses_have_no_claims(client, run, judge, lead):
    client.force_login(lead)
    page = client.get(path("extractions", run)).content.decode()
    assert 'Draft responses without claims</dt><dd class="num">3</dd>' in page
    assert 'that came with claims, which stay</dt><dd class="num">1</dd>' in page
    assert "3 responses with text have no claim" in client.get(path("claims", run)).content.decode()


def test_the_dry_run_starts_nothing(client, run, judge, lead):
    client.force_login(lead)
    page = client.get(path("confirm_extraction", run), START).content.decode()
    assert "<strong>3 calls</strong>" in page
    assert not JudgeRun.every.exists()


def test_start_and_start_again(client, run, judge, lead):
    client.force_login(lead)
    answer = client.post(path("start_extraction", run), START)
    assert answer.url == path("extraction_run", run, 1)
    again = client.post(path("start_extraction", run), START, follow=True)
    assert "Extraction 1 is still under way" in again.content.decode()
    [extraction] = JudgeRun.every.all()
    assert (extraction.created_by, extraction.requested["parameters"]["max_tokens"]) == (lead, 800)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("judge", "nobody"),
        ("judge", "lexical-baseline"),
        ("max_tokens", "0"),
        ("max_tokens", ""),
        ("system_runs", "9"),
        ("response", "-1"),
        ("response", "999999"),
        ("budget_calls", "-1"),
    ],
)
def test_start_with_bad_input(client, run, judge, lead, field, value):
    client.force_login(lead)
    for name, send in (("start_extraction", client.post), ("confirm_extraction", client.get)):
        assert send(path(name, run), START | {field: value}).status_code == 400
    assert not JudgeRun.every.exists()


def test_stop_resume_and_cancel(client, run, extraction, server, lead):
    client.force_login(lead)
    client.post(path("stop_extraction", run, 1))
    extraction.refresh_from_db()
    assert extraction.state == "stopped"
    assert "Cancel the rest" in client.get(path("extraction_run", run, 1)).content.decode()
    client.post(path("resume_extraction", run, 1), {})
    extraction.refresh_from_db()
    assert extraction.state == "running"
    answer = client.post(path("cancel_extraction", run, 1), follow=True)
    assert "3 responses were not asked about" in answer.content.decode()
    extraction.refresh_from_db()
    assert (extraction.state, server.calls) == ("complete", 0)


def test_the_failed_are_retried_alone(client, run, judge, server, lead):
    server.script("truncated")
    extraction = run_inline(run=start_extraction(judge=judge, version=run.version, system_runs=[run]))
    client.force_login(lead)
    page = client.get(path("extraction_answers", run, 1), {"failure": "truncated"}).content.decode()
    assert page.count('<span class="badge bad">answer cut short') == page.count('<li class="card">') == 1
    client.post(path("resume_extraction", run, 1), {"retry_failed": "1"})
    assert extraction.verdicts.filter(state="pending").count() == 1
    assert run_inline(run=extraction).state == "complete"
    assert server.calls == 4


def test_one_response_anew(client, run, done, lead):
    client.force_login(lead)
    response = run.responses.get(response_id="r2")
    page = client.get(path("extractions", run), {"response": response.pk}).content.decode()
    assert f'name="response" value="{response.pk}"' in page
    client.post(path("start_extraction", run), START | {"response": response.pk})
    again = JudgeRun.every.get(number=2)
    assert list(again.verdicts.values_list("response", flat=True)) == [response.pk]


def test_hostile_text_is_escaped(client, run, done, lead):
    response = run.responses.get(response_id="r2")
    response.text = "<script>alert(1)</script>"
    response.save()
    claim = response.claims.get()
    change_claim(claim=claim, text="<script>alert(1)</script>", was=claim.text)
    client.force_login(lead)
    for address in (path("response_claims", run, response.pk), path("run_claims", run, run.number)):
        assert "<script>alert" not in client.get(address).content.decode()


# By hand


def test_add_change_and_remove(client, run, done, lead):
    client.force_login(lead)
    response = run.responses.get(response_id="r2")
    client.post(path("add_claim", run, response.pk), {"text": "Bicycles are allowed."})
    client.post(path("add_claim", run, response.pk), {"text": "Bicycles are allowed."})  # pressed twice
    first, added = response.claims.order_by("position")
    assert added.text == "Bicycles are allowed."
    client.post(
        path("change_claim", run, response.pk, first.pk),
        {"text": "A bicycle costs two crowns.", "was": first.text},
    )
    page = client.get(path("response_claims", run, response.pk)).content.decode()
    assert "A bicycle costs two crowns." in page
    assert "Bicycles cost two crowns." in page  # what it said at first
    gone = path("remove_claim", run, response.pk, added.pk)
    assert "was removed: Bicycles are allowed." in client.post(gone, follow=True).content.decode()
    assert client.post(gone).status_code == 404
    assert claims_of(run)["r2"] == ["A bicycle costs two crowns."]


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"text": " "}, "required"),
        ({"text": "\u200b"}, "needs text"),
        ({"text": "x" * 10_001}, "10000"),
        ({"text": "Changed.", "was": "What somebody else changed."}, "changed meanwhile"),
    ],
)
def test_a_bad_change_keeps_the_claim(client, run, done, lead, sent, says):
    client.force_login(lead)
    claim = Claim.objects.get(text="Dogs travel free.")
    answer = client.post(path("change_claim", run, claim.response_id, claim.pk), {"was": claim.text, **sent})
    assert (answer.status_code, says in answer.content.decode()) == (400, True)
    assert Claim.objects.get(pk=claim.pk).text == "Dogs travel free."


def test_a_claim_of_another_response_is_not_found(client, run, done, lead):
    client.force_login(lead)
    claim, other = Claim.objects.get(text="Dogs travel free."), run.responses.get(response_id="r2")
    assert client.post(path("remove_claim", run, other.pk, claim.pk)).status_code == 404


def test_a_frozen_run_is_only_looked_at(client, run, done, lead):
    freeze_run(run=run)
    client.force_login(lead)
    claim = Claim.objects.get(text="Dogs travel free.")
    page = client.get(path("response_claims", run, claim.response_id)).content.decode()
    assert "<textarea" not in page
    for address in (
        path("add_claim", run, claim.response_id),
        path("change_claim", run, claim.response_id, claim.pk),
    ):
        answer = client.post(address, {"text": "Late.", "was": claim.text})
        assert (answer.status_code, "frozen" in answer.content.decode()) == (400, True)
    client.post(path("remove_claim", run, claim.response_id, claim.pk))
    assert Claim.objects.filter(text="Dogs travel free.").exists()


# Freezing


def freeze_path(run):
    return reverse("evalsets:freeze_run", args=[run.version.evalset.slug, run.version.number, run.number])


def test_freezing_waits_for_an_extraction(client, run, extraction, lead):
    client.force_login(lead)
    answer = client.post(freeze_path(run))
    assert (answer.status_code, "Extraction 1 is still under way" in answer.content.decode()) == (409, True)
    slug, number = run.version.evalset.slug, run.version.number
    client.post(reverse("evalsets:freeze_runs", args=[slug, number]))
    assert not SystemRun.objects.get(pk=run.pk).is_frozen


def test_the_freeze_page_tells_what_was_extracted_and_that_nobody_looked(client, run, done, lead):
    client.force_login(lead)
    page = client.get(freeze_path(run)).content.decode()
    assert "1 from the file, 3 extracted, 0 added by hand" in page
    assert "nobody has checked a sample" in page
    audit_everything(run, lead)
    page = client.get(freeze_path(run)).content.decode()
    assert "4 responses of 5 audited" in page
    assert "nobody has checked a sample" not in page


# The audit of a draft


def audit_everything(run, lead, mark="well_split"):
    sample = draw_audit(version=run.version, runs=[run], size=9, seed=1, person=lead)
    for audited in sample.responses.all():
        for claim in audited.response.claims.all():
            mark_claim(audited=audited, claim=claim, mark=mark)
        finish_audited(audited=audited, missing=0, person=lead)
    return sample


def test_a_correction_does_not_make_the_extraction_look_better(client, run, done, lead):
    sample = audit_everything(run, lead, mark="badly_split")
    before = extraction_of([run])
    assert (before["error"]["numerator"], before["error"]["denominator"]) == (4, 4)
    changed, removed = (
        Claim.objects.get(text="Dogs travel free."),
        Claim.objects.get(text="Bicycles cost two crowns."),
    )
    change_claim(claim=changed, text="Dogs pay nothing.", was=changed.text)
    remove_claim(claim=removed)
    after = extraction_of([run])
    assert after["error"] == before["error"]
    client.force_login(lead)
    pages = [client.get(address).content.decode() for address in audit_pages(run, sample)]
    assert "corrected since" in pages[0]
    assert "removed since" in pages[0]
    assert any("Dogs travel free." in page and "corrected since" in page for page in pages[1:])
    assert any("Bicycles cost two crowns." in page and "removed since" in page for page in pages[1:])


def audit_pages(run, sample):
    slug, number = run.version.evalset.slug, run.version.number
    yield reverse("calibration:extraction", args=[slug, number])
    for position in range(1, 5):
        yield reverse("annotate:audited", args=[slug, number, sample.number, position])


def test_a_corrected_claim_keeps_its_mark(client, run, done, lead):
    sample = audit_everything(run, lead, mark="badly_split")
    claim = Claim.objects.get(text="Dogs travel free.")
    change_claim(claim=claim, text="Dogs pay nothing.", was=claim.text)
    audited = sample.responses.get(response=claim.response_id)
    client.force_login(lead)
    slug, number = run.version.evalset.slug, run.version.number
    address = reverse("annotate:mark_claim", args=[slug, number, sample.number, audited.position])
    answer = client.post(address, {"claim": claim.pk, "mark": "well_split"})
    assert (answer.status_code, "corrected after it was marked" in answer.content.decode()) == (400, True)
    assert audited.claims.get(claim=claim).mark == "badly_split"


def test_an_extraction_anew_waits_to_be_audited_again(run, judge, done, lead):
    audit_everything(run, lead)
    run_inline(run=start_extraction(judge=judge, version=run.version, system_runs=[run], again=True))
    figures = extraction_of([run])
    # r5 came with its claim and was not extracted anew.
    assert (figures["responses_audited"], figures["responses_waiting"]) == (1, 3)
