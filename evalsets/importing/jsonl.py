"""JSON Lines: one object a line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from evalsets.importing.findings import Findings, UnreadableFile, type_name
from evalsets.importing.reading import USUAL_LIMITS, Limits, RawLine, decode, raw_lines
from evalsets.importing.strictjson import PASSAGE_TEXT, NotStrictJSON, parse

NOT_LINES = "one JSON object per line is expected (JSON Lines), but the file is one large {what}"


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of one line as they stood there; `size` is the length of the line in bytes."""

    line: int
    size: int
    fields: dict


def rows(stream: BinaryIO, findings: Findings, limits: Limits = USUAL_LIMITS) -> Iterator[Row]:
    """The objects of a JSON Lines file.

    Parameters
    ----------
    stream : binary file
        Plain or gzipped.
    findings : Findings
        Gets a problem for every line that is no object; reading goes on after it.
    limits : Limits
        See `evalsets.importing.reading`.

    Yields
    ------
    Row
        Blank lines are skipped and still counted.

    Raises
    ------
    UnreadableFile
        Nothing after this point can be read.
    """
    reader = RowReader(findings)
    for line in raw_lines(stream, limits):
        if row := reader.row_of(line):
            yield row


@dataclass
class RowReader:
    """Reads one line after the other; `rows` says what comes of them."""

    findings: Findings
    is_at_start: bool = True

    def row_of(self, line: RawLine) -> Row | None:
        content = line.content.strip()
        if not content:
            return None
        at_start, self.is_at_start = self.is_at_start, False
        if at_start:
            _refuse_one_large_value(line.number, content)
        try:
            value = parse(decode(line), nul_allowed=PASSAGE_TEXT)
        except UnreadableFile as error:
            self.findings.add(error.problem)
            return None
        except NotStrictJSON as error:
            self.findings.problem(line.number, error.where, str(error), error.value)
            return None
        if at_start:
            _refuse_list_of_objects(line.number, value)
        if isinstance(value, dict):
            return Row(line.number, len(line.content), value)
        message = f"an object is expected, this line is {type_name(value)}"
        self.findings.problem(line.number, "", message, value)
        return None


def _refuse_one_large_value(number: int, content: bytes) -> None:
    if content in (b"[", b"{", b"[{"):
        what = "object over several lines" if content == b"{" else "array"
        raise UnreadableFile.at(number, NOT_LINES.format(what=what), content.decode())


def _refuse_list_of_objects(number: int, value: object) -> None:
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        raise UnreadableFile.at(number, NOT_LINES.format(what="array"), value)
