"""What the other modules share: targets, refusals, locks, and settling gold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE, Place, Question, condition_of
from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    Dimension,
    GoldLabel,
    Round,
)
from evalsets.models import Claim, Passage, Response

BATCH = 2000
Action = AnnotationEvent.Action


class Refused(Exception):
    """The request cannot be done as asked; the message is a sentence for the person who asked."""


class NotAssigned(Refused):
    """A label by somebody who does not hold this response in this round."""


class Conflict(Refused):
    """It could have been done at another moment: paused, closed, decided, or not yet complete."""


class Target(NamedTuple):
    """What a label is about: a claim, a whole response, a passage, or a citation (a claim with a passage)."""

    dimension: str
    response_id: int
    claim_id: int | None = None
    passage_id: int | None = None

    @classmethod
    def at(cls, response_id: int, place: Place) -> "Target":
        return cls(place.dimension, response_id, place.claim, place.passage)

    @property
    def place(self) -> Place:
        return Place(self.dimension, self.claim_id, self.passage_id)

    @property
    def where(self) -> dict[str, Any]:
        return {
            "dimension": self.dimension,
            "response_id": self.response_id,
            "claim_id": self.claim_id,
            "passage_id": self.passage_id,
        }

    @property
    def filter(self) -> Q:
        claim = Q(claim__isnull=True) if self.claim_id is None else Q(claim_id=self.claim_id)
        passage = Q(passage__isnull=True) if self.passage_id is None else Q(passage_id=self.passage_id)
        return claim & passage & Q(dimension=self.dimension, response_id=self.response_id)


def outcome_of(labels: Sequence[str]) -> tuple[str, str] | None:
    """The gold label and its source, from the labels of everybody assigned; None where they differ."""
    if len(set(labels)) != 1:
        return None
    return labels[0], GoldLabel.Source.SINGLE if len(labels) == 1 else GoldLabel.Source.AGREED


def settle(round: Round, target: Target, questions: Sequence[Question]) -> None:
    """Write, change or remove the gold of a target, then of whatever is asked because of it."""
    if round.kind == Round.Kind.SECOND_LOOK:
        return  # it measures a grading, and leaves its gold alone
    gold = GoldLabel.objects.filter(target.filter, round=round)
    voters = _voters(round, target, questions)
    if voters is None:
        gold.delete()
    elif not gold.filter(source=GoldLabel.Source.ADJUDICATED).exists():
        said = _said(round, target)
        outcome = outcome_of(list(said.values())) if set(said) == voters else None
        if outcome is None:
            gold.delete()
        else:
            label, source = outcome
            GoldLabel.objects.update_or_create(
                round=round, **target.where, defaults={"label": label, "source": source}
            )
    settle_dependents(round, target, questions)


def settle_dependents(round: Round, target: Target, questions: Sequence[Question]) -> None:
    for dependent in _dependents(round, target, questions):
        settle(round, dependent, questions)


def _said(round: Round, target: Target) -> dict[int, str]:
    return dict(Annotation.objects.filter(target.filter, round=round).values_list("grader_id", "label"))


def _voters(round: Round, target: Target, questions: Sequence[Question]) -> set[int] | None:
    """Who has to answer: everybody assigned; where there is a condition, those whose own label meets it.

    None while the gold of the label it depends on does not lead to the question.
    """
    question = question_of(questions, target.dimension)
    condition = condition_of(question, target.place) if question else None
    if question is None or condition is None:
        return _assigned(round, target.response_id)
    parent = Target.at(target.response_id, condition)
    if not GoldLabel.objects.filter(parent.filter, round=round, label__in=question.when).exists():
        return None
    return {grader for grader, label in _said(round, parent).items() if label in question.when}


def _dependents(round: Round, target: Target, questions: Sequence[Question]) -> list[Target]:
    """What was labelled, or decided, in answer to a question that this target's label leads to."""
    names = [question.dimension for question in questions if question.after == target.dimension]
    if not names:
        return []
    within = Q(round=round, response=target.response_id, dimension__in=names)
    if target.claim_id is not None:
        within &= Q(claim=target.claim_id)
    if target.passage_id is not None:
        within &= Q(passage=target.passage_id)
    fields = ("dimension", "response_id", "claim_id", "passage_id")
    labelled = Annotation.objects.filter(within).values_list(*fields)
    settled = GoldLabel.objects.filter(within).values_list(*fields)
    return [Target(*row) for row in {*labelled, *settled}]


