"""Rates and abstention against worked examples (statsmodels, scipy)."""

import pytest

from calibration.stats import (
    GROUNDING_LABELS,
    abstention_rates,
    clustered_rate,
    hallucination_rates,
    intraclass_correlation,
    kish_design_effect,
    wilson,
)

from .examples import CL1_BAD, CL1_DENOMINATORS


def claims(supported=0, contradicted=0, unsupported=0, unverifiable=0):
    counts = (supported, contradicted, unsupported, unverifiable)
    return [label for label, count in zip(GROUNDING_LABELS, counts, strict=True) for _ in range(count)]


def cl1():
    labels, response = [], []
    for number, (size, bad) in enumerate(zip(CL1_DENOMINATORS, CL1_BAD, strict=True)):
        labels += claims(supported=size - bad, unsupported=bad)
        response += [number] * size
    return labels, response


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (12, 300, 0.023027, 0.068604),
        (18, 300, 0.038286, 0.092839),
        (0, 50, 0, 0.071348),
        (50, 50, 0.928652, 1),
        (0, 1, 0, 0.793451),
        (1, 1, 0.206549, 1),
    ],
)
def test_wilson(k, n, low, high):
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-7)


@pytest.mark.parametrize(("k", "n"), [(38, 38), (0, 77)])
def test_wilson_never_leaves_the_unit_interval(k, n):
    low, high = wilson(k, n)
    assert 0 <= low <= high <= 1


def test_pooled_rate_with_one_claim_per_response():
    labels = claims(60, 12, 19, 9)
    rates = hallucination_rates(labels, range(100))
    assert rates.hallucination.value == pytest.approx(0.340659, abs=5e-7)
    assert (rates.hallucination.low, rates.hallucination.high) == pytest.approx(
        (0.251514, 0.442713), abs=5e-7
    )
    assert rates.contradicted.value == pytest.approx(0.131868, abs=5e-7)
    assert (rates.contradicted.low, rates.contradicted.high) == pytest.approx((0.077071, 0.216487), abs=5e-7)
    assert rates.unverifiable_share.value == pytest.approx(0.09)
    bounds = (rates.unverifiable_share.low, rates.unverifiable_share.high)
    assert bounds == pytest.approx((0.048073, 0.162262), abs=5e-7)
    assert rates.faithfulness.value == pytest.approx(1 - 0.340659, abs=5e-7)
    assert rates.supported_share.value == pytest.approx(0.60)


def test_clustered_claims():
    number = clustered_rate(CL1_BAD, CL1_DENOMINATORS)
    assert number.value == pytest.approx(0.172414, abs=5e-7)
    assert (number.low, number.high) == pytest.approx((0.064185, 0.387559), abs=5e-7)
    assert (number.n, number.clusters, number.numerator, number.denominator) == (87, 12, 15, 87)


def test_clustered_claims_parts():
    import numpy as np

    from calibration.stats.intervals import ratio_variance

    ratio = ratio_variance(np.array(CL1_BAD, float), np.array(CL1_DENOMINATORS, float))
    assert ratio.se == pytest.approx(0.076871, abs=5e-7)
    assert ratio.design_effect == pytest.approx(3.602926, abs=5e-7)
    assert 87 / ratio.design_effect == pytest.approx(24.1470, abs=5e-5)
    assert ratio.n_eff == pytest.approx(19.6985, abs=5e-5)


def test_clustered_claims_cross_checks():
    import numpy as np
    from scipy.stats import t

    from calibration.stats import cluster_bootstrap
    from calibration.stats.intervals import ratio_variance

    bad, den = np.array(CL1_BAD, float), np.array(CL1_DENOMINATORS, float)
    ratio = ratio_variance(bad, den)
    assert ratio.se * np.sqrt(11 / 12) == pytest.approx(0.073598, abs=5.1e-7)
    half = t.ppf(0.975, 11) * ratio.se
    assert (ratio.share - half, ratio.share + half) == pytest.approx((0.003223, 0.341605), abs=5.1e-7)
    assert wilson(15, 87) == pytest.approx((0.107363, 0.265170), abs=5.1e-7)
    table, rng = np.column_stack([bad, den]), np.random.default_rng(12345)
    low, high, _ = cluster_bootstrap(table, lambda sums: sums[:, 0] / sums[:, 1], draws=10_000, rng=rng)
    assert (low, high) == pytest.approx((0.043956, 0.336957), abs=0.006)


