"""A judge against gold (or against one grader): the rows are gold, the columns the judge."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .agreement import KappaResult, Pairs, Table, kappa_of_pairs, pair_up
from .arrays import check_level, encode_clusters, encode_labels
from .intervals import share_number, share_of_runs
from .labels import BAD_LABELS
from .per_label import overlap_share
from .repeated import UnitMeans, encode_runs
from .results import Number, undefined_number


@dataclass(frozen=True)
class LabelScores:
    """Precision, recall and F1 of one label.

    Attributes
    ----------
    label : hashable
        The label.
    precision : Number
        Of the judge's uses of the label, the share that gold confirms.
    recall : Number
        Of gold's uses of the label, the share that the judge found.
    f1 : Number
        Harmonic mean of both, ``2 n_ii / (n_i. + n_.i)``.
    support : int
        Targets with this gold label.
    """

    label: Hashable
    precision: Number
    recall: Number
    f1: Number
    support: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "precision": self.precision.as_dict(),
            "recall": self.recall.as_dict(),
            "f1": self.f1.as_dict(),
            "support": self.support,
        }

    def explain(self) -> str:
        """Recall and precision in plain sentences."""
        return f"{self.recall.explain()} {self.precision.explain()}"


@dataclass(frozen=True)
class JudgeVsGold:
    """How a judge does against gold.

    Attributes
    ----------
    kappa : KappaResult
        Over all labels.
    per_label : tuple of LabelScores
        In label order.
    sensitivity : Number
        Share of gold positives that the judge also calls positive.
    specificity : Number
        Share of gold negatives that the judge also calls negative.
    youden : Number
        Sensitivity + specificity - 1. Its limits are the sums of the two Wilson limits, which errs on the
        safe side: the gate and the correction rest on the lower one.
    collapsed : tuple of tuple of int
        [[gold negative & judge negative, negative & positive], [positive & negative, positive & positive]].
    collapsed_kappa : KappaResult
        Kappa of positive against the rest.
    table : tuple of tuple of int
        Rows = gold, columns = judge.
    positive : tuple
        The labels that count as positive.
    """

    kappa: KappaResult
    per_label: tuple[LabelScores, ...]
    sensitivity: Number
    specificity: Number
    youden: Number
    collapsed: Table
    collapsed_kappa: KappaResult
    table: Table
    labels: tuple[Hashable, ...]
    positive: tuple[Hashable, ...]
    n: int
    clusters: int
    excluded: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {
            "kappa": self.kappa.as_number().as_dict(),
            "agreement": self.kappa.agreement.as_dict(),
            "per_label": [scores.as_dict() for scores in self.per_label],
            "sensitivity": self.sensitivity.as_dict(),
            "specificity": self.specificity.as_dict(),
            "youden": self.youden.as_dict(),
            "collapsed_kappa": self.collapsed_kappa.as_number().as_dict(),
            "collapsed": [list(row) for row in self.collapsed],
            "positive": list(self.positive),
            "confusion": {
                "labels": list(self.labels),
                "table": [list(row) for row in self.table],
                "rows": "gold",
                "columns": "judge",
            },
            "n": self.n,
            "excluded": dict(self.excluded),
        }

    def explain(self) -> str:
        """The judge's use in one plain sentence."""
        if self.sensitivity.value is None or self.specificity.value is None:
            return f"{self.kappa.explain()} Gold holds only one class, so its errors cannot be told apart."
        found, positives = self.sensitivity.numerator or 0, self.sensitivity.denominator or 0
        kept, negatives = self.specificity.numerator or 0, self.specificity.denominator or 0
        return (
            f"{self.kappa.explain()} The judge finds {found:g} of {positives:g} gold "
            f"{'/'.join(map(str, self.positive))} and wrongly flags {negatives - kept:g} of the "
            f"{negatives:g} others."
        )


