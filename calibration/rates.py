"""Rates by one source of labels. What a judge says is shown by `reports` only, behind its gate."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from django.db.models import Exists, OuterRef

from annotate.models import Annotation, Assignment, Grader, Round
from calibration.extraction import runs_graded
from calibration.levers import Setting
from calibration.measures import Figures
from calibration.models import JudgeRun
from calibration.optional import (
    Claimless,
    Figure,
    Said,
    Sources,
    figures_for,
    informative_of,
    of_items,
    of_runs,
)
from calibration.pairing import column_said, dimensions_of, judge_column, run_names, targets_of
from calibration.rate_measures import Companions, rates_of, repeats_behind
from calibration.table import Column, Ints, Table, Targets, nobody
from evalsets.labels import LABELS
from evalsets.models import Claim, EvalSetVersion, Passage, Response, SystemRun

REVIEWED = 50  # responses of the review queue that a page lists


def human_rates(
    *,
    version: EvalSetVersion,
    round: Round | None,
    source: str,
    unit: str,
    dimensions: Iterable[str] = tuple(LABELS),
    strata: bool = True,
) -> Figures:
    """Rates by what people said; `source` is gold or grader:NAME."""
    said = said_by_people(version=version, round=round, source=source, dimensions=LABELS)
    return _rates_of(said, unit=unit, dimensions=dimensions, strata=strata)


def human_figures(*, version: EvalSetVersion, round: Round | None, source: str, unit: str) -> Figures:
    """The same with everything else that people said: the optional dimensions of the round's rubric."""
    optional = [name for name in dimensions_of(round) if name not in LABELS]
    said = said_by_people(version=version, round=round, source=source, dimensions=[*LABELS, *optional])
    figures = _rates_of(said, unit=unit)
    if not optional:
        return figures
    everything = frozenset(said["abstention"][0].run_names)
    runs = SystemRun.objects.filter(pk__in=everything)
    scope = Scope(counted=everything, shown=everything)
    return figures | {"optional": optional_rates(said, sources_of(said, version, runs), lambda _needs: scope)}


def said_by_people(
    *, version: EvalSetVersion, round: Round | None, source: str, dimensions: Iterable[str]
) -> dict[str, tuple[Targets, Column]]:
    """What gold or one grader says: of a split claim, of its parts."""
    return {
        dimension: of_leaves(*column_said(version=version, round=round, dimension=dimension, source=source))
        for dimension in dimensions
    }


def _rates_of(
    said: Said, *, unit: str, dimensions: Iterable[str] = tuple(LABELS), strata: bool = True
) -> Figures:
    (claims, grounding), (responses, abstention) = said["grounding"], said["abstention"]
    figures = rates_of(
        claims=Table(claims),
        responses=Table(responses),
        said=grounding,
        verdict=abstention,
        unit=unit,
        dimensions=dimensions,
        companions=companions_of(responses, informative_of(said)),
        strata=strata,
    )
    return with_response_ids(figures)


def companions_of(responses: Targets, informative: Sequence[bool | None] | None = None) -> Companions:
    """Length and repeat of each response; a frozen run never changes, so it is counted once."""
    runs = SystemRun.objects.filter(pk__in=list(responses.run_names)).values_list("pk", "content_hash")
    counted = [(_counted_once if content_hash else _counted)(run, content_hash) for run, content_hash in runs]
    pks, samples, words = np.concatenate([np.zeros((3, 0), dtype=np.int64), *counted], axis=1)
    order = np.argsort(pks)
    at = order[np.searchsorted(pks, responses.target, sorter=order)]
    return Companions(words=words[at], sample=samples[at], informative=informative)


def _counted(run: int, _content_hash: str) -> Ints:
    """Rows: the responses of a run, which repeat each is, and its words."""
    rows = Response.objects.filter(run=run).order_by().values_list("pk", "sample", "text")
    found = [(pk, sample, len(text.split())) for pk, sample, text in rows.iterator(chunk_size=2000)]
    return np.array(found, dtype=np.int64).reshape(-1, 3).T


