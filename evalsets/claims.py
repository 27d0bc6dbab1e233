"""Claims of a draft system run: stored, added, changed and removed until the run is frozen.

Where a claim comes from stands in its `meta`, under `origin`: so it is hashed with the claim, exported with
it and there again after an import. A claim that came with a file and was never touched has none.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import models, transaction
from django.db.models import Count, ProtectedError
from django.db.models.fields.json import KT
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from evalsets.importing.strictjson import NotStrictJSON, refuse_unstorable_text
from evalsets.models import Claim, Response, SystemRun
from evalsets.text import is_blank

EXTRACTION, HAND, FILE = "extraction", "hand", "file"
KINDS = (EXTRACTION, HAND, FILE)
_LABELLED = gettext_lazy("This claim has labels already: it can no longer change.")
_NUMBERED = re.compile(r"c(\d{1,9})")

Origin = dict[str, Any]


class ClaimRefused(Exception):
    """The claims cannot be changed so; the message is a sentence for the person who asked."""


@dataclass(frozen=True)
class NewClaim:
    text: str
    origin: Origin


# Where a claim comes from


def origin_of(claim: Claim) -> Origin:
    """Empty for a claim that is as a file had it; anything else that a file says there counts for nothing."""
    meta = claim.extra.get("meta")
    origin = meta.get("origin") if isinstance(meta, dict) else None
    return origin if isinstance(origin, dict) and origin.get("by") in KINDS else {}


def kind_of(claim: Claim) -> str:
    return origin_of(claim).get("by", FILE)


def is_corrected(claim: Claim) -> bool:
    return "edited_at" in origin_of(claim)


def settled_at(claim: Claim) -> datetime | None:
    """When somebody here last had a hand in it; None for a claim that is as a file had it."""
    origin = origin_of(claim)
    try:
        at = datetime.fromisoformat(str(origin.get("edited_at", origin.get("at"))))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)  # a file may name no zone


def now_in_words() -> str:
    return timezone.now().isoformat().replace("+00:00", "Z")


# Changing them


def lock_draft(run: SystemRun) -> SystemRun:
    """The run, which nobody can freeze before the transaction ends."""
    locked = SystemRun.objects.select_for_update(no_key=True).get(pk=run.pk)
    if locked.is_frozen:
        raise ClaimRefused(_("%(run)s is frozen: its claims can no longer change.") % {"run": run})
    return locked


@transaction.atomic
def add_claim(*, response: Response, text: str) -> Claim:
    """By hand, after those that are there."""
    lock_draft(response.run)
    text = _checked(response, text)
    origin = {"by": HAND, "at": now_in_words()}
    return _stored(response, [NewClaim(text, origin)])[0]


@transaction.atomic
def change_claim(*, claim: Claim, text: str, was: str) -> Claim:
    """By hand: `was` is the text that the person had before their eyes. What it said first is kept."""
    lock_draft(claim.response.run)
    claim = _still_there(claim)
    if _lines(claim.text) == _lines(text):
        return claim
    if _lines(claim.text) != _lines(was):
        raise ClaimRefused(_("This claim was changed meanwhile: read it again."))
    _refuse_labelled(claim)
    origin = origin_of(claim) or {"by": FILE}
    changed = {"first": claim.text} | origin | {"edited_at": now_in_words()}
    claim.text = _checked(claim.response, text)
    claim.extra = _with_origin(claim.extra, changed)
    claim.save(update_fields=["text", "extra"])
    return claim


@transaction.atomic
def remove_claim(*, claim: Claim) -> None:
    lock_draft(claim.response.run)
    _delete([_still_there(claim)])


@transaction.atomic
def replace_claims(*, response: Response, claims: Sequence[NewClaim]) -> list[Claim]:
    """These instead of whatever the response has; the caller holds the run as a draft."""
    _delete(list(_whole(response)))
    return _stored(response, claims)


def _lines(text: str) -> str:
    """Browsers send line breaks of their own."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _whole(response: Response):
    return Claim.objects.filter(response=response, parent__isnull=True)


def _still_there(claim: Claim) -> Claim:
    there = Claim.objects.select_related("response__run__system").filter(pk=claim.pk).first()
    if there is None:
        raise ClaimRefused(_("This claim is gone already."))
    return there


