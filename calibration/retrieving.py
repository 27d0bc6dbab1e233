"""What was served, beside what was generated from it, never in one figure; each wrong answer to its cause."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, overload

import numpy as np
from django.db.models import Q
from numpy.typing import NDArray

from annotate.models import Round
from calibration import stats
from calibration.columns import json_columns
from calibration.extraction import runs_graded
from calibration.measures import Figures
from calibration.optional import CORRECT
from calibration.pairing import dimensions_of, targets_of
from calibration.rates import Scope, optional_rates, said_by_people, sources_of
from calibration.stats.retrieval import RetrievalScores, retrieval_scores
from calibration.table import Ints, Mask, Table, Targets, row_of
from evalsets.labels import ABSTENTION, GROUNDING, LABELS
from evalsets.models import EvalSetVersion, Item, Passage, Response, SystemRun

DEPTH = 5
LISTED = 50  # wrong answers that a page lists
BESIDE = ("context_relevance", "citation_recall", "citation_support")
SERVED_WELL = ("generator strayed",)


@dataclass(frozen=True)
class Scored:
    """What some system runs served, scored at depth k: looked up once for all that rests on it."""

    k: int
    responses: Targets
    scores: RetrievalScores
    passages: Sequence[str]  # the name of each that `scores` counts as missing, by its number

    def missing(self, row: int) -> list[str]:
        """The expected passages that one of these responses was not served."""
        rows, passages = self.scores.missing
        first, last = np.searchsorted(rows, [row, row + 1])
        return [self.passages[passage] for passage in passages[first:last].tolist()]


class Cases(Sequence[Figures]):
    """Wrong answers, each made when it is asked for: there may be tens of thousands."""

    def __init__(self, found: Scored, rows: Ints, cause: NDArray[np.object_]) -> None:
        self.found, self.rows, self.cause = found, rows, cause

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Figures: ...
    @overload
    def __getitem__(self, place: slice) -> list[Figures]: ...
    def __getitem__(self, place: int | slice) -> Figures | list[Figures]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        row = int(self.rows[place])
        response = int(self.found.responses.target[row])
        return {"response": response, "cause": self.cause[place], "missing": self.found.missing(row)}

    def first(self, number: int) -> list[Figures]:
        """Those that a retriever owes before the rest."""
        lacking = np.isin(self.rows, self.found.scores.missing[0])
        order = np.lexsort((~lacking, np.isin(self.cause, SERVED_WELL)))
        return [self[place] for place in order[:number].tolist()]


def scored(*, runs: Iterable[SystemRun], k: int = DEPTH) -> Scored:
    """Passages are looked up only of responses to items for which something is expected."""
    runs = list(runs)
    responses = targets_of(runs=runs, dimension="abstention")
    versions = {run.version_id for run in runs}
    recorded = Q(expected_passages__isnull=False) | Q(expected_documents__isnull=False)
    item, passages_of, documents_of = json_columns(
        Item.objects.filter(recorded, version__in=versions).order_by(),
        "pk",
        "expected_passages",
        "expected_documents",
    )
    expectation = row_of(np.array(item, dtype=np.int64), responses.item)
    response, rank, served, document = json_columns(
        Passage.objects.filter(
            Q(response__item__expected_passages__isnull=False)
            | Q(response__item__expected_documents__isnull=False),
            response__run__in=runs,
        ).order_by(),
        "response_id",
        "rank",
        "passage_id",
        "document",
    )
    row = row_of(responses.target, np.array(response, dtype=np.int64))
    order = np.lexsort((np.array(rank, dtype=np.int64), row))
    wanted, wanted_documents = _named(passages_of), _named(documents_of)
    passage_code = _numbered(chain(wanted[1], served))
    document_code = _numbered(chain(wanted_documents[1], document))
    scores = retrieval_scores(
        np.where(expectation < 0, len(item), expectation),
        served=(row[order], _codes(served, passage_code)[order], _codes(document, document_code)[order]),
        expected_passages=(wanted[0], _codes(wanted[1], passage_code)),
        expected_documents=(wanted_documents[0], _codes(wanted_documents[1], document_code)),
        k=k,
    )
    return Scored(k, responses, scores, list(passage_code))


def _named(lists: Sequence[list[str] | None]) -> tuple[Ints, list[str]]:
    """What the lists hold, and which of them holds it."""
    lengths = [len(names or ()) for names in lists]
    return np.repeat(np.arange(len(lists)), lengths), [name for names in lists for name in names or ()]


def _numbered(names: Iterable[Any]) -> dict[Any, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _codes(names: Sequence[str | None], code_of: Mapping[Any, int]) -> Ints:
    return np.fromiter(map(code_of.__getitem__, names), dtype=np.int64, count=len(names))


def retrieval_figures(found: Scored) -> Figures:
    """Expected-document recall, precision@k, recall@k and nDCG@k: of all, of each system and stratum."""
    table = Table(found.responses)
    return _means(found) | {
        "k": found.k,
        "responses": len(table),
        "systems": list(found.responses.run_names.values()),
        "per_system": [{"system": one.value} | _means(found, one.mask) for one in table.by_system()],
        "per_stratum": [
            {"name": one.name, "value": one.value} | _means(found, one.mask) for one in table.by_stratum()
        ],
    }


def _means(found: Scored, mask: Mask | None = None) -> Figures:
    scores, items = found.scores, found.responses.item
    if mask is not None:
        scores, items = scores.select(mask), items[mask]
    means = stats.retrieval_means(scores, clusters=items)
    return {"n_responses": len(scores), **means.as_dict()}


# Whose fault


def wrong_answers(found: Scored, *, version: EvalSetVersion, round: Round | None, source: str) -> Figures:
    """Each wrong answer sorted: the retriever owes a passage, or the generator strayed from what it had.

    Wrong is an answer with a bad claim, or one that people call incorrect.
    """
    responses = found.responses
    wrong = np.isin(responses.target, _wrong(version, round, source))
    unknown, owed, strayed = (
        stats.who_owes(had_everything, True) or "no expectation recorded"
        for had_everything in (None, False, True)
    )
    had_everything = np.where(found.scores.had_everything, strayed, owed)
    cause = np.where(found.scores.scored, had_everything, unknown).astype(object)
    by_run = {
        name: Counter(cause[wrong & (responses.run == run)].tolist())
        for run, name in responses.run_names.items()
    }
    total = sum(by_run.values(), Counter())
    rows = np.flatnonzero(wrong)
    return {
        "wrong": sum(total.values()),
        "by_cause": dict(total),
        "per_system": [{"system": name, "by_cause": dict(causes)} for name, causes in by_run.items()],
        "cases": Cases(found, rows, cause[rows]),
    }


def _wrong(version: EvalSetVersion, round: Round | None, source: str) -> Ints:
    """The responses that answer, and of which this source says something bad."""
    correctness = {"correctness"} & set(dimensions_of(round))
    said = said_by_people(
        version=version, round=round, source=source, dimensions=[*LABELS, *sorted(correctness)]
    )
    claims, grounding = said["grounding"]
    bad_codes = [GROUNDING.index(label) for label in sorted(stats.BAD_LABELS)]
    wrong = claims.response[np.isin(grounding.codes, bad_codes)]
    if correctness:
        targets, column = said["correctness"]
        if set(targets.labels) <= CORRECT:
            incorrect = [code for code, label in enumerate(targets.labels) if label == "incorrect"]
            wrong = np.concatenate([wrong, targets.target[np.isin(column.codes, incorrect)]])
    responses, verdict = said["abstention"]
    other = verdict.has & (verdict.codes != ABSTENTION.index("ANSWERED"))
    return np.setdiff1d(wrong, responses.target[responses.empty | other])


def with_responses(cases: Cases) -> list[Figures]:
    """The first of the cases, those that a retriever owes before the rest, with the response itself."""
    order = cases.first(LISTED)
    responses = Response.objects.select_related("item", "run__system").in_bulk(
        [case["response"] for case in order]
    )
    return [case | {"response": responses[case["response"]]} for case in order]


def with_response_names(cases: Sequence[Figures]) -> list[Figures]:
    """The cases in their order, each with the id that its response has in the file."""
    found = Response.objects.only("response_id").in_bulk([case["response"] for case in cases])
    return [case | {"response": found[case["response"]].response_id} for case in cases]


# What people say of the passages and citations


def relevance(*, version: EvalSetVersion, round: Round | None, source: str) -> list[Figures]:
    """Context relevance, citation recall and precision, where the rubric asks for them."""
    asked = [name for name in dimensions_of(round) if name in BESIDE]
    if not asked:
        return []
    runs = runs_graded(version, round)
    said = said_by_people(version=version, round=round, source=source, dimensions=asked)
    sources = sources_of(said, version, runs)
    everything = frozenset(run.pk for run in runs)
    scope = Scope(counted=everything, shown=everything)
    return optional_rates(said, sources, lambda _needs: scope)
