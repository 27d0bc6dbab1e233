"""The lead's queue of disagreements, and deciding: what is shown, opened, kept, and taken back."""


import pytest
from bs4 import BeautifulSoup
from django.urls import reverse

from annotate import services
from annotate.cases import Case
from annotate.disagreements import DisagreementQueue, Wanted
from annotate.models import (
    Adjudication,
    Annotation,
    ClaimSplit,
    GoldLabel,
)
from evalsets.models import Claim, Item
from tests.annotate.worlds import grader_of, make_round, make_version, response_of, say


@pytest.fixture
def as_(client):
    def log_in(person):
        client.force_login(person)
        return client

    return log_in


def url(round, name, *more):
    place = [round.version.evalset.slug, round.version.number]
    if name not in ("disagreements", "decisions", "decisions_csv"):
        place.append(round.number)
    if name == "adjudicate":
        more = more or ("grounding", claim_of(round, 6).pk)
    return reverse(f"annotate:{name}", args=[*place, *more])


def claim_of(round, position) -> Claim:
    return response_of(round, position).claims.filter(parent=None).first()


def soup(answer):
    return BeautifulSoup(answer.content, "html.parser")


def disagreements(round, **wanted):
    return list(DisagreementQueue(round, Wanted(**{"status": "", **wanted})))


def positions(found):
    return [Item.objects.get(responses=d.response_id).position for d in found]


def decision(page, **fields):
    """The fields of the decision form on the page."""
    return {
        "label": "contradicted",
        "reason": "edge_case",
        "note": "",
        "seen": page.select_one("#decision [name=seen]")["value"],
        **fields,
    }


def adjudicate(round, position, label, person, claim=None, dimension=None, **more):
    claim = claim_of(round, position) if claim is None else claim
    return services.adjudicate(
        round=round,
        response=response_of(round, position),
        claim=claim or None,
        dimension=dimension or ("grounding" if claim else "abstention"),
        label=label,
        reason="edge_case",
        person=person,
        **more,
    )


@pytest.fixture
def split_over_six(round, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    return round


# The list of disagreements


def test_total_disagreement_puts_everything_in_the_list(round, grader_a, grader_b):
    for position in (1, 2, 4, 5, 6):
        claims = response_of(round, position).claims.count()
        say(round, grader_a, position, *["supported"] * claims, "ANSWERED")
        say(round, grader_b, position, *["contradicted"] * claims, "REFUSED")
    found = disagreements(round)
    assert len(found) == Annotation.objects.count() / 2 == 9
    assert {d.status for d in found} == {"pending"}


def test_list_holds_what_differs_to_decide_first(round, lead, grader_a, grader_b, member):
    say(round, grader_a, 1, "supported", "supported", "ANSWERED")
    say(round, grader_b, 1, "supported", "contradicted", "REFUSED")
    say(round, grader_a, 4, "supported")
    services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["a", "b"]
    )
    response = response_of(round, 1)
    services.adjudicate(
        round=round,
        response=response,
        claim=None,
        dimension="abstention",
        label="REFUSED",
        reason="other",
        person=lead,
    )
    found = [(d.status, d.dimension, d.proposed) for d in disagreements(round)]
    assert found == [
        ("pending", "grounding", False),
        ("waiting", "grounding", True),
        ("done", "abstention", False),
    ]
    assert [d.status for d in disagreements(round, dimension="grounding", status="pending")] == ["pending"]


def test_list_of_three_graders_puts_the_least_agreed_first(version, grader_a, grader_b, member):
    third = member("third", "grader")
    round = make_round(version, grader_a, grader_b, third)
    for person, one, two in [
        (grader_a, "ANSWERED", "ANSWERED"),
        (grader_b, "ANSWERED", "REFUSED"),
        (third, "REFUSED", "CLARIFY"),
    ]:
        say(round, person, 2, one)
        say(round, person, 5, two)
    assert [d.response_id for d in disagreements(round)] == [
        response_of(round, 5).pk,
        response_of(round, 2).pk,
    ]


