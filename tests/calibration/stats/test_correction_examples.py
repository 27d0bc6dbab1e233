"""Judge-corrected rates against published and library values (Lang and Reiczigel, ppi_py, glide)."""

import numpy as np
import pytest
from scipy.optimize import minimize

from calibration.stats import (
    GROUNDING_LABELS,
    correct_bad_share,
    invert_confusion,
    ppi_mean,
    ppi_ratio,
    rogan_gladen,
)
from calibration.stats.inversion import simplex_least_squares

from .examples import columns

MC1 = [[104, 2, 12, 2], [2, 18, 4, 0], [8, 3, 25, 2], [1, 0, 4, 13]]

LABELLED = [
    (8, 0, 1),
    (6, 0, 0),
    (10, 5, 4),
    (5, 0, 0),
    (7, 1, 2),
    (9, 0, 0),
    (4, 4, 3),
    (12, 0, 1),
    (6, 2, 1),
    (8, 0, 0),
]
UNLABELLED = [
    *[(7, 1), (5, 0), (9, 2), (6, 0), (8, 1), (4, 0), (10, 3), (6, 1), (7, 0), (5, 2)],
    *[(8, 0), (9, 1), (6, 0), (4, 2), (11, 1), (7, 0), (5, 1), (8, 0), (6, 3), (9, 0)],
    *[(7, 1), (6, 0), (10, 1), (5, 0), (8, 4), (4, 0), (7, 0), (9, 1), (6, 1), (8, 0)],
]


def judged(total, flagged):
    return np.repeat([1, 0], [flagged, total - flagged])


def gold_sample():
    """40 gold bad (34 flagged), 160 gold good (8 flagged)."""
    return np.repeat([1, 0], [40, 160]), np.repeat([1, 0, 1, 0], [34, 6, 8, 152])


@pytest.mark.parametrize(
    ("p", "n", "se", "m1", "sp", "m0", "value", "low", "high"),
    [
        (0.130, 1000, 0.85, 40, 0.95, 160, 0.100000, 0.046807, 0.148727),
        (0.4, 1000, 0.9, 200, 0.7, 200, 0.166667, 0.056351, 0.262733),
        (0.130, 100, 0.85, 40, 0.95, 160, 0.100000, 0.016975, 0.210995),
        (0.02, 1000, 0.85, 40, 0.95, 160, 0.0, 0.0, 0.002077),
    ],
)
def test_rogan_gladen(p, n, se, m1, sp, m0, value, low, high):
    number = rogan_gladen(p, n, sensitivity=se, n_positive=m1, specificity=sp, n_negative=m0)
    assert (number.value, number.low, number.high) == pytest.approx((value, low, high), abs=5.1e-7)
    assert ("clipped" in number.flags) == (p < 1 - sp)


@pytest.mark.parametrize(("se", "sp"), [(0.5, 0.5), (0.3, 0.4), (0.55, 0.5)])
def test_a_judge_no_better_than_chance_corrects_nothing(se, sp):
    number = rogan_gladen(0.3, 500, sensitivity=se, n_positive=100, specificity=sp, n_negative=100)
    assert number.undefined == "judge_not_better_than_chance"


def test_gold_of_one_class_corrects_nothing():
    number = rogan_gladen(0.3, 500, sensitivity=1, n_positive=0, specificity=1, n_negative=100)
    assert number.undefined == "single_class_gold"


def inverted(judge_counts, draws=2000, seed=99):
    gold, judge = columns(MC1)
    rest = np.repeat(np.arange(4), judge_counts)
    return invert_confusion(gold, judge, rest, draws=draws, rng=np.random.default_rng(seed))


def test_confusion_inversion():
    result = inverted([640, 60, 230, 70], draws=4000)
    shares = [share.value for share in result.shares.values()]
    assert shares == pytest.approx([0.678293, 0.042448, 0.213551, 0.065708], abs=5.1e-7)
    assert result.condition_number == pytest.approx(2.0981, abs=5e-5)
    assert result.hallucination.value == pytest.approx(0.274003, abs=5.1e-7)
    assert (result.hallucination.low, result.hallucination.high) == pytest.approx((0.1688, 0.3872), abs=0.01)
    assert result.bad_share.value == pytest.approx(0.2560, abs=5e-5)
    assert result.skipped_draws == 0


def test_bad_share_by_inversion_and_by_two_classes_differ():
    gold, judge = columns(MC1)
    bad = np.array([0, 1, 1, 0])
    table = np.zeros((2, 2))
    np.add.at(table, (bad[gold], bad[judge]), 1)
    number = rogan_gladen(
        0.29,
        1000,
        sensitivity=table[1, 1] / table[1].sum(),
        n_positive=table[1].sum(),
        specificity=table[0, 0] / table[0].sum(),
        n_negative=table[0].sum(),
    )
    assert number.value == pytest.approx(0.2360, abs=5e-5)


def test_negative_share_is_moved_to_the_simplex():
    result = inverted([700, 10, 250, 40])
    shares = [share.value for share in result.shares.values()]
    assert shares == pytest.approx([0.738900, 0, 0.248328, 0.012772], abs=5.1e-7)
    assert "on_simplex" in result.hallucination.flags


def test_unconstrained_solution_is_numpys():
    table = np.array(MC1, float)
    confusion = (table / table.sum(axis=1, keepdims=True)).T
    expected = np.linalg.solve(confusion, [0.70, 0.01, 0.25, 0.04])
    assert expected == pytest.approx([0.744290, -0.031474, 0.268546, 0.018639], abs=5.1e-7)