_counted_once = lru_cache(maxsize=64)(_counted)
forget_lengths = _counted_once.cache_clear


def grader_names(round: Round | None) -> list[str]:
    """The graders that a rate may be asked for by name."""
    if round is None:
        return []
    # A join with both at once would pair every label of a grader with each of their assignments.
    labelled, assigned = (
        model.objects.filter(round=round, grader=OuterRef("pk")) for model in (Annotation, Assignment)
    )
    graders = Grader.objects.filter(Exists(labelled) | Exists(assigned), evalset__versions=round.version_id)
    return list(graders.order_by("number").values_list("name", flat=True))


def with_response_ids(figures: Figures) -> Figures:
    """The responses that somebody should look at, by the names that the file gave them."""
    wanted = figures.get("review_queue", [])
    names = dict(Response.objects.filter(pk__in=wanted).values_list("pk", "response_id"))
    groups = (*figures["per_system"], *figures["per_stratum"], *figures.get("per_sample", ()))
    for part in (figures, *groups):
        if "review_queue" in part:
            part["review_queue"] = [names[pk] for pk in part["review_queue"]]
    return figures


def settings_of(version: EvalSetVersion, round: Round | None, figures: Figures) -> dict[str, Setting]:
    """Of each system in the figures what it was made with, by the name it has there."""
    runs = runs_graded(version, round)
    if "judge_run" in figures:
        judge_run = JudgeRun.objects.get(version=version, number=figures["judge_run"])
        runs = list(judge_run.system_runs.select_related("system").order_by("number"))
    return {
        name: Setting(run.system.model or "", run.system.provider, run.system.settings)
        for run, name in zip(runs, run_names(runs).values(), strict=True)
    }


def review_responses(version: EvalSetVersion, figures: Figures) -> list[Response]:
    """Answers in which no claim was found, and empty responses: the first of them."""
    wanted = figures.get("review_queue", [])[:REVIEWED]
    return list(Response.objects.filter(version=version, response_id__in=wanted).order_by("position"))


@dataclass(frozen=True)
class Answers:
    """A judge's run over abstention, and the system runs of which it may tell which responses are answers."""

    judge_run: JudgeRun
    runs: frozenset[int]


def rates_of_judge_run(
    *,
    judge_run: JudgeRun,
    dimension: str,
    unit: str,
    runs: Sequence[SystemRun],
    answers: Answers | None = None,
) -> Figures:
    """What the judge's verdicts give in one dimension, over these of the runs it judged. Not for a page.

    With `answers`, grounding knows which responses without a claim are answers all the same.
    """
    said = {name: _said(targets_of(runs=runs, dimension=name), judge_run, dimension) for name in LABELS}
    said["grounding"] = of_leaves(*said["grounding"])
    if answers and dimension == "grounding":
        responses = said["abstention"][0]
        closed = ~np.isin(responses.run, sorted(answers.runs))
        verdict = judge_column(targets=responses, judge_run=answers.judge_run)
        said["abstention"] = (responses, verdict.run(0).hide(closed, "not_judged"))
    return _rates_of(said, unit=unit, dimensions=(dimension,))


def said_by_judge(
    *, judge_run: JudgeRun, dimension: str, runs: Sequence[SystemRun]
) -> tuple[Targets, Column]:
    """The verdicts on these runs, with what they are about. Not for a page."""
    optional = None
    if dimension not in LABELS:
        assert judge_run.rubric_version is not None
        optional = judge_run.rubric_version.dimensions.get(name=dimension)
    targets = targets_of(runs=runs, dimension=dimension, optional=optional)
    return of_leaves(targets, judge_column(targets=targets, judge_run=judge_run))


def of_leaves(targets: Targets, column: Column) -> tuple[Targets, Column]:
    return targets.select(targets.leaf), column.select(targets.leaf)


def _said(targets: Targets, judge_run: JudgeRun, dimension: str) -> tuple[Targets, Column]:
    if targets.dimension != dimension:
        return targets, nobody(targets, judge_run.judge.name, "judge", "not_judged")
    return targets, judge_column(targets=targets, judge_run=judge_run)


