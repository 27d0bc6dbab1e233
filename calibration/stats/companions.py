"""Numbers that belong beside a rate: how often it answers, at what length, from how good a decomposition."""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .abstention import ANSWERED, verdict_codes
from .arrays import check_level, check_same_length, encode_clusters
from .intervals import clustered_mean, share_number, share_of_runs
from .proportions import two_proportion_test
from .repeated import UnitMeans
from .results import Number

ROUNDING = 1e-9


def answer_rate(verdicts: Sequence[Any], *, clusters: Any = None, level: float = 0.95) -> Number:
    r"""Share of all responses that answer.

    .. math:: ANSWERED / \text{all responses}

    Parameters
    ----------
    verdicts : sequence, shape (n,), or array, shape (n, runs)
        ANSWERED, REFUSED, CLARIFY or EMPTY (in the denominator); None is left out and counted. Verdicts of
        several runs count as their mean. A NumPy integer array holds positions as in `abstention_rates`.
    clusters : sequence, shape (n,), optional
        Item of each response.
    level : float
        Confidence level.

    Returns
    -------
    Number
        In [0, 1]; undefined (``zero_denominator``) without a verdict.

    References
    ----------
    See `clustered_rate`.
    """
    check_level(level)
    found = verdict_codes(verdicts, "verdicts")
    n = check_same_length(verdicts=found, clusters=clusters)
    codes, number = encode_clusters(clusters, n)
    known = found >= 0
    return share_of_runs(
        UnitMeans.over(found == ANSWERED, known, known),
        codes,
        number,
        owed=np.ones(n, dtype=bool),
        level=level,
        label="Answer rate",
        unit="response",
        definition="answer-rate",
        excluded={"no_valid_verdict": int((~known.any(axis=1)).sum())},
    )


@dataclass(frozen=True)
class ResponseLengths:
    """Length of the answers in words.

    Attributes
    ----------
    mean : Number
        Mean words of ANSWERED responses, t interval by item.
    median : float or None
        Median words.
    """

    mean: Number
    median: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"mean": self.mean.as_dict(), "median": self.median}

    def explain(self) -> str:
        if self.mean.value is None or self.median is None:
            return "No response answers, so there is no length."
        middle = f"{self.median:g} in the middle"
        return f"The {self.mean.n} answers have {self.mean.value:.0f} words on average, {middle}."


def response_lengths(
    texts: Sequence[str], verdicts: Sequence[Any], *, clusters: Any = None, level: float = 0.95
) -> ResponseLengths:
    """Mean and median length of ANSWERED responses, in words split on white space.

    Parameters
    ----------
    texts : sequence of str, shape (n,)
        The responses.
    verdicts : sequence, shape (n,), or array, shape (n, runs)
        Their verdicts; only ANSWERED ones count, the others are excluded and counted. Of several runs, a
        response weighs the share of them that is ANSWERED.
    clusters : sequence, shape (n,), optional
        Item of each response.
    level : float
        Confidence level.

    Returns
    -------
    ResponseLengths
        Undefined (``zero_denominator``) without an answer.

    References
    ----------
    See `clustered_rate` for what a cluster is.
    """
    check_same_length(texts=texts, verdicts=verdicts, clusters=clusters)
    return lengths_in_words([len(text.split()) for text in texts], verdicts, clusters=clusters, level=level)


