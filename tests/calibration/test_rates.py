"""Rates by people and by judges, and the check for a pipeline."""

import io
import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from calibration.models import Judge
from calibration.rate_measures import merged
from calibration.rates import Answers, human_rates, rates_of_judge_run
from calibration.reports import build_report, judge_rates
from evalsets.models import EvalSetVersion
from tests.calibration.labelled import judged, labelled_set
from tests.calibration.test_report import trusted_judge

pytestmark = pytest.mark.django_db


def command(*args):
    out = io.StringIO()
    call_command(*args, "--json", stdout=out)
    return json.loads(out.getvalue())


def gold_rates(labelled, unit="claim", source="gold"):
    return human_rates(version=labelled.version, round=labelled.round, source=source, unit=unit)


def bare(labelled, number_of_responses, labels_of):
    """Responses whose claims have the given labels, by both graders."""
    for number in range(number_of_responses):
        response = labelled.response(f"r{number}")
        for label in labels_of[number]:
            labelled.claim(response, label, label)
    return labelled


# EX-CL1: claims and bad ones of twelve responses; the clustered interval is the worked example's.
EX_CL1 = [(8, 0), (6, 0), (10, 5), (5, 0), (7, 1), (9, 0), (4, 4), (12, 0), (6, 2), (8, 0), (5, 3), (7, 0)]


def test_the_claim_rate_has_the_interval_of_its_items():
    labelled = bare(
        labelled_set(), 12, [["unsupported"] * bad + ["supported"] * (n - bad) for n, bad in EX_CL1]
    )
    rate = gold_rates(labelled)["hallucination"]

    assert (rate["numerator"], rate["denominator"], rate["clusters"]) == (15, 87, 12)
    assert rate["low"] == pytest.approx(0.064185, abs=1e-6)
    assert rate["high"] == pytest.approx(0.387559, abs=1e-6)


def test_the_response_rate_counts_responses():
    labelled = bare(
        labelled_set(), 12, [["unsupported"] * bad + ["supported"] * (n - bad) for n, bad in EX_CL1]
    )
    rates = gold_rates(labelled, "response")

    # EX-CL1, response: any bad 5 of 12, mean share .214683.
    assert (rates["hallucination"]["numerator"], rates["hallucination"]["denominator"]) == (5, 12)
    assert rates["mean_share"]["value"] == pytest.approx(0.214683, abs=1e-6)


def test_zero_claim_all_unverifiable_and_gap_responses_are_counted_apart():
    """EX-Z1: A without claims 1.0, B (s3, c1, v2) .75, C (v2) none: mean .875, one excluded."""
    labelled = labelled_set()
    nothing = labelled.response("A")
    labelled.verdict_on_response(nothing, "ANSWERED", "ANSWERED")
    mixed, vague = labelled.response("B"), labelled.response("C")
    for label in ("supported",) * 3 + ("contradicted",) + ("unverifiable",) * 2:
        labelled.claim(mixed, label, label)
    for _ in range(2):
        labelled.claim(vague, "unverifiable", "unverifiable")
    rates = gold_rates(labelled)

    assert rates["hallucination"]["value"] == 0.25
    assert rates["mean_faithfulness"]["value"] == pytest.approx(0.875)
    assert rates["mean_faithfulness"]["excluded"] == {"all_unverifiable": 1}
    assert rates["mean_faithfulness_without_gaps"]["value"] == pytest.approx(0.75)
    assert (rates["zero_claim_responses"], rates["extraction_gaps"]) == (1, 1)
    assert rates["review_queue"] == ["A"]
    assert "mostly_unverifiable" in rates["hallucination"]["flags"]


def test_the_decision_rate_counts_flagged_claims_only():
    labelled = labelled_set()
    response = labelled.response("r1")
    labelled.claim(response, "unsupported", "unsupported", decision=True)
    labelled.claim(response, "supported", "supported", decision=True)
    labelled.claim(response, "unsupported", "unsupported")
    rate = gold_rates(labelled, "decision")["hallucination"]

    assert (rate["numerator"], rate["denominator"]) == (1, 2)
    assert rate["excluded"] == {"not_decision_critical": 1}


def test_systems_stand_apart_and_the_pool_says_so():
    labelled = labelled_set()
    for name, label in (("good", "supported"), ("bad", "unsupported")):
        run = labelled.run(name)
        labelled.claim(labelled.response(f"of {name}", run=run), label, label)
    rates = gold_rates(labelled)

    assert rates["systems"] == ["good", "bad"]
    assert [entry["hallucination"]["value"] for entry in rates["per_system"]] == [0.0, 1.0]
    assert rates["hallucination"]["value"] == 0.5


