"""Shared reads. A grader's page shows what the blind door lets through and the grader's own rows."""

from dataclasses import dataclass, field, replace
from math import inf
from random import Random

from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from annotate.access import ShownClaim, ShownPassage, ShownResponse, shown_to_grader
from annotate.asking import Material, Place, asked
from annotate.material import PLACE as WITHIN
from annotate.material import as_questions, drawn_of, labels_given
from annotate.models import (
    Adjudication,
    Annotation,
    AnnotationEvent,
    Assignment,
    ClaimSplit,
    Dimension,
    Flag,
    Grader,
    Round,
)
from evalsets.labels import LABELS
from evalsets.models import Claim, Response


def work_of(person):
    """The rounds a person grades in, with their own done and total counts."""
    return list(
        Round.objects.filter(assignments__grader__person=person)
        .exclude(kind=Round.Kind.IMPORTED)
        .select_related("version__evalset")
        .annotate(
            total=Count("assignments", filter=Q(assignments__grader__person=person)),
            done=Count(
                "assignments",
                filter=Q(assignments__grader__person=person, assignments__state=Assignment.State.DONE),
            ),
        )
        .order_by("-pk")
    )


# The grader's screen

KEPT_BEFORE, KEPT_AFTER = 1, 3  # targets in view before and after the current one


@dataclass
class ShownTarget:
    """One thing to label on the screen, with what this grader has said about it so far."""

    dimension: Dimension
    number: int  # among the claims; 0 for the whole response and its passages
    claim: ShownClaim | None
    passage: ShownPassage | None = None
    label: str = ""
    former: str = ""  # the label taken back
    flag: Flag | None = None
    split: ClaimSplit | None = None

    @property
    def key(self) -> str:
        """How a link names it."""
        return target_key(
            self.dimension.name,
            self.claim.pk if self.claim else None,
            self.passage.pk if self.passage else None,
        )


def target_key(dimension: str, claim_id: int | None, passage_id: int | None) -> str:
    """Names a target within its response; the dimension may be left out, and is then the first one."""
    return "-".join([dimension, str(claim_id or ""), str(passage_id or "")])


@dataclass
class Progress:
    done: int
    total: int

    @property
    def at(self) -> int:
        """The number of the response being graded."""
        return min(self.done + 1, self.total)


@dataclass
class Screen:
    assignment: Assignment
    response: ShownResponse
    targets: list[ShownTarget]
    current: ShownTarget
    progress: Progress
    recent: list[Annotation] = field(default_factory=list)

    # Long lists are folded around the current target, so that it stays where the eye already is.

    @property
    def _place(self) -> int:
        return next(place for place, target in enumerate(self.targets) if target is self.current)

    @property
    def folded_before(self) -> list[ShownTarget]:
        before = self.targets[: self._place]
        return before[:-KEPT_BEFORE] if len(before) > KEPT_BEFORE + 1 else []

    @property
    def folded_after(self) -> list[ShownTarget]:
        after = self.targets[self._place + 1 :]
        return after[KEPT_AFTER:] if len(after) > KEPT_AFTER + 1 else []

    @property
    def in_view(self) -> list[ShownTarget]:
        return self.targets[len(self.folded_before) : len(self.targets) - len(self.folded_after)]

    @property
    def passages(self) -> list[tuple[ShownPassage, bool]]:
        """Each with whether the current claim cites it; the cited come first."""
        cites = self.current.claim.cites if self.current.claim else frozenset()
        pairs = [(passage, passage.rank in cites) for passage in self.response.passages]
        return sorted(pairs, key=lambda pair: (not pair[1], pair[0].rank))

    @property
    def parts_of_text(self) -> tuple[str, str, str]:
        if self.current.claim is None:
            return self.response.text, "", ""
        earlier = [t.claim.text for t in self.targets[: self._place] if t.claim]
        return parts_around(self.response.text, earlier, self.current.claim.text)


