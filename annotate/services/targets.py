"""What the other modules share: targets, refusals, locks, and settling gold."""

from collections.abc import Sequence
from typing import NamedTuple

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.models import (
    Annotation,
    AnnotationEvent,
    Assignment,
    GoldLabel,
    Round,
)
from evalsets.labels import TARGET_OF
from evalsets.models import Claim, Response

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


def outcome_of(labels: Sequence[str]) -> tuple[str, str] | None:
    """The gold label and its source, from the labels of everybody assigned; None where they differ."""
    if len(set(labels)) != 1:
        return None
    return labels[0], GoldLabel.Source.SINGLE if len(labels) == 1 else GoldLabel.Source.AGREED


def settle(round: Round, target: Target) -> None:
    gold = GoldLabel.objects.filter(target.filter, round=round)
    if gold.filter(source=GoldLabel.Source.ADJUDICATED).exists():
        return
    said = dict(Annotation.objects.filter(target.filter, round=round).values_list("grader_id", "label"))
    assigned = _assigned(round, target.response_id)
    outcome = outcome_of(list(said.values())) if set(said) == assigned else None
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


def check_all_labelled(round: Round, target: Target) -> None:
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
    *,
    may_be_part: bool = False,
) -> Target:
    """The target, if there is one: the dimension is in the rubric and fits, the claim is of the response."""
    if not round.rubric_version.dimensions.filter(name=dimension).exists():
        raise Refused(_("%(dimension)s is not in the rubric of this round.") % echo(dimension=dimension))
    if (TARGET_OF[dimension] == "claim") != (claim is not None):
        raise Refused(_("%(dimension)s is not asked of this target.") % echo(dimension=dimension))
    if claim is not None and claim.response_id != response.pk:
        raise Refused(_("The claim belongs to another response."))
    if claim is not None and claim.parent_id and not may_be_part:
        raise Refused(_("Parts of a split claim are decided by the lead."))
    if claim is None and response.is_empty:
        raise Refused(_("An empty response has no label: it is recorded as empty."))
    return Target(dimension, response.pk, claim.pk if claim else None)


def echo(**values: object) -> dict[str, str]:
    """What was sent, short enough to be shown in a message."""
    return {
        name: repr(value)[:82] if isinstance(value, str) else str(value) for name, value in values.items()
    }