def test_labels_of_a_target_that_waits_are_not_shown(round, as_, lead, grader_a):
    say(round, grader_a, 4, "unverifiable")
    services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["a", "b"]
    )
    page = soup(as_(lead).get(url(round, "disagreements"), {"status": "all"}))
    assert "shown when all are in" in page.select_one("table").get_text()
    assert "unverifiable" not in page.select_one("table").get_text()


@pytest.mark.parametrize("query", [{"round": "9"}, {"round": "x"}])
def test_list_of_an_unknown_round_is_not_found(round, as_, lead, query):
    assert as_(lead).get(url(round, "disagreements"), query).status_code == 404


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
    assert "Not yet: the label of 1 grader is missing" in page.get_text()
    assert page.select("#decision") == page.select(".voices") == []
    seen = Case(round.version, round.number, "grounding", claim_of(round, 6).pk).fingerprint
    fields = {"label": "supported", "reason": "other", "seen": seen}
    assert as_(lead).post(place, fields).status_code == 409
    assert Adjudication.objects.count() == 0


def test_decide_about_labels_that_have_changed_is_a_conflict(split_over_six, as_, lead, grader_a):
    place = url(split_over_six, "adjudicate")
    fields = decision(soup(as_(lead).get(place)))
    say(split_over_six, grader_a, 6, "contradicted")
    answer = as_(lead).post(place, fields)
    assert answer.status_code == 409
    assert "changed a label meanwhile" in answer.content.decode()
    assert Adjudication.objects.count() == 0


def test_names_are_revealed_in_the_log_only(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    assert "grader_a" not in page.get_text()
    as_(lead).post(place, decision(page))
    text = soup(as_(lead).get(place)).select_one("section[aria-labelledby=log]").get_text(" ", strip=True)
    assert "grader_a" in text
    assert "lead: an edge case" in text


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


# Splits


@pytest.fixture
def proposed(round, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    return services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["Dogs.", "Leads."]
    )


def parts(split, *labels):
    prefix = f"split-{split.pk}"
    fields = {f"{prefix}-note": ""}
    for number, (text, label) in enumerate(zip(split.parts, labels, strict=True), start=1):
        fields |= {f"{prefix}-text-{number}": text, f"{prefix}-label-{number}": label}
    return fields


def test_accept_split_makes_the_parts(round, as_, lead, proposed):
    place = url(round, "decide_split", proposed.pk)
    as_(lead).post(place, parts(proposed, "supported", "unsupported"))
    assert list(Claim.objects.filter(parent=proposed.claim).values_list("claim_id", "text")) == [
        ("c1.1", "Dogs."),
        ("c1.2", "Leads."),
    ]
    assert as_(lead).post(place, parts(proposed, "supported", "unsupported")).status_code == 409
    page = soup(as_(lead).get(url(round, "adjudicate", "grounding", proposed.claim_id)))
    assert "its parts count in its place" in page.get_text()
    assert page.select("#decision") == []
    part = Claim.objects.get(claim_id="c1.2")
    page = soup(as_(lead).get(url(round, "adjudicate", "grounding", part.pk)))
    assert "Part of claim 1" in page.get_text()
    as_(lead).post(url(round, "adjudicate", "grounding", part.pk), decision(page))
    assert GoldLabel.objects.get(claim=part).label == "contradicted"


def test_accept_split_needs_a_label_for_every_part(round, as_, lead, proposed):
    answer = as_(lead).post(url(round, "decide_split", proposed.pk), parts(proposed, "supported", ""))
    assert answer.status_code == 400
    assert soup(answer).select(".errorlist")
    assert not Claim.objects.filter(parent__isnull=False).exists()


def test_decline_split(round, as_, lead, proposed):
    as_(lead).post(url(round, "decide_split", proposed.pk), {"decline": "1"})
    assert ClaimSplit.objects.get().state == "declined"
    assert disagreements(round)[0].proposed is False
