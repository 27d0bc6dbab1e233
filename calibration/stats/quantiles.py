"""Quantiles of the normal and t distributions; scipy is loaded at the first call."""

from functools import lru_cache


@lru_cache(maxsize=64)
def z_quantile(level: float = 0.95) -> float:
    """Two-sided normal quantile, 1.959964 at 95 %."""
    from scipy.special import ndtri

    return float(ndtri((1 + level) / 2))


@lru_cache(maxsize=4096)
def t_quantile(degrees_of_freedom: int, level: float = 0.95) -> float:
    """Two-sided t quantile for the given degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(degrees_of_freedom, (1 + level) / 2))


def normal_tail(z: float) -> float:
    """Two-sided p value of a standard normal statistic."""
    from scipy.special import ndtr

    return float(2 * ndtr(-abs(z)))


def chi2_tail(statistic: float, degrees_of_freedom: int) -> float:
    """Upper tail of the chi-squared distribution."""
    from scipy.special import chdtrc

    return float(chdtrc(degrees_of_freedom, statistic))


def exact_sign_test(first: int, second: int) -> float:
    """Exact two-sided binomial p value of ``first`` against ``second`` discordant pairs.

    Without a discordant pair there is no evidence of a difference and p is 1.
    """
    from scipy.special import bdtr

    total = first + second
    if total == 0:
        return 1.0
    return float(min(1.0, 2 * bdtr(min(first, second), total, 0.5)))


def exact_lower_bound_of_all(successes: int, level: float = 0.95) -> float:
    """Exact (Clopper-Pearson) lower bound when every one of ``successes`` trials succeeded."""
    return ((1 - level) / 2) ** (1 / successes)
