"""Rates over strata with fixed weights."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import check_counts, check_level, check_same_length, encode_clusters
from .intervals import ratio_variance, share_number
from .results import Number, undefined_number


@dataclass(frozen=True)
class StratifiedRate:
    """A weighted rate with its strata.

    Attributes
    ----------
    number : Number
        The weighted rate.
    se : float or None
        Its standard error (cross-check).
    strata : mapping of stratum to Number
        Each stratum's own rate.
    weights : mapping of stratum to float
        The fixed weights.
    unweighted : Number
        The pooled rate that ignores the weights, to compare.
    empty_strata : tuple
        Strata with weight and no observation; with one of them the weighted rate is undefined.
    """

    number: Number
    se: float | None
    strata: Mapping[Hashable, Number]
    weights: Mapping[Hashable, float]
    unweighted: Number
    empty_strata: tuple[Hashable, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "rate": self.number.as_dict(),
            "strata": {str(name): number.as_dict() for name, number in self.strata.items()},
            "weights": {str(name): weight for name, weight in self.weights.items()},
            "unweighted": self.unweighted.as_dict(),
            "empty_strata": [str(name) for name in self.empty_strata],
        }

    def explain(self) -> str:
        """The weighted rate in one plain sentence, naming empty strata."""
        if self.empty_strata:
            names = ", ".join(map(str, self.empty_strata))
            return f"{self.number.label} is undefined: no observation in {names}."
        return self.number.explain()


def stratified_rate(
    bad: Any,
    den: Any,
    strata: Any,
    *,
    weights: Mapping[Hashable, float],
    clusters: Any = None,
    level: float = 0.95,
    label: str = "Stratified rate",
    unit: str = "claim",
) -> StratifiedRate:
    r"""Rate over strata with fixed weights, with a MOVER interval from the strata's Wilson intervals.

    .. math:: p = \sum_h W_h p_h, \quad
              l = p - \sqrt{\sum_h W_h^2 (p_h - l_h)^2}, \quad u = p + \sqrt{\sum_h W_h^2 (u_h - p_h)^2}

    Parameters
    ----------
    bad, den : array_like of float, shape (n,)
        Numerator and denominator of each row (a response, or a claim as 0/1 of 1).
    strata : sequence, shape (n,)
        Stratum of each row.
    weights : mapping of stratum to float
        Fixed weights of the strata, summing to 1; they belong to the set, not to the data.
    clusters : sequence, shape (n,), optional
        Item of each row; each stratum's interval is the clustered one of `clustered_rate`.
    level : float
        Confidence level.
    label, unit : str
        Name and unit of the figure.

    Returns
    -------
    StratifiedRate
        Rate in [0, 1]; undefined with ``empty_stratum`` when a stratum with weight has no observation
        (it is named). Items that lie in several strata are flagged ``strata_overlap``.

    Raises
    ------
    ValueError
        When the weights do not sum to 1 or a row's stratum has none.

    References
    ----------
    Zou, G. Y., Huang, W. and Zhang, X. (2009). A note on confidence interval estimation for a linear
    function of binomial proportions. Comput. Stat. Data Anal. 53, 1080-1085.
    """
    check_level(level)
    y, m = check_counts(bad, "bad"), check_counts(den, "den")
    n = check_same_length(bad=y, den=m, strata=strata)
    if (y > m).any():
        raise ValueError(f"bad exceeds den at index {int((y > m).argmax())}")
    _check_weights(weights, strata)
    codes, number = encode_clusters(clusters, n)
    of_row: list[Hashable] = list(strata)
    per_stratum: dict[Hashable, Number] = {}
    seen = np.zeros(number, dtype=int)
    variance = 0.0
    for name, weight in weights.items():
        chosen = np.array([stratum == name for stratum in of_row], dtype=bool)
        sums_y = np.bincount(codes[chosen], weights=y[chosen], minlength=number)
        sums_m = np.bincount(codes[chosen], weights=m[chosen], minlength=number)
        seen += sums_m > 0
        per_stratum[name] = share_number(
            sums_y,
            sums_m,
            level=level,
            label=f"{label}, {name}",
            unit=unit,
            definition="stratified-rate",
        )
        variance += weight**2 * _binomial_variance(sums_y, sums_m)
    unweighted = share_number(
        np.bincount(codes, weights=y, minlength=number),
        np.bincount(codes, weights=m, minlength=number),
        level=level,
        label=f"{label}, unweighted",
        unit=unit,
        definition="stratified-rate",
    )
    empty = tuple(name for name, weight in weights.items() if weight > 0 and per_stratum[name].value is None)
    overlap = ("strata_overlap",) if (seen > 1).any() else ()
    combined = _combine(per_stratum, weights, empty, unweighted, label, overlap)
    return StratifiedRate(
        combined, None if empty else math.sqrt(variance), per_stratum, dict(weights), unweighted, empty
    )


def _check_weights(weights: Mapping[Hashable, float], strata: Any) -> None:
    if not weights:
        raise ValueError("weights must give a weight to every stratum")
    for name, weight in weights.items():
        if not 0 <= weight <= 1:
            raise ValueError(f"weights must lie between 0 and 1, got {weight!r} for {name!r}")
    if abs(sum(weights.values()) - 1) > 1e-6:
        raise ValueError(f"weights must sum to 1, got {sum(weights.values()):g}")
    for name in strata:
        if name not in weights:
            raise ValueError(f"strata holds {name!r}, which has no weight")


def _binomial_variance(y: Any, m: Any) -> float:
    ratio = ratio_variance(y, m)
    if ratio.total_m == 0:
        return 0.0
    return ratio.design_effect * ratio.share * (1 - ratio.share) / ratio.total_m


def _combine(
    strata: Mapping[Hashable, Number],
    weights: Mapping[Hashable, float],
    empty: tuple[Hashable, ...],
    pooled: Number,
    label: str,
    flags: tuple[str, ...],
) -> Number:
    common: dict[str, Any] = {
        "level": pooled.level,
        "n": pooled.n,
        "clusters": pooled.clusters,
        "definition": "stratified-rate",
        "label": label,
        "unit": pooled.unit,
        "method": "MOVER of the strata's Wilson intervals",
    }
    if empty:
        return undefined_number("empty_stratum", flags=flags, **common)
    used = [(weight, strata[name]) for name, weight in weights.items() if weight > 0]
    value = sum(weight * (number.value or 0.0) for weight, number in used)
    few = dict.fromkeys(flag for _, number in used for flag in number.flags)
    flags = (*flags, *few)
    if any(number.low is None or number.high is None for _, number in used):
        return Number(value=value, flags=(*flags, "too_few_clusters"), **common)
    down = math.hypot(*(w * ((s.value or 0.0) - (s.low or 0.0)) for w, s in used))
    up = math.hypot(*(w * ((s.high or 0.0) - (s.value or 0.0)) for w, s in used))
    return Number(value=value, low=max(0.0, value - down), high=min(1.0, value + up), flags=flags, **common)
