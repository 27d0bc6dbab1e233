"""Figures of the optional dimensions: by hand where nobody else has published one, and behind their gates."""

import pytest
from django.urls import reverse

from annotate.models import Annotation, GoldLabel
from annotate.presets import DIMENSION_OF
from calibration.judge_figures import _Open, _scope
from calibration.models import Verdict
from calibration.rates import human_figures
from calibration.reports import build_report
from evalsets.models import Passage
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now
from tests.calibration.test_report_pages import text_of
from tests.calibration.test_report_pages import url as page_of

pytestmark = pytest.mark.django_db


def asks(labelled, *names):
    """The round's rubric asks for these optional dimensions as well."""
    for position, name in enumerate(names, 3):
        preset = DIMENSION_OF[name]
        labelled.round.rubric_version.dimensions.create(
            name=name,
            target=preset["target"],
            question=preset["question"],
            labels=preset["labels"],
            asked_when=preset["asked_when"],
            position=position,
        )
    return labelled


def says(labelled, response, dimension, label, *, claim=None, passage=None):
    """Both graders say so, and gold with them."""
    target = {"response": response, "claim": claim, "passage": passage, "dimension": dimension}
    for grader in labelled.graders:
        Annotation.objects.create(round=labelled.round, grader=grader, label=label, **target)
    GoldLabel.objects.create(round=labelled.round, label=label, source="agreed", adjudication=None, **target)


def served(response, *names, document=None):
    return [
        Passage.objects.create(response=response, rank=rank, passage_id=name, text=name, document=document)
        for rank, name in enumerate(names, 1)
    ]


def shown(labelled, source="gold"):
    figures = human_figures(version=labelled.version, round=labelled.round, source=source, unit="claim")
    return figures, {entry["name"]: entry for entry in figures.get("optional", [])}


def shares(entry):
    return {n["label"]: (n["numerator"], n["denominator"]) for n in entry["numbers"]}


def test_a_rubric_without_optional_dimensions_has_no_such_figures():
    labelled = labelled_set()
    labelled.claim(labelled.response("r"), "supported", "supported")
    assert "optional" not in shown(labelled)[0]


def test_informativeness_counts_the_graded_refusals_that_were_right():
    labelled = asks(labelled_set(), "refusal_informativeness")
    for number, (answerable, informative) in enumerate(
        [(False, "informative"), (False, "uninformative"), (False, None), (True, "informative")]
    ):
        reason = "" if answerable else "out_of_scope"
        item = labelled.item(f"i{number}", answerable=answerable, unanswerable_reason=reason)
        response = labelled.response(f"r{number}", item=item)
        labelled.verdict_on_response(response, "REFUSED", "REFUSED")
        if informative:
            says(labelled, response, "refusal_informativeness", informative)
    figures, optional = shown(labelled)

    number = figures["abstention"]["informativeness"]
    assert (number["numerator"], number["denominator"], number["excluded"]) == (1, 2, {"not_graded": 1})
    assert shares(optional["refusal_informativeness"]) == {"informative": (2, 3), "uninformative": (1, 3)}
    assert optional["refusal_informativeness"]["numbers"][0]["excluded"] == {"not_labelled": 1}


def test_answers_are_wrong_misgrounded_or_declined():
    """Counted by hand: of 6 responses 1 accurate, 2 wrong, 1 misgrounded, 1 declined, 1 asks back."""
    labelled = asks(labelled_set(), "correctness", "groundedness")
    rows = [
        ("ANSWERED", "correct", "grounded"),
        ("ANSWERED", "correct", "misgrounded"),
        ("ANSWERED", "incorrect", "grounded"),
        ("ANSWERED", "incorrect", "misgrounded"),
        ("REFUSED", None, None),
        ("CLARIFY", None, None),
    ]
    for number, (verdict, correct, grounded) in enumerate(rows):
        item = labelled.item(f"i{number}", reference_answer="So it is." if number < 3 else None)
        response = labelled.response(f"r{number}", item=item)
        labelled.verdict_on_response(response, verdict, verdict)
        if correct:
            says(labelled, response, "correctness", correct)
            says(labelled, response, "groundedness", grounded)
    _figures, optional = shown(labelled)

    assert shares(optional["correctness_and_groundedness"]) == {
        "Accurate (correct and grounded)": (1, 6),
        "Wrong": (2, 6),
        "Right but misgrounded": (1, 6),
        "Right without a source": (0, 6),
        "Declined": (1, 6),
        "Neither an answer nor a refusal": (1, 6),
        "Hallucinated (incorrect or misgrounded)": (3, 6),
    }
    against = shares(optional["correctness_against_reference"])
    assert (against["Wrong"], against["Declined"]) == ((1, 3), (0, 3))


