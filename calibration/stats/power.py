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
    _check_kappa(kappa, "kappa")
    _check_kappa(bar, "bar")
    if kappa <= bar:
        raise ValueError(f"kappa must be above bar: no sample shows that {kappa!r} is at least {bar!r}")
    shares = _check_margins(margins)
    spread = z_quantile(level) * _unit_deviation(bar, shares) + _z_power(power) * _unit_deviation(
        kappa, shares
    )
    return max(1, math.ceil(design_effect * (spread / (kappa - bar)) ** 2))


def _z_power(power: float) -> float:
    check_share(power, "power")
    if power in (0.0, 1.0):
        raise ValueError(f"power must lie strictly between 0 and 1, got {power!r}")
    return z_quantile(2 * power - 1) if power > 0.5 else -z_quantile(1 - 2 * power) if power < 0.5 else 0.0


def _youden(sensitivity: float, specificity: float) -> float:
    check_share(sensitivity, "sensitivity")
    check_share(specificity, "specificity")
    youden = sensitivity + specificity - 1
    if youden <= 0:
        raise ValueError("sensitivity and specificity must add up to more than 1: such a judge sees nothing")
    return youden


def _needed_difference(
    base: float,
    target: float,
    n: float,
    sensitivity: float,
    specificity: float,
    design_effect: float,
    z: float,
) -> float:
    raw = [sensitivity * share + (1 - specificity) * (1 - share) for share in (base, target)]
    variance = design_effect * sum(share * (1 - share) for share in raw) / n
    return z * math.sqrt(variance) / (sensitivity + specificity - 1)


def minimum_detectable_difference(
    base: float,
    n: float,
    *,
    sensitivity: float = 1.0,
    specificity: float = 1.0,
    design_effect: float = 1.0,
    power: float = 0.8,
    level: float = 0.95,
) -> float | None:
    r"""Smallest true drop of a rate that two samples of n can show through an imperfect judge.

    The smallest :math:`\delta` with

    .. math:: \delta \ge \frac{(z_{1-\alpha/2} + z_{power})
              \sqrt{deff\,(r_1(1-r_1) + r_2(1-r_2))/n}}{J}, \quad r = Se\,\theta + (1-Sp)(1-\theta)

    since the judge shows only :math:`J = Se + Sp - 1` of a true difference.

    Parameters
    ----------
    base : float
        True rate of the first system.
    n : float
        Units per system.
    sensitivity, specificity : float
        Of the judge; 1 for human labels.
    design_effect : float
        Variance inflation by clustering.
    power : float
        Probability of seeing the difference.
    level : float
        Confidence level.

    Returns
    -------
    float or None
        In (0, base]; None when even a drop to zero would not show.

    References
    ----------
    Fleiss, J. L., Levin, B. and Paik, M. C. (2003). Statistical Methods for Rates and Proportions, chapter 4.

    Examples
    --------
    >>> round(100 * minimum_detectable_difference(0.10, 300), 2)
    5.83
    """
    check_level(level)
    check_share(base, "base")
    _youden(sensitivity, specificity)
    if not n > 0:
        raise ValueError(f"n must be more than 0, got {n!r}")
    z = z_quantile(level) + _z_power(power)

    def shortfall(delta: float) -> float:
        return delta - _needed_difference(base, base - delta, n, sensitivity, specificity, design_effect, z)

    if base == 0 or shortfall(base) < 0:
        return None
    # The judge's raw variance may fall or rise with the drop: look for the first crossing, then refine it.
    steps = np.linspace(0, base, 2001)
    first = next(step for step in steps if shortfall(float(step)) >= 0)
    low, high = max(0.0, float(first) - base / 2000), float(first)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if shortfall(middle) >= 0 else (middle, high)
    return high


