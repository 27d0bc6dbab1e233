"""How far a round is: for its lead. Pace and forecast are never shown to a grader."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Page
from django.db.models import (
    Aggregate,
    BigIntegerField,
    CharField,
    Count,
    Exists,
    F,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
)
from django.db.models.functions import Coalesce
from django.utils import timezone

from annotate.disagreement_kinds import Status, target_in_address
from annotate.disagreements import DisagreementQueue
from annotate.models import (
    Annotation,
    Assignment,
    Flag,
    GoldLabel,
    Grader,
    Round,
    SecondLookTarget,
    Tally,
)
from annotate.queries import RUSHED
from evalsets.models import Claim, Response

BREAK = 5 * 60_000  # milliseconds; a label that took longer holds a break, and says nothing about pace
TIMED_AT_LEAST = 10  # labels, before there is a pace
LATELY = timedelta(days=7)
HOUR = 3_600_000

Pending, Done = Q(state=Assignment.State.PENDING), Q(state=Assignment.State.DONE)


@dataclass(frozen=True)
class GraderProgress:
    grader: Grader
    done: int = 0
    total: int = 0
    skipped: int = 0
    keeps_waiting: int = 0  # own unfinished responses that somebody else has finished
    labels: int = 0
    rushed: int = 0
    notes: int = 0
    flags: int = 0
    timed: int = 0
    milliseconds: int = 0  # of the timed labels
    done_lately: int = 0
    first_lately: datetime | None = None
    now: datetime | None = None

    @property
    def pending(self) -> int:
        return self.total - self.done

    @property
    def pace(self) -> float | None:
        """Labels in an hour of labelling, breaks left out."""
        if self.timed < TIMED_AT_LEAST or not self.milliseconds:
            return None
        return self.timed * HOUR / self.milliseconds

    @property
    def hours_left(self) -> float | None:
        """As if the rest held as many labels a response as what is done."""
        if not self.pending or not self.done or self.pace is None:
            return None
        return self.pending * (self.labels / self.done) / self.pace

    @property
    def forecast(self) -> datetime | None:
        """When it is done if every day brings as much as the days of the last week since work began in it."""
        if not self.pending or self.first_lately is None or self.now is None:
            return None
        days = max((self.now - self.first_lately) / timedelta(days=1), 1.0)
        return self.now + timedelta(days=self.pending * days / self.done_lately)


def progress_per_grader(round: Round) -> list[GraderProgress]:
    """Everybody with an assignment or a label in the round; constant queries."""
    now = timezone.now()
    rows: dict[int, dict[str, Any]] = {}
    for query in (_work(round, now), _labels(round), _flags(round)):
        for row in query:
            rows.setdefault(row.pop("grader"), {}).update(row)
    graders = Grader.objects.filter(pk__in=rows).order_by("number")
    return [GraderProgress(grader=grader, now=now, **rows[grader.pk]) for grader in graders]


def _work(round: Round, now: datetime):
    finished_by_another = Exists(
        Assignment.objects.filter(Done, round=round, response=OuterRef("response")).exclude(
            grader=OuterRef("grader")
        )
    )
    lately = Done & Q(done_at__gte=now - LATELY)
    return (
        Assignment.objects.filter(round=round)
        .order_by()
        .annotate(awaited=finished_by_another)
        .values("grader")
        .annotate(
            total=Count("pk"),
            done=Count("pk", filter=Done),
            skipped=Count("pk", filter=Pending & Q(skips__gt=0)),
            keeps_waiting=Count("pk", filter=Pending & Q(awaited=True)),
            done_lately=Count("pk", filter=lately),
            first_lately=Min("done_at", filter=lately),
        )
    )


def _labels(round: Round):
    timed = Q(milliseconds__gt=0, milliseconds__lte=BREAK)
    return (
        Annotation.objects.filter(round=round)
        .order_by()
        .values("grader")
        .annotate(
            labels=Count("pk"),
            rushed=Count("pk", filter=Q(milliseconds__lt=RUSHED)),
            notes=Count("pk", filter=~Q(note="")),
            timed=Count("pk", filter=timed),
            milliseconds=Sum("milliseconds", filter=timed, default=0),
        )
    )


def _flags(round: Round):
    return Flag.objects.filter(round=round).order_by().values("grader").annotate(flags=Count("pk"))


@dataclass(frozen=True)
class RoundProgress:
    """Responses by how many of their graders are done, and targets by what is left to do about them."""

    responses: int
    untouched: int  # nobody has finished
    waiting: int  # somebody has, somebody has not
    complete: int
    skipped: int
    to_decide: int = 0
    agreed: int = 0
    adjudicated: int = 0
    single: int = 0

    @property
    def resolved(self) -> int:
        return self.agreed + self.adjudicated + self.single


def progress_of_round(round: Round) -> RoundProgress:
    per_response = (
        Assignment.objects.filter(round=round)
        .order_by()
        .values("response")
        .annotate(
            graders=Count("pk"),
            ready=Count("pk", filter=Done),
            put_off=Count("pk", filter=Pending & Q(skips__gt=0)),
        )
    )
    counts = per_response.aggregate(
        responses=Count("response"),
        untouched=Count("response", filter=Q(ready=0)),
        complete=Count("response", filter=Q(ready=F("graders"))),
        skipped=Count("response", filter=Q(put_off__gt=0)),
    )
    waiting = counts["responses"] - counts["untouched"] - counts["complete"]
    if round.kind == Round.Kind.SECOND_LOOK:
        return RoundProgress(**counts, waiting=waiting)
    gold = GoldLabel.objects.filter(round=round).order_by().values_list("source").annotate(n=Count("pk"))
    to_decide = DisagreementQueue(round).counts[Status.PENDING]
    return RoundProgress(**counts, waiting=waiting, to_decide=to_decide, **dict(gold))


def rounds_of(version) -> list[Round]:
    """With `total` and `done` assignments, `n_responses` assigned and the graders' number."""
    return list(
        version.rounds.annotate(
            total=_of_round(Tally.objects.all(), Sum("total")),
            done=_of_round(Tally.objects.all(), Sum("done")),
            n_responses=_of_round(Assignment.objects.all(), Count("response", distinct=True)),
            n_graders=_of_round(Tally.objects.filter(total__gt=0), Count("pk")),
            n_drawn=_of_round(SecondLookTarget.objects.all(), Count("pk")),
        )
        .select_related("rubric_version__rubric", "second_look_of")
        .order_by("-number")
    )


