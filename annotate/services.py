"""Every write of what people say. Each function is one transaction; gold is settled inside it."""

import hashlib
import json
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate import rubric_text
from annotate.models import (
    Adjudication,
    Annotation,
    AnnotationEvent,
    Assignment,
    ClaimSplit,
    Dimension,
    Flag,
    GoldLabel,
    Grader,
    Round,
    Rubric,
    RubricVersion,
    Unblinding,
)
from annotate.planning import plan
from evalsets.access import GRADER, has_role
from evalsets.labels import LABELS, TARGET_OF
from evalsets.models import Claim, EvalSet, EvalSetVersion, Response, SystemRun
from evalsets.text import is_blank

BATCH = 2000
Action = AnnotationEvent.Action


class Refused(Exception):
    """The request cannot be done as asked; the message is a sentence for the person who asked."""


class NotAssigned(Refused):
    """A label by somebody who does not hold this response in this round."""


class Conflict(Refused):
    """It could have been done at another moment: paused, closed, decided, or not yet complete."""


class Target(NamedTuple):
    """What a label is about: a claim (by its grounding) or a whole response (by its abstention)."""

    dimension: str
    response_id: int
    claim_id: int | None

    @property
    def where(self) -> dict:
        return {"dimension": self.dimension, "response_id": self.response_id, "claim_id": self.claim_id}

    @property
    def filter(self) -> Q:
        claim = Q(claim__isnull=True) if self.claim_id is None else Q(claim_id=self.claim_id)
        return claim & Q(dimension=self.dimension, response_id=self.response_id)


# Graders and rubrics


@transaction.atomic
def ensure_grader(*, evalset: EvalSet, name: str, person=None) -> Grader:
    """The grader of this person, or of this name where there is no person; made on first use."""
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    graders = Grader.objects.filter(evalset=evalset)
    found = graders.filter(person=person).first() if person else graders.filter(name=name).first()
    if found:
        return found
    # An imported grader of the same name is somebody else as far as anybody can prove.
    taken = set(graders.values_list("name", flat=True))
    free, suffix = name, 2
    while free in taken:
        free, suffix = f"{name} ({suffix})", suffix + 1
    number = (graders.aggregate(last=Max("number"))["last"] or 0) + 1
    return Grader.objects.create(evalset=evalset, name=free, person=person, number=number)


def rubric_v1(*, evalset: EvalSet, person=None) -> RubricVersion:
    return _rubric(
        evalset=evalset,
        person=person,
        name=rubric_text.NAME,
        is_imported=False,
        decisions=rubric_text.DECISIONS,
        dimensions=rubric_text.DIMENSIONS,
    )


def imported_rubric(*, evalset: EvalSet) -> RubricVersion:
    """Imported labels were given under rules that we do not hold: names only, and never pooled with ours."""
    dimensions = [
        {
            "name": name,
            "target": TARGET_OF[name],
            "question": "",
            "labels": [
                {"name": label, "key": str(key), "definition": "", "examples": []}
                for key, label in enumerate(labels, start=1)
            ],
        }
        for name, labels in LABELS.items()
    ]
    return _rubric(
        evalset=evalset, person=None, name="imported", is_imported=True, decisions="", dimensions=dimensions
    )


@transaction.atomic
def _rubric(*, evalset, person, name, is_imported, decisions, dimensions) -> RubricVersion:
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    rubric, _made = Rubric.objects.get_or_create(
        evalset=evalset, name=name, defaults={"is_imported": is_imported}
    )
    version = rubric.versions.filter(number=1).first()
    if version:
        return version
    text = json.dumps([decisions, dimensions], ensure_ascii=False, sort_keys=True)
    version = RubricVersion.objects.create(
        rubric=rubric,
        number=1,
        decisions=decisions,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        created_by=person,
    )
    Dimension.objects.bulk_create(
        Dimension(rubric_version=version, position=position, **dimension)
        for position, dimension in enumerate(dimensions, start=1)
    )
    return version


