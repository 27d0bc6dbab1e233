"""What the lead decides."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.material import questions_of
from annotate.models import (
    Adjudication,
    ClaimSplit,
    Dimension,
    GoldLabel,
    Opening,
    Round,
    WithdrawnPart,
)
from annotate.services.rubric_tasks import note_for_rubric
from annotate.services.targets import (
    Conflict,
    Refused,
    Target,
    check_all_labelled,
    checked_label,
    checked_target,
    decisions_that_stand,
    lock_assignments,
    settle,
    settle_dependents,
)
from annotate.splits import parts_that_count
from evalsets.labels import LABELS
from evalsets.models import Claim, Passage, Response


@transaction.atomic
def open_for_adjudication(
    *,
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    passage: Passage | None = None,
    person,
) -> Opening:
    """The lead is about to see the labels of a target: from here on those of its response are final."""
    target, asked_of = checked_target(round, response, claim, dimension, passage, may_be_part=True)
    lock_assignments(round, response)
    check_ready(round, target, asked_of, claim)
    opening, _made = Opening.objects.get_or_create(round=round, response=response, defaults={"by": person})
    return opening


@transaction.atomic
def adjudicate(
    *,
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    label: str,
    reason: str,
    passage: Passage | None = None,
    note: str = "",
    for_rubric: bool = False,
    person,
    judge_seen: bool = False,
) -> Adjudication:
    """The lead's decision on a target that everybody assigned has labelled; the latest one holds.

    `for_rubric` keeps the note as something that the rubric should say.
    """
    target, asked_of = checked_target(round, response, claim, dimension, passage, may_be_part=True)
    checked_label(asked_of, label)
    if reason not in Adjudication.Reason.values or reason in Adjudication.GIVEN_BY_AN_ACTION:
        raise Refused(_("Choose a reason."))
    lock_assignments(round, response)
    check_ready(round, target, asked_of, claim)
    _check_not_split(claim)
    decision = _decide(
        round, target, label=label, reason=reason, note=note, person=person, judge_seen=judge_seen
    )
    if for_rubric:
        note_for_rubric(rubric=round.rubric_version.rubric, adjudication=decision, text=note, person=person)
    return decision


@transaction.atomic
def take_over_gold(
    *,
    round: Round,
    response: Response,
    claim: Claim | None,
    dimension: str,
    label: str,
    instead_of: str | None,
    passage: Passage | None = None,
    note: str = "",
    person,
    judge_seen: bool,
) -> Adjudication:
    """A label of an edited gold set as a decision: refused where `instead_of` is not what holds by now."""
    target, asked_of = checked_target(round, response, claim, dimension, passage, may_be_part=True)
    checked_label(asked_of, label)
    lock_assignments(round, response)
    check_ready(round, target, asked_of, claim)
    _check_not_split(claim)
    gold = GoldLabel.objects.filter(target.filter, round=round).first()
    if (gold.label if gold else None) != instead_of:
        raise Conflict(_("Other gold holds by now than the file was compared with."))
    return _decide(
        round,
        target,
        label=label,
        reason=Adjudication.Reason.REIMPORTED,
        note=note,
        person=person,
        judge_seen=judge_seen,
    )


def check_ready(round: Round, target: Target, asked_of: Dimension, claim: Claim | None) -> None:
    """Everybody has labelled it, or the whole claim that it is a part of."""
    if claim is not None and claim.parent_id and not asked_of.asked_when:
        target = target._replace(claim_id=claim.parent_id)
    check_all_labelled(round, target, questions_of(round.rubric_version))


@transaction.atomic
def revoke(*, adjudication: Adjudication, note: str = "", person) -> Adjudication:
    """Take a decision back by a further entry: what held before holds again."""
    round = adjudication.round
    lock_assignments(round, adjudication.response)
    target = Target(
        adjudication.dimension,
        adjudication.response_id,
        adjudication.claim_id,
        adjudication.passage_id,
    )
    standing = decisions_that_stand(round).filter(target.filter).order_by("-pk")
    latest = standing.first()
    if latest is None or latest.pk != adjudication.pk:
        raise Conflict(_("Another decision holds by now; look again before you take one back."))
    if latest.reason == Adjudication.Reason.SPLIT:
        words = _("A part of a split has no labels to fall back on: decide it anew, or take the split back.")
        raise Conflict(words)
    _check_not_split(adjudication.claim)
    entry = _revoke(latest, note=note, person=person)
    _hold_again(round, target)
    return entry


def _revoke(decision: Adjudication, *, note: str, person) -> Adjudication:
    return Adjudication.objects.create(
        round_id=decision.round_id,
        response_id=decision.response_id,
        claim_id=decision.claim_id,
        passage_id=decision.passage_id,
        dimension=decision.dimension,
        label=decision.label,
        reason=Adjudication.Reason.REVOKED,
        note=note,
        revokes=decision,
        by=person,
    )


def _hold_again(round: Round, target: Target) -> None:
    """What holds of a target once a decision does not: an earlier one, or what everybody said."""
    before = decisions_that_stand(round).filter(target.filter).order_by("-pk").first()
    if before is None:
        GoldLabel.objects.filter(target.filter, round=round).delete()
    else:
        _hold(before, target)
    settle(round, target, questions_of(round.rubric_version))


@transaction.atomic
def split_claim(
    *, round: Round, claim: Claim, parts: Sequence[tuple[str, str]], note: str = "", person
) -> list[Adjudication]:
    """The lead splits a claim that no grader has proposed to split: parts are (text, label)."""
    if claim.parent_id:
        raise Refused(_("This is already a part of a split claim."))
    split = ClaimSplit.objects.create(
        round=round, claim=claim, parts=[text.strip() for text, _label in parts]
    )
    return accept_split(split=split, parts=parts, note=note, person=person)


@transaction.atomic
def accept_split(
    *, split: ClaimSplit, parts: Sequence[tuple[str, str]], note: str = "", person, judge_seen: bool = False
) -> list[Adjudication]:
    """Turn a proposal into child claims, each with its own decision: parts are (text, label).

    The parent keeps its annotations, so the graders' kappa is untouched, and loses its gold row: whatever
    counts claims counts the parts in its place.
    """
    claim, round = split.claim, split.round
    lock_assignments(round, claim.response)
    split = ClaimSplit.objects.select_for_update().get(pk=split.pk)
    if split.state != ClaimSplit.State.PROPOSED:
        raise Conflict(_("This proposal has been decided already."))
    if ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split already."))
    whole = Target("grounding", claim.response_id, claim.pk)
    questions = questions_of(round.rubric_version)
    check_all_labelled(round, whole, questions)
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
    settle_dependents(round, whole, questions)
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
def take_split_back(*, split: ClaimSplit, note: str = "", person) -> list[Adjudication]:
    """Undo an accepted split by further entries, one for each decision on a part: the claim counts again."""
    claim, round = split.claim, split.round
    lock_assignments(round, claim.response)
    split = ClaimSplit.objects.select_for_update().get(pk=split.pk)
    if split.state != ClaimSplit.State.ACCEPTED:
        raise Conflict(_("This split does not hold."))
    parts = list(parts_that_count().filter(parent=claim))
    _check_decided_here_alone(round, parts)
    stand = decisions_that_stand(round).filter(claim__in=parts).order_by("-pk")
    entries = [_revoke(decision, note=note, person=person) for decision in stand]
    GoldLabel.objects.filter(round=round, claim__in=parts).delete()
    WithdrawnPart.objects.bulk_create(WithdrawnPart(claim=part, split=split) for part in parts)
    split.state = ClaimSplit.State.TAKEN_BACK
    split.save(update_fields=["state"])
    _hold_again(round, Target("grounding", claim.response_id, claim.pk))
    return entries


def _check_decided_here_alone(round: Round, parts: Sequence[Claim]) -> None:
    elsewhere = GoldLabel.objects.filter(claim__in=parts).exclude(round=round).select_related("round").first()
    if elsewhere is not None:
        raise Conflict(
            _("Round %(number)s holds decisions on the parts of this split; take those back first.")
            % {"number": elsewhere.round.number}
        )


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
    _hold(decision, target)
    settle(round, target, questions_of(round.rubric_version))
    return decision


def _hold(decision: Adjudication, target: Target) -> None:
    GoldLabel.objects.update_or_create(
        round=decision.round,
        **target.where,
        defaults={"label": decision.label, "source": GoldLabel.Source.ADJUDICATED, "adjudication": decision},
    )


def _check_not_split(claim: Claim | None) -> None:
    if claim is not None and ClaimSplit.objects.filter(claim=claim, state=ClaimSplit.State.ACCEPTED).exists():
        raise Conflict(_("This claim has been split: decide its parts instead."))
