"""Has the judge, or the system, changed since? Sentinel runs, fresh samples, daily series."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import check_level, check_same_length, check_share
from .intervals import share_number
from .proportions import McNemar, mcnemar, newcombe_difference, two_proportion_test
from .results import Number, undefined_number

DRIFT_ALPHA = 0.01
STEP_ALPHA = 0.001
STEP_POINTS = 0.05
STEP_RECENT_DAYS = 7
STEP_BASE_DAYS = 28
FEW_PER_DAY = 30


@dataclass(frozen=True)
class SentinelDrift:
    """A judge run again on the frozen gold.

    Attributes
    ----------
    test : McNemar
        Was it more often right before or now? Paired on the same targets.
    flips : Number
        Share of verdicts that changed.
    correct_before, correct_now : int
        Agreement with gold in each run.
    n : int
        Targets with gold and both verdicts.
    """

    test: McNemar
    flips: Number
    correct_before: int
    correct_now: int
    n: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "mcnemar": self.test.as_dict(),
            "flips": self.flips.as_dict(),
            "correct_before": self.correct_before,
            "correct_now": self.correct_now,
            "n": self.n,
        }

    def explain(self) -> str:
        """The drift in one plain sentence."""
        return (
            f"The judge agreed with gold on {self.correct_before} of {self.n} targets before and on "
            f"{self.correct_now} now (exact McNemar p {self.test.p:.3f}); "
            f"{self.flips.numerator or 0:g} verdicts changed."
        )


def sentinel_drift(
    gold: Sequence[Any],
    before: Sequence[Any],
    now: Sequence[Any],
    *,
    clusters: Any = None,
    level: float = 0.95,
    unit: str = "claim",
) -> SentinelDrift:
    """Paired test of a judge's correctness on frozen gold, then and now, and the share of changed verdicts.

    Parameters
    ----------
    gold, before, now : sequence, shape (n,)
        Gold labels and the verdicts of both runs; a target that misses one of them is left out and counted.
    clusters : sequence, shape (n,), optional
        Item of each target, for the interval of the flip share.
    level : float
        Confidence level.
    unit : str
        What is judged.

    Returns
    -------
    SentinelDrift
        p is 1 when correctness changed nowhere. Of a judge that was asked several times about each target,
        the first answers are compared. Where nothing has changed, one answer is as often right as another,
        and the targets on which they differ fall on either side with probability 1/2; the majority of
        several answers is right with another probability than one, and would differ without any drift.

    References
    ----------
    See `mcnemar`.
    """
    check_level(level)
    check_same_length(gold=gold, before=before, now=now, clusters=clusters)
    rows = [
        (truth, old, new, row if clusters is None else clusters[row])
        for row, (truth, old, new) in enumerate(zip(gold, before, now, strict=True))
        if truth is not None and old is not None and new is not None
    ]
    only_before = sum(old == truth != new for truth, old, new, _ in rows)
    only_now = sum(new == truth != old for truth, old, new, _ in rows)
    items = {item: number for number, item in enumerate(dict.fromkeys(row[3] for row in rows))}
    codes = np.array([items[row[3]] for row in rows], dtype=np.int64)
    changed = np.array([old != new for _, old, new, _ in rows], dtype=float)
    flips = share_number(
        np.bincount(codes, weights=changed, minlength=len(items)),
        np.bincount(codes, minlength=len(items)).astype(float),
        level=level,
        label="Changed verdicts",
        unit=unit,
        definition="sentinel-drift",
        excluded={"incomplete": len(gold) - len(rows)},
    )
    return SentinelDrift(
        mcnemar(only_before, only_now),
        flips,
        sum(old == truth for truth, old, _, _ in rows),
        sum(new == truth for truth, _, new, _ in rows),
        len(rows),
    )


@dataclass(frozen=True)
class ShareChange:
    """A share then and now, from independent samples.

    Attributes
    ----------
    difference : Number
        Now minus before, with Newcombe's interval.
    p : float or None
        Pooled score test.
    alert : bool
        Whether the change is to be looked at.
    """

    difference: Number
    p: float | None
    alert: bool

    def as_dict(self) -> dict[str, Any]:
        return {"difference": self.difference.as_dict(), "p": self.p, "alert": self.alert}

    def explain(self) -> str:
        """The change in one plain sentence."""
        if self.p is None:
            return self.difference.explain()
        sign = "Alert" if self.alert else "No alert"
        return f"{sign}: {self.difference.explain()[:-1]} (p {self.p:.4f})."


def agreement_drift(
    agreed_before: int,
    n_before: int,
    agreed_now: int,
    n_now: int,
    *,
    alpha: float = DRIFT_ALPHA,
    level: float = 0.95,
) -> ShareChange:
    """Agreement with people on a fresh sample against the calibration sample.

    Parameters
    ----------
    agreed_before, n_before, agreed_now, n_now : int
        Targets on which the judge agreed, of all targets, then and now.
    alpha : float
        Level of the pooled score test; low, because the test is repeated every period.
    level : float
        Confidence level of the difference.

    Returns
    -------
    ShareChange
        Undefined (``zero_denominator``) when a side has no target.

    References
    ----------
    See `two_proportion_test`.
    """
    check_share(alpha, "alpha")
    return _share_change(
        agreed_before,
        n_before,
        agreed_now,
        n_now,
        alpha,
        0.0,
        level,
        "Change of agreement",
        "agreement-drift",
    )


def _share_change(
    k1: float,
    n1: float,
    k2: float,
    n2: float,
    alpha: float,
    minimum: float,
    level: float,
    label: str,
    definition: str,
) -> ShareChange:
    check_level(level)
    p = two_proportion_test(k1, n1, k2, n2)
    interval = newcombe_difference(k2, n2, k1, n1, level=level)
    common: dict[str, Any] = {
        "level": level,
        "n": int(n1 + n2),
        "clusters": int(n1 + n2),
        "definition": definition,
        "label": label,
        "unit": "response",
    }
    if p is None or interval is None:
        return ShareChange(undefined_number("zero_denominator", **common), None, False)
    value = k2 / n2 - k1 / n1
    number = Number(value=value, low=interval[0], high=interval[1], method="Newcombe", **common)
    # The tolerance keeps "exactly the minimum" an alert whatever the last binary digit says.
    return ShareChange(number, p, p < alpha and abs(value) >= minimum - 1e-12)


@dataclass(frozen=True)
class SeriesPoint:
    """One point of a daily series, possibly several days pooled.

    Attributes
    ----------
    first, last : int
        Indices of the first and last day that were pooled.
    share : Number
        Share with Wilson interval.
    lower, upper : float
        3-sigma limits around the whole series, for drawing; nothing is tested by them.
    """

    first: int
    last: int
    share: Number
    lower: float
    upper: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "last": self.last,
            "share": self.share.as_dict(),
            "lower": self.lower,
            "upper": self.upper,
        }

    def explain(self) -> str:
        """The point in one plain sentence."""
        inside = self.share.value is not None and self.lower <= self.share.value <= self.upper
        return f"{self.share.explain()} That is {'inside' if inside else 'outside'} the 3-sigma limits."


def control_chart(
    hits: Any, totals: Any, *, level: float = 0.95, label: str = "Daily share"
) -> tuple[SeriesPoint, ...]:
    r"""Daily shares with 3-sigma limits.

    .. math:: \bar p \pm 3 \sqrt{\bar p(1-\bar p)/n_t}

    Parameters
    ----------
    hits, totals : sequence of int, shape (days,)
        Hits and responses of each day, in order. A day with fewer than 30 responses is pooled with the next
        (a short last day with the one before).
    level : float
        Confidence level of each day's interval.
    label : str
        Name of the share.

    Returns
    -------
    tuple of SeriesPoint
        Empty without a response.

    References
    ----------
    Montgomery, D. C. (2013). Introduction to Statistical Quality Control, chapter 7.
    """
    check_level(level)
    pooled = pooled_days(hits, totals)
    total = sum(size for _, _, _, size in pooled)
    if total == 0:
        return ()
    mean = sum(hit for _, _, hit, _ in pooled) / total
    points = []
    for first, last, hit, size in pooled:
        half = 3 * math.sqrt(mean * (1 - mean) / size)
        share = share_number(
            np.array([1.0] * hit + [0.0] * (size - hit)),
            np.ones(size),
            level=level,
            label=label,
            unit="response",
            definition="control-chart",
        )
        points.append(SeriesPoint(first, last, share, max(0.0, mean - half), min(1.0, mean + half)))
    return tuple(points)


LEAST_EXPECTED = 5  # hits and misses below which the normal limits say nothing


@dataclass(frozen=True)
class ChartedShare:
    """A share of one run beside the limits that the runs before it set.

    Attributes
    ----------
    share : Number
        The share, with its interval.
    centre, lower, upper : float or None
        Pooled share of the runs before it and the 3-sigma limits; None for the first run, and where fewer
        than 5 hits or misses are to be expected.
    outside : bool
        Whether the share lies outside the limits.
    """

    share: Number
    centre: float | None
    lower: float | None
    upper: float | None
    outside: bool

    def as_dict(self) -> dict[str, Any]:
        return {
            "share": self.share.as_dict(),
            "centre": self.centre,
            "lower": self.lower,
            "upper": self.upper,
            "outside": self.outside,
        }

    def explain(self) -> str:
        """The share in one plain sentence."""
        if self.lower is None or self.upper is None:
            return f"{self.share.explain()} There are no limits to hold it against."
        where = "outside" if self.outside else "inside"
        return f"{self.share.explain()} That is {where} the limits {self.lower:.1%} to {self.upper:.1%}."


def run_chart(shares: Sequence[Number]) -> tuple[ChartedShare, ...]:
    r"""Control chart of a share over repeated runs: each run against limits from the runs before it.

    With :math:`\bar p` the pooled share of the earlier runs that were inside their own limits,

    .. math:: \bar p \pm 3 \sqrt{\bar p(1-\bar p)/n_t}

    Parameters
    ----------
    shares : sequence of Number, shape (runs,)
        The share of each run with what it was counted from, oldest first; the first is the one that was
        calibrated.

    Returns
    -------
    tuple of ChartedShare
        A run on the same targets varies less than the limits allow: what lies outside has changed.

    References
    ----------
    Montgomery, D. C. (2013). Introduction to Statistical Quality Control, chapter 7 (phase II).
    """
    points, hit_sum, size_sum = [], 0.0, 0.0
    for share in shares:
        hit, size = share.numerator or 0, share.denominator or 0
        centre, lower, upper = _limits(hit_sum, size_sum, size)
        outside = lower is not None and upper is not None and not lower <= hit / size <= upper
        points.append(ChartedShare(share, centre, lower, upper, outside))
        if not outside:
            hit_sum, size_sum = hit_sum + hit, size_sum + size
    return tuple(points)


def _limits(hits: float, before: float, size: float) -> tuple[float | None, float | None, float | None]:
    if not before or not size:
        return None, None, None
    centre = hits / before
    if min(size * centre, size * (1 - centre)) < LEAST_EXPECTED:
        return centre, None, None
    half = 3 * math.sqrt(centre * (1 - centre) / size)
    return centre, max(0.0, centre - half), min(1.0, centre + half)


def _daily_counts(hits: Any, totals: Any) -> tuple[list[int], list[int]]:
    k, n = [int(value) for value in hits], [int(value) for value in totals]
    check_same_length(hits=k, totals=n)
    for day, (hit, size) in enumerate(zip(k, n, strict=True)):
        if not 0 <= hit <= size:
            raise ValueError(f"hits must lie between 0 and totals, got {hit} of {size} at index {day}")
    return k, n


def pooled_days(hits: Any, totals: Any) -> list[tuple[int, int, int, int]]:
    """Days as (first, last, hits, total), those below 30 responses pooled with the next."""
    k, n = _daily_counts(hits, totals)
    pooled: list[tuple[int, int, int, int]] = []
    start = hit_sum = size_sum = 0
    for day in range(len(n)):
        hit_sum, size_sum = hit_sum + k[day], size_sum + n[day]
        if size_sum >= FEW_PER_DAY:
            pooled.append((start, day, hit_sum, size_sum))
            start, hit_sum, size_sum = day + 1, 0, 0
    if size_sum:
        if pooled:
            first, _, hit, size = pooled.pop()
            pooled.append((first, len(n) - 1, hit + hit_sum, size + size_sum))
        else:
            pooled.append((start, len(n) - 1, hit_sum, size_sum))
    return pooled


def step_test(
    hits: Any,
    totals: Any,
    *,
    minimum: float = STEP_POINTS,
    alpha: float = STEP_ALPHA,
    recent_days: int = STEP_RECENT_DAYS,
    base_days: int = STEP_BASE_DAYS,
    level: float = 0.95,
    label: str = "Change of the last days",
) -> ShareChange:
    """Did a daily share step up or down? The last 7 days against the 28 before them.

    Parameters
    ----------
    hits, totals : sequence of int, shape (days,)
        Hits and responses of each day, oldest first.
    minimum : float
        Smallest difference that is worth an alert.
    alpha : float
        Level of the pooled z test.
    recent_days, base_days : int
        Length of the two windows.
    level : float
        Confidence level of the difference.
    label : str
        Name of the change.

    Returns
    -------
    ShareChange
        Alert when p < alpha *and* the difference is at least the minimum; undefined
        (``zero_denominator``) while one of the windows is empty.

    References
    ----------
    See `two_proportion_test`.
    """
    check_share(alpha, "alpha")
    check_share(minimum, "minimum")
    k, n = _daily_counts(hits, totals)
    if recent_days < 1 or base_days < 1:
        raise ValueError("recent_days and base_days must be at least 1")
    cut = max(0, len(n) - recent_days)
    start = max(0, cut - base_days)
    return _share_change(
        sum(k[start:cut]),
        sum(n[start:cut]),
        sum(k[cut:]),
        sum(n[cut:]),
        alpha,
        minimum,
        level,
        label,
        "step-test",
    )
