"""Correct a judge's rate for the judge's errors, with the sampling error of judge, gold and all."""

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import (
    check_labels,
    check_level,
    check_same_length,
    check_share,
    encode_clusters,
    encode_labels,
)
from .intervals import FEW_CLUSTERS, RatioVariance, ratio_variance, share_number, wilson
from .labels import BAD_LABELS, BAD_SHARE, GROUNDING_LABELS
from .ppi import clipped_number, ppi_ratio
from .quantiles import normal_tail, t_quantile, z_quantile
from .repeated import Flags, UnitMeans, encode_runs
from .results import Number, undefined_number

GUARD_P = 0.01


def rogan_gladen(
    p: float,
    n: float,
    *,
    sensitivity: float,
    n_positive: float,
    specificity: float,
    n_negative: float,
    level: float = 0.95,
    label: str = f"{BAD_SHARE}, corrected for judge error",
    unit: str = "claim",
    clusters: int = 0,
    excluded: Mapping[str, int] | None = None,
) -> Number:
    r"""Prevalence from an imperfect judge, with the Lang-Reiczigel interval.

    .. math:: \theta = \frac{p + Sp - 1}{Se + Sp - 1}

    The interval shrinks p towards 1/2 by :math:`z^2` pseudo-observations and Se, Sp by two, shifts the centre
    by :math:`d = 2z^2(-(1-\theta')Sp'(1-Sp')/M_0 + \theta' Se'(1-Se')/M_1)` and takes z standard errors on
    both sides; it holds the sampling error of the judged units *and* of the gold units.

    Parameters
    ----------
    p : float
        Share of the judged units that the judge calls positive, in [0, 1].
    n : float
        Number of judged units without gold (effective number where they are clustered).
    sensitivity, specificity : float
        Of the judge, estimated on gold.
    n_positive, n_negative : float
        Gold positives and negatives behind them (effective numbers where clustered).
    level : float
        Confidence level.
    label, unit : str
        Name and unit of the figure.
    clusters : int
        Items behind the judged units, for the result.
    excluded : mapping of str to int, optional
        What was left out.

    Returns
    -------
    Number
        Share of positives among all units, clipped to [0, 1] with flag ``clipped``. Undefined with
        ``single_class_gold`` when gold lacks a class, and with ``judge_not_better_than_chance`` when the
        lower Wilson limits of sensitivity and specificity do not add up to more than 1.

    Notes
    -----
    Positive = bad = contradicted or unsupported; not-bad includes unverifiable. The result is therefore the
    bad share of *all* claims, which is not the hallucination rate (that one leaves unverifiable claims out).

    References
    ----------
    Rogan, W. J. and Gladen, B. (1978). Am. J. Epidemiol. 107, 71-76.
    Lang, Z. and Reiczigel, J. (2014). Confidence limits for prevalence of disease adjusted for estimated
    sensitivity and specificity. Prev. Vet. Med. 113, 13-22.

    Examples
    --------
    >>> number = rogan_gladen(0.13, 1000, sensitivity=0.85, n_positive=40, specificity=0.95, n_negative=160)
    >>> round(number.value, 6), round(number.low, 6), round(number.high, 6)
    (0.1, 0.046807, 0.148727)
    """
    check_level(level)
    check_share(p, "p")
    check_share(sensitivity, "sensitivity")
    check_share(specificity, "specificity")
    common: dict[str, Any] = {
        "level": level,
        "n": math.ceil(n),
        "clusters": clusters,
        "excluded": excluded or {},
        "definition": "rogan-gladen",
        "label": label,
        "unit": unit,
        "method": "Rogan-Gladen, Lang-Reiczigel interval",
    }
    for name, size in (("n", n), ("n_positive", n_positive), ("n_negative", n_negative)):
        if not (math.isfinite(size) and size >= 0):
            raise ValueError(f"{name} must be 0 or more, got {size!r}")
    if n == 0:
        return undefined_number("zero_denominator", **common)
    if n_positive == 0 or n_negative == 0:
        return undefined_number("single_class_gold", **common)
    lower_sum = wilson(sensitivity * n_positive, n_positive, level)[0]
    lower_sum += wilson(specificity * n_negative, n_negative, level)[0]
    if lower_sum <= 1:
        return undefined_number("judge_not_better_than_chance", **common)
    estimate = (p + specificity - 1) / (sensitivity + specificity - 1)
    value = min(1.0, max(0.0, estimate))
    low, high = _lang_reiczigel(p, n, sensitivity, n_positive, specificity, n_negative, z_quantile(level))
    return Number(
        value=value,
        low=min(value, max(0.0, low)),
        high=max(value, min(1.0, high)),
        flags=() if value == estimate else ("clipped",),
        **common,
    )


