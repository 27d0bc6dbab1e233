"""Workbooks (.xlsx): the first sheet that has anything in it, one row at a time."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from evalsets.importing.csvfile import distinct_names
from evalsets.importing.findings import Findings, UnreadableFile, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import USUAL_LIMITS, Limits, megabytes

LONGEST_CELL = 32_767


def rows(stream: BinaryIO, findings: Findings, limits: Limits = USUAL_LIMITS) -> Iterator[Row]:
    """The rows under the header of a workbook's first sheet with content.

    Parameters
    ----------
    stream : binary file
        Seekable.
    findings : Findings
        Gets a problem for every row with cells outside the header, and notices for sheets that were left out.
    limits : Limits
        `total` bounds what is unpacked.

    Yields
    ------
    Row
        `line` is the row of the sheet. Cells are text, numbers or true and false; an empty one is empty text.
        Formulas stand for the value that was last computed for them.

    Raises
    ------
    UnreadableFile
        Not a workbook, damaged, larger than the limit, or no rows.
    """
    from openpyxl import load_workbook

    _refuse_large(stream, limits)
    try:
        book = load_workbook(stream, read_only=True, data_only=True)
        sheets = [sheet for sheet in book.worksheets if any(any(_filled(row)) for row in _cells(sheet))]
        if not sheets:
            raise UnreadableFile.at(None, "no rows: no sheet of the workbook has anything in it")
        for other in sheets[1:]:
            findings.notice(f'The sheet "{shown(other.title)}" was left out: only the first one is read.')
        yield from _rows_of(sheets[0], findings)
    except UnreadableFile:
        raise
    except Exception as error:  # a damaged workbook fails anywhere in the library, in many ways
        raise UnreadableFile.at(None, f"not a workbook that can be read: {shown(str(error))}") from None


def _refuse_large(stream: BinaryIO, limits: Limits) -> None:
    stream.seek(0)
    try:
        with ZipFile(stream) as archive:
            unpacked = sum(part.file_size for part in archive.infolist())
    except (BadZipFile, OSError, ValueError) as error:
        raise UnreadableFile.at(None, f"not a workbook that can be read: {error}") from None
    if unpacked > limits.total:
        raise UnreadableFile.at(
            None, f"the workbook has more than {megabytes(limits.total)} unpacked, which is the limit"
        )
    stream.seek(0)


def _cells(sheet: Any) -> Iterator[tuple[Any, ...]]:
    sheet.reset_dimensions()  # what a file says about its own size need not be true
    yield from sheet.iter_rows(values_only=True)


def _filled(row: tuple[Any, ...]) -> Iterator[bool]:
    return (cell not in (None, "") for cell in row)


def _rows_of(sheet: Any, findings: Findings) -> Iterator[Row]:
    header: list[str] | None = None
    found = skipped = 0
    for number, row in enumerate(_cells(sheet), 1):
        if not any(_filled(row)):
            skipped += header is not None
            continue
        if header is None:
            header = _header(row, findings)
            continue
        found += 1
        cells = [_value(cell) for cell in row]
        if any(isinstance(cell, str) and len(cell) >= LONGEST_CELL for cell in cells):
            findings.notice(
                f"A cell has {LONGEST_CELL:,} characters, the most that a workbook can hold: its text was "
                "probably cut when the workbook was written.",
                number,
            )
        if any(cell != "" for cell in cells[len(header) :]):
            findings.problem(number, "", f"has cells beyond the {len(header)} columns of the header", cells)
            continue
        cells = (cells + [""] * len(header))[: len(header)]
        yield Row(number, sum(len(str(cell)) for cell in cells), dict(zip(header, cells, strict=True)))
    if skipped:
        findings.notice(f"{skipped} rows without any content were skipped.")
    if not found:
        raise UnreadableFile.at(None, "no rows: there is a header and nothing under it")


def _header(row: tuple[Any, ...], findings: Findings) -> list[str]:
    width = max(index for index, filled in enumerate(_filled(row), 1) if filled)
    return distinct_names((str(_value(cell)) for cell in row[:width]), findings)


def _value(cell: Any) -> object:
    if cell is None:
        return ""
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    return cell
