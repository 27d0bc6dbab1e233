"""What the other modules share: targets, refusals, locks, and settling gold."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE, Place, Question, condition_of
from annotate.material import PLACE, dimensions_of
from annotate.models import (
    Adjudication,
    Annotation,
    AnnotationEvent,
    Assignment,
    Dimension,
    GoldLabel,
    Round,
    WithdrawnPart,
)
from evalsets.models import Claim, Passage, Response
from evalsets.prepared import Prepared, PreparedInsert

_labels = Prepared(
    lambda **of: Annotation.objects.filter(**of).values_list(
        *PLACE, "grader_id", "pk", "label", "note", "evidence"
    ),
    round=int,
    response=int,
)
_gold = Prepared(
    lambda **of: GoldLabel.objects.filter(**of).values_list(
        *PLACE, "pk", "label", "source", "claim__parent_id"
    ),
    round=int,
    response=int,
)
_held = Prepared(
    lambda **of: Assignment.objects.select_for_update().filter(**of).order_by("pk"), round=int, response=int
)
_state = Prepared(
    lambda round: Round.objects.filter(pk=round).order_by().values_list("state", flat=True), round=int
)
_store_gold = PreparedInsert(GoldLabel)

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


class Said(NamedTuple):
    """One grader's current label of a target."""

    pk: int
    label: str
    note: str
    evidence: list[int]


class Gold(NamedTuple):
    pk: int
    label: str
    source: str


class Record:
    """Who answers, who has said what, and what is gold, of one response.

    Read once, and true while the response's assignments are held; whoever writes keeps it in step.
    """

    def __init__(self, round: Round, response_id: int, graders: Iterable[int] | None = None) -> None:
        self.round, self.response_id = round, response_id
        self.graders = set(_assigned(round, response_id) if graders is None else graders)
        self.said: defaultdict[Place, dict[int, Said]] = defaultdict(dict)
        for *place, grader, pk, label, note, evidence in _labels(round=round.pk, response=response_id):
            self.said[Place(*place)][grader] = Said(pk, label, note, evidence)
        self.gold: dict[Place, Gold] = {}
        self.split: set[int] = set()  # claims whose parts count in their place
        for *place, pk, label, source, split in _gold(round=round.pk, response=response_id):
            self.gold[Place(*place)] = Gold(pk, label, source)
            if split:
                self.split.add(split)

    @cached_property
    def decisions(self) -> dict[Place, Adjudication]:
        """What the lead decided and has not taken back."""
        standing = decisions_that_stand(self.round).filter(response=self.response_id).order_by("pk")
        return {Place(d.dimension, d.claim_id, d.passage_id): d for d in standing}

    def said_by(self, grader_id: int) -> dict[Place, Said]:
        return {place: said[grader_id] for place, said in self.said.items() if grader_id in said}

    def labels_of(self, grader_id: int) -> dict[Place, str]:
        return {place: said.label for place, said in self.said_by(grader_id).items()}

    def voters(self, place: Place, questions: Sequence[Question]) -> set[int] | None:
        """Who has to answer: everybody assigned; where there is a condition, those whose own label meets it.

        None while the gold of the label it depends on does not lead to the question.
        """
        question = question_of(questions, place.dimension)
        condition = condition_of(question, place) if question else None
        if question is None or condition is None:
            # Imported labels came without assignments: whoever labelled is whoever was asked.
            return set(self.said.get(place, ())) if self.round.kind == Round.Kind.IMPORTED else self.graders
        gold = self.gold.get(condition)
        if gold is None or gold.label not in question.when:
            return None
        said = self.said.get(condition, {})
        return {grader for grader, one in said.items() if one.label in question.when}

    def settle(self, place: Place, questions: Sequence[Question]) -> None:
        """Write, change or remove the gold of a target, then of whatever is asked because of it."""
        if self.round.kind == Round.Kind.SECOND_LOOK:
            return  # it measures a grading, and leaves its gold alone
        voters = self.voters(place, questions)
        gold = self.gold.get(place)
        if voters is None or self._is_split(place):
            self._hold(place, None)
        elif gold is None or gold.source != GoldLabel.Source.ADJUDICATED:
            said = self.said.get(place, {})
            if decision := self._decided_before(place, questions):
                self._hold(place, (decision.label, GoldLabel.Source.ADJUDICATED), decision)
            else:
                everybody = set(said) == voters
                self._hold(place, outcome_of([one.label for one in said.values()]) if everybody else None)
        self.settle_dependents(place, questions)

    def _is_split(self, place: Place) -> bool:
        """A grader who takes over late still labels the whole claim; its parts are decided already."""
        return place.dimension == "grounding" and place.claim in self.split

    def _decided_before(self, place: Place, questions: Sequence[Question]) -> Adjudication | None:
        """Only the gold of a condition that no longer holds goes before its decision does, and may return."""
        question = question_of(questions, place.dimension)
        return self.decisions.get(place) if question and question.after else None

    def settle_dependents(self, place: Place, questions: Sequence[Question]) -> None:
        """What was labelled, or decided, in answer to a question that this target's label leads to."""
        names = {question.dimension for question in questions if question.after == place.dimension}
        if not names:
            return
        answered = {other for other, said in self.said.items() if said} | self.gold.keys()
        answered |= self.decisions.keys()
        for other in sorted(answered, key=str):
            within = place.claim in (None, other.claim) and place.passage in (None, other.passage)
            if other.dimension in names and within:
                self.settle(other, questions)

    def _hold(
        self, place: Place, outcome: tuple[str, str] | None, decision: Adjudication | None = None
    ) -> None:
        gold = self.gold.get(place)
        if outcome is None:
            if gold is not None:
                GoldLabel.objects.filter(pk=gold.pk).delete()
                del self.gold[place]
            return
        label, source = outcome
        if gold is None:
            where = Target.at(self.response_id, place).where
            pk = _store_gold(
                round_id=self.round.pk,
                **where,
                label=label,
                source=source,
                adjudication_id=decision.pk if decision else None,
            )
            self.gold[place] = Gold(pk, label, source)
        elif (gold.label, gold.source) != outcome:
            GoldLabel.objects.filter(pk=gold.pk).update(
                label=label, source=source, adjudication=decision, updated_at=timezone.now()
            )
            self.gold[place] = Gold(gold.pk, label, source)