def test_an_empty_response_stays_in_every_denominator():
    labelled = labelled_set()
    item = labelled.item("i", answerable=True)
    labelled.response("empty", item=item, text="")
    refused = labelled.response("refused", item=item, sample=2)
    labelled.verdict_on_response(refused, "REFUSED", "REFUSED")
    unknown = labelled.response("open", item=item, sample=3)
    labelled.verdict_on_response(unknown, "REFUSED", "ANSWERED")
    abstention = gold_rates(labelled)["abstention"]

    assert abstention["matrix"]["answerable"] == {
        "ANSWERED": 0,
        "REFUSED": 1,
        "CLARIFY": 0,
        "EMPTY": 1,
        "missing": 1,
    }
    assert (abstention["over_refusal"]["numerator"], abstention["over_refusal"]["denominator"]) == (1, 2)
    assert abstention["over_refusal"]["excluded"] == {"no_valid_verdict": 1}


def test_one_grader_alone_can_be_the_source():
    labelled = labelled_set()
    response = labelled.response("r1")
    labelled.claim(response, "supported", "unsupported")

    assert gold_rates(labelled)["hallucination"]["undefined"] == "zero_denominator"
    assert gold_rates(labelled, source="grader:ada")["hallucination"]["value"] == 0.0
    assert gold_rates(labelled, source="grader:ben")["hallucination"]["value"] == 1.0


def test_parts_of_a_split_are_counted_instead_of_the_whole():
    labelled = labelled_set()
    response = labelled.response("r1")
    parent = labelled.claim(response, "unsupported", "supported")
    for label in ("supported", "unsupported", "supported"):
        labelled.claim(response, gold=label, parent=parent)
    rate = gold_rates(labelled)["hallucination"]

    assert (rate["numerator"], rate["denominator"]) == (1, 3)


def test_the_command_has_the_keys_of_the_contract():
    labelled = bare(labelled_set(), 2, [["supported"], ["unsupported"]])
    shown = command("rates", "set@1")

    assert (shown["unit"], shown["source"], shown["round"]["number"]) == ("claim", "gold", 1)
    for key in ("hallucination", "contradicted", "unverifiable_share", "faithfulness"):
        assert {
            "value",
            "low",
            "high",
            "level",
            "method",
            "n",
            "clusters",
            "excluded",
            "flags",
            "definition",
        } <= set(shown[key])
    assert shown["abstention"]["over_refusal"]["undefined"] == "zero_denominator"
    EvalSetVersion.objects.filter(pk=labelled.version.pk).update(primary_unit="response")
    assert command("rates", "set@1")["unit"] == "response"


def test_the_command_names_an_unknown_source():
    bare(labelled_set(), 1, [["supported"]])
    with pytest.raises(CommandError, match="no grader 'eve'"):
        command("rates", "set@1", "--source", "grader:eve")
    with pytest.raises(CommandError, match="must be gold"):
        command("rates", "set@1", "--source", "eve")
    with pytest.raises(CommandError, match="no judge"):
        command("rates", "set@1", "--source", "judge:eve")
    with pytest.raises(CommandError, match="no version 'set@2'"):
        command("rates", "set@2")


def test_the_command_in_words_says_what_is_withheld(capsys):
    labelled = bare(labelled_set(), 1, [["supported"]])
    response = labelled.version.responses.get()
    judged(labelled, [(response, response.claims.get(), "unsupported")])
    call_command("rates", "set@1", "--source", "judge:judge-a")
    assert "Withheld: the judge is UNCALIBRATED" in capsys.readouterr().out


def test_a_trusted_judges_rates_have_the_same_shape():
    labelled, run = trusted_judge()
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    shown = command("rates", "set@1", "--source", "judge:judge-a")

    assert shown["hallucination"]["numerator"] == 40
    assert shown["per_system"][0]["hallucination"]["value"] == shown["hallucination"]["value"]
    assert "abstention" not in shown, "it was not asked about abstention"


def test_each_dimension_of_a_judge_stands_behind_its_own_gate():
    labelled, run = trusted_judge()
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    type(run).objects.filter(pk=run.pk).update(dimensions=["grounding", "abstention"])
    rates = judge_rates(judge=run.judge, version=labelled.version, unit="claim")

    assert rates["hallucination"]["value"] is not None
    assert rates["abstention"]["withheld"]["state"] == "UNCALIBRATED"


