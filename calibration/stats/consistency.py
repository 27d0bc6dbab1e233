"""Does a judge say the same twice? Repeated runs on the same items."""

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_labels, check_level, encode_clusters, encode_labels
from .intervals import FEW_CLUSTERS, clustered_mean, share_number
from .labels import BAD_LABELS
from .reliability import fleiss_kappa
from .resampling import jackknife
from .results import Number, plural, undefined_number

ROUNDING = 1e-12


@dataclass(frozen=True)
class SelfConsistency:
    """Agreement of a judge with itself over k runs, and what repeating buys.

    Attributes
    ----------
    runs : int
        Runs per item.
    unanimous : Number
        Share of items on which all runs agree.
    pairwise : Number
        Mean share of agreeing pairs of runs.
    fleiss : Number
        Fleiss' kappa between runs.
    bad_rate : Number
        Bad share from the mean of the runs, clustered by item.
    within, between : float or None
        Variance components of the bad outcome: between runs of an item, and between items.
    icc : float or None
        between / (between + within).
    share_within : Number
        1 - icc: of the variance of the bad outcome the share that comes from asking again.
    se_one_run, se_all_runs : float or None
        Standard error of the rate with one run and with all of them.
    se_if_independent : float or None
        What treating every run as an item of its own would claim; it is wrong.
    """

    runs: int
    unanimous: Number
    pairwise: Number
    fleiss: Number
    bad_rate: Number
    within: float | None
    between: float | None
    icc: float | None
    share_within: Number
    se_one_run: float | None
    se_all_runs: float | None
    se_if_independent: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "runs": self.runs,
            "unanimous": self.unanimous.as_dict(),
            "pairwise": self.pairwise.as_dict(),
            "fleiss_kappa": self.fleiss.as_dict(),
            "bad_rate": self.bad_rate.as_dict(),
            "within": self.within,
            "between": self.between,
            "icc": self.icc,
            "share_within": self.share_within.as_dict(),
            "se_one_run": self.se_one_run,
            "se_all_runs": self.se_all_runs,
        }

    def explain(self) -> str:
        """The consistency in one plain sentence."""
        if self.unanimous.value is None:
            return "No item has valid labels from every run."
        same, items = self.unanimous.numerator or 0, int(self.unanimous.denominator or 0)
        return (
            f"In {self.runs} runs the judge gave one and the same label to {same:g} of {items} "
            f"{plural(items, 'item')}; "
            f"two runs agree on {self.pairwise.value:.0%} of them."
        )


def self_consistency(
    runs: Any,
    *,
    labels: Any,
    positive: Iterable[Hashable] = BAD_LABELS,
    clusters: Any = None,
    level: float = 0.95,
    unit: str = "claim",
) -> SelfConsistency:
    r"""Unanimity, pairwise agreement, Fleiss' kappa and the variance split of repeated runs.

    With :math:`\bar y_i` the mean bad outcome of item i over k runs and :math:`s_i^2` its variance,

    .. math:: within = \overline{s_i^2}, \quad between = Var(\bar y_i) - within/k, \quad
              se_k = \sqrt{(between + within/k)/n}

    The rate uses the mean of the runs, never their majority: a majority hides exactly the noise that is to
    be measured.

    Parameters
    ----------
    runs : sequence of sequences, shape (items, k), or integer array
        The labels of each item in every run. Items that lack one of the runs are left out and counted.
    labels : sequence
        The label set.
    positive : iterable of labels
        The bad labels.
    clusters : sequence, shape (items,), optional
        Item of each target, where targets share one.
    level : float
        Confidence level.
    unit : str
        What is labelled.

    Returns
    -------
    SelfConsistency
        Undefined (``zero_denominator``) without a complete item; the variance split is None with fewer than
        two items. A negative between-variance is set to 0. The interval of ``share_within`` is a
        leave-one-cluster-out jackknife with a t quantile; there is none where a leave-one-out value is
        undefined or where leaving out any one changes nothing.

    Raises
    ------
    ValueError
        With fewer than two runs.

    References
    ----------
    Searle, S. R., Casella, G. and McCulloch, C. E. (1992). Variance Components, chapter 3.
    """
    check_level(level)
    fixed = check_labels(labels)
    table, excluded, kept = _complete_runs(runs, fixed)
    k = table.shape[1]
    codes, number = encode_clusters(_kept_clusters(clusters, kept), len(table))
    counts = np.stack([(table == label).sum(axis=1) for label in range(len(fixed))], axis=1)
    wanted = frozenset(positive)
    is_bad = np.array([label in wanted for label in fixed], dtype=float)
    outcome = is_bad[table]
    common: dict[str, Any] = {"level": level, "excluded": {"incomplete": excluded}}
    unanimous = (counts.max(axis=1, initial=0) == k).astype(float)
    within, between = _variance_split(outcome)
    n = len(table)
    return SelfConsistency(
        runs=k,
        unanimous=share_number(
            np.bincount(codes, weights=unanimous, minlength=number),
            np.bincount(codes, minlength=number).astype(float),
            label="Unanimous over all runs",
            unit=unit,
            definition="self-consistency-unanimous",
            **common,
        ),
        pairwise=clustered_mean(
            ((counts**2).sum(axis=1) - k) / (k * (k - 1)),
            codes,
            number,
            label="Pairwise agreement of the runs",
            unit=unit,
            definition="self-consistency-pairwise",
            **common,
        ),
        fleiss=fleiss_kappa(counts, level=level, unit=unit),
        bad_rate=clustered_mean(
            outcome.mean(axis=1) if n else np.zeros(0),
            codes,
            number,
            label="Bad share, mean of the runs",
            unit=unit,
            definition="self-consistency-bad_rate",
            **common,
        ),
        within=within,
        between=between,
        icc=_icc(within, between),
        share_within=_share_within(outcome, codes, number, unit=unit, **common),
        se_one_run=_se(between, within, 1, n),
        se_all_runs=_se(between, within, k, n),
        se_if_independent=_independent_se(outcome),
    )


