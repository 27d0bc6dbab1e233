"""The trust gate: six states, every condition, and gold that is not selected on the outcome."""

import json
from dataclasses import replace

import numpy as np
import pytest

from calibration.gate import CONDITION_ORDER, GateEvidence, GatePolicy, decide, decide_by_system
from calibration.stats import GROUNDING_LABELS, alt_test, cluster_bootstrap
from calibration.stats.agreement import kappa_values

from .stats.examples import shared


def example(name="gate_example_claims.csv"):
    lines = shared(name).read_text().splitlines()
    rows = [[int(cell) for cell in line.split(",")] for line in lines if not line.startswith("#")]
    response, first, second, judge = (list(column) for column in zip(*rows, strict=True))
    first, second, judge = ([GROUNDING_LABELS[code] for code in column] for column in (first, second, judge))
    return GateEvidence("grounding", {"one": first, "two": second}, judge, response)


def agreeing(n_items=60, per_item=4, **changes):
    """People and judge agree on everything; a quarter of the claims is bad."""
    labels = [GROUNDING_LABELS[i % 4 if i % 4 < 2 else 0] for i in range(n_items * per_item)]
    items = [i // per_item for i in range(len(labels))]
    evidence = GateEvidence(
        "grounding",
        {"one": labels, "two": list(labels)},
        list(labels),
        items,
        gold=list(labels),
        gold_complete=True,
    )
    return replace(evidence, **changes)


def condition(decision, name):
    return next(condition for condition in decision.conditions if condition.name == name)


def test_published_example_is_not_trusted():
    decision = decide(example())
    assert decision.state == "NOT_TRUSTED" and decision.flags == ("gold_incomplete",)
    assert condition(decision, "human_agreement").value == pytest.approx(0.758460, abs=5e-7)
    agreement = condition(decision, "judge_agreement")
    assert agreement.estimate == pytest.approx(0.682691, abs=1e-6)
    assert agreement.value == pytest.approx(0.587050, abs=1e-6)
    assert agreement.passed is False
    inferiority = condition(decision, "non_inferiority")
    assert inferiority.estimate == pytest.approx(-0.075769, abs=1e-6)
    assert inferiority.value == pytest.approx(-0.163526, abs=1e-6)
    assert inferiority.passed is False
    assert {entry.name for entry in decision.failing} == {"judge_agreement", "non_inferiority"}


def test_published_example_passes_or_fails_the_alternative_annotator_test():
    evidence = example()
    strict = alt_test(evidence.graders, evidence.judge, labels=GROUNDING_LABELS, epsilon=0.10)
    assert strict.advantage == pytest.approx(0.8889, abs=5e-5)
    assert (strict.winning_rate, strict.passed) == (0, False)
    lenient = alt_test(evidence.graders, evidence.judge, labels=GROUNDING_LABELS, epsilon=0.15)
    assert (lenient.winning_rate, lenient.passed) == (1, True)


def test_cluster_bootstrap_of_the_published_example_is_a_cross_check():
    evidence = example()
    one, two, judge = (
        np.array([GROUNDING_LABELS.index(label) for label in column])
        for column in (*evidence.graders.values(), evidence.judge)
    )
    item = np.array(evidence.clusters)
    pairs = ((judge, one), (judge, two), (one, two))
    table = np.hstack(
        [np.bincount(item * 16 + a * 4 + b, minlength=40 * 16).reshape(40, 16) for a, b in pairs]
    )

    def kappas(sums):
        tables = sums.reshape(len(sums), 3, 4, 4)
        rows, cols = tables.sum(axis=3), tables.sum(axis=2)
        return kappa_values(rows.sum(axis=2), np.trace(tables, axis1=2, axis2=3), rows, cols)

    def mean_of_judge(sums):
        return kappas(sums)[:, :2].mean(axis=1)

    def difference(sums):
        return mean_of_judge(sums) - kappas(sums)[:, 2]

    rng = np.random.default_rng(20)
    low, high, _ = cluster_bootstrap(table, mean_of_judge, draws=4000, rng=rng)
    assert (low, high) == pytest.approx((0.590, 0.765), abs=0.01)
    low, high, _ = cluster_bootstrap(table, difference, draws=4000, rng=rng, level=0.90)
    assert (low, high) == pytest.approx((-0.1609, 0.0060), abs=0.01)


def test_a_constant_judge_passes_the_other_test_but_not_the_gate():
    # 200 claims, 92 % supported: (S,S) 177, (S,U) 7, (U,S) 9, (U,U) 7 give kappa about .42.
    one = ["supported"] * 184 + ["unsupported"] * 16
    two = ["supported"] * 177 + ["unsupported"] * 7 + ["supported"] * 9 + ["unsupported"] * 7
    judge = ["supported"] * 200
    other = alt_test({"one": one, "two": two}, judge, labels=GROUNDING_LABELS, epsilon=0.05)
    assert other.passed is True
    assert other.advantage > 0.95
    lenient = GatePolicy(min_human_agreement=0.3, min_positive=10)
    decision = decide(GateEvidence("grounding", {"one": one, "two": two}, judge, list(range(200))), lenient)
    assert decision.state == "NOT_TRUSTED"


def test_positions_in_integer_arrays_are_labels_too():
    evidence = agreeing(systems=["loose"] * 180 + ["strict"] * 60)

    def encoded(column):
        return np.array([GROUNDING_LABELS.index(label) for label in column])

    judge = encoded(evidence.judge)
    judge[:12] = -1
    coded = replace(
        evidence,
        graders={name: encoded(column) for name, column in evidence.graders.items()},
        judge=judge,
        gold=encoded(evidence.gold),
        clusters=np.array(evidence.clusters),
    )
    spelled = replace(evidence, judge=[None] * 12 + list(evidence.judge[12:]))
    assert decide(coded) == decide(spelled)
    assert decide_by_system(coded) == decide_by_system(spelled)


def test_gold_only_where_the_graders_agreed_does_not_count():
    evidence = example()
    agreed = [
        one if one == two else None
        for one, two in zip(evidence.graders["one"], evidence.graders["two"], strict=True)
    ]
    decision = decide(replace(evidence, gold=agreed, gold_complete=True))
    assert "gold_incomplete" in decision.flags
    assert condition(decision, "judge_agreement").passed is False


def test_agreed_claims_alone_would_flatter_the_judge():
    evidence = example()
    agreed = [
        row
        for row, (one, two) in enumerate(zip(evidence.graders["one"], evidence.graders["two"], strict=True))
        if one == two
    ]
    flattering = evidence.restricted_to(agreed)
    decision = decide(replace(flattering, gold=flattering.graders["one"], gold_complete=True))
    agreement = condition(decision, "judge_agreement")
    assert len(agreed) == 164
    assert (agreement.estimate, agreement.value) == pytest.approx((0.762, 0.657), abs=5e-4)
    assert agreement.passed is True


def test_a_judge_that_agrees_with_everybody_is_trusted():
    decision = decide(agreeing())
    assert decision.state == "TRUSTED" and decision.trusted and decision.flags == ()
    assert all(entry.passed is not False for entry in decision.conditions)


def test_no_evidence_is_uncalibrated():
    for evidence in (None, GateEvidence("grounding", {}, [], [])):
        decision = decide(evidence)
        assert decision.state == "UNCALIBRATED"
        assert [entry.name for entry in decision.conditions] == list(CONDITION_ORDER)
        assert all(entry.passed is None for entry in decision.conditions)


def test_a_changed_fingerprint_is_stale_and_nothing_else_is_evaluated():
    decision = decide(agreeing(fingerprint_matches=False))
    assert decision.state == "STALE"
    assert all(entry.passed is None for entry in decision.conditions[2:])


def test_an_old_calibration_is_stale():
    assert decide(agreeing(age_days=91)).state == "STALE"
    assert decide(agreeing(age_days=90)).state == "TRUSTED"


def test_too_many_failed_verdicts_are_insufficient():
    evidence = agreeing()
    judge = [None] * 12 + list(evidence.judge[12:])
    decision = decide(replace(evidence, judge=judge))
    assert decision.state == "INSUFFICIENT"
    assert condition(decision, "valid_verdicts").value == pytest.approx(228 / 240)
    assert condition(decision, "human_agreement").passed is None


def test_a_target_that_the_judge_was_not_asked_about_is_no_failed_verdict():
    evidence = agreeing(systems=["loose"] * 120 + ["strict"] * 120)
    asked = [row % 10 != 0 for row in range(240)]
    judge = [label if ask else None for label, ask in zip(evidence.judge, asked, strict=True)]
    spared = replace(evidence, judge=judge, asked=asked)
    assert condition(decide(spared), "valid_verdicts").value == 1
    assert condition(decide(spared), "targets").value == 216
    for decision in decide_by_system(spared).values():
        assert condition(decision, "valid_verdicts").value == 1
        assert decision.state == "TRUSTED"


def test_too_few_claims_say_how_many_are_missing():
    decision = decide(agreeing(n_items=20))
    assert decision.state == "INSUFFICIENT"
    targets, responses = condition(decision, "targets"), condition(decision, "responses")
    assert (targets.value, targets.missing) == (80, 20)
    assert "20 are missing" in targets.message
    assert (responses.value, responses.missing) == (20, 10)


def test_one_grader_is_no_overlap():
    evidence = agreeing()
    decision = decide(replace(evidence, graders={"one": evidence.graders["one"]}))
    assert decision.state == "INSUFFICIENT" and condition(decision, "targets").value == 0


def test_graders_who_disagree_need_a_better_rubric():
    evidence = agreeing()
    shifted = list(evidence.graders["one"][1:]) + ["supported"]
    decision = decide(replace(evidence, graders={"one": evidence.graders["one"], "two": shifted}))
    assert decision.state == "RUBRIC_NOT_READY"
    assert [condition(decision, name).passed for name in CONDITION_ORDER[-3:]] == [None, None, None]


def test_an_imported_judge_is_never_trusted():
    decision = decide(agreeing(fingerprint_matches=None))
    assert decision.state == "NOT_TRUSTED"
    assert condition(decision, "fingerprint").passed is None and decision.failing == ()
    assert "without a fingerprint" in decision.explain()


def test_a_constant_judge_is_never_trusted():
    evidence = agreeing()
    decision = decide(replace(evidence, judge=["supported"] * len(evidence.judge)))
    assert decision.state == "NOT_TRUSTED"
    assert condition(decision, "judge_agreement").passed is False
    assert condition(decision, "youden").value < 0.5


def test_gold_decides_when_it_is_complete():
    evidence = agreeing()
    wrong = ["unsupported" if label == "supported" else "supported" for label in evidence.judge]
    assert decide(replace(evidence, gold=wrong, gold_complete=False)).state == "TRUSTED"
    assert decide(replace(evidence, gold=wrong, gold_complete=True)).state == "NOT_TRUSTED"


def test_more_than_two_graders():
    evidence = example()
    third = [label if row % 3 else None for row, label in enumerate(evidence.graders["one"])]
    decision = decide(replace(evidence, graders={**evidence.graders, "three": third}))
    assert "alpha" in condition(decision, "human_agreement").message
    assert "random grader" in condition(decision, "judge_agreement").message
    assert decision.state == "NOT_TRUSTED"
    many = agreeing()
    everybody = dict.fromkeys(("one", "two", "three"), many.judge)
    assert decide(replace(many, graders=everybody)).state == "TRUSTED"


def test_a_grader_who_saw_little_does_not_make_the_labels_too_few():
    evidence = agreeing(gold=None, gold_complete=False)
    rarely = [label if row < 40 else None for row, label in enumerate(evidence.judge)]
    decision = decide(replace(evidence, graders={**evidence.graders, "three": rarely}))
    assert condition(decision, "gold_positive").value == 60  # a quarter of 240, not of 40
    assert decision.state == "TRUSTED"
    assert decision.flags == ("gold_incomplete",)


def abstention(n=120):
    labels = [("REFUSED", "ANSWERED", "ANSWERED", "CLARIFY")[i % 4] for i in range(n)]
    return GateEvidence(
        "abstention",
        {"one": labels, "two": list(labels)},
        list(labels),
        list(range(n)),
        fingerprint_matches=True,
    )


def test_abstention_is_judged_on_responses():
    decision = decide(abstention())
    assert decision.state == "TRUSTED"
    assert condition(decision, "responses").passed is None
    assert condition(decision, "gold_positive").value == 30
    assert condition(decision, "gold_negative").value == 60
    assert decide(abstention(76)).state == "INSUFFICIENT"


def test_each_system_is_judged_with_fewer_targets():
    evidence = agreeing(systems=["loose"] * 180 + ["strict"] * 60)
    decisions = decide_by_system(evidence)
    assert decisions["loose"].state == "TRUSTED"
    assert decisions["strict"].state == "INSUFFICIENT"
    assert condition(decisions["strict"], "targets").passed is True
    assert condition(decisions["strict"], "responses").passed is False


def test_each_system_is_judged_by_its_own_graders():
    evidence = agreeing(systems=["loose"] * 120 + ["strict"] * 120)
    nobody = [None] * 120
    labels = list(evidence.judge)
    pairs = {
        "one": labels[:120] + nobody,
        "two": labels[:120] + nobody,
        "three": nobody + labels[120:],
        "four": nobody + labels[120:],
    }
    together = replace(evidence, graders=pairs)
    assert "alpha" in condition(decide(together), "human_agreement").message
    for decision in decide_by_system(together).values():
        assert "kappa" in condition(decision, "human_agreement").message
        assert decision.state == "TRUSTED"


def test_a_missed_bar_with_a_good_estimate_says_how_many_more():
    assert "Too few to tell: about" in condition(decide(example()), "judge_agreement").message


def test_decision_is_json():
    for evidence in (None, example(), agreeing()):
        json.dumps(decide(evidence).as_dict(), allow_nan=False)


def test_thresholds_are_settings():
    lenient = GatePolicy(min_judge_agreement=0.5, non_inferiority_margin=0.2)
    assert decide(example(), lenient).state == "TRUSTED"


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"dimension": "tone"}, "dimension"),
        ({"clusters": [1]}, "clusters"),
        ({"gold": ["supported"]}, "gold"),
        ({"asked": [True]}, "asked"),
        ({"judge": ["maybe"] * 240}, "judge"),
        ({"gold": None}, "gold"),
    ],
)
def test_bad_evidence_names_the_argument(changes, name):
    with pytest.raises(ValueError, match=name):
        decide(replace(agreeing(), **changes))


@pytest.mark.parametrize(
    "changes", [{"min_valid_rate": 2}, {"level": 0.4}, {"min_targets": -1}, {"min_youden": 3}]
)
def test_bad_policy_names_the_argument(changes):
    with pytest.raises(ValueError, match=next(iter(changes))):
        GatePolicy(**changes)