def _of_round(rows: QuerySet, figure: Aggregate) -> Coalesce:
    """Each counted by itself: joined, every assignment would meet every drawn target."""
    figures = rows.filter(round=OuterRef("pk")).order_by().values("round").annotate(figure=figure)
    return Coalesce(Subquery(figures.values("figure")), 0)


def left_out_of(round: Round) -> int:
    """Responses of the round's runs that nobody is to grade, because there is nothing to label."""
    if round.kind != Round.Kind.FIRST:
        return 0
    assigned = Assignment.objects.filter(round=round).values("response").distinct().count()
    return Response.objects.filter(run__in=round.runs.all()).count() - assigned


# Which responses


def responses_in(round: Round, *, state: str = "", grader: Grader | None = None) -> QuerySet[Response]:
    """The assigned responses in a state, of one grader's where one is named."""
    assignments = Assignment.objects.filter(round=round, response=OuterRef("pk"))
    own = assignments if grader is None else assignments.filter(grader=grader)
    chosen = Response.objects.filter(Exists(own)).order_by("item__position", "run__number", "sample")
    pending, done = Exists(assignments.filter(Pending)), Exists(assignments.filter(Done))
    if state == "untouched":
        return chosen.exclude(done)
    if state == "waiting":
        return chosen.filter(Exists(own.filter(Pending)), done)
    if state == "complete":
        return chosen.exclude(pending)
    if state == "skipped":
        return chosen.filter(Exists(own.filter(Pending, skips__gt=0)))
    return chosen


# Notes and flags


@dataclass(frozen=True)
class Remark:
    """A flag, or the note beside a label, and what it is about."""

    is_flag: bool
    dimension: str
    note: str
    at: datetime
    response: Response
    claim: Claim | None
    target: str


def remarks_of(round: Round) -> QuerySet:
    """Flags and notes as rows, the latest first; `with_subjects` makes a page of them readable."""
    fields = ("is_flag", "about", "response_id", "claim_id", "of_passage", "note", "updated_at")
    flags = Flag.objects.filter(round=round).annotate(
        is_flag=Value(1), about=Value("", CharField()), of_passage=Value(None, BigIntegerField())
    )
    notes = (
        Annotation.objects.filter(round=round)
        .exclude(note="")
        .annotate(is_flag=Value(0), about=F("dimension"), of_passage=F("passage_id"))
    )
    rows = flags.order_by().values_list(*fields).union(notes.order_by().values_list(*fields), all=True)
    return rows.order_by("-updated_at", "response_id", "claim_id")


def with_subjects(page: Page) -> list[Remark]:
    rows = list(page.object_list)
    responses = Response.objects.select_related("item").in_bulk({row[2] for row in rows})
    claims = Claim.objects.in_bulk({row[3] for row in rows if row[3]})
    return [
        Remark(
            is_flag=bool(is_flag),
            dimension=dimension or ("grounding" if claim else "abstention"),
            note=note,
            at=at,
            response=responses[response],
            claim=claims.get(claim),
            target=target_in_address(response, claim, passage),
        )
        for is_flag, dimension, response, claim, passage, note, at in rows
    ]