@dataclass(frozen=True)
class RunVariance:
    """A rate from repeated runs of the same items, with what repeating buys.

    Attributes
    ----------
    rate : Number
        Mean over items of the mean over runs, t interval by item.
    runs : int
        Runs per item.
    within, between : float or None
        Variance components between runs of an item, and between items.
    icc : float or None
        between / (between + within).
    se_one_run, se_all_runs : float or None
        Standard error of the rate with one run and with all of them.
    """

    rate: Number
    runs: int
    within: float | None
    between: float | None
    icc: float | None
    se_one_run: float | None
    se_all_runs: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "rate": self.rate.as_dict(),
            "runs": self.runs,
            "within": self.within,
            "between": self.between,
            "icc": self.icc,
            "se_one_run": self.se_one_run,
            "se_all_runs": self.se_all_runs,
        }

    def explain(self) -> str:
        """What repeating buys in one plain sentence."""
        if self.se_one_run is None or self.se_all_runs is None:
            return self.rate.explain()
        return (
            f"{self.rate.explain()} One run alone would have a standard error of {self.se_one_run:.3f}, "
            f"{self.runs} runs have {self.se_all_runs:.3f}."
        )


def run_variance(
    values: Any,
    *,
    clusters: Any = None,
    level: float = 0.95,
    label: str = "Mean of the runs",
    unit: str = "item",
) -> RunVariance:
    r"""Variance split of a score between 0 and 1 over repeated runs: of a judge, or of generations.

    .. math:: total = between + within/k

    With generations at serving temperature a run is one more response to the same item, and its value the
    response's own rate (its share of bad claims, or 1 for over-answering).

    Parameters
    ----------
    values : array_like of float, shape (items, k)
        Value of each item in each run, in [0, 1]; an item with NaN is left out and counted.
    clusters : sequence, shape (items,), optional
        Cluster of each item.
    level : float
        Confidence level.
    label, unit : str
        Name and unit of the rate.

    Returns
    -------
    RunVariance
        Undefined (``zero_denominator``) without a complete item; the split is None with fewer than two.

    References
    ----------
    Searle, Casella and McCulloch (1992), see `self_consistency`.
    """
    check_level(level)
    table = np.asarray(values, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError(f"values must have one row per item and at least two runs, got shape {table.shape}")
    kept = np.asarray(np.isfinite(table).all(axis=1))
    if ((table[kept] < 0) | (table[kept] > 1)).any():
        raise ValueError("values must lie between 0 and 1")
    complete = table[kept]
    codes, number = encode_clusters(_kept_clusters(clusters, kept), len(complete))
    within, between = _variance_split(complete)
    n, k = complete.shape
    return RunVariance(
        rate=clustered_mean(
            complete.mean(axis=1),
            codes,
            number,
            level=level,
            label=label,
            unit=unit,
            definition="run-variance-rate",
            excluded={"incomplete": int((~kept).sum())},
        ),
        runs=k,
        within=within,
        between=between,
        icc=_icc(within, between),
        se_one_run=_se(between, within, 1, n),
        se_all_runs=_se(between, within, k, n),
    )


def _kept_clusters(clusters: Any, kept: NDArray[Any]) -> Any:
    if clusters is None:
        return None
    if len(clusters) != len(kept):
        raise ValueError(f"clusters must have one entry per item: {len(kept)} items, {len(clusters)} entries")
    return [cluster for cluster, keep in zip(clusters, kept.tolist(), strict=True) if keep]


def _icc(within: float | None, between: float | None) -> float | None:
    if within is None or between is None or between + within == 0:
        return None
    return between / (between + within)


def _complete_runs(runs: Any, labels: tuple[Hashable, ...]) -> tuple[NDArray[Any], int, NDArray[Any]]:
    rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in runs]
    k = max((len(row) for row in rows), default=2)
    if k < 2:
        raise ValueError("runs must hold at least two runs per item")
    is_codes = isinstance(runs, np.ndarray) and runs.dtype.kind in "iu"
    flat = [row[at] if at < len(row) else (-1 if is_codes else None) for row in rows for at in range(k)]
    codes = encode_labels(np.array(flat, dtype=np.int64) if is_codes else flat, labels, "runs").reshape(-1, k)
    kept = np.asarray((codes >= 0).all(axis=1))
    return codes[kept], int((~kept).sum()), kept


