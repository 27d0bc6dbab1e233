"""How many more items to grade twice, and how likely the gate is passed then."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import KappaResult, kappa_of_pairs, kappa_values, pair_up
from .arrays import check_level, check_share
from .intervals import wilson
from .power import kappa_half_width, kappa_model_table, kappa_n_for_half_width, kappa_sample_size
from .quantiles import t_quantile
from .results import plural

DEFAULT_DESIGN_EFFECT = 1.5


@dataclass(frozen=True)
class GatePower:
    """How often a judge passes the agreement conditions of the gate at a given size, by simulation.

    Attributes
    ----------
    n : int
        Claims (or responses) graded twice.
    judge_agreement : float
        Share of simulated sets that pass the bar on judge-gold kappa.
    non_inferiority : float
        Share that pass the comparison with a second person.
    joint : float
        Share that pass both.
    draws : int
        Simulated sets.
    """

    n: int
    judge_agreement: float
    non_inferiority: float
    joint: float
    draws: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "judge_agreement": self.judge_agreement,
            "non_inferiority": self.non_inferiority,
            "joint": self.joint,
            "draws": self.draws,
        }

    def explain(self) -> str:
        """The chance in one plain sentence."""
        low, high = wilson(round(self.joint * self.draws), self.draws)
        return (
            f"With {self.n} targets graded twice such a judge passes about {self.joint:.0%} of the time "
            f"({low:.0%} to {high:.0%} by {self.draws} simulated sets)."
        )


def gate_power(
    n: int,
    margins: Any,
    *,
    human_kappa: float,
    judge_kappa: float,
    bar: float = 0.60,
    margin: float = 0.10,
    design_effect: float = 1.0,
    draws: int = 2000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> GatePower:
    r"""Chance that a judge passes the gate's two agreement conditions, by simulating sets of n targets.

    Every target has a latent label drawn from the margins. A grader keeps it with probability
    :math:`\sqrt{\kappa_{HH}}`, the judge with :math:`\kappa_{JH}/\sqrt{\kappa_{HH}}`, and draws from the
    margins otherwise, so that the expected kappas are the given ones. Each set is judged by the jackknife
    bounds of the gate: lower limit of the mean judge-grader kappa, and one-sided lower bound of its
    difference to the human-human kappa.

    Parameters
    ----------
    n : int
        Targets graded twice, at least 2.
    margins : sequence of float
        Label shares of the set.
    human_kappa, judge_kappa : float
        Assumed true kappas, human_kappa in (0, 1], judge_kappa in [0, sqrt(human_kappa)].
    bar : float
        What the lower limit must reach.
    margin : float
        How far the judge may fall behind a second person.
    design_effect : float
        Variance inflation by clustering; the set counts as n / design_effect independent targets.
    draws : int
        Simulated sets.
    level : float
        Confidence level of the bounds.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    GatePower
        Shares in [0, 1].

    References
    ----------
    Simulation; the kappa model is that of `kappa_half_width`.
    """
    check_level(level)
    shares = np.asarray(margins, dtype=float)
    if shares.ndim != 1 or len(shares) < 2 or (shares < 0).any() or abs(float(shares.sum()) - 1) > 1e-6:
        raise ValueError("margins must be at least two shares that sum to 1")
    if not 0 < human_kappa <= 1:
        raise ValueError(f"human_kappa must lie in (0, 1], got {human_kappa!r}")
    if not 0 <= judge_kappa <= math.sqrt(human_kappa):
        raise ValueError(
            f"judge_kappa must lie between 0 and the square root of human_kappa, got {judge_kappa!r}"
        )
    size = int(n / design_effect)
    if size < 2:
        raise ValueError(f"n must give at least two independent targets, got {n!r}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws!r}")
    cells = _three_rater_cells(shares / shares.sum(), human_kappa, judge_kappa)
    agreement, difference = [], []
    q = len(shares)
    block = max(1, 2_000_000 // q**3 // 8)
    for start in range(0, draws, block):
        counts = rng.multinomial(size, cells, size=min(block, draws - start)).astype(float)
        passed = _passes(counts, q, size, bar, margin, level)
        agreement.append(passed[0])
        difference.append(passed[1])
    first, second = np.concatenate(agreement), np.concatenate(difference)
    return GatePower(int(n), float(first.mean()), float(second.mean()), float((first & second).mean()), draws)


def _three_rater_cells(shares: NDArray[Any], human_kappa: float, judge_kappa: float) -> NDArray[np.float64]:
    human, judge = math.sqrt(human_kappa), judge_kappa / math.sqrt(human_kappa)
    q = len(shares)
    of_human = human * np.eye(q) + (1 - human) * shares[None, :]
    of_judge = judge * np.eye(q) + (1 - judge) * shares[None, :]
    cells = np.einsum("z,zi,zj,zk->ijk", shares, of_human, of_human, of_judge).ravel()
    return cells / cells.sum()


def _passes(
    counts: NDArray[Any], q: int, size: int, bar: float, margin: float, level: float
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Both conditions for each simulated table of (grader, grader, judge) cells.

    All units of a cell have the same leave-one-out value, so the jackknife needs one value per cell.
    """
    cell = np.eye(q**3).reshape(q**3, q, q, q)
    tables = counts.reshape(-1, 1, q, q, q)
    whole = _three_kappas(tables[:, 0], size)
    left = _three_kappas(tables - cell[None], size - 1)
    weights = counts
    with np.errstate(invalid="ignore"):
        mean_whole, mean_left = (whole[0] + whole[1]) / 2, (left[0] + left[1]) / 2
        judge_low = mean_whole - t_quantile(size - 1, level) * _weighted_se(mean_left, weights, size)
        gap, gap_left = mean_whole - whole[2], mean_left - left[2]
        gap_low = gap - t_quantile(size - 1, 2 * level - 1) * _weighted_se(gap_left, weights, size)
        return judge_low >= bar, gap_low >= -margin


