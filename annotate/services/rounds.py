"""Pausing and closing rounds, and handing work over."""

import secrets

from django.db import transaction
from django.db.models import Count, Max, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.asking import Place
from annotate.material import questions_of
from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    Grader,
    Round,
    Unblinding,
)
from annotate.planning import to_take
from annotate.services.targets import (
    Action,
    Conflict,
    Refused,
    lock_assignments,
    round_for_labels,
    settle_all,
)
from evalsets.access import GRADER, has_role
from evalsets.models import EvalSetVersion

ONGOING = (Round.State.OPEN, Round.State.PAUSED)


def new_seed() -> int:
    return secrets.randbelow(2**31)


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


def check_no_other_second_look(round: Round, grader: Grader) -> None:
    """Two at a time would each close the other: neither is to show the labels of the other."""
    others = Assignment.objects.filter(
        round__version=round.version_id,
        round__kind=Round.Kind.SECOND_LOOK,
        round__state__in=ONGOING,
        grader=grader,
        state=Assignment.State.PENDING,
    ).exclude(round=round)
    if other := others.select_related("round").first():
        raise Conflict(
            _("%(name)s has another second look to finish first: round %(number)s.")
            % {"name": grader.name, "number": other.round.number}
        )


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
    if Unblinding.objects.filter(
        round__in=[round.pk, round.second_look_of_id or round.pk], person=to.person
    ).exists():
        raise Refused(
            _("%(name)s has seen the labels of this round and can no longer grade in it.") % {"name": to.name}
        )
    if round.kind == Round.Kind.SECOND_LOOK:
        check_no_other_second_look(round, to)
    if any(a.grader_id == to.pk for a in locked):
        raise Refused(_("%(name)s grades this response already.") % {"name": to.name})
    last = Assignment.objects.filter(round=round, grader=to).aggregate(last=Max("order"))["last"] or 0
    before = _into_history(held)
    held.grader, held.order, held.skips = to, last + 1, 0
    held.save(update_fields=["grader", "order", "skips"])
    settle_all(round, held.response_id, before, questions_of(round.rubric_version))
    return held


def _into_history(held: Assignment) -> list[Place]:
    """Withdraw what its grader said so far; where that was."""
    own = Annotation.objects.filter(round=held.round_id, response=held.response_id, grader=held.grader_id)
    said = list(own)
    AnnotationEvent.objects.bulk_create(
        AnnotationEvent(
            round_id=a.round_id,
            response_id=a.response_id,
            claim_id=a.claim_id,
            passage_id=a.passage_id,
            dimension=a.dimension,
            grader_id=a.grader_id,
            action=Action.REASSIGNED,
            label=a.label,
            note=a.note,
            evidence=a.evidence,
        )
        for a in said
    )
    own.delete()
    return [Place(a.dimension, a.claim_id, a.passage_id) for a in said]


def reassign_unfinished(
    *, round: Round, grader: Grader, to: Grader, at_most: int | None = None
) -> tuple[int, int]:
    """Hand over what is unfinished, from the end of the queue; how many moved, and how many could not."""
    moved = _hand_over(_unfinished(round, grader), to, at_most)
    return moved, _unfinished(round, grader).count()


def share_with(*, round: Round, to: Grader, at_most: int | None = None) -> tuple[int, int]:
    """Take from everybody, so that this grader has as much left as they; how many moved, how many are left.

    What a grader has begun stays with them.
    """
    pending = _pending_per_grader(round)
    moved = 0
    for giver, n in to_take(pending, pending.pop(to, 0)).items():
        n = n if at_most is None else min(n, at_most - moved)
        begun = Annotation.objects.filter(round=round, grader=giver).values("response")
        moved += _hand_over(_unfinished(round, giver).exclude(response__in=begun), to, n)
    return moved, _unfinished(round, to).count()


def spread(*, round: Round, grader: Grader, at_most: int | None = None) -> tuple[int, int]:
    """Deal what is unfinished to the others of the round, who have least to do first."""
    loads = _pending_per_grader(round)
    loads.pop(grader, None)
    moved = 0
    for assignment in _unfinished(round, grader).select_related("round", "response")[:at_most]:
        for other in sorted(loads, key=lambda other: (loads[other], other.number)):
            if _can_take(assignment, other):
                loads[other] += 1
                moved += 1
                break
    return moved, _unfinished(round, grader).count()


def _pending_per_grader(round: Round) -> dict[Grader, int]:
    """Of everybody in the round with a log-in."""
    graders = Grader.objects.filter(assignments__round=round, person__isnull=False).order_by("number")
    pending = Q(assignments__round=round, assignments__state=Assignment.State.PENDING)
    counted = graders.distinct().annotate(n_pending=Count("assignments", filter=pending, distinct=True))
    return {grader: grader.n_pending for grader in counted}


def _unfinished(round: Round, grader: Grader):
    """From the end of the queue."""
    pending = Assignment.objects.filter(round=round, grader=grader, state=Assignment.State.PENDING)
    return pending.order_by("-skips", "-order")


def _hand_over(unfinished, to: Grader, at_most: int | None) -> int:
    """One transaction a response: the grader may be labelling at this moment."""
    moved = 0
    for assignment in unfinished.select_related("round", "response"):
        if moved == at_most:
            break
        moved += _moves(assignment, to)
    return moved


def _can_take(assignment: Assignment, to: Grader) -> bool:
    """As `_moves`; who may not take anything over, such as a lead who has seen the labels, is passed by."""
    try:
        return _moves(assignment, to)
    except Refused:
        return False


def _moves(assignment: Assignment, to: Grader) -> bool:
    """Whether it could be handed over; who grades a response already cannot have it twice."""
    if Assignment.objects.filter(
        round=assignment.round_id, response=assignment.response_id, grader=to
    ).exists():
        return False
    try:
        reassign(assignment=assignment, to=to)
    except Conflict:
        return False
    return True