def _variance_split(outcome: NDArray[np.float64]) -> tuple[float | None, float | None]:
    if len(outcome) < 2:
        return None, None
    k = outcome.shape[1]
    within = float(outcome.var(axis=1, ddof=1).mean())
    return within, max(0.0, float(outcome.mean(axis=1).var(ddof=1)) - within / k)


def _share_within(
    outcome: NDArray[np.float64], codes: NDArray[Any], clusters: int, *, level: float, **described: Any
) -> Number:
    common: dict[str, Any] = {
        "level": level,
        "n": len(outcome),
        "clusters": clusters,
        "definition": "self-consistency-share_within",
        "label": "Variance from asking again",
        **described,
    }
    sums = _sums_per_cluster(outcome, codes, clusters)
    whole = float(_within_of(sums.sum(axis=0, keepdims=True), outcome.shape[1])[0])
    if not math.isfinite(whole):
        return undefined_number("too_few_clusters" if len(outcome) < 2 else "one_label_only", **common)
    flags = ("too_few_clusters",) if clusters < FEW_CLUSTERS else ()
    spread = jackknife(_within_of(sums.sum(axis=0) - sums, outcome.shape[1]))
    limits = spread.interval(whole, level)
    if limits is None:
        reason = "no_variation" if spread.se is not None else "too_few_clusters"
        return Number(value=whole, flags=(*flags, reason), method="none", **common)
    return Number(
        value=whole,
        low=min(whole, max(0.0, limits[0])),
        high=max(whole, min(1.0, limits[1])),
        flags=flags,
        method="leave-one-item-out jackknife, t",
        **common,
    )


def _sums_per_cluster(
    outcome: NDArray[np.float64], codes: NDArray[Any], clusters: int
) -> NDArray[np.float64]:
    """Clusters x (targets, variances between runs, means of the runs, their squares)."""
    means = outcome.mean(axis=1) if len(outcome) else np.zeros(0)
    variances = outcome.var(axis=1, ddof=1) if len(outcome) else np.zeros(0)
    columns = (np.ones(len(outcome)), variances, means, means**2)
    return np.stack([np.bincount(codes, weights=each, minlength=clusters) for each in columns], axis=1)


def _within_of(sums: NDArray[np.float64], runs: int) -> NDArray[np.float64]:
    """Share of the variance between runs, of each row of sums; NaN with fewer than two targets or none."""
    n, variances, means, squares = sums.T
    with np.errstate(divide="ignore", invalid="ignore"):
        within = variances / n
        between = np.maximum(0.0, (squares - means**2 / n) / (n - 1) - within / runs)
        share = within / (within + between)
    return np.where((n >= 2) & (within + between > ROUNDING), share, np.nan)


def _se(between: float | None, within: float | None, runs: int, items: int) -> float | None:
    if between is None or within is None:
        return None
    return math.sqrt((between + within / runs) / items)


def _independent_se(outcome: NDArray[np.float64]) -> float | None:
    if outcome.size == 0:
        return None
    share = float(outcome.mean())
    return math.sqrt(share * (1 - share) / outcome.size)
