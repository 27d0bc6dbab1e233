"""A traffic log: many lines of which a few become items. What it lacks is counted.

The log is read twice, so that only the lines that were drawn are ever held with their text.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

from evalsets.importing import tables
from evalsets.importing.cellvalues import said_text
from evalsets.importing.findings import Findings, ImportRefused, Problem, UnreadableFile
from evalsets.importing.reading import USUAL_LIMITS, Limits, raw_lines

QUESTION_NAMES = ("question", "query", "user_input", "prompt", "input", "text", "message")
ID_NAMES = ("item_id", "id", "request_id", "trace_id")
NOT_GIVEN = "(not given)"
FEW_VALUES = 30  # more different values than these are no strata

Key = tuple[str, ...]


@dataclass
class Log:
    """What was found in a log. `candidates`: line numbers by stratum; of equal questions the first."""

    question: str = ""  # the column that holds it
    strata: tuple[str, ...] = ()
    lines: int = 0  # that hold something and can be read
    blank: int = 0
    unreadable: int = 0
    without_question: int = 0
    repeated: int = 0
    without_stratum: dict[str, int] = field(default_factory=dict)
    candidates: dict[Key, list[int]] = field(default_factory=dict)
    columns: dict[str, int] = field(default_factory=dict)  # column -> different values, where few enough
    problems: list[Problem] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    @property
    def usable(self) -> int:
        return sum(len(lines) for lines in self.candidates.values())


def read_log(
    stream: BinaryIO,
    filename: str,
    *,
    question: str = "",
    strata: Sequence[str] = (),
    limits: Limits = USUAL_LIMITS,
) -> Log:
    """Count and group the lines of a log.

    Parameters
    ----------
    stream : binary file
        JSON Lines, CSV or whatever else `tables` reads.
    filename : str
        Tells the kinds apart where the content does not.
    question : str
        The column of the question; empty: the first usual name that the first line has.
    strata : sequence of str
        The columns to balance over; a key inside an object is named ``outer.inner``.
    limits : Limits
        How much may be unpacked.

    Returns
    -------
    Log
        A line that cannot be read is counted, and does not refuse the rest.

    Raises
    ------
    ImportRefused
        No line can be read, or a column that was asked for is nowhere.
    """
    log = Log(question=question, strata=tuple(strata))
    seen: set[bytes] = set()
    values: dict[str, set[str]] = {}
    findings = Findings()
    for line, cells in _lines(stream, filename, findings, limits):
        log.lines += 1
        if not log.question:
            log.question = next((name for name in QUESTION_NAMES if name in cells), "")
        _note_values(values, cells)
        text = cells.get(log.question, "").strip()
        if not text:
            log.without_question += 1
            continue
        digest = hashlib.sha256(" ".join(text.casefold().split()).encode()).digest()
        if digest in seen:
            log.repeated += 1
            continue
        seen.add(digest)
        log.candidates.setdefault(_key(log, cells), []).append(line)
    log.unreadable, log.problems, log.notices = findings.count, findings.problems, findings.notices
    log.blank = _blank_lines(stream, filename, limits) if log.lines else 0
    log.columns = {name: len(found) for name, found in values.items() if 1 < len(found) <= FEW_VALUES}
    log.candidates = dict(sorted(log.candidates.items()))
    _refuse(log, values)
    return log


def _blank_lines(stream: BinaryIO, filename: str, limits: Limits) -> int:
    """Of JSON Lines; the other readers say in a notice what they skip."""
    if tables.kind_of(stream, filename, limits) != tables.JSONL:
        return 0
    return sum(not line.content.strip() for line in raw_lines(stream, limits))


def _lines(
    stream: BinaryIO, filename: str, findings: Findings, limits: Limits
) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        for row in tables.rows(stream, filename, findings, known=QUESTION_NAMES, limits=limits):
            yield row.line, _flat(row.fields)
    except UnreadableFile as error:
        findings.add(error.problem)


def _flat(fields: Mapping[str, object]) -> dict[str, str]:
    """Single values as text, those of an object under ``outer.inner``; lists and empty values are left."""
    cells: dict[str, str] = {}
    for name, value in fields.items():
        inner = value.items() if isinstance(value, dict) else [("", value)]
        for key, part in inner:
            if (text := said_text(part)) is not None and text.strip():
                cells[f"{name}.{key}" if key else name] = text
    return cells


def _note_values(values: dict[str, set[str]], cells: Mapping[str, str]) -> None:
    for name, text in cells.items():
        found = values.setdefault(name, set())
        if len(found) <= FEW_VALUES:
            found.add(text[:200])


def _key(log: Log, cells: Mapping[str, str]) -> Key:
    for name in log.strata:
        if name not in cells:
            log.without_stratum[name] = log.without_stratum.get(name, 0) + 1
    return tuple(cells.get(name, NOT_GIVEN) for name in log.strata)


def _refuse(log: Log, values: Mapping[str, set[str]]) -> None:
    there = ", ".join(sorted(values)[:20])
    if not log.lines:
        raise ImportRefused(log.problems or [Problem(None, "", "no line of it can be read")])
    if not log.question or log.question not in values:
        message = f"no line has the question's column; the columns are: {there}"
        raise ImportRefused([Problem(None, log.question or "question", message)])
    for name in log.strata:
        if name not in values:
            raise ImportRefused([Problem(None, name, f"no line has this column; there are: {there}")])
        if len(values[name]) > FEW_VALUES:
            message = f"more than {FEW_VALUES} different values: that is no stratum"
            raise ImportRefused([Problem(None, name, message)])
    if not log.usable:
        raise ImportRefused([Problem(None, log.question, "no line has a question in it")])


def items_of(
    stream: BinaryIO, filename: str, log: Log, drawn: Collection[int], *, limits: Limits = USUAL_LIMITS
) -> bytes:
    """The drawn lines as items of the native file; everything else of a line stays in the log."""
    wanted, names = frozenset(drawn), _stratum_names(log.strata)
    made: list[bytes] = []
    taken: set[str] = set()
    for line, cells in _lines(stream, filename, Findings(), limits):
        if line not in wanted:
            continue
        identifier = next((cells[key] for key in ID_NAMES if key in cells), "")
        if not identifier or identifier in taken:
            identifier = f"line-{line}"
        taken.add(identifier)
        item = {
            "id": identifier,
            "question": cells[log.question],
            "strata": {name: cells.get(column, NOT_GIVEN) for column, name in names.items()},
            "source_ref": {"log": filename, "line": line},
        }
        made.append(json.dumps(item, ensure_ascii=False).encode() + b"\n")
    return b"".join(made)


def _stratum_names(columns: Sequence[str]) -> dict[str, str]:
    """Of each column the name of its stratum: the last part, or all of it where two end alike."""
    short = [column.rpartition(".")[2] for column in columns]
    return {
        column: name if short.count(name) == 1 else column
        for column, name in zip(columns, short, strict=True)
    }
