"""Other label schemes in our words: RAGTruth's spans, and correctness x groundedness after Magesh et al."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_level, check_same_length, encode_clusters
from .intervals import share_of_runs
from .repeated import Flags, UnitMeans
from .results import Number

RAGTRUTH_TYPES: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "evident conflict": ("contradicted", False),
        "subtle conflict": ("contradicted", True),
        "evident baseless info": ("unsupported", False),
        "subtle baseless info": ("unsupported", True),
    }
)


@dataclass(frozen=True)
class SpanLabel:
    """A RAGTruth span in our words.

    Attributes
    ----------
    label : str
        contradicted or unsupported.
    subtle : bool
        RAGTruth's second axis, kept as an attribute.
    true_outside_source : bool
        RAGTruth's implicit_true: still unsupported, since grounding asks for the source.
    due_to_null : bool
        The span reads a missing value as a fact: a case for the rubric.
    """

    label: str
    subtle: bool
    true_outside_source: bool = False
    due_to_null: bool = False

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def explain(self) -> str:
        """The mapping in one plain sentence."""
        notes = [
            note
            for note, holds in (
                ("subtle", self.subtle),
                ("true outside the source", self.true_outside_source),
                ("a missing value read as a fact", self.due_to_null),
            )
            if holds
        ]
        return f"{self.label}{' (' + ', '.join(notes) + ')' if notes else ''}."


def ragtruth_span(label_type: str, *, implicit_true: bool = False, due_to_null: bool = False) -> SpanLabel:
    """Grounding label of a RAGTruth span.

    Parameters
    ----------
    label_type : str
        Evident or Subtle, Conflict or Baseless Info (any case; "Information" is accepted).
    implicit_true, due_to_null : bool
        RAGTruth's own flags of the span.

    Returns
    -------
    SpanLabel
        Conflict is contradicted, baseless is unsupported whether or not it is true in the world. RAGTruth
        has no source for unverifiable.

    References
    ----------
    Niu, C. et al. (2024). RAGTruth: a hallucination corpus for developing trustworthy retrieval-augmented
    language models. ACL.
    """
    key = " ".join(str(label_type).lower().replace("information", "info").split())
    if key not in RAGTRUTH_TYPES:
        raise ValueError(f"label_type must be one of RAGTruth's four types, got {label_type!r}")
    label, subtle = RAGTRUTH_TYPES[key]
    return SpanLabel(label, subtle, bool(implicit_true), bool(due_to_null))


def ragtruth_response(quality: str | None) -> tuple[str | None, str | None]:
    """Verdict of a response, or the reason to leave it out, from RAGTruth's quality mark.

    Parameters
    ----------
    quality : str or None
        good, incorrect_refusal or truncated.

    Returns
    -------
    tuple
        (verdict, reason): an incorrect refusal is REFUSED on an answerable question, a truncated response is
        left out with reason ``truncated``, a good one says nothing of either.

    References
    ----------
    Niu et al. (2024), see `ragtruth_span`.
    """
    known: dict[str | None, tuple[str | None, str | None]] = {
        None: (None, None),
        "good": (None, None),
        "incorrect_refusal": ("REFUSED", None),
        "truncated": (None, "truncated"),
    }
    if quality not in known:
        raise ValueError(f"quality must be good, incorrect_refusal or truncated, got {quality!r}")
    return known[quality]


def ragtruth_claim_labels(
    claims: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int, SpanLabel]]
) -> list[str]:
    """Labels of claims from the hallucinated spans of their response.

    Parameters
    ----------
    claims : sequence of (start, end)
        Character ranges of the claims, end exclusive.
    spans : sequence of (start, end, SpanLabel)
        Character ranges of the hallucinated spans.

    Returns
    -------
    list of str
        A claim that overlaps a bad span is bad (contradicted wins over unsupported), any other is supported.

    References
    ----------
    Niu et al. (2024), see `ragtruth_span`.
    """
    for name, ranges in (("claims", list(claims)), ("spans", [(first, last) for first, last, _ in spans])):
        for position, (first, last) in enumerate(ranges):
            if not 0 <= first <= last:
                raise ValueError(f"{name} holds the range {first}..{last} at index {position}")
    labels = []
    for start, end in claims:
        touching = {span.label for first, last, span in spans if first < end and start < last}
        labels.append(
            "contradicted" if "contradicted" in touching else "unsupported" if touching else "supported"
        )
    return labels


CORRECTNESS: tuple[str, ...] = ("correct", "incorrect", "refusal", "neither")
GROUNDEDNESS: tuple[str, ...] = ("grounded", "misgrounded", "ungrounded")


@dataclass(frozen=True)
class MageshRates:
    """Correctness x groundedness of responses.

    Attributes
    ----------
    hallucinated : Number
        Incorrect or misgrounded.
    accurate : Number
        Correct and grounded.
    wrong : Number
        Incorrect, however grounded.
    misgrounded : Number
        Correct, but the cited source does not support it.
    ungrounded : Number
        Correct, without a source.
    declined : Number
        Refusal.
    neither : Number
        No answer and no refusal: a response that asks back, or an empty one.
    """

    hallucinated: Number
    accurate: Number
    wrong: Number
    misgrounded: Number
    ungrounded: Number
    declined: Number
    neither: Number

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).as_dict() for name in self.__dataclass_fields__}

    def explain(self) -> str:
        """The three buckets in one plain sentence."""
        counts = [f"{number.numerator or 0:g}" for number in (self.wrong, self.misgrounded, self.declined)]
        return (
            f"Of {self.wrong.denominator or 0:g} responses {counts[0]} are wrong, {counts[1]} right but "
            f"misgrounded and {counts[2]} declined."
        )


def magesh_rates(
    correctness: Sequence[Any], groundedness: Sequence[Any], *, clusters: Any = None, level: float = 0.95
) -> MageshRates:
    r"""Buckets of correctness and groundedness: wrong, right but misgrounded, declined.

    .. math:: \text{hallucinated} = \text{incorrect} \lor \text{misgrounded}

    Parameters
    ----------
    correctness : sequence, shape (n,), or array, shape (n, runs)
        correct, incorrect or refusal; "neither" for a response that asks back or is empty: it is in every
        denominator and in no other bucket. None is missing. Labels of several runs count as their mean.
    groundedness : sequence, shape (n,), or array, shape (n, runs)
        grounded, misgrounded or ungrounded; it may be None where there is no correct answer.
    clusters : sequence, shape (n,), optional
        Item of each response.
    level : float
        Confidence level.

    Returns
    -------
    MageshRates
        Shares of all labelled responses, in [0, 1]; a correct response without a groundedness label is left
        out and counted, like one without any label.

    References
    ----------
    Magesh, V. et al. (2025). Hallucination-free? Assessing the reliability of leading AI legal research
    tools. J. Empirical Legal Studies 22.
    """
    check_level(level)
    n = check_same_length(correctness=correctness, groundedness=groundedness, clusters=clusters)
    right = _words(correctness, CORRECTNESS, "correctness")
    ground = _words(groundedness, GROUNDEDNESS, "groundedness")
    if right.shape != ground.shape:
        raise ValueError(f"correctness has {right.shape[1]} runs and groundedness {ground.shape[1]}")
    codes, number = encode_clusters(clusters, n)
    correct, wrong, declined = right == "correct", right == "incorrect", right == "refusal"
    known = (right != "") & ~(correct & (ground == ""))
    unlabelled = int((right == "").all(axis=1).sum())

    def rate(chosen: Flags, label: str, key: str) -> Number:
        return share_of_runs(
            UnitMeans.over(chosen, known, known),
            codes,
            number,
            level=level,
            label=label,
            unit="response",
            definition=f"magesh-rates-{key}",
            excluded={
                "unlabelled": unlabelled,
                "no_groundedness": int((~known.any(axis=1)).sum()) - unlabelled,
            },
        )

    misgrounded = (ground == "misgrounded") & ~declined
    return MageshRates(
        hallucinated=rate(wrong | misgrounded, "Hallucinated (incorrect or misgrounded)", "hallucinated"),
        accurate=rate(correct & (ground == "grounded"), "Accurate (correct and grounded)", "accurate"),
        wrong=rate(wrong, "Wrong", "wrong"),
        misgrounded=rate(correct & misgrounded, "Right but misgrounded", "misgrounded"),
        ungrounded=rate(correct & (ground == "ungrounded"), "Right without a source", "ungrounded"),
        declined=rate(declined, "Declined", "declined"),
        neither=rate(right == "neither", "Neither an answer nor a refusal", "neither"),
    )


def _words(values: Any, allowed: tuple[str, ...], name: str) -> NDArray[Any]:
    """Responses x runs; "" where there is no label."""
    table = values if isinstance(values, np.ndarray) and values.ndim == 2 else None
    words = list(values) if table is None else table.ravel().tolist()
    for position, value in enumerate(words):
        if value is not None and value not in allowed:
            raise ValueError(f"{name} holds {value!r} at index {position}, which is not one of {allowed}")
    found = np.array(["" if value is None else value for value in words], dtype=object)
    return found.reshape((len(words), 1) if table is None else table.shape)
