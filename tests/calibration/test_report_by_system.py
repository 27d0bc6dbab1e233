"""A judge that is fine over all systems and useless on one: XSTest's real labels."""

import copy
import csv
import io
import json

import pytest
from bs4 import BeautifulSoup
from django.core.management import call_command
from django.test import override_settings
from django.urls import reverse

from annotate.models import Round
from calibration.gate import GateEvidence, GatePolicy, decide_by_system
from calibration.models import JudgeRun
from calibration.reports import build_report, closed_systems, judge_rates
from calibration.stats import cohen_kappa
from evalsets.models import EvalSetVersion, Membership
from tests.calibration.labelled import from_codes, judged, labelled_set
from tests.calibration.test_report import a_good_judge, as_now, command, report_of

pytestmark = pytest.mark.django_db

MISTRAL = "Mistral-7B-Instruct, no system prompt"
# The judge is far behind two people who nearly always agree: with less it is trusted nowhere.
LENIENT = {"non_inferiority_margin": 0.4, "min_judge_agreement": 0.5, "min_youden": 0.4}


def column(shared, name):
    with (shared / "data" / "pairs" / name).open(encoding="utf-8", newline="") as file:
        return {row["item"]: (row["grader_a"], row["grader_b"]) for row in csv.DictReader(file)}


def test_three_classes_of_xstest_pooled_and_on_one_system(shared):
    """Pooled kappa .634, on one model .082: `expected.json` of the published labels."""
    verdicts = column(shared, "xstest_human_vs_gpt4_judge.csv")
    people = column(shared, "xstest_3class.csv")
    place = {"1_full_compliance": "ANSWERED", "2_full_refusal": "REFUSED", "3_partial_refusal": "CLARIFY"}
    items = [item for item in verdicts if item in people]
    judge = [place[verdicts[item][1]] for item in items]
    gold = [place[verdicts[item][0]] for item in items]
    evidence = GateEvidence(
        "abstention",
        {name: [place[people[item][k]] for item in items] for k, name in enumerate(("one", "two"))},
        judge,
        [item.split("/")[1] for item in items],
        gold=gold,
        gold_complete=True,
        systems=[item.split("/")[0] for item in items],
    )
    pooled = cohen_kappa(gold, judge, labels=tuple(place.values()))
    assert (pooled.n, round(pooled.value, 6)) == (2239, 0.634465)

    found = decide_by_system(evidence, GatePolicy(min_judge_agreement=0.55, non_inferiority_margin=0.4))
    collapsed = next(c for c in found["mistralinstruct"].conditions if c.name == "judge_agreement")
    assert collapsed.estimate == pytest.approx(0.081771, abs=5e-7)
    assert found["mistralinstruct"].state == "NOT_TRUSTED"
    assert any(decision.state == "TRUSTED" for decision in found.values())


def xstest_judged_here(path):
    """XSTest in two classes; the judge's verdicts as if it had been run here, so that it can be trusted."""
    words = ("import_evalset", str(path), "--name", "xstest", "--with-labels", "--freeze", "--json")
    call_command(*words, stdout=io.StringIO())
    version = EvalSetVersion.objects.get(evalset__slug="xstest")
    run = JudgeRun.objects.get(version=version, judge__name="gpt-4")
    round = Round.objects.get(version=version)
    JudgeRun.objects.filter(pk=run.pk).update(
        origin="run", rubric_version=round.rubric_version, requested_fingerprint="f" * 64
    )
    run = as_now(JudgeRun.objects.get(pk=run.pk))
    with override_settings(TRUST_GATE=LENIENT):
        return version, run, build_report(judge_run=run, round=round, dimension="abstention")


@pytest.fixture(scope="module")
def imported(shared, kept):
    return kept(xstest_judged_here, shared / "data" / "dev" / "xstest.jsonl")


@pytest.fixture
def xstest(imported, db, settings):
    settings.TRUST_GATE = LENIENT
    return copy.deepcopy(imported)


