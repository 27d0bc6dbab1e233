"""How often each label of one dimension was given: for dimensions that have no rate of their own."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .arrays import check_labels, check_level, check_same_length, encode_clusters
from .intervals import share_of_runs
from .repeated import Flags, UnitMeans, encode_runs
from .results import NO_EXCLUSIONS, Number


@dataclass(frozen=True)
class LabelShare:
    """The share of one label.

    Attributes
    ----------
    label : hashable
        The label.
    share : Number
        Targets with this label among those with any.
    """

    label: Hashable
    share: Number

    def as_dict(self) -> dict[str, Any]:
        return {"label": self.label, "share": self.share.as_dict()}

    def explain(self) -> str:
        """The share in one plain sentence."""
        return self.share.explain()


def label_shares(
    codes: Any,
    *,
    labels: Sequence[Hashable],
    clusters: Any = None,
    unit: str = "claim",
    excluded: Mapping[str, float] = NO_EXCLUSIONS,
    owed: Flags | None = None,
    level: float = 0.95,
) -> tuple[LabelShare, ...]:
    r"""Share of each label of a dimension among the targets that have one.

    .. math:: share_k = \frac{n_k}{\sum_j n_j}

    Parameters
    ----------
    codes : sequence, shape (n,), or array of positions, shape (n, runs)
        Labels, or their positions in `labels`; None or -1 where there is none. Labels of several runs count
        as their mean.
    labels : sequence
        Every label of the dimension, in its order.
    clusters : sequence, shape (n,), optional
        Item of each target.
    unit : str
        What a target is: claim, response, passage or citation.
    excluded : mapping of str to int
        Targets without a label, by reason; it is carried along.
    owed : array of bool, shape (n,), optional
        Targets that should have a label (in every run): the range of each share covers that all the labels
        that are not there had been this one, and that none had.
    level : float
        Confidence level.

    Returns
    -------
    tuple of LabelShare
        One per label, in [0, 1], with the interval of `clustered_rate`; undefined (``zero_denominator``)
        where nothing has a label. The shares of one dimension are of one whole: they are not independent.

    References
    ----------
    See `clustered_rate`.
    """
    check_level(level)
    names = check_labels(labels)
    found = encode_runs(codes, names, "codes")
    n = check_same_length(codes=found, clusters=clusters, owed=owed)
    items, number = encode_clusters(clusters, n)
    has = found >= 0
    return tuple(
        LabelShare(
            label,
            share_of_runs(
                UnitMeans.over(found == position, has, has),
                items,
                number,
                owed=owed,
                level=level,
                label=str(label),
                unit=unit,
                definition="label-shares",
                excluded=excluded,
            ),
        )
        for position, label in enumerate(names)
    )
