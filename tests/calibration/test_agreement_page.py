"""The agreement page: what it shows of a round, and the way from the costliest labels to the rubric."""

import csv
import io
import json
from io import StringIO

import pytest
from bs4 import BeautifulSoup
from django.core.management import CommandError, call_command
from django.urls import reverse

from annotate import rubric_text
from annotate.models import Annotation, Dimension, Flag, Round, RubricVersion
from calibration.clearest import clearest_examples
from calibration.measures import agreement_of
from calibration.pairing import dimensions_of, table_of
from evalsets.models import Membership, Passage
from tests.calibration.labelled import labelled_set

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def labelled():
    """Ten claims of five responses: three times supported against unsupported, once against contradicted."""
    made = labelled_set()
    rubric = made.round.rubric_version.rubric
    rubric.name = rubric_text.NAME  # the eval set's own, which the rubric pages edit
    rubric.save()
    said = [
        ("supported", "unsupported"),
        ("supported", "supported"),
        ("unsupported", "supported"),
        ("supported", "supported"),
        ("supported", "unsupported"),
        ("unsupported", "unsupported"),
        ("contradicted", "supported"),
        ("contradicted", "contradicted"),
        ("supported", "supported"),
        ("supported", "supported"),
    ]
    for number in range(5):
        response = made.response(f"r{number}")
        for labels in said[2 * number : 2 * number + 2]:
            made.claim(response, *labels)
    return made


@pytest.fixture
def lead_of(person):
    def make(labelled):
        someone = person("lead")
        Membership.objects.create(person=someone, evalset=labelled.version.evalset, role="lead")
        return someone

    return make


def page_of(client, labelled, lead, query=None):
    client.force_login(lead)
    place = reverse("calibration:agreement", args=[labelled.version.evalset.slug, 1])
    answer = client.get(place, query or {})
    assert answer.status_code == 200
    return BeautifulSoup(answer.content, "html.parser")


def table(labelled, dimension="grounding"):
    return table_of(version=labelled.version, round=labelled.round, dimension=dimension)


def examples(labelled, one="supported", other="unsupported", dimension="grounding"):
    return clearest_examples(table=table(labelled, dimension), round=labelled.round, one=one, other=other)


def test_page_names_the_costliest_pair_and_leads_to_the_rubric(client, labelled, lead_of):
    page = page_of(client, labelled, lead_of(labelled))
    card = page.select_one(".cost").get_text(" ", strip=True)
    assert "supported against unsupported : no other two labels cost as much" in card
    assert "3 targets" in card
    assert "75.0" in card  # of the four disagreements
    link = page.select_one(".cost .button.primary")["href"]
    assert link.startswith(reverse("annotate:new_rubric", args=["set", 1]))
    assert "dimension=grounding&label=supported" in link
    assert link.count("example=") == 3
    assert client.get(link).status_code == 200


def test_page_shows_another_pair_when_asked(client, labelled, lead_of):
    page = page_of(client, labelled, lead_of(labelled), {"pair": "supported:contradicted"})
    assert "1 target" in page.select_one(".cost").get_text(" ", strip=True)
    assert len(page.select(".examples li")) == 1


def test_page_holds_the_number_against_the_bar(client, labelled, lead_of):
    page = page_of(client, labelled, lead_of(labelled))
    assert "Below the bar of 0.60" in page.select_one(".verdict").get_text(" ", strip=True)


def test_page_has_both_pictures_described_in_words(client, labelled, lead_of):
    charts = page_of(client, labelled, lead_of(labelled)).select("svg.chart")
    assert len(charts) == 2
    assert "bar at 0.60" in charts[0]["aria-label"]
    assert "supported by ada and unsupported by ben: 2" in charts[1]["aria-label"]
    assert not any(chart.select("[style], [role]:not([aria-label]), script") for chart in charts)


@pytest.mark.parametrize("picture", ["kappa", "confusion"])
@pytest.mark.parametrize(("kind", "starts"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("csv", b"")])
def test_picture_can_be_taken_away(client, labelled, lead_of, picture, kind, starts):
    client.force_login(lead_of(labelled))
    place = reverse("calibration:agreement_chart", args=["set", 1, picture, kind])
    answer = client.get(place)
    assert answer.status_code == 200
    assert answer.content.startswith(starts)
    assert answer["Content-Disposition"].endswith(f'{picture}-set-1-round-1-grounding.{kind}"')


