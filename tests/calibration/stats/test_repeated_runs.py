"""Labels of several runs: a rate uses the mean of the runs, with the spread that such means have."""

import json
import math

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from calibration.stats import (
    abstention_rates,
    answer_rate,
    citation_scores,
    compare_rates,
    correct_bad_share,
    hallucination_rates,
    label_shares,
    lengths_in_words,
    magesh_rates,
    ppi_ratio,
    rogan_gladen,
    self_consistency,
)
from calibration.stats.intervals import ratio_variance, share_of_runs
from calibration.stats.repeated import UnitMeans
from tests.calibration.stats.test_comparison_examples import GROUNDING, SC1
from tests.calibration.stats.test_mappings_retrieval_citations import BARE, ONE, TWO, CitedResponse

S, C, U, V, NO = 0, 1, 2, 3, -1
HEADLINES = ("hallucination", "contradicted", "faithfulness", "unverifiable_share", "supported_share")


def numbers(result):
    return json.dumps(result.as_dict(), sort_keys=True)


def bad_means(runs):
    runs = np.array(runs)
    return UnitMeans.over(np.isin(runs, (C, U)), runs >= 0, runs >= 0)


def test_the_standard_error_is_that_of_the_worked_example():
    """EX-SC1: 8 items in 3 runs, bad share of all claims .375, standard error with 3 runs .159830."""
    units = bad_means(SC1)
    ratio = ratio_variance(units.numerator, units.denominator, units=units)
    assert ratio.share == pytest.approx(0.375)
    assert ratio.se == pytest.approx(0.159830, abs=5.1e-7)

    effective = 0.375 * 0.625 / 0.159830**2  # 9.17 claims with one label each would be as precise as these 8
    number = share_of_runs(units, np.arange(8), 8, label="bad", unit="claim", definition="d")
    expected = proportion_confint(0.375 * effective, effective, method="wilson")
    assert (number.low, number.high) == pytest.approx(expected, abs=5e-6)


def test_the_rates_of_the_worked_example():
    """EX-SC1 by hand, in claims: supported 13/3, contradicted 2/3, unsupported 7/3, unverifiable 2/3."""
    rates = hallucination_rates(np.array(SC1), range(8))
    assert rates.counts == pytest.approx(
        {"supported": 13 / 3, "contradicted": 2 / 3, "unsupported": 7 / 3, "unverifiable": 2 / 3}
    )
    assert rates.hallucination.value == pytest.approx(9 / 22)
    assert rates.contradicted.value == pytest.approx(1 / 11)
    assert rates.faithfulness.value == pytest.approx(13 / 22)
    assert rates.unverifiable_share.value == pytest.approx(1 / 12)
    assert rates.supported_share.value == pytest.approx(13 / 24)
    assert rates.hallucination.denominator == pytest.approx(22 / 3)
    assert rates.hallucination.excluded["unverifiable"] == pytest.approx(2 / 3)
    assert "3 of 7.33 claims" in rates.hallucination.explain()


