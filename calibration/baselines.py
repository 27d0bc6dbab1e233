"""The judge beside what costs nothing: its lead over each baseline, on the targets that both have judged."""

from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from calibration import stats
from calibration.computed import LEARNING, human_labels
from calibration.measures import Figures, kappa_of
from calibration.models import Judge, JudgeRun
from calibration.pairing import judge_column
from calibration.services import Refused, dimensions_of, judge_named, start_run, targets_of
from calibration.stats.agreement import kappa_of_pairs, leave_one_out_kappas, pair_up
from calibration.table import Column, Table
from evalsets.models import EvalSetVersion

KINDS = {
    "grounding": (Judge.Kind.MAJORITY, Judge.Kind.LEXICAL, Judge.Kind.TRAINED),
    "abstention": (Judge.Kind.MAJORITY, Judge.Kind.PHRASES, Judge.Kind.TRAINED),
}
LEVEL = 0.95


def baselines_of(table: Table, *, judge_run: JudgeRun, dimension: str) -> list[Figures]:
    """Each baseline against the same gold on the same targets, and the judge's kappa minus its own.

    One that has not run over this version is named as missing. `table` holds the targets that count.
    """
    leaves = table.leaves()
    return [
        _beside(leaves, kind, _run_of(kind, judge_run.version, dimension))
        for kind in KINDS.get(dimension, ())
        if kind != judge_run.judge.kind
    ]


def _run_of(kind: str, version: EvalSetVersion, dimension: str) -> JudgeRun | None:
    runs = JudgeRun.objects.filter(
        judge__kind=kind, version=version, state=JudgeRun.State.COMPLETE
    ).select_related("judge")
    return next((run for run in runs.order_by("-number") if dimension in run.dimensions), None)


def _beside(leaves: Table, kind: str, run: JudgeRun | None) -> Figures:
    figures: Figures = {"baseline": str(kind), "run": run.number if run else None}
    if run is None:
        return figures
    assert leaves.judge is not None
    gold, targets = leaves.blind_gold(), leaves.targets
    theirs = judge_column(targets=targets, judge_run=run)
    common = gold.has & leaves.judge.has & theirs.has
    part = targets.select(common)
    columns = [column.select(common) for column in (gold, leaves.judge, theirs)]
    judge, baseline = (kappa_of(part, columns[0], column) for column in columns[1:])
    return figures | {
        "n": int(common.sum()),
        "judge": judge.as_number().as_dict(),
        "cohen_kappa": baseline.as_number().as_dict(),
        "difference": _difference(part, *columns),
    }


def _difference(targets: Any, gold: Column, judge: Column, baseline: Column) -> Figures:
    """Kappa of the judge minus kappa of the baseline, with the jackknife over items of the difference."""
    pairs = (
        [pair_up(gold.codes, column.codes, targets.labels, targets.item) for column in (judge, baseline)]
        if len(targets)
        else []
    )
    values = [kappa_of_pairs(pair).value for pair in pairs]
    common: dict[str, Any] = {
        "level": LEVEL,
        "n": len(targets),
        "clusters": len(np.unique(targets.item)),
        "definition": "cohen-kappa",
        "label": "Kappa of the judge minus that of the baseline",
        "unit": targets.unit,
    }
    if not pairs or values[0] is None or values[1] is None:
        return stats.undefined_number("one_label_only" if pairs else "empty_overlap", **common).as_dict()
    first, second = (leave_one_out_kappas(pair) for pair in pairs)
    value = values[0] - values[1]
    interval = stats.jackknife(first - second).interval(value, LEVEL)
    low, high = interval if interval else (None, None)
    flags = ("no_variation",) if interval is None else ()
    few = ("too_few_clusters",) if common["clusters"] < 10 else ()
    return stats.Number(
        value=value,
        low=None if low is None else max(-2.0, low),
        high=None if high is None else min(2.0, high),
        method="leave-one-item-out jackknife of the difference",
        flags=(*flags, *few),
        **common,
    ).as_dict()


def start_baselines(*, version: EvalSetVersion, person=None) -> tuple[list[JudgeRun], list[str]]:
    """Start each baseline that has no run over this version; what was started, and why others were not."""
    started, refused = [], []
    for kind in dict.fromkeys(kind for kinds in KINDS.values() for kind in kinds):
        if JudgeRun.objects.filter(judge__kind=kind, version=version).exists():
            continue
        try:
            judge = judge_named(evalset=version.evalset, name=kind.value)
            started.append(_start(judge, version, person))
        except Refused as error:
            refused.append(str(error))
    return started, refused


def _start(judge: Judge, version: EvalSetVersion, person) -> JudgeRun:
    """In every dimension that it can judge here: responses without a claim, for one, have no grounding."""
    runs = list(version.runs.all())
    able = [name for name in dimensions_of(judge) if targets_of(system_runs=runs, dimensions=[name])]
    if judge.kind in LEARNING:
        able = [name for name in able if human_labels(version, name)]
    if not able:
        raise Refused(
            _("{judge} has nothing to judge here, or nobody's labels to learn from.").format(judge=judge)
        )
    return start_run(judge=judge, version=version, system_runs=runs, dimensions=able, person=person)
