"""Retrieval beside generation: the worked examples through the database, and whom wrong answers point to."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from calibration.retrieving import retrieval_figures, scored, wrong_answers
from tests.calibration.labelled import labelled_set
from tests.calibration.test_optional_rates import asks, says, served
from tests.calibration.test_report_pages import text_of, url

pytestmark = pytest.mark.django_db


def figures_of(labelled, k=5):
    return retrieval_figures(scored(runs=labelled.runs, k=k))


def sorted_out(labelled, source="gold"):
    return wrong_answers(
        scored(runs=labelled.runs), version=labelled.version, round=labelled.round, source=source
    )


def test_served_passages_are_scored_as_in_the_worked_examples():
    """EX-R1 (without a repeat, which the tables refuse): precision .4, recall 1, nDCG; EX-R3: 0, 0, 0."""
    labelled = labelled_set()
    first = labelled.response("r1", item=labelled.item("i1", expected_passages=["d1", "d3"]))
    served(first, "d1", "d2", "d3")
    figures = figures_of(labelled)
    assert figures["precision"]["value"] == pytest.approx(0.4)
    assert figures["recall"]["value"] == 1
    assert figures["ndcg"]["value"] == pytest.approx(0.919721, abs=1e-6)

    labelled.response("r3", item=labelled.item("i3", expected_passages=["d9"]))
    labelled.response("nothing expected", item=labelled.item("i4"))
    figures = figures_of(labelled)
    assert figures["recall"]["value"] == pytest.approx(0.5)
    assert figures["recall"]["excluded"] == {"no_expectation": 1}
    assert figures["recall"]["n"] == 2


def test_documents_are_counted_once_and_systems_stand_apart():
    labelled = labelled_set()
    item = labelled.item("i", expected_documents=["A", "B"], strata={"language": "de"})
    for name, documents in (("one", ["A", "A"]), ("both", ["A", "B"])):
        response = labelled.response(name, item=item, run=labelled.run(name))
        for passage, document in zip(served(response, "p1", "p2"), documents, strict=True):
            type(passage).objects.filter(pk=passage.pk).update(document=document)
    figures = figures_of(labelled)
    assert [entry["document_recall"]["value"] for entry in figures["per_system"]] == [0.5, 1.0]
    (german,) = figures["per_stratum"]
    assert (german["name"], german["document_recall"]["value"]) == ("language", 0.75)


@pytest.fixture
def wrong(evalset):
    """Four wrong answers: one owed a passage, one strayed, one without expectation, one called incorrect."""
    labelled = asks(labelled_set(evalset=evalset), "correctness")
    rows = [
        ("owed", ["p1", "p9"], "unsupported"),
        ("strayed", ["p1"], "contradicted"),
        ("unknown", None, "unsupported"),
        ("fine", ["p1"], "supported"),
        ("incorrect", ["p1"], "supported"),
        ("refused", ["p9"], "unsupported"),
    ]
    for name, expected, label in rows:
        response = labelled.response(name, item=labelled.item(name, expected_passages=expected))
        served(response, "p1", "p2")
        labelled.claim(response, label, label)
        said = "REFUSED" if name == "refused" else "ANSWERED"
        labelled.verdict_on_response(response, said, said)
        if name == "incorrect":
            says(labelled, response, "correctness", "incorrect")
    return labelled


def test_each_wrong_answer_points_to_the_retriever_or_to_the_generator(wrong):
    found = sorted_out(wrong)
    assert found["by_cause"] == {
        "retriever owes a passage": 1,
        "generator strayed": 2,
        "no expectation recorded": 1,
    }
    (owed,) = [case for case in found["cases"] if case["missing"]]
    assert owed["missing"] == ["p9"]
    assert sorted_out(wrong, "grader:nobody")["wrong"] == 0


def test_the_page_shows_scores_causes_and_the_command(client, lead, grader_a, wrong):
    client.force_login(lead)
    text = text_of(client.get(url("retrieval", k=2)))
    assert "Recall@2" in text and "the retriever owes a passage" in text and "p9" in text
    assert "retrieval roles@1 --source gold --k 2 --round 1 --json" in text
    assert client.get(url("retrieval", k=0)).status_code == 400
    assert client.get(url("retrieval", source="judge:x")).status_code == 400
    client.force_login(grader_a)
    assert client.get(url("retrieval")).status_code == 404


def test_without_expectations_the_page_says_that_nothing_can_be_scored(client, lead, evalset):
    labelled = labelled_set(evalset=evalset)
    client.force_login(lead)
    assert "no responses yet" in text_of(client.get(url("retrieval")))
    labelled.response("r")
    assert "retrieval cannot be scored" in text_of(client.get(url("retrieval")))


def test_the_command_prints_the_same(wrong):
    out = StringIO()
    call_command("retrieval", "roles@1", "--json", stdout=out)
    found = json.loads(out.getvalue())
    assert found["wrong_answers"]["wrong"] == 4
    assert {case["response"] for case in found["wrong_answers"]["cases"]} == {
        "owed",
        "strayed",
        "unknown",
        "incorrect",
    }
    with pytest.raises(CommandError, match="--k"):
        call_command("retrieval", "roles@1", "--k", "0", stdout=out)
