"""Recompute every figure of a gold export from its files alone: no database, no server, no trust.

What is compared: the hash of every file and of the manifest itself; each record's own consistency; the CSV
and Parquet files against the JSON lines; the card against the manifest; and every count, agreement figure and
rate. What the manifest quotes from frozen
reports (the judges' gates) rests on verdicts that are no part of a gold set: it is covered by the manifest's
hash and listed under `quoted`.
"""

import csv
import json
import math
import sys
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import Any

from calibration import goldfile
from calibration.goldcard import card_of
from calibration.goldfile import Row
from calibration.measures import Figures
from calibration.partition import part_of
from evalsets.labels import LABELS

TOLERANCE = 1e-12
FIGURES = ("counts", "agreement", "rates")
SHOWN = 100  # differences that are listed one by one

Difference = dict[str, Any]


class Unreadable(Exception):
    """A file that is missing or is not what it should be."""


def recompute(folder: Path) -> Figures:
    """Compare a folder with its own manifest; `matches` is true when nothing differs."""
    try:
        differences, quoted = _differences(Path(folder))
    except Unreadable as error:
        differences, quoted = [{"where": str(error), "recorded": None, "recomputed": None}], []
    return {
        "folder": str(folder),
        "matches": not differences,
        "n_differences": len(differences),
        "differences": differences[:SHOWN],
        "quoted": quoted,
    }


def _differences(folder: Path) -> tuple[list[Difference], list[str]]:
    manifest = _manifest(folder / goldfile.MANIFEST)
    found = [
        *_compared("manifest_sha256", manifest.get("manifest_sha256"), goldfile.manifest_hash(manifest)),
        *_file_differences(folder, manifest["files"]),
    ]
    labels = _labels(manifest)
    gold = _rows(folder / goldfile.GOLD, goldfile.REQUIRED_FIELDS, labels)
    unresolved = _rows(folder / goldfile.UNRESOLVED, goldfile.UNRESOLVED_FIELDS, labels)
    found += _record_differences(gold, unresolved, manifest, labels)
    found += _part_differences(gold, manifest.get("calibration_split"))
    found += _csv_differences(folder / goldfile.CSV, gold)
    if goldfile.PARQUET in manifest["files"]:
        found += _parquet_differences(folder / goldfile.PARQUET, gold)
    if goldfile.CARD in manifest["files"]:
        found += _card_differences(folder / goldfile.CARD, manifest)
    found += _figure_differences(gold, unresolved, manifest)
    return found, list(manifest.get("quoted", ()))


def _manifest(path: Path) -> Figures:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        wanted = ("files", "graded", "rubric", "systems", "unresolved", *FIGURES)
        missing = [name for name in wanted if name not in manifest]
    except (OSError, ValueError, TypeError) as error:
        raise Unreadable(f"{path.name}: {error}") from error
    if missing:
        raise Unreadable(f"{path.name}: {', '.join(missing)} is missing")
    return manifest


def _optional(manifest: Figures) -> dict[str, goldfile.OptionalDimension]:
    """The optional dimensions that are in the files."""
    try:
        found = goldfile.optional_dimensions(manifest["rubric"])
    except (KeyError, TypeError) as error:
        raise Unreadable(f"{goldfile.MANIFEST}: rubric: {error!r}") from error
    return {name: dimension for name, dimension in found.items() if name in manifest["graded"]}


def _labels(manifest: Figures) -> dict[str, tuple[str, ...]]:
    """The labels of every dimension in the files, the fixed ones first."""
    return LABELS | {name: dimension.labels for name, dimension in _optional(manifest).items()}


def _rows(path: Path, fields: tuple[str, ...], labels: dict[str, tuple[str, ...]]) -> list[Row]:
    rows = []
    try:
        for number, row in enumerate(goldfile.records(path), 1):
            missing = [name for name in fields if name not in row]
            if missing or row["dimension"] not in labels:
                raise Unreadable(f"{path.name}, line {number}: {', '.join(missing) or 'unknown dimension'}")
            rows.append(row)
    except (OSError, ValueError, TypeError) as error:
        raise Unreadable(f"{path.name}, line {len(rows) + 1}: {error}") from error
    return rows


