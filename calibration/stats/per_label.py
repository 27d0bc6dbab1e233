"""The confusion table, and agreement label by label."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import KappaResult, Pairs, Table, kappa_of_pairs, pair_up
from .arrays import check_level
from .intervals import share_number
from .results import Number


@dataclass(frozen=True)
class ConfusionTable:
    """Counts of label pairs: rows are the first argument, columns the second.

    Attributes
    ----------
    labels : tuple
        Order of rows and columns.
    counts : tuple of tuple of int
        ``counts[i][j]`` targets have ``labels[i]`` in the rows and ``labels[j]`` in the columns.
    rows_name, cols_name : str
        Whose labels the rows and the columns are.
    n : int
        Targets with both labels.
    excluded : mapping of str to int
        Targets without one of them.
    """

    labels: tuple[Hashable, ...]
    counts: Table
    rows_name: str
    cols_name: str
    n: int
    excluded: Mapping[str, int]

    def as_array(self) -> NDArray[np.int64]:
        return np.array(self.counts, dtype=np.int64)

    def as_dict(self) -> dict[str, Any]:
        return {
            "labels": list(self.labels),
            "table": [list(row) for row in self.counts],
            "rows": self.rows_name,
            "columns": self.cols_name,
            "n": self.n,
            "excluded": dict(self.excluded),
        }

    def explain(self) -> str:
        """The largest disagreement in one plain sentence."""
        counts = self.as_array()
        np.fill_diagonal(counts, 0)
        if counts.sum() == 0:
            return f"{self.rows_name} and {self.cols_name} never disagree on {self.n} targets."
        i, j = np.unravel_index(int(counts.argmax()), counts.shape)
        return (
            f"{self.rows_name} and {self.cols_name} disagree on {int(counts.sum())} of {self.n} targets, "
            f"most often {self.labels[int(i)]} against {self.labels[int(j)]} ({int(counts[i, j])})."
        )


def confusion_table(
    rows: Any, cols: Any, *, labels: Any, rows_name: str = "rows", cols_name: str = "columns"
) -> ConfusionTable:
    """Cross-tabulate two label columns of the same targets in a fixed label order.

    Parameters
    ----------
    rows, cols : sequence, shape (n,)
        Labels of the same targets; None is missing and left out with a count. For gold against a judge the
        rows are gold and the columns the judge.
    labels : sequence
        The label set; its order is the order of the table, whatever occurs in the data.
    rows_name, cols_name : str
        Whose labels they are.

    Returns
    -------
    ConfusionTable
        Integer counts, all 0 without a pair.
    """
    pairs = pair_up(rows, cols, labels, None, "rows", "cols")
    return ConfusionTable(
        pairs.labels,
        tuple(tuple(row) for row in pairs.table().tolist()),
        rows_name,
        cols_name,
        pairs.n,
        pairs.excluded,
    )


@dataclass(frozen=True)
class LabelAgreement:
    """Agreement on one label.

    Attributes
    ----------
    label : hashable
        The label.
    kappa : KappaResult
        Kappa of this label against the rest.
    specific : Number
        Specific agreement: how often the label was repeated by the other, given that one gave it.
    row_count, col_count : int
        How often each side used it.
    """

    label: Hashable
    kappa: KappaResult
    specific: Number
    row_count: int
    col_count: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "kappa": self.kappa.as_number().as_dict(),
            "specific_agreement": self.specific.as_dict(),
            "rows": self.row_count,
            "columns": self.col_count,
        }

    def explain(self) -> str:
        return f"{self.label}: {self.specific.explain()}"


def per_label_agreement(
    a: Any, b: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> tuple[LabelAgreement, ...]:
    r"""One-versus-rest kappa and specific agreement for every label; the lowest names the rubric entry to
    rewrite.

    .. math:: s_i = \frac{2 n_{ii}}{n_{i.} + n_{.i}}

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets; None is missing and left out with a count.
    labels : sequence
        The label set.
    clusters : sequence, shape (n,), optional
        Item of each target.
    level : float
        Confidence level.
    unit : str
        What a pair is.

    Returns
    -------
    tuple of LabelAgreement
        In the order of `labels`. Specific agreement lies in [0, 1] and is undefined (``zero_denominator``)
        where neither used the label; its interval is that of `clustered_rate` for the ratio of sums.

    References
    ----------
    Cicchetti, D. V. and Feinstein, A. R. (1990). High agreement but low kappa: II. J. Clin. Epidemiol. 43,
    551-558.
    """
    check_level(level)
    pairs = pair_up(a, b, labels, clusters)
    table = pairs.table()
    return tuple(
        LabelAgreement(
            label,
            kappa_of_pairs(
                pairs.one_versus_rest(position),
                level=level,
                unit=unit,
                definition="per-label-agreement",
                between=f"the two graders, on {label} against the rest,",
            ),
            overlap_share(pairs, position, level=level, label=f"Specific agreement on {label}", unit="label"),
            int(table[position].sum()),
            int(table[:, position].sum()),
        )
        for position, label in enumerate(pairs.labels)
    )


def overlap_share(
    pairs: Pairs,
    position: int,
    *,
    level: float,
    label: str,
    unit: str,
    definition: str = "per-label-agreement",
) -> Number:
    """Twice the joint uses of a label over all its uses (specific agreement; for gold and judge it is F1)."""
    row, col = pairs.counts.rows[position], pairs.counts.cols[position]
    both = np.bincount(
        pairs.clusters[(pairs.rows == position) & (pairs.cols == position)], minlength=pairs.n_clusters
    )
    return share_number(
        2.0 * both,
        (row + col).astype(float),
        level=level,
        label=label,
        unit=unit,
        definition=definition,
        excluded=pairs.excluded,
    )
