"""The abstention matrix: does the system refuse when it should, and only then?"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_level, check_same_length, encode_clusters
from .intervals import share_number
from .labels import EMPTY, QUESTION_CLASSES, UNANSWERABLE_REASONS
from .results import Number

VERDICTS: tuple[str, ...] = ("ANSWERED", "REFUSED", "CLARIFY", EMPTY)
ANSWERED, REFUSED, CLARIFY = range(3)
FEW_RESPONSES = 20


@dataclass(frozen=True)
class ReasonRow:
    """Responses to the questions that are unanswerable for one reason.

    Attributes
    ----------
    reason : str
        Why the questions cannot be answered.
    counts : mapping of str to int
        Responses per verdict, EMPTY included.
    missing : int
        Responses without a valid verdict.
    over_answering : Number
        ANSWERED among those with a verdict.
    informativeness : Number
        Informative among the graded correct refusals.
    """

    reason: str
    counts: Mapping[str, int]
    missing: int
    over_answering: Number
    informativeness: Number

    def as_dict(self) -> dict[str, Any]:
        return {
            "reason": self.reason,
            "counts": dict(self.counts),
            "missing": self.missing,
            "over_answering": self.over_answering.as_dict(),
            "informativeness": self.informativeness.as_dict(),
        }

    def explain(self) -> str:
        """What happened to these questions in one plain sentence."""
        return self.over_answering.explain()


@dataclass(frozen=True)
class AbstentionRates:
    """The abstention matrix and its rates.

    Attributes
    ----------
    matrix : mapping of str to mapping of str to int
        Question class by verdict: ANSWERED, REFUSED, CLARIFY, EMPTY, and "missing" (no valid verdict).
    over_answering : Number
        ANSWERED among the unanswerable (underspecified questions apart).
    over_answering_with_underspecified : Number
        The same with the underspecified questions among the unanswerable.
    over_refusal : Number
        REFUSED among the answerable.
    clarification : Number
        CLARIFY among the underspecified.
    needless_clarification : Number
        CLARIFY among the answerable.
    informativeness : Number
        Informative among the graded correct refusals (REFUSED on unanswerable).
    by_reason : tuple of ReasonRow
        One row per reason that occurs.
    unclassified : int
        Responses to questions of unknown class; they are in no row.
    """

    matrix: Mapping[str, Mapping[str, int]]
    over_answering: Number
    over_answering_with_underspecified: Number
    over_refusal: Number
    clarification: Number
    needless_clarification: Number
    informativeness: Number
    by_reason: tuple[ReasonRow, ...]
    unclassified: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "matrix": {row: dict(counts) for row, counts in self.matrix.items()},
            "over_answering": self.over_answering.as_dict(),
            "over_answering_with_underspecified": self.over_answering_with_underspecified.as_dict(),
            "over_refusal": self.over_refusal.as_dict(),
            "clarification": self.clarification.as_dict(),
            "needless_clarification": self.needless_clarification.as_dict(),
            "informativeness": self.informativeness.as_dict(),
            "by_reason": [row.as_dict() for row in self.by_reason],
            "unclassified": self.unclassified,
        }

    def explain(self) -> str:
        """The pair in plain words: neither number means anything without the other."""
        return f"{self.over_answering.explain()} {self.over_refusal.explain()}"


@dataclass(frozen=True)
class _Rows:
    classes: NDArray[np.int64]
    verdicts: NDArray[np.int64]
    reasons: Sequence[str | None]
    informative: NDArray[np.int64]
    items: NDArray[np.integer]
    n_items: int


def question_class(answerable: bool | None, reason: str | None = None) -> str | None:
    """Class of a question from what its item records.

    Parameters
    ----------
    answerable : bool or None
        Whether the sources answer the question.
    reason : str or None
        Why they do not.

    Returns
    -------
    str or None
        answerable, unanswerable, underspecified (a row of its own), or None where it is not recorded.
    """
    if answerable is None:
        return None
    if answerable:
        return "answerable"
    return "underspecified" if reason == "underspecified" else "unanswerable"


def abstention_rates(
    question_class: Any,
    verdict: Any,
    *,
    reason: Any = None,
    informative: Any = None,
    clusters: Any = None,
    level: float = 0.95,
) -> AbstentionRates:
    r"""Abstention matrix, over-answering and over-refusal, overall and by reason.

    .. math:: \text{over-answering} = \frac{ANSWERED}{unanswerable}, \quad
              \text{over-refusal} = \frac{REFUSED}{answerable}

    An EMPTY response is a failure of the system: it is in every denominator and in no numerator. Only a
    missing verdict is excluded, with a count, and each rate carries its range had the missing come out one
    way or the other.

    Parameters
    ----------
    question_class : sequence, shape (n,)
        answerable, unanswerable or underspecified; None where it is not known.
    verdict : sequence, shape (n,)
        ANSWERED, REFUSED, CLARIFY or EMPTY; None where there is no valid verdict.
    reason : sequence, shape (n,), optional
        Why a question is unanswerable; None elsewhere.
    informative : sequence of bool or None, shape (n,), optional
        Whether a refusal says what the user needs; None where it was not graded.
    clusters : sequence, shape (n,), optional
        Item of each response.
    level : float
        Confidence level.

    Returns
    -------
    AbstentionRates
        Shares in [0, 1] with the interval of `clustered_rate`; undefined (``zero_denominator``) for a class
        without responses. Below 20 responses a share is flagged ``small_sample``: read its counts.

    References
    ----------
    Wilson, E. B. (1927). JASA 22, 209-212. Korn and Graubard (1998), see `clustered_rate`.
    """
    check_level(level)
    rows = _check_rows(question_class, verdict, reason, informative, clusters)
    answerable = rows.classes == QUESTION_CLASSES.index("answerable")
    underspecified = rows.classes == QUESTION_CLASSES.index("underspecified")
    unanswerable = rows.classes == QUESTION_CLASSES.index("unanswerable")

    def rate(within: NDArray[np.bool_], verdict_code: int, label: str, key: str) -> Number:
        return _rate(rows, within, rows.verdicts == verdict_code, level, label, key)

    return AbstentionRates(
        matrix=_matrix(rows),
        over_answering=rate(unanswerable, ANSWERED, "Over-answering", "over_answering"),
        over_answering_with_underspecified=rate(
            unanswerable | underspecified,
            ANSWERED,
            "Over-answering, underspecified included",
            "over_answering_with_underspecified",
        ),
        over_refusal=rate(answerable, REFUSED, "Over-refusal", "over_refusal"),
        clarification=rate(
            underspecified, CLARIFY, "Clarification of underspecified questions", "clarification"
        ),
        needless_clarification=rate(
            answerable, CLARIFY, "Needless clarification of answerable questions", "needless_clarification"
        ),
        informativeness=_informativeness(rows, unanswerable, level, "Informative refusals"),
        by_reason=_by_reason(rows, unanswerable | underspecified, level),
        unclassified=int((rows.classes < 0).sum()),
    )


def _check_rows(question_class: Any, verdict: Any, reason: Any, informative: Any, clusters: Any) -> _Rows:
    classes = _codes(question_class, QUESTION_CLASSES, "question_class")
    verdicts = _codes(verdict, VERDICTS, "verdict")
    n = check_same_length(
        question_class=classes, verdict=verdicts, reason=reason, informative=informative, clusters=clusters
    )
    reasons = list(reason) if reason is not None else [None] * n
    for position, (given, kind) in enumerate(zip(reasons, classes.tolist(), strict=True)):
        if given is not None and given not in UNANSWERABLE_REASONS:
            raise ValueError(
                f"reason holds {given!r} at index {position}, which is not one of {UNANSWERABLE_REASONS}"
            )
        if given is not None and kind == 0:
            raise ValueError(f"reason holds {given!r} at index {position}, where the question is answerable")
        if kind > 0 and given is not None and (given == "underspecified") != (kind == 2):
            raise ValueError(
                f"question_class holds {QUESTION_CLASSES[kind]!r} at index {position}, "
                f"where the reason is {given!r}"
            )
    grades = [None] * n if informative is None else list(informative)
    codes, number = encode_clusters(clusters, n)
    return _Rows(
        classes,
        verdicts,
        reasons,
        np.array([-1 if grade is None else int(bool(grade)) for grade in grades], dtype=np.int64),
        codes,
        number,
    )


def _codes(values: Any, allowed: tuple[str, ...], name: str) -> NDArray[np.int64]:
    index: dict[Any, int] = {value: position for position, value in enumerate(allowed)}
    index[None] = -1
    codes = []
    for position, value in enumerate(values):
        if value not in index:
            raise ValueError(f"{name} holds {value!r} at index {position}, which is not one of {allowed}")
        codes.append(index[value])
    return np.array(codes, dtype=np.int64)


def _matrix(rows: _Rows) -> dict[str, dict[str, int]]:
    columns = (*VERDICTS, "missing")
    counts = {row: dict.fromkeys(columns, 0) for row in QUESTION_CLASSES}
    for kind, verdict in zip(rows.classes.tolist(), rows.verdicts.tolist(), strict=True):
        if kind >= 0:
            counts[QUESTION_CLASSES[kind]][columns[verdict]] += 1
    return counts


def _rate(
    rows: _Rows, within: NDArray[np.bool_], hit: NDArray[np.bool_], level: float, label: str, key: str
) -> Number:
    known = within & (rows.verdicts >= 0)
    missing = int((within & (rows.verdicts < 0)).sum())
    return share_number(
        np.bincount(rows.items[known & hit], minlength=rows.n_items).astype(float),
        np.bincount(rows.items[known], minlength=rows.n_items).astype(float),
        level=level,
        label=label,
        unit="response",
        definition=f"abstention-rates-{key}",
        excluded={"no_valid_verdict": missing},
        missing=missing,
        flags=("small_sample",) if 0 < known.sum() < FEW_RESPONSES else (),
    )


def _informativeness(rows: _Rows, within: NDArray[np.bool_], level: float, label: str) -> Number:
    refused = within & (rows.verdicts == REFUSED)
    graded = refused & (rows.informative >= 0)
    return share_number(
        np.bincount(rows.items[graded & (rows.informative == 1)], minlength=rows.n_items).astype(float),
        np.bincount(rows.items[graded], minlength=rows.n_items).astype(float),
        level=level,
        label=label,
        unit="response",
        definition="abstention-rates-informativeness",
        excluded={"not_graded": int((refused & ~graded).sum())},
        flags=("small_sample",) if 0 < graded.sum() < FEW_RESPONSES else (),
    )


def _by_reason(rows: _Rows, within: NDArray[np.bool_], level: float) -> tuple[ReasonRow, ...]:
    table = []
    for reason in UNANSWERABLE_REASONS:
        chosen = within & np.array([given == reason for given in rows.reasons], dtype=bool)
        if not chosen.any():
            continue
        verdicts = Counter(rows.verdicts[chosen].tolist())
        name = reason.replace("_", " ")
        table.append(
            ReasonRow(
                reason,
                {verdict: verdicts[code] for code, verdict in enumerate(VERDICTS)},
                verdicts[-1],
                _rate(
                    rows,
                    chosen,
                    rows.verdicts == ANSWERED,
                    level,
                    f"Over-answering, {name}",
                    "over_answering",
                ),
                _informativeness(rows, chosen, level, f"Informative refusals, {name}"),
            )
        )
    return tuple(table)
