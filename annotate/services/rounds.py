"""Opening, pausing and closing rounds, and handing work over."""

import secrets
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Exists, Max, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    Grader,
    Round,
    RubricVersion,
    Unblinding,
)
from annotate.planning import plan
from annotate.services.targets import BATCH, Action, Conflict, Refused, lock_assignments, round_for_labels
from evalsets.access import GRADER, has_role
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun
from evalsets.text import is_blank


def gradable(runs: Iterable[SystemRun], dimensions: Sequence[str]) -> list[int]:
    """The responses that have something to label; an empty one without claims has not."""
    has_claims = Exists(Claim.objects.filter(response=OuterRef("pk"), parent__isnull=True))
    responses = Response.objects.filter(run__in=list(runs)).order_by("run__number", "position")
    return [
        pk
        for pk, text, claims in responses.values_list("pk", "text", has_claims).iterator(BATCH)
        if (claims and "grounding" in dimensions) or ("abstention" in dimensions and not is_blank(text))
    ]


class Planned(NamedTuple):
    responses: int
    left_out: int  # responses with nothing to label
    assignments: int
    per_grader: dict[Any, int]


def plan_round(*, version, runs, graders: Sequence, rubric_version, overlap: int | None = None) -> Planned:
    """What open_round would create; the graders may still be anything that stands for one."""
    responses = _gradable_of(runs, rubric_version, overlap)
    slots = plan(responses=responses, graders=graders, overlap=overlap, seed=0)
    counts = Counter(slot.grader for slot in slots)
    there = Response.objects.filter(run__in=list(runs)).count()
    return Planned(len(responses), there - len(responses), len(slots), {g: counts[g] for g in graders})


def _gradable_of(runs, rubric_version: RubricVersion, overlap: int | None) -> list[int]:
    dimensions = list(rubric_version.dimensions.values_list("name", flat=True))
    responses = gradable(runs, dimensions)
    if not responses:
        raise Refused(_("These runs have nothing to label: no claim and no text."))
    if overlap is not None and not 0 <= overlap <= len(responses):
        raise Refused(
            _("The overlap must be between 0 and %(n)s, the number of responses.") % {"n": len(responses)}
        )
    return responses


@transaction.atomic
def open_round(
    *,
    version: EvalSetVersion,
    runs: Sequence[SystemRun],
    graders: Sequence[Grader],
    rubric_version: RubricVersion,
    overlap: int | None = None,
    seed: int | None = None,
    person=None,
    kind: str = Round.Kind.FIRST,
    once: bool = False,
) -> Round:
    """A round with all its assignments; `overlap` responses go to every grader (None: all of them do).

    With `once` the seed is taken for the name of the submit: a round of this version that has it is returned.
    """
    version = EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    if once and (before := version.rounds.filter(seed=seed).first()):
        return before
    _check_round(version=version, runs=runs, graders=graders, rubric_version=rubric_version)
    responses = _gradable_of(runs, rubric_version, overlap)
    seed = new_seed() if seed is None else seed
    round = Round.objects.create(
        version=version,
        number=next_round_number(version),
        kind=kind,
        rubric_version=rubric_version,
        overlap=overlap,
        seed=seed,
        created_by=person,
    )
    round.runs.set(runs)
    slots = plan(responses=responses, graders=[g.pk for g in graders], overlap=overlap, seed=seed)
    Assignment.objects.bulk_create(
        (
            Assignment(round=round, response_id=s.response, grader_id=s.grader, slot=s.slot, order=s.order)
            for s in slots
        ),
        batch_size=BATCH,
    )
    return round


def new_seed() -> int:
    return secrets.randbelow(2**31)


def _check_round(*, version, runs, graders, rubric_version) -> None:
    if not version.is_frozen:
        raise Refused(_("Freeze the version first: a round grades frozen items only."))
    if not runs:
        raise Refused(_("Choose at least one run."))
    for run in runs:
        if run.version_id != version.pk:
            raise Refused(_("Run %(run)s belongs to another version.") % {"run": run.number})
        if not run.is_frozen:
            raise Refused(_("Freeze run %(run)s first: its claims may still change.") % {"run": run.number})
    if not graders:
        raise Refused(_("Choose at least one grader."))
    if len({grader.pk for grader in graders}) != len(graders):
        raise Refused(_("The same grader is chosen twice."))
    if any(grader.evalset_id != version.evalset_id for grader in graders):
        raise Refused(_("A grader of another eval set cannot grade here."))
    if rubric_version.rubric.evalset_id != version.evalset_id:
        raise Refused(_("The rubric belongs to another eval set."))


