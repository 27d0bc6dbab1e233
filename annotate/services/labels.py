"""What a grader does: label, take back, skip, flag, propose a split."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.asking import Place, asked, is_finished, no_longer_asked
from annotate.material import drawn_of, material_of, questions_of
from annotate.models import (
    Adjudication,
    Annotation,
    AnnotationEvent,
    Assignment,
    ClaimSplit,
    Flag,
    Grader,
    Opening,
    Round,
    Unblinding,
)
from annotate.services.targets import (
    Action,
    Conflict,
    NotAssigned,
    Record,
    Refused,
    Said,
    Target,
    checked_label,
    checked_target,
    lock_assignments,
    round_for_labels,
)
from annotate.services.warm_up import check_warmed_up
from evalsets.models import Claim, Passage, Response
from evalsets.prepared import Prepared, PreparedInsert

_events = Prepared(
    lambda grader, key: AnnotationEvent.objects.filter(grader=grader, key=key), grader=int, key=UUID
)
_store_label, _store_event = PreparedInsert(Annotation), PreparedInsert(AnnotationEvent)


@dataclass(frozen=True)
class Answered:
    """A label that was received, and how the grader's work on the response stands with it."""

    annotation: Annotation
    state: str  # of the assignment
    said: Mapping[Place, Said] | None = None  # by this grader of this response; None: it was not read


@transaction.atomic
def annotate(
    *,
    round: Round,
    grader: Grader,
    response: Response,
    claim: Claim | None,
    dimension: str,
    label: str,
    passage: Passage | None = None,
    note: str = "",
    evidence: Sequence[int] = (),
    milliseconds: int | None = None,
    key: UUID | None = None,
) -> Answered:
    """One label. Sent twice with the same key, or with the same content, it is stored once."""
    target, asked_of = checked_target(round, response, claim, dimension, passage)
    checked_label(asked_of, label)
    evidence = _checked_evidence(response, evidence)
    held = lock_assignments(round, response)
    own = _own(held, grader)
    if key and (event := _event_of(grader, key)):
        return Answered(_answer_again(event, round, target, label), own.state)
    round = round_for_labels(round)
    check_warmed_up(round, grader)
    answering = Answering(round, grader, response, own, held)
    current = answering.current(target)
    if current:
        _check_not_final(round, grader, response)
        if (current.label, current.note, current.evidence) == (label, note, evidence):
            return answering.answer(Annotation.objects.get(pk=current.pk))
    answering.check_asked(target)
    kept = answering.keep(
        target, label=label, note=note, evidence=evidence, milliseconds=milliseconds, key=key
    )
    answering.conclude(target)
    return answering.answer(kept)


@transaction.atomic
def take_back(*, round: Round, grader: Grader, key: UUID | None = None) -> AnnotationEvent | None:
    """Withdraw the grader's latest label in this round; None when there is nothing left to take back."""
    if key and (event := _event_of(grader, key)):
        return event
    latest = _latest_label(round, grader)
    if latest is None:
        return None
    held = lock_assignments(round, latest.response)
    own = _own(held, grader)
    if key and (event := _event_of(grader, key)):
        return event
    round = round_for_labels(round)
    latest = _latest_label(round, grader)
    if latest is None or latest.response_id != own.response_id:
        raise Conflict(_("Your latest label has changed meanwhile. Look again, and take back once more."))
    _check_not_final(round, grader, latest.response)
    target = Target(latest.dimension, latest.response_id, latest.claim_id, latest.passage_id)
    answering = Answering(round, grader, latest.response, own, held)
    event = answering.withdraw(target, key=key)
    answering.conclude(target)
    return event


