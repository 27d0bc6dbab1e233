"""The claim audit: drawing a sample, marking it, and who may see which of it."""

import json
import re

import pytest
from django.urls import reverse

from annotate import keys, services
from annotate.auditing import audit_screen, latest_audits, progress_of_sample
from annotate.models import AuditedResponse, AuditSample, ClaimAudit
from annotate.services.audit import _drawn
from tests.annotate.worlds import RESPONSES, grader_of, make_round, make_version, say

WITH_TEXT = sum(1 for text, _claims in RESPONSES if text)


@pytest.fixture
def draft(evalset):
    return make_version(evalset, freeze=False)


@pytest.fixture
def sample(draft, lead):
    return draw(draft, lead)


def draw(version, person, size=30, seed=5):
    return services.draw_audit(
        version=version, runs=list(version.runs.all()), size=size, seed=seed, person=person
    )


def place(sample, position=1, name="audited"):
    version = sample.version
    return reverse(f"annotate:{name}", args=[version.evalset.slug, version.number, sample.number, position])


def with_claims(sample, n):
    """The first drawn response with that many claims."""
    return next(one for one in sample.responses.all() if one.response.claims.count() == n)


def finish(audited, person, *marks, missing=0, note=""):
    for claim, mark in zip(audited.response.claims.all(), marks, strict=True):
        services.mark_claim(audited=audited, claim=claim, mark=mark)
    return services.finish_audited(audited=audited, missing=missing, note=note, person=person)


def finish_all(sample, person, mark="well_split"):
    for audited in sample.responses.all():
        finish(audited, person, *[mark] * audited.response.claims.count())


# Drawing


def test_a_sample_of_a_draft_run_holds_every_response_with_text_once(sample):
    texts = [one.response.text for one in sample.responses.all()]
    assert len(texts) == len(set(texts)) == WITH_TEXT
    assert "" not in texts
    assert [one.position for one in sample.responses.all()] == list(range(1, WITH_TEXT + 1))


def test_the_seed_decides_who_is_drawn(draft, lead):
    drawn = {
        seed: list(draw(draft, lead, size=3, seed=seed).responses.values_list("response_id", flat=True))
        for seed in (1, 2, 3, 4)
    }
    assert all(len(responses) == 3 for responses in drawn.values())
    assert len({tuple(responses) for responses in drawn.values()}) > 1
    AuditSample.objects.get(seed=1).responses.all().delete()
    AuditSample.objects.get(seed=1).delete()
    again = draw(draft, lead, size=3, seed=1)
    assert list(again.responses.values_list("response_id", flat=True)) == drawn[1]


def test_every_response_is_drawn_about_equally_often(draft, lead):
    """400 samples of 2 of 5: each is expected 160 times, standard deviation 9.8; five of them are 49."""
    count = dict.fromkeys(draft.responses.exclude(text="").values_list("pk", flat=True), 0)
    runs = list(draft.runs.all())
    for seed in range(400):
        for response in _drawn(runs, 2, seed):
            count[response] += 1
    assert sum(count.values()) == 800
    assert all(111 <= n <= 209 for n in count.values()), count


def test_drawing_twice_with_one_form_makes_one_sample(draft, lead, client):
    client.force_login(lead)
    address = reverse("annotate:audits", args=[draft.evalset.slug, draft.number])
    fields = {"runs": [draft.runs.get().pk], "size": 2, "seed": 77}
    answers = [client.post(address, fields) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert AuditSample.objects.get().responses.count() == 2


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"size": 0}, "greater than or equal to 1"),
        ({"size": "many"}, "whole number"),
        ({"runs": []}, "required"),
    ],
)
def test_drawing_names_what_is_wrong_and_draws_nothing(draft, lead, client, change, word):
    client.force_login(lead)
    fields = {"runs": [draft.runs.get().pk], "size": 2, "seed": 77} | change
    answer = client.post(reverse("annotate:audits", args=[draft.evalset.slug, draft.number]), fields)
    assert answer.status_code == 400
    assert word in answer.content.decode()
    assert not AuditSample.objects.exists()


def test_runs_without_any_text_are_refused(evalset, lead, client):
    version = make_version(evalset, responses=[("", []), (" \u200b", [])], freeze=False)
    with pytest.raises(services.Refused, match="no response with text"):
        draw(version, lead)


# Marking


