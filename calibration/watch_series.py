"""The series of a watch: shares of responses, day by day, by each judge that was asked and may be believed.

All series are of all responses, so that they may stand under each other and beside the rates of responses:
the share that is REFUSED or CLARIFY, and the share with at least one claim that is flagged (or cannot be
verified). A response without text or claims is in the total and no hit. A day without an interval is a day
left out, with the reason.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date as Date
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from calibration import stats
from calibration.models import CalibrationReport, Judge, JudgeRun, Verdict, Watch, WatchBatch, WatchJudging
from calibration.reports import Standing, standing

ABSTENTION = {"refused": "REFUSED", "clarify": "CLARIFY"}
GROUNDING = {"flagged": ("contradicted", "unsupported"), "unverifiable": ("unverifiable",)}


class Day(NamedTuple):
    """One batch in one series. `total` is 0 where it does not count, and `why` says the reason."""

    date: Date
    hits: int
    total: int
    left_out: int  # responses of the day without a usable verdict
    without_claims: int  # responses of the total that make no hit in a series of claims
    why: str


@dataclass(frozen=True)
class Series:
    """One share over the days, with the step test over them."""

    key: str  # refused, clarify, flagged, unverifiable; with the judge before it
    rate: str
    name: str
    judge: str
    is_baseline: bool
    days: tuple[Day, ...]
    points: tuple[tuple[Date, Date, Any], ...]  # first and last day, and the pooled point of the chart
    step: Any  # stats.ShareChange

    @property
    def change(self) -> dict[str, Any]:
        return self.step.difference.as_dict()

    @property
    def shares(self) -> list[stats.Number | None]:
        """The share of every day by itself, without pooling; None for a day that does not count."""
        return [_share(day, self.name) if day.total else None for day in self.days]

    def as_dict(self) -> dict[str, Any]:
        return {
            "series": self.key,
            "name": self.name,
            "rate": self.rate,
            "judge": self.judge,
            "baseline": self.is_baseline,
            "unit": "response",
            "days": [
                day._asdict() | {"date": day.date.isoformat(), "share": share.as_dict() if share else None}
                for day, share in zip(self.days, self.shares, strict=True)
            ],
            "points": [
                {
                    "first": first.isoformat(),
                    "last": last.isoformat(),
                    "share": point.share.as_dict(),
                    "lower": point.lower,
                    "upper": point.upper,
                }
                for first, last, point in self.points
            ],
            "step": self.step.as_dict() | {"sentence": self.step.explain()},
        }


def _share(day: Day, label: str) -> stats.Number:
    return stats.clustered_rate(
        [1] * day.hits + [0] * (day.total - day.hits),
        [1] * day.total,
        label=label,
        unit="response",
        excluded={"no_valid_verdict": day.left_out} if day.left_out else {},
        definition="control-chart",
    )


@dataclass(frozen=True)
class Asked:
    """A judge in one dimension, with its judgings by batch and where it stands now."""

    judge: Judge
    dimension: str
    judgings: dict[int, WatchJudging]
    now: Standing
    is_baseline: bool

    @property
    def withheld(self) -> bool:
        """The gate has closed since: then nothing of what it said before is shown either."""
        return not self.is_baseline and not self.now.trusted


def asked_of(watch: Watch) -> list[Asked]:
    """Every judge and dimension that was to be asked about a batch; the baseline first."""
    found: dict[tuple[int, str], dict[int, WatchJudging]] = {}
    judges: dict[int, Judge] = {}
    rows = WatchJudging.objects.filter(batch__watch=watch).select_related("judge", "judge_run")
    for row in rows.order_by("pk"):
        judges[row.judge_id] = row.judge
        of_batch = found.setdefault((row.judge_id, row.dimension), {})
        if row.judge_run_id or row.batch_id not in of_batch:
            of_batch[row.batch_id] = row
    asked = [
        Asked(
            judges[judge],
            dimension,
            judgings,
            standing(judge=judges[judge], version=watch.version, dimension=dimension),
            judges[judge].kind == Judge.Kind.PHRASES,
        )
        for (judge, dimension), judgings in found.items()
    ]
    return sorted(asked, key=lambda one: (not one.is_baseline, one.judge.name, one.dimension))


def series_of(watch: Watch, asked: Iterable[Asked] | None = None) -> list[Series]:
    """What may be shown; a judge whose gate is closed now has no series."""
    batches = list(watch.batches.order_by("date"))
    return [
        series
        for one in (asked_of(watch) if asked is None else asked)
        if not one.withheld
        for series in _series_of(one, batches, watch.minimum)
    ]


def _series_of(asked: Asked, batches: list[WatchBatch], minimum: float) -> Iterator[Series]:
    rates = (
        ABSTENTION if asked.dimension == "abstention" else GROUNDING if asked.dimension == "grounding" else {}
    )
    counted = list(_counted(asked, batches))
    for rate in rates:
        days = tuple(
            Day(batch.date, counts[rate], counts["total"], counts["left_out"], counts["without_claims"], why)
            for batch, counts, why in counted
        )
        name = name_of_series(rate, asked.judge.name)
        yield _with_figures(f"{asked.judge.name}:{rate}", rate, name, asked, days, minimum)


_NAMES: dict[str, Callable[[], str]] = {
    "refused": lambda: _("Refusal rate by {judge}"),
    "clarify": lambda: _("Rate of asking back by {judge}"),
    "flagged": lambda: _("Responses with a flagged claim by {judge}"),
    "unverifiable": lambda: _("Responses with an unverifiable claim by {judge}"),
}


def name_of_series(rate: str, judge: str) -> str:
    return _NAMES[rate]().format(judge=judge)


def _with_figures(
    key: str, rate: str, name: str, asked: Asked, days: tuple[Day, ...], minimum: float
) -> Series:
    first, hits, totals = calendar(days)
    points = tuple(
        (first + timedelta(days=point.first), first + timedelta(days=point.last), point)
        for point in stats.control_chart(hits, totals, label=name)
    )
    change = _("Change in the last 7 days, {series}").format(series=name)
    step = stats.step_test(hits, totals, minimum=minimum, label=change)
    return Series(key, rate, name, asked.judge.name, asked.is_baseline, days, points, step)


def calendar(days: tuple[Day, ...]) -> tuple[Date, list[int], list[int]]:
    """Hits and totals of every day from the first to the last; of a day without a batch none."""
    if not days:
        return Date.min, [], []
    by_date = {day.date: day for day in days}
    span = (days[-1].date - days[0].date).days + 1
    dates = [days[0].date + timedelta(days=number) for number in range(span)]
    found = [by_date.get(date) for date in dates]
    return dates[0], [day.hits if day else 0 for day in found], [day.total if day else 0 for day in found]


def onset_of(series: Series, *, minimum: float) -> Date | None:
    """The first of the days, up to the last one, on each of which the step test raises an alert."""
    first, hits, totals = calendar(series.days)
    onset = None
    for end in range(len(hits), 0, -1):
        if not totals[end - 1]:
            continue
        if not stats.step_test(hits[:end], totals[:end], minimum=minimum).alert:
            break
        onset = first + timedelta(days=end - 1)
    return onset


# Counting


def _counted(asked: Asked, batches: Sequence[WatchBatch]) -> Iterator[tuple[WatchBatch, Counter[str], str]]:
    """Each day with its counts, or with why it has none: in as many queries for a year as for a day."""
    complete = [
        judging
        for judging in asked.judgings.values()
        if judging.judge_run and judging.judge_run.state == JudgeRun.State.COMPLETE
    ]
    others = {} if asked.is_baseline else _other_models(complete)
    counts = _of_responses(complete) if asked.dimension == "abstention" else _of_claims(complete)
    for batch in batches:
        judging = asked.judgings.get(batch.pk)
        if judging is None:
            yield batch, Counter(), _("was not asked about this day")
        elif judging.judge_run is None:
            yield batch, Counter(), judging.reason
        elif judging.judge_run.state != JudgeRun.State.COMPLETE:
            yield batch, Counter(), _("the judge has not finished this day")
        elif models := others.get(judging.judge_run_id):
            words = _("answered by {models}, which was not calibrated")
            yield batch, Counter(), words.format(models=", ".join(models))
        else:
            yield batch, counts[judging.judge_run_id], ""


def _other_models(judgings: Sequence[WatchJudging]) -> dict[int | None, list[str]]:
    """Of each run the models that answered and are none of those behind the report that opened it."""
    reports = CalibrationReport.objects.filter(pk__in={judging.report_id for judging in judgings})
    calibrated = dict(reports.values_list("pk", "payload__judge__resolved_models"))
    answered: dict[int | None, set[str]] = defaultdict(set)
    valid = Verdict.objects.filter(run__in=_runs(judgings), state=Verdict.State.VALID).exclude(
        resolved_model=""
    )
    for run, model in valid.order_by().values_list("run", "resolved_model").distinct():
        answered[run].add(model)
    return {
        judging.judge_run_id: sorted(answered[judging.judge_run_id] - set(known))
        for judging in judgings
        if judging.report_id and (known := calibrated.get(judging.report_id))
    }


def _runs(judgings: Iterable[WatchJudging]) -> list[int | None]:
    return [judging.judge_run_id for judging in judgings]


def _of_responses(judgings: Sequence[WatchJudging]) -> dict[int | None, Counter[str]]:
    """Empty responses were put to no judge: they are failures of the system, in the total and no hit."""
    rows = Verdict.objects.filter(run__in=_runs(judgings), run_index=1).order_by()
    labels: dict[int | None, Counter[str]] = defaultdict(Counter)
    asked: Counter[int | None] = Counter()
    for run, state, label, n in rows.values_list("run", "state", "label").annotate(n=Count("pk")):
        asked[run] += n
        if state == Verdict.State.VALID:
            labels[run][label] += n
    responses = _responses_of(judgings)
    found = {}
    for judging in judgings:
        run = judging.judge_run_id
        left_out = asked[run] - labels[run].total()
        hits = {rate: labels[run][label] for rate, label in ABSTENTION.items()}
        found[run] = Counter(hits | {"total": responses[judging.batch_id] - left_out, "left_out": left_out})
    return found


def _responses_of(judgings: Sequence[WatchJudging]) -> dict[int, int]:
    """Of each batch how many responses it has."""
    batches = WatchBatch.objects.filter(pk__in=[judging.batch_id for judging in judgings])
    return dict(batches.annotate(n=Count("material__responses")).values_list("pk", "n"))


def _of_claims(judgings: Sequence[WatchJudging]) -> dict[int | None, Counter[str]]:
    """A response counts when each of its claims has a valid verdict, also when it has none."""
    valid = Q(state=Verdict.State.VALID)
    rows = (
        Verdict.objects.filter(run__in=_runs(judgings), run_index=1)
        .order_by()
        .values("run", "response")
        .annotate(
            asked=Count("pk"),
            valid=Count("pk", filter=valid),
            flagged=Count("pk", filter=Q(label__in=GROUNDING["flagged"])),
            unverifiable=Count("pk", filter=Q(label__in=GROUNDING["unverifiable"])),
        )
    )
    found: dict[int | None, Counter[str]] = {
        run: Counter({"asked": 0, "left_out": 0, "flagged": 0, "unverifiable": 0}) for run in _runs(judgings)
    }
    for row in rows.iterator(chunk_size=2000):
        counts = found[row["run"]]
        counts["asked"] += 1
        if row["valid"] < row["asked"]:
            counts["left_out"] += 1
            continue
        counts["flagged"] += bool(row["flagged"])
        counts["unverifiable"] += bool(row["unverifiable"])
    responses = _responses_of(judgings)
    for judging in judgings:
        counts = found[judging.judge_run_id]
        counts["total"] = responses[judging.batch_id] - counts["left_out"]
        counts["without_claims"] = responses[judging.batch_id] - counts["asked"]
    return found