def n_per_system(
    base: float,
    target: float,
    *,
    sensitivity: float = 1.0,
    specificity: float = 1.0,
    design_effect: float = 1.0,
    power: float = 0.8,
    level: float = 0.95,
) -> int:
    r"""Units per system needed to show a change from one true rate to another.

    .. math:: n = \left\lceil deff \frac{(z_{1-\alpha/2} + z_{power})^2 (r_1(1-r_1) + r_2(1-r_2))}
              {(J\,(\theta_1 - \theta_2))^2} \right\rceil

    Parameters
    ----------
    base, target : float
        The two true rates.
    sensitivity, specificity : float
        Of the judge.
    design_effect : float
        Variance inflation by clustering.
    power : float
        Probability of seeing the difference.
    level : float
        Confidence level.

    Returns
    -------
    int
        At least 1.

    References
    ----------
    See `minimum_detectable_difference`.

    Examples
    --------
    >>> n_per_system(0.10, 0.08)
    3211
    """
    check_level(level)
    check_share(base, "base")
    check_share(target, "target")
    _youden(sensitivity, specificity)
    if base == target:
        raise ValueError("target must differ from base: no sample shows a difference of nothing")
    z = z_quantile(level) + _z_power(power)
    needed = _needed_difference(base, target, 1, sensitivity, specificity, design_effect, z)
    return max(1, math.ceil((needed / abs(base - target)) ** 2))


def paired_minimum_detectable_difference(
    discordant: float, n: float, *, power: float = 0.8, level: float = 0.95
) -> float:
    r"""Smallest difference that n paired units can show, given the share on which the systems differ.

    .. math:: (z_{1-\alpha/2} + z_{power}) \sqrt{discordant / n}

    Parameters
    ----------
    discordant : float
        Share of inputs that are bad for exactly one of the two systems.
    n : float
        Pairs.
    power : float
        Probability of seeing the difference.
    level : float
        Confidence level.

    Returns
    -------
    float
        0 or more.

    References
    ----------
    Connor, R. J. (1987). Sample size for testing differences in proportions for the paired-sample design.
    Biometrics 43, 207-211.
    """
    check_level(level)
    check_share(discordant, "discordant")
    if not n > 0:
        raise ValueError(f"n must be more than 0, got {n!r}")
    return (z_quantile(level) + _z_power(power)) * math.sqrt(discordant / n)


def calibration_half_width(
    theta: float, gold: float, *, sensitivity: float, specificity: float, level: float = 0.95
) -> float:
    r"""Half-width that the gold set alone leaves on a corrected rate, however many units are judged.

    .. math:: \frac{z}{J} \sqrt{(1-\theta)^2 \frac{Sp(1-Sp)}{m_0} + \theta^2 \frac{Se(1-Se)}{m_1}},
              \quad m_1 = \theta m, \; m_0 = (1-\theta) m

    Parameters
    ----------
    theta : float
        True rate, strictly between 0 and 1.
    gold : float
        Gold units m.
    sensitivity, specificity : float
        Of the judge.
    level : float
        Confidence level.

    Returns
    -------
    float
        0 or more.

    References
    ----------
    Rogan, W. J. and Gladen, B. (1978). Am. J. Epidemiol. 107, 71-76.
    """
    check_level(level)
    if not 0 < theta < 1:
        raise ValueError(f"theta must lie strictly between 0 and 1, got {theta!r}")
    if not gold > 0:
        raise ValueError(f"gold must be more than 0, got {gold!r}")
    youden = _youden(sensitivity, specificity)
    variance = (1 - theta) * specificity * (1 - specificity) / gold
    variance += theta * sensitivity * (1 - sensitivity) / gold
    return z_quantile(level) * math.sqrt(variance) / youden


def differential_error_bias(
    theta: float,
    *,
    specificity_difference: float = 0.0,
    sensitivity_difference: float = 0.0,
    youden: float,
) -> float:
    r"""How wrong a corrected difference becomes when the judge errs differently on the two systems.

    .. math:: \frac{(1-\theta)\,\Delta_{false\ flag} + \theta\,\Delta_{Se}}{J}

    Parameters
    ----------
    theta : float
        True rate.
    specificity_difference : float
        Difference of the false-flag rates (1 - Sp) between the systems.
    sensitivity_difference : float
        Difference of the sensitivities.
    youden : float
        J of the pooled calibration, more than 0.

    Returns
    -------
    float
        Bias of the corrected difference, signed. More data does not make it smaller.

    References
    ----------
    Rogan, W. J. and Gladen, B. (1978). Am. J. Epidemiol. 107, 71-76.
    """
    check_share(theta, "theta")
    if not 0 < youden <= 1:
        raise ValueError(f"youden must lie between 0 and 1, got {youden!r}")
    return ((1 - theta) * specificity_difference + theta * sensitivity_difference) / youden