def judge_vs_gold(
    gold: Any,
    judge: Any,
    *,
    labels: Any,
    clusters: Any = None,
    positive: Iterable[Hashable] = BAD_LABELS,
    interval: str = "auto",
    level: float = 0.95,
    unit: str = "claim",
    between: str = "the judge and gold",
) -> JudgeVsGold:
    r"""Confusion of a judge with gold: kappa, per-label scores, sensitivity and specificity.

    .. math:: precision_i = \frac{n_{ii}}{n_{.i}}, \; recall_i = \frac{n_{ii}}{n_{i.}}, \;
              Se = P(J^+ | G^+), \; Sp = P(J^- | G^-), \; J = Se + Sp - 1

    Parameters
    ----------
    gold : sequence, shape (n,)
        Gold labels (the rows); None is missing and left out with a count.
    judge : sequence, shape (n,)
        The judge's labels of the same targets (the columns); None where it has no valid verdict.
    labels : sequence
        The label set.
    clusters : sequence, shape (n,), optional
        Item of each target.
    positive : iterable of labels
        What sensitivity is about: bad claims, or REFUSED responses.
    interval : {"auto", "jackknife", "asymptotic"}
        Interval of kappa, as in `cohen_kappa`.
    level : float
        Confidence level.
    unit : str
        What a pair is.
    between : str
        Who is compared, for `explain`.

    Returns
    -------
    JudgeVsGold
        Every share lies in [0, 1] with the interval of `clustered_rate`, and is undefined
        (``zero_denominator``) where its label does not occur; sensitivity, specificity and Youden's J are
        undefined (``single_class_gold``) when gold lacks a class.

    References
    ----------
    Youden, W. J. (1950). Index for rating diagnostic tests. Cancer 3, 32-35.
    """
    check_level(level)
    pairs = pair_up(gold, judge, labels, clusters, "gold", "judge")
    wanted = _labels_among(positive, pairs.labels)
    collapsed = _collapse(pairs, wanted)
    sensitivity = _conditional(collapsed, 1, "Sensitivity", "judge-vs-gold-sensitivity", level, unit)
    specificity = _conditional(collapsed, 0, "Specificity", "judge-vs-gold-specificity", level, unit)
    table = pairs.table()
    return JudgeVsGold(
        kappa=kappa_of_pairs(pairs, interval=interval, level=level, unit=unit, between=between),
        per_label=tuple(_scores(pairs, position, level, unit) for position in range(len(pairs.labels))),
        sensitivity=sensitivity,
        specificity=specificity,
        youden=youden_index(sensitivity, specificity, pairs),
        collapsed=tuple(tuple(row) for row in collapsed.table().tolist()),
        collapsed_kappa=kappa_of_pairs(
            collapsed, interval=interval, level=level, unit=unit, between=f"{between}, two classes,"
        ),
        table=tuple(tuple(row) for row in table.tolist()),
        labels=pairs.labels,
        positive=tuple(label for label in pairs.labels if label in wanted),
        n=pairs.n,
        clusters=pairs.n_clusters,
        excluded=pairs.excluded,
    )


def _collapse(pairs: Pairs, positive: frozenset[Hashable]) -> Pairs:
    is_positive = np.array([label in positive for label in pairs.labels], dtype=np.int64)
    return Pairs(
        is_positive[pairs.rows],
        is_positive[pairs.cols],
        ("negative", "positive"),
        pairs.clusters,
        pairs.n_clusters,
        pairs.excluded,
    )


def _share_within(pairs: Pairs, chosen: Any, hit: Any, **fields: Any) -> Number:
    return share_number(
        np.bincount(pairs.clusters[chosen & hit], minlength=pairs.n_clusters).astype(float),
        np.bincount(pairs.clusters[chosen], minlength=pairs.n_clusters).astype(float),
        excluded=pairs.excluded,
        **fields,
    )


def _conditional(
    collapsed: Pairs, gold_class: int, label: str, definition: str, level: float, unit: str
) -> Number:
    return _share_within(
        collapsed,
        collapsed.rows == gold_class,
        collapsed.cols == gold_class,
        level=level,
        label=label,
        unit=unit,
        definition=definition,
        undefined="single_class_gold" if collapsed.n else "empty_overlap",
    )