@transaction.atomic
def skip(*, round: Round, grader: Grader, response: Response) -> Assignment:
    """To the end of the grader's own queue; nobody else's queue moves."""
    own = _own_assignment(round, grader, response)
    round_for_labels(round)
    if own.state == Assignment.State.DONE:
        return own
    queue = Assignment.objects.filter(round=round, grader=grader, state=Assignment.State.PENDING)
    own.skips = queue.aggregate(last=Max("skips"))["last"] + 1
    own.save(update_fields=["skips"])
    return own


@transaction.atomic
def flag(*, round: Round, grader: Grader, response: Response, claim: Claim | None, note: str = "") -> Flag:
    if claim is not None and claim.response_id != response.pk:
        raise Refused(_("The claim belongs to another response."))
    _own_assignment(round, grader, response)
    round_for_labels(round)
    flag, _made = Flag.objects.update_or_create(
        round=round, grader=grader, response=response, claim=claim, defaults={"note": note.strip()}
    )
    return flag


@transaction.atomic
def unflag(*, round: Round, grader: Grader, response: Response, claim: Claim | None) -> None:
    _own_assignment(round, grader, response)
    round_for_labels(round)
    Flag.objects.filter(round=round, grader=grader, response=response, claim=claim).delete()


@transaction.atomic
def propose_split(*, round: Round, grader: Grader, claim: Claim, parts: Sequence[str]) -> ClaimSplit:
    """A second proposal of the same grader replaces the first, until the lead has decided."""
    if round.kind == Round.Kind.SECOND_LOOK:
        raise Refused(_("A second look asks for labels only; a split is proposed in the first grading."))
    parts = [part.strip() for part in parts if part.strip()]
    if len(parts) < 2:
        raise Refused(_("A split needs at least two parts, one a line."))
    if len(set(parts)) != len(parts):
        raise Refused(_("The same part stands there twice."))
    checked_target(round, claim.response, claim, "grounding")
    _own_assignment(round, grader, claim.response)
    round = round_for_labels(round)
    if ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split already."))
    earlier = ClaimSplit.objects.filter(round=round, claim=claim, grader=grader).first()
    if earlier and earlier.state != ClaimSplit.State.PROPOSED:
        raise Conflict(_("Your proposal has been decided already."))
    split, _made = ClaimSplit.objects.update_or_create(
        round=round, claim=claim, grader=grader, defaults={"parts": parts}
    )
    return split


def _own_assignment(round: Round, grader: Grader, response: Response) -> Assignment:
    return _own(lock_assignments(round, response), grader)


def _own(held: Sequence[Assignment], grader: Grader) -> Assignment:
    for assignment in held:
        if assignment.grader_id == grader.pk:
            return assignment
    raise NotAssigned(_("This response is not assigned to you in this round."))


def _check_not_final(round: Round, grader: Grader, response: Response) -> None:
    """A label given for the first time is always welcome; a change is not, once the answer is out."""
    if Adjudication.objects.filter(round=round, response=response).exists():
        raise Conflict(
            _("The lead has already decided on this response; its labels can no longer be changed.")
        )
    if Opening.objects.filter(round=round, response=response).exists():
        raise Conflict(
            _("The lead has opened this response for adjudication; its labels can no longer be changed.")
        )
    if grader.person_id and Unblinding.objects.filter(round=round, person=grader.person_id).exists():
        raise Conflict(
            _("You have opened the pages that show everybody's labels, so your own can no longer be changed.")
        )


def _event_of(grader: Grader, key: UUID) -> AnnotationEvent | None:
    return _events.first(grader=grader.pk, key=key)


def _answer_again(event: AnnotationEvent, round: Round, target: Target, label: str) -> Annotation:
    """The answer to a submit that was received before. A label taken back since is not given again."""
    place = Target(event.dimension, event.response_id, event.claim_id, event.passage_id)
    sent = event.round_id, *place, event.label
    if sent != (round.pk, *target, label) or event.action not in (Action.LABELLED, Action.CHANGED):
        raise Conflict(_("This submit was already used for another label."))
    current = Annotation.objects.filter(target.filter, round=round, grader=event.grader).first()
    return current or Annotation(
        round=round, grader=event.grader, **target.where, label=label, note=event.note
    )