def _compared(where: str, recorded: Any, recomputed: Any) -> list[Difference]:
    """Every place in which two structures differ; numbers may differ by rounding in the last digits."""
    if isinstance(recorded, dict) and isinstance(recomputed, dict):
        return [
            difference
            for key in sorted({*recorded, *recomputed})
            for difference in _compared(f"{where}.{key}", recorded.get(key), recomputed.get(key))
        ]
    if isinstance(recorded, list) and isinstance(recomputed, list) and len(recorded) == len(recomputed):
        return [
            difference
            for position, pair in enumerate(zip(recorded, recomputed, strict=True))
            for difference in _compared(f"{where}[{position}]", *pair)
        ]
    if _is_number(recorded) and _is_number(recomputed):
        same = math.isclose(recorded, recomputed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    else:
        same = recorded == recomputed and type(recorded) is type(recomputed)
    return [] if same else [{"where": where, "recorded": recorded, "recomputed": recomputed}]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _file_differences(folder: Path, recorded: Figures) -> list[Difference]:
    found = []
    for name, facts in recorded.items():
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise Unreadable(f"{name}: the file is missing")
        found += _compared(f"files.{name}", facts, goldfile.file_facts(path))
    return found


def _record_differences(
    gold: list[Row], unresolved: list[Row], manifest: Figures, labels: dict[str, tuple[str, ...]]
) -> list[Difference]:
    found = []
    seen = Counter(_target(row) for row in (*gold, *unresolved))
    for target, times in seen.items():
        if times > 1:
            found += _compared(f"records of {target}", 1, times)
    for row in gold:
        where = f"gold of {row['response_id']} {row['claim_id'] or ''} {row['dimension']}"
        where += f" of passage {row['passage']['rank']}" if row["passage"] else ""
        found += _compared(f"{where}: target_sha256", row["target_sha256"], goldfile.target_hash(row))
        consistent = _is_consistent(row, labels[row["dimension"]])
        found += _compared(f"{where}: its source agrees with its labels", True, consistent)
    reasons: dict[str, Counter[str]] = {dimension: Counter() for dimension in labels}
    for row in unresolved:
        reasons[row["dimension"]][row["reason"]] += 1
    return found + _compared(
        "unresolved", manifest["unresolved"], {name: dict(counts) for name, counts in reasons.items()}
    )


def _part_differences(gold: list[Row], split: Figures | None) -> list[Difference]:
    if split is None:
        return []
    try:
        seed, share, few_shot = split["seed"], float(split["tuning_share"]), set(split["few_shot"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{goldfile.MANIFEST}: calibration_split: {error!r}") from error
    return [
        difference
        for row in gold
        for difference in _compared(
            f"gold of {row['response_id']} {row['claim_id'] or ''} {row['dimension']}: calibration_split",
            row.get("calibration_split"),
            part_of(row["item_id"], seed=seed, tuning_share=share, few_shot=few_shot),
        )
    ]


def _target(row: Row) -> tuple[Any, ...]:
    rank = row["passage"]["rank"] if row["passage"] else None
    return row["response_id"], row["claim_id"], rank, row["dimension"]


def _is_consistent(row: Row, known: tuple[str, ...]) -> bool:
    labels = [annotation["label"] for annotation in row["annotations"]]
    if row["label"] not in known:
        return False
    if row["source"] == "adjudicated":
        return row["adjudication"] is not None
    enough = len(labels) >= 2 if row["source"] == "agreed" else len(labels) == 1
    return row["adjudication"] is None and enough and set(labels) == {row["label"]}


def _csv_differences(path: Path, gold: list[Row]) -> list[Difference]:
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file))
    except (OSError, csv.Error, UnicodeDecodeError) as error:
        raise Unreadable(f"{path.name}: {error}") from error
    found = _compared(f"{path.name}: rows", len(lines) - 1, len(gold))
    found += _compared(f"{path.name}: columns", lines[0] if lines else None, list(goldfile.FIELDS))
    for number, (cells, row) in enumerate(zip(lines[1:], gold, strict=False), 1):
        if cells != goldfile.csv_cells(row):
            found += [
                difference
                for name, cell, wanted in zip(goldfile.FIELDS, cells, goldfile.csv_cells(row), strict=False)
                for difference in _compared(f"{path.name}, record {number}: {name}", cell, wanted)
            ]
    return found


def _parquet_differences(path: Path, gold: list[Row]) -> list[Difference]:
    found: list[Difference] = []
    number = 0
    try:
        for number, cells in enumerate(goldfile.parquet_rows(path), 1):
            if number > len(gold):
                continue
            wanted = {name: goldfile.parquet_cell(gold[number - 1].get(name)) for name in goldfile.FIELDS}
            if cells != wanted:
                found += _compared(f"{path.name}, record {number}", cells, wanted)
    except (OSError, ValueError, TypeError) as error:
        raise Unreadable(f"{path.name}: {error}") from error
    return found + _compared(f"{path.name}: rows", number, len(gold))


def _card_differences(path: Path, manifest: Figures) -> list[Difference]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        wanted = card_of(manifest).splitlines()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Unreadable(f"{path.name}: {error!r}") from error
    pairs = enumerate(zip_longest(lines, wanted), 1)
    return [
        difference
        for number, (line, other) in pairs
        for difference in _compared(f"{path.name}, line {number}", line, other)
    ]


def _figure_differences(gold: list[Row], unresolved: list[Row], manifest: Figures) -> list[Difference]:
    rows = [goldfile.lean(row) for row in (*gold, *unresolved)]
    try:
        tables = goldfile.tables_of(rows, manifest["systems"], _optional(manifest))
        figures = goldfile.figures_of(tables, graded=manifest["graded"], unit=manifest["rates"]["unit"])
    except (KeyError, ValueError, TypeError) as error:
        raise Unreadable(f"the figures cannot be computed from the records: {error}") from error
    return [
        difference
        for name in FIGURES
        for difference in _compared(name, manifest[name], json.loads(json.dumps(figures[name])))
    ]
