"""Shared reads about judge runs. None tells how often which label was given: that waits for the gate."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Avg, Count, Min, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.utils import timezone

from calibration.models import JudgeRun, Verdict, WorkerSighting
from calibration.spending import Spent, spent_in
from evalsets.models import EvalSetVersion, System

WORKER_SECONDS = 30
RATE_SECONDS = 60

State = Verdict.State


@dataclass(frozen=True)
class Failed:
    """A kind of failure, how often it came, and what was wrong the last time."""

    kind: str
    name: str
    count: int
    latest: str


@dataclass(frozen=True)
class Progress:
    """How far a judge run is. Valid + failed + pending = total; what is under way counts as pending."""

    valid: int
    failed: int
    pending: int
    under_way: int
    held_back: int
    from_cache: int
    failures: list[Failed]
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    mean_milliseconds: float | None
    per_minute: float
    resolved_models: list[str]
    next_due: datetime | None
    nobody_works: bool
    spent: Spent
    cost: Decimal | None
    all_failed_alike: Failed | None  # why the run stopped by itself

    @property
    def total(self) -> int:
        return self.valid + self.failed + self.pending

    @property
    def done(self) -> int:
        return self.valid + self.failed

    @property
    def valid_percent(self) -> float:
        return 100 * self.valid / self.total if self.total else 0.0

    @property
    def failed_percent(self) -> float:
        return 100 * self.failed / self.total if self.total else 0.0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def can_be_retried(self) -> int:
        return self.failed - self.failures_by_kind.get(Verdict.Failure.WITHDRAWN, 0)

    @property
    def failures_by_kind(self) -> dict[str, int]:
        return {failed.kind: failed.count for failed in self.failures}

    @property
    def minutes_left(self) -> float | None:
        return self.pending / self.per_minute if self.per_minute and self.pending else None


def progress_of(run: JudgeRun) -> Progress:
    now = timezone.now()
    finished = Q(state__in=[State.VALID, State.FAILED])
    held_back = Q(state=State.PENDING, not_before__gt=now)
    sums = run.verdicts.aggregate(
        valid=Count("pk", filter=Q(state=State.VALID)),
        failed=Count("pk", filter=Q(state=State.FAILED)),
        pending=Count("pk", filter=Q(state=State.PENDING)),
        under_way=Count("pk", filter=Q(state=State.CLAIMED)),
        alive=Count("pk", filter=Q(state=State.CLAIMED, lease_until__gt=now)),
        held_back=Count("pk", filter=held_back),
        next_due=Min("not_before", filter=held_back),
        mean_milliseconds=Avg("milliseconds", filter=Q(from_cache=False)),
        from_cache=Count("pk", filter=Q(from_cache=True)),
        prompt_tokens=Sum("prompt_tokens", default=0),
        cached_tokens=Sum("cached_tokens", default=0),
        completion_tokens=Sum("completion_tokens", default=0),
        lately=Count("pk", filter=finished & Q(updated_at__gte=now - timedelta(seconds=RATE_SECONDS))),
    )
    running = run.state == JudgeRun.State.RUNNING
    seconds = min(max((now - run.created_at).total_seconds(), 1), RATE_SECONDS)
    alive, lately = sums.pop("alive"), sums.pop("lately")
    failures, spent = failures_of(run), spent_in(run)
    sums["pending"] += sums["under_way"]
    return Progress(
        **sums,
        spent=spent,
        cost=spent.cost(run.prices),
        failures=failures,
        all_failed_alike=_all_failed_alike(run),
        per_minute=60 * lately / seconds if running else 0.0,
        resolved_models=models_in(JudgeRun.every.filter(pk=run.pk)),
        nobody_works=running and sums["pending"] > 0 and not alive and not worker_seen(),
    )


def failures_of(run: JudgeRun) -> list[Failed]:
    failed = run.verdicts.filter(state=State.FAILED)
    counted = failed.values_list("failure").annotate(n=Count("pk")).order_by("-n", "failure")
    return [
        Failed(
            kind=kind,
            name=str(Verdict.Failure(kind).label),
            count=count,
            latest=failed.filter(failure=kind).order_by("-updated_at").values_list("detail", flat=True)[0],
        )
        for kind, count in counted
    ]


def _all_failed_alike(run: JudgeRun) -> Failed | None:
    if run.stop_reason != JudgeRun.StopReason.BREAKER:
        return None
    kind, _separator, count = run.stop_detail.partition(": ")
    latest = run.calls.filter(failure=kind).order_by("-pk").values_list("reply", flat=True).first() or ""
    return Failed(kind, str(Verdict.Failure(kind).label), int(count), latest)


def models_in(runs: QuerySet[JudgeRun], **of_verdicts: str) -> list[str]:
    """The models that answered in these runs, of verdicts of a kind where one is named.

    Each is found along the index, run by run: a run has a million verdicts and a model or two.
    """
    verdicts = Verdict.objects.filter(run=OuterRef("pk"), **of_verdicts).order_by("resolved_model")
    found = [""]
    while True:
        following = verdicts.filter(resolved_model__gt=found[-1]).exclude(resolved_model="")
        nearest = runs.annotate(nearest=Subquery(following.values("resolved_model")[:1]))
        name = nearest.aggregate(name=Min("nearest"))["name"]
        if name is None:
            return sorted(found[1:])
        found.append(name)


def worker_seen() -> bool:
    """Whether any worker did anything in the last half minute."""
    return WorkerSighting.objects.filter(
        seen_at__gte=timezone.now() - timedelta(seconds=WORKER_SECONDS)
    ).exists()


def counted_runs_of(version: EvalSetVersion) -> QuerySet[JudgeRun]:
    """The judge runs of a version, newest first, each with its counts."""
    runs = version.judge_runs.whole().select_related("judge", "rubric_version__rubric")
    return counted(runs.order_by("-number"))


def runs_of(version: EvalSetVersion) -> list[JudgeRun]:
    return list(counted_runs_of(version))


def counted(runs: QuerySet[JudgeRun]) -> QuerySet[JudgeRun]:
    """Each with how many verdicts it has, and how many of them are valid or failed.

    Run by run along an index: joined, a million verdicts would be grouped by all that a run is.
    """
    return runs.annotate(
        total=_verdicts_of_run(),
        valid=_verdicts_of_run(state=State.VALID),
        failed=_verdicts_of_run(state=State.FAILED),
    )


def _verdicts_of_run(**of_verdicts: str) -> Coalesce:
    verdicts = Verdict.objects.filter(run=OuterRef("pk"), **of_verdicts).order_by()
    return Coalesce(Subquery(verdicts.values("run").annotate(n=Count("*")).values("n")), 0)


def extractions_of(version: EvalSetVersion) -> QuerySet[JudgeRun]:
    """The extractions of a version, newest first, each with its counts."""
    runs = JudgeRun.every.filter(version=version, purpose=JudgeRun.Purpose.EXTRACTION)
    return counted(runs.select_related("judge").order_by("-number"))


def found_in(run: JudgeRun) -> dict[str, int]:
    """Of an extraction: the responses that make claims, and those that make none."""
    return dict(run.verdicts.filter(state=State.VALID).values_list("label").annotate(n=Count("pk")))


def kin_of(family: str, systems: Iterable[System]) -> list[str]:
    """The systems of a judge's own model family."""
    wanted = family.strip().casefold()
    return sorted(
        {str(system) for system in systems if wanted and system.family.strip().casefold() == wanted}
    )
