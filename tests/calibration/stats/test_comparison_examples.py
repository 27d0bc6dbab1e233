"""Comparisons, strata, consistency, drift and companions against worked examples."""

import numpy as np
import pytest

from calibration.stats import (
    agreement_drift,
    answer_rate,
    compare_rates,
    control_chart,
    corrected_difference,
    equal_error_test,
    extraction_error,
    family_of,
    judge_vs_gold,
    mcnemar,
    newcombe_difference,
    pair_verdict,
    response_lengths,
    rogan_gladen,
    run_control,
    run_variance,
    self_consistency,
    sensitivity_and_specificity,
    sentinel_drift,
    step_test,
    stratified_rate,
    two_proportion_test,
)
from calibration.stats.drift import pooled_days

from .examples import GROUNDING, K1, words

# Systems A (rows) and B (columns), ok and bad: 150 ok in both, 12 bad in B only, 25 in A only, 13 in both.
A_BAD = [0] * 150 + [0] * 12 + [1] * 25 + [1] * 13
B_BAD = [0] * 150 + [1] * 12 + [0] * 25 + [1] * 13
ONES = [1] * 200


def test_paired_comparison_of_responses():
    result = compare_rates(A_BAD, ONES, B_BAD, ONES, unit="response")
    assert result.difference.value == pytest.approx(0.065)
    assert (result.difference.low, result.difference.high) == pytest.approx((0.006075, 0.123925), abs=5.1e-7)
    test = result.mcnemar
    assert test.p == result.p == pytest.approx(0.047031, abs=5.1e-7)
    assert (test.chi2, test.chi2_p) == pytest.approx((4.567568, 0.032583), abs=5.1e-7)
    assert (test.corrected_p, test.mid_p) == pytest.approx((0.048520, 0.033552), abs=5.1e-7)


def test_no_discordant_pair_has_p_one():
    assert mcnemar(0, 0).p == 1.0
    result = compare_rates([0] * 10 + [1] * 5, [1] * 15, [0] * 10 + [1] * 5, [1] * 15)
    assert result.p == 1.0
    assert result.difference.value == 0.0
    assert result.difference.low == pytest.approx(-(1 - 0.025 ** (1 / 15)))


def test_two_percent_against_six_is_no_change():
    assert two_proportion_test(12, 300, 18, 300) == pytest.approx(0.261054, abs=5.1e-7)
    assert newcombe_difference(18, 300, 12, 300) == pytest.approx((-0.0159, 0.0570), abs=5e-5)


def test_claims_are_compared_by_item():
    rng = np.random.default_rng(4)
    size_a, size_b = rng.integers(1, 8, 60), rng.integers(1, 8, 60)
    bad_a, bad_b = rng.binomial(size_a, 0.2), rng.binomial(size_b, 0.2)
    result = compare_rates(bad_a, size_a, bad_b, size_b)
    assert result.mcnemar is None and 0 <= result.p <= 1
    left = [
        np.delete(bad_a, i).sum() / np.delete(size_a, i).sum()
        - np.delete(bad_b, i).sum() / np.delete(size_b, i).sum()
        for i in range(60)
    ]
    from scipy.stats import t

    half = t.ppf(0.975, 59) * np.sqrt(59 / 60 * ((left - np.mean(left)) ** 2).sum())
    assert result.difference.high - result.difference.value == pytest.approx(half)


def test_items_of_one_system_only_are_counted():
    result = compare_rates([1, 0], [1, 1], [0, 1, 0], [1, 1, 1], items_a=["x", "y"], items_b=["x", "y", "z"])
    assert dict(result.difference.excluded) == {"only_b": 1}
    assert result.n_items == 2


def test_different_failure_shares_block_a_comparison():
    result = compare_rates(A_BAD, ONES, B_BAD, ONES, failed_a=2, failed_b=40)
    assert result.blocked is not None and result.direction == "unresolved"
    assert compare_rates(A_BAD, ONES, B_BAD, ONES, failed_a=2, failed_b=3).blocked is None


