"""What the files of a gold export hold, and the figures that follow from them. No database, no framework.

The export writes with these functions and the recomputation reads with them, from the files alone.
"""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import Any

import numpy as np

from calibration.gold_lines import FIELDS, Record, Row
from calibration.measures import Figures, agreement_of
from calibration.rate_measures import rates_of
from calibration.table import MISSING, Column, Table, Targets, gold_column, grader_column
from evalsets.hashing import fingerprint
from evalsets.labels import LABELS

GOLD, UNRESOLVED, CSV = "gold.jsonl", "unresolved.jsonl", "gold.csv"
PARQUET, MANIFEST, CARD = "gold.parquet", "manifest.json", "README.md"
FILTERED = "filtered"  # the reason of a gold record that was not asked for: kept without its texts

# The marks of exports before this version, which lack the rest.
REQUIRED_FIELDS = tuple(name for name in FIELDS if name != "calibration_split")
# Depends on the order of the graders' names, which the files do not tell.
BY_NAME = "kappa_first_two_by_name"
# Numbers of responses, which mean nothing outside of the table that they count.
BY_NUMBER = "review_queue"

Key = tuple[str, str, int | None, str]


# Records


def key_of(row: Row) -> Key:
    """What names a target in a file: response, claim, rank of the passage, dimension."""
    rank = row["passage"]["rank"] if row["passage"] else None
    return row["response_id"], row["claim_id"] or "", rank, row["dimension"]


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Of everything in the manifest but the hash itself."""
    return fingerprint({key: value for key, value in manifest.items() if key != "manifest_sha256"})


def file_facts(path: Path) -> Figures:
    digest, lines, size = hashlib.sha256(), 0, 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
            lines += chunk.count(b"\n")
            size += len(chunk)
    return {"sha256": digest.hexdigest(), "bytes": size, "lines": lines}


# From records to tables


@dataclass(frozen=True)
class OptionalDimension:
    """A dimension whose labels are data of its rubric version: what it is asked of, its labels in order."""

    target: str
    labels: tuple[str, ...]


def optional_dimensions(rubric: Mapping[str, Any]) -> dict[str, OptionalDimension]:
    """By name, in the order of the rubric that a manifest holds."""
    return {
        dimension["name"]: OptionalDimension(
            dimension["target"], tuple(label["name"] for label in dimension["labels"])
        )
        for dimension in rubric["dimensions"]
        if dimension["name"] not in LABELS
    }


class Gathered:
    """What the figures need of gold and unresolved records, taken in one at a time: no text is kept."""

    def __init__(
        self,
        systems: Sequence[Mapping[str, Any]],
        optional: Mapping[str, OptionalDimension] | None = None,
    ) -> None:
        self._run_names = {system["system_run"]: system["name"] for system in systems}
        optional = optional or {}
        self._said = {name: _Said(name, optional.get(name)) for name in (*LABELS, *optional)}
        self._responses: dict[str, int] = {}
        self._items: dict[str, int] = {}
        self._item_facts: dict[int, Figures] = {}
        self._of: Row | None = None  # what the latest record shares, and whose it is
        self._response = self._item = -1

    def add(self, record: Record) -> None:
        row = record.row
        if record.shared.row is not self._of:
            self._take_shared(record.shared.row)
        self._said[row["dimension"]].add(row, self._response, self._item)

    def _take_shared(self, row: Row) -> None:
        self._response = self._responses.setdefault(row["response_id"], len(self._responses))
        self._item = self._items.setdefault(row["item_id"], len(self._items))
        self._item_facts[self._item] = {
            "strata": row["strata"],
            "answerable": row["answerable"],
            "reason": row["unanswerable_reason"] or "",
        }
        self._of = row

    def tables(self) -> dict[str, Table]:
        """One table a dimension."""
        graders = {name for said in self._said.values() for name in said.assigned}
        return {
            name: said.table(graders, self._run_names, self._item_facts) for name, said in self._said.items()
        }


class _Labels:
    """Positions of targets, and the label of each."""

    def __init__(self) -> None:
        self.positions, self.labels = array("q"), list[str]()

    def add(self, position: int, label: str) -> None:
        self.positions.append(position)
        self.labels.append(intern(label))

    def codes(self, targets: Targets) -> np.ndarray:
        codes = np.full(len(targets), MISSING, dtype=np.int64)
        code_of = {label: code for code, label in enumerate(targets.labels)}
        codes[_ints(self.positions)] = [code_of[label] for label in self.labels]
        return codes


def _ints(numbers: array) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


def _marks(flags: bytearray) -> np.ndarray:
    return np.frombuffer(bytes(flags), dtype=bool)


class _Said:
    """The targets of one dimension and what was said about them, in columns that grow."""

    def __init__(self, dimension: str, optional: OptionalDimension | None) -> None:
        self.dimension, self.optional = dimension, optional
        self.response, self.item, self.run = array("q"), array("q"), array("q")
        self.decision, self.original, self.leaf, self.empty = (bytearray() for _ in range(4))
        self.given: dict[str, _Labels] = {}
        self.gold, self.source = _Labels(), list[str]()
        self.gold_not_asked = bytearray()
        self.assigned: dict[str, array] = {}
        self.all_assigned = True  # to somebody or to nobody; labels from elsewhere were not assigned
        self.not_asked: dict[str, array] = {}

    def add(self, row: Row, response: int, item: int) -> None:
        position, reason = len(self.run), row.get("reason")
        self.response.append(response)
        self.item.append(item)
        self.run.append(row["system_run"])
        self.decision.append(bool(row["decision"]))
        self.original.append(row["split"] is None)
        self.leaf.append(reason != "split")
        self.empty.append(bool(row["empty"] if reason else not row["response"].strip()))
        self.gold_not_asked.append(reason == "not_asked")
        is_gold = reason is None or reason == FILTERED
        self.source.append(intern(row["source"] or "") if is_gold else "")
        if is_gold and row["label"]:
            self.gold.add(position, row["label"])
        for annotation in row["annotations"]:
            self.given.setdefault(annotation["grader"], _Labels()).add(position, annotation["label"])
        if row["assigned"] is None:
            self.all_assigned = False
        for name in row["assigned"] or ():
            self.assigned.setdefault(name, array("q")).append(position)
        for name in row["not_asked"]:
            self.not_asked.setdefault(name, array("q")).append(position)

    def table(self, graders: set[str], run_names: Mapping[int, str], facts: Mapping[int, Figures]) -> Table:
        targets = self._targets(run_names, facts)
        columns = tuple(
            grader_column(
                name,
                self.given.get(name, _Labels()).codes(targets),
                targets,
                self._mask(self.assigned.get(name)) if self.all_assigned else None,
            ).not_asked(self._mask(self.not_asked.get(name)))
            for name in sorted({*graders, *self.given}, key=_number)
        )
        gold = gold_column(self.gold.codes(targets), targets, columns).not_asked(_marks(self.gold_not_asked))
        source = np.array(self.source, dtype=object)
        return Table(targets, columns, gold, source, np.zeros(len(targets), dtype=bool))

    def _targets(self, run_names: Mapping[int, str], facts: Mapping[int, Figures]) -> Targets:
        return Targets(
            dimension=self.dimension,
            target=np.arange(len(self.run), dtype=np.int64),
            response=_ints(self.response),
            item=_ints(self.item),
            run=_ints(self.run),
            decision=_marks(self.decision),
            original=_marks(self.original),
            leaf=_marks(self.leaf),
            empty=_marks(self.empty),
            run_names=run_names,
            item_facts=facts,
            own_labels=self.optional.labels if self.optional else (),
            own_unit=self.optional.target if self.optional else "",
        )

    def _mask(self, positions: array | None) -> np.ndarray:
        mask = np.zeros(len(self.run), dtype=bool)
        if positions is not None:
            mask[_ints(positions)] = True
        return mask


def _number(pseudonym: str) -> tuple[int, str]:
    digits = pseudonym.rpartition(" ")[2]
    return (int(digits) if digits.isdecimal() else 0, pseudonym)


def renamed(table: Table, names: Mapping[str, str]) -> Table:
    """The same table with the graders under their pseudonyms."""
    graders = tuple(
        Column(names[column.name], column.kind, column.codes, column.why) for column in table.graders
    )
    return Table(
        table.targets,
        graders,
        table.gold,
        table.gold_source,
        table.gold_saw_judge,
        table.judge,
        table.gold_unseen,
    )


# Figures


def figures_of(tables: Mapping[str, Table], *, graded: Iterable[str], unit: str) -> Figures:
    """Every figure of the manifest: counts, agreement of the graded dimensions, rates by gold."""
    claims, responses = tables["grounding"].leaves(), tables["abstention"]
    assert claims.gold is not None
    assert responses.gold is not None
    rates = rates_of(claims=claims, responses=responses, said=claims.gold, verdict=responses.gold, unit=unit)
    return {
        "counts": {dimension: gold_counts(table) for dimension, table in tables.items()},
        "agreement": {dimension: without(agreement_of(tables[dimension]), BY_NAME) for dimension in graded},
        "rates": {"unit": unit, **without(rates, BY_NUMBER)},
    }


def gold_counts(table: Table) -> Figures:
    assert table.gold is not None
    assert table.gold_source is not None
    settled = table.gold.has & table.targets.leaf
    by_label = Counter(table.gold.codes[settled].tolist())
    return {
        "targets": len(table),
        "gold": int(settled.sum()),
        "unresolved": int((~settled).sum()),
        "by_label": {label: by_label[code] for code, label in enumerate(table.targets.labels)},
        "by_source": dict(sorted(Counter(table.gold_source[settled].tolist()).items())),
        "labels": int(sum(column.has.sum() for column in table.graders)),
    }


def without(figures: Any, key: str) -> Any:
    """The same structure without a key, however deep."""
    if isinstance(figures, dict):
        return {name: without(value, key) for name, value in figures.items() if name != key}
    if isinstance(figures, list):
        return [without(value, key) for value in figures]
    return figures