def test_confusion_as_csv_is_the_table(client, labelled, lead_of):
    client.force_login(lead_of(labelled))
    place = reverse("calibration:agreement_chart", args=["set", 1, "confusion", "csv"])
    rows = list(csv.reader(io.StringIO(client.get(place).content.decode())))
    assert rows[0] == ["ada / ben", "supported", "contradicted", "unsupported", "unverifiable"]
    assert rows[1] == ["supported", "4", "0", "2", "0"]


def test_unknown_picture_or_kind_is_not_found(client, labelled, lead_of, person):
    lead = lead_of(labelled)
    for picture, kind in [("x", "svg"), ("kappa", "exe")]:
        client.force_login(lead)
        place = reverse("calibration:agreement_chart", args=["set", 1, picture, kind])
        assert client.get(place).status_code == 404
    client.force_login(person("stranger"))
    place = reverse("calibration:agreement_chart", args=["set", 1, "kappa", "svg"])
    assert client.get(place).status_code == 404


def test_each_grader_stands_against_the_others(client, labelled, lead_of):
    text = page_of(client, labelled, lead_of(labelled)).get_text(" ", strip=True)
    assert "Does somebody use a label more?" in text
    use = {(u["grader"], u["label"]): u for u in agreement_of(table(labelled))["label_use"]}
    assert use["ada", "supported"]["own"] == pytest.approx(0.6)
    assert use["ada", "supported"]["others"] == pytest.approx(0.6)
    assert use["ada", "contradicted"]["difference"]["value"] == pytest.approx(0.1)


# The clearest examples


def test_examples_are_not_rushed_not_flagged_with_notes_and_one_of_an_item(labelled):
    first, second, third = (example.address for example in examples(labelled))
    assert {first, second, third} == {
        str(a.claim_id) for a in Annotation.objects.filter(label="unsupported") if _differ(a.claim_id)
    }
    Annotation.objects.filter(claim=first).update(milliseconds=1999)
    claim = Annotation.objects.filter(claim=second).first()
    Flag.objects.create(
        round=labelled.round, response=claim.response, claim=claim.claim, grader=labelled.graders[0]
    )
    assert [e.address for e in examples(labelled)] == [third, second, first]
    Annotation.objects.filter(claim=first).update(milliseconds=5000, note="why")
    shown = examples(labelled)
    assert [e.address for e in shown] == [first, third, second]
    assert shown[0].noted


def _differ(claim):
    return Annotation.objects.filter(claim=claim).values("label").distinct().count() > 1


def test_at_most_one_example_of_an_item(labelled):
    item = labelled.version.items.first()
    twin = labelled.response("twin", item=item, sample=2)
    labelled.claim(twin, "supported", "unsupported")
    assert len(examples(labelled)) == 3


def test_what_waits_for_a_grader_is_no_example():
    made = labelled_set(graders=("ada", "ben", "cyd"))
    made.claim(made.response("r"), "supported", "unsupported", None)
    assert examples(made) == []
    made.claim(made.response("s"), "supported", "unsupported", "supported")
    assert [e.labels for e in examples(made)] == [{"supported": 2, "unsupported": 1}]


# Rounds are never pooled


def test_rounds_with_their_rubrics_stand_side_by_side(client, labelled, lead_of):
    rubric = labelled.round.rubric_version.rubric
    later = RubricVersion.objects.create(rubric=rubric, number=2, sha256="e" * 64)
    for dimension in labelled.round.rubric_version.dimensions.all():
        dimension.pk, dimension.rubric_version = None, later
        dimension.save()
    second = Round.objects.create(version=labelled.version, number=2, rubric_version=later)
    second.runs.set(labelled.round.runs.all())
    claim = Annotation.objects.first().claim
    for grader in labelled.graders:
        Annotation.objects.create(
            round=second,
            grader=grader,
            response=claim.response,
            claim=claim,
            dimension="grounding",
            label="supported",
        )
    page = page_of(client, labelled, lead_of(labelled), {"round": "1"})
    rows = [row.get_text(" ", strip=True) for row in page.select("section.card")[-1].select("tbody tr")]
    assert rows[0].startswith(f"1 · first grading {rubric} 1 10 Cohen's kappa")
    assert f"{rubric} 2" in rows[1]
    assert "what changed since 1" in rows[1]
    assert "undefined" in rows[1]  # one claim, one label
    changes = reverse("annotate:rubric_changes", args=["set", 1, 1, 2])
    assert page.select(f'a[href="{changes}"]')