def _lang_reiczigel(
    p: float, n: float, se: float, m1: float, sp: float, m0: float, z: float
) -> tuple[float, float]:
    p, n = (n * p + z * z / 2) / (n + z * z), n + z * z
    sp, m0 = (m0 * sp + 1) / (m0 + 2), m0 + 2
    se, m1 = (m1 * se + 1) / (m1 + 2), m1 + 2
    youden = se + sp - 1
    theta = (p + sp - 1) / youden
    of_specificity, of_sensitivity = sp * (1 - sp) / m0, se * (1 - se) / m1
    shift = 2 * z * z * (-(1 - theta) * of_specificity + theta * of_sensitivity)
    variance = p * (1 - p) / n + (1 - theta) ** 2 * of_specificity + theta**2 * of_sensitivity
    half = z * math.sqrt(variance) / youden
    return theta + shift - half, theta + shift + half


DESIGNS: Mapping[str, str] = {
    "random": "the gold items are a simple random sample of the judged pool",
    "stratified": "the gold items are a random sample within each stratum of the judged pool",
    "separate": "the gold items were drawn from elsewhere or in another way, but not by their labels",
    "outcome": "the gold items were chosen by what the graders or the judge said",
}


@dataclass(frozen=True)
class CorrectedShare:
    """The corrected bad share, how it was made, and why so.

    Attributes
    ----------
    number : Number
        The figure to show.
    method : str
        "ppi", "rogan_gladen" or "none".
    raw : Number
        The judge's own bad share on the claims without gold.
    why : tuple of str
        The steps of the choice in words.
    rogan_gladen, ppi : Number or None
        What each method gives, where it was tried.
    guard_p : float or None
        p value of the comparison of the judge's flag rates with and without gold.
    """

    number: Number
    method: str
    raw: Number
    why: tuple[str, ...]
    rogan_gladen: Number | None = None
    ppi: Number | None = None
    guard_p: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {
            "corrected": self.number.as_dict(),
            "method": self.method,
            "raw": self.raw.as_dict(),
            "why": list(self.why),
            "rogan_gladen": self.rogan_gladen.as_dict() if self.rogan_gladen else None,
            "ppi": self.ppi.as_dict() if self.ppi else None,
            "guard_p": self.guard_p,
        }

    def explain(self) -> str:
        """The figure and the reason for its method in plain words."""
        return f"{self.number.explain()} {' '.join(self.why)}"


@dataclass(frozen=True)
class _ItemCounts:
    """Per item: claims, gold-bad, judge-flagged, both, and neither, as one row each."""

    claims: NDArray[np.float64]
    bad: NDArray[np.float64]
    flagged: NDArray[np.float64]
    both: NDArray[np.float64]
    neither: NDArray[np.float64]
    excluded: Mapping[str, int] = field(default_factory=dict)
    # What each claim adds, where a claim is the mean of several runs; the items are known by their sums.
    units: Mapping[str, UnitMeans] = field(default_factory=dict)

    def only(self, chosen: NDArray[np.bool_]) -> "_ItemCounts":
        return replace(
            self,
            claims=self.claims[chosen],
            bad=self.bad[chosen],
            flagged=self.flagged[chosen],
            both=self.both[chosen],
            neither=self.neither[chosen],
        )


