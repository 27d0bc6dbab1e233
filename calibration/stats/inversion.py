"""Label shares corrected by inverting the judge's confusion matrix."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import pair_up
from .arrays import (
    check_labels,
    check_level,
    encode_clusters,
    encode_labels,
)
from .intervals import FEW_CLUSTERS
from .labels import BAD_LABELS, BAD_SHARE, GROUNDING_LABELS
from .resampling import resampled_sums
from .results import Number, undefined_number

LARGEST_CONDITION_NUMBER = 20.0


@dataclass(frozen=True)
class MulticlassCorrection:
    """Label shares corrected through the judge's whole confusion matrix.

    Attributes
    ----------
    shares : mapping of label to Number
        Corrected share of each label among all claims.
    bad_share : Number
        Sum of the bad labels' shares.
    hallucination : Number or None
        Corrected hallucination rate, (contradicted + unsupported) / (1 - unverifiable); None for label sets
        other than grounding.
    condition_number : float or None
        Of the confusion matrix; above 20 the inversion is refused.
    skipped_draws : int
        Bootstrap draws in which the inversion was impossible.
    draws : int
        Bootstrap draws in all.
    undefined : str or None
        Reason code when the correction was refused.
    """

    shares: Mapping[Hashable, Number]
    bad_share: Number
    hallucination: Number | None
    condition_number: float | None
    skipped_draws: int
    draws: int
    undefined: str | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "shares": {str(label): share.as_dict() for label, share in self.shares.items()},
            "bad_share": self.bad_share.as_dict(),
            "hallucination": self.hallucination.as_dict() if self.hallucination else None,
            "condition_number": self.condition_number,
            "draws": self.draws,
            "skipped_draws": self.skipped_draws,
        }

    def explain(self) -> str:
        """The corrected rate in one plain sentence."""
        return (self.hallucination or self.bad_share).explain()


def invert_confusion(
    gold: Any,
    judge: Any,
    judge_without_gold: Any,
    *,
    labels: Any = GROUNDING_LABELS,
    clusters: Any = None,
    clusters_without_gold: Any = None,
    positive: Iterable[Hashable] = BAD_LABELS,
    draws: int = 2000,
    rng: np.random.Generator,
    level: float = 0.95,
) -> MulticlassCorrection:
    r"""Label shares corrected by inverting the judge's confusion matrix.

    With :math:`P_{ij} = P(\text{judge} = j \mid \text{gold} = i)` from the gold claims and q the judge's
    label shares on the claims without gold, solve :math:`P^T \pi = q`. Where a solution has a negative
    share, it is replaced by the least-squares one on the simplex and flagged ``on_simplex``.

    Parameters
    ----------
    gold, judge : sequence, shape (n,)
        Gold and judge labels of the same claims (rows and columns of the confusion); None is left out.
    judge_without_gold : sequence, shape (N,)
        The judge's labels of the claims to correct for.
    labels : sequence
        The label set.
    clusters, clusters_without_gold : sequence, optional
        Items of both; they are what the bootstrap draws.
    positive : iterable of labels
        The bad labels.
    draws : int
        Bootstrap draws, at least 2000 in reports; gold and judged claims are drawn together.
    rng : numpy.random.Generator
        Source of randomness.
    level : float
        Confidence level.

    Returns
    -------
    MulticlassCorrection
        Shares in [0, 1] that sum to 1, with percentile intervals. Refused with ``singular_confusion`` when a
        label has no gold claim or the matrix has a condition number above 20, with ``zero_denominator``
        without judged claims, ``empty_overlap`` without gold.

    References
    ----------
    Buonaccorsi, J. P. (2010). Measurement Error, chapter 3. Forman, G. (2008). Quantifying counts and costs
    via classification. Data Min. Knowl. Discov. 17, 164-206.
    """
    check_level(level)
    if draws < 1:
        raise ValueError(f"draws must be at least 1, got {draws!r}")
    fixed = check_labels(labels)
    wanted = frozenset(positive)
    if not wanted or not wanted <= set(fixed):
        raise ValueError("positive must be labels of the set")
    pairs = pair_up(gold, judge, fixed, clusters, "gold", "judge")
    q = len(fixed)
    judged_rows, judged_excluded = _judged_table(judge_without_gold, fixed, clusters_without_gold)
    gold_rows = np.bincount(
        pairs.clusters * q * q + pairs.rows * q + pairs.cols, minlength=pairs.n_clusters * q * q
    ).reshape(-1, q * q)
    frame = _ShareFrame(
        fixed,
        wanted,
        level,
        int(judged_rows.sum()),
        len(judged_rows),
        {**pairs.excluded, **judged_excluded},
    )
    reason, condition = _refusal(gold_rows, judged_rows, q)
    if reason is not None:
        return frame.refused(reason, condition, draws)
    solution, on_simplex = _solve(gold_rows.sum(axis=0)[None, :], judged_rows.sum(axis=0)[None, :], q)
    gold_draws = resampled_sums(gold_rows.astype(float), draws, rng)
    judged_draws = resampled_sums(judged_rows.astype(float), draws, rng)
    drawn, _ = _solve(gold_draws, judged_draws, q)
    flags = ("on_simplex",) if on_simplex[0] else ()
    if min(len(judged_rows), len(gold_rows)) < FEW_CLUSTERS:
        flags = (*flags, "too_few_clusters")
    return frame.corrected(solution[0], drawn, flags, condition, draws)


def _judged_table(
    judge: Any, labels: tuple[Hashable, ...], clusters: Any
) -> tuple[NDArray[np.int64], dict[str, int]]:
    codes = encode_labels(judge, labels, "judge_without_gold")
    items, number = encode_clusters(clusters, len(codes), "clusters_without_gold")
    valid = codes >= 0
    q = len(labels)
    table = np.bincount(items[valid] * q + codes[valid], minlength=number * q).reshape(number, q)
    return table[table.sum(axis=1) > 0], {"no_valid_verdict": int((~valid).sum())}


def _refusal(gold_rows: NDArray[Any], judged_rows: NDArray[Any], q: int) -> tuple[str | None, float | None]:
    table = gold_rows.sum(axis=0).reshape(q, q)
    if table.sum() == 0:
        return "empty_overlap", None
    if judged_rows.sum() == 0:
        return "zero_denominator", None
    if (table.sum(axis=1) == 0).any():
        return "singular_confusion", None
    condition = float(np.linalg.cond((table / table.sum(axis=1, keepdims=True)).T))
    if not condition <= LARGEST_CONDITION_NUMBER:
        return "singular_confusion", condition if math.isfinite(condition) else None
    return None, condition


def _solve(gold: NDArray[Any], judged: NDArray[Any], q: int) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Shares for each row of confusion counts and judged counts; NaN where the matrix cannot be inverted."""
    tables = gold.reshape(-1, q, q).astype(float)
    sums = tables.sum(axis=2, keepdims=True)
    solvable = (sums[:, :, 0] > 0).all(axis=1) & (judged.sum(axis=1) > 0)
    matrices = np.broadcast_to(np.eye(q), tables.shape).copy()
    matrices[solvable] = (tables[solvable] / sums[solvable]).transpose(0, 2, 1)
    solvable &= np.linalg.cond(matrices) < 1e8
    matrices[~solvable] = np.eye(q)
    shares = judged / np.maximum(judged.sum(axis=1, keepdims=True), 1)
    solutions = np.linalg.solve(matrices, shares[:, :, None])[:, :, 0]
    negative = (solutions < -1e-12).any(axis=1) & solvable
    if negative.any():
        solutions[negative] = simplex_least_squares(matrices[negative], shares[negative])
    solutions[~solvable] = np.nan
    return np.where(np.abs(solutions) < 1e-12, 0.0, solutions), negative