# Optional dimensions


@pytest.fixture
def optional(labelled):
    """After contradicted or unsupported: which kind; of passages: relevant or not; of citations: support."""
    rubric = labelled.round.rubric_version
    for position, (name, target, labels, when) in enumerate(
        [
            (
                "kind",
                "claim",
                ["conflict", "invention"],
                {"dimension": "grounding", "labels": ["contradicted", "unsupported"]},
            ),
            ("relevance", "passage", ["relevant", "irrelevant"], None),
            ("support", "citation", ["full", "none"], None),
        ],
        3,
    ):
        Dimension.objects.create(
            rubric_version=rubric,
            name=name,
            target=target,
            question=f"{name}?",
            labels=[{"name": label, "key": str(n), "definition": ""} for n, label in enumerate(labels, 1)],
            asked_when=when,
            position=position,
        )
    response = labelled.runs[0].responses.first()
    for rank in (1, 2):
        Passage.objects.create(response=response, rank=rank, passage_id=f"p{rank}", text="A passage.")
    response.claims.filter(claim_id="c1").update(source_ids=["p2", "p9", "p2"])
    return labelled


def say(labelled, grader, dimension, label, response, claim=None, passage=None):
    Annotation.objects.create(
        round=labelled.round,
        grader=labelled.graders[grader],
        dimension=dimension,
        label=label,
        response=response,
        claim=claim,
        passage=passage,
    )


def test_conditional_dimension_counts_who_was_not_asked(optional):
    both = [
        annotation.claim
        for annotation in Annotation.objects.filter(
            grader=optional.graders[0], label__in=["contradicted", "unsupported"]
        ).select_related("claim__response")
    ]
    for claim in both:
        say(optional, 0, "kind", "conflict", claim.response, claim)
    agreed = [
        claim
        for claim in both
        if Annotation.objects.filter(claim=claim, grader=optional.graders[1]).first().label != "supported"
    ]
    for claim in agreed:
        say(optional, 1, "kind", "invention", claim.response, claim)
    figures = agreement_of(table(optional, "kind"))
    assert figures["unit"] == "claim"
    assert (figures["n_targets"], figures["n_labelled_twice"]) == (10, len(agreed)) == (10, 2)
    pair = figures["pairs"][0]["cohen_kappa"]
    assert pair["excluded"] == {"not_asked": 8}
    assert [label["label"] for label in figures["per_label"]] == ["conflict", "invention"]


def test_passages_and_citations_are_targets_of_their_own(optional):
    response = optional.runs[0].responses.first()
    claim, passage = response.claims.get(claim_id="c1"), response.passages.get(rank=2)
    for grader, label in enumerate(("relevant", "irrelevant")):
        say(optional, grader, "relevance", label, response, passage=passage)
    for grader in (0, 1):
        say(optional, grader, "support", "full", response, claim=claim, passage=passage)
    relevance, support = (agreement_of(table(optional, name)) for name in ("relevance", "support"))
    assert (relevance["unit"], relevance["n_targets"], relevance["n_labelled_twice"]) == ("passage", 2, 1)
    assert (support["unit"], support["n_targets"], support["n_labelled_twice"]) == ("citation", 1, 1)
    assert [e.address for e in examples(optional, "relevant", "irrelevant", "relevance")] == [str(passage.pk)]


def test_page_and_command_know_every_dimension_of_the_rubric(client, optional, lead_of):
    assert dimensions_of(optional.round) == ["grounding", "abstention", "kind", "relevance", "support"]
    lead = lead_of(optional)
    for dimension in ("kind", "relevance", "support"):
        page_of(client, optional, lead, {"dimension": dimension})
    out = StringIO()
    call_command("agreement", "set@1", "--json", stdout=out)
    assert [d["dimension"] for d in json.loads(out.getvalue())["dimensions"]] == dimensions_of(optional.round)
    with pytest.raises(CommandError, match="not asked about 'other'"):
        call_command("agreement", "set@1", "--dimension", "other", stdout=StringIO())


def test_unknown_dimension_is_a_bad_request(client, optional, lead_of):
    client.force_login(lead_of(optional))
    place = reverse("calibration:agreement", args=["set", 1])
    assert client.get(place, {"dimension": "other"}).status_code == 400
