"""A judge that was asked three times about each claim: its rates are means, wherever they are met."""

import csv
import io
import json

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.urls import reverse

from annotate import rubric_text
from calibration.comparing import Side, _errors, comparison
from calibration.design import record_design
from calibration.drift import charts_of, sentinel_figures
from calibration.gold_export import export_gold
from calibration.models import CalibrationReport, CalibrationSplit, Verdict
from calibration.recompute import recompute
from calibration.reports import build_report, judge_rates, standing
from calibration.sentinels import plan_sentinels, start_sentinel
from calibration.spending import NO_BUDGET
from calibration.stats.proportions import two_proportion_test
from calibration.summaries import build_summary
from evalsets.models import EvalSet, Item, Membership
from tests.api import Api
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import as_now
from tests.calibration.test_report_pages import text_of

pytestmark = pytest.mark.django_db
LABELS = ("supported", "contradicted", "unsupported")


def set_with_a_repeated_judge(person):
    """Two systems of sixty responses, two claims each, and a judge that says what gold says, three times.

    In the first system the second and third call about twelve claims that are supported says unsupported, and
    in the second system one call about six claims fails.
    """
    evalset = EvalSet.objects.create(slug="thrice", name="Thrice")
    Membership.objects.create(person=person, evalset=evalset, role="lead")
    labelled = labelled_set(evalset=evalset)
    verdicts = []
    items = [labelled.item(f"i{number}", strata={"half": "ab"[number % 2]}) for number in range(60)]
    for name in ("before", "after"):
        run = labelled.run(name)
        for number, item in enumerate(items):
            response = labelled.response(f"{name}{number}", item=item, run=run)
            for place, label in enumerate(("supported", LABELS[number % 3])):
                claim = labelled.claim(response, label, label)
                said = (label,) * 3
                if name == "before" and place == 0 and number < 12:
                    said = (label, "unsupported", "unsupported")
                elif name == "after" and place == 1 and number < 6:
                    said = (label, "timeout", label)
                verdicts.append((response, claim, said))
    labelled.freeze()
    run = as_now(judged(labelled, verdicts, repeats=3))
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.gate_state == "TRUSTED"
    return labelled, run, report


@pytest.fixture(scope="module")
def _kept_set(kept):
    def make():
        person = get_user_model().objects.create_user("of-thrice", password="of-thrice-password")
        return person, set_with_a_repeated_judge(person)

    return kept(make)


@pytest.fixture
def person(_kept_set, db):
    return _kept_set[0]


@pytest.fixture
def repeated(_kept_set, db):
    return _kept_set[1]


def address(name, *args):
    return reverse(f"calibration:{name}", args=["thrice", 1, *args])


# By hand: each system has 60 claims that are supported and 20 each of the three labels, so 40 bad of 120. In
# the first system 12 supported claims count as 2/3 unsupported: 8 more, 48 of 120; together 88 of 240.
BEFORE, AFTER, TOGETHER = 48 / 120, 40 / 120, 88 / 240


def test_every_rate_is_the_mean_of_the_runs(repeated):
    labelled, run, _report = repeated
    figures = judge_rates(judge=run.judge, version=labelled.version, unit="claim")
    assert figures["hallucination"]["value"] == pytest.approx(TOGETHER)
    assert figures["hallucination"]["denominator"] == 240
    assert [entry["hallucination"]["value"] for entry in figures["per_system"]] == pytest.approx(
        [BEFORE, AFTER]
    )
    # Even items: 6 of the 12, so 4 more than 40 of 120; the odd ones alike.
    by_half = [entry["hallucination"]["value"] for entry in figures["per_stratum"]]
    assert by_half == pytest.approx([44 / 120, 44 / 120])
    assert figures["counts"]["unsupported"] == pytest.approx(48)
    assert figures["repeats"] == {
        "grounding": {
            "runs": 3,
            "targets": 240,
            "labels": 714,
            "targets_of_fewer_runs": 6,
            "labels_lost": 6,
        }
    }
    assert figures["per_system"][0]["repeats"]["grounding"]["labels_lost"] == 0
    # Of the 60 responses 40 have a bad claim anyway; of the twelve, items 0, 3, 6 and 9 have one in two of
    # the three runs only.
    of_responses = judge_rates(judge=run.judge, version=labelled.version, unit="response")
    assert of_responses["per_system"][0]["hallucination"]["numerator"] == pytest.approx(40 + 4 * 2 / 3)


