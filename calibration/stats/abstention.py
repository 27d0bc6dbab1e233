"""The abstention matrix: does the system refuse when it should, and only then?"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import MISSING, check_level, check_same_length, encode_clusters, encode_labels
from .intervals import share_of_runs
from .labels import EMPTY, QUESTION_CLASSES, UNANSWERABLE_REASONS
from .repeated import Flags, UnitMeans
from .results import Number, whole_or_float

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
    counts : mapping of str to float
        Responses per verdict, EMPTY included; of a response with several runs the share of them.
    missing : int
        Responses without a valid verdict.
    over_answering : Number
        ANSWERED among those with a verdict.
    informativeness : Number
        Informative among the graded correct refusals.
    """

    reason: str
    counts: Mapping[str, float]
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
    matrix : mapping of str to mapping of str to float
        Question class by verdict: ANSWERED, REFUSED, CLARIFY, EMPTY, and "missing" (no valid verdict). A
        response with several runs is in each column by the share of its runs.
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

    matrix: Mapping[str, Mapping[str, float]]
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
    reasons: NDArray[np.int64]
    informative: NDArray[np.int64]
    items: NDArray[np.integer]
    n_items: int

    @property
    def known(self) -> Flags:
        return self.verdicts >= 0

    def share(self, hit: Flags, within: Flags, owed: Flags | None = None, **described: Any) -> Number:
        means = UnitMeans.over(hit, within, self.known)
        return share_of_runs(means, self.items, self.n_items, owed=owed, unit="response", **described)

    def verdict_counts(self, chosen: Flags) -> dict[str, float]:
        """Of the chosen responses how many got each verdict, and how many none."""
        shares = [UnitMeans.over(self.verdicts == code, self.known, self.known) for code in range(4)]
        counts = {
            verdict: whole_or_float(float(share.numerator[chosen].sum()))
            for verdict, share in zip(VERDICTS, shares, strict=True)
        }
        return counts | {"missing": int((chosen & ~self.known.any(axis=1)).sum())}


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
        answerable, unanswerable or underspecified; None where it is not known. A NumPy integer array, here,
        of verdicts and of reasons, holds positions in `QUESTION_CLASSES`, `VERDICTS` and
        `UNANSWERABLE_REASONS`, -1 for None.
    verdict : sequence, shape (n,), or array, shape (n, runs)
        ANSWERED, REFUSED, CLARIFY or EMPTY; None where there is no valid verdict. Verdicts of several runs
        count as their mean: a response by the share of its runs.
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
        return _rate(rows, within, verdict_code, level, label, key)

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
    verdicts = verdict_codes(verdict, "verdict")
    n = check_same_length(
        question_class=classes, verdict=verdicts, reason=reason, informative=informative, clusters=clusters
    )
    reasons = np.full(n, MISSING) if reason is None else _codes(reason, UNANSWERABLE_REASONS, "reason")
    _check_reasons(classes, reasons)
    if informative is None:
        grades = np.full(n, MISSING)
    else:
        grades = np.array([MISSING if one is None else int(bool(one)) for one in informative], dtype=np.int64)
    codes, number = encode_clusters(clusters, n)
    return _Rows(classes, verdicts, reasons, grades, codes, number)


def _check_reasons(classes: NDArray[np.int64], reasons: NDArray[np.int64]) -> None:
    """A reason stands where the question is unanswerable, and "underspecified" is a class of its own."""
    underspecified = UNANSWERABLE_REASONS.index("underspecified")
    given = reasons >= 0
    for position in np.flatnonzero(given & (classes == 0))[:1]:
        raise ValueError(
            f"reason holds {UNANSWERABLE_REASONS[reasons[position]]!r} at index {position}, "
            "where the question is answerable"
        )
    for position in np.flatnonzero(given & (classes > 0) & ((reasons == underspecified) != (classes == 2)))[
        :1
    ]:
        raise ValueError(
            f"question_class holds {QUESTION_CLASSES[classes[position]]!r} at index {position}, "
            f"where the reason is {UNANSWERABLE_REASONS[reasons[position]]!r}"
        )


def _codes(values: Any, allowed: tuple[str, ...], name: str) -> NDArray[np.int64]:
    """Positions among the allowed words, -1 for None; an integer array holds them already."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        return encode_labels(values, allowed, name).astype(np.int64, copy=False)
    index: dict[Any, int] = {value: position for position, value in enumerate(allowed)}
    index[None] = MISSING
    codes = []
    for position, value in enumerate(values):
        if value not in index:
            raise ValueError(f"{name} holds {value!r} at index {position}, which is not one of {allowed}")
        codes.append(index[value])
    return np.array(codes, dtype=np.int64)


def verdict_codes(values: Any, name: str) -> NDArray[np.int64]:
    """Positions in `VERDICTS`, responses x runs; -1 where a run has no verdict."""
    if not isinstance(values, np.ndarray) or values.ndim == 1:
        return _codes(values, VERDICTS, name)[:, None]
    cells = values.ravel()
    return _codes(cells if cells.dtype.kind in "iu" else cells.tolist(), VERDICTS, name).reshape(values.shape)


def _matrix(rows: _Rows) -> dict[str, dict[str, float]]:
    return {
        name: rows.verdict_counts(rows.classes == position) for position, name in enumerate(QUESTION_CLASSES)
    }


def _rate(rows: _Rows, within: Flags, verdict: int, level: float, label: str, key: str) -> Number:
    known = within & rows.known.any(axis=1)
    return rows.share(
        rows.verdicts == verdict,
        within[:, None],
        owed=within,
        level=level,
        label=label,
        definition=f"abstention-rates-{key}",
        excluded={"no_valid_verdict": int((within & ~known).sum())},
        flags=("small_sample",) if 0 < known.sum() < FEW_RESPONSES else (),
    )


def _informativeness(rows: _Rows, within: Flags, level: float, label: str) -> Number:
    refused = within[:, None] & (rows.verdicts == REFUSED)
    graded = refused & (rows.informative >= 0)[:, None]
    means = UnitMeans.over(refused, refused, rows.known)
    counted = UnitMeans.over(graded, graded, rows.known)
    number = float(counted.denominator.sum())
    return rows.share(
        graded & (rows.informative == 1)[:, None],
        graded,
        level=level,
        label=label,
        definition="abstention-rates-informativeness",
        excluded={"not_graded": float(means.denominator.sum()) - number},
        flags=("small_sample",) if 0 < number < FEW_RESPONSES else (),
    )


def _by_reason(rows: _Rows, within: NDArray[np.bool_], level: float) -> tuple[ReasonRow, ...]:
    table = []
    for position, reason in enumerate(UNANSWERABLE_REASONS):
        chosen = within & (rows.reasons == position)
        if not chosen.any():
            continue
        counts = rows.verdict_counts(chosen)
        missing = int(counts.pop("missing"))
        name = reason.replace("_", " ")
        table.append(
            ReasonRow(
                reason,
                counts,
                missing,
                _rate(rows, chosen, ANSWERED, level, f"Over-answering, {name}", "over_answering"),
                _informativeness(rows, chosen, level, f"Informative refusals, {name}"),
            )
        )
    return tuple(table)
