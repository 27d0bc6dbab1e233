"""Sample sizes and detectable differences against closed-form values."""

import numpy as np
import pytest

from calibration.stats import (
    calibration_half_width,
    differential_error_bias,
    gate_power,
    kappa_half_width,
    kappa_n_for_half_width,
    kappa_power,
    kappa_sample_size,
    minimum_detectable_difference,
    n_per_system,
    paired_minimum_detectable_difference,
    plan_overlap,
)

from .examples import K1, columns, k6, letters

MARGINS = [0.60, 0.12, 0.19, 0.09]


@pytest.mark.parametrize(
    ("kappa", "half_widths", "needed"),
    [
        (0.6, (0.140, 0.099, 0.081), 196),
        (0.7, (0.127, 0.090, 0.073), 161),
        (0.8, (0.108, 0.076, 0.062), 116),
    ],
)
def test_kappa_half_widths(kappa, half_widths, needed):
    found = [kappa_half_width(kappa, n, MARGINS) for n in (100, 200, 300)]
    assert found == pytest.approx(half_widths, abs=5.1e-4)
    assert kappa_n_for_half_width(kappa, 0.10, MARGINS) == needed


@pytest.mark.parametrize(
    ("kappa", "bar", "n"),
    [(0.70, 0.60, 378), (0.75, 0.60, 162), (0.80, 0.60, 87), (0.80, 0.70, 300), (0.90, 0.80, 201)],
)
def test_kappa_sample_sizes(kappa, bar, n):
    assert kappa_sample_size(kappa, bar, MARGINS) == n


@pytest.mark.parametrize(
    ("se", "sp", "n", "clustered"),
    [
        (1, 1, 3211, 4816),
        (0.95, 0.95, 5512, None),
        (0.90, 0.95, 5999, None),
        (0.90, 0.90, 8729, None),
        (0.80, 0.80, 20653, 30979),
    ],
)
def test_n_to_see_ten_become_eight_percent(se, sp, n, clustered):
    assert n_per_system(0.10, 0.08, sensitivity=se, specificity=sp) == n
    if clustered:
        assert n_per_system(0.10, 0.08, sensitivity=se, specificity=sp, design_effect=1.5) == clustered


@pytest.mark.parametrize(
    ("n", "points"),
    [
        (300, (5.83, 8.05, None, None)),
        (500, (4.69, 6.44, 8.73, None)),
        (1000, (3.45, 4.69, 6.34, 8.82)),
        (2000, (2.50, 3.39, 4.56, 6.31)),
        (10000, (1.16, 1.56, 2.09, 2.86)),
    ],
)
def test_minimum_detectable_difference(n, points):
    judges = [(1, 1), (0.90, 0.95), (0.80, 0.90), (0.80, 0.80)]
    for (se, sp), expected in zip(judges, points, strict=True):
        found = minimum_detectable_difference(0.10, n, sensitivity=se, specificity=sp)
        assert (None if found is None else round(100 * found, 2)) == expected


def test_detectable_difference_and_needed_n_agree():
    delta = minimum_detectable_difference(0.2, 700, sensitivity=0.9, specificity=0.93)
    assert n_per_system(0.2, 0.2 - delta, sensitivity=0.9, specificity=0.93) == pytest.approx(700, abs=1)


@pytest.mark.parametrize(("n", "points"), [(300, (3.62, 5.11, 7.23)), (1000, (1.98, 2.80, 3.96))])
def test_paired_detectable_difference(n, points):
    found = [100 * paired_minimum_detectable_difference(share, n) for share in (0.05, 0.10, 0.20)]
    assert found == pytest.approx(points, abs=5.1e-3)


@pytest.mark.parametrize(
    ("gold", "poor", "good"), [(100, 13.1, 5.2), (200, 9.2, 3.7), (400, 6.5, 2.6), (1000, 4.1, 1.7)]
)
def test_what_the_gold_set_alone_leaves_open(gold, poor, good):
    assert 100 * calibration_half_width(0.10, gold, sensitivity=0.8, specificity=0.8) == pytest.approx(
        poor, abs=0.051
    )
    assert 100 * calibration_half_width(0.10, gold, sensitivity=0.9, specificity=0.95) == pytest.approx(
        good, abs=0.051
    )