def test_citations_are_scored_as_in_the_worked_examples():
    """EX-C1: recall .6, precision 4/6. EX-C2: a citation of what was not served counts against both: .5."""
    labelled = asks(labelled_set(), "citation_recall", "citation_support")
    first = labelled.response("ex-c1")
    p1, p2, p3 = served(first, "p1", "p2", "p3")
    claims = [
        (["p1"], "fully supported", {p1: "full support"}),
        (["p1", "p2"], "fully supported", {p1: "full support", p2: "no support"}),
        (["p2", "p3"], "fully supported", {p2: "partial support", p3: "partial support"}),
        (["p3"], "not fully supported", {p3: "no support"}),
        ([], "not fully supported", {}),
    ]
    for cited, recall, support in claims:
        claim = labelled.claim(first, source_ids=cited)
        says(labelled, first, "citation_recall", recall, claim=claim)
        for passage, label in support.items():
            says(labelled, first, "citation_support", label, claim=claim, passage=passage)
    _figures, optional = shown(labelled)
    recall, precision = optional["citation_scores"]["numbers"]
    assert recall["value"] == pytest.approx(0.6)
    assert precision["value"] == pytest.approx(4 / 6)

    second = labelled.response("ex-c2")
    (p1,) = served(second, "p1")
    claim = labelled.claim(second, source_ids=["p1"])
    says(labelled, second, "citation_recall", "fully supported", claim=claim)
    says(labelled, second, "citation_support", "full support", claim=claim, passage=p1)
    labelled.claim(second, source_ids=["p8"])
    open_one = labelled.response("open")
    served(open_one, "p1")
    labelled.claim(open_one, source_ids=["p1"])
    recall, precision = shown(labelled)[1]["citation_scores"]["numbers"]
    assert recall["value"] == pytest.approx((0.6 + 0.5) / 2)
    assert precision["value"] == pytest.approx((4 / 6 + 0.5) / 2)
    assert recall["excluded"] == {"unlabelled_claims": 1}


def test_a_response_without_a_claim_is_left_out_of_the_citation_scores_and_listed():
    """EX-C4: an empty answer changes no mean; ours counts it, with its system and its stratum."""
    labelled = asks(labelled_set(), "citation_recall", "citation_support")
    labelled.run("main")
    other = labelled.run("other")
    for number, text in enumerate(["", "Hello."]):
        item = labelled.item(f"c{number}", strata={"half": "b"})
        labelled.response(f"claimless{number}", item=item, run=other, text=text)
    cited = labelled.response("cited", item=labelled.item("i", strata={"half": "a"}))
    (p1,) = served(cited, "p1")
    claim = labelled.claim(cited, source_ids=["p1"])
    says(labelled, cited, "citation_recall", "fully supported", claim=claim)
    says(labelled, cited, "citation_support", "full support", claim=claim, passage=p1)
    bare = labelled.response("bare", item=labelled.item("b", strata={"half": "b"}), run=other)
    labelled.claim(bare)
    [figure] = [f for f in shown(labelled)[0]["optional"] if f["name"] == "citation_scores"]
    recall, precision = figure["numbers"]
    assert (recall["value"], recall["n"], recall["excluded"]) == (0.5, 2, {"no_statement": 2})
    assert (precision["value"], precision["excluded"]) == (1, {"no_statement": 2, "no_citation": 1})
    parts = [entry["numbers"][0]["excluded"] for entry in figure["per_system"]]
    assert parts == [{}, {"no_statement": 2}]
    strata = {entry["value"]: entry["numbers"][0]["excluded"] for entry in figure["per_stratum"]}
    assert strata == {"a": {}, "b": {"no_statement": 2}}


def test_decisions_and_kinds_of_hallucination_have_their_own_denominators():
    labelled = asks(labelled_set(), "hallucination_type", "decision_relevance")
    rows = [
        ("unsupported", "subtle baseless info", "decision-relevant"),
        ("contradicted", "evident conflict", "decision-relevant"),
        ("supported", None, "decision-relevant"),
        ("unsupported", "evident baseless info", "not decision-relevant"),
        ("supported", None, None),
    ]
    for number, (label, kind, relevance) in enumerate(rows):
        response = labelled.response(f"r{number}")
        claim = labelled.claim(response, label, label)
        if kind:
            says(labelled, response, "hallucination_type", kind, claim=claim)
        if relevance:
            says(labelled, response, "decision_relevance", relevance, claim=claim)
    _figures, optional = shown(labelled)

    (decision,) = optional["decision_hallucination"]["numbers"]
    assert (decision["numerator"], decision["denominator"], decision["unit"]) == (2, 3, "decision")
    assert decision["excluded"] == {"no_relevance": 1, "not_decision_critical": 1}
    assert shares(optional["hallucination_axes"]) == {
        "Subtle, of either kind": (1, 3),
        "Conflict, of any kind": (1, 3),
    }
    assert optional["hallucination_type"]["numbers"][0]["excluded"] == {"not_asked": 2}


def test_answer_rate_and_length_stand_beside_the_rate_system_by_system():
    labelled = labelled_set()
    for name, text, verdict in (("a", "one two three", "ANSWERED"), ("b", "no", "REFUSED")):
        response = labelled.response(name, run=labelled.run(name), text=text)
        labelled.verdict_on_response(response, verdict, verdict)
    figures, _optional = shown(labelled)

    assert figures["abstention"]["answer_rate"]["value"] == 0.5
    assert figures["abstention"]["answer_length"]["mean"]["value"] == 3
    assert [entry["abstention"]["answer_rate"]["value"] for entry in figures["per_system"]] == [1.0, 0.0]
    assert figures["per_system"][1]["abstention"]["answer_length"]["mean"]["undefined"] == "zero_denominator"


