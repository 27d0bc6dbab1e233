"""Recompute every figure of a gold export from its files alone: no database, no server, no trust.

What is compared: the hash of every file and of the manifest itself; each record's own consistency; the CSV
and Parquet files against the JSON lines; the card against the manifest; and every count, agreement figure and
rate. What the manifest quotes from frozen
reports (the judges' gates) rests on verdicts that are no part of a gold set: it is covered by the manifest's
hash and listed under `quoted`.
"""

import csv
import io
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from calibration import goldfile
from calibration.gold_lines import (
    CSV_HEADER,
    FIELDS,
    UNRESOLVED_FIELDS,
    Columns,
    ParquetFile,
    ParquetRows,
    Record,
    Row,
    by_field,
    columns_of,
    csv_of,
    records_of,
)
from calibration.goldcard import card_of
from calibration.measures import Figures
from calibration.partition import part_of
from evalsets.labels import LABELS

TOLERANCE = 1e-12
FIGURES = ("counts", "agreement", "rates")
SHOWN = 100  # differences that are listed one by one
AT_ONCE = ParquetFile.BATCH  # records in memory at a time

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
    records = _Records(manifest)
    records.compare(folder)
    found += records.differences()
    if goldfile.CARD in manifest["files"]:
        found += _card_differences(folder / goldfile.CARD, manifest)
    found += _figure_differences(records.gathered, manifest)
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


def _rows(path: Path, fields: tuple[str, ...], labels: dict[str, tuple[str, ...]]) -> Iterator[Record]:
    number, wanted = 0, set(fields)
    try:
        for number, record in enumerate(records_of(path), 1):
            if not wanted <= record.row.keys() or record.row["dimension"] not in labels:
                missing = [name for name in fields if name not in record.row]
                raise Unreadable(f"{path.name}, line {number}: {', '.join(missing) or 'unknown dimension'}")
            yield record
    except (OSError, ValueError, TypeError) as error:
        raise Unreadable(f"{path.name}, line {number + 1}: {error}") from error


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


class _Records:
    """Every record compared with itself and with its row in the other files, one at a time."""

    def __init__(self, manifest: Figures) -> None:
        self.manifest, self.labels = manifest, _labels(manifest)
        self.gathered = goldfile.Gathered(manifest["systems"], _optional(manifest))
        self.part = _part_of(manifest.get("calibration_split"))
        self.seen: Counter[tuple[Any, ...]] = Counter()
        self.reasons: dict[str, Counter[str]] = {dimension: Counter() for dimension in self.labels}
        self.of_records: list[Difference] = []
        self.of_parts: list[Difference] = []
        self.beside: list[_Csv | _Parquet] = []

    def compare(self, folder: Path) -> None:
        gold = _rows(folder / goldfile.GOLD, goldfile.REQUIRED_FIELDS, self.labels)
        with ExitStack() as files:
            self.beside.append(_Csv(files, folder / goldfile.CSV))
            if goldfile.PARQUET in self.manifest["files"]:
                self.beside.append(_Parquet(folder / goldfile.PARQUET))
            while records := list(islice(gold, AT_ONCE)):
                self._gather(records)
                for record in records:
                    self._check(record)
                written = [Columns(record.shared, record.own_cells) for record in records]
                for other in self.beside:
                    other.compare(written)
            for other in self.beside:
                other.close()
        unresolved = _rows(folder / goldfile.UNRESOLVED, UNRESOLVED_FIELDS, self.labels)
        while records := list(islice(unresolved, AT_ONCE)):
            self._gather(records)
            for record in records:
                self.reasons[record.row["dimension"]][record.row["reason"]] += 1

    def differences(self) -> list[Difference]:
        twice = [(target, times) for target, times in self.seen.items() if times > 1]
        unresolved = {name: dict(counts) for name, counts in self.reasons.items()}
        return [
            *(found for target, times in twice for found in _compared(f"records of {target}", 1, times)),
            *self.of_records,
            *_compared("unresolved", self.manifest["unresolved"], unresolved),
            *self.of_parts,
            *(found for other in self.beside for found in other.differences()),
        ]

    def _gather(self, records: list[Record]) -> None:
        with _figures_possible():
            for record in records:
                self.seen[_target(record.row)] += 1
                self.gathered.add(record)

    def _check(self, record: Record) -> None:
        row = record.row
        hashed = record.shared.target_hash(row["claim"], row["passage"])
        if hashed != row["target_sha256"]:
            where = _name(row) + _of_passage(row)
            self.of_records += _compared(f"{where}: target_sha256", row["target_sha256"], hashed)
        if not _is_consistent(row, self.labels[row["dimension"]]):
            where = _name(row) + _of_passage(row)
            self.of_records += _compared(f"{where}: its source agrees with its labels", True, False)
        if self.part and (part := self.part(row["item_id"])) != row.get("calibration_split"):
            where = f"{_name(row)}: calibration_split"
            self.of_parts += _compared(where, row.get("calibration_split"), part)