def test_the_clustered_error_is_that_of_a_regression_on_the_means():
    """statsmodels: OLS of each claim's mean on a constant, covariance clustered by item."""
    rng = np.random.default_rng(4)
    item = np.repeat(np.arange(40), 3)
    tendency = np.repeat(rng.beta(0.6, 1.4, 40), 3)
    runs = np.where(rng.random((120, 4)) < tendency[:, None], U, S)
    units = bad_means(runs)
    y = np.bincount(item, weights=units.numerator)
    ratio = ratio_variance(y, np.full(40, 3.0), units=units)
    fitted = sm.OLS(units.numerator, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": item})
    # statsmodels multiplies by (n - 1)/(n - 1) for one parameter, so only R/(R - 1) is left.
    assert ratio.se == pytest.approx(float(fitted.bse[0]), rel=1e-9)


LOST = [[S, S], [S, U], [U, NO], [S, S], [NO, NO], [S, S]]
OF_RESPONSE = [0, 0, 1, 1, 2, 2]


def test_a_claim_with_a_failed_run_counts_by_the_others_and_the_range_covers_what_failed():
    """By hand: means 0, 1/2, 1, 0, none, 0. Of 12 labels 9 are there and 2 of them bad."""
    rates = hallucination_rates(np.array(LOST), OF_RESPONSE, missing_reason=["verdict_failed"] * 6)
    assert (rates.hallucination.numerator, rates.hallucination.denominator) == (1.5, 5)
    assert rates.missing == {"verdict_failed": 1}
    assert rates.hallucination.worst_case == pytest.approx((2 / 12, 5 / 12))


def test_a_response_counts_by_the_runs_that_labelled_all_of_its_claims():
    """By hand: the first 1/2, the second 1 in its one whole run, the third none; bad 2 of 6, at most 5."""
    rates = hallucination_rates(np.array(LOST), OF_RESPONSE, unit="response")
    assert (rates.hallucination.numerator, rates.hallucination.denominator) == (1.5, 2)
    assert rates.hallucination.excluded == {"unlabelled_claims": 1}
    assert rates.hallucination.worst_case == pytest.approx((2 / 6, 5 / 6))
    # Mean share of bad claims: (0 + 1/2)/2 and 1/2 in the only whole run.
    assert rates.mean_share.value == pytest.approx((0.25 + 0.5) / 2)


def test_refusals_in_several_runs():
    """By hand: over-answering (1 + 1/2)/2 of two, over-refusal 1/2 of two; the third answerable has none."""
    verdicts = np.array(
        [
            ["ANSWERED", "ANSWERED"],
            ["ANSWERED", "REFUSED"],
            ["REFUSED", "ANSWERED"],
            ["EMPTY", "EMPTY"],
            [None, None],
        ],
        dtype=object,
    )
    kinds = ["unanswerable", "unanswerable", "answerable", "answerable", "answerable"]
    rates = abstention_rates(kinds, verdicts, informative=[None, True, None, None, None])
    assert (rates.over_answering.numerator, rates.over_answering.denominator) == (1.5, 2)
    assert (rates.over_refusal.numerator, rates.over_refusal.denominator) == (0.5, 2)
    assert rates.over_refusal.worst_case == pytest.approx((0.5 / 3, 1.5 / 3))
    assert rates.over_refusal.excluded == {"no_valid_verdict": 1}
    assert (rates.informativeness.numerator, rates.informativeness.denominator) == (0.5, 0.5)
    assert rates.matrix["unanswerable"] == {
        "ANSWERED": 1.5,
        "REFUSED": 0.5,
        "CLARIFY": 0,
        "EMPTY": 0,
        "missing": 0,
    }
    assert rates.matrix["answerable"]["missing"] == 1
    assert answer_rate(verdicts).value == pytest.approx(2 / 4)
    # Words weigh by the share that is ANSWERED: (10 + 20/2 + 40/2) / 2, half of the weight at 10 words.
    lengths = lengths_in_words([10, 20, 40, 0, 5], verdicts)
    assert (lengths.mean.value, lengths.median) == (20, 15)


def flags(both, one, total):
    """So many claims flagged in both runs, in the first alone, and the rest in neither."""
    return [[U, U]] * both + [[U, S]] * one + [[S, S]] * (total - both - one)


def test_the_correction_takes_the_mean_on_both_sides():
    """EX-RG1's Se .85, Sp .95 and 13 % in halves: theta .100000; each effective number is p(1 - p)/v."""
    gold = ["unsupported"] * 40 + ["supported"] * 160
    judge, rest = np.array(flags(30, 8, 40) + flags(6, 4, 160)), np.array(flags(120, 20, 1000))
    found = correct_bad_share(gold, judge, rest, design="separate")
    assert found.number.value == pytest.approx(0.1, abs=1e-9)
    assert found.raw.value == pytest.approx(0.13)

    def effective(values, share):
        return share * (1 - share) / (np.var(values, ddof=1) / len(values))

    halves = [effective(bad_means(runs).numerator, share) for runs, share in (
        (judge[:40], 0.85), (judge[40:], 0.05), (rest, 0.13)
    )]  # fmt: skip
    expected = rogan_gladen(
        0.13, halves[2], sensitivity=0.85, n_positive=halves[0], specificity=0.95, n_negative=halves[1]
    )
    assert (found.number.low, found.number.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_prediction_powered_takes_the_mean_on_both_sides():
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 2, 60) * U
    judge = np.where(rng.random((60, 3)) < 0.85, gold[:, None], U - gold[:, None])
    truth = rng.integers(0, 2, 300) * U
    rest = np.where(rng.random((300, 3)) < 0.85, truth[:, None], U - truth[:, None])
    found = correct_bad_share(gold, judge, rest, design="random")
    assert found.method == "ppi"
    ones = np.ones(60)
    expected = ppi_ratio(ones, gold / U, (judge == U).mean(axis=1), np.ones(300), (rest == U).mean(axis=1))
    assert (found.number.value, found.number.low) == pytest.approx((expected.value, expected.low), abs=1e-12)


def test_a_comparison_of_means_is_no_exact_test():
    """Halves are no pairs: the jackknife over the items; by hand the difference (.5 + .5 + 0 + 0)/4."""
    found = compare_rates([1, 0.5, 0, 0.5], [1] * 4, [0.5, 0, 0, 0.5], [1] * 4)
    assert found.difference.value == pytest.approx(0.25)
    assert found.mcnemar is None
    se = np.std([0.5, 0.5, 0, 0], ddof=1) / 2
    assert found.difference.high == pytest.approx(min(1.0, 0.25 + 3.182446 * se), abs=1e-6)  # t, 3 df, .975


def test_citations_of_several_runs_are_means_of_each_response():
    first, second = CitedResponse((ONE, BARE), 3), CitedResponse((ONE, ONE), 3)
    other = CitedResponse((TWO,), 3)
    scores = citation_scores([first, second, other, other], clusters=[1, 1, 2, 2], repeats_of=[7, 7, 8, 8])
    assert scores.recall.n == 2
    assert scores.recall.value == pytest.approx(((0.5 + 1) / 2 + 1) / 2)


SOME = st.integers(1, 4).flatmap(
    lambda k: st.lists(
        st.lists(st.sampled_from([S, C, U, V]), min_size=k, max_size=k), min_size=1, max_size=30
    )
)


@settings(deadline=None, max_examples=30)
@given(SOME, st.integers(1, 5))
def test_the_rate_is_the_mean_of_the_rates_of_the_runs(runs, size):
    """Where the whole is the same in every run; where it is not, weighted by what each run counted."""
    table = np.array(runs)
    response = np.arange(len(table)) // size
    together = {unit: hallucination_rates(table, response, unit=unit) for unit in ("claim", "response")}
    apart = {
        unit: [hallucination_rates(column, response, unit=unit) for column in table.T]
        for unit in ("claim", "response")
    }

    def same(unit, name):
        values = [getattr(rates, name).value for rates in apart[unit]]
        assert getattr(together[unit], name).value == pytest.approx(np.mean(values), abs=1e-12)

    for name in ("unverifiable_share", "supported_share"):
        same("claim", name)
    for name in HEADLINES[:4]:
        same("response", name)
    pooled = [rates.hallucination for rates in apart["claim"]]
    counted = sum(rate.denominator for rate in pooled)
    if counted:
        expected = sum(rate.numerator for rate in pooled) / counted
        assert together["claim"].hallucination.value == pytest.approx(expected, abs=1e-12)
    else:
        assert together["claim"].hallucination.undefined == "zero_denominator"
    shares = label_shares(table, labels=GROUNDING)
    for position, entry in enumerate(shares):
        assert entry.share.value == pytest.approx(np.mean(table == position), abs=1e-12)
    words = np.array(["ANSWERED", "REFUSED", "CLARIFY", "EMPTY"], dtype=object)[table]
    refusals = [abstention_rates(["answerable"] * len(table), column.tolist()) for column in words.T]
    found = abstention_rates(["answerable"] * len(table), words)
    assert found.over_refusal.value == pytest.approx(np.mean([one.over_refusal.value for one in refusals]))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from([S, C, U, V, NO]), min_size=1, max_size=30), st.integers(1, 5))