def correct_bad_share(
    gold: Any,
    judge: Any,
    judge_without_gold: Any,
    *,
    design: str,
    labels: Any = GROUNDING_LABELS,
    positive: Iterable[Hashable] = BAD_LABELS,
    clusters: Any = None,
    clusters_without_gold: Any = None,
    strata: Any = None,
    strata_without_gold: Any = None,
    level: float = 0.95,
    unit: str = "claim",
) -> CorrectedShare:
    r"""Correct the judge's bad share by the method that the sampling design allows, or refuse.

    A random or stratified gold sample of the same pool allows prediction-powered inference, unless the
    judge flags the gold claims at another rate than the rest (pooled score test, p < .01): then the sample
    is not what it is said to be, and Rogan-Gladen is used. Gold from elsewhere allows Rogan-Gladen. Gold
    chosen by its outcome (only where graders agreed, only what the judge flagged) allows neither.

    Parameters
    ----------
    gold : sequence, shape (n,)
        Gold labels; None is left out with a count.
    judge : sequence, shape (n,), or array of positions, shape (n, runs)
        The judge's labels of the same claims. Labels of several runs count as their mean: a claim by the
        share of the runs that flag it, in the judge's error rates as in the rate that they correct.
    judge_without_gold : sequence, shape (N,), or array of positions, shape (N, runs)
        The judge's labels of the claims without gold.
    design : {"random", "stratified", "separate", "outcome"}
        How the gold items were drawn.
    labels : sequence
        The label set.
    positive : iterable of labels
        The bad labels.
    clusters, clusters_without_gold : sequence, optional
        Items of both.
    strata, strata_without_gold : sequence, optional
        Stratum of each claim, for the stratified design (an item lies in one stratum).
    level : float
        Confidence level.
    unit : str
        What is counted.

    Returns
    -------
    CorrectedShare
        ``number`` is undefined with ``method_not_valid_for_design`` when no method fits, or with the reason
        of the method that does.

    References
    ----------
    See `rogan_gladen` and `ppi_ratio`.
    """
    check_level(level)
    if design not in DESIGNS:
        raise ValueError(f"design must be one of {tuple(DESIGNS)}, got {design!r}")
    if design == "stratified" and (strata is None or strata_without_gold is None):
        raise ValueError("strata and strata_without_gold must be given for the stratified design")
    fixed, wanted = check_labels(labels), frozenset(positive)
    if not wanted or not wanted <= set(fixed):
        raise ValueError("positive must be labels of the set")
    with_gold, gold_strata = _gold_counts(gold, judge, fixed, wanted, clusters, strata)
    rest, rest_strata = _rest_counts(
        judge_without_gold, fixed, wanted, clusters_without_gold, strata_without_gold
    )
    raw = share_number(
        rest.flagged,
        rest.claims,
        level=level,
        label="Bad share of all claims by the judge, uncorrected",
        unit=unit,
        definition="correct-bad-share",
        excluded=rest.excluded,
        units=rest.units.get("flagged"),
    )
    if design == "outcome":
        return _refused_share(raw, "Gold was chosen by its outcome, so its errors are not those of the rest.")
    corrected = _rogan_gladen_of_counts(with_gold, rest, level, unit)
    if design == "separate":
        why = "Gold was not drawn at random from the judged pool, so only the judge's error rates carry over."
        return CorrectedShare(corrected, "rogan_gladen", raw, (why,), rogan_gladen=corrected)
    guard = flag_rate_guard(
        ratio_variance(with_gold.flagged, with_gold.claims, units=with_gold.units.get("flagged")),
        ratio_variance(rest.flagged, rest.claims, units=rest.units.get("flagged")),
    )
    if guard is not None and guard < GUARD_P:
        why = (
            f"The judge flags the gold claims at another rate than the rest (p = {guard:.4f}), so gold is no "
            "random sample of the pool; Rogan-Gladen is used."
        )
        return CorrectedShare(corrected, "rogan_gladen", raw, (why,), rogan_gladen=corrected, guard_p=guard)
    if design == "stratified":
        powered = _stratified_ppi(with_gold, rest, gold_strata, rest_strata, level, unit)
    else:
        powered = ppi_ratio(
            with_gold.claims,
            with_gold.bad,
            with_gold.flagged,
            rest.claims,
            rest.flagged,
            level=level,
            unit=unit,
        )
    powered = replace(powered, excluded={**with_gold.excluded, **rest.excluded})
    why = f"{DESIGNS[design][0].upper()}{DESIGNS[design][1:]}, so prediction-powered inference is used."
    return CorrectedShare(powered, "ppi", raw, (why,), rogan_gladen=corrected, ppi=powered, guard_p=guard)