def sensitivity_and_specificity(
    gold: Any,
    judge: Any,
    *,
    labels: Any,
    clusters: Any = None,
    positive: Iterable[Hashable] = BAD_LABELS,
    level: float = 0.95,
    unit: str = "claim",
) -> tuple[Number, Number]:
    r"""Sensitivity and specificity of a judge that was asked several times: each target by its mean.

    .. math:: Se = \frac{1}{n_+} \sum_{t: G_t^+} \frac{1}{k_t} \sum_r J_{tr}^+, \quad
              Sp = \frac{1}{n_-} \sum_{t: G_t^-} \frac{1}{k_t} \sum_r J_{tr}^-

    over the :math:`k_t` calls about a target that gave a label, as rates count them. With one call each
    these are the two of `judge_vs_gold`.

    Parameters
    ----------
    gold : sequence, shape (n,)
        Gold labels; targets without one are left out.
    judge : sequence, shape (n,) or (n, runs)
        The judge's labels of the same targets, run by run; None or -1 where it has no valid verdict.
    labels : sequence
        The label set.
    clusters : sequence, shape (n,), optional
        Item of each target.
    positive : iterable of labels
        What sensitivity is about: bad claims, or REFUSED responses.
    level : float
        Confidence level.
    unit : str
        What a target is.

    Returns
    -------
    sensitivity, specificity : Number
        In [0, 1]. Numerators need not be whole; denominators are targets. Undefined (``single_class_gold``)
        where gold lacks the class, or no call about it gave a label.

    References
    ----------
    Youden, W. J. (1950). Index for rating diagnostic tests. Cancer 3, 32-35.
    """
    names = tuple(labels)
    truth = encode_labels(gold, names, "gold")
    said = encode_runs(judge, names, "judge")
    if len(truth) != len(said):
        raise ValueError(f"gold and judge must have one entry a target, got {len(truth)} and {len(said)}")
    codes, n_clusters = encode_clusters(clusters, len(truth))
    wanted = [names.index(label) for label in _labels_among(positive, names)]
    is_bad, called_bad = np.isin(truth, wanted), np.isin(said, wanted)
    no_gold, no_judge = truth < 0, (said < 0).all(axis=1)
    excluded = {
        "missing_gold": int((no_gold & ~no_judge).sum()),
        "missing_judge": int((no_judge & ~no_gold).sum()),
        "missing_both": int((no_gold & no_judge).sum()),
    }

    def share(chosen: Any, hit: Any, label: str, definition: str) -> Number:
        known = (said >= 0) & chosen[:, None]
        return share_of_runs(
            UnitMeans.over(hit, known, known),
            codes,
            n_clusters,
            label=label,
            definition=definition,
            level=level,
            unit=unit,
            undefined="single_class_gold",
            excluded=excluded,
        )

    return (
        share((truth >= 0) & is_bad, called_bad, "Sensitivity", "judge-vs-gold-sensitivity"),
        share((truth >= 0) & ~is_bad, ~called_bad, "Specificity", "judge-vs-gold-specificity"),
    )


def _labels_among(positive: Iterable[Hashable], labels: Sequence[Hashable]) -> frozenset[Hashable]:
    wanted = frozenset(positive)
    unknown = wanted - set(labels)
    if unknown or not wanted:
        raise ValueError(f"positive must be labels of the set, got {sorted(map(str, unknown)) or 'none'}")
    return wanted


def youden_index(sensitivity: Number, specificity: Number, pairs: Pairs) -> Number:
    """Se + Sp - 1 between the sums of the two Wilson limits."""
    common: dict[str, Any] = {
        "level": sensitivity.level,
        "n": pairs.n,
        "clusters": pairs.n_clusters,
        "excluded": pairs.excluded,
        "definition": "judge-vs-gold-youden",
        "label": "Sensitivity + specificity - 1",
        "unit": sensitivity.unit,
        "percentage": False,
        "method": "sum of the Wilson limits",
    }
    if sensitivity.value is None or specificity.value is None:
        reason = sensitivity.undefined or specificity.undefined or "single_class_gold"
        return undefined_number(reason, **common)
    low = high = None
    if sensitivity.low is not None and specificity.low is not None:
        low = sensitivity.low + specificity.low - 1
        high = (sensitivity.high or 0.0) + (specificity.high or 0.0) - 1
    return Number(
        value=sensitivity.value + specificity.value - 1,
        low=low,
        high=high,
        flags=(*sensitivity.flags, *specificity.flags),
        **common,
    )


def _scores(pairs: Pairs, position: int, level: float, unit: str) -> LabelScores:
    label = pairs.labels[position]
    in_gold, in_judge = pairs.rows == position, pairs.cols == position
    common: dict[str, Any] = {"level": level, "unit": unit}
    return LabelScores(
        label,
        _share_within(
            pairs,
            in_judge,
            in_gold,
            label=f"Precision on {label}",
            definition="judge-vs-gold-precision",
            **common,
        ),
        _share_within(
            pairs, in_gold, in_judge, label=f"Recall on {label}", definition="judge-vs-gold-recall", **common
        ),
        overlap_share(
            pairs, position, level=level, label=f"F1 on {label}", unit="label", definition="judge-vs-gold-f1"
        ),
        int(in_gold.sum()),
    )
