"""Any file that holds records, whatever it is written in: found by its content, read a record at a time."""

from collections.abc import Iterator, Sequence
from typing import BinaryIO

from evalsets.importing import csvfile, jsondoc, jsonl, parquet, workbook
from evalsets.importing.findings import Findings, UnreadableFile
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import USUAL_LIMITS, Limits, decode, raw_lines
from evalsets.importing.shapes import SHAPES
from evalsets.importing.strictjson import NotStrictJSON, parse

JSONL, JSON, CSV, PARQUET, XLSX = "JSON Lines", "JSON", "CSV", "Parquet", "Excel workbook"
_NOT_READ = (".yaml", ".yml", ".html", ".htm", ".xml")
_ALL_LISTS = tuple(path for shape in SHAPES.values() for path in shape.lists)
_ALL_BESIDE = tuple(path for shape in SHAPES.values() for path in shape.beside)


def kind_of(stream: BinaryIO, filename: str, limits: Limits = USUAL_LIMITS) -> str:
    """What a file is written in: `JSONL`, `JSON`, `CSV`, `PARQUET` or `XLSX`.

    Raises
    ------
    UnreadableFile
        Empty, damaged or in another encoding.
    """
    stream.seek(0)
    start = stream.read(4)
    stream.seek(0)
    if start == b"PAR1":
        return PARQUET
    if start == b"PK\x03\x04":
        return XLSX
    named = filename.lower().removesuffix(".gz")
    if named.endswith(_NOT_READ):
        raise UnreadableFile.at(
            None, "YAML, HTML and XML are not read: write JSON, JSON Lines, CSV or Parquet"
        )
    filled = (line for line in raw_lines(stream, limits) if line.content.strip())
    first = next(filled, None)
    if first is None or first.content.strip()[:1] not in (b"{", b"["):
        return JSONL if named.endswith((".jsonl", ".ndjson")) else CSV
    if first.content.strip()[:1] == b"[":
        return JSON
    try:
        value = parse(decode(first))
    except (NotStrictJSON, UnreadableFile):
        return JSON if jsondoc.has_list(stream, _ALL_LISTS, limits) else JSONL
    is_alone = next(filled, None) is None
    return JSON if is_alone and isinstance(value, dict) and _has_list(value) else JSONL


def _has_list(document: dict) -> bool:
    for path in _ALL_LISTS:
        value: object = document
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, list):
            return True
    return False


def rows(
    stream: BinaryIO,
    filename: str,
    findings: Findings,
    *,
    known: Sequence[str] = (),
    limits: Limits = USUAL_LIMITS,
) -> Iterator[Row]:
    """The records of a file as they stand there; `known` are column names that tell a CSV's separator.

    Raises
    ------
    UnreadableFile
        See the readers of each format.
    """
    kind = kind_of(stream, filename, limits)
    if kind == PARQUET:
        return parquet.rows(stream, findings, limits)
    if kind == XLSX:
        return workbook.rows(stream, findings, limits)
    if kind == JSON:
        return jsondoc.rows(stream, findings, _ALL_LISTS, limits, beside=_ALL_BESIDE)
    if kind == JSONL:
        return jsonl.rows(stream, findings, limits)
    return csvfile.cells(stream, findings, known, limits, nameless=True)
