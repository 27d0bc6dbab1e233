"""How often each grader uses each label, beside the others on the same targets."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Codes, check_labels, check_level, encode_clusters
from .intervals import FEW_CLUSTERS
from .reliability import label_counts
from .resampling import jackknife
from .results import Number, undefined_number


@dataclass(frozen=True)
class LabelUse:
    """One grader's use of one label against the others'.

    Attributes
    ----------
    grader : str
        Whose labels.
    label : hashable
        The label.
    own, others : float or None
        Share of the label among the grader's own labels, and the mean share among the others' on the same
        targets.
    difference : Number
        ``own - others``: above 0 the grader uses the label more than the others.
    """

    grader: str
    label: Hashable
    own: float | None
    others: float | None
    difference: Number

    @property
    def stands_out(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        low, high = self.difference.low, self.difference.high
        return low is not None and high is not None and (low > 0 or high < 0)

    def as_dict(self) -> dict[str, Any]:
        return {
            "grader": self.grader,
            "label": self.label,
            "own": self.own,
            "others": self.others,
            "difference": self.difference.as_dict(),
            "stands_out": self.stands_out,
        }

    def explain(self) -> str:
        """The difference in one plain sentence."""
        value = self.difference.value
        if value is None or self.own is None or self.others is None:
            return f"{self.grader} has no target in common with others."
        more = "more" if value > 0 else "less"
        return (
            f"{self.grader} uses {self.label} on {self.own:.1%} of the targets, the others on "
            f"{self.others:.1%}: {abs(value):.1%} {more}."
        )


def label_use(
    ratings: Any,
    *,
    labels: Any,
    graders: Sequence[str],
    clusters: Any = None,
    level: float = 0.95,
    unit: str = "claim",
) -> tuple[LabelUse, ...]:
    r"""Each grader's use of each label, compared with the others on the same targets.

    Over the targets t that the grader and at least one other labelled,

    .. math:: d = \frac{1}{n} \sum_t \left( [x_t = k] - \frac{m_{tk}}{m_t} \right)

    with :math:`x_t` the grader's label, :math:`m_t` the number of other labels on the target and
    :math:`m_{tk}` those of them that are k. Above 0 the grader uses k more than the others.

    Parameters
    ----------
    ratings : integer array, shape (targets, graders)
        Positions in `labels`, -1 where a grader gave no label.
    labels : sequence
        The label set.
    graders : sequence of str, shape (graders,)
        Their names.
    clusters : sequence, shape (targets,), optional
        Item of each target; the interval is a leave-one-item-out jackknife with a t quantile.
    level : float
        Confidence level.
    unit : str
        What is labelled.

    Returns
    -------
    tuple of LabelUse
        Grader by grader, labels in their order. Undefined with ``empty_overlap`` for somebody who shares no
        target with others. Between two graders the differences are equal and opposite.

    References
    ----------
    Efron, B. and Tibshirani, R. (1993). An Introduction to the Bootstrap, chapter 11 (the jackknife).
    Artstein, R. and Poesio, M. (2008). Computational Linguistics 34, 555-596, section 3.1 (annotator bias).
    """
    check_level(level)
    names = check_labels(labels)
    given = np.asarray(ratings, dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != len(graders):
        raise ValueError(f"ratings must have one column for each of the {len(graders)} graders")
    codes, _number = encode_clusters(clusters, len(given))
    counts = label_counts(given, names)
    made = []
    for column, grader in enumerate(graders):
        shared = (given[:, column] >= 0) & (counts.sum(axis=1) >= 2)
        said, of_all = given[shared, column], counts[shared]
        number_of_others = of_all.sum(axis=1) - 1
        items, _clusters = encode_clusters(codes[shared], len(said))
        for place, label in enumerate(names):
            own = (said == place).astype(float)
            others = (of_all[:, place] - own) / np.maximum(number_of_others, 1)
            difference = _mean(own - others, items, level)
            made.append(
                LabelUse(
                    grader,
                    label,
                    float(own.mean()) if len(own) else None,
                    float(others.mean()) if len(own) else None,
                    Number(
                        **difference,
                        level=level,
                        n=len(own),
                        clusters=int(items.max(initial=-1)) + 1,
                        excluded={"labelled_once": int((given[:, column] >= 0).sum()) - len(own)},
                        definition="label-use",
                        label=f"Use of {label} by {grader}, minus the others",
                        unit=unit,
                    )
                    if len(own)
                    else undefined_number("empty_overlap", definition="label-use", unit=unit),
                )
            )
    return tuple(made)


def _mean(values: NDArray[np.float64], items: Codes, level: float) -> dict[str, Any]:
    """A mean over targets with the interval over items."""
    if not len(values):
        return {"value": None}
    value, number = float(values.mean()), int(items.max()) + 1
    sums, sizes = np.bincount(items, values, number), np.bincount(items, minlength=number)
    flags = ("too_few_clusters",) if number < FEW_CLUSTERS else ()
    if number < 2:
        return {"value": value, "flags": flags, "method": "none: fewer than two items"}
    spread = jackknife((sums.sum() - sums) / (len(values) - sizes))
    interval = spread.interval(value, level)
    if interval is None:
        return {"value": value, "flags": (*flags, "no_variation"), "method": "none: no variation"}
    low, high = max(-1.0, interval[0]), min(1.0, interval[1])
    return {"value": value, "low": low, "high": high, "flags": flags, "method": "jackknife over items, t"}