def test_how_alike_the_claims_of_an_item_are():
    icc = intraclass_correlation(CL1_BAD, CL1_DENOMINATORS)
    assert icc == pytest.approx(0.476767, abs=5.1e-7)
    assert kish_design_effect(87 / 12, icc) == pytest.approx(3.980, abs=5.1e-4)
    assert intraclass_correlation([0, 1], [1, 1]) is None
    assert intraclass_correlation([0, 0], [3, 4]) is None


def test_units_are_never_mixed():
    labels, response = cl1()
    pooled = hallucination_rates(labels, response)
    by_response = hallucination_rates(labels, response, unit="response")
    assert pooled.hallucination.value == pytest.approx(0.172414, abs=5e-7)
    assert by_response.hallucination.value == pytest.approx(0.416667, abs=5e-7)
    bounds = (by_response.hallucination.low, by_response.hallucination.high)
    assert bounds == pytest.approx((0.193260, 0.680489), abs=5e-7)
    assert pooled.mean_share.value == pytest.approx(0.214683, abs=5e-7)


def test_rate_of_zero_gives_each_response_one_vote():
    number = clustered_rate([0, 0, 0], [5, 4, 6])
    assert (number.low, number.high) == pytest.approx(wilson(0, 3))


def test_rate_of_nothing_is_undefined():
    assert clustered_rate([0, 0], [0, 0]).undefined == "zero_denominator"
    assert hallucination_rates([], []).hallucination.undefined == "zero_denominator"


def test_zero_claim_and_all_unverifiable_responses():
    labels = claims(3, 1, 0, 2) + claims(unverifiable=2)
    rates = hallucination_rates(labels, ["B"] * 6 + ["C"] * 2, responses=["A", "B", "C"])
    assert (rates.hallucination.numerator, rates.hallucination.denominator) == (1, 4)
    assert rates.mean_faithfulness.value == pytest.approx(0.875)
    assert rates.mean_faithfulness.excluded["all_unverifiable"] == 1
    assert (rates.zero_claim, rates.all_unverifiable) == (1, 1)


def test_a_response_without_claims_that_nobody_calls_an_answer_or_none_is_no_known_gap():
    """A may be a gap or a refusal: 0 gaps would claim to know. B .5, C refused 1; with A as well 2.5 / 3."""
    given = {"responses": ["A", "B", "C"], "labels": claims(1, 1), "response": ["B", "B"]}
    rates = hallucination_rates(**given, verdicts=[None, "ANSWERED", "REFUSED"])
    assert (rates.extraction_gaps, rates.zero_claim_without_verdict) == ((), 1)
    assert rates.mean_faithfulness.value == pytest.approx(2.5 / 3)
    without = rates.mean_faithfulness_without_gaps
    assert (without.value, dict(without.excluded)) == (0.75, {"no_valid_verdict": 1})
    assert rates.as_dict()["zero_claim_without_verdict"] == 1

    unasked = hallucination_rates(**given)
    assert unasked.zero_claim_without_verdict == 2
    assert unasked.mean_faithfulness_without_gaps.value == 0.5


def test_extraction_gap_is_listed_and_left_out_once():
    rates = hallucination_rates(
        claims(1, 1),
        ["B", "B"],
        responses=["A", "B", "D", "E"],
        verdicts=["REFUSED", "ANSWERED", "ANSWERED", "EMPTY"],
    )
    assert rates.extraction_gaps == ("D",)
    assert rates.review_queue == ("D", "E")
    assert rates.mean_faithfulness.value == pytest.approx((1 + 0.5 + 1) / 3)
    assert rates.mean_faithfulness_without_gaps.value == pytest.approx((1 + 0.5) / 2)
    assert rates.empty == 1 and rates.mean_faithfulness.excluded["empty"] == 1


def test_failures_widen_the_range_and_never_the_counts():
    labels = claims(784, unsupported=170) + [None] * 46
    rates = hallucination_rates(labels, range(1000), missing_reason=[None] * 954 + ["failed"] * 46)
    assert rates.hallucination.value == pytest.approx(0.1782, abs=5e-5)
    assert rates.hallucination.worst_case == pytest.approx((0.170, 0.216))
    assert rates.hallucination.excluded["failed"] == 46
    assert rates.counts["unsupported"] == 170