def test_a_family_of_comparisons_widens_the_interval():
    alone = compare_rates(A_BAD, ONES, B_BAD, ONES).difference
    many = compare_rates(A_BAD, ONES, B_BAD, ONES, family=family_of(4)).difference
    assert family_of(4) == 6 and family_of(4, against_one=True) == 3
    assert many.level == pytest.approx(1 - 0.05 / 6)
    assert many.high - many.low > alone.high - alone.low


def change(before, after, n=200, **options):
    """A comparison in which the first `before` and `after` of n units are bad."""
    return compare_rates(
        [1] * after + [0] * (n - after), [1] * n, [1] * before + [0] * (n - before), [1] * n, **options
    )


@pytest.mark.parametrize(
    ("answering", "refusal", "verdict"),
    [
        ((60, 30), (20, 20), "improvement"),
        ((60, 30), (20, 21), "improvement"),
        ((60, 30), (40, 20), "improvement"),
        ((60, 30), (20, 50), "trade"),
        ((30, 60), (50, 20), "trade"),
        ((30, 60), (20, 20), "regression"),
        ((30, 60), (20, 60), "regression"),
        ((30, 31), (20, 19), "not distinguishable"),
    ],
)
def test_verdict_on_the_pair(answering, refusal, verdict):
    assert pair_verdict(change(*answering), change(*refusal)).verdict == verdict


def test_improvement_says_what_may_be_hidden():
    assert "may still have risen" in pair_verdict(change(60, 30), change(20, 21)).explain()


def test_verdict_names_the_family():
    result = pair_verdict(change(60, 20, family=3), change(20, 20, family=3))
    assert "3 comparisons" in result.note


def test_small_difference_is_not_resolvable():
    assert "not_resolvable" in change(30, 31).difference.flags


def test_no_difference_of_more_than_all_is_detectable():
    """2 of 3 differ: 2.8016 sqrt(2/3 / 3) is 132 points."""
    few = change(0, 2, n=3)
    assert few.minimum_detectable is None
    assert "nothing_resolvable" in few.difference.flags


def test_a_poor_judge_raises_what_can_be_detected():
    people, judge = change(30, 60), change(30, 60, youden=0.6)
    assert judge.minimum_detectable == pytest.approx(people.minimum_detectable / 0.6)
    with pytest.raises(ValueError, match="youden"):
        change(30, 60, youden=0)


def corrected(p):
    return rogan_gladen(p, 1000, sensitivity=0.9, n_positive=100, specificity=0.95, n_negative=200)


def test_corrected_difference_says_what_it_assumes():
    a, b = corrected(0.2), corrected(0.1)
    pooled = corrected_difference(a, b, a, b, pooled_calibration=True)
    assert pooled.value == pytest.approx(a.value - b.value)
    assert pooled.low < pooled.value < pooled.high
    assert pooled.flags == ("equal_error_assumed",)
    assert corrected_difference(a, b, a, b, pooled_calibration=False).flags == ()


def test_corrected_difference_of_an_undefined_rate_is_undefined():
    a = corrected(0.2)
    hopeless = rogan_gladen(0.3, 500, sensitivity=0.5, n_positive=50, specificity=0.5, n_negative=50)
    difference = corrected_difference(a, a, a, hopeless, pooled_calibration=False)
    assert difference.undefined == "judge_not_better_than_chance"


def test_equal_errors_of_the_judge():
    gold, judge = words(K1, GROUNDING)
    one = judge_vs_gold(gold, judge, labels=GROUNDING)
    worse = judge_vs_gold(gold, ["supported"] * 100, labels=GROUNDING)
    same = equal_error_test(one.sensitivity, one.specificity, one.sensitivity, one.specificity)
    assert same.equal is True and same.sensitivity_p == 1.0
    assert (
        equal_error_test(one.sensitivity, one.specificity, worse.sensitivity, worse.specificity).equal
        is False
    )