# Rounds


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
        number=_next_round_number(version),
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


def _next_round_number(version: EvalSetVersion) -> int:
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
    locked = _lock(assignment.round, assignment.response)
    held = next((a for a in locked if a.pk == assignment.pk), None)
    round = _round_for_labels(assignment.round)
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


# Labels of graders


@transaction.atomic
def annotate(
    *,
    round: Round,
    grader: Grader,
    response: Response,
    claim: Claim | None,
    dimension: str,
    label: str,
    note: str = "",
    milliseconds: int | None = None,
    key: UUID | None = None,
) -> Annotation:
    """One label. Sent twice with the same key, or with the same content, it is stored once."""
    target = _target(round, response, claim, dimension)
    if label not in LABELS[dimension]:
        raise Refused(
            _("%(label)s is not a label of %(dimension)s.") % _echo(label=label, dimension=dimension)
        )
    own = _own_assignment(round, grader, response)
    if key and (event := _event_of(grader, key)):
        return _answer_again(event, round, target, label)
    round = _round_for_labels(round)
    _check_not_final(round, grader, response, target)
    current = Annotation.objects.filter(target.filter, round=round, grader=grader).first()
    if current and (current.label, current.note) == (label, note):
        return current
    kept, made = Annotation.objects.update_or_create(
        round=round,
        grader=grader,
        **target.where,
        defaults={"label": label, "note": note, "milliseconds": milliseconds},
    )
    AnnotationEvent.objects.create(
        round=round,
        grader=grader,
        **target.where,
        action=Action.LABELLED if made else Action.CHANGED,
        label=label,
        note=note,
        milliseconds=milliseconds,
        key=key,
    )
    _finish_if_complete(own, response)
    _settle(round, target)
    return kept


@transaction.atomic
def take_back(*, round: Round, grader: Grader, key: UUID | None = None) -> AnnotationEvent | None:
    """Withdraw the grader's latest label in this round; None when there is nothing left to take back."""
    if key and (event := _event_of(grader, key)):
        return event
    latest = _latest_label(round, grader)
    if latest is None:
        return None
    own = _own_assignment(round, grader, latest.response)
    if key and (event := _event_of(grader, key)):
        return event
    round = _round_for_labels(round)
    latest = _latest_label(round, grader)
    if latest is None or latest.response_id != own.response_id:
        raise Conflict(_("Your latest label has changed meanwhile. Look again, and take back once more."))
    target = Target(latest.dimension, latest.response_id, latest.claim_id)
    _check_not_final(round, grader, latest.response, target)
    Annotation.objects.filter(target.filter, round=round, grader=grader).delete()
    event = AnnotationEvent.objects.create(
        round=round,
        grader=grader,
        **target.where,
        action=Action.TAKEN_BACK,
        label=latest.label,
        note=latest.note,
        key=key,
    )
    if own.state == Assignment.State.DONE:
        own.state, own.done_at = Assignment.State.PENDING, None
        own.save(update_fields=["state", "done_at"])
    _settle(round, target)
    return event


@transaction.atomic
def skip(*, round: Round, grader: Grader, response: Response) -> Assignment:
    """To the end of the grader's own queue; nobody else's queue moves."""
    own = _own_assignment(round, grader, response)
    _round_for_labels(round)
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
    _round_for_labels(round)
    flag, _made = Flag.objects.update_or_create(
        round=round, grader=grader, response=response, claim=claim, defaults={"note": note.strip()}
    )
    return flag


@transaction.atomic
def unflag(*, round: Round, grader: Grader, response: Response, claim: Claim | None) -> None:
    _own_assignment(round, grader, response)
    _round_for_labels(round)
    Flag.objects.filter(round=round, grader=grader, response=response, claim=claim).delete()


