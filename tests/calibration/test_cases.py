"""Where judge and gold differ, target by target, and what becomes of gold that was wrong."""

import json

import pytest
from bs4 import BeautifulSoup
from django.urls import reverse

from annotate.models import Annotation
from calibration.cases import Differences, NoDoubt, doubt_gold, reason_of
from calibration.models import GoldDoubt, Verdict
from calibration.reports import build_report
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now

pytestmark = pytest.mark.django_db

HOSTILE = '<script>alert(1)</script>"><img src=x onerror=alert(1)>'


@pytest.fixture
def differing(evalset):
    """Twelve claims of two systems: the judge differs on three, twice in the same way."""
    labelled = labelled_set(evalset=evalset)
    verdicts = []
    for number in range(12):
        item = labelled.item(f"i{number}", strata={"language": "de" if number < 4 else "en"})
        run = labelled.runs[number % 2] if len(labelled.runs) > 1 else labelled.run(f"system {number}")
        response = labelled.response(f"r{number}", item=item, run=run)
        claim = labelled.claim(response, "supported", "supported")
        said = {0: "contradicted", 2: "contradicted", 5: "unsupported"}.get(number, "supported")
        verdicts.append((response, claim, said))
    labelled.freeze()
    run = judged(labelled, verdicts)
    run.verdicts.filter(response__response_id="r0").update(
        raw_output=json.dumps({"reason": f"it contradicts {HOSTILE}", "label": "contradicted"})
    )
    Annotation.objects.filter(response__response_id="r0", grader__name="ada").update(
        note=f"see page 3 {HOSTILE}"
    )
    return labelled, run, build_report(judge_run=run, round=labelled.round, dimension="grounding")


def url(name, run, query=""):
    return reverse(f"calibration:{name}", args=["roles", 1, run.number, "grounding"]) + query


def text_of(response):
    return " ".join(BeautifulSoup(response.content, "html.parser").get_text(" ").split())


def test_differences_are_counted_by_pair_system_and_stratum(differing):
    _labelled, _run, report = differing
    found = Differences(report)
    assert (found.n_differ, found.n_both, len(found)) == (3, 12, 3)
    assert found.pairs == [
        {"row": "supported", "column": "contradicted", "n": 2},
        {"row": "supported", "column": "unsupported", "n": 1},
    ]
    assert {(group.key, group.differ, group.n) for group in found.groups} == {
        ("system=system 0", 2, 6),
        ("system=system 1", 1, 6),
        ("language=de", 2, 4),
        ("language=en", 1, 8),
    }


@pytest.mark.parametrize(
    ("chosen", "names"),
    [
        ({}, ["r0", "r2", "r5"]),
        ({"column": "unsupported"}, ["r5"]),
        ({"row": "supported", "column": "contradicted", "group": "language=de"}, ["r0", "r2"]),
        ({"group": "language=en"}, ["r5"]),
        ({"group": "language=fr"}, []),
        ({"row": "unverifiable"}, []),
    ],
)
def test_what_is_chosen_is_listed(differing, chosen, names):
    _labelled, _run, report = differing
    assert sorted(case.response.response_id for case in Differences(report, **chosen)[0:50]) == names


def test_the_judges_reason_stands_beside_the_graders_notes(client, lead, differing):
    _labelled, run, _report = differing
    client.force_login(lead)
    page = client.get(url("report_cases", run))
    text = text_of(page)
    assert "it contradicts <script>" in text and "see page 3 <script>" in text
    assert "<script>alert" not in page.content.decode()
    assert "gave no reason" in text
    assert "12 targets have both a gold label and a verdict; 3 differ." in text


@pytest.mark.parametrize("raw", ["", "no JSON", "[1]", '{"reason": 3}', '{"label": "supported"}'])
def test_an_answer_without_a_reason_gives_none(raw):
    assert reason_of(Verdict(raw_output=raw)) == ""


