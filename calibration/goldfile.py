"""What the files of a gold export hold, and the figures that follow from them. No database, no framework.

The export writes with these functions and the recomputation reads with them, from the files alone.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow
import pyarrow.parquet

from calibration.measures import Figures, agreement_of, rates_of
from calibration.table import MISSING, Column, Table, Targets, gold_column, grader_column
from evalsets.hashing import fingerprint
from evalsets.inert import inert
from evalsets.labels import LABELS

GOLD, UNRESOLVED, CSV = "gold.jsonl", "unresolved.jsonl", "gold.csv"
PARQUET, MANIFEST, CARD = "gold.parquet", "manifest.json", "README.md"
FILTERED = "filtered"  # the reason of a gold record that was not asked for: kept without its texts

FIELDS = (
    "evalset",
    "version",
    "content_hash",
    "round",
    "system_run",
    "system_run_hash",
    "sample",
    "split",
    "flag",
    "item_id",
    "response_id",
    "claim_id",
    "dimension",
    "label",
    "source",
    "annotations",
    "adjudication",
    "rubric_version",
    "target_sha256",
    "strata",
    "answerable",
    "unanswerable_reason",
    "system",
    "question",
    "response",
    "claim",
    "context",
    "passage",
    "assigned",
    "not_asked",
    "decision",
    "calibration_split",
)
# What an unresolved target keeps: everything that a figure rests on, and no text.
UNRESOLVED_FIELDS = (
    "version",
    "round",
    "system_run",
    "sample",
    "split",
    "flag",
    "item_id",
    "response_id",
    "claim_id",
    "passage",
    "dimension",
    "reason",
    "annotations",
    "strata",
    "answerable",
    "unanswerable_reason",
    "assigned",
    "not_asked",
    "decision",
    "empty",
)
# The marks of exports before this version, which lack the rest.
REQUIRED_FIELDS = tuple(name for name in FIELDS if name != "calibration_split")
# Depends on the order of the graders' names, which the files do not tell.
BY_NAME = "kappa_first_two_by_name"
# Numbers of responses, which mean nothing outside of the table that they count.
BY_NUMBER = "review_queue"

Row = dict[str, Any]


# Records


def target_hash(row: Mapping[str, Any]) -> str:
    """What the label is about: question, response, claim, the passages as served, and which one of them."""
    about = {name: row[name] for name in ("question", "response", "claim", "context")}
    return fingerprint(about | ({"passage": row["passage"]} if row["passage"] else {}))


def line_of(row: Row) -> bytes:
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8") + b"\n"


def csv_cells(row: Row) -> list[str]:
    """The record as cells: nested values as JSON, and nothing that a spreadsheet would run."""
    return [inert(_cell(row[name])) for name in FIELDS]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


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
class _Frame:
    """What the tables of all dimensions share: numbers for responses and items, runs and graders."""

    responses: Mapping[str, int]
    items: Mapping[str, int]
    item_facts: Mapping[int, Figures]
    run_names: Mapping[int, str]
    graders: frozenset[str]

    @classmethod
    def of(cls, rows: Sequence[Row], systems: Sequence[Mapping[str, Any]]) -> "_Frame":
        responses: dict[str, int] = {}
        items: dict[str, int] = {}
        facts: dict[int, Figures] = {}
        for row in rows:
            responses.setdefault(row["response_id"], len(responses))
            facts[items.setdefault(row["item_id"], len(items))] = {
                "strata": row["strata"],
                "answerable": row["answerable"],
                "reason": row["unanswerable_reason"] or "",
            }
        graders = frozenset(name for row in rows for name in row["assigned"] or ())
        names = {system["system_run"]: system["name"] for system in systems}
        return cls(responses, items, facts, names, graders)


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


def tables_of(
    rows: Iterable[Row],
    systems: Sequence[Mapping[str, Any]],
    optional: Mapping[str, OptionalDimension] | None = None,
) -> dict[str, Table]:
    """One table a dimension, from the lean part of gold and unresolved rows."""
    rows, optional = list(rows), optional or {}
    frame = _Frame.of(rows, systems)
    return {
        name: _table(name, [row for row in rows if row["dimension"] == name], frame, optional.get(name))
        for name in (*LABELS, *optional)
    }


def lean(row: Row) -> Row:
    """A record without its texts: what the figures need."""
    kept = {name: row.get(name) for name in UNRESOLVED_FIELDS}
    if "reason" not in row:
        kept |= {"label": row["label"], "source": row["source"], "empty": not row["response"].strip()}
    elif row["reason"] == FILTERED:
        kept |= {"label": row["label"], "source": row["source"]}
    return kept


def without_texts(row: Row) -> Row:
    """A gold record that was not asked for, as it stands beside the unresolved: figures rest on it too."""
    kept = {name: row.get(name) for name in UNRESOLVED_FIELDS}
    said = {"reason": FILTERED, "empty": not row["response"].strip()}
    return kept | said | {"label": row["label"], "source": row["source"]}


def _table(dimension: str, rows: list[Row], frame: _Frame, optional: OptionalDimension | None) -> Table:
    targets = _targets(dimension, rows, frame, optional)
    given: dict[str, list[tuple[int, str]]] = {name: [] for name in frame.graders}
    for position, row in enumerate(rows):
        for annotation in row["annotations"]:
            given.setdefault(annotation["grader"], []).append((position, annotation["label"]))
    graders = tuple(
        grader_column(name, _codes(targets, given[name]), targets, _assigned(rows, name)).not_asked(
            np.array([name in row["not_asked"] for row in rows], dtype=bool)
        )
        for name in sorted(given, key=_number)
    )
    labels = [(position, row["label"]) for position, row in enumerate(rows) if row.get("label")]
    source = np.array([row.get("source") or "" for row in rows], dtype=object)
    not_asked = np.array([row.get("reason") == "not_asked" for row in rows], dtype=bool)
    gold = gold_column(_codes(targets, labels), targets, graders).not_asked(not_asked)
    return Table(targets, graders, gold, source, np.zeros(len(rows), dtype=bool))


def _targets(dimension: str, rows: list[Row], frame: _Frame, optional: OptionalDimension | None) -> Targets:
    def numbers(values: Iterable[int]) -> np.ndarray:
        return np.array(list(values), dtype=np.int64)

    def marks(values: Iterable[bool]) -> np.ndarray:
        return np.array(list(values), dtype=bool)

    return Targets(
        dimension=dimension,
        target=numbers(range(len(rows))),
        response=numbers(frame.responses[row["response_id"]] for row in rows),
        item=numbers(frame.items[row["item_id"]] for row in rows),
        run=numbers(row["system_run"] for row in rows),
        decision=marks(bool(row["decision"]) for row in rows),
        original=marks(row["split"] is None for row in rows),
        leaf=marks(row.get("reason") != "split" for row in rows),
        empty=marks(row["empty"] for row in rows),
        run_names=frame.run_names,
        item_facts=frame.item_facts,
        own_labels=optional.labels if optional else (),
        own_unit=optional.target if optional else "",
    )


def _codes(targets: Targets, labels: Iterable[tuple[int, str]]) -> np.ndarray:
    codes = np.full(len(targets), MISSING, dtype=np.int64)
    for position, label in labels:
        codes[position] = targets.labels.index(label)
    return codes


def _assigned(rows: list[Row], name: str) -> np.ndarray | None:
    if any(row["assigned"] is None for row in rows):
        return None
    return np.array([name in row["assigned"] for row in rows], dtype=bool)


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


def records(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


# Parquet


class ParquetFile:
    """The records as columns of text, nested values as JSON; written in batches."""

    BATCH = 1000

    def __init__(self, path: Path):
        self.schema = pyarrow.schema([(name, pyarrow.string()) for name in FIELDS])
        self.writer = pyarrow.parquet.ParquetWriter(path, self.schema)
        self.rows: list[Row] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._flush()
        self.writer.close()

    def write(self, row: Row) -> None:
        self.rows.append(row)
        if len(self.rows) >= self.BATCH:
            self._flush()

    def _flush(self) -> None:
        cells = {name: [parquet_cell(row[name]) for row in self.rows] for name in FIELDS}
        self.writer.write_table(pyarrow.table(cells, schema=self.schema))
        self.rows = []


def parquet_cell(value: Any) -> str | None:
    return None if value is None else _cell(value)


def parquet_rows(path: Path) -> Iterator[dict[str, str | None]]:
    """The records of a Parquet file as they stand there.

    Raises
    ------
    OSError, ValueError
        It cannot be read.
    """
    for batch in pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=ParquetFile.BATCH):
        yield from batch.to_pylist()