@transaction.atomic
def propose_split(*, round: Round, grader: Grader, claim: Claim, parts: Sequence[str]) -> ClaimSplit:
    """A second proposal of the same grader replaces the first, until the lead has decided."""
    parts = [part.strip() for part in parts if part.strip()]
    if len(parts) < 2:
        raise Refused(_("A split needs at least two parts, one a line."))
    if len(set(parts)) != len(parts):
        raise Refused(_("The same part stands there twice."))
    _target(round, claim.response, claim, "grounding")
    _own_assignment(round, grader, claim.response)
    round = _round_for_labels(round)
    if ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split already."))
    earlier = ClaimSplit.objects.filter(round=round, claim=claim, grader=grader).first()
    if earlier and earlier.state != ClaimSplit.State.PROPOSED:
        raise Conflict(_("Your proposal has been decided already."))
    split, _made = ClaimSplit.objects.update_or_create(
        round=round, claim=claim, grader=grader, defaults={"parts": parts}
    )
    return split


# Adjudication


@transaction.atomic
def adjudicate(
    *,
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    label: str,
    reason: str,
    note: str = "",
    person,
    judge_seen: bool = False,
) -> Adjudication:
    """The lead's decision on a target that everybody assigned has labelled; the latest one holds."""
    target = _target(round, response, claim, dimension, may_be_part=True)
    if label not in LABELS[dimension]:
        raise Refused(
            _("%(label)s is not a label of %(dimension)s.") % _echo(label=label, dimension=dimension)
        )
    if reason not in Adjudication.Reason.values:
        raise Refused(_("Choose a reason."))
    _lock(round, response)
    whole = claim.parent if claim is not None and claim.parent_id else claim
    _check_all_labelled(round, Target(dimension, response.pk, whole.pk if whole else None))
    if claim is not None and ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split: decide its parts instead."))
    return _decide(round, target, label=label, reason=reason, note=note, person=person, judge_seen=judge_seen)


@transaction.atomic
def accept_split(
    *, split: ClaimSplit, parts: Sequence[tuple[str, str]], note: str = "", person, judge_seen: bool = False
) -> list[Adjudication]:
    """Turn a proposal into child claims, each with its own decision: parts are (text, label).

    The parent keeps its annotations, so the graders' kappa is untouched, and loses its gold row: whatever
    counts claims counts the parts in its place.
    """
    claim, round = split.claim, split.round
    _lock(round, claim.response)
    split = ClaimSplit.objects.select_for_update().get(pk=split.pk)
    if split.state != ClaimSplit.State.PROPOSED:
        raise Conflict(_("This proposal has been decided already."))
    if ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split already."))
    whole = Target("grounding", claim.response_id, claim.pk)
    _check_all_labelled(round, whole)
    parts = [(text.strip(), label) for text, label in parts]
    texts = [text for text, _label in parts]
    if len(parts) < 2 or not all(texts) or len(set(texts)) != len(texts):
        raise Refused(_("A split needs at least two parts, each with a text of its own."))
    if any(label not in LABELS["grounding"] for _text, label in parts):
        raise Refused(_("Choose a label for every part."))
    split.state = ClaimSplit.State.ACCEPTED
    split.decided_at, split.decided_by = timezone.now(), person
    split.save(update_fields=["state", "decided_at", "decided_by"])
    GoldLabel.objects.filter(whole.filter, round=round).delete()
    made = []
    for number, (text, label) in enumerate(parts, start=1):
        child = Claim.objects.create(
            response_id=claim.response_id,
            parent=claim,
            position=claim.position,
            claim_id=_part_id(claim, number),
            text=text,
            source_ids=claim.source_ids,
            decision=claim.decision,
        )
        made.append(
            _decide(
                round,
                Target("grounding", claim.response_id, child.pk),
                label=label,
                reason=Adjudication.Reason.SPLIT,
                note=note,
                person=person,
                judge_seen=judge_seen,
            )
        )
    return made


