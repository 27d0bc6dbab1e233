"""CSV with the same column names as the JSON Lines fields."""

import csv
from collections.abc import Iterable, Iterator
from itertools import count
from typing import BinaryIO

from evalsets.importing.findings import Findings, UnreadableFile, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import MAX_LINE, USUAL_LIMITS, Limits, decode, raw_lines
from evalsets.importing.strictjson import PASSAGE_TEXT, NotStrictJSON, parse

DELIMITERS = (",", ";", "\t")
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}

# The module's own limit is 131,072 characters a cell, less than one long response.
csv.field_size_limit(MAX_LINE)


class _Lines:
    """Feeds the CSV parser, and keeps one row (which may span many lines) within the limit."""

    def __init__(self, stream: BinaryIO, limits: Limits):
        self.limits = limits
        self.row_size = 0
        self.last_line = 0
        self._lines = raw_lines(stream, limits)

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            self.last_line = line.number
            self.row_size += len(line.content) + 1
            if self.row_size > self.limits.line:
                raise UnreadableFile.at(
                    line.number, "one row is larger than a line may be; is a closing quote missing?"
                )
            if b"\0" in line.content:
                raise UnreadableFile.at(line.number, "holds a NUL character, which cannot be stored")
            yield decode(line) + "\n"


def cells(
    stream: BinaryIO,
    findings: Findings,
    known: Iterable[str],
    limits: Limits = USUAL_LIMITS,
    *,
    nameless: bool = False,
) -> Iterator[Row]:
    """The rows of a CSV file as text cells by column name.

    Parameters
    ----------
    stream : binary file
        Plain or gzipped. The separator (comma, semicolon or tab) is the one that finds most `known` columns.
    findings : Findings
        Gets a problem for each row whose number of cells differs from the header's.
    known : iterable of str
        The column names looked for; of separators that find as many, the one with more columns counts.
    limits : Limits
        One row counts as one line.
    nameless : bool
        Call a column without a name by its number, and count those of one name, instead of refusing them
        (tables that others wrote, some with their index).

    Yields
    ------
    Row
        `line` is the physical line on which the row begins.

    Raises
    ------
    UnreadableFile
        Bad encoding, a quote that is never closed, a header with an empty or repeated name, or no rows.
    """
    lines = _Lines(stream, limits)
    feed = iter(lines)
    header_line = next((text for text in feed if text.strip()), None)
    if header_line is None:
        raise UnreadableFile.at(None, "no rows: the file holds nothing but blank lines")
    before = lines.last_line - 1
    delimiter = _delimiter_of(header_line, set(known))
    if delimiter != ",":
        findings.notice(f"The columns are separated by {_NAMES[delimiter]}.")
    reader = csv.reader(_chain(header_line, feed), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    blank_rows = found = 0
    while True:
        start = before + reader.line_num + 1
        lines.row_size = 0
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raise UnreadableFile.at(start, f"not CSV: {error} (is a quote missing or not doubled?)") from None
        if header is None:
            header = distinct_names(row, findings) if nameless else _checked_header(row, start)
        elif not any(row):
            blank_rows += bool(row)
        elif len(row) != len(header):
            found += 1
            findings.problem(start, "", f"{len(row)} cells, but the header has {len(header)} columns", row)
        else:
            found += 1
            yield Row(start, lines.row_size, dict(zip(header, row, strict=True)))
    if blank_rows:
        findings.notice(f"{blank_rows} rows without any content were skipped.")
    if not found:
        raise UnreadableFile.at(None, "no rows: there is a header and nothing under it")


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _delimiter_of(header: str, known: set[str]) -> str:
    def columns_found(delimiter: str) -> tuple[int, int]:
        names = {name.strip().strip('"') for name in header.split(delimiter)}
        return len(names & known), len(names)

    return max(DELIMITERS, key=columns_found)


def distinct_names(row: Iterable[str], findings: Findings) -> list[str]:
    """A name for each column: its number where it has none, and a count where an earlier one has the same."""
    names: list[str] = []
    renamed: list[str] = []
    for number, given in enumerate(row, 1):
        name = given.strip() or f"column {number}"
        if name in names:
            name = next(f"{name} ({n})" for n in count(2) if f"{name} ({n})" not in names)
            renamed.append(name)
        names.append(name)
    if renamed:
        findings.notice(
            f"{len(renamed)} columns have the name of an earlier one; here they are: {_few(renamed)}."
        )
    return names


def _few(names: list[str]) -> str:
    return ", ".join(f'"{shown(name)}"' for name in names[:3]) + (" and so on" if len(names) > 3 else "")


def _checked_header(row: list[str], line: int) -> list[str]:
    header = [name.strip() for name in row]
    for name in header:
        if not name:
            raise UnreadableFile.at(line, "a column has no name", row)
        if header.count(name) > 1:
            raise UnreadableFile.at(line, f"two columns are called {name!r}", row)
    return header


_AS_JSON = {
    "claims",
    "system",
    "strata",
    "expected_documents",
    "expected_passages",
    "response_labels",
    "response_judge_labels",
    "item_extra",
}
_ANY = {"original", "meta"}
_KEPT_EMPTY = {"response", "id"}
_TRUTH = {"true": True, "false": False, "null": None}


def rows(
    stream: BinaryIO, findings: Findings, known: Iterable[str], limits: Limits = USUAL_LIMITS
) -> Iterator[Row]:
    """The rows of an eval set in CSV, with the types of the JSON Lines fields.

    An empty cell is an absent field, except in the column `response`, where it is an empty response. The
    columns context, claims, system, strata, expected_documents, expected_passages and the label columns hold
    JSON; original and meta hold JSON where the cell begins like JSON, else text.

    Parameters, errors and what is yielded: as `cells`. A cell that cannot be read is a problem with line and
    column, and its row is left out.
    """
    yield from typed(cells(stream, findings, known, limits), findings)


def typed(rows: Iterable[Row], findings: Findings) -> Iterator[Row]:
    """Rows of cells with the types of the JSON Lines fields; see `rows`."""
    for row in rows:
        fields: dict[str, object] = {}
        readable = True
        for column, cell in row.fields.items():
            if cell == "" and column not in _KEPT_EMPTY:
                continue
            try:
                fields[column] = _value(column, cell) if isinstance(cell, str) else cell
            except NotStrictJSON as error:
                readable = False
                where = f"{column}: {error.where}" if error.where else column
                findings.problem(row.line, where, str(error), cell)
        if readable:
            if "question" in row.fields:
                fields.setdefault("question", None)
            yield Row(row.line, row.size, fields)


def _value(column: str, cell: str) -> object:
    if column == "context":
        return parse(cell, nul_allowed=PASSAGE_TEXT)
    if column in _AS_JSON or (column in _ANY and cell[:1] in '{["'):
        return parse(cell)
    if column == "answerable":
        if cell.strip().lower() not in _TRUTH:
            raise NotStrictJSON("true, false or nothing is expected")
        return _TRUTH[cell.strip().lower()]
    if column in ("sample", "run"):
        if not (cell.isascii() and cell.isdigit() and len(cell) < 10):
            raise NotStrictJSON("a whole number is expected")
        return int(cell)
    return cell