def _three_kappas(tables: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Kappas of the judge with either grader and of the graders with each other."""
    return (
        _kappas(tables.sum(axis=-2), size),
        _kappas(tables.sum(axis=-3), size),
        _kappas(tables.sum(axis=-1), size),
    )


def _weighted_se(left: NDArray[Any], weights: NDArray[Any], size: int) -> NDArray[np.float64]:
    values = np.where(weights > 0, left, 0.0)
    mean = (weights * values).sum(axis=1, keepdims=True) / size
    return np.sqrt((size - 1) / size * (weights * (values - mean) ** 2).sum(axis=1))


def kappa_power(
    n: int,
    margins: Any,
    *,
    kappa: float,
    bar: float = 0.60,
    design_effect: float = 1.0,
    draws: int = 2000,
    level: float = 0.95,
    rng: np.random.Generator,
) -> float:
    """Chance that the lower jackknife limit of one kappa reaches a bar, by simulation.

    Parameters
    ----------
    n : int
        Pairs, at least two independent ones.
    margins : sequence of float
        Label shares of both sides.
    kappa : float
        True kappa in [0, 1].
    bar : float
        What the lower limit must reach.
    design_effect : float
        Variance inflation by clustering.
    draws : int
        Simulated sets.
    level : float
        Confidence level.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float
        In [0, 1]. A rule on the point estimate would pass half of the judges that sit exactly on the bar.

    References
    ----------
    Simulation; the kappa model is that of `kappa_half_width`.
    """
    check_level(level)
    check_share(kappa, "kappa")
    size = int(n / design_effect)
    if size < 2:
        raise ValueError(f"n must give at least two independent pairs, got {n!r}")
    cells = kappa_model_table(kappa, margins)
    q = len(cells)
    counts = rng.multinomial(size, cells.ravel(), size=draws).astype(float)
    tables = counts.reshape(-1, 1, q, q)
    left_out = np.eye(q * q).reshape(q * q, q, q)
    whole = _kappas(tables[:, 0], size)
    with np.errstate(invalid="ignore"):
        se = _weighted_se(_kappas(tables - left_out[None], size - 1), counts, size)
        return float((whole - t_quantile(size - 1, level) * se >= bar).mean())


def _kappas(tables: NDArray[Any], size: int) -> NDArray[np.float64]:
    total = np.full(tables.shape[:-2], float(size))
    return kappa_values(total, np.trace(tables, axis1=-2, axis2=-1), tables.sum(axis=-1), tables.sum(axis=-2))


@dataclass(frozen=True)
class OverlapPlan:
    """How many more items must be graded twice.

    Attributes
    ----------
    kappa : KappaResult
        What the pairs so far give.
    design_effect : float
        Variance inflation by clustering, estimated from the pairs (1.5 is assumed below ten items).
    pairs_per_item : float
        Doubly graded targets per item so far.
    pairs_for_width : int or None
        Pairs needed for the wanted half-width.
    pairs_for_bar : int or None
        Pairs needed to show that kappa is above the bar; None when the estimate is not above it.
    more_items_for_width, more_items_for_bar : int or None
        The same as items beyond those already graded twice.
    half_width_now : float or None
        Expected half-width at the present size.
    """

    kappa: KappaResult
    design_effect: float
    pairs_per_item: float
    half_width: float
    bar: float
    pairs_for_width: int | None
    pairs_for_bar: int | None
    more_items_for_width: int | None
    more_items_for_bar: int | None
    half_width_now: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "kappa": self.kappa.as_number().as_dict(),
            "design_effect": self.design_effect,
            "pairs_per_item": self.pairs_per_item,
            "half_width": self.half_width,
            "bar": self.bar,
            "pairs_for_width": self.pairs_for_width,
            "pairs_for_bar": self.pairs_for_bar,
            "more_items_for_width": self.more_items_for_width,
            "more_items_for_bar": self.more_items_for_bar,
            "half_width_now": self.half_width_now,
        }

    def explain(self) -> str:
        """The advice in one plain sentence."""
        if self.kappa.value is None or self.more_items_for_width is None:
            return "Nothing can be planned yet: kappa is undefined on the pairs graded so far."
        width = f"{self.more_items_for_width} more {plural(self.more_items_for_width, 'item')} graded twice"
        sentence = f"For kappa within {self.half_width:.2f}: {width}."
        if self.more_items_for_bar is None:
            return (
                f"{sentence} Kappa is {self.kappa.value:.2f}, not above {self.bar:.2f}: work on the rubric, "
                "more items will not show otherwise."
            )
        return (
            f"{sentence} To show that kappa is above {self.bar:.2f}: {self.more_items_for_bar} more, "
            f"if it stays at {self.kappa.value:.2f}."
        )


def plan_overlap(
    a: Any,
    b: Any,
    *,
    labels: Any,
    clusters: Any = None,
    half_width: float = 0.10,
    bar: float = 0.60,
    power: float = 0.8,
    level: float = 0.95,
) -> OverlapPlan:
    r"""How many more items to grade twice, from the pairs graded so far.

    The sizes are those of `kappa_n_for_half_width` and `kappa_sample_size` at the present kappa and
    margins, times the design effect (jackknife variance over asymptotic variance, not below 1).

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of two graders on the same targets; None is left out.
    labels : sequence
        The label set.
    clusters : sequence, shape (n,), optional
        Item of each target.
    half_width : float
        Wanted half-width of kappa's interval.
    bar : float
        What kappa should be shown to exceed.
    power : float
        Probability of showing it.
    level : float
        Confidence level.

    Returns
    -------
    OverlapPlan
        With None where kappa is undefined (or, for the bar, not above it).

    References
    ----------
    See `kappa_sample_size`.
    """
    check_level(level)
    check_share(power, "power")
    pairs = pair_up(a, b, labels, clusters)
    kappa = kappa_of_pairs(pairs, level=level)
    per_item = pairs.n / pairs.n_clusters if pairs.n_clusters else 0.0
    effect = _design_effect(kappa, pairs.n_clusters, pairs.one_per_cluster)
    nothing = OverlapPlan(kappa, effect, per_item, half_width, bar, None, None, None, None, None)
    if kappa.value is None:
        return nothing
    table = np.array(kappa.table)
    margins = (table.sum(axis=0) + table.sum(axis=1)) / (2 * table.sum())
    # At the ends of its range kappa has no variance in the model; there it would need nothing at all.
    assumed = min(0.99, max(-0.5, kappa.value))
    for_width = kappa_n_for_half_width(assumed, half_width, margins, design_effect=effect, level=level)
    for_bar = None
    if assumed > bar:
        for_bar = kappa_sample_size(assumed, bar, margins, power=power, design_effect=effect, level=level)
    return OverlapPlan(
        kappa,
        effect,
        per_item,
        half_width,
        bar,
        for_width,
        for_bar,
        _more_items(for_width, pairs.n, per_item),
        None if for_bar is None else _more_items(for_bar, pairs.n, per_item),
        kappa_half_width(assumed, pairs.n, margins, design_effect=effect, level=level),
    )


def _more_items(needed: int, have: int, per_item: float) -> int:
    return max(0, math.ceil((needed - have) / per_item))


def _design_effect(kappa: KappaResult, items: int, one_per_item: bool) -> float:
    if one_per_item:
        return 1.0
    if items < 10 or not kappa.fce_se or kappa.jackknife_se is None:
        return DEFAULT_DESIGN_EFFECT
    return max(1.0, (kappa.jackknife_se / kappa.fce_se) ** 2)