@transaction.atomic
def decline_split(*, split: ClaimSplit, person) -> ClaimSplit:
    split = ClaimSplit.objects.select_for_update().get(pk=split.pk)
    if split.state == ClaimSplit.State.ACCEPTED:
        raise Conflict(_("This proposal has been accepted already."))
    if split.state == ClaimSplit.State.PROPOSED:
        split.state = ClaimSplit.State.DECLINED
        split.decided_at, split.decided_by = timezone.now(), person
        split.save(update_fields=["state", "decided_at", "decided_by"])
    return split


def _part_id(claim: Claim, number: int) -> str:
    taken = set(Claim.objects.filter(response_id=claim.response_id).values_list("claim_id", flat=True))
    free = f"{claim.claim_id}.{number}"
    while free in taken:  # the file may have a claim of that id
        free += "+"
    return free


def _decide(round, target: Target, *, label, reason, note, person, judge_seen) -> Adjudication:
    decision = Adjudication.objects.create(
        round=round, **target.where, label=label, reason=reason, note=note, by=person, judge_seen=judge_seen
    )
    GoldLabel.objects.update_or_create(
        round=round,
        **target.where,
        defaults={"label": label, "source": GoldLabel.Source.ADJUDICATED, "adjudication": decision},
    )
    return decision


# Imported labels


class ImportedLabel(NamedTuple):
    grader_name: str
    response_pk: int
    claim_pk: int | None
    dimension: str
    label: str


@transaction.atomic
def record_imported_labels(
    *, version: EvalSetVersion, runs: Sequence[SystemRun], labels: Iterable[tuple]
) -> Round:
    """Labels given elsewhere, into the version's closed round of kind imported; one it has is not doubled."""
    version = EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    round = version.rounds.filter(kind=Round.Kind.IMPORTED).first() or Round.objects.create(
        version=version,
        number=_next_round_number(version),
        kind=Round.Kind.IMPORTED,
        state=Round.State.CLOSED,
        closed_at=timezone.now(),
        rubric_version=imported_rubric(evalset=version.evalset),
    )
    round.runs.add(*runs)
    label_of = {
        (grader, Target(*target)): label
        for *target, grader, label in round.annotations.values_list(
            "dimension", "response_id", "claim_id", "grader_id", "label"
        )
    }
    fresh = _fresh_labels(version.evalset, map(ImportedLabel._make, labels), label_of)
    for rows in _in_batches(
        {"round": round, "grader_id": grader, **target.where, "label": label_of[grader, target]}
        for grader, target in fresh
    ):
        Annotation.objects.bulk_create(Annotation(**row) for row in rows)
        AnnotationEvent.objects.bulk_create(AnnotationEvent(action=Action.IMPORTED, **row) for row in rows)
    _settle_imported(round, {target for _grader, target in fresh}, label_of)
    return round


def _fresh_labels(evalset, labels: Iterable[ImportedLabel], label_of: dict) -> list[tuple[int, Target]]:
    """What is not in `label_of` yet, in file order; adds it there."""
    graders: dict[str, int] = {}
    fresh = []
    for given in labels:
        if given.label not in LABELS.get(given.dimension, ()):
            raise Refused(
                _("%(label)s is not a label of %(dimension)s.")
                % _echo(label=given.label, dimension=given.dimension)
            )
        if given.grader_name not in graders:
            graders[given.grader_name] = _imported_grader(evalset, given.grader_name).pk
        slot = graders[given.grader_name], Target(given.dimension, given.response_pk, given.claim_pk)
        if slot not in label_of:
            label_of[slot] = given.label
            fresh.append(slot)
        elif label_of[slot] != given.label:
            raise Refused(
                _("%(grader)s has two labels for one target: %(one)s and %(other)s.")
                % _echo(grader=given.grader_name, one=label_of[slot], other=given.label)
            )
    return fresh


def _imported_grader(evalset: EvalSet, name: str) -> Grader:
    """A grader without a log-in; somebody with a log-in and the same name may be somebody else."""
    if Grader.objects.filter(evalset=evalset, name=name, person__isnull=False).exists():
        name = f"{name} (imported)"
    return ensure_grader(evalset=evalset, name=name)