def test_each_repeat_of_a_system_stands_by_itself():
    labelled = labelled_set()
    item = labelled.item("i", answerable=True)
    for sample, verdict in ((1, "REFUSED"), (2, "ANSWERED")):
        response = labelled.response(f"r{sample}", item=item, sample=sample)
        labelled.verdict_on_response(response, verdict, verdict)
    figures, _optional = shown(labelled)

    assert [
        (entry["sample"], entry["abstention"]["over_refusal"]["value"]) for entry in figures["per_sample"]
    ] == [(1, 1.0), (2, 0.0)]


# A judge


@pytest.fixture
def relevant(evalset):
    """Sixty responses with two passages each; people and judge agree on nearly all of them."""
    labelled = asks(labelled_set(evalset=evalset), "context_relevance")
    run = labelled.run("only one")
    verdicts = []
    for number in range(60):
        response = labelled.response(f"r{number}", run=run)
        for passage in served(response, "p1", "p2"):
            label = "relevant" if (number + passage.rank) % 3 else "irrelevant"
            says(labelled, response, "context_relevance", label, passage=passage)
            verdicts.append((response, passage, label))
    judge_run = judged(labelled, [], dimension="context_relevance")
    Verdict.objects.bulk_create(
        Verdict(
            run=judge_run,
            response=response,
            passage=passage,
            dimension="context_relevance",
            state="valid",
            label=label,
            resolved_model="model-x-2026",
        )
        for response, passage, label in verdicts
    )
    return labelled, as_now(judge_run)


def test_a_judge_on_an_optional_dimension_is_withheld_until_its_own_gate_is_passed(client, lead, relevant):
    labelled, run = relevant
    client.force_login(lead)
    address = page_of("rates", source="judge:judge-a")
    before = client.get(address).content.decode()
    assert "Uncalibrated" in before and "66.7" not in before

    report = build_report(judge_run=run, round=labelled.round, dimension="context_relevance")
    assert report.gate_state == "TRUSTED", report.payload["gate"]["sentence"]
    text = text_of(client.get(address))
    assert "66.7" in text
    assert "80 of 120" in text


def test_a_figure_of_two_dimensions_counts_the_systems_that_both_open():
    """A whole that holds only together is not cut apart: the part would tell of one system alone."""
    labelled = labelled_set()
    runs = {run.pk: run for run in (labelled.run(name) for name in "abc")}
    a, b, c = runs
    apart = _Open(None, frozenset({a, b}), frozenset({a, b}))
    one = _Open(None, frozenset({b, c}), frozenset({b, c}))
    together = _Open(None, frozenset({a, b, c}), frozenset())

    both = _scope([apart, one], runs)
    assert (both.counted, both.shown) == ({b}, {b})
    assert _scope([together, together], runs).counted == {a, b, c}
    assert not _scope([apart, together], runs).counted
    assert not _scope([apart, _Open(None, frozenset({c}), frozenset({c}))], runs).counted


def test_the_page_shows_the_figures_with_their_definition_and_the_command(client, lead, relevant):
    client.force_login(lead)
    page = client.get(page_of("rates")).content.decode()
    assert "Relevance of the served passages" in page
    assert f'href="{reverse("calibration:method")}#label-shares"' in page
    assert "rates roles@1 --source gold --unit claim --round 1 --json" in page


def test_parts_of_a_split_claim_count_in_its_place_in_every_dimension():
    labelled = asks(labelled_set(), "decision_relevance", "citation_recall", "citation_support")
    response = labelled.response("r")
    passages = served(response, "p1", "p2")
    whole = labelled.claim(response, "unsupported", "unsupported", source_ids=["p1", "p2"])
    parts = [
        labelled.claim(response, gold="unsupported", parent=whole, source_ids=["p1", "p2"]) for _ in range(2)
    ]
    for claim in (whole, *parts):
        relevant = "not decision-relevant" if claim == whole else "decision-relevant"
        says(labelled, response, "decision_relevance", relevant, claim=claim)
        says(labelled, response, "citation_recall", "fully supported", claim=claim)
        for passage in passages:
            support = "no support" if claim == whole else "full support"
            says(labelled, response, "citation_support", support, claim=claim, passage=passage)
    _figures, optional = shown(labelled)
    assert shares(optional["decision_relevance"])["decision-relevant"] == (2, 2)
    assert shares(optional["citation_support"])["full support"] == (4, 4)
    (rate,) = optional["decision_hallucination"]["numbers"]
    assert (rate["numerator"], rate["denominator"], rate["excluded"]) == (2, 2, {})
    recall, precision = optional["citation_scores"]["numbers"]
    assert (recall["value"], precision["value"], recall["excluded"]) == (1, 1, {})
