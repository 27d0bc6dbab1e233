"""A second look: some of what was graded, drawn at random, graded again without the first label in view."""

from collections.abc import Sequence
from random import Random

from django.db import transaction
from django.utils.translation import gettext as _

from annotate.models import Annotation, Assignment, Grader, Round, RubricVersion, SecondLookTarget, Unblinding
from annotate.planning import plan
from annotate.services.opening import assign
from annotate.services.rounds import ONGOING, check_no_other_second_look, new_seed, next_round_number
from annotate.services.rubrics import latest_rubric
from annotate.services.targets import BATCH, Conflict, Refused, Target
from evalsets.access import GRADER, has_role
from evalsets.models import EvalSetVersion, Response
from evalsets.text import is_blank

FIELDS = ("dimension", "response_id", "claim_id", "passage_id")


def second_look_rubric(round: Round) -> RubricVersion:
    """The rules of the first grading; where those are not known, the latest rubric of the eval set."""
    if round.kind == Round.Kind.IMPORTED:
        return latest_rubric(evalset=round.version.evalset)
    return round.rubric_version


def drawable(*, round: Round, dimension: str = "", of: Grader | None = None) -> list[Target]:
    """What carries a label (of this grader) and can be asked again; parts of a split cannot."""
    asked = set(second_look_rubric(round).dimensions.values_list("name", flat=True))
    labelled = Annotation.objects.filter(
        round=round, claim__parent__isnull=True, dimension__in=asked & {dimension} if dimension else asked
    )
    if of is not None:
        labelled = labelled.filter(grader=of)
    targets = [Target(*row) for row in labelled.order_by().values_list(*FIELDS).distinct()]
    if round.kind == Round.Kind.IMPORTED:
        blank = _blank_responses({t.response_id for t in targets if t.claim_id is None})
        targets = [t for t in targets if t.claim_id or t.response_id not in blank]
    return sorted(targets, key=lambda t: (t.dimension, t.response_id, t.claim_id or 0, t.passage_id or 0))


def _blank_responses(pks: set[int]) -> set[int]:
    """A file may hold a label of an empty response; nobody can be asked for one."""
    texts = Response.objects.in_bulk(pks).values() if pks else ()
    return {response.pk for response in texts if is_blank(response.text)}


@transaction.atomic
def draw_second_look(
    *,
    round: Round,
    graders: Sequence[Grader],
    n: int,
    dimension: str = "",
    of: Grader | None = None,
    seed: int | None = None,
    person=None,
    once: bool = False,
) -> Round:
    """A round that asks each of the graders for the same `n` targets, and for nothing else.

    With `once` the seed is taken for the name of the submit, as in open_round.
    """
    version = EvalSetVersion.objects.select_for_update().get(pk=round.version_id)
    if once and (before := version.rounds.filter(seed=seed).first()):
        return before
    if round.kind == Round.Kind.SECOND_LOOK:
        raise Refused(_("This is a second look already. Draw another one from the first grading."))
    _check_graders(round, graders)
    pool = drawable(round=round, dimension=dimension, of=of)
    if not 1 <= n <= len(pool):
        raise Refused(
            _("%(n)s cannot be drawn: there are %(there)s targets with a label.")
            % {"n": n, "there": len(pool)}
        )
    seed = new_seed() if seed is None else seed
    second = Round.objects.create(
        version=version,
        number=next_round_number(version),
        kind=Round.Kind.SECOND_LOOK,
        rubric_version=second_look_rubric(round),
        second_look_of=round,
        seed=seed,
        created_by=person,
    )
    second.runs.set(round.runs.all())
    drawn = Random(f"{seed}:second look").sample(pool, n)
    SecondLookTarget.objects.bulk_create(
        (SecondLookTarget(round=second, **target.where) for target in drawn), batch_size=BATCH
    )
    responses = sorted({target.response_id for target in drawn})
    slots = plan(
        responses=responses, graders=[g.pk for g in graders], overlapping=frozenset(responses), seed=seed
    )
    assign(second, slots)
    return second


def _check_graders(round: Round, graders: Sequence[Grader]) -> None:
    if not graders:
        raise Refused(_("Choose at least one grader."))
    if len({grader.pk for grader in graders}) != len(graders):
        raise Refused(_("The same grader is chosen twice."))
    evalset = round.version.evalset
    for grader in graders:
        name = {"name": grader.name}
        is_member = grader.person is not None and has_role(grader.person, evalset, GRADER)
        if grader.evalset_id != evalset.pk or not is_member:
            raise Refused(_("%(name)s is not a grader of this eval set.") % name)
        if Unblinding.objects.filter(round=round, person=grader.person).exists():
            raise Refused(
                _("%(name)s has opened pages that show the labels of this round, and so cannot look again.")
                % name
            )
        check_no_other_second_look(round, grader)
        if Assignment.objects.filter(
            round=round, grader=grader, state=Assignment.State.PENDING, round__state__in=ONGOING
        ).exists():
            raise Conflict(
                _("%(name)s has not finished round %(number)s yet; a second look comes after it.")
                % {**name, "number": round.number}
            )