def _settle_imported(round: Round, targets: set[Target], label_of: dict) -> None:
    said: dict[Target, list[str]] = defaultdict(list)
    for (_grader, target), label in label_of.items():
        if target in targets:
            said[target].append(label)
    settled = {
        Target(*target): pk
        for *target, pk in round.gold.values_list("dimension", "response_id", "claim_id", "pk")
    }
    decided = {
        Target(*target)
        for target in round.adjudications.values_list("dimension", "response_id", "claim_id").distinct()
    }
    split = set(
        ClaimSplit.objects.filter(round=round, state=ClaimSplit.State.ACCEPTED).values_list(
            "claim", flat=True
        )
    )
    open_targets = [t for t in said if t not in decided and t.claim_id not in split]
    for pks in _in_batches(settled[target] for target in open_targets if target in settled):
        GoldLabel.objects.filter(pk__in=pks).delete()
    rows = (
        GoldLabel(round=round, **target.where, label=outcome[0], source=outcome[1])
        for target in open_targets
        if (outcome := _outcome(said[target]))
    )
    for batch in _in_batches(rows):
        GoldLabel.objects.bulk_create(batch)


def _in_batches(rows: Iterable) -> Iterator[list]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


# Rules that several of the above share


def _outcome(labels: Sequence[str]) -> tuple[str, str] | None:
    """The gold label and its source, from the labels of everybody assigned; None where they differ."""
    if len(set(labels)) != 1:
        return None
    return labels[0], GoldLabel.Source.SINGLE if len(labels) == 1 else GoldLabel.Source.AGREED


def _settle(round: Round, target: Target) -> None:
    gold = GoldLabel.objects.filter(target.filter, round=round)
    if gold.filter(source=GoldLabel.Source.ADJUDICATED).exists():
        return
    said = dict(Annotation.objects.filter(target.filter, round=round).values_list("grader_id", "label"))
    assigned = _assigned(round, target.response_id)
    outcome = _outcome(list(said.values())) if set(said) == assigned else None
    if outcome is None:
        gold.delete()
        return
    label, source = outcome
    GoldLabel.objects.update_or_create(
        round=round, **target.where, defaults={"label": label, "source": source}
    )


def _assigned(round: Round, response_id: int) -> set[int]:
    return set(
        Assignment.objects.filter(round=round, response_id=response_id).values_list("grader_id", flat=True)
    )


def _check_all_labelled(round: Round, target: Target) -> None:
    said = set(Annotation.objects.filter(target.filter, round=round).values_list("grader_id", flat=True))
    missing = _assigned(round, target.response_id) - said
    if not said or missing:
        raise Conflict(
            ngettext(
                "Not yet: the label of one grader is still missing.",
                "Not yet: the labels of %(n)s graders are still missing.",
                len(missing) or 1,
            )
            % {"n": len(missing) or 1}
        )


def _lock(round: Round, response: Response) -> list[Assignment]:
    """Everybody's slots for this response. Who holds them is alone in settling its labels.

    SQLite has no row locks; there the transaction itself is alone (it begins IMMEDIATE).
    """
    return list(Assignment.objects.select_for_update().filter(round=round, response=response).order_by("pk"))


def _own_assignment(round: Round, grader: Grader, response: Response) -> Assignment:
    for assignment in _lock(round, response):
        if assignment.grader_id == grader.pk:
            return assignment
    raise NotAssigned(_("This response is not assigned to you in this round."))


def _round_for_labels(round: Round) -> Round:
    """The round as it is now, once the assignments are locked; refuses when labels may not change."""
    now = Round.objects.select_related("version__evalset").get(pk=round.pk)
    if now.state == Round.State.PAUSED:
        raise Conflict(_("The round is paused; nothing can be labelled until it is resumed."))
    if now.state == Round.State.CLOSED:
        raise Conflict(_("The round is closed; its labels can no longer be changed."))
    return now


