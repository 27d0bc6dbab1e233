"""Two systems on the same inputs: paired differences, and the verdict on the pair that matters."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_counts, check_level, check_same_length, check_share, encode_clusters
from .intervals import FEW_CLUSTERS
from .power import paired_minimum_detectable_difference
from .proportions import McNemar, mcnemar, two_proportion_test
from .quantiles import exact_lower_bound_of_all, t_quantile, z_quantile
from .resampling import jackknife
from .results import Number, undefined_number

FAILURE_P = 0.01


@dataclass(frozen=True)
class Comparison:
    """Difference of two systems' rates on the same items, A minus B.

    Attributes
    ----------
    difference : Number
        Rate of A minus rate of B with its interval.
    p : float or None
        Exact McNemar p for one unit per item and system, else the t test of the jackknife.
    mcnemar : McNemar or None
        The exact test where there is one unit per item and system.
    minimum_detectable : float or None
        Smallest true difference that this set and judge show with power .8; a smaller observed one is
        flagged ``not_resolvable``. None where it would exceed 100 points, flagged ``nothing_resolvable``.
    n_items : int
        Items that both systems have.
    family : int
        Number of comparisons the level was divided by.
    blocked : str or None
        Why the comparison must not be read: the systems' failure shares differ.
    in_common : tuple of float, or None
        Rate of A and rate of B on the items that both have: what the difference is the difference of.
    """

    difference: Number
    p: float | None
    mcnemar: McNemar | None
    minimum_detectable: float | None
    n_items: int
    family: int = 1
    blocked: str | None = None
    in_common: tuple[float, float] | None = None

    @property
    def direction(self) -> str:
        """Which way the rate went: drop, rise or unresolved."""
        if self.blocked or self.difference.low is None or self.difference.high is None:
            return "unresolved"
        if self.difference.high < 0:
            return "drop"
        return "rise" if self.difference.low > 0 else "unresolved"

    def as_dict(self) -> dict[str, Any]:
        return {
            "difference": self.difference.as_dict(),
            "p": self.p,
            "mcnemar": self.mcnemar.as_dict() if self.mcnemar else None,
            "minimum_detectable": self.minimum_detectable,
            "items": self.n_items,
            "family": self.family,
            "direction": self.direction,
            "blocked": self.blocked,
        }

    def explain(self) -> str:
        """The difference in one plain sentence."""
        if self.blocked:
            return f"No comparison: {self.blocked}."
        sentence = self.difference.explain(_points)
        if self.minimum_detectable is not None:
            sentence += f" This set can show differences from {100 * self.minimum_detectable:.1f} points on."
        if self.family > 1:
            sentence += f" The level allows for {self.family} comparisons."
        return sentence


def _points(value: float) -> str:
    return f"{100 * value:+.1f} points"


def compare_rates(
    bad_a: Any,
    den_a: Any,
    bad_b: Any,
    den_b: Any,
    *,
    items_a: Any = None,
    items_b: Any = None,
    failed_a: float = 0,
    failed_b: float = 0,
    asked_a: float | None = None,
    asked_b: float | None = None,
    family: int = 1,
    youden: float = 1.0,
    names: tuple[str, str] = ("the first system", "the second"),
    label: str = "Difference of the rates",
    unit: str = "claim",
    level: float = 0.95,
) -> Comparison:
    r"""Paired difference of two systems' pooled rates, A minus B, clustered by item.

    .. math:: d = \frac{\sum y_A}{\sum m_A} - \frac{\sum y_B}{\sum m_B}

    over the items that both systems have. With one unit per item and system it is the paired difference of
    proportions :math:`d = (b - c)/n` with :math:`se = \sqrt{b + c - (b-c)^2/n}/n` and the exact McNemar
    test; otherwise the interval is a leave-one-item-out jackknife of d with a t quantile.

    Parameters
    ----------
    bad_a, den_a, bad_b, den_b : array_like of float
        Numerators and denominators, one row per response of A and of B.
    items_a, items_b : sequence, optional
        Item of each row; without them row i of A and row i of B are one item.
    failed_a, failed_b : float
        Units without a valid label; of a unit that was labelled repeatedly, the part of its labels that
        failed. If the failure shares differ (score test, p < .01), the comparison is blocked: a failing judge
        must not decide it.
    asked_a, asked_b : float, optional
        Units that should have a label, of which the failed ones are a share. Default: the denominators and
        the failed ones; units that are labelled and in no denominator (unverifiable claims) belong to it.
    family : int
        Number of comparisons made together; the level becomes 1 - (1 - level)/family (Bonferroni).
    youden : float
        Sensitivity + specificity - 1 of the judge behind the labels, 1 for people: a judge shows only this
        part of a true difference, so the detectable one grows by its inverse.
    names : tuple of str
        What A and B are called where the comparison is blocked.
    label, unit : str
        Name and counted unit.
    level : float
        Confidence level before the family correction.

    Returns
    -------
    Comparison
        Difference in [-1, 1]; undefined with ``zero_denominator`` where a side has no unit on the common
        items. Items that only one system has are excluded and counted.

    References
    ----------
    Newcombe, R. G. (1998). Improved confidence intervals for the difference between binomial proportions
    based on paired data. Stat. Med. 17, 2635-2650. Efron and Tibshirani (1993), chapter 11.
    """
    check_level(level)
    if family < 1:
        raise ValueError(f"family must be at least 1, got {family!r}")
    if not 0 < youden <= 1:
        raise ValueError(f"youden must lie in (0, 1], got {youden!r}")
    level = 1 - (1 - level) / family
    sides = _common_items(bad_a, den_a, bad_b, den_b, items_a, items_b)
    y_a, m_a, y_b, m_b, excluded = sides
    common: dict[str, Any] = {
        "level": level,
        "n": math.ceil(m_a.sum() + m_b.sum()),
        "clusters": len(m_a),
        "excluded": excluded,
        "definition": "compare-rates",
        "label": label,
        "unit": unit,
    }
    if asked_a is None:
        asked_a = float(np.sum(den_a)) + failed_a
    if asked_b is None:
        asked_b = float(np.sum(den_b)) + failed_b
    blocked = _blocked(failed_a, asked_a, failed_b, asked_b, names)
    if m_a.sum() == 0 or m_b.sum() == 0:
        nothing = undefined_number("zero_denominator", **common)
        return Comparison(nothing, None, None, None, len(m_a), family, blocked)
    if np.all(m_a == 1) and np.all(m_b == 1) and np.isin(np.concatenate([y_a, y_b]), (0, 1)).all():
        result = _paired_proportions(y_a, y_b, common, level)
    else:
        result = _ratio_difference(y_a, m_a, y_b, m_b, common, level)
    difference, p, test, detectable = result
    value, detectable = difference.value, None if detectable is None else detectable / youden
    if detectable is not None and detectable > 1:
        difference, detectable = difference.with_flags("nothing_resolvable"), None
    elif value is not None and detectable is not None and abs(value) < detectable:
        difference = difference.with_flags("not_resolvable")
    in_common = float(y_a.sum() / m_a.sum()), float(y_b.sum() / m_b.sum())
    return Comparison(difference, p, test, detectable, len(m_a), family, blocked, in_common)


def _common_items(
    bad_a: Any, den_a: Any, bad_b: Any, den_b: Any, items_a: Any, items_b: Any
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, int]]:
    columns = {
        name: check_counts(values, name)
        for name, values in (("bad_a", bad_a), ("den_a", den_a), ("bad_b", bad_b), ("den_b", den_b))
    }
    check_same_length(bad_a=columns["bad_a"], den_a=columns["den_a"], items_a=items_a)
    check_same_length(bad_b=columns["bad_b"], den_b=columns["den_b"], items_b=items_b)
    for side in "ab":
        if (columns[f"bad_{side}"] > columns[f"den_{side}"]).any():
            raise ValueError(f"bad_{side} exceeds den_{side}")
    n_a, n_b = len(columns["den_a"]), len(columns["den_b"])
    if (items_a is None) != (items_b is None):
        raise ValueError("items_a and items_b must be given together")
    if items_a is None:
        if n_a != n_b:
            raise ValueError(f"den_a and den_b must have the same length without items, got {n_a} and {n_b}")
        items_a = items_b = range(n_a)
    codes, number = encode_clusters(_joined(items_a, items_b), n_a + n_b, "items_a and items_b")
    of_a, of_b = codes[:n_a], codes[n_a:]
    in_a, in_b = np.zeros(number, dtype=bool), np.zeros(number, dtype=bool)
    in_a[of_a] = True
    in_b[of_b] = True
    both = in_a & in_b

    def per_item(values: NDArray[Any], of: NDArray[Any]) -> NDArray[Any]:
        return np.bincount(of, weights=values, minlength=number)[both]

    return (
        per_item(columns["bad_a"], of_a),
        per_item(columns["den_a"], of_a),
        per_item(columns["bad_b"], of_b),
        per_item(columns["den_b"], of_b),
        {"only_a": int((in_a & ~in_b).sum()), "only_b": int((in_b & ~in_a).sum())},
    )


def _joined(items_a: Any, items_b: Any) -> Any:
    if all(isinstance(items, np.ndarray) and items.dtype.kind in "iu" for items in (items_a, items_b)):
        return np.concatenate([items_a, items_b])
    return [*items_a, *items_b]


def _blocked(
    failed_a: float, asked_a: float, failed_b: float, asked_b: float, names: tuple[str, str]
) -> str | None:
    if failed_a < 0 or failed_b < 0:
        raise ValueError("failed_a and failed_b must be 0 or more")
    p = two_proportion_test(failed_a, asked_a, failed_b, asked_b)
    if p is None or p >= FAILURE_P:
        return None
    return (
        f"the judge failed on {failed_a / asked_a:.1%} of the units of {names[0]} and on "
        f"{failed_b / asked_b:.1%} of those of {names[1]} (p = {p:.4f})"
    )


Parts = tuple[Number, float | None, McNemar | None, float | None]


def _paired_proportions(y_a: NDArray[Any], y_b: NDArray[Any], common: dict[str, Any], level: float) -> Parts:
    n = len(y_a)
    b, c = int(((y_a == 1) & (y_b == 0)).sum()), int(((y_a == 0) & (y_b == 1)).sum())
    test = mcnemar(b, c)
    value = (b - c) / n
    flags = ("too_few_clusters",) if n < FEW_CLUSTERS else ()
    if n < 2:
        return (
            Number(value=value, flags=flags, method="none: fewer than two items", **common),
            test.p,
            test,
            None,
        )
    detectable = paired_minimum_detectable_difference(max(b + c, 1) / n, n, level=level)
    if (b, c) in ((0, 0), (n, 0), (0, n)):
        return _exact_difference(value, n, flags, common, level), test.p, test, detectable
    se = math.sqrt(b + c - (b - c) ** 2 / n) / n
    half = z_quantile(level) * se
    number = Number(
        value=value,
        low=max(-1.0, value - half),
        high=min(1.0, value + half),
        flags=flags,
        method="paired difference of proportions",
        **common,
    )
    return number, test.p, test, detectable


def _exact_difference(
    value: float, n: int, flags: tuple[str, ...], common: dict[str, Any], level: float
) -> Number:
    """Every pair came out alike, so the standard error is 0: bound the share of pairs that would not."""
    others = 1 - exact_lower_bound_of_all(n, level)
    low, high = (-others, others) if value == 0 else sorted((value, value * (1 - 2 * others)))
    return Number(value=value, low=low, high=high, flags=flags, method="exact bound", **common)


def _ratio_difference(
    y_a: NDArray[Any],
    m_a: NDArray[Any],
    y_b: NDArray[Any],
    m_b: NDArray[Any],
    common: dict[str, Any],
    level: float,
) -> Parts:
    value = float(y_a.sum() / m_a.sum() - y_b.sum() / m_b.sum())
    flags = ("too_few_clusters",) if len(m_a) < FEW_CLUSTERS else ()
    left_a, left_b = m_a.sum() - m_a, m_b.sum() - m_b
    with np.errstate(divide="ignore", invalid="ignore"):
        left = (y_a.sum() - y_a) / left_a - (y_b.sum() - y_b) / left_b
    spread = jackknife(np.where((left_a > 0) & (left_b > 0), left, np.nan))
    interval = spread.interval(value, level)
    if interval is None or spread.se is None:
        reason = "too_few_clusters" if spread.se is None else "no_variation"
        return Number(value=value, flags=(*flags, reason), method="none", **common), None, None, None
    from scipy.special import stdtr

    freedom = spread.clusters - 1
    p = float(2 * stdtr(freedom, -abs(value) / spread.se))
    detectable = (t_quantile(freedom, level) + t_quantile(freedom, 0.6)) * spread.se
    number = Number(
        value=value,
        low=max(-1.0, interval[0]),
        high=min(1.0, interval[1]),
        flags=flags,
        method="jackknife of the difference over items, t",
        **common,
    )
    return number, p, None, detectable


def corrected_difference(
    raw_a: Number, raw_b: Number, corrected_a: Number, corrected_b: Number, *, pooled_calibration: bool
) -> Number:
    r"""Difference of two corrected rates, A minus B.

    .. math:: \left(d - \sqrt{(\theta_A - l_A)^2 + (u_B - \theta_B)^2},\;
              d + \sqrt{(u_A - \theta_A)^2 + (\theta_B - l_B)^2}\right)

    Parameters
    ----------
    raw_a, raw_b : Number
        The judge's uncorrected rates, for the counts.
    corrected_a, corrected_b : Number
        Corrected rates, each preferably from its own system's gold.
    pooled_calibration : bool
        Whether one calibration served both: then the result assumes that the judge errs equally on both,
        which is flagged ``equal_error_assumed``.

    Returns
    -------
    Number
        Difference in [-1, 1], undefined where a corrected rate is, with its reason. The two are treated as
        independent, which for the same inputs errs on the wide side.

    References
    ----------
    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a general
    approach. Stat. Med. 27, 1693-1702.
    """
    common: dict[str, Any] = {
        "level": corrected_a.level,
        "n": raw_a.n + raw_b.n,
        "clusters": min(raw_a.clusters, raw_b.clusters),
        "definition": "corrected-difference",
        "label": "Difference of the corrected rates",
        "unit": corrected_a.unit,
        "method": "MOVER of the corrected intervals",
        "flags": ("equal_error_assumed",) if pooled_calibration else (),
    }
    for corrected in (corrected_a, corrected_b):
        if corrected.value is None:
            return undefined_number(corrected.undefined or "zero_denominator", **common)
    a, b = corrected_a, corrected_b
    if None in (a.value, b.value, a.low, a.high, b.low, b.high):
        return Number(value=float(a.value or 0) - float(b.value or 0), **common)
    value = float(a.value or 0) - float(b.value or 0)
    down = math.hypot(float(a.value or 0) - float(a.low or 0), float(b.high or 0) - float(b.value or 0))
    up = math.hypot(float(a.high or 0) - float(a.value or 0), float(b.value or 0) - float(b.low or 0))
    return Number(value=value, low=max(-1.0, value - down), high=min(1.0, value + up), **common)


@dataclass(frozen=True)
class EqualErrorTest:
    """Does the judge err equally on two systems?

    Attributes
    ----------
    sensitivity_p, specificity_p : float or None
        Score tests; None where a system has no gold of the class.
    equal : bool or None
        False when either p is below alpha; None when nothing could be tested.
    """

    sensitivity_p: float | None
    specificity_p: float | None
    equal: bool | None

    def as_dict(self) -> dict[str, Any]:
        return {"sensitivity_p": self.sensitivity_p, "specificity_p": self.specificity_p, "equal": self.equal}

    def explain(self) -> str:
        if self.equal is None:
            return "The judge's errors on the two systems cannot be compared: gold lacks a class."
        if not self.equal:
            return (
                "The judge errs differently on the two systems: calibrate it on each before comparing them."
            )
        return "No difference of the judge's errors on the two systems was found; one may still exist."


def equal_error_test(
    sensitivity_a: Number,
    specificity_a: Number,
    sensitivity_b: Number,
    specificity_b: Number,
    *,
    alpha: float = 0.05,
) -> EqualErrorTest:
    """Test whether a judge's sensitivity and specificity are the same on two systems.

    Parameters
    ----------
    sensitivity_a, specificity_a, sensitivity_b, specificity_b : Number
        From `judge_vs_gold` or `sensitivity_and_specificity` on each system's gold.
    alpha : float
        Level of the two pooled score tests.

    Returns
    -------
    EqualErrorTest
        ``equal`` is None when neither could be tested.

    References
    ----------
    See `two_proportion_test` and `differential_error_bias`.
    """
    check_share(alpha, "alpha")

    def test(first: Number, second: Number) -> float | None:
        if not first.denominator or not second.denominator:
            return None
        return two_proportion_test(
            first.numerator or 0, first.denominator, second.numerator or 0, second.denominator
        )

    tests = (test(sensitivity_a, sensitivity_b), test(specificity_a, specificity_b))
    known = [p for p in tests if p is not None]
    return EqualErrorTest(*tests, equal=all(p >= alpha for p in known) if known else None)
