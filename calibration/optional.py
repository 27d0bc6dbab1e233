"""Figures of a rubric's optional dimensions, and of what several dimensions say together.

Each figure is a few numbers over one whole, in one unit. It needs certain dimensions, so that whoever may not
show one of them knows which figures that closes. No database and no framework here.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibration import stats
from calibration.measures import Figures
from calibration.rate_measures import verdict_words
from calibration.stats.arrays import encode_clusters
from calibration.stats.intervals import share_of_runs
from calibration.stats.mappings import RAGTRUTH_TYPES
from calibration.stats.repeated import UnitMeans
from calibration.table import Column, Mask, Targets, reason_counts
from evalsets.labels import EMPTY, LABELS

Said = Mapping[str, tuple[Targets, Column]]  # dimension -> its targets and what one source says of them
Numbers = list[Figures]
NOT_MISSING = {"not_asked", "part_of_split", "split", "empty_response"}  # nobody should have labelled these

CORRECT = {"correct", "incorrect"}
GROUNDED = {"grounded", "misgrounded", "ungrounded"}
RELEVANT = {"decision-relevant", "not decision-relevant"}
FULLY = "fully supported"
FULL, PARTIAL, NO_SUPPORT = "full support", "partial support", "no support"
INFORMATIVE = "informative"


class Claimless(NamedTuple):
    """A response without a claim: no target of a dimension of claims tells of it."""

    response: int
    item: int
    run: int


@dataclass(frozen=True)
class Sources:
    """What else a figure needs to know of the responses."""

    cites: Mapping[int, Sequence[int | None]] = field(default_factory=dict)  # None: it was not served
    with_reference: Collection[int] = frozenset()  # items
    claimless: Sequence[Claimless] = ()

    def of_runs(self, runs: Collection[int]) -> "Sources":
        return replace(self, claimless=[one for one in self.claimless if one.run in runs])

    def of_items(self, items: Collection[int]) -> "Sources":
        return replace(self, claimless=[one for one in self.claimless if one.item in items])


@dataclass(frozen=True)
class Figure:
    """A figure: what it is called, which dimensions it needs, and what to count."""

    name: str
    needs: tuple[str, ...]
    numbers: Callable[[Said, Sources], Numbers]  # of what is said in those dimensions and in no other


def figures_for(said: Said, sources: Sources) -> list[Figure]:
    """The figures that these dimensions give, the rubric's own dimensions first."""
    return [*_of_dimensions(said), *(figure for figure in TOGETHER if _is_given(figure, said, sources))]


def of_runs(said: Said, runs: Collection[int]) -> dict[str, tuple[Targets, Column]]:
    return within(said, lambda targets: np.isin(targets.run, list(runs)))


def of_items(said: Said, items: Collection[int]) -> dict[str, tuple[Targets, Column]]:
    return within(said, lambda targets: np.isin(targets.item, list(items)))


def within(said: Said, mask_of: Callable[[Targets], Mask]) -> dict[str, tuple[Targets, Column]]:
    """The same, of some targets only."""
    parts = {name: (targets, mask_of(targets)) for name, (targets, _column) in said.items()}
    return {name: (t.select(mask), said[name][1].select(mask)) for name, (t, mask) in parts.items()}


def informative_of(said: Said) -> list[bool | None] | None:
    """Of each response whether its refusal is informative; None where the rubric does not ask."""
    if "refusal_informativeness" not in said:
        return None
    targets, column = said["refusal_informativeness"]
    words = column.words(targets.labels)
    return [None if word is None else word == INFORMATIVE for word in words]


def _of_dimensions(said: Said) -> Iterator[Figure]:
    for name in said:
        if name not in LABELS:
            yield Figure(name, (name,), _label_shares)


def _label_shares(said: Said, _sources: Sources) -> Numbers:
    ((targets, column),) = said.values()
    never, reasons = column.never_said(), column.reasons()
    shares = stats.label_shares(
        column.runs,
        labels=targets.labels,
        clusters=targets.item,
        unit=targets.unit,
        excluded=reason_counts(column.why[never]),
        owed=np.array([reason not in NOT_MISSING for reason in reasons], dtype=bool),
    )
    return [entry.share.as_dict() for entry in shares]