def parts_around(text: str, earlier: list[str], claim: str) -> tuple[str, str, str]:
    """The response before, in and after a claim; no middle if the claim is not there verbatim.

    A short claim ("2.") may stand in several places: the search goes on where the claim before was found.
    """
    start = 0
    for other in earlier:
        if (at := text.find(other, start)) >= 0:
            start = at + len(other)
    at = text.find(claim, start)
    at = text.find(claim) if at < 0 else at
    if at < 0:
        return text, "", ""
    return text[:at], claim, text[at + len(claim) :]


def progress_of(round: Round, grader: Grader) -> Progress:
    counts = Assignment.objects.filter(round=round, grader=grader).aggregate(
        total=Count("pk"), done=Count("pk", filter=Q(state=Assignment.State.DONE))
    )
    return Progress(**counts)


def next_assignment(round: Round, grader: Grader) -> Assignment | None:
    """The head of the grader's own queue; what somebody else did or skipped has no part in it."""
    assignment = (
        Assignment.objects.filter(round=round, grader=grader, state=Assignment.State.PENDING)
        .select_related("response__item", "grader")
        .order_by("skips", "order")
        .first()
    )
    if assignment:
        assignment.round = round
    return assignment


def screen_of(assignment: Assignment, target: str = "") -> Screen:
    """The screen for one own assignment, at the named target or at the first that has no label."""
    response = shown_to_grader(assignment)
    targets = _targets(assignment, response)
    current = next((t for t in targets if target and t.key.endswith(target)), None)
    current = current or next((t for t in targets if not t.label), targets[-1])
    return Screen(
        assignment=assignment,
        response=response,
        targets=targets,
        current=current,
        progress=progress_of(assignment.round, assignment.grader),
        recent=recent_labels(assignment.round, assignment.grader),
    )


def _targets(assignment: Assignment, response: ShownResponse) -> list[ShownTarget]:
    round, grader = assignment.round, assignment.grader_id
    own = {"round": round, "grader": grader, "response": assignment.response_id}
    labels = labels_given(round, grader, assignment.response_id)
    taken_back = AnnotationEvent.objects.filter(**own, action=AnnotationEvent.Action.TAKEN_BACK)
    former = {Place(*place): label for *place, label in taken_back.values_list(*WITHIN, "label")}
    flags = {flag.claim_id: flag for flag in Flag.objects.filter(**own)}
    splits = {
        split.claim_id: split
        for split in ClaimSplit.objects.filter(
            round=round, grader=grader, claim__response=assignment.response_id
        )
    }
    dimensions = {dimension.name: dimension for dimension in round.rubric_version.dimensions.all()}
    claims = {claim.pk: (number, claim) for number, claim in enumerate(response.claims, start=1)}
    passages = {passage.pk: passage for passage in response.passages}
    drawn = drawn_of(round, assignment.response_id)
    places = asked(as_questions(list(dimensions.values())), _material(response), labels, drawn)
    return [
        ShownTarget(
            dimension=dimensions[place.dimension],
            number=claims[place.claim][0] if place.claim else 0,
            claim=claims[place.claim][1] if place.claim else None,
            passage=passages[place.passage] if place.passage else None,
            label=labels.get(place, ""),
            former=former.get(place, ""),
            flag=flags.get(place.claim),
            split=splits.get(place.claim) if place.claim else None,
        )
        for place in places
    ]


def _material(response: ShownResponse) -> Material:
    pk_of = {passage.rank: passage.pk for passage in response.passages}
    return Material(
        claims={claim.pk: [pk_of[rank] for rank in sorted(claim.cites)] for claim in response.claims},
        passages=list(pk_of.values()),
        is_empty=response.is_empty,
    )


def recent_labels(round: Round, grader: Grader, limit: int = 10) -> list[Annotation]:
    """The grader's own latest labels, each with its `assignment_id` and its `target_key` for a link."""
    recent = list(
        Annotation.objects.filter(round=round, grader=grader)
        .select_related("claim", "response__item")
        .only(
            "label",
            "dimension",
            "response_id",
            "passage_id",
            "claim__text",
            "response__item__question",
            "updated_at",
        )
        .order_by("-updated_at")[:limit]
    )
    assignments = Assignment.objects.filter(
        round=round, grader=grader, response__in={a.response_id for a in recent}
    )
    assignment_of = dict(assignments.values_list("response_id", "pk"))
    for annotation in recent:
        annotation.assignment_id = assignment_of[annotation.response_id]
        annotation.target_key = target_key(annotation.dimension, annotation.claim_id, annotation.passage_id)
    return recent