def _checked(response: Response, text: str) -> str:
    text = _lines(text)
    if is_blank(text):
        raise ClaimRefused(_("A claim needs text."))
    try:
        refuse_unstorable_text(text, "claim")
    except NotStrictJSON as error:
        raise ClaimRefused(_("A claim cannot hold a character that is no text.")) from error
    if _whole(response).filter(text=text).exists():
        raise ClaimRefused(_("This response has a claim of this text already."))
    return text


def _refuse_labelled(claim: Claim) -> None:
    """What was said of a claim is about the words that were read."""
    if any(rows.filter(**{name: claim}).exists() for rows, name in _said_of_claims()):
        raise ClaimRefused(_LABELLED)


def labelled(responses: Iterable[int] | models.QuerySet[Response]) -> set[int]:
    """Responses of which somebody, a judge included, has said something about a claim: it stays as it is."""
    found: set[int] = set()
    for rows, name in _said_of_claims():
        there = rows.filter(**{f"{name}__response__in": responses}).order_by()
        found.update(there.values_list(f"{name}__response", flat=True).distinct())
    return found


def _said_of_claims() -> Iterator[tuple[models.Manager[Any], str]]:
    """Whatever keeps a claim from going, and its field for the claim."""
    for relation in Claim._meta.related_objects:
        if relation.on_delete is models.PROTECT:
            yield relation.related_model._base_manager, relation.field.name


def _delete(claims: Sequence[Claim]) -> None:
    try:
        Claim.objects.filter(pk__in=[claim.pk for claim in claims]).delete()
    except ProtectedError as error:
        raise ClaimRefused(_LABELLED) from error


def _stored(response: Response, claims: Sequence[NewClaim]) -> list[Claim]:
    taken = list(response.claims.values_list("claim_id", "position"))
    position = max((place for _id, place in taken), default=0)
    numbers = [int(found.group(1)) for name, _place in taken if (found := _NUMBERED.fullmatch(name))]
    number = max(numbers, default=0)
    return Claim.objects.bulk_create(
        Claim(
            response=response,
            position=position + place,
            claim_id=f"c{number + place}",
            text=claim.text,
            extra=_with_origin({}, claim.origin),
        )
        for place, claim in enumerate(claims, start=1)
    )


def _with_origin(extra: dict[str, Any], origin: Origin) -> dict[str, Any]:
    meta = extra.get("meta", {})
    if not isinstance(meta, dict):  # a file may have anything there: it is kept
        meta = {"meta": meta}
    return {**extra, "meta": {**meta, "origin": origin}}


# Counting them


@dataclass(frozen=True)
class Origins:
    """How many claims there are, and where they come from."""

    file: int
    extraction: int
    hand: int
    corrected: int  # changed by hand, wherever they come from
    extractors: list[tuple[str, str, int]]  # model asked for, model that answered, claims

    @property
    def total(self) -> int:
        return self.file + self.extraction + self.hand

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total,
            "from_file": self.file,
            "extracted": self.extraction,
            "by_hand": self.hand,
            "corrected": self.corrected,
            "extracted_by": [
                {"model": model, "resolved_model": answered, "claims": n}
                for model, answered, n in self.extractors
            ],
        }


def origins_of(runs: Iterable[SystemRun]) -> Origins:
    found = Claim.objects.filter(response__run__in=list(runs), parent__isnull=True).order_by()
    extracted = found.filter(extra__meta__origin__by=EXTRACTION)
    total, by_hand = found.count(), found.filter(extra__meta__origin__by=HAND).count()
    models = extracted.annotate(
        asked=KT("extra__meta__origin__model"), answered=KT("extra__meta__origin__resolved_model")
    ).values_list("asked", "answered")
    extractors = [
        (asked or "", answered or "", n)
        for asked, answered, n in models.annotate(n=Count("pk")).order_by("asked", "answered")
    ]
    by_extraction = sum(n for _asked, _answered, n in extractors)
    return Origins(
        file=total - by_extraction - by_hand,
        extraction=by_extraction,
        hand=by_hand,
        corrected=found.filter(extra__meta__origin__edited_at__isnull=False).count(),
        extractors=extractors,
    )