def test_it_is_the_mean_of_what_each_run_gives_by_itself(repeated):
    """The first system has no failed call: its three runs by themselves give 40, 52 and 52 of 120."""
    labelled, run, _report = repeated
    rows = run.verdicts.filter(response__run=labelled.runs[0]).values_list("run_index", "label")
    bad = np.zeros(3)
    for index, label in rows:
        bad[index - 1] += label != "supported"
    assert bad.tolist() == [40, 52, 52]
    figures = judge_rates(judge=run.judge, version=labelled.version, unit="claim")
    assert figures["per_system"][0]["hallucination"]["value"] == pytest.approx(bad.mean() / 120)


def test_gate_and_kappa_use_the_first_run(repeated):
    """The first call about each claim says what gold says: kappa 1, although the later ones do not."""
    _labelled, _run, report = repeated
    payload = report.payload
    [with_gold] = [pair for pair in payload["agreement"]["pairs"] if pair["a_kind"] == "gold"]
    assert (with_gold["cohen_kappa"]["value"], with_gold["n"]) == (1, 240)
    assert (payload["judge"]["run_index_paired"], payload["judge"]["runs_in_rates"]) == (1, 3)
    assert (payload["verdicts"]["total"], payload["verdicts"]["failed"]) == (240, 0)
    assert payload["verdicts"]["every_run"]["failures"] == {"timeout": 6}
    assert payload["rates"]["hallucination"]["value"] == pytest.approx(TOGETHER)


def test_page_file_command_and_api_say_the_same_and_how_many_runs(client, person, repeated):
    client.force_login(person)
    source = {"source": "judge:judge-a"}
    page = text_of(client.get(address("rates"), source))
    assert "36.7 %" in page and "88 of 240" in page
    assert "grounding: the mean of 3 runs. Each of 240 targets counts by the share of its runs" in page
    assert "6 of them lack a valid verdict in some run (6 in all) and count by the others." in page
    rows = list(csv.DictReader(io.StringIO(
        client.get(address("rates_chart", "strata-hallucination", "csv"), source).content.decode()
    )))  # fmt: skip
    assert [float(row["value"]) for row in rows] == pytest.approx([44 / 120, 44 / 120])
    out = io.StringIO()
    call_command("rates", "thrice@1", "--source", "judge:judge-a", "--json", stdout=out)
    by_command = json.loads(out.getvalue())
    by_api = Api(person, "read").get("/evalsets/thrice/versions/1/rates/", **source).json()
    for figures in (by_command, by_api):
        assert figures["hallucination"]["value"] == pytest.approx(TOGETHER)
        assert figures["repeats"]["grounding"]["runs"] == 3
    words = io.StringIO()
    call_command("rates", "thrice@1", "--source", "judge:judge-a", stdout=words)
    assert "grounding: the mean of 3 runs of each of 240 targets" in words.getvalue()


def test_the_report_and_the_page_of_the_run_say_which_figure_uses_what(client, person, repeated):
    _labelled, run, _report = repeated
    client.force_login(person)
    report = text_of(client.get(address("report", run.number, "grounding")))
    assert "The gate, kappa and the confusion table compare the first one with people" in report
    assert "the mean of 3 runs" in report
    page = client.get(address("judge_run", run.number))
    [entry] = page.context["repeats"]
    # Complete in all runs: 240 - 6 claims, 12 of them not unanimous.
    assert (entry.found.unanimous.numerator, entry.found.unanimous.denominator) == (222, 234)
    assert entry.share_within.low is not None
    assert "use the first call of each target; the rates, once shown, use the mean of all" in text_of(page)


def sides_of(labelled):
    return (
        Side(run=run, source="judge:judge-a", unit="claim", round=labelled.round) for run in labelled.runs
    )


def test_a_comparison_is_refused_where_only_later_calls_err_otherwise_on_one_side(client, person, repeated):
    """Specificity by the means: (80 - 12 * 2/3) / 80 = 0.9 before and 1 after. First calls never err."""
    labelled, run, _report = repeated
    before, after = sides_of(labelled)
    assert not comparison(before=before, after=after).get("rates")
    errors = _errors(run, labelled.round, "grounding", (before.run, after.run))
    assert errors["equal"] is False
    assert errors["specificity_p"] == pytest.approx(two_proportion_test(72, 80, 80, 80))
    assert errors["sensitivity_p"] == 1.0
    assert errors["youden"] == pytest.approx(152 / 160)


