"""Rates by one source of labels. What a judge says is shown by `reports` only, behind its gate."""

from collections.abc import Iterable, Sequence

from django.db.models import Q

from annotate.models import Grader, Round
from calibration.measures import Figures, rates_of
from calibration.models import JudgeRun
from calibration.pairing import judge_column, table_of, targets_of
from calibration.table import Column, Table, Targets, nobody
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion, Response, SystemRun

REVIEWED = 50  # responses of the review queue that a page lists


def human_rates(
    *,
    version: EvalSetVersion,
    round: Round | None,
    source: str,
    unit: str,
    dimensions: Iterable[str] = tuple(LABELS),
) -> Figures:
    """Rates by what people said; `source` is gold or grader:NAME."""
    claims = table_of(version=version, round=round, dimension="grounding").leaves()
    responses = table_of(version=version, round=round, dimension="abstention")
    figures = rates_of(
        claims=claims,
        responses=responses,
        said=column_of(claims, source),
        verdict=column_of(responses, source),
        unit=unit,
        dimensions=dimensions,
    )
    return with_response_ids(figures)


def grader_names(round: Round | None) -> list[str]:
    """The graders that a rate may be asked for by name."""
    if round is None:
        return []
    graders = Grader.objects.filter(Q(annotations__round=round) | Q(assignments__round=round))
    return list(graders.distinct().order_by("number").values_list("name", flat=True))


def column_of(table: Table, source: str) -> Column:
    """The column of gold or of grader:NAME; of a grader who said nothing here, one without a label."""
    if source == "gold":
        assert table.gold is not None
        return table.gold
    name = source.removeprefix("grader:")
    found = [column for column in table.graders if column.name == name]
    return found[0] if found else nobody(table.targets, name, "grader", "not_assigned")


def with_response_ids(figures: Figures) -> Figures:
    """The responses that somebody should look at, by the names that the file gave them."""
    wanted = figures.get("review_queue", [])
    names = dict(Response.objects.filter(pk__in=wanted).values_list("pk", "response_id"))
    for part in (figures, *figures["per_system"], *figures["per_stratum"]):
        if "review_queue" in part:
            part["review_queue"] = [names[pk] for pk in part["review_queue"]]
    return figures


def review_responses(version: EvalSetVersion, figures: Figures) -> list[Response]:
    """Answers in which no claim was found, and empty responses: the first of them."""
    wanted = figures.get("review_queue", [])[:REVIEWED]
    return list(Response.objects.filter(version=version, response_id__in=wanted).order_by("position"))


def rates_of_judge_run(
    *, judge_run: JudgeRun, dimension: str, unit: str, runs: Sequence[SystemRun]
) -> Figures:
    """What the judge's verdicts give in one dimension, over these of the runs it judged. Not for a page."""
    claims = Table(targets_of(runs=runs, dimension="grounding")).leaves()
    responses = Table(targets_of(runs=runs, dimension="abstention"))
    figures = rates_of(
        claims=claims,
        responses=responses,
        said=_said(claims.targets, judge_run, dimension),
        verdict=_said(responses.targets, judge_run, dimension),
        unit=unit,
        dimensions=(dimension,),
    )
    return with_response_ids(figures)


def _said(targets: Targets, judge_run: JudgeRun, dimension: str) -> Column:
    if targets.dimension != dimension:
        return nobody(targets, judge_run.judge.name, "judge", "not_judged")
    return judge_column(targets=targets, judge_run=judge_run)