def test_sensitivity_and_specificity_of_one_call_are_those_of_the_confusion():
    gold, judge = words(K1, GROUNDING)
    gold, judge = [*gold, None, "supported", None], [*judge, "supported", None, None]
    known = judge_vs_gold(gold, judge, labels=GROUNDING)
    assert sensitivity_and_specificity(gold, judge, labels=GROUNDING) == (
        known.sensitivity,
        known.specificity,
    )


def test_sensitivity_and_specificity_of_several_calls_are_means_by_target():
    """By hand: bad ones are called bad in 1 of 2, 2 of 2 and 1 of 1 calls, good ones in 0 and 1 of 2."""
    gold = ["contradicted", "unsupported", "unsupported", "supported", "unverifiable", None]
    judge = np.array(
        [
            ["contradicted", "supported"],
            ["unsupported", "contradicted"],
            [None, "unsupported"],
            ["supported", "unverifiable"],
            ["unsupported", "supported"],
            ["unsupported", "unsupported"],
        ],
        dtype=object,
    )
    sensitivity, specificity = sensitivity_and_specificity(gold, judge, labels=GROUNDING)
    assert (sensitivity.numerator, sensitivity.denominator, sensitivity.value) == (2.5, 3, 2.5 / 3)
    assert (specificity.numerator, specificity.denominator, specificity.value) == (1.5, 2, 0.75)


@pytest.mark.parametrize("positive", [[], ["none of them"]])
def test_what_sensitivity_is_about_are_labels(positive):
    with pytest.raises(ValueError, match="positive"):
        sensitivity_and_specificity(["supported"], ["supported"], labels=GROUNDING, positive=positive)
    one_by_one = sensitivity_and_specificity(
        ["unsupported"], ["contradicted"], labels=GROUNDING, positive=iter(["contradicted", "unsupported"])
    )
    assert one_by_one[0].value == 1


def test_without_a_class_of_gold_neither_is_a_number():
    good, bad = ["supported"] * 3, ["unsupported"] * 3
    assert sensitivity_and_specificity(good, good, labels=GROUNDING)[0].undefined == "single_class_gold"
    assert sensitivity_and_specificity(bad, good, labels=GROUNDING)[1].undefined == "single_class_gold"


def test_stratified_rate():
    bad = [1] * 5 + [0] * 95 + [1] * 12 + [0] * 68 + [1] * 15 + [0] * 45
    strata = ["a"] * 100 + ["b"] * 80 + ["c"] * 60
    result = stratified_rate(bad, [1] * 240, strata, weights={"a": 0.6, "b": 0.3, "c": 0.1})
    assert (result.number.value, result.se) == pytest.approx((0.100, 0.018593), abs=5.1e-7)
    assert (result.number.low, result.number.high) == pytest.approx((0.073107, 0.148165), abs=5.1e-7)
    assert result.unweighted.value == pytest.approx(0.1333, abs=5e-5)


def test_empty_stratum_is_named():
    result = stratified_rate([1, 0], [1, 1], ["a", "a"], weights={"a": 0.5, "night": 0.5})
    assert result.number.undefined == "empty_stratum" and result.empty_strata == ("night",)
    assert "night" in result.explain()


@pytest.mark.parametrize(
    ("weights", "name"), [({"a": 0.5}, "weights"), ({"b": 1.0}, "strata"), ({}, "weights")]
)
def test_bad_weights_are_refused(weights, name):
    with pytest.raises(ValueError, match=name):
        stratified_rate([1], [1], ["a"], weights=weights)


SC1 = [[0, 0, 0], [0, 0, 2], [2, 2, 2], [1, 1, 2], [0, 0, 0], [3, 3, 0], [0, 0, 0], [2, 0, 2]]


