"""Wilson intervals on effective sample sizes, and the combinations built from them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_counts, check_level, check_same_length, encode_clusters
from .quantiles import t_quantile, z_quantile
from .repeated import Flags, UnitMeans
from .results import NO_EXCLUSIONS, Number, undefined_number

FEW_CLUSTERS = 10


def wilson(k: float, n: float, level: float = 0.95) -> tuple[float, float]:
    r"""Wilson score interval of a proportion.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}, \quad p = k/n

    Parameters
    ----------
    k : float
        Successes, 0 <= k <= n. It need not be whole: an effective count is allowed.
    n : float
        Trials, more than 0; an effective, non-integer size is allowed.
    level : float
        Confidence level.

    Returns
    -------
    tuple of float
        Lower and upper limit inside [0, 1]; exactly 0 at k = 0 and exactly 1 at k = n.

    Raises
    ------
    ValueError
        When there is no trial (a share of nothing is undefined) or `k` lies outside 0..n.

    References
    ----------
    Wilson, E. B. (1927). Probable inference, the law of succession, and statistical inference.
    JASA 22, 209-212.

    Examples
    --------
    >>> low, high = wilson(12, 300)
    >>> round(low, 6), round(high, 6)
    (0.023027, 0.068604)
    """
    check_level(level)
    if not (math.isfinite(n) and n > 0):
        raise ValueError(f"n must be more than 0, got {n!r}")
    if not 0 <= k <= n:
        raise ValueError(f"k must lie between 0 and n = {n!r}, got {k!r}")
    z2 = z_quantile(level) ** 2
    p = k / n
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    low = 0.0 if k == 0 else min(max(0.0, centre - half), p)
    high = 1.0 if k == n else max(min(1.0, centre + half), p)
    return low, high


@dataclass(frozen=True)
class RatioVariance:
    """A ratio of sums over clusters with its linearised variance and effective size.

    Attributes
    ----------
    total_y, total_m : float
        Sums of numerators and denominators.
    clusters : int
        Clusters with a denominator above 0.
    se : float
        Clustered standard error (0 with fewer than two clusters).
    design_effect : float
        Variance over that of independent units, each with one label; below 1 only where a unit is the mean of
        repeated runs.
    n_eff : float
        Effective number of units for the Wilson interval.
    """

    total_y: float
    total_m: float
    clusters: int
    se: float
    design_effect: float
    n_eff: float

    @property
    def share(self) -> float:
        return self.total_y / self.total_m


def ratio_variance(
    y: NDArray[Any], m: NDArray[Any], level: float = 0.95, units: UnitMeans | None = None
) -> RatioVariance:
    """Linearised variance and effective size of ``sum(y) / sum(m)``, one row per cluster.

    Where the units are means over repeated runs, ``units`` says what each of them adds.
    """
    used = m > 0
    y, m = y[used], m[used]
    clusters, total_m, total_y = len(m), float(m.sum()), float(y.sum())
    if clusters < 2:
        return RatioVariance(total_y, total_m, clusters, 0.0, 1.0, total_m)
    share = total_y / total_m
    residuals = y - share * m
    variance = clusters / (clusters - 1) * float(np.square(residuals).sum()) / total_m**2
    if total_y in (0.0, total_m):
        return RatioVariance(total_y, total_m, clusters, 0.0, 1.0, float(clusters))
    fractional = units is not None and not units.whole
    if np.all(m == 1) and not fractional:
        # One unit per cluster: nothing is clustered, so the interval is Wilson's own.
        return RatioVariance(total_y, total_m, clusters, math.sqrt(variance), 1.0, total_m)
    independent = share * (1 - share) / total_m
    design_effect = max(1.0, variance / independent)
    if units is not None and fractional:
        design_effect = max(variance, units.least_variance(share)) / independent
    correction = 1.0
    if total_m > 1:
        # Fractional denominators (shares) have no whole degrees of freedom; they are rounded up.
        correction = (
            t_quantile(max(1, math.ceil(total_m) - 1), level) / t_quantile(clusters - 1, level)
        ) ** 2
    return RatioVariance(
        total_y, total_m, clusters, math.sqrt(variance), design_effect, total_m / design_effect * correction
    )


def share_number(
    y: NDArray[Any],
    m: NDArray[Any],
    *,
    level: float = 0.95,
    label: str,
    unit: str,
    definition: str,
    excluded: Mapping[str, float] = NO_EXCLUSIONS,
    flags: tuple[str, ...] = (),
    missing: float = 0,
    undefined: str = "zero_denominator",
    units: UnitMeans | None = None,
) -> Number:
    """``sum(y) / sum(m)`` over clusters as a Number; ``missing`` units widen the worst-case range."""
    ratio = ratio_variance(y, m, level, units)
    common: dict[str, Any] = {
        "level": level,
        "numerator": ratio.total_y,
        "denominator": ratio.total_m,
        "n": math.ceil(ratio.total_m),
        "clusters": ratio.clusters,
        "excluded": excluded,
        "definition": definition,
        "label": label,
        "unit": unit,
    }
    if missing:
        whole = ratio.total_m + missing
        common["worst_case"] = (ratio.total_y / whole, (ratio.total_y + missing) / whole)
    if ratio.total_m == 0:
        return undefined_number(undefined, flags=flags, method="", **common)
    if ratio.clusters < FEW_CLUSTERS:
        flags = (*flags, "too_few_clusters")
    if ratio.clusters < 2:
        return Number(value=ratio.share, flags=flags, method="none: fewer than two items", **common)
    low, high = wilson(min(ratio.share * ratio.n_eff, ratio.n_eff), ratio.n_eff, level)
    clustered = ratio.n_eff != ratio.total_m
    return Number(
        value=ratio.share,
        low=min(low, ratio.share),
        high=max(high, ratio.share),
        flags=flags,
        method="Wilson on the effective number of units, clustered by item" if clustered else "Wilson",
        **common,
    )


def share_of_runs(
    units: UnitMeans,
    codes: NDArray[Any],
    clusters: int,
    *,
    owed: Flags | None = None,
    **described: Any,
) -> Number:
    """The share over units that are means of their runs; with one run it is that of the units themselves.

    Of the units in ``owed`` every run should have given a label: the worst-case range covers that all the
    labels that are not there had come out one way, and the other.
    """
    number = share_number(
        np.bincount(codes, weights=units.numerator, minlength=clusters),
        np.bincount(codes, weights=units.denominator, minlength=clusters),
        units=units if units.runs > 1 else None,
        **described,
    )
    if owed is None:
        return number
    there = units.times / units.runs
    # Not `@`: on a busy machine the threads that it starts wait for each other.
    return had_all_been(
        number,
        float((units.numerator * there).sum()),
        float((units.denominator * there).sum()),
        lost=float((1 - there[np.asarray(owed, dtype=bool)]).sum()),
    )


def had_all_been(number: Number, known_y: float, known_m: float, *, lost: float) -> Number:
    """The share with the range that it has had the ``lost`` labels all come out one way, and the other."""
    if not lost:
        return number
    return replace(number, worst_case=(known_y / (known_m + lost), (known_y + lost) / (known_m + lost)))


def clustered_rate(
    bad: Any,
    den: Any,
    clusters: Any = None,
    *,
    level: float = 0.95,
    label: str = "clustered rate",
    unit: str = "claim",
    excluded: Mapping[str, float] = NO_EXCLUSIONS,
    missing: int = 0,
    definition: str = "clustered-rate",
) -> Number:
    r"""Share of units pooled over clusters, with a Wilson interval on the effective number of units.

    With :math:`p = Y/M`, residuals :math:`e_r = y_r - p m_r` and R clusters,

    .. math::
        v = \frac{R}{R-1} \sum_r e_r^2 / M^2, \quad
        deff = \max\left(1, \frac{v}{p(1-p)/M}\right), \quad
        n_{eff} = \frac{M}{deff} \left(\frac{t_{M-1}}{t_{R-1}}\right)^2

    and the interval is Wilson's for :math:`(p\,n_{eff}, n_{eff})`. At p = 0 or p = 1 every cluster counts
    as one vote: :math:`n_{eff} = R`. When every cluster holds one unit, it is the plain Wilson interval.

    Parameters
    ----------
    bad : array_like of float, shape (n,)
        Numerator of each row (a response, or one claim as 0 or 1), 0 <= bad <= den.
    den : array_like of float, shape (n,)
        Denominator of each row. Rows with 0 add nothing.
    clusters : array_like, shape (n,), optional
        Item of each row; without it every row is its own cluster.
    level : float
        Confidence level.
    label, unit, definition : str
        Name, counted unit and method-page anchor of the figure.
    excluded : mapping of str to int
        What the caller left out, by reason; it is carried along.
    missing : int
        Units that failed or are pending. They do not enter the rate; the worst-case range treats them as all
        good and as all bad.

    Returns
    -------
    Number
        Value in [0, 1]; undefined (``zero_denominator``) when `den` sums to 0. With fewer than two clusters
        the value has no interval.

    References
    ----------
    Korn, E. L. and Graubard, B. I. (1998). Confidence intervals for proportions with small expected number
    of positive counts estimated from survey data. Survey Methodology 24, 193-201.
    Dean, N. and Pagano, M. (2015). Evaluating confidence interval methods for binomial proportions in
    clustered surveys. J. Survey Statistics and Methodology 3, 484-503.
    """
    check_level(level)
    numerators, denominators = check_counts(bad, "bad"), check_counts(den, "den")
    check_same_length(bad=numerators, den=denominators)
    if (numerators > denominators).any():
        position = int(np.flatnonzero(numerators > denominators)[0])
        raise ValueError(
            f"bad exceeds den at index {position}: {numerators[position]:g} of {denominators[position]:g}"
        )
    if missing < 0:
        raise ValueError(f"missing must be 0 or more, got {missing!r}")
    codes, number = encode_clusters(clusters, len(denominators))
    y = np.bincount(codes, weights=numerators, minlength=number)
    m = np.bincount(codes, weights=denominators, minlength=number)
    return share_number(
        y, m, level=level, label=label, unit=unit, definition=definition, excluded=excluded, missing=missing
    )


def clustered_mean(
    values: NDArray[Any],
    codes: NDArray[Any],
    clusters: int,
    *,
    level: float = 0.95,
    label: str,
    unit: str,
    definition: str,
    excluded: Mapping[str, float] = NO_EXCLUSIONS,
    bounds: tuple[float, float] | None = (0.0, 1.0),
    flags: tuple[str, ...] = (),
    percentage: bool = True,
    undefined: str = "zero_denominator",
    weights: NDArray[Any] | None = None,
) -> Number:
    """Mean of a score with a t interval over clusters; with ``weights``, the weighted one.

    ``bounds`` are the possible values of the score: the interval is clipped to them, and where all values sit
    on one bound it is Wilson's for as many votes as there are clusters. Fewer than two clusters, or values
    without any variation elsewhere, give no interval.
    """
    common: dict[str, Any] = {
        "level": level,
        "n": len(values),
        "clusters": clusters,
        "excluded": excluded,
        "definition": definition,
        "label": label,
        "unit": unit,
        "percentage": percentage,
    }
    if len(values) == 0:
        return undefined_number(undefined, flags=flags, **common)
    weighed = np.ones(len(values)) if weights is None else weights
    total = float(weighed.sum())
    sums = np.bincount(codes, weights=weighed * values, minlength=clusters)
    sizes = np.bincount(codes, weights=weighed, minlength=clusters)
    mean = float(values.mean()) if weights is None else float(weighed @ values) / total
    if clusters < FEW_CLUSTERS:
        flags = (*flags, "too_few_clusters")
    if clusters < 2:
        return Number(value=mean, flags=flags, method="none: fewer than two items", **common)
    if np.all(values == values[0]):
        value = float(values[0])
        if bounds is None or value not in bounds:
            return Number(value=value, flags=(*flags, "no_variation"), method="none", **common)
        share = 0.0 if value == bounds[0] else 1.0
        low, high = wilson(share * clusters, clusters, level)
        span = bounds[1] - bounds[0]
        return Number(
            value=value,
            low=bounds[0] + span * low,
            high=bounds[0] + span * high,
            flags=flags,
            method="Wilson with one vote per item",
            **common,
        )
    residuals = sums - mean * sizes
    variance = clusters / (clusters - 1) * float(np.square(residuals).sum()) / total**2
    half = t_quantile(clusters - 1, level) * math.sqrt(variance)
    low, high = mean - half, mean + half
    if bounds is not None:
        low, high = max(bounds[0], low), min(bounds[1], high)
    return Number(
        value=mean, low=low, high=high, flags=flags, method="t over items, clustered by item", **common
    )


def intraclass_correlation(bad: Any, den: Any) -> float | None:
    r"""How alike the claims of one item are: the analysis-of-variance estimator.

    .. math:: ICC = \frac{MSB - MSW}{MSB + (m_0 - 1) MSW}, \quad
              m_0 = \frac{M - \sum_r m_r^2/M}{R - 1}

    Parameters
    ----------
    bad, den : array_like of float, shape (R,)
        Bad claims and all claims of each item; items without claims are ignored.

    Returns
    -------
    float or None
        At most 1, possibly negative; None with fewer than two items, without a second claim in any item, or
        when every claim came out alike.

    References
    ----------
    Donner, A. (1986). A review of inference procedures for the intraclass correlation coefficient. Int. Stat.
    Rev. 54, 67-82.
    """
    y, m = check_counts(bad, "bad"), check_counts(den, "den")
    check_same_length(bad=y, den=m)
    if (y > m).any():
        raise ValueError(f"bad exceeds den at index {int((y > m).argmax())}")
    y, m = y[m > 0], m[m > 0]
    items, total = len(m), float(m.sum())
    if items < 2 or total == items or float(y.sum()) in (0.0, total):
        return None
    shares, overall = y / m, float(y.sum()) / total
    between = float((m * (shares - overall) ** 2).sum()) / (items - 1)
    within = float((m * shares * (1 - shares)).sum()) / (total - items)
    usual = (total - float((m**2).sum()) / total) / (items - 1)
    return (between - within) / (between + (usual - 1) * within)


def kish_design_effect(mean_size: float, icc: float) -> float:
    r"""Variance inflation of a rate by clustering, for planning.

    .. math:: deff = 1 + (\bar m - 1)\, ICC

    Parameters
    ----------
    mean_size : float
        Claims per item, at least 1.
    icc : float
        Intra-class correlation; a negative one counts as 0.

    Returns
    -------
    float
        At least 1; what to pass as ``design_effect`` when planning.

    References
    ----------
    Kish, L. (1965). Survey Sampling, section 5.4.
    """
    if not mean_size >= 1:
        raise ValueError(f"mean_size must be at least 1, got {mean_size!r}")
    if not icc <= 1:
        raise ValueError(f"icc must be at most 1, got {icc!r}")
    return 1 + (mean_size - 1) * max(0.0, icc)
