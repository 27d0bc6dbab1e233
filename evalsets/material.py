"""Responses with what belongs to them, as plain rows, a few at a time: what goes into hashes and files.

However many there are, only their keys are held; between two chunks nothing stays open in the database.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from django.db.models import QuerySet

from evalsets.importing.records import ITEM_FIELDS
from evalsets.models import Claim, Passage, Response
from evalsets.prepared import Prepared

AT_ONCE = 200


class PassageRow(NamedTuple):
    passage_id: str
    title: str | None
    document: str | None
    text: str
    extra: dict[str, Any]


class ClaimRow(NamedTuple):
    pk: int
    claim_id: str
    text: str
    source_ids: list[str]
    decision: bool | None
    extra: dict[str, Any]


class ItemRow(NamedTuple):
    pk: int
    position: int
    item_id: str
    question: str | None
    strata: dict[str, str]
    answerable: bool | None
    unanswerable_reason: str
    reference_answer: str | None
    expected_documents: list[str] | None
    expected_passages: list[str] | None
    variant_of: str
    extra: dict[str, Any]


class ResponseRow(NamedTuple):
    pk: int
    run: int
    response_id: str
    sample: int
    text: str
    retrieval_query: str | None
    extra: dict[str, Any]
    item: ItemRow
    passages: list[PassageRow]
    claims: list[ClaimRow]  # whole: without the parts of split ones


OF_ITEM = ("pk", "position", "item_id", *ITEM_FIELDS, "extra")
_OF_RESPONSE = ("pk", "run_id", "response_id", "sample", "text", "retrieval_query", "extra")
_BETWEEN = {"version": int, "first": int, "last": int}

_responses = Prepared(
    lambda version, first, last: (
        Response.objects.filter(version=version, pk__range=(first, last))
        .order_by("pk")
        .values_list(*_OF_RESPONSE, *(f"item__{name}" for name in OF_ITEM))
    ),
    **_BETWEEN,
)
_passages = Prepared(
    lambda version, first, last: (
        Passage.objects.filter(response__version=version, response__gte=first, response__lte=last)
        .order_by("response_id", "rank")
        .values_list("response_id", *PassageRow._fields)
    ),
    **_BETWEEN,
)
_claims = Prepared(
    lambda version, first, last: (
        Claim.objects.filter(
            response__version=version, response__gte=first, response__lte=last, parent__isnull=True
        )
        .order_by("response_id", "position", "pk")
        .values_list("response_id", *ClaimRow._fields)
    ),
    **_BETWEEN,
)


def chunks_of(responses: QuerySet[Response]) -> Iterator[list[ResponseRow]]:
    """Responses of one version, in the order of the queryset."""
    keys = array("q", responses.values_list("pk", flat=True).iterator())
    if not keys:
        return
    version = responses.model._base_manager.values_list("version_id", flat=True).get(pk=keys[0])
    for start in range(0, len(keys), AT_ONCE):
        yield _chunk(version, keys[start : start + AT_ONCE])


def _chunk(version: int, keys: array) -> list[ResponseRow]:
    between = {"version": version, "first": min(keys), "last": max(keys)}
    passages: dict[int, list[PassageRow]] = defaultdict(list)
    for response, *row in _passages(**between):
        passages[response].append(PassageRow._make(row))
    claims: dict[int, list[ClaimRow]] = defaultdict(list)
    for response, *row in _claims(**between):
        claims[response].append(ClaimRow._make(row))
    own = len(_OF_RESPONSE)
    found = {
        row[0]: ResponseRow._make((*row[:own], ItemRow._make(row[own:]), passages[row[0]], claims[row[0]]))
        for row in _responses(**between)
    }
    return [found[key] for key in keys]