def test_saying_the_same_again_changes_nothing(labels, size):
    """One run, as a table or not, gives the same bytes; three alike the same numbers, intervals included."""
    codes = np.array(labels)
    response = np.arange(len(codes)) // size
    for unit in ("claim", "response"):
        once = hallucination_rates(codes, response, unit=unit)
        assert numbers(hallucination_rates(codes[:, None], response, unit=unit)) == numbers(once)
        thrice = hallucination_rates(np.repeat(codes[:, None], 3, axis=1), response, unit=unit)
        for name in HEADLINES:
            assert numbers(getattr(thrice, name)) == numbers(getattr(once, name))
        for name in ("mean_share", "mean_faithfulness"):  # a third three times is not quite one
            first, again = getattr(once, name), getattr(thrice, name)
            for part in ("value", "low", "high", "n"):
                assert getattr(again, part) == pytest.approx(getattr(first, part))
    gold = np.resize([S, U], len(codes))
    single = correct_bad_share(gold, codes, codes, design="random")
    assert numbers(correct_bad_share(gold, codes[:, None], codes[:, None], design="random")) == numbers(
        single
    )


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.lists(st.sampled_from([S, C, U, V, NO]), min_size=3, max_size=3), min_size=1, max_size=25),
    st.integers(1, 4),
)
def test_every_rate_lies_within_its_interval_and_within_what_the_failures_allow(runs, size):
    table = np.array(runs)
    for unit in ("claim", "response"):
        rates = hallucination_rates(table, np.arange(len(table)) // size, unit=unit)
        for name in HEADLINES:
            number = getattr(rates, name)
            if number.low is not None:
                assert 0 <= number.low <= number.value <= number.high <= 1
            if number.worst_case is not None:
                assert 0 <= number.worst_case[0] <= number.worst_case[1] <= 1


@pytest.mark.parametrize(("items", "claims", "p"), [(20, 1, 0.3), (60, 5, 0.1)])
def test_the_interval_of_means_holds(items, claims, p):
    """Of 600 simulated judges, three runs each, the intervals cover p: .95 but for three errors of that."""
    rng = np.random.default_rng(11)
    item = np.repeat(np.arange(items), claims)
    covered = 0
    for _replicate in range(600):
        tendency = rng.beta(4 * p, 4 * (1 - p), items)[item]  # items differ, and runs of one claim do
        hit = rng.random((len(item), 3)) < tendency[:, None]
        known = np.ones_like(hit)
        number = share_of_runs(
            UnitMeans.over(hit, known, known), item, items, label="", unit="claim", definition=""
        )
        covered += number.low <= p <= number.high
    assert covered / 600 > 0.95 - 3 * math.sqrt(0.95 * 0.05 / 600)


def test_buckets_of_several_runs():
    """By hand: wrong 1/2 and 0, declined 0 and 1; the second run of the second response lacks its ground."""
    right = np.array([["correct", "incorrect"], ["refusal", "correct"]], dtype=object)
    ground = np.array([["grounded", None], [None, None]], dtype=object)
    rates = magesh_rates(right, ground)
    assert (rates.wrong.numerator, rates.accurate.numerator, rates.declined.numerator) == (0.5, 0.5, 1)
    assert rates.wrong.denominator == 2


def test_the_split_of_the_variance_has_an_interval():
    """EX-SC1: 1 - .679389; the interval by leaving out one item after the other, t with 7 df (2.364624)."""
    found = self_consistency(np.array(SC1), labels=GROUNDING).share_within
    bad = np.isin(np.array(SC1), (C, U)).astype(float)

    def share(rows):
        within = rows.var(axis=1, ddof=1).mean()
        between = max(0.0, rows.mean(axis=1).var(ddof=1) - within / 3)
        return within / (within + between)

    left = np.array([share(np.delete(bad, row, axis=0)) for row in range(8)])
    se = math.sqrt(7 / 8 * np.square(left - left.mean()).sum())
    assert found.value == pytest.approx(1 - 0.679389, abs=5.1e-7)
    assert found.low == pytest.approx(max(0.0, found.value - 2.364624 * se), abs=1e-6)
    assert found.high == pytest.approx(min(1.0, found.value + 2.364624 * se), abs=1e-6)


def test_where_there_is_nothing_to_split_it_is_said():
    alike = self_consistency([["supported"] * 2] * 12, labels=GROUNDING).share_within
    assert (alike.value, alike.undefined) == (None, "one_label_only")
    assert (
        self_consistency([["supported"] * 2], labels=GROUNDING).share_within.undefined == "too_few_clusters"
    )
    steady = [["supported"] * 2, ["unsupported"] * 2] * 6
    number = self_consistency(steady, labels=GROUNDING).share_within
    assert (number.value, number.low, number.flags) == (0, None, ("no_variation",))
