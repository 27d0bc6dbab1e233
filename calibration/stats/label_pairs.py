"""Which two labels are confused, and what that costs the agreement."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import kappa_values
from .arrays import Codes, check_labels, check_level, encode_clusters
from .intervals import FEW_CLUSTERS, clustered_rate
from .reliability import alpha_values, label_counts
from .resampling import jackknife
from .results import Number, plural, undefined_number


@dataclass(frozen=True)
class LabelPairCost:
    """What the disagreements between two labels cost.

    Attributes
    ----------
    one, other : hashable
        The two labels, in the order of the label set.
    targets : int
        Targets on which they stand against each other.
    disagreements : int
        Pairs of labels that do so; with two graders as many as targets.
    share : Number
        Share of all disagreements.
    lost : Number
        By how much kappa (alpha with more than two graders) would rise if these disagreements were resolved.
    """

    one: Hashable
    other: Hashable
    targets: int
    disagreements: int
    share: Number
    lost: Number

    def as_dict(self) -> dict[str, Any]:
        return {
            "one": self.one,
            "other": self.other,
            "targets": self.targets,
            "disagreements": self.disagreements,
            "share": self.share.as_dict(),
            "lost": self.lost.as_dict(),
        }

    def explain(self) -> str:
        """The cost in one plain sentence."""
        stands = f"{self.one} stands against {self.other} on {self.targets} {plural(self.targets, 'target')}"
        if self.lost.value is None:
            return f"{stands}."
        return f"{stands}; without these the agreement would be {self.lost.value:.2f} higher."


def label_pair_costs(
    ratings: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> tuple[LabelPairCost, ...]:
    r"""What each pair of labels costs: how much higher kappa would be if its disagreements were resolved.

    Resolved means: of the :math:`d = n_{ij} + n_{ji}` targets on which one grader said i and the other j,
    both say i on half and j on half. Each label is then used as often as before by the two together, and
    kappa is computed from the changed table:

    .. math:: \kappa' - \kappa, \quad n_{ii}' = n_{ii} + d/2, \quad n_{jj}' = n_{jj} + d/2,
              \quad n_{ij}' = n_{ji}' = 0

    With more than two graders the same is done to Krippendorff's alpha, whose label frequencies stay as they
    are. The differences of all pairs do not add up to :math:`1 - \kappa`, because chance agreement changes
    with each of them.

    Parameters
    ----------
    ratings : integer array, shape (targets, graders)
        Positions in `labels`, -1 where a grader gave no label.
    labels : sequence
        The label set.
    clusters : sequence, shape (targets,), optional
        Item of each target; the interval is a leave-one-item-out jackknife with a t quantile.
    level : float
        Confidence level.
    unit : str
        What is labelled.

    Returns
    -------
    tuple of LabelPairCost
        The pairs that occur, the most costly first.

    References
    ----------
    Cohen, J. (1960). Educational and Psychological Measurement 20, 37-46.
    Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.
    """
    check_level(level)
    names = check_labels(labels)
    given = np.asarray(ratings, dtype=np.int64)
    if given.ndim != 2:
        raise ValueError("ratings must be an array of targets x graders")
    codes, _number = encode_clusters(clusters, len(given))
    counts = label_counts(given, names)
    twice = counts.sum(axis=1) >= 2
    given, counts = given[twice], counts[twice]
    codes, number = encode_clusters(codes[twice], len(given))
    table = _Kappa(given, codes, number, len(names)) if given.shape[1] == 2 else _Alpha(counts, codes, number)
    apart = {
        (i, j): counts[:, i] * counts[:, j]
        for i, j in combinations(range(len(names)), 2)
        if (counts[:, i] * counts[:, j]).any()
    }
    everything = np.sum(list(apart.values()), axis=0) if apart else np.zeros(len(counts), dtype=np.int64)
    before = table.values()
    costs = []
    for (i, j), against in apart.items():
        share = clustered_rate(
            against,
            everything,
            codes,
            level=level,
            label=f"Share of {names[i]} / {names[j]} in all disagreements",
            unit="pair",
            definition="label-pair-costs",
        )
        lost = _gain(before, table.values(i, j), level)
        costs.append(
            LabelPairCost(
                names[i],
                names[j],
                int((against > 0).sum()),
                int(against.sum()),
                share,
                replace(
                    lost,
                    n=len(counts),
                    clusters=number,
                    level=level,
                    label=f"Agreement lost to {names[i]} / {names[j]}",
                    unit=unit,
                    definition="label-pair-costs",
                    percentage=False,
                ),
            )
        )
    return tuple(sorted(costs, key=lambda cost: (-(cost.lost.value or 0.0), -cost.disagreements)))


class _Kappa:
    """Kappa of two graders without each item in turn and, last, of all items."""

    def __init__(self, given: NDArray[np.int64], codes: Codes, number: int, q: int) -> None:
        flat = np.bincount((given[:, 0] * q + given[:, 1]) * number + codes, minlength=q * q * number)
        cells = flat.reshape(q, q, number)
        whole = cells.sum(axis=2, keepdims=True)
        self.cells = np.concatenate([whole - cells, whole], axis=2).astype(float)
        self.rows, self.cols = self.cells.sum(axis=1), self.cells.sum(axis=0)
        self.agree = np.trace(self.cells)

    def values(self, i: int | None = None, j: int | None = None) -> NDArray[np.float64]:
        """With the disagreements of two labels resolved, where they are given."""
        rows, cols, agree = self.rows, self.cols, self.agree
        if i is not None and j is not None:
            forward, backward = self.cells[i, j], self.cells[j, i]
            half = (backward - forward) / 2
            agree = agree + forward + backward
            rows, cols = rows.copy(), cols.copy()
            rows[i] += half
            rows[j] -= half
            cols[i] -= half
            cols[j] += half
        return kappa_values(rows.sum(axis=0), agree, rows.T, cols.T)


class _Alpha:
    """The same of Krippendorff's alpha; disagreements are counted label pair by label pair."""

    def __init__(self, counts: NDArray[np.int64], codes: Codes, number: int) -> None:
        q = counts.shape[1]
        apart = counts[:, :, None] * counts[:, None, :] / (counts.sum(axis=1) - 1)[:, None, None]
        apart[:, range(q), range(q)] = 0
        cells = np.zeros((number, q + 1, q))
        np.add.at(cells[:, :q], codes, apart)
        np.add.at(cells[:, q], codes, counts)
        whole = cells.sum(axis=0)
        left = np.concatenate([whole - cells, whole[None]])
        self.apart, self.totals = left[:, :q], left[:, q]

    def values(self, i: int | None = None, j: int | None = None) -> NDArray[np.float64]:
        disagreement = self.apart.sum(axis=(1, 2))
        if i is not None and j is not None:
            disagreement = disagreement - self.apart[:, i, j] - self.apart[:, j, i]
        return alpha_values(self.totals.sum(axis=1), disagreement, self.totals)


def _gain(before: NDArray[np.float64], after: NDArray[np.float64], level: float) -> Number:
    """How much higher it is after than before; the values without each item, and last that of all."""
    gained = after - before
    value, without = float(gained[-1]), gained[:-1]
    if np.isnan(value):
        return undefined_number("one_label_only")
    flags = ("too_few_clusters",) if len(without) < FEW_CLUSTERS else ()
    spread = jackknife(without)
    interval = spread.interval(value, level)
    if interval is None:
        reason = "too_few_clusters" if spread.se is None else "no_variation"
        return Number(value=value, flags=tuple({*flags, reason}), method="none")
    return Number(
        value=value, low=interval[0], high=interval[1], flags=flags, method="jackknife over items, t"
    )
