"""What a second look shows: how far a grading agrees with itself, and with somebody who grades it anew."""

from dataclasses import replace
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotate.disagreement_kinds import target_in_address
from annotate.models import Dimension, Round
from annotate.queries import hue_of
from calibration.measures import Figures, pair_figures
from calibration.pairing import KEY_FIELDS, dimensions_of, table_of
from calibration.table import Column, Mask, Targets
from evalsets.models import Claim, Response

CHANGED_SHOWN = 200


def second_look_figures(second: Round) -> list[Figures]:
    """Of each dimension that was drawn: the pairs of first and second grader, and what came out otherwise."""
    drawn = set(second.drawn.values_list("dimension", flat=True))
    return [_figures(second, dimension) for dimension in dimensions_of(second) if dimension in drawn]


def _figures(second: Round, dimension: str) -> Figures:
    assert second.second_look_of is not None
    version = second.version
    before = table_of(version=version, round=second.second_look_of, dimension=dimension)
    after = table_of(version=version, round=second, dimension=dimension)
    mask = _drawn(after.targets, second)
    targets = before.targets.select(mask)
    first = [column for column in (c.select(mask) for c in before.graders) if column.has.any()]
    again = [column.select(mask) for column in after.graders]
    pairs = [_pair(targets, a, b) for b in again for a in first]
    return {
        "dimension": dimension,
        "unit": targets.unit,
        "n_drawn": len(targets),
        "n_again": int(np.any([column.has for column in again], axis=0).sum()) if again else 0,
        "with_oneself": [pair for pair in pairs if pair["is_self"]],
        "with_others": [pair for pair in pairs if not pair["is_self"] and pair["n"]],
        "changed": _changed(targets, first, again, second),
    }


def _drawn(targets: Targets, second: Round) -> Mask:
    rows = second.drawn.filter(dimension=targets.dimension).values_list(*KEY_FIELDS[targets.unit])
    drawn = {key if len(key) > 1 else key[0] for key in rows}
    keys = targets.keys()
    return np.array([key in drawn for key in keys], dtype=bool)


def _pair(targets: Targets, a: Column, b: Column) -> Figures:
    """The same person has one name in both rounds, so each column says which it is."""
    first = replace(a, name=_("{name}, first").format(name=a.name))
    again = replace(b, name=_("{name}, again").format(name=b.name))
    return pair_figures(targets, first, again) | {"is_self": a.name == b.name, "names": (a.name, b.name)}


def _changed(targets: Targets, first: list[Column], again: list[Column], second: Round) -> list[Figures]:
    """Targets on which somebody who looked again gave another label than somebody at first."""
    differ = np.zeros(len(targets), dtype=bool)
    for a in first:
        for b in again:
            differ |= a.has & b.has & (a.codes != b.codes)
    dimension = second.rubric_version.dimensions.get(name=targets.dimension)
    return [
        {
            "key": key,
            "response": response,
            "first": _said(first, row, targets, dimension),
            "again": _said(again, row, targets, dimension),
        }
        for row, (key, response) in enumerate(zip(targets.keys(), targets.response.tolist(), strict=True))
        if differ[row]
    ]


def _said(
    columns: list[Column], row: int, targets: Targets, dimension: Dimension
) -> list[tuple[str, str, str]]:
    """Name, label and its colour."""
    given = [(column.name, targets.labels[column.codes[row]]) for column in columns if column.has[row]]
    return [(name, label, hue_of(dimension, label)) for name, label in given]


def with_texts(changed: list[Figures], unit: str) -> list[Figures]:
    """The claim, or the question, and how an address names the target; for as many as are shown."""
    shown = changed[:CHANGED_SHOWN]
    keys = [_ids(entry["key"], unit) for entry in shown]
    claims = dict(
        Claim.objects.filter(pk__in=[claim for claim, _p in keys if claim]).values_list("pk", "text")
    )
    questions = dict(
        Response.objects.filter(pk__in=[entry["response"] for entry in shown]).values_list(
            "pk", "item__question"
        )
    )
    return [
        entry
        | {
            "text": claims[claim] if claim else questions[entry["response"]] or "",
            "target": target_in_address(entry["response"], claim, passage),
        }
        for entry, (claim, passage) in zip(shown, keys, strict=True)
    ]


def _ids(key: Any, unit: str) -> tuple[int | None, int | None]:
    """Claim and passage of a target, from what names it among those of its kind."""
    if unit == "citation":
        return key
    return (key if unit == "claim" else None, key if unit == "passage" else None)