def test_marking_goes_claim_by_claim_then_asks_what_is_missing(sample, lead, client):
    audited = with_claims(sample, 2)
    client.force_login(lead)
    first, second = audited.response.claims.all()
    page = client.get(place(sample, audited.position)).content.decode()
    assert "Claim 1 of 2" in page and 'name="missing"' not in page
    for claim, mark in ((first, "well_split"), (second, "not_in_response")):
        answer = client.post(
            place(sample, audited.position, "mark_claim"), {"claim": claim.pk, "mark": mark}, follow=True
        )
    page = answer.content.decode()
    assert 'name="missing"' in page
    assert not latest_audits(list(sample.runs.all())).exists()
    answer = client.post(
        place(sample, audited.position, "finish_audited"), {"missing": "2", "note": "no winter"}
    )
    audited.refresh_from_db()
    assert (audited.missing, audited.note, audited.by) == (2, "no winter", lead)
    assert audited.done_at is not None
    assert set(audited.claims.values_list("claim_id", "mark")) == {
        (first.pk, "well_split"),
        (second.pk, "not_in_response"),
    }
    following = progress_of_sample(sample, lead).next_position
    assert answer.url == place(sample, following)


def test_going_back_changes_a_mark(sample, lead, client):
    audited = with_claims(sample, 2)
    finish(audited, lead, "well_split", "well_split")
    client.force_login(lead)
    first = audited.response.claims.first()
    page = client.get(place(sample, audited.position), {"claim": first.pk}).content.decode()
    assert "so far" in page and "Claim 1 of 2" in page
    client.post(place(sample, audited.position, "mark_claim"), {"claim": first.pk, "mark": "badly_split"})
    assert audited.claims.get(claim=first).mark == "badly_split"
    assert ClaimAudit.objects.filter(audited=audited).count() == 2


def test_the_same_mark_twice_is_one_mark(sample, lead, client):
    audited = with_claims(sample, 1)
    client.force_login(lead)
    fields = {"claim": audited.response.claims.get().pk, "mark": "well_split"}
    for _ in range(2):
        assert client.post(place(sample, audited.position, "mark_claim"), fields).status_code == 302
    assert ClaimAudit.objects.count() == 1


def test_a_response_with_unmarked_claims_does_not_count(sample, lead, client):
    audited = with_claims(sample, 2)
    client.force_login(lead)
    answer = client.post(place(sample, audited.position, "finish_audited"), {"missing": "0"})
    assert answer.status_code == 400
    assert "2 claims are not marked yet" in answer.content.decode()
    audited.refresh_from_db()
    assert audited.done_at is None


def test_a_response_without_claims_asks_at_once_what_is_missing(sample, lead, client):
    audited = with_claims(sample, 0)
    client.force_login(lead)
    page = client.get(place(sample, audited.position)).content.decode()
    assert "No claim was extracted" in page and 'name="missing"' in page


@pytest.mark.parametrize("missing", ["", "-1", "many", "1001"])
def test_a_bad_number_of_missing_claims_is_named_and_nothing_is_stored(sample, lead, client, missing):
    audited = with_claims(sample, 0)
    client.force_login(lead)
    answer = client.post(
        place(sample, audited.position, "finish_audited"), {"missing": missing, "note": "kept"}
    )
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "errorlist" in page and "kept" in page
    audited.refresh_from_db()
    assert audited.done_at is None


def test_a_claim_of_another_response_and_an_unknown_mark_are_refused(sample, lead, client):
    audited, other = with_claims(sample, 1), with_claims(sample, 2)
    client.force_login(lead)
    address = place(sample, audited.position, "mark_claim")
    strange = {"claim": other.response.claims.first().pk, "mark": "well_split"}
    assert client.post(address, strange).status_code == 404
    odd = {"claim": audited.response.claims.get().pk, "mark": "perfect"}
    assert client.post(address, odd).status_code == 400
    assert client.post(address, {"claim": 10**30, "mark": "well_split"}).status_code in (400, 404)
    with pytest.raises(services.Refused):
        services.mark_claim(audited=audited, claim=other.response.claims.first(), mark="well_split")
    assert not ClaimAudit.objects.exists()


def test_a_part_of_a_later_split_is_not_audited(sample, lead):
    audited = with_claims(sample, 1)
    claim = audited.response.claims.get()
    part = claim.parts.create(
        response=audited.response, position=2, claim_id="c1.1", text="Dogs are allowed on deck."
    )
    with pytest.raises(services.Refused):
        services.mark_claim(audited=audited, claim=part, mark="well_split")
    services.mark_claim(audited=audited, claim=claim, mark="badly_split")
    assert audit_screen(audited, lead).now is None


def test_the_audit_goes_on_where_it_was_left(sample, lead, client):
    client.force_login(lead)
    finish(
        sample.responses.get(position=1),
        lead,
        *["well_split"] * sample.responses.get(position=1).response.claims.count(),
    )
    page = client.get(reverse("annotate:audits", args=[sample.version.evalset.slug, sample.version.number]))
    assert "Go on with response 2" in page.content.decode()
    assert f"<strong>1</strong> of {WITH_TEXT} responses" in page.content.decode()


