"""Two proportions beside each other, unpaired and paired."""

import math
from dataclasses import dataclass
from typing import Any

from .arrays import check_level
from .intervals import wilson
from .quantiles import exact_sign_test, normal_tail


def two_proportion_test(k1: float, n1: float, k2: float, n2: float) -> float | None:
    r"""p value of the pooled score test that two independent shares are equal.

    .. math:: z = \frac{p_1 - p_2}{\sqrt{\bar p(1-\bar p)(1/n_1 + 1/n_2)}}

    without a continuity correction.

    Parameters
    ----------
    k1, n1, k2, n2 : float
        Hits and trials on each side; effective numbers are allowed.

    Returns
    -------
    float or None
        Two-sided p; 1 when both shares are 0 or both are 1; None when a side has no trial.

    References
    ----------
    Fleiss, J. L., Levin, B. and Paik, M. C. (2003). Statistical Methods for Rates and Proportions, chapter 3.

    Examples
    --------
    >>> round(two_proportion_test(12, 300, 18, 300), 6)
    0.261054
    """
    for name, hits, trials in (("k1", k1, n1), ("k2", k2, n2)):
        if not 0 <= hits <= trials:
            raise ValueError(f"{name} must lie between 0 and its n = {trials!r}, got {hits!r}")
    if n1 == 0 or n2 == 0:
        return None
    pooled = (k1 + k2) / (n1 + n2)
    if pooled in (0.0, 1.0):
        return 1.0
    return normal_tail((k1 / n1 - k2 / n2) / math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2)))


def newcombe_difference(
    k1: float, n1: float, k2: float, n2: float, *, level: float = 0.95
) -> tuple[float, float] | None:
    r"""Interval of the difference of two independent shares from their Wilson intervals.

    .. math:: \left(d - \sqrt{(p_1 - l_1)^2 + (u_2 - p_2)^2},\;
              d + \sqrt{(u_1 - p_1)^2 + (p_2 - l_2)^2}\right), \quad d = p_1 - p_2

    Parameters
    ----------
    k1, n1, k2, n2 : float
        Hits and trials on each side.
    level : float
        Confidence level.

    Returns
    -------
    tuple of float, or None
        Limits of p1 - p2 inside [-1, 1]; None when a side has no trial.

    References
    ----------
    Newcombe, R. G. (1998). Interval estimation for the difference between independent proportions.
    Stat. Med. 17, 873-890.
    """
    check_level(level)
    if n1 == 0 or n2 == 0:
        return None
    (low1, high1), (low2, high2) = wilson(k1, n1, level), wilson(k2, n2, level)
    p1, p2 = k1 / n1, k2 / n2
    return (
        p1 - p2 - math.hypot(p1 - low1, high2 - p2),
        p1 - p2 + math.hypot(high1 - p1, p2 - low2),
    )


@dataclass(frozen=True)
class McNemar:
    """Exact McNemar test with its asymptotic relatives.

    Attributes
    ----------
    only_first, only_second : int
        Pairs in which exactly one of the two is positive.
    p : float
        Exact two-sided p; 1 without a discordant pair.
    mid_p : float
        Mid-p version, less conservative.
    chi2, chi2_p, corrected_p : float or None
        Asymptotic statistic, its p, and p with continuity correction; None without a discordant pair.
    """

    only_first: int
    only_second: int
    p: float
    mid_p: float
    chi2: float | None
    chi2_p: float | None
    corrected_p: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "only_first": self.only_first,
            "only_second": self.only_second,
            "p": self.p,
            "mid_p": self.mid_p,
            "chi2": self.chi2,
            "chi2_p": self.chi2_p,
            "corrected_p": self.corrected_p,
        }

    def explain(self) -> str:
        """The test in one plain sentence."""
        return (
            f"Of {self.only_first + self.only_second} pairs that differ, {self.only_first} are positive for "
            f"the first only and {self.only_second} for the second only (exact p {self.p:.3f})."
        )


def mcnemar(only_first: int, only_second: int) -> McNemar:
    r"""Exact McNemar test of two dependent shares from the discordant pairs.

    Under equality the discordant pairs fall on either side with probability 1/2:
    :math:`p = \min(1, 2 P(B \le \min(b, c)))`, :math:`B \sim Bin(b + c, 1/2)`; the mid-p counts the observed
    value half.

    Parameters
    ----------
    only_first, only_second : int
        Discordant pairs b and c, 0 or more.

    Returns
    -------
    McNemar
        p is 1 without a discordant pair.

    References
    ----------
    McNemar, Q. (1947). Psychometrika 12, 153-157. Fagerland, M. W., Lydersen, S. and Laake, P. (2013).
    BMC Med. Res. Methodol. 13, 91.

    Examples
    --------
    >>> round(mcnemar(12, 25).p, 6)
    0.047031
    """
    for name, count in (("only_first", only_first), ("only_second", only_second)):
        if count < 0 or int(count) != count:
            raise ValueError(f"{name} must be a whole number of 0 or more, got {count!r}")
    b, c = int(only_first), int(only_second)
    exact = exact_sign_test(b, c)
    if b + c == 0:
        return McNemar(0, 0, 1.0, 1.0, None, None, None)
    from scipy.special import bdtr

    total, smaller = b + c, min(b, c)
    below = float(bdtr(smaller - 1, total, 0.5)) if smaller else 0.0
    mid = min(1.0, below + float(bdtr(smaller, total, 0.5)))
    chi2 = (b - c) ** 2 / total
    corrected = max(0, abs(b - c) - 1) ** 2 / total
    return McNemar(b, c, exact, mid, chi2, normal_tail(math.sqrt(chi2)), normal_tail(math.sqrt(corrected)))