def _refused_share(raw: Number, why: str) -> CorrectedShare:
    number = undefined_number(
        "method_not_valid_for_design",
        level=raw.level,
        n=raw.n,
        clusters=raw.clusters,
        excluded=raw.excluded,
        definition="correct-bad-share",
        label=f"{BAD_SHARE}, corrected",
        unit=raw.unit,
    )
    return CorrectedShare(number, "none", raw, (why,))


def _gold_counts(
    gold: Any,
    judge: Any,
    labels: tuple[Hashable, ...],
    wanted: frozenset[Hashable],
    clusters: Any,
    strata: Any,
) -> tuple[_ItemCounts, list[Hashable]]:
    gold_codes, judge_codes = encode_labels(gold, labels, "gold"), encode_runs(judge, labels, "judge")
    n = check_same_length(gold=gold_codes, judge=judge_codes, clusters=clusters, strata=strata)
    items, number = encode_clusters(clusters, n)
    known = judge_codes >= 0
    labelled = (gold_codes >= 0)[:, None] & known
    bad = _is_bad(gold_codes, labels, wanted)[:, None]
    flagged = _is_bad(judge_codes, labels, wanted)
    units = {
        "flagged": UnitMeans.over(flagged, labelled, known),
        "sensitivity": UnitMeans.over(flagged, labelled & bad, known),
        "specificity": UnitMeans.over(~flagged, labelled & ~bad, known),
    }

    def per_item(chosen: NDArray[Any]) -> NDArray[np.float64]:
        return np.bincount(items, weights=chosen, minlength=number).astype(float)

    counts = _ItemCounts(
        per_item(units["flagged"].denominator),
        per_item(units["sensitivity"].denominator),
        per_item(units["flagged"].numerator),
        per_item(units["sensitivity"].numerator),
        per_item(units["specificity"].numerator),
        excluded={
            "missing_gold": int(((gold_codes < 0) & known.any(axis=1)).sum()),
            "no_valid_verdict_on_gold": int((~known.any(axis=1)).sum()),
        },
        units=units if judge_codes.shape[1] > 1 else {},
    )
    return counts, _item_strata(strata, items, number, "strata")


def _is_bad(codes: NDArray[Any], labels: tuple[Hashable, ...], wanted: frozenset[Hashable]) -> Flags:
    return np.array([label in wanted for label in labels] + [False])[codes]


def _rest_counts(
    judge: Any, labels: tuple[Hashable, ...], wanted: frozenset[Hashable], clusters: Any, strata: Any
) -> tuple[_ItemCounts, list[Hashable]]:
    codes = encode_runs(judge, labels, "judge_without_gold")
    check_same_length(judge_without_gold=codes, strata_without_gold=strata)
    items, number = encode_clusters(clusters, len(codes), "clusters_without_gold")
    valid = codes >= 0
    flagged = UnitMeans.over(_is_bad(codes, labels, wanted), valid, valid)
    nothing = np.zeros(number)
    counts = _ItemCounts(
        np.bincount(items, weights=flagged.denominator, minlength=number).astype(float),
        nothing,
        np.bincount(items, weights=flagged.numerator, minlength=number).astype(float),
        nothing,
        nothing,
        excluded={"no_valid_verdict": int((~valid.any(axis=1)).sum())},
        units={"flagged": flagged} if codes.shape[1] > 1 else {},
    )
    return counts, _item_strata(strata, items, number, "strata_without_gold")


def _item_strata(strata: Any, items: NDArray[np.integer], number: int, name: str) -> list[Hashable]:
    if strata is None:
        return []
    of_item: list[Hashable] = [None] * number
    for item, stratum in zip(items.tolist(), strata, strict=True):
        if of_item[item] not in (None, stratum):
            raise ValueError(f"{name} puts one item into {of_item[item]!r} and {stratum!r}")
        of_item[item] = stratum
    return of_item