def test_the_last_response_leads_back_to_the_samples(sample, lead, client):
    client.force_login(lead)
    *earlier, last = sample.responses.all()
    for audited in earlier:
        finish(audited, lead, *["well_split"] * audited.response.claims.count())
    for claim in last.response.claims.all():
        services.mark_claim(audited=last, claim=claim, mark="well_split")
    answer = client.post(place(sample, last.position, "finish_audited"), {"missing": "0"}, follow=True)
    assert "That was the last one" in answer.content.decode()
    assert progress_of_sample(sample, lead).is_done


# Keys


def test_the_keys_of_each_state_are_on_the_page_and_unique(sample, lead, client):
    client.force_login(lead)
    for claims in (2, 0):
        page = client.get(place(sample, with_claims(sample, claims).position)).content.decode()
        table = json.loads(re.search(r'<script id="keys" type="application/json">(.*?)</script>', page)[1])
        bound = [key for entry in table for key in entry["keys"]]
        assert len(bound) == len(set(bound))
        for entry in table:
            assert f'data-action="{entry["action"]}"' in page or entry["action"] in ("back", "evidence")


def test_every_mark_has_one_key():
    assert set(keys.MARKS) == set(ClaimAudit.Mark.values)
    assert len(set(keys.MARKS.values())) == len(keys.MARKS)


# Who may


@pytest.mark.parametrize("role", ["grader_a", "stranger"])
def test_others_find_nothing(sample, client, request, role):
    client.force_login(request.getfixturevalue(role))
    version = sample.version
    assert (
        client.get(reverse("annotate:audits", args=[version.evalset.slug, version.number])).status_code == 404
    )
    assert client.get(place(sample)).status_code == 404
    for name in ("mark_claim", "finish_audited"):
        assert client.post(place(sample, name=name)).status_code == 404


def test_a_place_that_is_not_there_is_not_found(sample, lead, client):
    client.force_login(lead)
    assert client.get(place(sample, 99)).status_code == 404


def test_marks_are_posted_not_fetched(sample, lead, client):
    client.force_login(lead)
    for name in ("mark_claim", "finish_audited"):
        assert client.get(place(sample, name=name)).status_code == 405


def test_a_lead_who_still_grades_audits_what_is_not_theirs_to_grade(evalset, lead, member, client):
    """The audit holds no labels, so it stays open; only a response they have yet to grade is closed."""
    both = member("both", "lead", "grader")
    version = make_version(evalset)
    sample = draw(version, lead)
    finish_all(sample, lead, "not_in_response")
    round = make_round(version, both)
    client.force_login(both)
    for audited in sample.responses.all():
        answer = client.get(place(sample, audited.position))
        assert answer.status_code == 403
        assert "You still have to grade this response" in answer.content.decode()
        assert (
            client.post(place(sample, audited.position, "finish_audited"), {"missing": 3}).status_code == 403
        )
    result = client.get(reverse("calibration:extraction", args=[evalset.slug, version.number]))
    assert "4 claims are of responses that you still have to grade" in result.content.decode()
    for own in round.assignments.filter(grader=grader_of(round, both)):
        say(round, both, own.response.position, *["supported"] * own.response.claims.count(), "ANSWERED")
    assert client.get(place(sample, 1)).status_code == 200
    result = client.get(reverse("calibration:extraction", args=[evalset.slug, version.number]))
    assert "still have to grade" not in result.content.decode()


def test_the_progress_says_what_is_closed(evalset, lead, member, client):
    both = member("both", "lead", "grader")
    version = make_version(evalset)
    sample = draw(version, lead)
    make_round(version, both)
    progress = progress_of_sample(sample, both)
    assert (progress.closed, progress.next_position) == (WITH_TEXT, None)
    client.force_login(both)
    page = client.get(reverse("annotate:audits", args=[evalset.slug, version.number])).content.decode()
    assert f"{WITH_TEXT} responses are closed to you" in page


def test_text_of_a_response_stays_text(evalset, lead, client):
    hostile = '<img src=x onerror="alert(1)">'
    version = make_version(evalset, responses=[(hostile, [hostile])], freeze=False)
    sample = draw(version, lead)
    client.force_login(lead)
    page = client.get(place(sample)).content.decode()
    assert hostile not in page
    finish(sample.responses.get(), lead, "badly_split", note=hostile)
    page = client.get(reverse("calibration:extraction", args=[evalset.slug, version.number])).content.decode()
    assert hostile not in page and "&lt;img" in page


def test_the_latest_finished_audit_of_a_response_counts(draft, lead):
    first, second = draw(draft, lead, seed=1), draw(draft, lead, seed=2)
    finish_all(first, lead, "badly_split")
    runs = list(draft.runs.all())
    assert set(latest_audits(runs)) == set(first.responses.all())
    again = second.responses.first()
    finish(again, lead, *["well_split"] * again.response.claims.count())
    counted = set(latest_audits(runs))
    assert again in counted
    assert AuditedResponse.objects.get(sample=first, response=again.response) not in counted
    assert len(counted) == WITH_TEXT