def lengths_in_words(
    words: Sequence[int], verdicts: Sequence[Any], *, clusters: Any = None, level: float = 0.95
) -> ResponseLengths:
    """The same from the words of each response, where they are counted already.

    Parameters
    ----------
    words : sequence of int, shape (n,)
        Words of each response.
    verdicts, clusters, level
        As in `response_lengths`.

    Returns
    -------
    ResponseLengths
        Undefined (``zero_denominator``) without an answer.

    References
    ----------
    See `clustered_rate` for what a cluster is.
    """
    check_level(level)
    found = verdict_codes(verdicts, "verdicts")
    n = check_same_length(words=words, verdicts=found, clusters=clusters)
    codes, _clusters = encode_clusters(clusters, n)
    answers = UnitMeans.over(found == ANSWERED, found >= 0, found >= 0)
    answered = answers.numerator > 0
    counted = np.asarray(words, dtype=float)[answered] if n else np.zeros(0)
    weights = answers.numerator[answered]
    kept, places = np.unique(codes[answered], return_inverse=True)
    mean = clustered_mean(
        counted,
        places,
        len(kept),
        level=level,
        label="Words per answer",
        unit="response",
        definition="response-lengths",
        excluded={"not_answered": n - len(counted)},
        bounds=None,
        percentage=False,
        weights=weights if answers.runs > 1 else None,
    )
    return ResponseLengths(mean, _weighted_median(counted, weights) if len(counted) else None)