def _runs_of(said: Said) -> list[Said]:
    """What is said in each run by itself: call with call, where several dimensions were asked repeatedly.

    What was asked once holds in every run. Of unequal numbers of repeats, the calls that all have count.
    """
    asked = [column.repeats.shape[1] for _, column in said.values() if column.repeats is not None]
    return [
        {name: (targets, column.run(number)) for name, (targets, column) in said.items()}
        for number in range(min(asked, default=1))
    ]


def _over_runs(rows: Iterable[Sequence[Any]]) -> NDArray[Any]:
    """Of one list a run: targets x runs."""
    return np.array([*rows], dtype=object).T


def _is_given(figure: Figure, said: Said, sources: Sources) -> bool:
    if not set(figure.needs) <= set(said):
        return False
    known = all(set(said[name][0].labels) <= words for name, words in _WORDS.items() if name in figure.needs)
    return known and (figure.name != REFERENCE or bool(sources.with_reference))


_WORDS = {
    "correctness": CORRECT,
    "groundedness": GROUNDED,
    "decision_relevance": RELEVANT,
    "citation_recall": {FULLY, "not fully supported"},
    "citation_support": {FULL, PARTIAL, NO_SUPPORT},
    "hallucination_type": set(RAGTRUTH_TYPES),
}


# Correctness x groundedness


def _buckets(said: Said, _sources: Sources) -> Numbers:
    responses, _verdict = said["abstention"]
    right, grounded = zip(*(_bucket_labels(one) for one in _runs_of(said)), strict=True)
    rates = stats.magesh_rates(_over_runs(right), _over_runs(grounded), clusters=responses.item)
    order = ("accurate", "wrong", "misgrounded", "ungrounded", "declined", "neither", "hallucinated")
    return [getattr(rates, name).as_dict() for name in order]


def _bucket_labels(said: Said) -> tuple[list[str | None], list[str | None]]:
    responses, verdict = said["abstention"]
    correctness, groundedness = (_by_target(said[name]) for name in ("correctness", "groundedness"))
    right = [
        _correctness(word, correctness.get(target))
        for target, word in zip(responses.target.tolist(), verdict_words(responses, verdict), strict=True)
    ]
    return right, [groundedness.get(target) for target in responses.target.tolist()]


def _correctness(verdict: str | None, label: str | None) -> str | None:
    if verdict == "REFUSED":
        return "refusal"
    return "neither" if verdict in ("CLARIFY", EMPTY) else label


def _buckets_with_reference(said: Said, sources: Sources) -> Numbers:
    return _buckets(of_items(said, sources.with_reference), sources)


def _by_target(spoken: tuple[Targets, Column]) -> dict[Any, str]:
    targets, column = spoken
    words = column.words(targets.labels)
    return {key: word for key, word in zip(targets.keys(), words, strict=True) if word is not None}


# Claims


def _decision_rate(said: Said, _sources: Sources) -> Numbers:
    """Bad among the checkable claims that matter to a decision, by what was said of both."""
    claims, _grounding = said["grounding"]
    pairs = [_relevance_and_label(one) for one in _runs_of(said)]
    relevant, words = (_over_runs(column) for column in zip(*pairs, strict=True))
    matters = relevant == "decision-relevant"
    bad, unverifiable = np.isin(words, list(stats.BAD_LABELS)), words == "unverifiable"
    labelled, decided = words != None, relevant != None  # noqa: E711  (one by one, in an array)
    known = decided & (labelled | ~matters)

    def mean_count(flags: Mask) -> float:
        return float(UnitMeans.over(flags, flags, known).denominator.sum())

    excluded = {
        "no_relevance": int((~decided).all(axis=1).sum()),
        "not_decision_critical": mean_count(relevant == "not decision-relevant"),
        "unverifiable": mean_count(matters & unverifiable),
        "unlabelled": int((decided.any(axis=1) & ~known.any(axis=1)).sum()),
    }
    rate = share_of_runs(
        UnitMeans.over(matters & bad, matters & ~unverifiable, known),
        *encode_clusters(claims.item, len(claims)),
        owed=decided.any(axis=1),
        label="Hallucination rate of decision-relevant claims",
        unit="decision",
        excluded={reason: count for reason, count in excluded.items() if count},
        definition="hallucination-rates-hallucination",
    )
    return [rate.as_dict()]


def _relevance_and_label(said: Said) -> tuple[list[str | None], list[str | None]]:
    claims, grounding = said["grounding"]
    relevance = _by_target(said["decision_relevance"])
    relevant = [relevance.get(target) for target in claims.target.tolist()]
    return relevant, grounding.words(LABELS["grounding"])


