"""What was served, beside what was generated from it, never in one figure; each wrong answer to its cause."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from annotate.models import Round
from calibration import stats
from calibration.extraction import runs_graded
from calibration.measures import Figures, verdict_words
from calibration.optional import CORRECT
from calibration.pairing import dimensions_of, run_names
from calibration.rates import Scope, optional_rates, said_by_people, sources_of
from evalsets.labels import GROUNDING, LABELS
from evalsets.models import EvalSetVersion, Item, Passage, Response, SystemRun

DEPTH = 5
LISTED = 50  # wrong answers that a page lists
BESIDE = ("context_relevance", "citation_recall", "citation_support")
SERVED_WELL = ("generator strayed",)


@dataclass(frozen=True)
class _Served:
    """One response: its item, its system, what it was served and how that scores."""

    response: int
    item: int
    run: int
    strata: Mapping[str, str]
    score: stats.RetrievalScore

    @property
    def had_everything(self) -> bool | None:
        """Whether all that was expected was served; None where nothing is expected."""
        if self.score.undefined:
            return None
        by_document = self.score.document_recall
        return not self.score.missing_passages and by_document in (None, 1.0)


@dataclass(frozen=True)
class Scored:
    """What some system runs served, scored at depth k: looked up once for all that rests on it."""

    k: int
    names: Mapping[int, str]
    responses: Sequence[_Served]


def scored(*, runs: Iterable[SystemRun], k: int = DEPTH) -> Scored:
    names = run_names(runs)
    return Scored(k, names, _served(list(names), k))


def retrieval_figures(found: Scored) -> Figures:
    """Expected-document recall, precision@k, recall@k and nDCG@k: of all, of each system and stratum."""
    names, served = found.names, found.responses
    strata = sorted({pair for one in served for pair in one.strata.items()})
    return _means(served) | {
        "k": found.k,
        "responses": len(served),
        "systems": list(names.values()),
        "per_system": [
            {"system": name} | _means([one for one in served if one.run == run])
            for run, name in names.items()
        ],
        "per_stratum": [
            {"name": name, "value": value} | _means([one for one in served if one.strata.get(name) == value])
            for name, value in strata
        ],
    }


def _means(served: Sequence[_Served]) -> Figures:
    means = stats.retrieval_means([one.score for one in served], clusters=[one.item for one in served])
    return {"n_responses": len(served), **means.as_dict()}


def _served(runs: list[int], k: int) -> list[_Served]:
    """Passages are looked up only of responses to items for which something is expected."""
    expected = _expected(runs)
    passages: dict[int, list[tuple[str, str | None]]] = {}
    rows = Passage.objects.filter(response__run__in=runs, response__item__in=list(expected))
    for response, name, document in rows.order_by("response", "rank").values_list(
        "response_id", "passage_id", "document"
    ):
        passages.setdefault(response, []).append((name, document))
    found = []
    responses = Response.objects.filter(run__in=runs).order_by("run__number", "position")
    for pk, item, run, strata in responses.values_list("pk", "item_id", "run_id", "item__strata"):
        got = passages.get(pk, [])
        wanted_passages, wanted_documents = expected.get(item, ((), ()))
        score = stats.retrieval_score(
            [name for name, _document in got],
            documents=[document for _name, document in got],
            expected_passages=wanted_passages,
            expected_documents=wanted_documents,
            k=k,
        )
        found.append(_Served(pk, item, run, strata, score))
    return found


def _expected(runs: list[int]) -> dict[int, tuple[list[str], list[str]]]:
    items = Item.objects.filter(responses__run__in=runs).distinct().order_by()
    rows = items.values_list("pk", "expected_passages", "expected_documents")
    return {
        pk: (passages or [], documents or []) for pk, passages, documents in rows if passages or documents
    }


# Whose fault


def wrong_answers(found: Scored, *, version: EvalSetVersion, round: Round | None, source: str) -> Figures:
    """Each wrong answer sorted: the retriever owes a passage, or the generator strayed from what it had.

    Wrong is an answer with a bad claim, or one that people call incorrect.
    """
    wrong = _wrong(version, round, source)
    by_run: dict[int, Counter[str]] = {run: Counter() for run in found.names}
    cases: list[Figures] = []
    for one in found.responses:
        if one.response not in wrong:
            continue
        owed = stats.who_owes(one.had_everything, True) or "no expectation recorded"
        by_run[one.run][owed] += 1
        cases.append({"response": one.response, "cause": owed, "missing": list(one.score.missing_passages)})
    total = sum(by_run.values(), Counter())
    return {
        "wrong": sum(total.values()),
        "by_cause": dict(total),
        "per_system": [
            {"system": found.names[run], "by_cause": dict(causes)} for run, causes in by_run.items()
        ],
        "cases": cases,
    }


def _wrong(version: EvalSetVersion, round: Round | None, source: str) -> set[int]:
    """The responses that answer, and of which this source says something bad."""
    correctness = {"correctness"} & set(dimensions_of(round))
    said = said_by_people(
        version=version, round=round, source=source, dimensions=[*LABELS, *sorted(correctness)]
    )
    claims, grounding = said["grounding"]
    bad_codes = [GROUNDING.index(label) for label in sorted(stats.BAD_LABELS)]
    wrong = set(claims.response[np.isin(grounding.codes, bad_codes)].tolist())
    if correctness:
        targets, column = said["correctness"]
        if set(targets.labels) <= CORRECT:
            words = column.words(targets.labels)
            wrong |= {
                target
                for target, word in zip(targets.target.tolist(), words, strict=True)
                if word == "incorrect"
            }
    responses, verdict = said["abstention"]
    spoken = dict(zip(responses.target.tolist(), verdict_words(responses, verdict), strict=True))
    return {response for response in wrong if spoken.get(response) in ("ANSWERED", None)}


def with_responses(cases: Sequence[Figures]) -> list[Figures]:
    """The first of the cases, those that a retriever owes before the rest, with the response itself."""
    order = sorted(cases, key=lambda case: (case["cause"] in SERVED_WELL, not case["missing"]))[:LISTED]
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
