"""The blind door. Every page, export and route that shows a label, gold or a verdict comes through here.

A grader gets back their own rows only (`own_round`, `own_assignment`). Labels of others, agreement, gold and
verdicts are for leads (`labels_of`), and closed even to a lead while that lead has unfinished assignments:
a person who still grades must not see what others said.
"""

from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from django.http import Http404

from annotate.models import Annotation, Assignment, AuditedResponse, Grader, Round, Unblinding
from evalsets.access import GRADER, LEAD, evalset_of, roles_of, version_of
from evalsets.models import EvalSet, EvalSetVersion
from evalsets.prepared import Prepared


class ClosedWhileGrading(Exception):
    """Raised instead of showing labels to somebody with unfinished assignments in that round.

    `of_response`: only this response is closed, for its claim audit, and until it is graded.
    """

    second_look = False

    def __init__(self, rounds, of_response=False):
        self.rounds, self.of_response = rounds, of_response
        super().__init__("closed while you have unfinished assignments")


class ClosedForSecondLook(ClosedWhileGrading):
    """Raised instead of showing somebody their own earlier labels of what they are to label again."""

    second_look = True


def unfinished_rounds(person, version: EvalSetVersion):
    """The rounds of this version in which the person still has something to grade (open or paused)."""
    return _unfinished(person).filter(version=version)


def unfinished_anywhere(person, evalset: EvalSet):
    """The same for all versions of an eval set."""
    return _unfinished(person).filter(version__evalset=evalset)


def _unfinished(person):
    return Round.objects.filter(
        state__in=[Round.State.OPEN, Round.State.PAUSED],
        assignments__grader__person=person,
        assignments__state=Assignment.State.PENDING,
    ).distinct()


def told_of(person, slug) -> EvalSet:
    """The eval set, for a lead who may read what was found out about its judges: counts, never a label."""
    evalset = evalset_of(person, slug, LEAD)
    blocking = list(unfinished_anywhere(person, evalset))
    if blocking:
        raise ClosedWhileGrading(blocking)
    return evalset


def labels_of(person, slug, number) -> EvalSetVersion:
    """The version, for a lead who may see everything said about it; 404 for others, closed while grading."""
    version = version_of(person, slug, number, LEAD)
    blocking = list(unfinished_rounds(person, version))
    if blocking:
        raise ClosedWhileGrading(blocking)
    _note_unblinding(person, version)
    return version


def _note_unblinding(person, version: EvalSetVersion) -> None:
    """From now on this person may have seen the labels of these rounds: their own there become final."""
    seen = Unblinding.objects.filter(round=OuterRef("pk"), person=person)
    labelled = Annotation.objects.filter(round=OuterRef("pk"))
    rounds = Round.objects.filter(~Exists(seen), Exists(labelled), version=version).exclude(
        kind=Round.Kind.IMPORTED
    )
    Unblinding.objects.bulk_create(
        [Unblinding(round=round, person=person) for round in rounds], ignore_conflicts=True
    )


# The claim audit holds no labels and belongs before a run is frozen, so it is open to leads who still grade.
# But a mark or a note is somebody's word about a claim: not of a response that the lead has yet to grade.


def responses_to_grade(person, version: EvalSetVersion):
    """Ids of the responses of this version that the person still has to grade."""
    return Assignment.objects.filter(
        round__in=unfinished_rounds(person, version),
        grader__person=person,
        state=Assignment.State.PENDING,
    ).values("response")


def audited_of(person, slug, number, sample_number, position) -> AuditedResponse:
    """One response of an audit sample, for leads; closed to one who still has to grade it."""
    version = version_of(person, slug, number, LEAD)
    audited = (
        AuditedResponse.objects.select_related("sample__version__evalset", "response__item", "response__run")
        .filter(sample__version=version, sample__number=sample_number, position=position)
        .first()
    )
    if audited is None:
        raise Http404
    blocking = unfinished_rounds(person, version).filter(
        assignments__response=audited.response_id,
        assignments__grader__person=person,
        assignments__state=Assignment.State.PENDING,
    )
    if blocking.exists():
        raise ClosedWhileGrading(list(blocking), of_response=True)
    return audited


def _second_looks():
    return Round.objects.filter(kind=Round.Kind.SECOND_LOOK, state__in=[Round.State.OPEN, Round.State.PAUSED])


def second_looks_in_the_way(person, round: Round) -> list[Round]:
    """Unfinished second looks of this person at responses that they have graded in this round."""
    own = Assignment.objects.filter(grader__person=person)
    again = own.filter(
        round=OuterRef("pk"),
        state=Assignment.State.PENDING,
        response__in=own.filter(round=round).values("response"),
    )
    looks = _second_looks().filter(version=round.version_id).exclude(pk=round.pk)
    return list(looks.filter(Exists(again)))