def question_of(questions: Sequence[Question], dimension: str) -> Question | None:
    return next((question for question in questions if question.dimension == dimension), None)


def _assigned(round: Round, response_id: int) -> set[int]:
    return set(
        Assignment.objects.filter(round=round, response_id=response_id).values_list("grader_id", flat=True)
    )


def check_all_labelled(round: Round, target: Target, questions: Sequence[Question]) -> None:
    """Everybody who is asked has answered; a question that nobody was asked is the lead's to answer."""
    if round.kind == Round.Kind.SECOND_LOOK:
        raise Conflict(_("A second look measures the first grading; decide in the round it looks at."))
    voters = _voters(round, target, questions)
    question = question_of(questions, target.dimension)
    if voters is None:
        assert question is not None
        raise Conflict(
            _("Not yet: this is asked only once %(dimension)s is settled as %(labels)s.")
            % {"dimension": question.after, "labels": ", ".join(sorted(question.when))}
        )
    said = set(_said(round, target))
    missing = voters - said
    is_conditional = question is not None and question.after
    if missing or not (said or is_conditional):
        raise Conflict(
            ngettext(
                "Not yet: the label of one grader is still missing.",
                "Not yet: the labels of %(n)s graders are still missing.",
                len(missing) or 1,
            )
            % {"n": len(missing) or 1}
        )


def lock_assignments(round: Round, response: Response) -> list[Assignment]:
    """Everybody's slots for this response. Who holds them is alone in settling its labels.

    SQLite has no row locks; there the transaction itself is alone (it begins IMMEDIATE).
    """
    return list(Assignment.objects.select_for_update().filter(round=round, response=response).order_by("pk"))


def round_for_labels(round: Round) -> Round:
    """The round as it is now, once the assignments are locked; refuses when labels may not change."""
    now = Round.objects.select_related("version__evalset").get(pk=round.pk)
    if now.state == Round.State.PAUSED:
        raise Conflict(_("The round is paused; nothing can be labelled until it is resumed."))
    if now.state == Round.State.CLOSED:
        raise Conflict(_("The round is closed; its labels can no longer be changed."))
    return now


def checked_target(
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    passage: Passage | None = None,
    *,
    may_be_part: bool = False,
) -> tuple[Target, Dimension]:
    """The target and its dimension: it is in the rubric, it fits, and all of it is of the response."""
    asked_of = next((d for d in round.rubric_version.dimensions.all() if d.name == dimension), None)
    if asked_of is None:
        raise Refused(_("%(dimension)s is not in the rubric of this round.") % echo(dimension=dimension))
    if asked_of.target != _kind_of(claim, passage):
        raise Refused(_("%(dimension)s is not asked of this target.") % echo(dimension=dimension))
    if claim is not None and claim.response_id != response.pk:
        raise Refused(_("The claim belongs to another response."))
    if passage is not None and passage.response_id != response.pk:
        raise Refused(_("The passage belongs to another response."))
    if claim is not None and claim.parent_id and not may_be_part:
        raise Refused(_("Parts of a split claim are decided by the lead."))
    if asked_of.target == Dimension.Target.RESPONSE and response.is_empty:
        raise Refused(_("An empty response has no label: it is recorded as empty."))
    return Target(
        dimension, response.pk, claim.pk if claim else None, passage.pk if passage else None
    ), asked_of


def checked_label(dimension: Dimension, label: str) -> None:
    if label not in dimension.label_names:
        raise Refused(
            _("%(label)s is not a label of %(dimension)s.") % echo(label=label, dimension=dimension.name)
        )


def _kind_of(claim: Claim | None, passage: Passage | None) -> str:
    if claim is None:
        return RESPONSE if passage is None else PASSAGE
    return CLAIM if passage is None else CITATION


def echo(**values: object) -> dict[str, str]:
    """What was sent, short enough to be shown in a message."""
    return {
        name: repr(value)[:82] if isinstance(value, str) else str(value) for name, value in values.items()
    }
