"""Shared reads. A grader's page shows what the blind door lets through and the grader's own rows."""

from dataclasses import dataclass, field

from django.db.models import Count, Q

from annotate.access import ShownClaim, ShownPassage, ShownResponse, shown_to_grader
from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    ClaimSplit,
    Dimension,
    Flag,
    Grader,
    Round,
)


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


@dataclass
class ShownTarget:
    """One thing to label on the screen, with what this grader has said about it so far."""

    dimension: Dimension
    number: int  # among the claims; 0 for the whole response
    claim: ShownClaim | None
    label: str = ""
    former: str = ""  # the label taken back
    flag: Flag | None = None
    split: ClaimSplit | None = None

    @property
    def key(self) -> str:
        """How a link names it."""
        return str(self.claim.pk) if self.claim else "response"


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

    @property
    def passages(self) -> list[tuple[ShownPassage, bool]]:
        """Each with whether the current claim cites it; the cited come first."""
        cites = self.current.claim.cites if self.current.claim else frozenset()
        pairs = [(passage, passage.rank in cites) for passage in self.response.passages]
        return sorted(pairs, key=lambda pair: (not pair[1], pair[0].rank))

    @property
    def parts_of_text(self) -> tuple[str, str, str]:
        """The response before, in and after the current claim; no middle if it is not there verbatim."""
        before, match, after = self.response.text.partition(
            self.current.claim.text if self.current.claim else "\0"
        )
        return before, match, after


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
    current = next((t for t in targets if target and t.key == target), None)
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
    own = {
        "round": assignment.round,
        "grader": assignment.grader_id,
        "response": assignment.response_id,
    }
    labels = {(a.dimension, a.claim_id): a.label for a in Annotation.objects.filter(**own)}
    taken_back = AnnotationEvent.objects.filter(**own, action=AnnotationEvent.Action.TAKEN_BACK)
    former = {(e.dimension, e.claim_id): e.label for e in taken_back}
    flags = {flag.claim_id: flag for flag in Flag.objects.filter(**own)}
    splits = {
        split.claim_id: split
        for split in ClaimSplit.objects.filter(
            round=assignment.round, grader=assignment.grader_id, claim__response=assignment.response_id
        )
    }
    dimensions = {d.name: d for d in assignment.round.rubric_version.dimensions.all()}
    made = []
    if "grounding" in dimensions:
        made += [
            ShownTarget(dimensions["grounding"], number, claim)
            for number, claim in enumerate(response.claims, start=1)
        ]
    if "abstention" in dimensions and not response.is_empty:
        made.append(ShownTarget(dimensions["abstention"], 0, None))
    for target in made:
        claim_id = target.claim.pk if target.claim else None
        place = target.dimension.name, claim_id
        target.label, target.former = labels.get(place, ""), former.get(place, "")
        target.flag, target.split = flags.get(claim_id), splits.get(claim_id)
    return made


def recent_labels(round: Round, grader: Grader, limit: int = 10) -> list[Annotation]:
    """The grader's own latest labels, each with its assignment's id as `assignment_id`."""
    recent = list(
        Annotation.objects.filter(round=round, grader=grader)
        .select_related("claim", "response__item")
        .only("label", "dimension", "response_id", "claim__text", "response__item__question", "updated_at")
        .order_by("-updated_at")[:limit]
    )
    assignments = Assignment.objects.filter(
        round=round, grader=grader, response__in={a.response_id for a in recent}
    )
    assignment_of = dict(assignments.values_list("response_id", "pk"))
    for annotation in recent:
        annotation.assignment_id = assignment_of[annotation.response_id]
    return recent
