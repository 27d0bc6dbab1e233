"""How the items with gold were drawn, and which of them may count for a judge.

A recorded design decides how a rate may be corrected. Items that a prompt was tuned on, or that stand in it
as examples, count for no calibration number. The split follows from the seed and the item's id alone, so that
it is the same whenever and wherever it is asked for.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _

from annotate.models import Round
from calibration.models import CalibrationSplit, Judge
from calibration.partition import CALIBRATION, FEW_SHOT, TUNING, part_of
from calibration.table import Ints, Mask
from evalsets.models import EvalSetVersion, Item
from evalsets.queries import stratum_names

Design = CalibrationSplit.Design
# What the sampling allows a correction to assume; see `stats.correct_bad_share`.
SAMPLING = {
    Design.RANDOM: "random",
    Design.STRATIFIED: "stratified",
    Design.ENRICHED: "separate",
    Design.IMPORTED: "separate",
}


class BadDesign(Exception):
    """The design cannot be recorded; the message is a sentence for the person who entered it."""


def design_in_force(round: Round) -> CalibrationSplit | None:
    """The design recorded last; else what the round's own plan says, where it drew its overlap at random."""
    return round.calibration_splits.select_related("by").order_by("-pk").first() or _design_of_plan(round)


def _design_of_plan(round: Round) -> CalibrationSplit | None:
    if round.kind == Round.Kind.IMPORTED:
        return CalibrationSplit(round=round, design=Design.IMPORTED, seed=0)
    if round.overlap_kind == Round.Overlap.SHARE and round.stratum:
        return CalibrationSplit(round=round, design=Design.STRATIFIED, stratum=round.stratum, seed=round.seed)
    if round.overlap_kind in (Round.Overlap.RANDOM, Round.Overlap.SHARE):
        return CalibrationSplit(round=round, design=Design.RANDOM, seed=round.seed)
    return None


@transaction.atomic
def record_design(
    *,
    round: Round,
    design: str,
    seed: int,
    stratum: str = "",
    tuning_share: float = 0.0,
    few_shot: Iterable[str] = (),
    note: str = "",
    person=None,
) -> CalibrationSplit:
    """Record how the items of a round were drawn. The same again is the same record."""
    Round.objects.select_for_update().get(pk=round.pk)
    wanted = sorted(set(few_shot))
    _check(round, design, stratum, tuning_share, wanted)
    values: dict[str, Any] = {
        "design": design,
        "seed": seed,
        "stratum": stratum if design == Design.STRATIFIED else "",
        "tuning_share": tuning_share,
        "few_shot": wanted,
        "note": note.strip(),
    }
    now = design_in_force(round)
    if now and now.pk and all(getattr(now, name) == value for name, value in values.items()):
        return now
    return CalibrationSplit.objects.create(round=round, by=person, **values)


def _check(round: Round, design: str, stratum: str, tuning_share: float, few_shot: list[str]) -> None:
    if design not in Design.values:
        raise BadDesign(_("{design!r} is no sampling design.").format(design=design))
    if not 0 <= tuning_share < 1:
        raise BadDesign(_("The share for tuning must leave something to calibrate on: from 0 to below 1."))
    if design == Design.STRATIFIED and stratum not in stratum_names(round.version):
        raise BadDesign(_("Name a stratum of this version: {names}.").format(names=_listed(round.version)))
    known = set(
        Item.objects.filter(version=round.version, item_id__in=few_shot).values_list("item_id", flat=True)
    )
    unknown = [name for name in few_shot if name not in known]
    if unknown:
        raise BadDesign(_("This version has no item {name!r}.").format(name=unknown[0]))


def _listed(version: EvalSetVersion) -> str:
    return ", ".join(stratum_names(version)) or _("it has none")


def part_of_item(split: CalibrationSplit, item_id: str) -> str:
    """Which part an item belongs to: the examples of a prompt first, then by the seed."""
    return part_of(item_id, seed=split.seed, tuning_share=split.tuning_share, few_shot=split.few_shot)


def parts_of_items(split: CalibrationSplit | None, version: EvalSetVersion) -> dict[int, str]:
    """The part of every item of a version, by key."""
    items = version.items.values_list("pk", "item_id")
    return {pk: part_of_item(split, name) if split else CALIBRATION for pk, name in items}


def of_calibration(parts: Mapping[int, str], items: Ints) -> Mask:
    """Where an item counts for calibration numbers; `items` are keys."""
    return np.array([parts[item] == CALIBRATION for item in items.tolist()], dtype=bool)


def design_facts(split: CalibrationSplit | None, parts: Mapping[int, str]) -> dict[str, Any]:
    """What a report says about its items; `recorded` is null where the round's plan says it, or nobody."""
    said = list(parts.values())
    counts = {name: said.count(name) for name in (CALIBRATION, TUNING, FEW_SHOT)}
    if split is None or split.pk is None:
        return {"recorded": None, "design": split.design if split else None, "items": counts}
    return {
        "recorded": split.pk,
        "design": split.design,
        "stratum": split.stratum or None,
        "seed": split.seed,
        "tuning_share": split.tuning_share,
        "items": counts,
        "note": split.note,
        "at": split.at.isoformat(),
        "by": split.by.get_username() if split.by else None,
        "earlier_records": split.round.calibration_splits.filter(pk__lt=split.pk).count(),
    }


def tried_on(version: EvalSetVersion) -> dict[str, int]:
    """How much was tried here: the best of many prompts looks better than it is."""
    runs = version.judge_runs.whole().filter(judge__kind=Judge.Kind.OPENAI, origin="run")
    asked = [
        (run["model"], run.get("prompt_version"), run.get("prompt_sha256"))
        for run in runs.values_list("requested", flat=True)
        if "model" in run
    ]
    return {
        "judge_runs": len(asked),
        "models": len({model for model, *_prompt in asked}),
        "prompt_versions": len({tuple(prompt) for _model, *prompt in asked}),
    }
