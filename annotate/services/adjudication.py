"""What the lead decides."""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.material import questions_of
from annotate.models import (
    Adjudication,
    ClaimSplit,
    GoldLabel,
    Round,
)
from annotate.services.targets import (
    Conflict,
    Refused,
    Target,
    check_all_labelled,
    checked_label,
    checked_target,
    lock_assignments,
    settle,
    settle_dependents,
)
from evalsets.labels import LABELS
from evalsets.models import Claim, Passage, Response


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
    person,
    judge_seen: bool = False,
) -> Adjudication:
    """The lead's decision on a target that everybody assigned has labelled; the latest one holds."""
    target, asked_of = checked_target(round, response, claim, dimension, passage, may_be_part=True)
    checked_label(asked_of, label)
    if reason not in Adjudication.Reason.values or reason in Adjudication.GIVEN_BY_AN_ACTION:
        raise Refused(_("Choose a reason."))
    lock_assignments(round, response)
    questions = questions_of(round.rubric_version)
    is_part = claim is not None and claim.parent_id and not asked_of.asked_when
    check_all_labelled(
        round, target._replace(claim_id=claim.parent_id) if claim and is_part else target, questions
    )
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
    settle(round, target, questions_of(round.rubric_version))
    return decision