def test_one_system_is_withheld_in_every_answer_while_the_others_show(xstest, client, person):
    _version, run, report = xstest
    assert report.gate_state == "TRUSTED", report.payload["gate"]["sentence"]
    # 164 responses; expected kappa .27 with a grader (mean of both), as read off the labels by hand.
    assert list(closed_systems(report)) == [MISTRAL]
    mistral = next(entry for entry in report.payload["per_system"] if entry["value"] == MISTRAL)
    failed = {c["name"]: c for c in mistral["gate"]["conditions"] if c["passed"] is False}
    assert failed["judge_agreement"]["estimate"] == pytest.approx(0.27, abs=0.005)

    shown = command("rates", "xstest@1", "--source", "judge:gpt-4")
    by_system = {entry["system"]: entry["abstention"] for entry in shown["per_system"]}
    assert by_system.pop(MISTRAL)["withheld"]["state"] == "NOT_TRUSTED"
    assert len(by_system) == 4
    assert all(entry["over_refusal"]["value"] is not None for entry in by_system.values())
    assert shown["left_out_systems"] == {"abstention": [{"system": MISTRAL, "state": "NOT_TRUSTED"}]}

    # The whole counts the other four only, so that the fifth cannot be told by subtracting.
    for part in ("numerator", "denominator"):
        whole = sum(entry["over_refusal"][part] for entry in by_system.values())
        assert shown["abstention"]["over_refusal"][part] == whole
    withheld = next(entry for entry in shown["per_system"] if entry["system"] == MISTRAL)
    assert set(withheld) == {"system", "abstention"} and set(withheld["abstention"]) == {"withheld"}

    boss = person("boss")
    Membership.objects.create(person=boss, evalset=run.version.evalset, role="lead")
    client.force_login(boss)
    page = BeautifulSoup(
        client.get(reverse("calibration:rates", args=["xstest", 1]), {"source": "judge:gpt-4"}).content,
        "html.parser",
    )
    row = page.find("th", string=MISTRAL).parent
    assert "withheld" in row.get_text() and "%" not in row.get_text()
    assert "Left out of every rate over several systems" in page.get_text()
    at = ["xstest", 1, run.number, "abstention"]
    report_page = client.get(reverse("calibration:report", args=at)).content.decode()
    assert f'Not for <bdi class="text">{MISTRAL}</bdi>' in report_page
    rows = BeautifulSoup(report_page, "html.parser").select("table.matrix tbody th")
    assert rows and "sum" not in [row.get_text(strip=True) for row in rows], "sums of the judge are its rate"


def test_the_check_fails_on_a_system_without_trust(xstest):
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command(
            "check", "xstest@1", "--judge", "gpt-4", "--max-rate", "over_refusal=1", "--json", stdout=out
        )
    result = json.loads(out.getvalue())
    gates = {(line["dimension"], line["system"]): line for line in result["gate"]}
    assert gates["abstention", None]["passed"] is True
    assert gates["abstention", MISTRAL]["passed"] is False
    assert MISTRAL in gates["abstention", MISTRAL]["message"]
    limits = {line["system"]: line["passed"] for line in result["rates"]}
    assert limits.pop(MISTRAL) is False
    assert all(limits.values()) and len(limits) == 5


def test_systems_too_small_to_be_told_apart_are_counted_together():
    labelled, run = _spread_over(3)
    report = report_of(labelled, run)
    assert report.gate_state == "TRUSTED"
    assert {entry["gate"]["state"] for entry in report.payload["per_system"]} == {"INSUFFICIENT"}
    rates = judge_rates(judge=run.judge, version=labelled.version, unit="claim")
    assert rates["hallucination"]["n"] == 120
    assert all("withheld" in entry["hallucination"] for entry in rates["per_system"])
    assert rates["left_out_systems"] == {}


def test_no_rate_is_left_where_every_system_fails_or_is_too_small():
    labelled, run = _spread_over(3)
    report_of(labelled, run)
    report = run.reports.get()
    payload = json.loads(json.dumps(report.payload))
    payload["per_system"][0]["gate"]["state"] = "NOT_TRUSTED"
    type(report).objects.create(
        judge_run=run,
        round=labelled.round,
        dimension="grounding",
        number=2,
        gate_state="TRUSTED",
        payload=payload,
    )
    rates = judge_rates(judge=run.judge, version=labelled.version, unit="claim")
    assert rates["hallucination"]["withheld"]["state"] == "NOT_TRUSTED"
    assert all("withheld" in entry["hallucination"] for entry in rates["per_system"])


def _spread_over(systems):
    """The good judge of the other tests, its sixty responses over several systems."""
    labelled, run = from_codes(a_good_judge(), gold_from_graders=True)
    others = [labelled.run(f"system {number}") for number in range(1, systems)]
    for number, response in enumerate(labelled.version.responses.order_by("pk")):
        if number % systems:
            response.run = others[number % systems - 1]
            response.save()
    run.system_runs.set(labelled.runs)
    return labelled, as_now(run)


def test_a_judge_of_a_systems_family_is_warned_about_whatever_the_spelling(client, lead, evalset):
    labelled = labelled_set(evalset=evalset)
    system = labelled.run("kin").system
    type(system).objects.filter(pk=system.pk).update(family="Llama ")
    response = labelled.response("r1", run=labelled.runs[0])
    claim = labelled.claim(response, "supported", "supported")
    run = judged(labelled, [(response, claim, "supported")])
    type(run.judge).objects.filter(pk=run.judge.pk).update(family="llama")
    report = report_of(labelled, JudgeRun.objects.get(pk=run.pk))
    assert report.payload["judge"]["same_family_as_a_system"] is True
    assert report.payload["judge"]["systems_of_its_family"] == ["kin"]
    client.force_login(lead)
    page = client.get(
        reverse("calibration:report", args=["roles", 1, run.number, "grounding"])
    ).content.decode()
    assert "The judge is of the same model family as kin" in page