def test_items_of_the_prompt_are_no_errors_of_a_comparison(repeated):
    """Without the items that it errs on the judge errs nowhere."""
    labelled, run, _report = repeated
    labels: dict[int, set[str]] = {}
    for claim, label in run.verdicts.exclude(label="").values_list("claim", "label"):
        labels.setdefault(claim, set()).add(label)
    doubted = [claim for claim, said in labels.items() if len(said) > 1]
    items = Item.objects.filter(responses__claims__in=doubted).values_list("item_id", flat=True)
    record_design(round=labelled.round, design="random", seed=1, few_shot=items)
    errors = _errors(run, labelled.round, "grounding", labelled.runs)
    assert (errors["equal"], errors["specificity_p"], errors["youden"]) == (True, 1.0, 1.0)


def test_a_comparison_takes_the_means_of_both_sides(client, person, repeated, monkeypatch):
    errors = {"equal": True, "sentence": "", "youden": 0.8}
    monkeypatch.setattr("calibration.comparing._errors", lambda *_of: errors)
    labelled, _run, _report = repeated
    before, after = sides_of(labelled)
    found = comparison(before=before, after=after)
    assert found["youden"] == {"grounding": 0.8}
    rate = found["rates"][0]
    assert rate["before"]["value"] == pytest.approx(BEFORE)
    assert rate["after"]["value"] == pytest.approx(AFTER)
    assert rate["difference"]["value"] == pytest.approx(AFTER - BEFORE)
    assert found["repeats"]["grounding"]["labels"] == 714
    client.force_login(person)
    query = {
        "before": "1:1",
        "after": "1:2",
        "source_before": "judge:judge-a",
        "source_after": "judge:judge-a",
    }
    page = text_of(client.get(address("compare"), query))
    assert "grounding: the mean of 3 runs" in page and "48 of 120" in page


def test_the_one_page_report_quotes_the_mean_and_says_so(client, person, repeated):
    labelled, _run, _report = repeated
    summary = build_summary(version=labelled.version, round=labelled.round)
    [judge] = summary.payload["judges"]
    assert judge["rates"]["hallucination"]["value"] == pytest.approx(TOGETHER)
    client.force_login(person)
    page = text_of(client.get(address("summary", summary.number)))
    assert "grounding by judge-a: the mean of 3 runs of each target" in page


def test_a_changed_later_call_makes_another_report(repeated):
    labelled, run, report = repeated
    Verdict.objects.filter(run=run, run_index=3, label="unsupported").first().delete()
    again = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert again.number == report.number + 1
    assert again.payload["evidence"]["sha256"] != report.payload["evidence"]["sha256"]


def test_a_report_from_before_the_means_does_not_hold_any_more(repeated):
    labelled, run, report = repeated
    payload = json.loads(json.dumps(report.payload))
    del payload["judge"]["runs_in_rates"]
    CalibrationReport.objects.create(
        judge_run=run,
        round=labelled.round,
        dimension="grounding",
        number=report.number + 1,
        gate_state="TRUSTED",
        payload=payload,
    )
    found = standing(judge=run.judge, version=labelled.version, dimension="grounding")
    assert found.state == "STALE"
    assert "earlier version of the app" in found.changes[0]


def test_the_correction_has_the_same_mean_on_both_sides():
    """By hand: Se 1, Sp 1 - (12 * 2/3)/80 = .9 on gold; without gold 30 of 60 flagged twice of three, 1/3.

    theta = (1/3 + .9 - 1)/(1 + .9 - 1) = .259259; with the first calls alone Se = Sp = 1 and nothing flagged.
    """
    labelled, verdicts = labelled_set("pool"), []
    for number in range(120):
        label = "supported" if number < 80 else "unsupported"
        response = labelled.response(f"g{number}")
        said = (label, "unsupported", "unsupported") if number < 12 else (label,) * 3
        verdicts.append((response, labelled.claim(response, label, label), said))
    for number in range(60):
        response = labelled.response(f"u{number}", assigned=False)
        said = ("supported", "unsupported", "unsupported") if number < 30 else ("supported",) * 3
        verdicts.append((response, labelled.claim(response), said))
    run = as_now(judged(labelled, verdicts, repeats=3))
    CalibrationSplit.objects.create(round=labelled.round, design=CalibrationSplit.Design.ENRICHED, seed=1)
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    corrected = report.payload["corrected"]
    assert corrected["method"] == "rogan_gladen"
    assert corrected["raw"]["value"] == pytest.approx(1 / 3)
    assert corrected["corrected"]["value"] == pytest.approx((1 / 3 - 0.1) / 0.9)