def _latest_label(round: Round, grader: Grader) -> Annotation | None:
    own = Annotation.objects.filter(round=round, grader=grader)
    return own.select_related("response").order_by("-updated_at", "-pk").first()


class Answering:
    """What a grader has been asked and has said of one response, around a label that comes or goes."""

    def __init__(
        self,
        round: Round,
        grader: Grader,
        response: Response,
        assignment: Assignment,
        held: Sequence[Assignment],
    ) -> None:
        self.round, self.grader, self.assignment = round, grader, assignment
        self.questions = questions_of(round.rubric_version)
        self.material = material_of(response, self.questions)
        self.drawn = drawn_of(round, response.pk)
        self.record = Record(round, response.pk, {each.grader_id for each in held})

    def current(self, target: Target) -> Said | None:
        return self.record.said[target.place].get(self.grader.pk)

    def check_asked(self, target: Target) -> None:
        labels = self.record.labels_of(self.grader.pk)
        if target.place not in asked(self.questions, self.material, labels, self.drawn):
            raise Conflict(_("This is not asked of you here. Look again."))

    def keep(self, target: Target, *, key: UUID | None, **said: Any) -> Annotation:
        """Store a label, new or changed, and the event that it is."""
        where = {"round_id": self.round.pk, "grader_id": self.grader.pk, **target.where}
        before = self.current(target)
        if before is None:
            now = timezone.now()
            kept = Annotation(**where, **said, created_at=now, updated_at=now)
            kept.pk = _store_label(**where, **said, created_at=now, updated_at=now)
        else:
            kept = Annotation.objects.get(pk=before.pk)
            for name, value in said.items():
                setattr(kept, name, value)
            kept.save(update_fields=[*said, "updated_at"])
        action = Action.CHANGED if before else Action.LABELLED
        _store_event(**where, **said, action=action, key=key)
        self.record.said[target.place][self.grader.pk] = Said(kept.pk, kept.label, kept.note, kept.evidence)
        return kept

    def withdraw(self, target: Target, *, key: UUID | None = None) -> AnnotationEvent:
        gone = self.record.said[target.place].pop(self.grader.pk)
        Annotation.objects.filter(pk=gone.pk).delete()
        return AnnotationEvent.objects.create(
            round=self.round,
            grader=self.grader,
            **target.where,
            action=Action.TAKEN_BACK,
            label=gone.label,
            note=gone.note,
            evidence=gone.evidence,
            key=key,
        )

    def conclude(self, target: Target) -> None:
        """Withdraw what is no longer asked, move the assignment, and settle gold."""
        labels = self.record.labels_of(self.grader.pk)
        if self.drawn is None:
            for place in no_longer_asked(self.questions, self.material, labels):
                self.withdraw(Target.at(target.response_id, place))
                del labels[place]
        self._move(is_finished(self.questions, self.material, labels, self.drawn))
        self.record.settle(target.place, self.questions)

    def answer(self, annotation: Annotation) -> Answered:
        return Answered(annotation, self.assignment.state, self.record.said_by(self.grader.pk))

    def _move(self, is_done: bool) -> None:
        state = Assignment.State.DONE if is_done else Assignment.State.PENDING
        if self.assignment.state == state:
            return
        self.assignment.state = state
        self.assignment.done_at = timezone.now() if is_done else None
        self.assignment.save(update_fields=["state", "done_at"])


def _checked_evidence(response: Response, ranks: Sequence[int]) -> list[int]:
    """Ranks of passages of this response, each once and in order."""
    chosen = sorted(set(ranks))
    if chosen:
        unknown = set(chosen) - set(response.passages.values_list("rank", flat=True))
        if unknown:
            raise Refused(_("This response has no passage %(rank)s.") % {"rank": min(unknown)})
    return chosen
