"""Does one side use a label more than the other? Tests of marginal homogeneity and symmetry."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import Table, pair_up
from .quantiles import chi2_tail, exact_sign_test
from .results import plural


@dataclass(frozen=True)
class TestResult:
    """A test statistic with degrees of freedom and p value.

    Attributes
    ----------
    statistic : float or None
        None for an exact test.
    df : int or None
        Degrees of freedom; 0 means that there was nothing to test and p is 1.
    p : float
        Two-sided p value.
    method : str
        Name of the test.
    """

    __test__ = False

    statistic: float | None
    df: int | None
    p: float
    method: str

    def as_dict(self) -> dict[str, Any]:
        return {"statistic": self.statistic, "df": self.df, "p": self.p, "method": self.method}

    def explain(self) -> str:
        """The test in one plain sentence."""
        if self.df == 0:
            return f"{self.method}: nothing to test, p 1."
        if self.statistic is None:
            return f"{self.method}: p {self.p:.3f}."
        return f"{self.method}: {self.statistic:.2f} on {self.df} degrees of freedom, p {self.p:.3f}."


@dataclass(frozen=True)
class LabelDifference:
    """How much more often the rows use a label than the columns.

    Attributes
    ----------
    label : hashable
        The label.
    rows, cols : int
        Uses by each side among the pairs.
    difference : int
        ``rows - cols``.
    p : float
        Exact sign test on the pairs in which exactly one side used the label.
    """

    label: Hashable
    rows: int
    cols: int
    difference: int
    p: float

    def as_dict(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "rows": self.rows,
            "columns": self.cols,
            "difference": self.difference,
            "p": self.p,
        }

    def explain(self) -> str:
        """The difference in one plain sentence."""
        return f"{self.label} was used {self.rows} and {self.cols} times (sign test p {self.p:.3f})."


@dataclass(frozen=True)
class MarginalHomogeneity:
    """Bias between two sides.

    Attributes
    ----------
    stuart_maxwell : TestResult
        Are the two label distributions the same?
    bowker : TestResult
        Is the confusion table symmetric? Pairs of labels that were never confused take no degree of freedom.
    bowker_all_pairs : TestResult
        The same statistic with a degree of freedom for every pair of used labels, as libraries report it.
    mcnemar : TestResult or None
        Exact McNemar test, for two labels only.
    labels : tuple of LabelDifference
        Per label ``n_i. - n_.i`` with its sign test.
    table : tuple of tuple of int
        Rows = first, columns = second.
    n : int
        Pairs with both labels.
    excluded : mapping of str to int
        Targets without one of them.
    """

    stuart_maxwell: TestResult
    bowker: TestResult
    bowker_all_pairs: TestResult
    mcnemar: TestResult | None
    labels: tuple[LabelDifference, ...]
    table: Table
    n: int
    excluded: Mapping[str, int]
    rows_name: str = "the first grader"
    cols_name: str = "the second grader"

    def as_dict(self) -> dict[str, Any]:
        return {
            "stuart_maxwell": self.stuart_maxwell.as_dict(),
            "bowker": self.bowker.as_dict(),
            "bowker_all_pairs": self.bowker_all_pairs.as_dict(),
            "mcnemar": self.mcnemar.as_dict() if self.mcnemar else None,
            "labels": [label.as_dict() for label in self.labels],
            "n": self.n,
            "excluded": dict(self.excluded),
        }

    def explain(self) -> str:
        """The largest difference in one plain sentence."""
        rows = self.rows_name[0].upper() + self.rows_name[1:]
        largest = max(self.labels, key=lambda label: abs(label.difference))
        if largest.difference == 0:
            targets = plural(self.n, "target")
            return f"{rows} and {self.cols_name} use every label equally often on {self.n} {targets}."
        more = "more" if largest.difference > 0 else "less"
        times = abs(largest.difference)
        return (
            f"{rows} uses {largest.label} {times} {plural(times, 'time')} {more} than "
            f"{self.cols_name} on {self.n} targets (sign test p {largest.p:.3f}; "
            f"Stuart-Maxwell p {self.stuart_maxwell.p:.3f})."
        )


def marginal_homogeneity(
    a: Any,
    b: Any,
    *,
    labels: Any,
    rows_name: str = "the first grader",
    cols_name: str = "the second grader",
) -> MarginalHomogeneity:
    r"""Stuart-Maxwell, Bowker, exact McNemar and per-label sign tests on the same targets.

    Stuart-Maxwell: :math:`d^T S^{+} d` with :math:`d_i = n_{i.} - n_{.i}`,
    :math:`S_{ii} = n_{i.} + n_{.i} - 2n_{ii}`, :math:`S_{ij} = -(n_{ij} + n_{ji})`, and as many degrees of
    freedom as S has rank. Labels that neither used, and labels that never take part in a disagreement, carry
    no information and take no degree of freedom. Bowker:
    :math:`\sum_{i<j} (n_{ij} - n_{ji})^2/(n_{ij} + n_{ji})` over the pairs that occur. No cell is ever raised
    by a constant. All of them treat pairs as independent.

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets (rows and columns of the table); None is missing and left out with a count.
    labels : sequence
        The label set.
    rows_name, cols_name : str
        Whose labels they are, for `explain`.

    Returns
    -------
    MarginalHomogeneity
        With no discordant pair every p is 1.

    References
    ----------
    Stuart, A. (1955). Biometrika 42, 412-416. Maxwell, A. E. (1970). Br. J. Psychiatry 116, 651-655.
    Bowker, A. H. (1948). JASA 43, 572-574. McNemar, Q. (1947). Psychometrika 12, 153-157.
    """
    pairs = pair_up(a, b, labels, None)
    table = pairs.table()
    row, col, same = table.sum(axis=1), table.sum(axis=0), np.diag(table)
    differences = tuple(
        LabelDifference(
            label,
            int(row[i]),
            int(col[i]),
            int(row[i] - col[i]),
            exact_sign_test(int(row[i] - same[i]), int(col[i] - same[i])),
        )
        for i, label in enumerate(pairs.labels)
    )
    mcnemar = None
    if len(pairs.labels) == 2:
        mcnemar = TestResult(None, None, exact_sign_test(int(table[0, 1]), int(table[1, 0])), "exact McNemar")
    return MarginalHomogeneity(
        _stuart_maxwell(table),
        _bowker(table),
        _bowker_all_pairs(table),
        mcnemar,
        differences,
        tuple(tuple(counts) for counts in table.tolist()),
        pairs.n,
        pairs.excluded,
        rows_name,
        cols_name,
    )


def _stuart_maxwell(table: NDArray[np.int64]) -> TestResult:
    off_diagonal = table + table.T
    np.fill_diagonal(off_diagonal, 0)
    df = len(table) - _components(off_diagonal > 0)
    if df == 0:
        return TestResult(0.0, 0, 1.0, "Stuart-Maxwell")
    difference = (table.sum(axis=1) - table.sum(axis=0)).astype(float)
    laplacian = np.diag(off_diagonal.sum(axis=1)) - off_diagonal
    solution = np.linalg.lstsq(laplacian.astype(float), difference, rcond=None)[0]
    statistic = max(0.0, float(difference @ solution))
    return TestResult(statistic, df, chi2_tail(statistic, df), "Stuart-Maxwell")


def _components(linked: NDArray[np.bool_]) -> int:
    """Connected groups of labels: S has rank (labels - groups), whatever floating point makes of it."""
    unseen, groups = set(range(len(linked))), 0
    while unseen:
        groups += 1
        frontier = [unseen.pop()]
        while frontier:
            neighbours = {int(j) for j in np.flatnonzero(linked[frontier.pop()])} & unseen
            unseen -= neighbours
            frontier.extend(neighbours)
    return groups


def _bowker(table: NDArray[np.int64]) -> TestResult:
    upper, lower = np.triu_indices(len(table), 1)
    forward, backward = table[upper, lower], table[lower, upper]
    occurs = forward + backward > 0
    df = int(occurs.sum())
    if df == 0:
        return TestResult(0.0, 0, 1.0, "Bowker")
    forward, backward = forward[occurs], backward[occurs]
    statistic = float(((forward - backward) ** 2 / (forward + backward)).sum())
    return TestResult(statistic, df, chi2_tail(statistic, df), "Bowker")


def _bowker_all_pairs(table: NDArray[np.int64]) -> TestResult:
    used = int((table.sum(axis=0) + table.sum(axis=1) > 0).sum())
    df = used * (used - 1) // 2
    occurring = _bowker(table)
    if df == 0 or occurring.statistic is None:
        return TestResult(0.0, 0, 1.0, "Bowker, all pairs")
    return TestResult(occurring.statistic, df, chi2_tail(occurring.statistic, df), "Bowker, all pairs")