def test_differential_error_is_not_cured_by_data():
    assert differential_error_bias(0.10, specificity_difference=0.01, youden=0.6) == pytest.approx(0.015)
    assert differential_error_bias(0.10, specificity_difference=0.02, youden=0.6) == pytest.approx(0.030)


@pytest.mark.parametrize(
    ("kappa", "passes"),
    [
        (0.50, (0.004, 0.001, 0.000)),
        (0.60, (0.045, 0.038, 0.032)),
        (0.70, (0.237, 0.352, 0.576)),
        (0.75, (0.431, 0.665, 0.910)),
        (0.80, (0.675, 0.902, 0.994)),
    ],
)
def test_chance_that_the_lower_limit_reaches_the_bar(kappa, passes):
    # Published with another interval (jackknife here), so a few points apart at small n.
    rng = np.random.default_rng(11)
    found = [kappa_power(n, MARGINS, kappa=kappa, draws=2000, rng=rng) for n in (50, 100, 200)]
    assert found == pytest.approx(passes, abs=0.05)


def test_a_judge_as_good_as_a_second_person_often_fails_at_one_hundred():
    # 39 %, 59 % and 96 % at 100, 189 and 600 claims, with the published example's clustering (1.7).
    rng = np.random.default_rng(3)
    found = [
        gate_power(n, MARGINS, human_kappa=0.76, judge_kappa=0.76, design_effect=1.7, rng=rng).non_inferiority
        for n in (100, 189, 600)
    ]
    assert found == pytest.approx((0.39, 0.59, 0.96), abs=0.06)


def test_gate_power_joint_is_at_most_each():
    power = gate_power(
        150, MARGINS, human_kappa=0.75, judge_kappa=0.7, rng=np.random.default_rng(5), draws=500
    )
    assert 0 <= power.joint <= min(power.judge_agreement, power.non_inferiority) <= 1
    assert "150 targets" in power.explain()


def test_plan_says_how_many_more_items():
    rows, cols = columns(K1)
    plan = plan_overlap(rows, cols, labels=letters(4))
    margins = (np.array(K1).sum(axis=0) + np.array(K1).sum(axis=1)) / 200
    assert plan.pairs_for_width == kappa_n_for_half_width(plan.kappa.value, 0.10, margins)
    assert plan.more_items_for_width == plan.pairs_for_width - 100
    assert plan.more_items_for_bar == kappa_sample_size(plan.kappa.value, 0.60, margins) - 100


def test_plan_counts_items_not_pairs():
    first, second, item = k6()
    plan = plan_overlap(first, second, labels=("S", "C", "U", "V"), clusters=item, bar=0.9)
    assert plan.pairs_per_item == 3
    assert plan.design_effect == 1.5
    assert plan.more_items_for_bar is None and "rubric" in plan.explain()


def test_nothing_can_be_planned_without_kappa():
    assert plan_overlap([], [], labels=("a", "b")).pairs_for_width is None


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: kappa_sample_size(0.6, 0.6, MARGINS), "kappa"),
        (lambda: kappa_half_width(0.6, 100, [0.5, 0.6]), "margins"),
        (lambda: kappa_half_width(0.6, 100, [1.0, 0.0]), "margins"),
        (lambda: n_per_system(0.1, 0.1), "target"),
        (lambda: minimum_detectable_difference(0.1, 100, sensitivity=0.4, specificity=0.5), "sensitivity"),
        (lambda: minimum_detectable_difference(1.2, 100), "base"),
        (lambda: paired_minimum_detectable_difference(0.1, 0), "n must"),
        (lambda: calibration_half_width(0.1, 0, sensitivity=1, specificity=1), "gold"),
        (
            lambda: gate_power(1, MARGINS, human_kappa=0.7, judge_kappa=0.7, rng=np.random.default_rng(0)),
            "n must",
        ),
        (
            lambda: gate_power(90, MARGINS, human_kappa=0.5, judge_kappa=0.9, rng=np.random.default_rng(0)),
            "judge_kappa",
        ),
    ],
)
def test_bad_input_names_the_argument(call, name):
    with pytest.raises(ValueError, match=name):
        call()
