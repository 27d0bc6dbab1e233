"""Do the intervals hold what they promise? Seeded simulations; the naive ones fail the same test.

The reduced runs are part of every test run, the full ones (10,000 replicates) are marked slow.
"""

import numpy as np
import pytest

from calibration.stats import (
    cluster_bootstrap,
    clustered_rate,
    cohen_kappa,
    compare_rates,
    ppi_ratio,
    rogan_gladen,
    wilson,
)
from calibration.stats.agreement import kappa_values

FULL = 10_000
GROUNDING_SHARES = np.array([0.60, 0.12, 0.19, 0.09])
LETTERS = ("a", "b", "c", "d")


def replicates(reduced):
    return pytest.mark.parametrize(
        "replicates", [reduced, pytest.param(FULL, marks=pytest.mark.slow)], ids=["reduced", "full"]
    )


def covered(draw, interval, truth, count, seed):
    """Share of simulated samples whose interval holds the truth; a missing interval does not hold it."""
    rng = np.random.default_rng(seed)
    hits = 0
    for _ in range(count):
        limits = interval(draw(rng))
        hits += limits is not None and limits[0] <= truth <= limits[1]
    return hits / count


def within_two_points(share):
    return abs(share - 0.95) <= 0.02


# Wilson


@replicates(2000)
@pytest.mark.parametrize(("n", "p"), [(50, 0.3), (100, 0.1), (300, 0.05)])
def test_wilson_holds(n, p, replicates):
    share = covered(lambda rng: rng.binomial(n, p), lambda k: wilson(k, n), p, replicates, seed=n)
    assert within_two_points(share)


# Rates of clustered claims


def clustered_sample(items, p, icc):
    """Claims of each item, and how many are bad: beta-binomial with the given intra-class correlation."""

    def draw(rng):
        sizes = rng.integers(4, 12, items)
        if icc == 0:
            return rng.binomial(sizes, p), sizes
        spread = 1 / icc - 1
        return rng.binomial(sizes, rng.beta(p * spread, (1 - p) * spread, items)), sizes

    return draw


def clustered_interval(sample):
    number = clustered_rate(*sample)
    return None if number.low is None else (number.low, number.high)


def naive_interval(sample):
    bad, sizes = sample
    return wilson(int(bad.sum()), int(sizes.sum()))


RATES = [(20, 0.1, 0.0), (20, 0.3, 0.2), (40, 0.3, 0.3), (60, 0.1, 0.2), (60, 0.1, 0.4), (200, 0.05, 0.2)]


@replicates(1500)
@pytest.mark.parametrize(("items", "p", "icc"), RATES)
def test_clustered_rate_holds(items, p, icc, replicates):
    share = covered(clustered_sample(items, p, icc), clustered_interval, p, replicates, seed=items)
    assert within_two_points(share)


@pytest.mark.parametrize(("items", "p", "icc"), [rate for rate in RATES if rate[2] > 0])
def test_naive_wilson_fails_on_clustered_claims(items, p, icc):
    share = covered(clustered_sample(items, p, icc), naive_interval, p, 1500, seed=items)
    assert not within_two_points(share)
    assert share < 0.93


# Kappa


def graded_sample(items, clustered):
    """Two graders whose accuracy varies from item to item (or from claim to claim, unclustered)."""

    def draw(rng):
        sizes = rng.integers(3, 9, items) if clustered else np.ones(items * 6, dtype=int)
        item = np.repeat(np.arange(len(sizes)), sizes)
        accuracy = rng.beta(9, 1, len(sizes))[item]
        truth = rng.choice(4, size=len(item), p=GROUNDING_SHARES)

        def grade():
            return np.where(
                rng.random(len(item)) < accuracy, truth, rng.choice(4, size=len(item), p=GROUNDING_SHARES)
            )

        # Unclustered pairs still come in as many items as the clustered ones have.
        cluster = item if clustered else np.repeat(np.arange(items), 6)
        return grade(), grade(), cluster

    return draw


def true_kappa():
    """Both graders know the label with chance E[accuracy^2]; otherwise they agree as chance does."""
    # E[accuracy^2] of beta(9, 1): variance 9/(100*11) plus squared mean .81.
    return 9 / (100 * 11) + 0.81


def test_true_kappa_of_the_simulation():
    rng = np.random.default_rng(0)
    first, second, _ = graded_sample(200_000, True)(rng)
    table = np.bincount(first * 4 + second, minlength=16).reshape(4, 4)
    value = kappa_values(len(first), np.trace(table), table.sum(axis=1), table.sum(axis=0))
    assert float(value) == pytest.approx(true_kappa(), abs=0.004)


def jackknife_interval(sample):
    first, second, cluster = sample
    result = cohen_kappa(first, second, labels=LETTERS, clusters=cluster)
    return None if result.low is None else (result.low, result.high)