def _weighted_median(values: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Where half of the weight lies below; between two values, the middle of them."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    first, last = np.searchsorted(below, (half - ROUNDING, half + ROUNDING), side="right")
    return float(values[order][[first, last]].mean())


EXTRACTION_FAULTS = ("badly_split", "not_in_response")


@dataclass(frozen=True)
class ExtractionError:
    """How well responses were split into claims.

    Attributes
    ----------
    error : Number
        Audited claims that are not well split, whatever is wrong with them.
    by_fault : mapping of str to Number
        Audited claims with this one fault (badly split, not in the response); together they are the error.
    missed_per_response : Number
        Claims that the audit found missing, per audited response. They are not in the error: what was never
        extracted has no claim to mark.
    """

    error: Number
    by_fault: Mapping[str, Number]
    missed_per_response: Number

    def as_dict(self) -> dict[str, Any]:
        return {
            "error": self.error.as_dict(),
            "by_fault": {fault: number.as_dict() for fault, number in self.by_fault.items()},
            "missed_per_response": self.missed_per_response.as_dict(),
        }

    def explain(self) -> str:
        return f"{self.error.explain()} {self.missed_per_response.explain()}"


def extraction_error(
    audits: Sequence[str | None],
    claim_items: Sequence[Hashable],
    missed: Sequence[int],
    response_items: Sequence[Hashable],
    *,
    level: float = 0.95,
) -> ExtractionError:
    r"""Share of audited claims that are not well split, and missed claims per response.

    .. math:: \frac{\text{audited claims not marked well split}}{\text{audited claims}}

    A rate of claims is about the claims that were extracted: where this share is high, or many claims are
    missing, it describes the extraction as much as the system.

    Parameters
    ----------
    audits : sequence, shape (claims,)
        The auditor's mark of each sampled claim: "well split" or the word for its fault; None is not audited
        yet (left out and counted).
    claim_items : sequence, shape (claims,)
        Item of each claim.
    missed : sequence of int, shape (responses,)
        Claims that the audit found missing in each audited response, those without any claim included.
    response_items : sequence, shape (responses,)
        Item of each audited response.
    level : float
        Confidence level.

    Returns
    -------
    ExtractionError
        The shares in [0, 1] have the interval of `clustered_rate`, the mean one by t over items,
        never below 0. All are undefined (``not_audited``) while no response was audited; the shares are also
        undefined (``zero_denominator``) where none of the audited responses has a claim.

    References
    ----------
    See `clustered_rate`.
    """
    check_level(level)
    n = check_same_length(audits=audits, claim_items=claim_items)
    responses = check_same_length(missed=missed, response_items=response_items)
    if any(count < 0 for count in missed):
        raise ValueError("missed must be 0 or more")
    codes, number = encode_clusters(list(claim_items), n, "claim_items")
    marks = [None if mark is None else mark.replace(" ", "_") for mark in audits]
    audited = np.array([mark is not None for mark in marks], dtype=bool)
    faults = dict.fromkeys(
        (*EXTRACTION_FAULTS, *sorted({mark for mark in marks if mark and mark != "well_split"}))
    )
    nothing = "zero_denominator" if responses else "not_audited"

    def share(wrong: Collection[str], label: str, definition: str) -> Number:
        found = np.array([mark in wrong for mark in marks], dtype=bool)
        return share_number(
            np.bincount(codes[found], minlength=number).astype(float),
            np.bincount(codes[audited], minlength=number).astype(float),
            level=level,
            label=label,
            unit="claim",
            definition=definition,
            excluded={"not_audited": int((~audited).sum())},
            undefined=nothing,
        )

    items, item_count = encode_clusters(list(response_items), responses, "response_items")
    mean = clustered_mean(
        np.array(missed, dtype=float),
        items,
        item_count,
        level=level,
        label="Missed claims per response",
        unit="response",
        definition="extraction-error-missed_per_response",
        bounds=None,
        percentage=False,
        undefined=nothing,
    )
    if mean.low is not None and mean.low < 0:
        mean = replace(mean, low=0.0)
    return ExtractionError(
        error=share(faults, "Extraction error", "extraction-error-error"),
        by_fault={
            fault: share((fault,), f"Claims {fault.replace('_', ' ')}", "extraction-error-by_fault")
            for fault in faults
        },
        missed_per_response=mean,
    )


@dataclass(frozen=True)
class RunControl:
    """Repeats within one condition beside repeats between two conditions.

    Attributes
    ----------
    within : Number
        Share of items with the same outcome in two runs of one condition.
    between : Number
        The same share between two conditions.
    p : float or None
        Pooled score test of the two shares.
    """

    within: Number
    between: Number
    p: float | None

    def as_dict(self) -> dict[str, Any]:
        return {"within": self.within.as_dict(), "between": self.between.as_dict(), "p": self.p}

    def explain(self) -> str:
        """What the control says in one plain sentence."""
        if self.p is None or self.within.value is None or self.between.value is None:
            return "One of the comparisons has no item, so the condition cannot be judged."
        blame = (
            "the condition changes more than repeating does"
            if self.p < 0.05 and self.between.value < self.within.value
            else "there is no reason to blame the condition"
        )
        kept = [
            f"{share.numerator or 0:g} of {share.denominator or 0:g}" for share in (self.within, self.between)
        ]
        return (
            f"Repeating a run keeps {kept[0]} items, changing the condition keeps {kept[1]} "
            f"(p {self.p:.3f}): {blame}."
        )


def run_control(
    first: Sequence[Any],
    second: Sequence[Any],
    other: Sequence[Any],
    *,
    level: float = 0.95,
) -> RunControl:
    """Does a condition change outcomes more than running twice does?

    Parameters
    ----------
    first, second : sequence, shape (items,)
        Outcome of each item (a label, or the first served document) in two runs of one condition; None is
        missing.
    other : sequence, shape (items,)
        Outcome of each item in the other condition; it is compared with `first`.
    level : float
        Confidence level.

    Returns
    -------
    RunControl
        Shares in [0, 1] with Wilson intervals; undefined (``zero_denominator``) without an item. Items that
        miss an outcome are excluded and counted.

    References
    ----------
    See `two_proportion_test`.
    """
    check_level(level)
    check_same_length(first=first, second=second, other=other)

    def same(left: Sequence[Any], right: Sequence[Any], label: str) -> Number:
        kept = [(x, y) for x, y in zip(left, right, strict=True) if x is not None and y is not None]
        return share_number(
            np.array([float(x == y) for x, y in kept]),
            np.ones(len(kept)),
            level=level,
            label=label,
            unit="item",
            definition="run-control",
            excluded={"missing": len(left) - len(kept)},
        )

    within, between = same(first, second, "Same in two runs"), same(first, other, "Same in both conditions")
    p = None
    if within.denominator and between.denominator:
        p = two_proportion_test(
            within.numerator or 0, within.denominator, between.numerator or 0, between.denominator
        )
    return RunControl(within, between, p)
