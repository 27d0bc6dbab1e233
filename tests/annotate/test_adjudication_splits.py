"""The lead splits a claim, or decides on a split that a grader proposed."""

import pytest

from annotate import services
from annotate.models import Adjudication, Annotation, ClaimSplit, GoldLabel
from evalsets.models import Claim
from tests.annotate.deciding import decision, disagreements, url
from tests.annotate.pages import soup
from tests.annotate.worlds import claim_of, grader_of, make_round, say


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


def test_lead_splits_a_claim_that_nobody_proposed_to_split(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    claim = claim_of(round, 4)
    place = url(round, "split_claim", claim.pk)
    fields = {
        "own-split-text-1": "Dogs are allowed on deck.",
        "own-split-label-1": "supported",
        "own-split-text-2": "Only on a lead.",
        "own-split-label-2": "",
    }
    answer = as_(lead).post(place, fields)
    assert answer.status_code == 400
    assert "Choose a label for every part." in soup(answer).select_one(".errorlist").get_text()
    assert as_(lead).post(place, fields | {"own-split-label-2": "unsupported"}).status_code == 302
    gold = GoldLabel.objects.filter(dimension="grounding").values_list("claim__text", "label")
    assert sorted(gold) == [("Dogs are allowed on deck.", "supported"), ("Only on a lead.", "unsupported")]
    assert Annotation.objects.filter(claim=claim).count() == 2  # kappa keeps the whole claim
    assert as_(lead).post(place, fields | {"own-split-label-2": "unsupported"}).status_code == 409


def test_lead_cannot_split_into_one_part_nor_before_all_labels_are_in(round, as_, lead, grader_a):
    say(round, grader_a, 4, "unsupported")
    one = {"own-split-text-1": "Dogs.", "own-split-label-1": "supported"}
    two = one | {"own-split-text-2": "Leads.", "own-split-label-2": "supported"}
    for fields in (one, two):
        assert as_(lead).post(url(round, "split_claim", claim_of(round, 4).pk), fields).status_code == 409
    assert not ClaimSplit.objects.exists()
    assert not Claim.objects.filter(parent__isnull=False).exists()


# Taken back


def split_in_two(round, lead, number=4, texts=("Dogs.", "Leads.")):
    """The decisions on the parts."""
    labels = ("supported", "unsupported")
    return services.split_claim(
        round=round, claim=claim_of(round, number), parts=list(zip(texts, labels, strict=True)), person=lead
    )


def gold_by_claim(round):
    return dict(round.gold.filter(dimension="grounding").values_list("claim__claim_id", "label"))


@pytest.fixture
def apart(round, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    return round


def test_take_a_split_back_leaves_the_claim_to_decide_again(apart, as_, lead):
    made = split_in_two(apart, lead)
    anew = decide_part(apart, lead, made[1].claim, "contradicted")
    page = soup(as_(lead).get(url(apart, "adjudicate", "grounding", claim_of(apart, 4).pk)))
    form = page.select_one("form[action*=take-back]")
    answer = as_(lead).post(form["action"], {"note": "one fact after all"}, follow=True)
    assert "The split is taken back" in soup(answer).get_text()
    assert soup(answer).select("#decision") != []
    assert gold_by_claim(apart) == {}
    assert disagreements(apart)[0].status == "pending"
    back = Adjudication.objects.filter(revokes__isnull=False).order_by("pk")
    assert list(back.values_list("revokes", "note")) == [
        (decision.pk, "one fact after all") for decision in (anew, made[1], made[0])
    ]


def decide_part(round, lead, part, label):
    return services.adjudicate(
        round=round,
        response=part.response,
        claim=part,
        dimension="grounding",
        label=label,
        reason="edge_case",
        person=lead,
    )


def test_take_a_split_back_brings_back_what_held(round, lead, grader_a, grader_b):
    for grader in (grader_a, grader_b):
        say(round, grader, 4, "supported")
    split_in_two(round, lead)
    services.take_split_back(split=ClaimSplit.objects.get(), person=lead)
    assert gold_by_claim(round) == {"c1": "supported"}
    assert round.gold.get(dimension="grounding").source == "agreed"
    decide_part(round, lead, claim_of(round, 4), "contradicted")
    split_in_two(round, lead)
    services.take_split_back(split=ClaimSplit.objects.get(state="accepted"), person=lead)
    assert gold_by_claim(round) == {"c1": "contradicted"}


def test_take_a_split_back_once_and_split_anew(apart, as_, lead):
    split_in_two(apart, lead)
    split = ClaimSplit.objects.get()
    services.take_split_back(split=split, person=lead)
    with pytest.raises(services.Conflict):
        services.take_split_back(split=split, person=lead)
    assert Adjudication.objects.filter(revokes__isnull=False).count() == 2
    split_in_two(apart, lead, texts=("Dogs are allowed.", "On a lead."))
    assert gold_by_claim(apart) == {"c1.1+": "supported", "c1.2+": "unsupported"}
    page = soup(as_(lead).get(url(apart, "adjudicate", "grounding", claim_of(apart, 4).pk)))
    assert [link.get_text() for link in page.select(".stack li > a")] == ["Dogs are allowed.", "On a lead."]


def test_a_part_of_a_split_that_was_taken_back_is_not_decided(apart, as_, lead):
    part = split_in_two(apart, lead)[0].claim
    services.take_split_back(split=ClaimSplit.objects.get(), person=lead)
    with pytest.raises(services.Refused, match="taken back"):
        decide_part(apart, lead, part, "supported")
    page = soup(as_(lead).get(url(apart, "adjudicate", "grounding", part.pk)))
    assert "The split that made this part was taken back" in page.get_text()
    assert "when all are in" not in page.get_text()
    assert page.select("#decision") == []


def test_a_split_whose_parts_another_round_decided_stays(apart, lead, grader_a, grader_b):
    part = split_in_two(apart, lead)[0].claim
    other = make_round(apart.version, grader_a, grader_b)
    GoldLabel.objects.create(
        round=other,
        response=part.response,
        claim=part,
        dimension="grounding",
        label="supported",
        source="single",
    )
    with pytest.raises(services.Conflict, match=f"Round {other.number}"):
        services.take_split_back(split=ClaimSplit.objects.get(), person=lead)
    assert gold_by_claim(apart) == {"c1.1": "supported", "c1.2": "unsupported"}


def test_others_take_no_split_back(apart, as_, lead, grader_a, stranger):
    split_in_two(apart, lead)
    place = url(apart, "take_split_back", ClaimSplit.objects.get().pk)
    for somebody in (grader_a, stranger):
        assert as_(somebody).post(place).status_code == 404
    assert as_(lead).get(place).status_code == 405
    assert ClaimSplit.objects.get().state == "accepted"