def test_gold_was_wrong_is_logged_and_leads_to_the_decision_and_both_numbers_stay(client, lead, differing):
    labelled, run, report = differing
    wrong = labelled.version.responses.get(response_id="r0").claims.get()
    client.force_login(lead)
    values = {"target": str(wrong.pk), "note": "the passage says otherwise"}
    for _twice in range(2):
        answer = client.post(url("doubt_gold", run), values)
    assert answer.status_code == 302 and "/disagreements/" in answer["Location"]
    logged = GoldDoubt.objects.get()
    assert (logged.gold, logged.verdict, logged.by) == ("supported", "contradicted", lead)

    decision = labelled.round.adjudications.create(
        response=wrong.response,
        claim=wrong,
        dimension="grounding",
        label="contradicted",
        reason="other",
        by=lead,
    )
    wrong.gold.update(label="contradicted", source="adjudicated", adjudication=decision)
    after = build_report(judge_run=run, round=labelled.round, dimension="grounding")

    before_kappa, after_kappa = (
        made.payload["agreement"]["judge_vs_gold"]["kappa"]["value"] for made in (report, after)
    )
    assert after_kappa == before_kappa, "the judge's own number keeps the label of before"
    revised = after.payload["revised"]
    assert (revised["doubts"], revised["changed"]) == (1, 1)
    assert revised["cohen_kappa"]["value"] > after_kappa
    page = text_of(client.get(url("report", run)))
    assert "With gold as decided with verdicts in view (1 label changed) κ would be" in page
    assert "decided anew with a verdict in view: contradicted" in text_of(
        client.get(url("report_cases", run))
    )


def test_only_a_difference_can_be_doubted_and_only_with_a_reason(client, lead, stranger, differing):
    labelled, run, report = differing
    same = labelled.version.responses.get(response_id="r1").claims.get()
    differs = labelled.version.responses.get(response_id="r2").claims.get()
    for target, note, message in ((same.pk, "why", "do not differ"), (differs.pk, " ", "Say why")):
        with pytest.raises(NoDoubt, match=message):
            doubt_gold(report=report, target=str(target), note=note, person=lead)
    client.force_login(lead)
    assert client.get(url("doubt_gold", run)).status_code == 405
    assert client.post(url("doubt_gold", run), {"target": "x"}).status_code == 400
    assert "do not differ" in text_of(
        client.post(url("doubt_gold", run), {"target": same.pk, "note": "n"}, follow=True)
    )
    client.force_login(stranger)
    assert client.post(url("doubt_gold", run), {"target": differs.pk, "note": "n"}).status_code == 404
    assert not GoldDoubt.objects.exists()


def test_an_optional_dimension_is_measured_too_and_has_no_rate(client, lead, evalset):
    labelled = labelled_set(evalset=evalset)
    names = ("clear", "vague", "wrong")
    labelled.round.rubric_version.dimensions.create(
        name="tone", target="response", question="How?", labels=[{"name": name} for name in names], position=3
    )
    verdicts = []
    for number in range(120):
        response = labelled.response(f"r{number}")
        label = names[number % 3]
        labelled.label(response, None, "tone", (label, label))
        verdicts.append((response, None, "vague" if number == 0 else label))
    labelled.freeze()
    run = judged(labelled, verdicts, dimension="tone")
    report = build_report(judge_run=as_now(run), round=labelled.round, dimension="tone")

    assert report.gate_state == "TRUSTED", report.payload["gate"]["sentence"]
    conditions = {entry["name"]: entry["passed"] for entry in report.payload["gate"]["conditions"]}
    assert [name for name, passed in conditions.items() if passed is None] == [
        "responses",
        "gold_positive",
        "gold_negative",
        "youden",
    ]
    assert "rates" not in report.payload
    client.force_login(lead)
    at = ["roles", 1, run.number, "tone"]
    assert "No rate is computed" in text_of(client.get(reverse("calibration:report", args=at)))
    text = text_of(client.get(reverse("calibration:report_cases", args=at) + "?row=clear&column=vague"))
    assert "Gold says clear, judge-a says vague" in text