def _name(row: Row) -> str:
    return f"gold of {row['response_id']} {row['claim_id'] or ''} {row['dimension']}"


def _of_passage(row: Row) -> str:
    return f" of passage {row['passage']['rank']}" if row["passage"] else ""


def _part_of(split: Figures | None) -> Callable[[str], str] | None:
    if split is None:
        return None
    try:
        seed, share, few_shot = split["seed"], float(split["tuning_share"]), set(split["few_shot"])
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"{goldfile.MANIFEST}: calibration_split: {error!r}") from error
    return lru_cache(maxsize=1)(partial(part_of, seed=seed, tuning_share=share, few_shot=few_shot))


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


class _Csv:
    """The lines of the CSV file beside the records: bytes as they would be written are not taken apart."""

    def __init__(self, files: ExitStack, path: Path) -> None:
        csv.field_size_limit(sys.maxsize)
        self.name, self.records, self.lines = path.name, 0, 0
        self.of_cells: list[Difference] = []
        self.reader: Iterator[list[str]] | None = None
        self.header: list[str] | None = list(FIELDS)
        try:
            self.file = files.enter_context(path.open("rb"))
        except OSError as error:
            raise Unreadable(f"{path.name}: {error}") from error
        if not self._is_next(CSV_HEADER):
            self.header = self._next()

    def _is_next(self, text: str) -> bool:
        """Whether the file goes on with exactly this, and has been as expected so far."""
        if self.reader is not None:
            return False
        wanted = text.encode("utf-8", "surrogatepass")
        try:
            here = self.file.tell()
            if self.file.read(len(wanted)) == wanted:
                return True
            self.file.seek(here)
        except OSError as error:
            raise Unreadable(f"{self.name}: {error}") from error
        return False

    def _next(self) -> list[str] | None:
        if self.reader is None:
            self.reader = csv.reader(io.TextIOWrapper(self.file, encoding="utf-8", newline=""))
        try:
            return next(self.reader, None)
        except (OSError, csv.Error, UnicodeDecodeError) as error:
            raise Unreadable(f"{self.name}: {error}") from error

    def compare(self, records: list[Columns]) -> None:
        if self._is_next("".join(shared.sheet_line(own) for shared, own in records)):
            self.records += len(records)
            self.lines += len(records)
        else:
            self._compare_cells(records)

    def _compare_cells(self, records: list[Columns]) -> None:
        for wanted in map(csv_of, records):
            self.records += 1
            cells = self._next()
            if cells is None:
                continue
            self.lines += 1
            if cells != wanted:
                where = f"{self.name}, record {self.records}"
                self.of_cells += _compared(f"{where}: cells", len(cells), len(wanted))
                for name, cell, its in zip(FIELDS, cells, wanted, strict=False):
                    self.of_cells += _compared(f"{where}: {name}", cell, its)

    def close(self) -> None:
        while self._next() is not None:
            self.lines += 1

    def differences(self) -> list[Difference]:
        lines = -1 if self.header is None else self.lines
        return [
            *_compared(f"{self.name}: rows", lines, self.records),
            *_compared(f"{self.name}: columns", self.header, list(FIELDS)),
            *self.of_cells,
        ]


class _Parquet:
    """The rows of the Parquet file beside the records."""

    def __init__(self, path: Path) -> None:
        self.name, self.records, self.rows = path.name, 0, 0
        self.of_rows: list[Difference] = []
        with self._readable():
            self.parquet = ParquetRows(path)

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, TypeError) as error:
            raise Unreadable(f"{self.name}: {error}") from error

    def compare(self, records: list[Columns]) -> None:
        with self._readable():
            found = self.parquet.take(len(records))
            if not found.equals(columns_of(records)):
                for number, (row, its) in enumerate(
                    zip(found.to_pylist(), map(by_field, records), strict=False), self.records + 1
                ):
                    if row != its:
                        self.of_rows += _compared(f"{self.name}, record {number}", row, its)
        self.records += len(records)
        self.rows += len(found)

    def close(self) -> None:
        with self._readable():
            while more := len(self.parquet.take(AT_ONCE)):
                self.rows += more

    def differences(self) -> list[Difference]:
        return [*self.of_rows, *_compared(f"{self.name}: rows", self.rows, self.records)]


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


@contextmanager
def _figures_possible() -> Iterator[None]:
    try:
        yield
    except (KeyError, ValueError, TypeError) as error:
        raise Unreadable(f"the figures cannot be computed from the records: {error}") from error


def _figure_differences(gathered: goldfile.Gathered, manifest: Figures) -> list[Difference]:
    with _figures_possible():
        figures = goldfile.figures_of(
            gathered.tables(), graded=manifest["graded"], unit=manifest["rates"]["unit"]
        )
    return [
        difference
        for name in FIGURES
        for difference in _compared(name, manifest[name], json.loads(json.dumps(figures[name])))
    ]
