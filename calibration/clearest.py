"""The disagreements that show best what a rubric leaves open, for a pair of labels.

The rule, which the page says as well: nobody was faster than two seconds, nobody flagged the target, somebody
left a note, and the graders agree on the rest of the response; at most one target of an item.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import Q

from annotate.asking import PASSAGE, RESPONSE
from annotate.disagreement_kinds import target_in_address
from annotate.models import Annotation, Flag, Round
from annotate.queries import RUSHED
from calibration.pairing import KEY_FIELDS
from calibration.stats.arrays import encode_clusters
from calibration.table import REASON_CODE, Mask, Table, counts_per_label
from evalsets.models import Claim, Passage, Response

SHOWN = 5


@dataclass(frozen=True)
class Example:
    address: str  # of the target, its dimension given
    text: str
    more: str
    labels: dict[str, int]
    noted: bool


def clearest_examples(*, table: Table, round: Round, one: str, other: str) -> list[Example]:
    """Up to five targets on which one label stands against the other, the clearest first."""
    table = table.originals()
    targets = table.targets
    counts = counts_per_label(table.graders, targets)
    i, j = targets.labels.index(one), targets.labels.index(other)
    apart = (counts[:, i] > 0) & (counts[:, j] > 0) & ~_incomplete(table)
    rows = np.flatnonzero(apart)
    if not len(rows):
        return []
    elsewhere = _agreement_elsewhere(table, counts)
    noted, rushed = _said_with(round, targets.dimension, targets.unit)
    flagged = set(Flag.objects.filter(round=round).values_list("response_id", "claim_id"))
    keys = targets.keys()
    about_claims = targets.unit not in (RESPONSE, PASSAGE)

    def clearness(row: int) -> tuple:
        claim = int(targets.target[row]) if about_claims else None
        is_flagged = (int(targets.response[row]), claim) in flagged
        return keys[row] in rushed, is_flagged, keys[row] not in noted, -elsewhere[row], row

    chosen: list[int] = []
    items: set[int] = set()
    for row in sorted(rows.tolist(), key=clearness):
        if targets.item[row] not in items:
            items.add(targets.item[row])
            chosen.append(row)
        if len(chosen) == SHOWN:
            break
    return [_example(table, counts, row, keys[row] in noted) for row in chosen]


def _incomplete(table: Table) -> Mask:
    """Somebody's label is still awaited: until then nobody's is shown."""
    waiting = np.zeros(len(table), dtype=bool)
    for column in table.graders:
        waiting |= column.why == REASON_CODE["not_labelled"]
    return waiting


def _agreement_elsewhere(table: Table, counts: Any) -> Any:
    """Of each target the share of the other targets of its response on which all graders agree."""
    responses, _number = encode_clusters(table.targets.response, len(table))
    twice = counts.sum(axis=1) >= 2
    same = twice & ((counts > 0).sum(axis=1) == 1)
    labelled = np.bincount(responses, weights=twice)[responses] - twice
    agreed = np.bincount(responses, weights=same)[responses] - same
    return np.where(labelled > 0, agreed / np.maximum(labelled, 1), 0.0)


def _said_with(round: Round, dimension: str, unit: str) -> tuple[set, set]:
    """Targets with a note, and targets with a label given in under two seconds."""
    fields = KEY_FIELDS[unit]
    labels = Annotation.objects.filter(round=round, dimension=dimension)
    found = labels.filter(~Q(note="") | Q(milliseconds__lt=RUSHED)).values_list(
        "note", "milliseconds", *fields
    )
    noted, rushed = set(), set()
    for note, milliseconds, *key in found:
        name = key[0] if len(key) == 1 else tuple(key)
        if note:
            noted.add(name)
        if milliseconds is not None and milliseconds < RUSHED:
            rushed.add(name)
    return noted, rushed


def _example(table: Table, counts: Any, row: int, noted: bool) -> Example:
    targets = table.targets
    target, response = int(targets.target[row]), int(targets.response[row])
    passage = int(targets.passage[row]) if targets.passage is not None else None
    if targets.unit == RESPONSE:
        shown = Response.objects.select_related("item").get(pk=response)
        address, text, more = target_in_address(response, None, None), shown.item.question or "", shown.text
    elif targets.unit == PASSAGE:
        address = target_in_address(response, None, target)
        shown_passage = Passage.objects.select_related("response__item").get(pk=target)
        text, more = shown_passage.text, shown_passage.response.item.question or ""
    else:
        address = target_in_address(response, target, passage)
        text = Claim.objects.get(pk=target).text
        more = Passage.objects.get(pk=passage).text if passage is not None else ""
    given = zip(targets.labels, counts[row].tolist(), strict=True)
    return Example(address, text, more, {label: n for label, n in given if n}, noted)