def round_for_grading(person, round_id) -> tuple[Round, Grader | None]:
    """The round and the person's own grader in it (None: nothing is assigned); 404 for other people.

    Closed while the person has a second look at some of it to finish: the first label is not to be in view.
    """
    round = _round_open_to(person, round_id)
    assigned = Assignment.objects.filter(round=round, grader=OuterRef("pk"))
    own = Grader.objects.filter(Exists(assigned), evalset=round.version.evalset_id, person=person)
    return round, own.order_by("pk").first()


def _round_open_to(person, round_id) -> Round:
    looks = _second_looks().filter(version=OuterRef("version")).exclude(pk=OuterRef("pk"))
    round = (
        Round.objects.select_related("version__evalset", "rubric_version__rubric")
        .annotate(
            has_second_looks=Exists(looks),
            is_grader=Exists(roles_of(person, GRADER).filter(evalset=OuterRef("version__evalset"))),
        )
        .exclude(kind=Round.Kind.IMPORTED)
        .filter(pk=round_id)
        .order_by()
        .first()
    )
    if round is None or not round.is_grader:
        raise Http404
    if round.has_second_looks:
        _check_no_second_look(person, round)
    return round


def _check_no_second_look(person, round: Round) -> None:
    if blocking := second_looks_in_the_way(person, round):
        raise ClosedForSecondLook(blocking)


def own_round(person, round_id) -> tuple[Round, Grader]:
    """The round and the person's own grader in it; 404 unless they are assigned to it."""
    round, grader = round_for_grading(person, round_id)
    if grader is None:
        raise Http404
    return round, grader


def own_assignment(person, round_id, assignment_id) -> Assignment:
    """One of the person's own assignments; anything else does not exist for them."""
    if not person.is_active:
        raise Http404
    assignment = _own_assignment.first(assignment=assignment_id, round=round_id, person=person.pk)
    if assignment is None:
        raise Http404
    if assignment.has_second_looks:
        _check_no_second_look(person, assignment.round)
    return assignment


# A label reads these with every key; the rest of the rows is wide, and read when somebody asks for it.
OF_A_LABEL = (
    "state",
    "round__number",
    "round__kind",
    "round__state",
    "round__warm_up",
    "round__version__number",
    "round__version__evalset__name",
    "round__rubric_version__sha256",
    "round__rubric_version__reference_based",
    "grader__person_id",
    "response__text",
    "response__item__question",
    "response__item__reference_answer",
)
_own_assignment = Prepared(
    lambda assignment, round, person: (
        Assignment.objects.filter(
            pk=assignment,
            round=round,
            grader__person=person,
            round__version__evalset__memberships__person=person,
            round__version__evalset__memberships__role=GRADER,
        )
        .exclude(round__kind=Round.Kind.IMPORTED)
        .annotate(
            has_second_looks=Exists(
                _second_looks().filter(version=OuterRef("round__version")).exclude(pk=OuterRef("round"))
            )
        )
        .select_related("response__item", "round__version__evalset", "round__rubric_version", "grader")
        .only(*OF_A_LABEL)
        .order_by()
    ),
    assignment=int,
    round=int,
    person=int,
)


# What a grader may see of a response. These objects hold copies of a few fields and no way to anything else:
# ids are left out too, since a file may name its system in them.


@dataclass(frozen=True)
class ShownPassage:
    pk: int
    rank: int
    title: str
    text: str


@dataclass(frozen=True)
class ShownClaim:
    pk: int
    text: str
    cites: frozenset[int]  # ranks of passages


@dataclass(frozen=True)
class ShownResponse:
    question: str | None
    text: str
    claims: tuple[ShownClaim, ...]
    passages: tuple[ShownPassage, ...]
    reference_answer: str | None  # None unless the rubric compares with it

    @property
    def is_empty(self) -> bool:
        return self.text.strip() == ""


def shown_to_grader(assignment: Assignment) -> ShownResponse:
    response, item = assignment.response, assignment.response.item
    passages = response.ranked_passages
    rank_of = {passage.passage_id: passage.rank for passage in passages}
    return ShownResponse(
        question=item.question,
        text=response.text,
        claims=tuple(
            ShownClaim(claim.pk, claim.text, frozenset(rank_of[i] for i in claim.source_ids if i in rank_of))
            for claim in response.whole_claims
        ),
        passages=tuple(
            ShownPassage(passage.pk, passage.rank, passage.title or passage.document or "", passage.text)
            for passage in passages
        ),
        reference_answer=item.reference_answer if assignment.round.rubric_version.reference_based else None,
    )