def _types(said: Said, _sources: Sources) -> Numbers:
    """The two axes of the four types: what is easily missed, and what contradicts."""
    targets, column = said["hallucination_type"]
    spans = [stats.ragtruth_span(word) for word in targets.labels]
    labelled = column.runs >= 0

    def share(chosen: list[bool], label: str) -> Figures:
        hit = np.array([*chosen, False], dtype=bool)[column.runs]
        return share_of_runs(
            UnitMeans.over(hit, labelled, labelled),
            *encode_clusters(targets.item, len(targets)),
            label=label,
            unit=targets.unit,
            excluded=reason_counts(column.why[column.never_said()]),
            definition="ragtruth-span",
        ).as_dict()

    return [
        share([span.subtle for span in spans], "Subtle, of either kind"),
        share([span.label == "contradicted" for span in spans], "Conflict, of any kind"),
    ]


# Citations


def _citations(said: Said, sources: Sources) -> Numbers:
    """Citation recall and precision by labels; a response with an open one, or with no claim, is left out.

    People say of each cited passage how much it supports by itself. The others are taken to suffice without
    it where one of them supports all, or where it supports nothing.
    """
    scored, items, names = [], [], []
    claims, _recall = said["citation_recall"]
    for one in _runs_of(said):
        for response, item, statements in _cited_responses(one, sources):
            scored.append(stats.CitedResponse(statements, SERVED))
            items.append(item)
            names.append(response)
    open_ones = len(np.unique(claims.response)) - len(set(names))
    for absent in sources.claimless:
        scored.append(stats.CitedResponse((), SERVED))
        items.append(absent.item)
        names.append(absent.response)
    scores = stats.citation_scores(scored, clusters=items, repeats_of=names)
    return [
        replace(number, excluded={**number.excluded, "unlabelled_claims": open_ones}).as_dict()
        for number in (scores.recall, scores.precision)
    ]


def _cited_responses(said: Said, sources: Sources) -> Iterator[tuple[int, int, tuple[stats.Statement, ...]]]:
    """Response, item and statements of each response without an open label."""
    claims, _recall = said["citation_recall"]
    joint, support = _by_target(said["citation_recall"]), _by_target(said["citation_support"])
    of_response: dict[int, list[int]] = {}
    for claim, response in zip(claims.target.tolist(), claims.response.tolist(), strict=True):
        of_response.setdefault(response, []).append(claim)
    item_of = dict(zip(claims.response.tolist(), claims.item.tolist(), strict=True))
    for response, numbers in of_response.items():
        statements = [_statement(claim, sources.cites.get(claim, ()), joint, support) for claim in numbers]
        if None not in statements:
            yield response, item_of[response], tuple(s for s in statements if s)


SERVED = 10_000  # citations are numbered within their claim, what was not served beyond every number


def _statement(
    claim: int,
    cites: Sequence[int | None],
    joint: Mapping[int, str],
    support: Mapping[tuple[int, int], str],
) -> stats.Statement | None:
    """A claim with its citations; None where a label is open that decides about them."""
    numbers = tuple(SERVED + 1 if passage is None else n for n, passage in enumerate(cites, 1))
    if not numbers or None in cites:
        return stats.Statement(numbers)
    if claim not in joint:
        return None
    if joint[claim] != FULLY or len(numbers) == 1:
        return stats.Statement(numbers, joint[claim] == FULLY)
    said = [support.get((claim, passage)) for passage in cites if passage is not None]
    if None in said:
        return None
    alone = {n: word == FULL for n, word in enumerate(said, 1)}
    rest = {
        n: word == NO_SUPPORT or any(full for other, full in alone.items() if other != n)
        for n, word in enumerate(said, 1)
    }
    return stats.Statement(numbers, True, alone, rest)


BUCKETS, REFERENCE = "correctness_and_groundedness", "correctness_against_reference"
TOGETHER = (
    Figure(BUCKETS, ("abstention", "correctness", "groundedness"), _buckets),
    Figure(REFERENCE, ("abstention", "correctness", "groundedness"), _buckets_with_reference),
    Figure("hallucination_axes", ("hallucination_type",), _types),
    Figure("decision_hallucination", ("grounding", "decision_relevance"), _decision_rate),
    Figure("citation_scores", ("citation_recall", "citation_support"), _citations),
)
