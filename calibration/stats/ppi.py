"""Prediction-powered estimates: a random labelled sample beside the judge's labels of the whole pool."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import (
    check_counts,
    check_level,
    check_same_length,
    check_share,
)
from .intervals import FEW_CLUSTERS
from .labels import BAD_SHARE
from .quantiles import t_quantile, z_quantile
from .results import Number, undefined_number


def ppi_mean(
    labelled: Any,
    judge_labelled: Any,
    judge_unlabelled: Any,
    *,
    weight: float | None = None,
    level: float = 0.95,
    label: str = f"{BAD_SHARE}, prediction-powered",
    unit: str = "claim",
) -> Number:
    r"""Prediction-powered mean (PPI++): labelled truth plus the judge's verdicts on everything.

    .. math:: \theta = \lambda \bar F_U + \overline{Y - \lambda F_L}, \quad
              Var = \lambda^2 \frac{Var(F_U)}{N} + \frac{Var(Y - \lambda F_L)}{n}, \quad
              \lambda^* = clip\left(\frac{cov(Y, F)}{(1 + n/N)\,Var(F)}, 0, 1\right)

    Parameters
    ----------
    labelled : array_like, shape (n,)
        Gold outcomes, 1 = positive.
    judge_labelled : array_like, shape (n,)
        The judge's outcomes on the same units.
    judge_unlabelled : array_like, shape (N,)
        The judge's outcomes on the units without gold.
    weight : float, optional
        Lambda in [0, 1]: 0 uses the labelled units only, 1 is the classical estimator. Default: tuned.
    level : float
        Confidence level.
    label, unit : str
        Name and unit of the figure.

    Returns
    -------
    Number
        Clipped to [0, 1] with flag ``clipped``. Undefined: ``zero_denominator`` without units,
        ``single_class_gold`` when all labelled outcomes are equal (its variance would be a fiction),
        ``too_few_clusters`` with fewer than two labelled units.

    Notes
    -----
    Valid only when the labelled units are a random sample of the same pool, labelled with the same rubric;
    `correct_bad_share` checks that. Units are taken as independent: for claims use `ppi_ratio`.

    References
    ----------
    Angelopoulos, A. N., Duchi, J. C. and Zrnic, T. (2023). PPI++: efficient prediction-powered inference.
    arXiv:2311.01453.
    """
    check_level(level)
    y, f = check_counts(labelled, "labelled"), check_counts(judge_labelled, "judge_labelled")
    u = check_counts(judge_unlabelled, "judge_unlabelled")
    n, big_n = check_same_length(labelled=y, judge_labelled=f), len(u)
    common: dict[str, Any] = {
        "level": level,
        "n": n + big_n,
        "clusters": n,
        "definition": "ppi-mean",
        "label": label,
        "unit": unit,
        "method": "PPI++",
    }
    reason = _ppi_refusal(n, big_n, y)
    if reason:
        return undefined_number(reason, **common)
    if weight is None:
        spread = float(np.concatenate([f, u]).var(ddof=1))
        weight = float(np.cov(y, f)[0, 1]) / ((1 + n / big_n) * spread) if spread > 0 else 0.0
        weight = min(1.0, max(0.0, weight))
    check_share(weight, "weight")
    value = weight * float(u.mean()) + float((y - weight * f).mean())
    variance = weight**2 * float(u.var()) / big_n + float((y - weight * f).var()) / n
    return clipped_number(value, z_quantile(level) * math.sqrt(variance), common)


def _ppi_refusal(n: int, big_n: int, y: NDArray[Any]) -> str | None:
    if n == 0 or big_n == 0:
        return "zero_denominator"
    if n < 2:
        return "too_few_clusters"
    return "single_class_gold" if np.all(y == y[0]) else None


def clipped_number(value: float, half: float, common: dict[str, Any]) -> Number:
    inside = min(1.0, max(0.0, value))
    low, high = min(1.0, max(0.0, value - half)), min(1.0, max(0.0, value + half))
    return Number(
        value=inside,
        low=min(low, inside),
        high=max(high, inside),
        flags=() if inside == value else ("clipped",),
        **common,
    )


def ppi_ratio(
    claims: Any,
    bad: Any,
    flagged: Any,
    claims_unlabelled: Any,
    flagged_unlabelled: Any,
    *,
    weight: float | None = None,
    level: float = 0.95,
    label: str = f"{BAD_SHARE}, prediction-powered",
    unit: str = "claim",
) -> Number:
    r"""Prediction-powered ratio (PPI++) for claims, one row per item.

    .. math:: \theta = \lambda \frac{\sum h_U}{\sum m_U} + \frac{\sum y - \lambda \sum h}{\sum m}

    The variance comes from the linearised residuals of the items, the quantile is t with R_L - 1 degrees of
    freedom (R_L labelled items). The tuned weight minimises that variance.

    Parameters
    ----------
    claims, bad, flagged : array_like, shape (R_L,)
        Claims, gold-bad claims and judge-flagged claims of each labelled item.
    claims_unlabelled, flagged_unlabelled : array_like, shape (R_U,)
        Claims and judge-flagged claims of each item without gold.
    weight : float, optional
        Lambda in [0, 1]; default: tuned.
    level : float
        Confidence level.
    label, unit : str
        Name and unit of the figure.

    Returns
    -------
    Number
        Clipped to [0, 1] with flag ``clipped``. Undefined: ``zero_denominator`` without claims on either
        side, ``too_few_clusters`` with fewer than two labelled items, ``single_class_gold`` when no
        labelled claim or every one is bad.

    References
    ----------
    Angelopoulos et al. (2023), see `ppi_mean`. Cochran, W. G. (1977). Sampling Techniques, chapter 6.
    """
    check_level(level)
    m, y, h = (
        check_counts(values, name)
        for values, name in ((claims, "claims"), (bad, "bad"), (flagged, "flagged"))
    )
    big_m = check_counts(claims_unlabelled, "claims_unlabelled")
    big_h = check_counts(flagged_unlabelled, "flagged_unlabelled")
    check_same_length(claims=m, bad=y, flagged=h)
    check_same_length(claims_unlabelled=big_m, flagged_unlabelled=big_h)
    for name, part, whole in (("bad", y, m), ("flagged", h, m), ("flagged_unlabelled", big_h, big_m)):
        if (part > whole).any():
            raise ValueError(f"{name} exceeds the claims of its item at index {int((part > whole).argmax())}")
    kept, big_kept = m > 0, big_m > 0
    m, y, h, big_m, big_h = m[kept], y[kept], h[kept], big_m[big_kept], big_h[big_kept]
    common: dict[str, Any] = {
        "level": level,
        "n": int(m.sum() + big_m.sum()),
        "clusters": len(m) + len(big_m),
        "definition": "ppi-ratio",
        "label": label,
        "unit": unit,
        "method": "PPI++ ratio, linearised by item, t",
    }
    total, big_total = float(m.sum()), float(big_m.sum())
    if total == 0 or big_total == 0:
        return undefined_number("zero_denominator", **common)
    if len(m) < 2 or len(big_m) < 2:
        return undefined_number("too_few_clusters", **common)
    if float(y.sum()) in (0.0, total):
        return undefined_number("single_class_gold", **common)
    residual_y = (y - y.sum() / total * m) / total
    residual_h = (h - h.sum() / total * m) / total
    residual_u = (big_h - big_h.sum() / big_total * big_m) / big_total
    small, big = len(m) / (len(m) - 1), len(big_m) / (len(big_m) - 1)
    if weight is None:
        spread = small * float(residual_h @ residual_h) + big * float(residual_u @ residual_u)
        weight = small * float(residual_y @ residual_h) / spread if spread > 0 else 0.0
        weight = min(1.0, max(0.0, weight))
    check_share(weight, "weight")
    value = weight * float(big_h.sum()) / big_total + float(y.sum() - weight * h.sum()) / total
    residual = residual_y - weight * residual_h
    variance = small * float(residual @ residual) + weight**2 * big * float(residual_u @ residual_u)
    flags = ("too_few_clusters",) if len(m) < FEW_CLUSTERS else ()
    number = clipped_number(value, t_quantile(len(m) - 1, level) * math.sqrt(variance), common)
    return number.with_flags(*flags)
