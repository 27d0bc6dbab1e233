"""Deciding a disagreement: what is shown, what is kept, and what is asked of optional dimensions."""

import pytest

from annotate import services
from annotate.cases import Case
from annotate.models import Adjudication, Annotation, GoldLabel, RubricTask
from tests.annotate.deciding import adjudicate, decision, disagreements, url
from tests.annotate.pages import soup
from tests.annotate.rich import open_rich, tell_all
from tests.annotate.worlds import claim_of, grader_of, make_round, make_version, response_of, say

# Deciding


def test_decide_stores_gold_and_goes_on_to_the_next(split_over_six, as_, lead, grader_a, grader_b):
    round = split_over_six
    say(round, grader_a, 2, "REFUSED")
    say(round, grader_b, 2, "ANSWERED")
    place = url(round, "adjudicate")
    page = soup(as_(lead).get(place))
    answer = as_(lead).post(place, decision(page, note="see passage 2"))
    assert answer.status_code == 302
    assert f"/abstention/{response_of(round, 2).pk}/" in answer.url
    row = Adjudication.objects.get()
    assert (row.label, row.reason, row.note, row.by, row.judge_seen) == (
        "contradicted",
        "edge_case",
        "see passage 2",
        lead,
        False,
    )
    assert GoldLabel.objects.get(claim__isnull=False).source == "adjudicated"
    assert f"decided={row.pk}" in answer.url


