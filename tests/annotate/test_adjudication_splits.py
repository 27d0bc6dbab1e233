"""The lead splits a claim, or decides on a split that a grader proposed."""

import pytest

from annotate import services
from annotate.models import Annotation, ClaimSplit, GoldLabel
from evalsets.models import Claim
from tests.annotate.deciding import decision, disagreements, url
from tests.annotate.pages import soup
from tests.annotate.worlds import claim_of, grader_of, say


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