def test_self_consistency():
    result = self_consistency(np.array(SC1), labels=GROUNDING)
    assert result.unanimous.value == 0.5
    assert result.pairwise.value == pytest.approx(0.666667, abs=5.1e-7)
    assert result.fleiss.value == pytest.approx(0.451429, abs=5.1e-7)
    assert result.within == pytest.approx(0.083333, abs=5.1e-7)
    assert result.between == pytest.approx(0.176587, abs=5.1e-7)
    assert result.icc == pytest.approx(0.679389, abs=5.1e-7)
    assert (result.se_one_run, result.se_all_runs) == pytest.approx((0.180250, 0.159830), abs=5.1e-7)
    assert result.se_if_independent == pytest.approx(0.098821, abs=5.1e-7)


def test_variance_split_of_generations_is_the_same():
    bad = np.isin(np.array(SC1), [1, 2]).astype(float)
    result, judged = run_variance(bad), self_consistency(np.array(SC1), labels=GROUNDING)
    assert (result.within, result.between, result.icc) == (judged.within, judged.between, judged.icc)
    assert result.se_all_runs == pytest.approx(0.159830, abs=5.1e-7)
    assert result.rate.value == pytest.approx(bad.mean())
    with pytest.raises(ValueError, match="values"):
        run_variance([[0.5], [0.2]])
    with pytest.raises(ValueError, match="values"):
        run_variance([[0.5, 1.5]])


def test_pairwise_agreement_of_each_pair_of_runs():
    runs = np.array(SC1)
    pairs = [(runs[:, i] == runs[:, j]).mean() for i, j in ((0, 1), (0, 2), (1, 2))]
    assert pairs == pytest.approx([0.875, 0.625, 0.5])
    assert self_consistency(runs, labels=GROUNDING).pairwise.value == pytest.approx(np.mean(pairs))


def test_an_item_that_misses_a_run_is_left_out():
    result = self_consistency([["supported", "supported"], ["supported", None]], labels=GROUNDING)
    assert result.unanimous.excluded["incomplete"] == 1 and result.unanimous.n == 1


def test_one_run_is_no_consistency():
    with pytest.raises(ValueError, match="runs"):
        self_consistency([["supported"]], labels=GROUNDING)


def test_sentinel_drift():
    gold = ["a"] * 100
    before = ["a"] * 80 + ["a"] * 9 + ["b"] * 3 + ["b"] * 8
    now = ["a"] * 80 + ["b"] * 9 + ["a"] * 3 + ["b"] * 8
    result = sentinel_drift(gold, before, now)
    assert (result.test.p, result.test.mid_p) == pytest.approx((0.1460, 0.0923), abs=5e-5)
    assert result.flips.value == pytest.approx(0.12)
    assert (result.correct_before, result.correct_now) == (89, 83)


@pytest.mark.parametrize(
    ("agreed", "p", "alert"),
    [(78, 0.045021, False), (84, 0.480231, False), (87, 1.0, False), (60, None, True)],
)
def test_agreement_drift(agreed, p, alert):
    result = agreement_drift(174, 200, agreed, 100)
    if p is not None:
        assert result.p == pytest.approx(p, abs=5.1e-7)
    assert result.alert is alert


def test_step_test():
    result = step_test([10] * 28 + [15] * 7, [100] * 35)
    assert result.p == pytest.approx(0.000156, abs=5.1e-7)
    assert result.difference.value == pytest.approx(0.05) and result.alert
    assert not step_test([10] * 28 + [14] * 7, [100] * 35).alert
    assert not step_test([1] * 28 + [2] * 7, [10] * 35).alert
    assert step_test([], []).difference.undefined == "zero_denominator"


def test_thin_days_are_pooled_with_the_next():
    assert pooled_days([1, 2, 3, 4], [10, 25, 40, 5]) == [(0, 1, 3, 35), (2, 3, 7, 45)]
    assert pooled_days([1], [4]) == [(0, 0, 1, 4)]
    assert pooled_days([], []) == []


