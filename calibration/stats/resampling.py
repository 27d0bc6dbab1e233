"""Leave-one-cluster-out jackknife and the cluster bootstrap."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .arrays import check_level
from .quantiles import t_quantile

WEIGHTS_AT_ONCE = 500_000
ONE_THREAD_PRODUCT = 250_000


@dataclass(frozen=True)
class Jackknife:
    """Spread of a statistic over the leave-one-cluster-out values.

    Attributes
    ----------
    se : float or None
        Jackknife standard error; None when a leave-one-out value is undefined or there are fewer than two
        clusters.
    clusters : int
        Number of clusters left out in turn.
    leave_one_out : numpy.ndarray, shape (R,)
        The leave-one-out values, NaN where undefined.
    """

    se: float | None
    clusters: int
    leave_one_out: NDArray[np.float64]

    @property
    def has_variation(self) -> bool:
        return self.se is not None and self.se > 1e-12

    def interval(self, value: float, level: float = 0.95) -> tuple[float, float] | None:
        """t interval around ``value``; None when there is no standard error or no variation."""
        if self.se is None or not self.has_variation:
            return None
        half = t_quantile(self.clusters - 1, level) * self.se
        return value - half, value + half

    def lower_bound(self, value: float, level: float = 0.95) -> float | None:
        """One-sided lower bound at ``level``."""
        if self.se is None:
            return None
        return value - t_quantile(self.clusters - 1, 2 * level - 1) * self.se


def jackknife(leave_one_out: NDArray[np.float64]) -> Jackknife:
    r"""Jackknife standard error from leave-one-cluster-out values.

    .. math:: v = \frac{R-1}{R} \sum_r (\theta_{(-r)} - \bar\theta)^2

    Parameters
    ----------
    leave_one_out : numpy.ndarray, shape (R,)
        Value of the statistic without cluster r; NaN where it is undefined.

    Returns
    -------
    Jackknife
        Its ``se`` is None with fewer than two clusters or an undefined leave-one-out value.

    References
    ----------
    Efron, B. and Tibshirani, R. (1993). An Introduction to the Bootstrap, chapter 11.
    """
    values = np.asarray(leave_one_out, dtype=float)
    clusters = len(values)
    if clusters < 2 or not np.isfinite(values).all():
        return Jackknife(None, clusters, values)
    deviations = values - values.mean()
    return Jackknife(
        math.sqrt((clusters - 1) / clusters * float(np.square(deviations).sum())), clusters, values
    )


def cluster_bootstrap(
    table: NDArray[np.number],
    statistic: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    draws: int = 2000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> tuple[float, float, int]:
    """Percentile interval from resampling clusters; a cross-check of the analytic intervals.

    Each draw picks as many clusters as there are, with replacement, and adds up their rows: the units
    themselves are never touched again, so the cost does not grow with their number.

    Parameters
    ----------
    table : numpy.ndarray, shape (R, c)
        One row of counts per cluster (for instance clusters x label pairs).
    statistic : callable
        Maps summed rows, shape (draws, c), to values, shape (draws,); NaN marks a draw without a value.
    draws : int
        Number of resamples.
    rng : numpy.random.Generator
        Source of randomness; its seed belongs in the report.
    level : float
        Confidence level.

    Returns
    -------
    tuple
        Lower limit, upper limit, and the number of draws skipped because the statistic was undefined.

    Raises
    ------
    ValueError
        With fewer than two clusters, a non-positive `draws`, or when every draw is undefined.

    References
    ----------
    Davison, A. C. and Hinkley, D. V. (1997). Bootstrap Methods and their Application, section 3.8.
    """
    check_level(level)
    rows = np.asarray(table, dtype=float)
    if rows.ndim != 2 or len(rows) < 2:
        raise ValueError(f"table must have at least two clusters as rows, got shape {rows.shape}")
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws!r}")
    values = statistic(resampled_sums(rows, draws, rng))
    kept = values[np.isfinite(values)]
    if len(kept) == 0:
        raise ValueError("statistic is undefined in every draw")
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high), int(draws - len(kept))


def resampled_sums(rows: NDArray[np.float64], draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Sums of multinomially weighted rows, shape (draws, c).

    The weights are drawn in blocks, so memory stays linear in the number of clusters.
    """
    clusters = len(rows)
    sums = np.empty((draws, rows.shape[1]))
    block = max(1, WEIGHTS_AT_ONCE // clusters)
    for start in range(0, draws, block):
        size = min(block, draws - start)
        weights = np.empty((size, clusters))
        for draw in range(size):
            picks = rng.integers(0, clusters, size=clusters, dtype=np.int32)
            weights[draw] = np.bincount(picks, minlength=clusters)
        sums[start : start + size] = _product(weights, rows)
    return sums


def _product(weights: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Matrix product in pieces that one thread takes: on a busy machine the threads of a large one wait."""
    piece = max(1, ONE_THREAD_PRODUCT // (len(weights) * rows.shape[1]))
    product = np.zeros((len(weights), rows.shape[1]))
    for start in range(0, len(rows), piece):
        product += weights[:, start : start + piece] @ rows[start : start + piece]
    return product