def asymptotic_interval(sample):
    first, second, _ = sample
    result = cohen_kappa(first, second, labels=LETTERS)
    return None if result.low is None else (result.low, result.high)


@replicates(1200)
@pytest.mark.parametrize(("items", "floor"), [(20, 0.91), (40, 0.93), (80, 0.93)])
@pytest.mark.parametrize("clustered", [True, False], ids=["clustered", "independent"])
def test_kappa_jackknife_holds(items, floor, clustered, replicates):
    share = covered(graded_sample(items, clustered), jackknife_interval, true_kappa(), replicates, seed=items)
    assert floor <= share <= 0.975


@pytest.mark.parametrize("items", [20, 40])
def test_asymptotic_interval_of_kappa_fails_on_clustered_claims(items):
    share = covered(graded_sample(items, True), asymptotic_interval, true_kappa(), 1200, seed=items)
    assert share < 0.91


def test_cluster_bootstrap_agrees_with_the_jackknife():
    rng = np.random.default_rng(8)
    first, second, cluster = graded_sample(80, True)(rng)
    result = cohen_kappa(first, second, labels=LETTERS, clusters=cluster)
    table = np.bincount(cluster * 16 + first * 4 + second, minlength=80 * 16).reshape(80, 16)

    def kappas(sums):
        tables = sums.reshape(-1, 4, 4)
        return kappa_values(
            tables.sum(axis=(1, 2)),
            np.trace(tables, axis1=1, axis2=2),
            tables.sum(axis=2),
            tables.sum(axis=1),
        )

    low, high, skipped = cluster_bootstrap(table, kappas, draws=4000, rng=rng)
    assert skipped == 0
    assert (low, high) == pytest.approx((result.low, result.high), abs=0.03)


# Judge-corrected rates

JUDGES = [
    (0.10, 0.85, 0.95, 1000, 200),
    (0.05, 0.80, 0.90, 1000, 200),
    (0.10, 0.85, 0.95, 150, 200),
    (0.30, 0.80, 0.80, 500, 100),
]


def judged_sample(theta, se, sp, n, gold):
    """Gold positives, those found, negatives kept, and flagged claims without gold.

    A sample that the correction refuses has no interval, so it is drawn again.
    """

    def draw(rng):
        while True:
            positive = rng.binomial(gold, theta)
            found, kept = rng.binomial(positive, se), rng.binomial(gold - positive, sp)
            flagged = rng.binomial(n, theta * se + (1 - theta) * (1 - sp))
            if 0 < positive < gold:
                number = rogan_gladen(
                    flagged / n,
                    n,
                    sensitivity=found / positive,
                    n_positive=positive,
                    specificity=kept / (gold - positive),
                    n_negative=gold - positive,
                )
                if number.value is not None:
                    return number

    return draw


@replicates(2000)
@pytest.mark.parametrize(("theta", "se", "sp", "n", "gold"), JUDGES)
def test_rogan_gladen_holds(theta, se, sp, n, gold, replicates):
    draw = judged_sample(theta, se, sp, n, gold)
    share = covered(draw, lambda number: (number.low, number.high), theta, replicates, seed=n + gold)
    assert within_two_points(share)


def test_uncorrected_rate_fails():
    def draw(rng):
        return rng.binomial(1000, 0.10 * 0.85 + 0.90 * 0.05)

    assert covered(draw, lambda k: wilson(k, 1000), 0.10, 1000, seed=1) < 0.5


def judged_items(items, rng):
    """Claims, gold-bad claims and judge-flagged claims of items whose bad share varies."""
    sizes = rng.integers(4, 12, items)
    bad = rng.binomial(sizes, rng.beta(1.5, 6, items))
    flagged = rng.binomial(bad, 0.85) + rng.binomial(sizes - bad, 0.06)
    return sizes, bad, flagged


@replicates(1000)
def test_prediction_powered_ratio_holds(replicates):
    def interval(sample):
        (m, y, h), (big_m, _, big_h) = sample
        number = ppi_ratio(m, y, h, big_m, big_h)
        return None if number.low is None else (number.low, number.high)

    share = covered(
        lambda rng: (judged_items(60, rng), judged_items(240, rng)), interval, 1.5 / 7.5, replicates, seed=6
    )
    assert within_two_points(share)


@replicates(1000)
def test_paired_difference_holds(replicates):
    def draw(rng):
        sizes_a, sizes_b = rng.integers(3, 9, 80), rng.integers(3, 9, 80)
        hard = rng.beta(2, 6, 80)
        return rng.binomial(sizes_a, hard), sizes_a, rng.binomial(sizes_b, hard * 0.8), sizes_b

    def interval(sample):
        difference = compare_rates(*sample).difference
        return difference.low, difference.high

    share = covered(draw, interval, 0.25 - 0.2, replicates, seed=12)
    assert within_two_points(share)
