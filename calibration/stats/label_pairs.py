"""Which two labels are confused, and what that costs the agreement."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import kappa_values
from .arrays import check_labels, check_level, encode_clusters
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
    codes, number = encode_clusters(clusters, len(given))
    counts = label_counts(given, names)
    twice = counts.sum(axis=1) >= 2
    given, counts, codes = given[twice], counts[twice], codes[twice]
    _, codes = np.unique(codes, return_inverse=True)
    number = int(codes.max(initial=-1)) + 1
    table = _Kappa(given, codes, number, len(names)) if given.shape[1] == 2 else _Alpha(counts, codes, number)
    apart = {
        (i, j): counts[:, i] * counts[:, j]
        for i, j in combinations(range(len(names)), 2)
        if (counts[:, i] * counts[:, j]).any()
    }
    everything = np.sum(list(apart.values()), axis=0) if apart else np.zeros(len(counts), dtype=np.int64)
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
        lost = _gain(table, i, j, level)
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
    """Kappa of two graders from the counts of each item."""

    def __init__(self, given: NDArray[np.int64], codes: NDArray[np.int64], number: int, q: int) -> None:
        cells = np.zeros((number, q, q), dtype=np.int64)
        np.add.at(cells, (codes, given[:, 0], given[:, 1]), 1)
        self.cells = cells

    def values(self, cells: NDArray[Any], i: int | None = None, j: int | None = None) -> NDArray[np.float64]:
        rows, cols = cells.sum(axis=-1).astype(float), cells.sum(axis=-2).astype(float)
        n, agree = rows.sum(axis=-1), np.trace(cells, axis1=-2, axis2=-1).astype(float)
        if i is not None and j is not None:
            forward, backward = cells[..., i, j], cells[..., j, i]
            half = (backward - forward) / 2
            agree = agree + forward + backward
            rows[..., i] += half
            rows[..., j] -= half
            cols[..., i] -= half
            cols[..., j] += half
        return kappa_values(n, agree, rows, cols)

    def with_and_without(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The table of all items, and without each item in turn."""
        whole = self.cells.sum(axis=0)
        return whole, whole - self.cells


class _Alpha:
    """Krippendorff's alpha from the counts of each item, disagreements label pair by label pair."""

    def __init__(self, counts: NDArray[np.int64], codes: NDArray[np.int64], number: int) -> None:
        q = counts.shape[1]
        apart = counts[:, :, None] * counts[:, None, :] / (counts.sum(axis=1) - 1)[:, None, None]
        apart[:, range(q), range(q)] = 0
        self.q = q
        self.cells = np.zeros((number, q + 1, q))
        np.add.at(self.cells[:, :q], codes, apart)
        np.add.at(self.cells[:, q], codes, counts)

    def values(self, cells: NDArray[Any], i: int | None = None, j: int | None = None) -> NDArray[np.float64]:
        apart, totals = cells[..., : self.q, :], cells[..., self.q, :]
        disagreement = apart.sum(axis=(-2, -1))
        if i is not None and j is not None:
            disagreement = disagreement - apart[..., i, j] - apart[..., j, i]
        return alpha_values(totals.sum(axis=-1), disagreement, totals)

    def with_and_without(self) -> tuple[NDArray[Any], NDArray[Any]]:
        whole = self.cells.sum(axis=0)
        return whole, whole - self.cells


def _gain(table: _Kappa | _Alpha, i: int, j: int, level: float) -> Number:
    whole, without = table.with_and_without()
    value = float(table.values(whole, i, j) - table.values(whole))
    if np.isnan(value):
        return undefined_number("one_label_only")
    flags = ("too_few_clusters",) if len(without) < FEW_CLUSTERS else ()
    spread = jackknife(table.values(without, i, j) - table.values(without))
    interval = spread.interval(value, level)
    if interval is None:
        reason = "too_few_clusters" if spread.se is None else "no_variation"
        return Number(value=value, flags=tuple({*flags, reason}), method="none")
    return Number(
        value=value, low=interval[0], high=interval[1], flags=flags, method="jackknife over items, t"
    )