def test_simplex_solution_is_the_optimisers():
    rng = np.random.default_rng(7)
    matrices = np.stack([rng.dirichlet(np.ones(4) * 0.7, size=4).T for _ in range(25)])
    targets = rng.dirichlet(np.ones(4) * 0.4, size=25)
    ours = simplex_least_squares(matrices, targets)
    for matrix, target, shares in zip(matrices, targets, ours, strict=True):
        assert shares.sum() == pytest.approx(1) and shares.min() >= 0
        best = minimize(
            lambda x, m=matrix, q=target: ((m @ x - q) ** 2).sum(),
            np.full(4, 0.25),
            method="SLSQP",
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        assert ((matrix @ shares - target) ** 2).sum() <= best.fun + 1e-9


def test_inversion_is_refused_without_gold_of_a_label():
    gold, judge = ["supported", "contradicted"] * 20, ["supported", "contradicted"] * 20
    result = invert_confusion(gold, judge, judge, rng=np.random.default_rng(1))
    assert result.undefined == result.hallucination.undefined == "singular_confusion"


def test_inversion_is_refused_where_labels_cannot_be_told_apart():
    gold = [label for label in GROUNDING_LABELS for _ in range(40)]
    judge = ["supported", "unsupported"] * 80
    result = invert_confusion(gold, judge, judge, rng=np.random.default_rng(1))
    assert result.undefined == "singular_confusion"


@pytest.mark.parametrize(
    ("weight", "value", "low", "high"),
    [
        (0, 0.200, 0.144564, 0.255436),
        (1, 0.120, 0.077845, 0.162155),
        (None, 0.130213, 0.090979, 0.169447),
    ],
)
def test_prediction_powered_mean(weight, value, low, high):
    gold, judge = gold_sample()
    number = ppi_mean(gold, judge, judged(1000, 130), weight=weight)
    assert (number.value, number.low, number.high) == pytest.approx((value, low, high), abs=1e-6)


def test_prediction_powered_mean_of_a_matched_sample():
    gold, judge = gold_sample()
    number = ppi_mean(gold, judge, judged(1000, 210))
    assert (number.value, number.low, number.high) == pytest.approx((0.200, 0.161368, 0.238632), abs=1e-6)


def test_prediction_powered_mean_out_of_range_is_clipped():
    # Two gold-bad claims among 30, the judge flags 8 of them and 60 of 1000 others: -.14 [-.2839, .0039].
    number = ppi_mean([1, 1] + [0] * 28, judged(30, 8), judged(1000, 60), weight=1)
    assert (number.value, number.low, number.flags) == (0.0, 0.0, ("clipped",))
    assert number.high == pytest.approx(0.0039, abs=5e-5)


def test_constant_labels_give_no_prediction_powered_mean():
    assert ppi_mean([0] * 30, judged(30, 3), judged(100, 10)).undefined == "single_class_gold"


@pytest.mark.parametrize(("weight", "value", "se"), [(0, 0.160, 0.082605), (1, 0.123810, 0.044022)])
def test_prediction_powered_ratio(weight, value, se):
    from scipy.stats import t

    m, y, h = zip(*LABELLED, strict=True)
    big_m, big_h = zip(*UNLABELLED, strict=True)
    number = ppi_ratio(m, y, h, big_m, big_h, weight=weight)
    assert number.value == pytest.approx(value, abs=5.1e-7)
    assert (number.high - number.value) / t.ppf(0.975, 9) == pytest.approx(se, abs=5.1e-7)
    if weight == 1:
        assert (number.low, number.high) == pytest.approx((0.0242, 0.2234), abs=5e-5)


WORDS = ("good", "bad")


def chosen(design, **options):
    gold, judge = gold_sample()
    return correct_bad_share(
        gold,
        judge,
        options.pop("rest", judged(1000, 130)),
        design=design,
        labels=WORDS,
        positive={"bad"},
        **options,
    )


def test_a_sample_that_is_not_random_falls_back_on_rogan_gladen():
    result = chosen("random")
    assert result.guard_p == pytest.approx(0.003205, abs=5.1e-7)
    assert result.method == "rogan_gladen"
    assert result.number.value == pytest.approx(0.1)


def test_a_random_sample_allows_prediction_powered_inference():
    result = chosen("random", rest=judged(1000, 210))
    assert result.method == "ppi"
    assert result.number.value == pytest.approx(0.2, abs=1e-6)


def test_gold_chosen_by_its_outcome_is_refused():
    result = chosen("outcome")
    assert result.method == "none" and result.number.undefined == "method_not_valid_for_design"


def test_gold_from_elsewhere_uses_rogan_gladen():
    assert chosen("separate", rest=judged(1000, 210)).method == "rogan_gladen"


def test_a_stratified_sample_is_corrected_per_stratum():
    gold, judge = gold_sample()
    rest = judged(1000, 210)
    strata, rest_strata = ["a", "b"] * 100, ["a", "b"] * 500
    result = chosen("stratified", rest=rest, strata=strata, strata_without_gold=rest_strata)
    assert result.method == "ppi"
    parts = [
        ppi_ratio(np.ones(100), gold[at::2], judge[at::2], np.ones(500), rest[at::2]).value for at in (0, 1)
    ]
    assert result.number.value == pytest.approx(sum(parts) / 2)


def test_stratified_design_needs_strata():
    with pytest.raises(ValueError, match="strata"):
        chosen("stratified")


def test_clustered_claims_widen_the_corrected_interval():
    gold, _ = gold_sample()
    rest = judged(1000, 130)
    apart = chosen("separate", rest=rest).number
    together = chosen(
        "separate",
        rest=rest,
        clusters=[row // 5 for row in range(len(gold))],
        clusters_without_gold=[row // 10 for row in range(len(rest))],
    ).number
    assert together.value == pytest.approx(apart.value)
    assert together.high - together.low > apart.high - apart.low