def next_round_number(version: EvalSetVersion) -> int:
    return (version.rounds.aggregate(last=Max("number"))["last"] or 0) + 1


def pause_round(*, round: Round) -> Round:
    return _move(round, {Round.State.OPEN: Round.State.PAUSED})


def resume_round(*, round: Round) -> Round:
    return _move(round, {Round.State.PAUSED: Round.State.OPEN})


def close_round(*, round: Round) -> Round:
    """For good: its labels can be adjudicated, and no longer given or taken back."""
    return _move(round, {Round.State.OPEN: Round.State.CLOSED, Round.State.PAUSED: Round.State.CLOSED})


@transaction.atomic
def _move(round: Round, moves: dict) -> Round:
    # Labels under way hold their assignments: wait for them, so that none lands after the state has changed.
    list(Assignment.objects.select_for_update().filter(round=round).order_by("pk").values_list("pk"))
    held = Round.objects.select_for_update().get(pk=round.pk)
    if held.state in moves:
        held.state = moves[held.state]
        held.closed_at = timezone.now() if held.state == Round.State.CLOSED else None
        held.save(update_fields=["state", "closed_at"])
    elif held.state not in moves.values():
        raise Conflict(_("The round is %(state)s.") % {"state": held.get_state_display()})
    return held


@transaction.atomic
def reassign(*, assignment: Assignment, to: Grader) -> Assignment:
    """Hand an unfinished response to somebody else; what its grader labelled so far stays as history only."""
    locked = lock_assignments(assignment.round, assignment.response)
    held = next((a for a in locked if a.pk == assignment.pk), None)
    round = round_for_labels(assignment.round)
    if held is None or held.state == Assignment.State.DONE:
        raise Conflict(_("This response is already graded by its grader."))
    if to.evalset_id != round.version.evalset_id or to.person is None:
        raise Refused(_("Only a grader of this eval set with a log-in can take it over."))
    if not has_role(to.person, round.version.evalset, GRADER):
        raise Refused(_("%(name)s is not a grader of this eval set.") % {"name": to.name})
    if Unblinding.objects.filter(round=round, person=to.person).exists():
        raise Refused(
            _("%(name)s has seen the labels of this round and can no longer grade in it.") % {"name": to.name}
        )
    if any(a.grader_id == to.pk for a in locked):
        raise Refused(_("%(name)s grades this response already.") % {"name": to.name})
    own = Annotation.objects.filter(round=round, response=held.response_id, grader=held.grader_id)
    AnnotationEvent.objects.bulk_create(
        AnnotationEvent(
            round=round,
            response_id=a.response_id,
            claim_id=a.claim_id,
            dimension=a.dimension,
            grader_id=a.grader_id,
            action=Action.REASSIGNED,
            label=a.label,
            note=a.note,
        )
        for a in own
    )
    own.delete()
    last = Assignment.objects.filter(round=round, grader=to).aggregate(last=Max("order"))["last"] or 0
    held.grader, held.order, held.skips = to, last + 1, 0
    held.save(update_fields=["grader", "order", "skips"])
    return held


def reassign_unfinished(
    *, round: Round, grader: Grader, to: Grader, at_most: int | None = None
) -> tuple[int, int]:
    """Hand over what is unfinished, from the end of the queue; how many moved, and how many could not.

    One transaction a response: the grader may be labelling at this moment.
    """
    unfinished = Assignment.objects.filter(round=round, grader=grader, state=Assignment.State.PENDING)
    taken = Assignment.objects.filter(round=round, grader=to).values("response")
    movable = unfinished.exclude(response__in=taken).order_by("-skips", "-order")
    moved = 0
    for assignment in movable.select_related("round", "response")[:at_most]:
        try:
            reassign(assignment=assignment, to=to)
        except Conflict:
            continue
        moved += 1
    return moved, unfinished.count()