# The lead's pages

BEGINNING = 300  # characters of a response in a list
RUSHED = 2000  # milliseconds; a label given faster is marked for the lead


@dataclass(frozen=True)
class GraderProgress:
    grader: Grader
    done: int
    total: int
    labels: int
    rushed: int
    keeps_waiting: int  # own unfinished responses that somebody else has finished

    @property
    def pending(self) -> int:
        return self.total - self.done


def rounds_of(version) -> list[Round]:
    """With `total` and `done` assignments, `n_responses` assigned and the graders' number."""
    done = Q(assignments__state=Assignment.State.DONE)
    return list(
        version.rounds.annotate(
            total=Count("assignments", distinct=True),
            done=Count("assignments", filter=done, distinct=True),
            n_responses=Count("assignments__response", distinct=True),
            n_graders=Count("assignments__grader", distinct=True),
        )
        .select_related("rubric_version__rubric")
        .order_by("-number")
    )


def progress_per_grader(round: Round) -> list[GraderProgress]:
    """Everybody with an assignment or a label in the round; constant queries."""
    pending = Q(state=Assignment.State.PENDING)
    finished_by_another = Exists(
        Assignment.objects.filter(
            round=round, response=OuterRef("response"), state=Assignment.State.DONE
        ).exclude(grader=OuterRef("grader"))
    )
    work = {
        row["grader"]: row
        for row in Assignment.objects.filter(round=round)
        .annotate(awaited=finished_by_another)
        .values("grader")
        .annotate(
            total=Count("pk"),
            done=Count("pk", filter=~pending),
            keeps_waiting=Count("pk", filter=pending & Q(awaited=True)),
        )
    }
    said = {
        row["grader"]: row
        for row in Annotation.objects.filter(round=round)
        .values("grader")
        .annotate(labels=Count("pk"), rushed=Count("pk", filter=Q(milliseconds__lt=RUSHED)))
    }
    nothing = {"total": 0, "done": 0, "keeps_waiting": 0, "labels": 0, "rushed": 0}
    made = []
    for grader in Grader.objects.filter(pk__in=work.keys() | said.keys()).order_by("number"):
        row = nothing | work.get(grader.pk, {}) | said.get(grader.pk, {})
        made.append(GraderProgress(**{**row, "grader": grader}))
    return made


def left_out_of(round: Round) -> int:
    """Responses of the round's runs that nobody is to grade, because there is nothing to label."""
    if round.kind == Round.Kind.IMPORTED:
        return 0
    assigned = Assignment.objects.filter(round=round).values("response").distinct().count()
    return Response.objects.filter(run__in=round.runs.all()).count() - assigned


class Status(models.TextChoices):
    PENDING = "pending", _("to decide")
    WAITING = "waiting", _("waiting for a grader")
    DONE = "done", _("decided")


@dataclass(frozen=True)
class Disagreement:
    dimension: str
    response_id: int
    claim_id: int | None
    status: Status
    counts: dict[str, int]  # label -> how many graders
    proposed: bool  # a split waits for a decision
    text: str = ""  # the claim, or the question
    response_text: str = ""  # its beginning, where the response is the target
    flagged: bool = False

    @property
    def target_id(self) -> int:
        return self.claim_id or self.response_id

    @property
    def agreement(self) -> float:
        return max(self.counts.values(), default=0) / (sum(self.counts.values()) or 1)


STATUS_ORDER = [Status.PENDING, Status.WAITING, Status.DONE]
PLACE = ("dimension", "response_id", "claim_id")


