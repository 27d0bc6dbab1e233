"""Could a judge stand in for one of the graders? The alternative-annotator test, as a cross-check only."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_labels, check_same_length, check_share, encode_labels


@dataclass(frozen=True)
class AltTest:
    """Result of the alternative-annotator test.

    Attributes
    ----------
    winning_rate : float or None
        Share of graders that the judge may replace; None when none could be tested.
    advantage : float or None
        Mean over graders of how often the judge agrees with the others at least as well as that grader.
    p_values : mapping of str to float
        One-sided p per grader, before the correction for several graders.
    passed : bool or None
        Whether the winning rate reaches one half.
    epsilon : float
        How much worse the judge may be, in exchange for what a grader costs.
    untested : tuple of str
        Graders with fewer than two targets that somebody else and the judge labelled too.
    """

    winning_rate: float | None
    advantage: float | None
    p_values: Mapping[str, float]
    passed: bool | None
    epsilon: float
    untested: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "winning_rate": self.winning_rate,
            "advantage": self.advantage,
            "p_values": dict(self.p_values),
            "passed": self.passed,
            "epsilon": self.epsilon,
            "untested": list(self.untested),
        }

    def explain(self) -> str:
        """The result in one plain sentence."""
        if self.winning_rate is None or self.advantage is None:
            return "No grader shares enough targets with the others and the judge."
        return (
            f"The judge does at least as well as the grader it replaces on {self.advantage:.1%} of targets "
            f"and may replace {self.winning_rate:.0%} of the graders at epsilon {self.epsilon:g}."
        )


def alt_test(
    graders: Mapping[str, Sequence[Any]],
    judge: Sequence[Any],
    *,
    labels: Any,
    epsilon: float = 0.15,
    q: float = 0.05,
) -> AltTest:
    r"""Alternative-annotator test: does the judge agree with the others as well as each grader does?

    For grader j and target i, :math:`W^f_{ij} = 1` when the judge agrees with the remaining graders at least
    as well as j, :math:`W^h_{ij} = 1` when j does at least as well as the judge. With :math:`\rho` the means
    of W, the judge wins against j when :math:`\rho^f_j > \rho^h_j - \epsilon` by a one-sided t test of the
    differences, at false discovery rate q (Benjamini-Yekutieli).

    Parameters
    ----------
    graders : mapping of str to sequence, shape (n,)
        Labels of each grader; None is missing.
    judge : sequence, shape (n,)
        The judge's labels.
    labels : sequence
        The label set.
    epsilon : float
        Allowed shortfall, in [0, 1].
    q : float
        False discovery rate over the graders.

    Returns
    -------
    AltTest
        Not a criterion of the gate: with one dominating label, a judge that always says it passes although
        its kappa is 0.

    References
    ----------
    Calderon, N., Reichart, R. and Dror, R. (2025). The alternative annotator test for LLM-as-a-judge. ACL.
    """
    check_share(epsilon, "epsilon")
    check_share(q, "q")
    fixed = check_labels(labels)
    if len(graders) < 2:
        raise ValueError("graders must hold at least two graders")
    codes = {name: encode_labels(column, fixed, f"graders[{name!r}]") for name, column in graders.items()}
    verdicts = encode_labels(judge, fixed, "judge")
    check_same_length(judge=verdicts, **{f"graders[{name!r}]": column for name, column in codes.items()})
    advantages: list[float] = []
    p_values: dict[str, float] = {}
    untested = []
    for name, own in codes.items():
        others = np.stack([column for other, column in codes.items() if other != name])
        usable = (own >= 0) & (verdicts >= 0) & (others >= 0).any(axis=0)
        if usable.sum() < 2:
            untested.append(name)
            continue
        judge_score = _agreement(verdicts[usable], others[:, usable])
        own_score = _agreement(own[usable], others[:, usable])
        advantages.append(float((judge_score >= own_score).mean()))
        p_values[name] = _shortfall_p((own_score >= judge_score) * 1.0 - (judge_score >= own_score), epsilon)
    if not p_values:
        return AltTest(None, None, {}, None, epsilon, tuple(untested))
    rate = _rejections(sorted(p_values.values()), q) / len(p_values)
    return AltTest(rate, float(np.mean(advantages)), p_values, rate >= 0.5, epsilon, tuple(untested))


def _agreement(labels: NDArray[Any], others: NDArray[Any]) -> NDArray[np.float64]:
    present = others >= 0
    return ((others == labels) & present).sum(axis=0) / present.sum(axis=0)


def _shortfall_p(differences: NDArray[Any], epsilon: float) -> float:
    """One-sided p that the mean difference is at least epsilon."""
    from scipy.special import stdtr

    n, mean, deviation = len(differences), float(differences.mean()), float(differences.std(ddof=1))
    if deviation == 0:
        return 0.0 if mean < epsilon else 1.0
    return float(stdtr(n - 1, (mean - epsilon) / (deviation / math.sqrt(n))))


def _rejections(ordered: list[float], q: float) -> int:
    m = len(ordered)
    harmonic = sum(1 / rank for rank in range(1, m + 1))
    passing = [rank for rank, p in enumerate(ordered, start=1) if p <= q * rank / (m * harmonic)]
    return max(passing, default=0)