def test_mostly_unverifiable_is_flagged():
    rates = hallucination_rates(claims(4, unverifiable=2), range(6))
    assert "mostly_unverifiable" in rates.hallucination.flags


def test_decision_unit_counts_flagged_claims_only():
    rates = hallucination_rates(
        claims(3, 2), range(5), decision=[True, False, False, True, False], unit="decision"
    )
    assert (rates.hallucination.numerator, rates.hallucination.denominator) == (1, 2)
    assert rates.hallucination.excluded["not_decision_critical"] == 3


REASONS = {
    "out_of_scope": (2, 18, 0, 15),
    "in_domain_absent": (11, 19, 0, 9),
    "false_premise": (6, 8, 1, 6),
    "time_shifted": (5, 5, 0, 2),
    "permission_shifted": (1, 9, 0, 4),
}


def abstention_example():
    kind, verdict, reason, informative = [], [], [], []
    for name, (answered, refused, clarify, graded) in REASONS.items():
        total = answered + refused + clarify
        kind += ["unanswerable"] * total
        reason += [name] * total
        verdict += ["ANSWERED"] * answered + ["REFUSED"] * refused + ["CLARIFY"] * clarify
        informative += [None] * answered + [True] * graded + [False] * (refused - graded) + [None] * clarify
    kind += ["answerable"] * 300 + ["underspecified"] * 15
    verdict += ["ANSWERED"] * 270 + ["REFUSED"] * 21 + ["CLARIFY"] * 9 + ["CLARIFY"] * 9 + ["ANSWERED"] * 6
    reason += [None] * 300 + ["underspecified"] * 15
    informative += [None] * 315
    return abstention_rates(kind, verdict, reason=reason, informative=informative)


@pytest.mark.parametrize(
    ("name", "value", "low", "high"),
    [
        ("over_answering", 0.294118, 0.207855, 0.398185),
        ("informativeness", 0.610169, 0.482663, 0.724206),
        ("over_refusal", 0.07, 0.046237, 0.104636),
        ("needless_clarification", 0.03, 0.015862, 0.056023),
        ("clarification", 0.60, 0.357468, 0.801755),
    ],
)
def test_abstention_rates(name, value, low, high):
    number = getattr(abstention_example(), name)
    assert (number.value, number.low, number.high) == pytest.approx((value, low, high), abs=5e-7)


def test_over_answering_by_reason():
    expected = {
        "out_of_scope": (0.10, 0.0279, 0.3010),
        "in_domain_absent": (0.366667, 0.2187, 0.5449),
        "false_premise": (0.40, 0.1982, 0.6425),
        "time_shifted": (0.50, 0.2366, 0.7634),
        "permission_shifted": (0.10, 0.0179, 0.4042),
    }
    rows = {row.reason: row for row in abstention_example().by_reason}
    for reason, values in expected.items():
        number = rows[reason].over_answering
        assert (number.value, number.low, number.high) == pytest.approx(values, abs=5.1e-5), reason
        assert ("small_sample" in number.flags) == (sum(REASONS[reason][:3]) < 20)


def test_empty_output_is_no_refusal():
    rates = abstention_rates(["unanswerable"] * 4, ["REFUSED", "ANSWERED", "EMPTY", None])
    assert (rates.over_answering.numerator, rates.over_answering.denominator) == (1, 3)
    assert rates.matrix["unanswerable"] == {
        "ANSWERED": 1,
        "REFUSED": 1,
        "CLARIFY": 0,
        "EMPTY": 1,
        "missing": 1,
    }
    assert rates.over_answering.worst_case == pytest.approx((0.25, 0.5))
    assert dict(rates.over_answering.excluded) == {"no_valid_verdict": 1}


def test_a_half_labelled_response_is_left_out_even_when_it_is_already_bad():
    rates = hallucination_rates(
        ["unsupported", None, "supported", "supported", None],
        ["A", "A", "B", "C", "C"],
        responses=["A", "B", "C"],
        unit="response",
    )
    assert (rates.hallucination.numerator, rates.hallucination.denominator) == (0, 1)
    assert rates.hallucination.excluded["unlabelled_claims"] == 2
    assert rates.hallucination.worst_case == pytest.approx((1 / 3, 2 / 3))
    assert rates.faithfulness.worst_case == pytest.approx((1 / 3, 2 / 3))