# check


def checked(*args):
    """Exit code and what was printed."""
    out = io.StringIO()
    try:
        call_command("check", "set@1", "--judge", "judge-a", *args, "--json", stdout=out)
    except SystemExit as left:
        return left.code, json.loads(out.getvalue())
    return 0, json.loads(out.getvalue())


def test_check_passes_a_trusted_judge_within_its_limits():
    labelled, run = trusted_judge()
    build_report(judge_run=run, round=labelled.round, dimension="grounding")

    code, shown = checked("--max-rate", "hallucination=0.34", "--max-rate", "contradicted=0.34")
    assert (code, shown["passed"]) == (0, True)
    assert [(line["name"], line["system"]) for line in shown["rates"]] == [
        ("hallucination", None),
        ("hallucination", "sys"),
        ("contradicted", None),
        ("contradicted", "sys"),
    ]


def test_check_fails_on_a_rate_above_its_limit():
    labelled, run = trusted_judge()
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    code, shown = checked("--max-rate", "hallucination=0.05")
    assert (code, shown["passed"]) == (1, False)
    assert shown["gate"][0]["passed"] is True


def test_check_fails_without_a_report():
    trusted_judge()
    code, shown = checked("--max-rate", "hallucination=1")
    assert code == 1
    assert shown["gate"][0]["state"] == "UNCALIBRATED"
    assert "withheld" in shown["rates"][0]["message"]


def test_check_fails_for_a_judge_that_never_ran():
    labelled = labelled_set()
    Judge.objects.create(evalset=labelled.version.evalset, name="judge-a", kind="openai")
    code, shown = checked()
    assert (code, shown["gate"][0]["state"]) == (1, "UNCALIBRATED")


@pytest.mark.parametrize("limit", ["hallucination", "hallucination=x", "hallucination=2", "taste=0.1"])
def test_check_names_a_limit_that_is_none(limit):
    trusted_judge()
    with pytest.raises(CommandError, match=limit.partition("=")[0]):
        checked("--max-rate", limit)


def test_check_without_a_judge_is_the_frameworks_own(capsys):
    call_command("check")
    assert "no issues" in capsys.readouterr().out
    with pytest.raises(CommandError, match="--judge"):
        call_command("check", "set@1", "--max-rate", "hallucination=0.1")


def test_a_judge_tells_gaps_only_where_it_is_trusted_in_abstention():
    """Two answers without a claim; of the second system the judge's abstention labels do not count."""
    labelled = labelled_set()
    first, second = labelled.run("first"), labelled.run("second")
    verdicts = []
    for run, name in ((first, "a"), (second, "b")):
        gap = labelled.response(f"{name}0", run=run)
        answer = labelled.response(f"{name}1", run=run)
        verdicts += [(gap, None, "ANSWERED"), (answer, labelled.claim(answer), "supported")]
    grounding = [said for said in verdicts if said[1]]
    claims = judged(labelled, grounding, name="of claims")
    responses = judged(labelled, [said for said in verdicts if not said[1]], dimension="abstention")
    asked = {"judge_run": claims, "dimension": "grounding", "unit": "claim", "runs": [first, second]}

    nobody = rates_of_judge_run(**asked)
    assert (nobody["extraction_gaps"], nobody["zero_claim_without_verdict"]) == (0, 2)
    known = rates_of_judge_run(**asked, answers=Answers(responses, frozenset([first.pk])))
    assert (known["extraction_gaps"], known["zero_claim_without_verdict"]) == (1, 1)
    told = [(part["extraction_gaps"], part["zero_claim_without_verdict"]) for part in known["per_system"]]
    assert told == [(1, 0), (0, 1)]


def test_rates_of_two_dimensions_say_so_where_they_count_other_responses():
    """A judge that is trusted on other systems in one dimension than in the other."""
    grounding = {"n_responses": 360, "n_claims": 738, "per_stratum": [stratum(189, 371)]}
    abstention = {"n_responses": 356, "n_claims": 736, "per_stratum": [stratum(187, 364)]}
    both = merged(grounding, abstention)
    assert (both["n_responses"], both["n_claims"], both["n_responses_abstention"]) == (360, 738, 356)
    group = both["per_stratum"][0]
    assert (group["n_responses"], group["n_claims"], group["n_responses_abstention"]) == (189, 371, 187)
    assert "n_responses_abstention" not in merged(grounding, grounding)


def stratum(responses, claims):
    return {"name": "language", "value": "de", "n_responses": responses, "n_claims": claims}