def _check_not_final(round: Round, grader: Grader, response: Response, target: Target) -> None:
    """A label given for the first time is always welcome; a change is not, once the answer is out."""
    if not Annotation.objects.filter(target.filter, round=round, grader=grader).exists():
        return
    if Adjudication.objects.filter(round=round, response=response).exists():
        raise Conflict(
            _("The lead has already decided on this response; its labels can no longer be changed.")
        )
    if grader.person_id and Unblinding.objects.filter(round=round, person=grader.person_id).exists():
        raise Conflict(
            _("You have opened the pages that show everybody's labels, so your own can no longer be changed.")
        )


def _target(
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    *,
    may_be_part: bool = False,
) -> Target:
    """The target, if there is one: the dimension is in the rubric and fits, the claim is of the response."""
    if not round.rubric_version.dimensions.filter(name=dimension).exists():
        raise Refused(_("%(dimension)s is not in the rubric of this round.") % _echo(dimension=dimension))
    if (TARGET_OF[dimension] == "claim") != (claim is not None):
        raise Refused(_("%(dimension)s is not asked of this target.") % _echo(dimension=dimension))
    if claim is not None and claim.response_id != response.pk:
        raise Refused(_("The claim belongs to another response."))
    if claim is not None and claim.parent_id and not may_be_part:
        raise Refused(_("Parts of a split claim are decided by the lead."))
    if claim is None and response.is_empty:
        raise Refused(_("An empty response has no label: it is recorded as empty."))
    return Target(dimension, response.pk, claim.pk if claim else None)


def _event_of(grader: Grader, key: UUID) -> AnnotationEvent | None:
    return AnnotationEvent.objects.filter(grader=grader, key=key).first()


def _answer_again(event: AnnotationEvent, round: Round, target: Target, label: str) -> Annotation:
    """The answer to a submit that was received before. A label taken back since is not given again."""
    sent = event.round_id, event.dimension, event.response_id, event.claim_id, event.label
    if sent != (round.pk, *target, label) or event.action not in (Action.LABELLED, Action.CHANGED):
        raise Conflict(_("This submit was already used for another label."))
    current = Annotation.objects.filter(target.filter, round=round, grader=event.grader).first()
    return current or Annotation(
        round=round, grader=event.grader, **target.where, label=label, note=event.note
    )


def _latest_label(round: Round, grader: Grader) -> AnnotationEvent | None:
    same = Q(dimension=OuterRef("dimension"), response=OuterRef("response"))
    same &= Q(claim=OuterRef("claim")) | Q(claim__isnull=True, dimension="abstention")
    return (
        AnnotationEvent.objects.filter(
            Exists(Annotation.objects.filter(same, round=round, grader=grader)),
            round=round,
            grader=grader,
            action__in=[Action.LABELLED, Action.CHANGED],
        )
        .select_related("response")
        .order_by("-pk")
        .first()
    )


def _finish_if_complete(assignment: Assignment, response: Response) -> None:
    dimensions = set(assignment.round.rubric_version.dimensions.values_list("name", flat=True))
    wanted = 0
    if "grounding" in dimensions:
        wanted += response.claims.filter(parent__isnull=True).count()
    if "abstention" in dimensions and not response.is_empty:
        wanted += 1
    said = Annotation.objects.filter(
        round=assignment.round_id, grader=assignment.grader_id, response=response
    ).count()
    if said == wanted and assignment.state != Assignment.State.DONE:
        assignment.state, assignment.done_at = Assignment.State.DONE, timezone.now()
        assignment.save(update_fields=["state", "done_at"])


def _echo(**values: object) -> dict[str, str]:
    """What was sent, short enough to be shown in a message."""
    return {
        name: repr(value)[:82] if isinstance(value, str) else str(value) for name, value in values.items()
    }