def test_a_gold_folder_beside_a_repeated_judge_is_recomputed(repeated, tmp_path):
    """Gold holds no verdict, so no run of a judge moves a figure of it."""
    labelled, _run, _report = repeated
    manifest = export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    assert recompute(tmp_path)["matches"]
    assert manifest["rates"]["hallucination"]["value"] == pytest.approx(80 / 240)


def test_an_answer_that_failed_in_every_run_is_in_no_rate():
    labelled = labelled_set("lost")
    response = labelled.response("r1")
    claims = [labelled.claim(response, "supported", "supported") for _number in range(2)]
    run = judged(
        labelled,
        [(response, claims[0], ("timeout",) * 2), (response, claims[1], ("timeout", "unsupported"))],
        repeats=2,
    )
    from calibration.rates import rates_of_judge_run

    figures = rates_of_judge_run(judge_run=run, dimension="grounding", unit="claim", runs=labelled.runs)
    assert (figures["hallucination"]["numerator"], figures["hallucination"]["denominator"]) == (1, 1)
    assert figures["missing"] == {"verdict_failed": 1}
    assert figures["repeats"]["grounding"]["targets_of_fewer_runs"] == 1
    # Of the four calls one is there, and it says unsupported.
    assert figures["hallucination"]["worst_case"] == {"low": 0.25, "high": 1.0}


def test_a_chart_of_drift_begins_with_the_mean_and_counts_items(repeated):
    _labelled, run, report = repeated
    plan = plan_sentinels(
        judge_run=run, dimensions=["grounding"], targets=240, seed=1, every_days=7, budget=NO_BUDGET
    )
    charts = charts_of(report, plan)
    (flagged,), (agreement,) = charts["flagged"], charts["agreement"]
    # The first call says what gold says, 80 of 240 bad; the other two flag 12 more.
    assert (flagged.share.numerator, flagged.share.denominator) == (pytest.approx(80 + 12 * 2 / 3), 240)
    assert (agreement.share.numerator, agreement.share.denominator) == (pytest.approx(240 - 12 * 2 / 3), 240)
    assert flagged.share.clusters == agreement.share.clusters == 60


def test_a_sentinel_run_is_held_against_the_first_calls_and_their_likes(repeated):
    """A judge that still answers as its first calls did has not drifted, whatever its other calls said."""
    labelled, run, report = repeated
    defined = next(entry["labels"] for entry in rubric_text.DIMENSIONS if entry["name"] == "grounding")
    labelled.round.rubric_version.dimensions.filter(name="grounding").update(labels=defined)
    plan = plan_sentinels(
        judge_run=run, dimensions=["grounding"], targets=240, seed=1, every_days=7, budget=NO_BUDGET
    )
    again = as_it_said_first(start_sentinel(plan=plan))
    figures = sentinel_figures(report, again)
    assert (figures["sentinel"]["correct_before"], figures["sentinel"]["correct_now"]) == (240, 240)
    assert (figures["sentinel"]["mcnemar"]["p"], figures["sentinel"]["flips"]["value"]) == (1, 0)
    before, now = charts_of(report, plan)["agreement"]
    assert (before.share.value, now.share.value) == (pytest.approx(232 / 240), 1)
    assert (now.centre, now.outside) == (pytest.approx(232 / 240), False)


def as_it_said_first(sentinel):
    first = sentinel.sentinel_plan.judge_run.verdicts.filter(run_index=1)
    labels = dict(first.values_list("claim", "label"))
    for verdict in sentinel.verdicts.all():
        verdict.state, verdict.label = "valid", labels[verdict.claim_id]
        verdict.save()
    sentinel.state = "complete"
    sentinel.save()
    return sentinel
