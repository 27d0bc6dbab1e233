"""What system runs hold, as arrays. A frozen run never changes, so a process reads it once.

Parts of split claims are an overlay that no content hash sees: they are not in here.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from django.db.models import Case, Value, When
from django.db.models.functions import Substr

from calibration.columns import int_columns
from calibration.table import Ints, Mask
from evalsets.models import Claim, EvalSetVersion, Item, Response, SystemRun

HEAD = 40  # characters that decide whether a response is empty, nearly always
KEPT = 32  # runs; one with 100,000 responses and 500,000 claims takes 20 MB

IS_DECISION = Case(When(decision=True, then=Value(1)), default=Value(0))

ItemFacts = dict[int, dict[str, Any]]


@dataclass(frozen=True)
class Contents:
    """Of some runs, in the order of the file: a row a response, and a row a claim as it came."""

    response: Ints
    item: Ints
    run: Ints
    empty: Mask
    claim: Ints
    claim_at: Ints  # the row of its response
    claim_position: Ints
    decision: Mask


def contents_of(runs: Iterable[SystemRun]) -> Contents:
    """Run by run, in the order of their numbers."""
    parts = [_NOTHING]
    for run in sorted(runs, key=lambda run: (run.number, run.pk)):
        parts.append((_read_once if run.content_hash else _read)(run.pk, run.content_hash))
    if len(parts) == 2:
        return parts[1]
    joined = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Contents)
    }
    before = np.cumsum([len(part.response) for part in parts])
    joined["claim_at"] = joined["claim_at"] + np.repeat(
        before - [len(part.response) for part in parts], [len(part.claim) for part in parts]
    )
    return Contents(**joined)


_NONE, _NEVER = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
_NOTHING = Contents(_NONE, _NONE, _NONE, _NEVER, _NONE, _NONE, _NONE, _NEVER)


def _read(run: int, _content_hash: str) -> Contents:
    responses = Response.objects.filter(run=run)
    response, item = int_columns(responses.order_by("position"), "pk", "item_id")
    claims = Claim.objects.filter(response__run=run, parent__isnull=True)
    claim, of, position, decision = int_columns(
        claims.order_by("response__position", "position", "pk"), "pk", "response_id", "position", IS_DECISION
    )
    order = np.argsort(response)
    read = Contents(
        response=response,
        item=item,
        run=np.full(len(response), run, dtype=np.int64),
        empty=np.isin(response, _empty(run)),
        claim=claim,
        claim_at=order[np.searchsorted(response, of, sorter=order)],
        claim_position=position,
        decision=decision.astype(bool),
    )
    for field in fields(read):
        getattr(read, field.name).setflags(write=False)  # all requests of a process share them
    return read


def _empty(run: int) -> list[int]:
    """The responses without a visible text; the beginning of a text tells, unless it is all blanks."""
    responses = Response.objects.filter(run=run).order_by()
    heads = responses.annotate(head=Substr("text", 1, HEAD)).values_list("pk", "head")
    blank = {pk: len(head) < HEAD for pk, head in heads if not head.strip()}
    undecided = [pk for pk, is_short in blank.items() if not is_short]
    if undecided:
        texts = responses.filter(pk__in=undecided).values_list("pk", "text")
        blank |= {pk: not text.strip() for pk, text in texts}
    return [pk for pk, is_empty in blank.items() if is_empty]


_read_once = lru_cache(maxsize=KEPT)(_read)


def facts_of(contents: Contents, runs: Iterable[SystemRun]) -> ItemFacts:
    """Strata, answerable and reason of every item that the runs answer, in the order of the answers."""
    facts: ItemFacts = {}
    for version in EvalSetVersion.objects.filter(pk__in={run.version_id for run in runs}):
        facts |= (_facts_once if version.content_hash else _facts)(version.pk, version.content_hash)
    return {item: facts[item] for item in dict.fromkeys(contents.item.tolist())}


def _facts(version: int, _content_hash: str) -> ItemFacts:
    rows = Item.objects.filter(version=version).order_by()
    found = rows.values_list("pk", "strata", "answerable", "unanswerable_reason")
    alike: dict[tuple, dict[str, Any]] = {}  # there are few kinds of items: one object for all of a kind
    facts = {}
    for pk, strata, answerable, reason in found:
        kind = (tuple(strata.items()), answerable, reason)
        made = {"strata": strata, "answerable": answerable, "reason": reason}
        facts[pk] = alike.setdefault(kind, made)
    return facts


_facts_once = lru_cache(maxsize=KEPT)(_facts)


def forget_contents() -> None:
    _read_once.cache_clear()
    _facts_once.cache_clear()
