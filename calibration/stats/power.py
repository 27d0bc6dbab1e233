"""How much data a question needs, and what the data at hand could show at all."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import fce_standard_errors
from .arrays import check_level, check_share
from .quantiles import z_quantile


def kappa_model_table(kappa: float, margins: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Joint distribution of two graders with the same margins and a given kappa."""
    shares = _check_margins(margins)
    return (1 - kappa) * np.outer(shares, shares) + kappa * np.diag(shares)


def _check_margins(margins: Any) -> NDArray[np.float64]:
    shares = np.asarray(margins, dtype=float)
    if shares.ndim != 1 or len(shares) < 2 or (shares < 0).any() or not np.isfinite(shares).all():
        raise ValueError("margins must be at least two shares of 0 or more")
    if abs(float(shares.sum()) - 1) > 1e-6:
        raise ValueError(f"margins must sum to 1, got {float(shares.sum()):g}")
    if (shares > 0).sum() < 2:
        raise ValueError("margins must give a share to at least two labels: kappa is undefined otherwise")
    return shares / shares.sum()


def _unit_deviation(kappa: float, margins: NDArray[np.float64]) -> float:
    return fce_standard_errors(kappa_model_table(kappa, margins))[0]


def _check_kappa(kappa: float, name: str) -> None:
    if not -1 < kappa < 1:
        raise ValueError(f"{name} must lie between -1 and 1, got {kappa!r}")


def kappa_half_width(
    kappa: float, n: int, margins: Any, *, design_effect: float = 1.0, level: float = 0.95
) -> float:
    r"""Half-width of kappa's interval that n pairs will give.

    .. math:: z \sqrt{deff \cdot \sigma^2(\kappa) / n}

    with :math:`\sigma^2` the Fleiss-Cohen-Everitt variance of one pair when both graders have the given
    margins and :math:`p_{ij} = (1-\kappa) p_i p_j + \kappa p_i [i=j]`.

    Parameters
    ----------
    kappa : float
        Expected kappa.
    n : int
        Pairs.
    margins : sequence of float
        Expected label shares, summing to 1.
    design_effect : float
        Variance inflation by clustering, 1 to 2 for kappa.
    level : float
        Confidence level.

    Returns
    -------
    float
        More than 0.

    References
    ----------
    Fleiss, J. L., Cohen, J. and Everitt, B. S. (1969). Psychol. Bull. 72, 323-327.
    """
    check_level(level)
    _check_kappa(kappa, "kappa")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n!r}")
    return z_quantile(level) * _unit_deviation(kappa, _check_margins(margins)) * math.sqrt(design_effect / n)


def kappa_n_for_half_width(
    kappa: float, half_width: float, margins: Any, *, design_effect: float = 1.0, level: float = 0.95
) -> int:
    r"""Pairs needed for a given half-width of kappa's interval.

    .. math:: n = \left\lceil deff\,(z \sigma(\kappa) / w)^2 \right\rceil

    Parameters
    ----------
    kappa : float
        Expected kappa.
    half_width : float
        Wanted half-width w, more than 0.
    margins : sequence of float
        Expected label shares.
    design_effect : float
        Variance inflation by clustering.
    level : float
        Confidence level.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    See `kappa_half_width`.
    """
    check_level(level)
    _check_kappa(kappa, "kappa")
    if not half_width > 0:
        raise ValueError(f"half_width must be more than 0, got {half_width!r}")
    deviation = _unit_deviation(kappa, _check_margins(margins))
    return max(1, math.ceil(design_effect * (z_quantile(level) * deviation / half_width) ** 2))


def kappa_sample_size(
    kappa: float,
    bar: float,
    margins: Any,
    *,
    power: float = 0.8,
    design_effect: float = 1.0,
    level: float = 0.95,
) -> int:
    r"""Pairs needed so that the lower limit of kappa's interval clears a bar with the given power.

    .. math:: n = \left\lceil deff \left(\frac{z_{1-\alpha/2}\,\sigma(\kappa_0) +
              z_{power}\,\sigma(\kappa_1)}{\kappa_1 - \kappa_0}\right)^2 \right\rceil

    Parameters
    ----------
    kappa : float
        The true kappa one hopes for, above `bar`.
    bar : float
        What the lower limit must reach.
    margins : sequence of float
        Expected label shares.
    power : float
        Probability of clearing the bar.
    design_effect : float
        Variance inflation by clustering.
    level : float
        Confidence level.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    Flack, V. F. et al. (1988). Sample size determinations for the two rater kappa statistic.
    Psychometrika 53, 321-325.

    Examples
    --------
    >>> kappa_sample_size(0.8, 0.6, [0.60, 0.12, 0.19, 0.09])
    87
    """
    check_level(level)
    check_share(power, "power")
    _check_kappa(kappa, "kappa")
    _check_kappa(bar, "bar")
    if kappa <= bar:
        raise ValueError(f"kappa must be above bar: no sample shows that {kappa!r} is at least {bar!r}")
    shares = _check_margins(margins)
    z_power = z_quantile(2 * power - 1) if power > 0.5 else -z_quantile(1 - 2 * power) if power < 0.5 else 0.0
    spread = z_quantile(level) * _unit_deviation(bar, shares) + z_power * _unit_deviation(kappa, shares)
    return max(1, math.ceil(design_effect * (spread / (kappa - bar)) ** 2))
