"""Files to records, without Django: bytes in, checked records and line-numbered findings out."""

from collections.abc import Iterator
from typing import BinaryIO

from evalsets.importing import csvfile, jsonl
from evalsets.importing.findings import Findings, ImportRefused, Problem, UnreadableFile
from evalsets.importing.labelfile import label_records
from evalsets.importing.ledger import Frozen, checked
from evalsets.importing.mapped import mapped_labels, mapped_rows
from evalsets.importing.mapping import ColumnMap
from evalsets.importing.plain import rows_or_records
from evalsets.importing.reading import USUAL_LIMITS, Limits, first_character
from evalsets.importing.records import LabelRecord, LineRecord
from evalsets.importing.validate import KNOWN_FIELDS

__all__ = [
    "ColumnMap",
    "Findings",
    "Frozen",
    "ImportRefused",
    "Limits",
    "Problem",
    "read_labels",
    "read_records",
]

_JSON_ENDINGS = (".jsonl", ".ndjson", ".json")


def read_records(
    stream: BinaryIO,
    filename: str,
    findings: Findings,
    *,
    limits: Limits = USUAL_LIMITS,
    frozen: Frozen | None = None,
    mapping: ColumnMap | None = None,
) -> Iterator[tuple[LineRecord, bool]]:
    """The good lines of an eval set file or, where `frozen` is given, of a file of responses.

    Parameters
    ----------
    stream : binary file
        Seekable; JSON Lines or CSV, plain or gzipped (both found by content).
    filename : str
        Tells CSV from JSON Lines where the content does not.
    findings : Findings
        After the last record it says whether the file is refused (`raise_if_refused`).
    limits : Limits
        How much may be unpacked.
    frozen : Frozen, optional
        The items and response ids of the version that the responses go to.
    mapping : ColumnMap, optional
        How to read a file in another shape; without it the file is a native one.

    Yields
    ------
    (LineRecord, bool)
        The record, and whether it brings an item that was not there before. Lines with problems are left out.
    """
    rows: Iterator[jsonl.Row | LineRecord]
    try:
        if mapping is not None:
            known = frozen is not None
            rows = mapped_rows(stream, filename, findings, mapping, items_known=known, limits=limits)
        elif _is_csv(stream, filename, limits):
            rows = _refuse_other_columns(csvfile.rows(stream, findings, KNOWN_FIELDS, limits), frozen)
        else:
            rows = rows_or_records(stream, findings, limits, items_known=frozen is not None)
        yield from checked(rows, findings, frozen)
    except UnreadableFile as error:
        findings.add(error.problem)


def read_labels(
    stream: BinaryIO,
    filename: str,
    findings: Findings,
    *,
    dimension: str | None = None,
    limits: Limits = USUAL_LIMITS,
    mapping: ColumnMap | None = None,
) -> Iterator[LabelRecord]:
    """The labels of a label file; parameters as `read_records` and `label_records`."""
    try:
        if mapping is not None:
            yield from mapped_labels(stream, filename, findings, mapping, limits=limits)
            return
        is_csv = _is_csv(stream, filename, limits)
        yield from label_records(stream, findings, is_csv=is_csv, dimension=dimension, limits=limits)
    except UnreadableFile as error:
        findings.add(error.problem)


def _is_csv(stream: BinaryIO, filename: str, limits: Limits) -> bool:
    name = filename.lower().removesuffix(".gz")
    return not name.endswith(_JSON_ENDINGS) and first_character(stream, limits) not in ("{", "[")


def _refuse_other_columns(rows: Iterator[jsonl.Row], frozen: Frozen | None) -> Iterator[jsonl.Row]:
    first = True
    for row in rows:
        if first and ("id" not in row.fields or (frozen is None and "question" not in row.fields)):
            raise UnreadableFile.at(
                1,
                "the columns are not those of an eval set: id, question and response are expected, found "
                + ", ".join(row.fields),
            )
        first = False
        yield row