def simplex_least_squares(matrices: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Nearest label shares on the simplex, one problem per row.

    With a handful of labels every possible set of non-zero shares can be tried, which is exact and solves
    thousands of bootstrap draws at once; a general optimiser would take them one by one.
    """
    count, q = targets.shape
    best = np.full(count, np.inf)
    solution = np.full((count, q), np.nan)
    for size in range(1, q + 1):
        for chosen in itertools.combinations(range(q), size):
            candidate = _constrained(matrices[:, :, chosen], targets)
            feasible = (candidate >= -1e-12).all(axis=1)
            residual = np.einsum("nij,nj->ni", matrices[:, :, chosen], candidate) - targets
            loss = np.where(feasible, (residual**2).sum(axis=1), np.inf)
            better = loss < best - 1e-15
            best[better] = loss[better]
            solution[better] = 0.0
            solution[np.flatnonzero(better)[:, None], np.array(chosen)] = np.maximum(candidate[better], 0.0)
    return solution


def _constrained(columns: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.float64]:
    """Least squares over shares that sum to 1, through the Lagrange system."""
    count, _, size = columns.shape
    system = np.zeros((count, size + 1, size + 1))
    system[:, :size, :size] = np.einsum("nki,nkj->nij", columns, columns)
    system[:, :size, size] = system[:, size, :size] = 1.0
    right = np.ones((count, size + 1))
    right[:, :size] = np.einsum("nki,nk->ni", columns, targets)
    return np.linalg.solve(system, right[:, :, None])[:, :size, 0]


@dataclass(frozen=True)
class _ShareFrame:
    labels: tuple[Hashable, ...]
    positive: frozenset[Hashable]
    level: float
    n: int
    clusters: int
    excluded: Mapping[str, int]

    def _common(self, label: str, key: str) -> dict[str, Any]:
        return {
            "level": self.level,
            "n": self.n,
            "clusters": self.clusters,
            "excluded": self.excluded,
            "definition": f"invert-confusion-{key}",
            "label": label,
            "unit": "claim",
            "method": "confusion inversion, cluster bootstrap of gold and judged claims",
        }

    @property
    def _grounding(self) -> bool:
        return self.labels == GROUNDING_LABELS

    def refused(self, reason: str, condition: float | None, draws: int) -> MulticlassCorrection:
        return MulticlassCorrection(
            {
                label: undefined_number(reason, **self._common(f"Share of {label}, corrected", "shares"))
                for label in self.labels
            },
            undefined_number(reason, **self._common(f"{BAD_SHARE}, corrected", "bad_share")),
            undefined_number(reason, **self._common("Hallucination rate, corrected", "hallucination"))
            if self._grounding
            else None,
            condition,
            0,
            draws,
            reason,
        )

    def corrected(
        self,
        solution: NDArray[Any],
        drawn: NDArray[Any],
        flags: tuple[str, ...],
        condition: float | None,
        draws: int,
    ) -> MulticlassCorrection:
        kept = drawn[np.isfinite(drawn).all(axis=1)]
        bad = np.array([label in self.positive for label in self.labels])
        hallucination = None
        if self._grounding:
            hallucination = self._number(
                solution, kept, _hallucination, flags, "Hallucination rate, corrected", "hallucination"
            )
        return MulticlassCorrection(
            {
                label: self._number(
                    solution,
                    kept,
                    itemgetter((..., position)),
                    flags,
                    f"Share of {label}, corrected",
                    "shares",
                )
                for position, label in enumerate(self.labels)
            },
            self._number(
                solution,
                kept,
                lambda shares: shares[..., bad].sum(axis=-1),
                flags,
                f"{BAD_SHARE}, corrected",
                "bad_share",
            ),
            hallucination,
            condition,
            draws - len(kept),
            draws,
            None,
        )

    def _number(
        self,
        solution: NDArray[Any],
        kept: NDArray[Any],
        statistic: Callable[[NDArray[Any]], NDArray[Any]],
        flags: tuple[str, ...],
        label: str,
        key: str,
    ) -> Number:
        value = float(statistic(solution))
        common = self._common(label, key)
        if not math.isfinite(value):
            return undefined_number("zero_denominator", flags=flags, **common)
        drawn = statistic(kept)
        drawn = drawn[np.isfinite(drawn)]
        if self.clusters < 2 or len(drawn) == 0:
            return Number(value=value, flags=(*flags, "too_few_clusters"), **common)
        low, high = np.quantile(drawn, [(1 - self.level) / 2, (1 + self.level) / 2])
        return Number(
            value=value, low=min(value, float(low)), high=max(value, float(high)), flags=flags, **common
        )


def _hallucination(shares: NDArray[Any]) -> NDArray[Any]:
    checkable = 1 - shares[..., 3]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(checkable > 1e-9, (shares[..., 1] + shares[..., 2]) / checkable, np.nan)