# Optional dimensions


@dataclass(frozen=True)
class Scope:
    """Which system runs a figure may count, which it may show apart, and which strata would tell others."""

    counted: Collection[int]
    shown: Collection[int]
    telling: Collection[str] = ()


def optional_rates(
    said: Said, sources: Sources, scope_of: Callable[[tuple[str, ...]], Scope]
) -> list[Figures]:
    """Every figure of the optional dimensions: over all that may be counted, by system and by stratum."""
    return [
        _optional_entry(figure, {name: said[name] for name in figure.needs}, sources, scope_of(figure.needs))
        for figure in figures_for(said, sources)
    ]


def _optional_entry(figure: Figure, said: Said, sources: Sources, scope: Scope) -> Figures:
    said, sources = of_runs(said, scope.counted), sources.of_runs(scope.counted)
    targets = said[figure.needs[0]][0]
    repeats: Figures = {}
    for name, (_targets, column) in said.items():
        repeats |= repeats_behind(name, column).get("repeats", {})
    return {
        **({"repeats": repeats} if repeats else {}),
        "name": figure.name,
        "dimensions": list(figure.needs),
        "numbers": figure.numbers(said, sources),
        "per_system": [
            {
                "system": name,
                "numbers": figure.numbers(of_runs(said, [run]), sources.of_runs([run])),
            }
            if run in scope.shown
            else {"system": name}
            for run, name in targets.run_names.items()
            if run in scope.counted
        ],
        "per_stratum": [
            {
                "name": name,
                "value": value,
                "numbers": figure.numbers(of_items(said, items), sources.of_items(items)),
            }
            for (name, value), items in _items_by_stratum(targets).items()
            if name not in scope.telling
        ],
    }


def _items_by_stratum(targets: Targets) -> dict[tuple[str, str], list[int]]:
    """All items of each stratum in which there is a target."""
    present = set(np.unique(targets.item).tolist())
    found: dict[tuple[str, str], list[int]] = {}
    for item, facts in targets.item_facts.items():
        for stratum in facts["strata"].items():
            found.setdefault(stratum, []).append(item)
    return {stratum: items for stratum, items in sorted(found.items()) if not present.isdisjoint(items)}


def sources_of(said: Said, version: EvalSetVersion, runs: Iterable[SystemRun]) -> Sources:
    """What the optional figures want to know beside the labels, looked up only where one asks for it."""
    runs = list(runs)
    scores_citations = {"citation_recall", "citation_support"} <= set(said)
    return Sources(
        cites=_cites(runs) if scores_citations else {},
        claimless=_claimless(runs) if scores_citations else (),
        with_reference=_items_with_reference(version) if "correctness" in said else frozenset(),
    )


def _cites(runs: Sequence[SystemRun]) -> dict[int, tuple[int | None, ...]]:
    """Of each claim the passages it cites, in order; None where the response was not served it."""
    served: dict[tuple[int, str], int] = {}
    passages = Passage.objects.filter(response__run__in=runs).order_by("response", "-rank")
    for response, name, pk in passages.values_list("response_id", "passage_id", "pk"):
        served[response, name] = pk
    claims = Claim.objects.filter(response__run__in=runs).order_by()
    return {
        claim: tuple(served.get((response, name)) for name in dict.fromkeys(own or whole or ()))
        for claim, response, own, whole in claims.values_list(
            "pk", "response_id", "source_ids", "parent__source_ids"
        )
    }


def _claimless(runs: Sequence[SystemRun]) -> list[Claimless]:
    responses = Response.objects.filter(~Exists(Claim.objects.filter(response=OuterRef("pk"))), run__in=runs)
    return [Claimless(*row) for row in responses.order_by("pk").values_list("pk", "item_id", "run_id")]


def _items_with_reference(version: EvalSetVersion) -> frozenset[int]:
    items = version.items.exclude(reference_answer__isnull=True).exclude(reference_answer="")
    return frozenset(items.order_by().values_list("pk", flat=True))
