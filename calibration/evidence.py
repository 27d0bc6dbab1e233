"""The calibration sample: the rows of a table that the trust gate looks at. No database and no framework."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from calibration.gate import GateEvidence, rules_without_classes
from calibration.table import Mask, Table
from evalsets.labels import LABELS


def overlap_of(table: Table, system_runs: Iterable[int]) -> Mask:
    """Targets of the judged system runs that two graders labelled: leaves, and claims split since."""
    judged = np.isin(table.targets.run, list(system_runs))
    return judged & (table.labels_per_target() >= 2)


def gate_evidence(
    table: Table, *, system_runs: Iterable[int], fingerprint_matches: bool | None, age_days: int | None
) -> GateEvidence | None:
    """What the gate decides on, or None where nothing was labelled twice.

    A claim that was split since has no verdict and no gold of its own (its parts have): it counts for the
    agreement of the graders and for nothing else.
    """
    sample = table.select(overlap_of(table, system_runs))
    if not len(sample):
        return None
    assert sample.judge is not None
    labels, targets = sample.targets.labels, sample.targets
    gold = sample.blind_gold()
    standing_in = np.where(targets.leaf, gold.codes, sample.first_labels())
    return GateEvidence(
        dimension=targets.dimension,
        graders={column.name: column.words(labels) for column in sample.graders},
        judge=[
            label if leaf else None
            for label, leaf in zip(sample.judge.words(labels), targets.leaf.tolist(), strict=True)
        ],
        clusters=targets.item.tolist(),
        gold=[labels[code] if code >= 0 else None for code in standing_in.tolist()],
        gold_complete=bool(gold.has[targets.leaf].all()),
        responses=targets.response.tolist(),
        systems=[targets.run_names[run] for run in targets.run.tolist()],
        fingerprint_matches=fingerprint_matches,
        asked=targets.leaf.tolist(),
        age_days=age_days,
        own_rules=rules_without_classes(labels, targets.unit) if targets.dimension not in LABELS else None,
    )


def evidence_counts(table: Table, system_runs: Iterable[int]) -> dict[str, int]:
    """How many targets, items and labels a decision rests on, and how many of them are settled."""
    sample = table.select(overlap_of(table, system_runs))
    assert sample.judge is not None
    gold = sample.blind_gold()
    return {
        "targets": len(sample),
        "split_since": int((~sample.targets.leaf).sum()),
        "responses": len(np.unique(sample.targets.response)),
        "items": len(np.unique(sample.targets.item)),
        "labels": int(sample.labels_per_target().sum()),
        "gold": int((gold.has & sample.targets.leaf).sum()),
        "gold_missing": int((~gold.has & sample.targets.leaf).sum()),
        **_decided_in_view(sample),
        "valid_verdicts": int((sample.judge.has & sample.targets.leaf).sum()),
    }


def _decided_in_view(sample: Table) -> dict[str, int]:
    """Gold decided after a look at verdicts, and how much of it nothing stands in for."""
    assert sample.gold_saw_judge is not None
    seen = sample.gold_saw_judge & sample.targets.leaf
    stands = seen & sample.blind_gold().has
    return {"gold_saw_judge": int(seen.sum()), "gold_saw_judge_left_out": int((seen & ~stands).sum())}


def labels_hash(table: Table) -> str:
    """Changes with any label, gold label or verdict of the table: does a report still describe it?"""
    columns = [*table.graders, *(column for column in (table.gold, table.judge) if column)]
    if table.gold_saw_judge is not None and table.gold_saw_judge.any():
        columns.append(replace(table.blind_gold(), name="before a verdict was seen"))
    said = {f"{column.kind} {column.name}": column.codes.tolist() for column in columns}
    if table.judge is not None and table.judge.repeats is not None:
        said["judge, every run"] = table.judge.repeats.tolist()
    rows = [table.targets.target.tolist(), table.targets.leaf.tolist(), said]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