def disagreements(round: Round, *, dimension: str = "", status: str = "") -> list[Disagreement]:
    """Targets whose graders differ, or that were decided, or whose split is proposed; to decide first.

    A target is to be decided once everybody assigned has labelled it, the least agreed first.
    """
    split_claims = dict(
        ClaimSplit.objects.filter(round=round)
        .exclude(state=ClaimSplit.State.DECLINED)
        .order_by("state")  # accepted before proposed: an open proposal has the last word
        .values_list("claim_id", "state")
    )
    decided = {
        (dimension, response, parent or claim)
        for dimension, response, claim, parent in Adjudication.objects.filter(round=round).values_list(
            *PLACE, "claim__parent_id"
        )
    }
    of_interest = Q(kinds__gt=1) | Q(claim__in=split_claims)
    if decided:
        of_interest |= Exists(Adjudication.objects.filter(round=round, response=OuterRef("response")))
    rows = (
        Annotation.objects.filter(round=round, **({"dimension": dimension} if dimension else {}))
        .values(*PLACE)
        .annotate(
            kinds=Count("label", distinct=True),
            **{label: Count("pk", filter=Q(label=label)) for labels in LABELS.values() for label in labels},
        )
        .filter(of_interest)
    )
    assigned = dict(
        Assignment.objects.filter(round=round).values_list("response").annotate(n=Count("pk")).order_by()
    )
    found = []
    for row in rows:
        place = tuple(row[name] for name in PLACE)
        counts = {label: row[label] for label in LABELS[row["dimension"]] if row[label]}
        proposed = split_claims.get(row["claim_id"]) == ClaimSplit.State.PROPOSED
        if len(counts) < 2 and place not in decided and not proposed:
            continue
        if sum(counts.values()) < assigned.get(row["response_id"], 0):
            state = Status.WAITING
        elif place in decided and not proposed:
            state = Status.DONE
        else:
            state = Status.PENDING
        if status in ("", state):
            found.append(Disagreement(*place, state, counts, proposed))
    return sorted(
        found,
        key=lambda d: (
            STATUS_ORDER.index(d.status),
            d.agreement,
            d.response_id,
            d.claim_id or inf,
        ),
    )


def with_texts(round: Round, found: list[Disagreement]) -> list[Disagreement]:
    """For one page of the list: the claim or the question, and whether a grader has flagged it."""
    claims = dict(Claim.objects.filter(pk__in=[d.claim_id for d in found]).values_list("pk", "text"))
    wholes = {
        pk: (question or "", beginning)
        for pk, question, beginning in Response.objects.filter(
            pk__in=[d.response_id for d in found if d.claim_id is None]
        ).values_list("pk", "item__question", Left("text", BEGINNING))
    }
    flagged = set(
        Flag.objects.filter(round=round, response__in=[d.response_id for d in found]).values_list(
            "response_id", "claim_id"
        )
    )
    return [
        replace(
            d,
            text=claims[d.claim_id] if d.claim_id else wholes[d.response_id][0],
            response_text="" if d.claim_id else wholes[d.response_id][1],
            flagged=(d.response_id, d.claim_id) in flagged,
        )
        for d in found
    ]


@dataclass(frozen=True)
class Voice:
    """What one grader said about a target, as "Grader 1" or "Grader 2"."""

    number: int
    annotation: Annotation
    flag: Flag | None

    @property
    def rushed(self) -> bool:
        return self.annotation.milliseconds is not None and self.annotation.milliseconds < RUSHED

    @property
    def seconds(self) -> float | None:
        return None if self.annotation.milliseconds is None else self.annotation.milliseconds / 1000


def voices(round: Round, response: Response, claim: Claim | None, dimension: str) -> list[Voice]:
    """In an order drawn once for each target, so that Grader 1 is now one person and now the other."""
    said = list(
        Annotation.objects.filter(round=round, response=response, claim=claim, dimension=dimension)
        .select_related("grader")
        .order_by("grader__number")
    )
    Random(f"{round.seed}:{dimension}:{claim.pk if claim else response.pk}").shuffle(said)
    flags = {
        flag.grader_id: flag for flag in Flag.objects.filter(round=round, response=response, claim=claim)
    }
    return [Voice(number, a, flags.get(a.grader_id)) for number, a in enumerate(said, start=1)]


def missing_labels(round: Round, response: Response, said: list[Voice]) -> int:
    """How many assigned graders have not labelled the target yet."""
    return (
        Assignment.objects.filter(round=round, response=response)
        .exclude(grader__in=[voice.annotation.grader_id for voice in said])
        .count()
    )
