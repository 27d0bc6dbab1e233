"""Opening rounds: what there is to label, who gets what of it, and the rows of it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, OuterRef
from django.utils.translation import gettext as _

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE
from annotate.material import questions_of
from annotate.models import Assignment, Grader, Round, RubricVersion
from annotate.planning import EVERYTHING, Overlap, Slot, by_stratum, overlapping, plan
from annotate.services.rounds import new_seed, next_round_number
from annotate.services.rubrics import ensure_grader
from annotate.services.targets import BATCH, Refused, echo
from evalsets.models import Claim, EvalSetVersion, Passage, Response, SystemRun
from evalsets.text import is_blank


def work_in(*, runs: Iterable[SystemRun], rubric_version: RubricVersion) -> dict[int, int]:
    """Response -> how many labels it asks for, in the order of the set; what asks for none is not there.

    Questions on a condition come on top: how many of them are asked shows only when the labels are there.
    """
    runs = list(runs)
    always = Counter(question.target for question in questions_of(rubric_version) if not question.after)
    counts = [(always[target], count(runs)) for target, count in TARGETS_IN.items() if always[target]]
    responses = Response.objects.filter(run__in=runs).order_by("item__position", "run__number", "sample")
    work = {
        pk: always[RESPONSE] * (not is_blank(text)) + sum(n * of.get(pk, 0) for n, of in counts)
        for pk, text in responses.values_list("pk", "text").iterator(BATCH)
    }
    return {pk: labels for pk, labels in work.items() if labels}


def _claims_in(runs: list[SystemRun]) -> dict[int, int]:
    claims = Claim.objects.filter(response__run__in=runs, parent__isnull=True).order_by()
    return dict(claims.values_list("response").annotate(n=Count("pk")))


def _passages_in(runs: list[SystemRun]) -> dict[int, int]:
    passages = Passage.objects.filter(response__run__in=runs).order_by()
    return dict(passages.values_list("response").annotate(n=Count("pk")))


def _citations_in(runs: list[SystemRun]) -> dict[int, int]:
    served: dict[int, set[str]] = defaultdict(set)
    passages = Passage.objects.filter(response__run__in=runs).order_by()
    for response, passage in passages.values_list("response_id", "passage_id").iterator(BATCH):
        served[response].add(passage)
    claims = Claim.objects.filter(response__run__in=runs, parent__isnull=True).order_by()
    cited: Counter[int] = Counter()
    for response, cites in claims.values_list("response_id", "source_ids").iterator(BATCH):
        cited[response] += len(served[response].intersection(cites))
    return cited


TARGETS_IN = {CLAIM: _claims_in, PASSAGE: _passages_in, CITATION: _citations_in}


class Share(NamedTuple):
    """What a grader, or a stratum, has of the plan."""

    responses: int
    overlapping: int
    labels: int = 0


class Planned(NamedTuple):
    responses: int
    overlapping: int
    graders_each: int
    left_out: dict[str, int]  # responses with nothing to label, by why
    assignments: int
    labels: int
    per_grader: dict[Any, Share]
    per_stratum: dict[str, dict[str, Share]]  # stratum -> value -> of its responses


def plan_round(
    *, version, runs, graders: Sequence, rubric_version, overlap: Overlap = EVERYTHING, seed: int
) -> Planned:
    """What open_round would create; the graders may still be anything that stands for one."""
    work = _work_of(runs, rubric_version)
    strata = _strata_of(runs)
    shared = _overlapping(work, overlap, strata, graders, seed)
    slots = _slots(work, graders, shared, overlap, seed)
    graded = {grader: [slot.response for slot in slots if slot.grader == grader] for grader in graders}
    names = [overlap.stratum] if overlap.stratum else sorted({name for of in strata.values() for name in of})
    return Planned(
        responses=len(work),
        overlapping=len(shared) if len(graders) > 1 else 0,
        graders_each=overlap.graders_each or len(graders),
        left_out=_left_out(runs, work),
        assignments=len(slots),
        labels=sum(work[slot.response] for slot in slots),
        per_grader={
            grader: Share(len(own), sum(r in shared for r in own), sum(work[r] for r in own))
            for grader, own in graded.items()
        },
        per_stratum={
            name: {
                value: Share(len(members), sum(r in shared for r in members))
                for value, members in sorted(by_stratum(work, _values(strata, name)).items())
            }
            for name in names
        },
    )


def _work_of(runs, rubric_version: RubricVersion) -> dict[int, int]:
    work = work_in(runs=runs, rubric_version=rubric_version)
    if not work:
        raise Refused(_("These runs have nothing to label: no claim and no text."))
    return work


def _strata_of(runs) -> dict[int, dict[str, str]]:
    rows = Response.objects.filter(run__in=list(runs)).values_list("pk", "item__strata")
    return dict(rows.iterator(BATCH))


def _values(strata: dict[int, dict[str, str]], name: str) -> dict[int, str]:
    return {pk: of[name] for pk, of in strata.items() if name in of}


def _overlapping(
    work: dict[int, int], overlap: Overlap, strata: dict[int, dict[str, str]], graders: Sequence, seed: int
) -> frozenset[int]:
    if overlap.count is not None and overlap.count > len(work):
        raise Refused(
            _("The overlap must be between 0 and %(n)s, the number of responses.") % {"n": len(work)}
        )
    if overlap.graders_each is not None and overlap.graders_each > len(graders):
        raise Refused(
            _("%(each)s graders of each response are more than the %(n)s chosen.")
            % {"each": overlap.graders_each, "n": len(graders)}
        )
    stratum_of = _values(strata, overlap.stratum)
    if overlap.stratum and not stratum_of:
        raise Refused(_("No item of these runs has the stratum %(name)s.") % echo(name=overlap.stratum))
    return overlapping(responses=list(work), overlap=overlap, seed=seed, stratum_of=stratum_of)


def _slots(work: Iterable[int], graders: Sequence, shared: frozenset[int], overlap: Overlap, seed: int):
    return plan(
        responses=list(work),
        graders=graders,
        overlapping=shared,
        graders_each=overlap.graders_each,
        seed=seed,
    )


def _left_out(runs, work: dict[int, int]) -> dict[str, int]:
    has_claims = Exists(Claim.objects.filter(response=OuterRef("pk"), parent__isnull=True))
    responses = Response.objects.filter(run__in=list(runs)).values_list("pk", "text", has_claims)
    counts = Counter(
        "empty" if is_blank(text) and not claims else "nothing_asked"
        for pk, text, claims in responses.iterator(BATCH)
        if pk not in work
    )
    return dict(counts)


@transaction.atomic
def open_round(
    *,
    version: EvalSetVersion,
    runs: Sequence[SystemRun],
    graders: Sequence[Grader],
    rubric_version: RubricVersion,
    overlap: Overlap = EVERYTHING,
    warm_up: bool = False,
    seed: int | None = None,
    person=None,
    once: bool = False,
) -> Round:
    """A round with all its assignments.

    With `once` the seed is taken for the name of the submit: a round of this version that has it is returned.
    """
    version = EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    if once and (before := version.rounds.filter(seed=seed).first()):
        return before
    _check_round(version=version, runs=runs, graders=graders, rubric_version=rubric_version)
    if warm_up and not rubric_version.warm_up_cases.exists():
        raise Refused(_("The rubric %(rubric)s has no warm-up cases.") % {"rubric": rubric_version})
    seed = new_seed() if seed is None else seed
    work = _work_of(runs, rubric_version)
    shared = _overlapping(work, overlap, _strata_of(runs) if overlap.stratum else {}, graders, seed)
    round = Round.objects.create(
        version=version,
        number=next_round_number(version),
        rubric_version=rubric_version,
        overlap=None if overlap.kind == Round.Overlap.ALL else len(shared),
        overlap_kind=overlap.kind,
        overlap_share=overlap.share,
        stratum=overlap.stratum,
        graders_each=overlap.graders_each,
        warm_up=warm_up,
        seed=seed,
        created_by=person,
    )
    round.runs.set(runs)
    assign(round, _slots(work, [grader.pk for grader in graders], shared, overlap, seed))
    return round


@transaction.atomic
def open_round_with(*, version: EvalSetVersion, people: Iterable[Any], person=None, **round: Any) -> Round:
    """A round for these people, each as the grader that they are in the eval set; once for a seed."""
    graders = [
        ensure_grader(evalset=version.evalset, name=member.get_username(), person=member) for member in people
    ]
    return open_round(version=version, graders=graders, person=person, once=True, **round)


def assign(round: Round, slots: Iterable[Slot[int, int]]) -> None:
    Assignment.objects.bulk_create(
        (
            Assignment(round=round, response_id=s.response, grader_id=s.grader, slot=s.slot, order=s.order)
            for s in slots
        ),
        batch_size=BATCH,
    )


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