def _rogan_gladen_of_counts(gold: _ItemCounts, rest: _ItemCounts, level: float, unit: str) -> Number:
    positive = ratio_variance(gold.both, gold.bad, level, gold.units.get("sensitivity"))
    negative = ratio_variance(gold.neither, gold.claims - gold.bad, level, gold.units.get("specificity"))
    judged = ratio_variance(rest.flagged, rest.claims, level, rest.units.get("flagged"))
    excluded = {**gold.excluded, **rest.excluded}
    common: dict[str, Any] = {"level": level, "unit": unit, "clusters": judged.clusters, "excluded": excluded}
    if judged.total_m == 0 or positive.total_m == 0 or negative.total_m == 0:
        reason = "zero_denominator" if judged.total_m == 0 else "single_class_gold"
        return undefined_number(
            reason,
            definition="rogan-gladen",
            label=f"{BAD_SHARE}, corrected for judge error",
            n=int(judged.total_m),
            **common,
        )
    number = rogan_gladen(
        judged.share,
        judged.n_eff,
        sensitivity=positive.share,
        n_positive=positive.n_eff,
        specificity=negative.share,
        n_negative=negative.n_eff,
        **common,
    )
    few = min(judged.clusters, positive.clusters, negative.clusters) < FEW_CLUSTERS
    return replace(
        number, n=int(judged.total_m), flags=(*number.flags, *(("too_few_clusters",) if few else ()))
    )


def flag_rate_guard(first: RatioVariance, second: RatioVariance) -> float | None:
    """p value of the pooled score test that the judge flags gold and other claims at one rate.

    Clustered claims enter with their effective numbers. None where one side is empty.
    """
    if first.total_m == 0 or second.total_m == 0:
        return None
    n1, n2 = (
        ratio.total_m / ratio.design_effect if 0 < ratio.total_y < ratio.total_m else ratio.n_eff
        for ratio in (first, second)
    )
    pooled = (first.share * n1 + second.share * n2) / (n1 + n2)
    if pooled in (0.0, 1.0):
        return 1.0
    return normal_tail((first.share - second.share) / math.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2)))


def _stratified_ppi(
    gold: _ItemCounts,
    rest: _ItemCounts,
    gold_strata: list[Hashable],
    rest_strata: list[Hashable],
    level: float,
    unit: str,
) -> Number:
    """Prediction-powered inference per stratum, weighted by each stratum's share of the judged claims."""
    total = float(rest.claims.sum())
    value = variance_sum = weights = 0.0
    smallest = math.inf
    common: dict[str, Any] = {
        "level": level,
        "n": int(gold.claims.sum() + total),
        "clusters": int((gold.claims > 0).sum() + (rest.claims > 0).sum()),
        "definition": "ppi-ratio",
        "label": f"{BAD_SHARE}, prediction-powered",
        "unit": unit,
        "method": "PPI++ ratio per stratum, linearised by item, t",
    }
    for stratum in dict.fromkeys(rest_strata):
        in_gold = np.array([name == stratum for name in gold_strata], dtype=bool)
        in_rest = np.array([name == stratum for name in rest_strata], dtype=bool)
        labelled, judged = gold.only(in_gold), rest.only(in_rest)
        size = float(judged.claims.sum())
        if size == 0:
            continue
        powered = ppi_ratio(
            labelled.claims, labelled.bad, labelled.flagged, judged.claims, judged.flagged, level=level
        )
        if powered.value is None or powered.low is None or powered.high is None:
            return undefined_number(powered.undefined or "too_few_clusters", **common)
        items = int((labelled.claims > 0).sum())
        share = size / total
        # A clipped stratum is narrower on one side; its wider side stands for the standard error.
        half = max(powered.high - powered.value, powered.value - powered.low)
        value += share * powered.value
        variance_sum += (share * half / t_quantile(items - 1, level)) ** 2
        weights += share
        smallest = min(smallest, items)
    if weights == 0:
        return undefined_number("zero_denominator", **common)
    return clipped_number(value, t_quantile(int(smallest) - 1, level) * math.sqrt(variance_sum), common)