def test_control_chart_limits():
    points = control_chart([10, 20, 30], [100, 100, 100])
    half = 3 * np.sqrt(0.2 * 0.8 / 100)
    assert [point.share.value for point in points] == [0.1, 0.2, 0.3]
    assert (points[0].lower, points[0].upper) == pytest.approx((0.2 - half, 0.2 + half))


def test_run_to_run_control():
    first = list(range(36))
    second, other = list(first), list(first)
    second[0] = -1
    other[0] = other[1] = -1
    result = run_control(first, second, other)
    assert (result.within.low, result.within.high) == pytest.approx((0.8583, 0.9951), abs=5e-5)
    assert (result.between.low, result.between.high) == pytest.approx((0.8186, 0.9846), abs=5e-5)
    assert result.p == pytest.approx(0.555, abs=5e-4)
    assert "no reason to blame" in result.explain()


def test_answer_rate_keeps_empty_responses_in_the_denominator():
    number = answer_rate(["ANSWERED", "REFUSED", "EMPTY", None])
    assert (number.numerator, number.denominator) == (1, 3)
    assert dict(number.excluded) == {"no_valid_verdict": 1}


# Claims and bad ones of the twelve responses of EX-CL1
EX_CL1 = [(8, 0), (6, 0), (10, 5), (5, 0), (7, 1), (9, 0), (4, 4), (12, 0), (6, 2), (8, 0), (5, 3), (7, 0)]


def test_lengths_are_those_of_answers():
    result = response_lengths(
        ["one two  three", "", "a b c d e", "no"], ["ANSWERED", "EMPTY", "ANSWERED", "REFUSED"]
    )
    assert (result.mean.value, result.median) == (4.0, 4.0)
    assert result.mean.excluded["not_answered"] == 2


def test_extraction_error():
    result = extraction_error(
        ["well split", "merged", "well_split", None], ["i", "i", "j", "j"], [0, 2], ["i", "j"]
    )
    assert (result.error.numerator, result.error.denominator) == (1, 3)
    assert result.missed_per_response.value == 1.0
    assert {fault: number.numerator for fault, number in result.by_fault.items()} == {
        "badly_split": 0,
        "not_in_response": 0,
        "merged": 1,
    }


def test_extraction_error_has_the_clustered_interval_and_its_faults_add_up():
    """EX-CL1's counts, as marks: 15 of 87 claims, clustered limits of the worked example."""
    marks, items = [], []
    for item, (claims, bad) in enumerate(EX_CL1):
        faults = (["badly_split", "not_in_response"] * bad)[:bad]
        marks += faults + ["well_split"] * (claims - bad)
        items += [item] * claims
    result = extraction_error(marks, items, [0] * 11 + [3], list(range(12)))
    assert (result.error.low, result.error.high) == pytest.approx((0.064185, 0.387559), abs=1e-6)
    assert sum(number.numerator for number in result.by_fault.values()) == result.error.numerator == 15
    assert result.missed_per_response.value == 0.25
    assert result.missed_per_response.low == 0.0  # 0.25 - 2.201 * 0.25 is below what a count can be
    assert result.missed_per_response.high == pytest.approx(0.25 + 2.200985 * 0.25, abs=1e-5)


def test_extraction_that_nobody_looked_at_is_undefined_and_says_so():
    nobody = extraction_error([None, None], ["i", "i"], [], [])
    assert [number.undefined for number in (nobody.error, nobody.missed_per_response)] == ["not_audited"] * 2
    assert dict(nobody.error.excluded) == {"not_audited": 2}
    assert "nobody has checked" in nobody.explain()
    without_claims = extraction_error([], [], [2], ["i"])
    assert without_claims.error.undefined == "zero_denominator"
    assert without_claims.missed_per_response.value == 2