def decisions_that_stand(round: Round) -> QuerySet[Adjudication]:
    """Neither revoked nor the revoking of another; of a target's the latest holds."""
    return Adjudication.objects.filter(round=round, revokes__isnull=True, revoked_by__isnull=True)


def settle(round: Round, target: Target, questions: Sequence[Question]) -> None:
    Record(round, target.response_id).settle(target.place, questions)


def settle_all(
    round: Round, response_id: int, places: Iterable[Place], questions: Sequence[Question]
) -> None:
    record = Record(round, response_id)
    for place in places:
        record.settle(place, questions)


def settle_dependents(round: Round, target: Target, questions: Sequence[Question]) -> None:
    Record(round, target.response_id).settle_dependents(target.place, questions)


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
    record = Record(round, target.response_id)
    voters = record.voters(target.place, questions)
    question = question_of(questions, target.dimension)
    if voters is None:
        assert question is not None
        raise Conflict(
            _("Not yet: this is asked only once %(dimension)s is settled as %(labels)s.")
            % {"dimension": question.after, "labels": ", ".join(sorted(question.when))}
        )
    said = set(record.said.get(target.place, {}))
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
    return _held(round=round.pk, response=response.pk)


def round_for_labels(round: Round) -> Round:
    """Its state is read anew, once the assignments are locked; refuses when labels may not change."""
    round.state = _state.first(round=round.pk)
    if round.state == Round.State.PAUSED:
        raise Conflict(_("The round is paused; nothing can be labelled until it is resumed."))
    if round.state == Round.State.CLOSED:
        raise Conflict(_("The round is closed; its labels can no longer be changed."))
    return round


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
    asked_of = next((d for d in dimensions_of(round.rubric_version) if d.name == dimension), None)
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
    if claim is not None and claim.parent_id and WithdrawnPart.objects.filter(claim=claim).exists():
        raise Refused(_("The split that made this part was taken back; the whole claim counts."))
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