def test_decide_needs_a_label_and_a_reason(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    for wrong in ({"label": ""}, {"label": "REFUSED"}, {"reason": ""}, {"reason": "split"}):
        assert as_(lead).post(place, decision(page, **wrong)).status_code == 400
    assert Adjudication.objects.count() == 0


def test_decide_before_all_labels_are_in_is_a_conflict(round, as_, lead, grader_a):
    say(round, grader_a, 6, "unverifiable")
    place = url(round, "adjudicate")
    page = soup(as_(lead).get(place))
    assert "Not yet: the label of one grader is still missing." in page.get_text()
    assert page.select("#decision") == page.select(".voices") == []
    seen = Case(round.version, round.number, "grounding", str(claim_of(round, 6).pk)).fingerprint
    fields = {"label": "supported", "reason": "other", "seen": seen}
    assert as_(lead).post(place, fields).status_code == 409
    assert Adjudication.objects.count() == 0


def test_decide_about_labels_that_have_changed_is_a_conflict(split_over_six, as_, lead, grader_a):
    place = url(split_over_six, "adjudicate")
    fields = decision(soup(as_(lead).get(place)))
    Annotation.objects.filter(grader=grader_of(split_over_six, grader_a)).update(label="unsupported")
    answer = as_(lead).post(place, fields)
    assert answer.status_code == 409
    assert "changed a label meanwhile" in answer.content.decode()
    assert Adjudication.objects.count() == 0


def test_names_are_revealed_in_the_log_only(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    as_(lead).post(place, decision(page))
    decided = soup(as_(lead).get(place)).get_text(" ", strip=True)
    for text in (
        page.get_text(),
        decided,
        as_(lead).get(url(split_over_six, "disagreements")).content.decode(),
    ):
        assert "grader_a" not in text
    assert "lead: an edge case" in decided
    log = soup(as_(lead).get(url(split_over_six, "decisions"))).select_one("tbody").get_text(" ", strip=True)
    assert "grader_a : supported" in log.replace("grader_a:", "grader_a :")


def test_grader_one_is_not_always_the_same_person(evalset, as_, lead, grader_a, grader_b):
    version = make_version(evalset, responses=[("A ferry.", [])] * 12)
    round = make_round(version, grader_a, grader_b)
    firsts = set()
    for position in range(1, 13):
        say(round, grader_a, position, "REFUSED")
        say(round, grader_b, position, "ANSWERED")
        place = url(round, "adjudicate", "abstention", response_of(round, position).pk)
        said = [chip["data-choose"] for chip in soup(as_(lead).get(place)).select("[data-choose]")]
        assert said == [c["data-choose"] for c in soup(as_(lead).get(place)).select("[data-choose]")]
        firsts.add(said[0])
    assert firsts == {"REFUSED", "ANSWERED"}


def test_rushed_labels_are_marked(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported", milliseconds=1999)
    say(round, grader_b, 6, "contradicted", milliseconds=2000)
    badges = soup(as_(lead).get(url(round, "adjudicate"))).select(".voices .badge")
    assert [badge.get_text() for badge in badges] == ["in 2.0 s"]


def test_unknown_target_is_not_found(round, as_, lead):
    for place in [("grounding", 999), ("abstention", 999), ("correctness", claim_of(round, 6).pk)]:
        assert as_(lead).get(url(round, "adjudicate", *place)).status_code == 404


# For the rubric


def test_the_rubric_should_say_this_makes_a_task(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    as_(lead).post(place, decision(page, note="A pier is a place.", for_rubric="on"))
    task = RubricTask.objects.get()
    assert (task.text, task.adjudication) == ("A pier is a place.", Adjudication.objects.get())


def test_without_the_tick_there_is_no_task(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    as_(lead).post(place, decision(soup(as_(lead).get(place)), note="A pier is a place."))
    assert not RubricTask.objects.exists()


# What graders marked


def test_marked_passages_are_named_with_the_graders_number(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported", evidence=[2])
    say(round, grader_b, 6, "contradicted", evidence=[1, 2])
    page = soup(as_(lead).get(url(round, "adjudicate")))
    number = next(v.number for v in _voices(round) if v.annotation.grader == grader_of(round, grader_b))
    marks = [mark.get_text() for mark in page.select(".evidence .marked .badge")]
    assert f"Grader {number}: passage 1" in marks
    assert {"Grader 1: passage 2", "Grader 2: passage 2"} <= set(marks)
    assert page.select_one('.voices a[href="#passage-1"]')


def _voices(round):
    return Case(round.version, round.number, "grounding", str(claim_of(round, 6).pk)).voices


# Optional dimensions


@pytest.fixture
def rich(evalset, grader_a, grader_b):
    """One rubric that also asks about citations, passages and, of a bad claim, what kind of bad it is."""
    return open_rich(make_version(evalset), grader_a, grader_b)


def test_citations_and_passages_are_decided_at_addresses_of_their_own(rich, as_, lead, grader_a, grader_b):
    tell_all(rich, grader_a, "supported", cited="full support")
    tell_all(rich, grader_b, "supported", cited="no support")
    response = response_of(rich, 6)
    claim, passage = response.claims.get().pk, response.passages.get(rank=2).pk
    assert [(d.dimension, d.target) for d in disagreements(rich)] == [
        ("citation_support", f"{claim}-{passage}")
    ]
    place = url(rich, "adjudicate", "citation_support", f"{claim}-{passage}")
    page = soup(as_(lead).get(place))
    assert "Claim 1 with passage 2" in page.get_text()
    assert page.select_one(".passage.asked")["id"] == "passage-2"
    assert as_(lead).post(place, decision(page, label="partial support")).status_code == 302
    gold = GoldLabel.objects.get(dimension="citation_support")
    assert (gold.label, gold.claim_id, gold.passage_id) == ("partial support", claim, passage)
    assert as_(lead).get(url(rich, "adjudicate", "context_relevance", passage)).status_code == 200


def test_addresses_that_do_not_fit_the_dimension_are_not_found(rich, as_, lead, grader_a):
    claim, passage = claim_of(rich, 6).pk, response_of(rich, 6).passages.get(rank=2).pk
    elsewhere = response_of(rich, 1).passages.get(rank=2).pk
    for dimension, target in [
        ("citation_support", claim),
        ("citation_support", f"{claim}-{elsewhere}"),
        ("citation_support", f"{claim}-{passage}-1"),
        ("grounding", f"{claim}-{passage}"),
        ("context_relevance", "x"),
        ("context_relevance", "9" * 30),
        ("context_relevance", 999_999),
        ("unheard_of", claim),
    ]:
        assert as_(lead).get(url(rich, "adjudicate", dimension, target)).status_code == 404


def test_conditional_question_waits_for_the_label_it_rests_on(rich, as_, lead, grader_a, grader_b):
    tell_all(rich, grader_a, "contradicted", "subtle conflict")
    tell_all(rich, grader_b, "unsupported", "evident baseless info")

    def statuses():
        return {d.dimension: d.status for d in disagreements(rich)}

    assert statuses() == {"grounding": "pending", "hallucination_type": "waiting"}
    claim = claim_of(rich, 6).pk
    page = soup(as_(lead).get(url(rich, "adjudicate", "hallucination_type", claim)))
    assert "once grounding is settled" in page.get_text()
    assert page.select("#decision") == []
    bad = adjudicate(rich, 6, "contradicted", lead)
    assert statuses() == {"grounding": "done", "hallucination_type": "pending"}
    services.revoke(adjudication=bad, person=lead)
    adjudicate(rich, 6, "supported", lead)
    assert statuses() == {"grounding": "done"}  # nobody is to say which kind of bad a good claim is
