"""One JSON document that holds a list of records: each record with the line on which it begins."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import BinaryIO

from evalsets.importing.findings import Findings, UnreadableFile, type_name
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import MEGABYTE, USUAL_LIMITS, Limits, decode, raw_lines
from evalsets.importing.strictjson import PASSAGE_TEXT, NotStrictJSON, parse

# A document is read whole, several times its size in memory; JSON Lines has no such limit.
LARGEST_DOCUMENT = 100 * MEGABYTE
_SPACE = " \t\r\n"
_decoder = JSONDecoder()


def rows(
    stream: BinaryIO,
    findings: Findings,
    paths: Sequence[tuple[str, ...]] = (),
    limits: Limits = USUAL_LIMITS,
    *,
    beside: Sequence[tuple[str, ...]] = (),
) -> Iterator[Row]:
    """The objects of a JSON array, or of the first list that is found under one of the paths.

    Parameters
    ----------
    stream : binary file
        Plain or gzipped.
    findings : Findings
        Gets a problem for every element that is no object; reading goes on after it.
    paths : sequence of tuple of str
        Keys from the outside in, tried in this order; an array needs none.
    limits : Limits
        See `evalsets.importing.reading`; the document may have 100 MB.
    beside : sequence of tuple of str
        Lists that are left out: a notice counts what they hold.

    Yields
    ------
    Row
        `line` is the physical line on which the element begins.

    Raises
    ------
    UnreadableFile
        Not one JSON document, or no list of records in it.
    """
    text, starts = _whole(stream, limits)
    try:
        at = _list_under(text, paths)
        _tell_left_out(text, beside, findings)
        for begin, end in _elements(text, at):
            number = bisect_right(starts, begin)
            try:
                value = parse(text[begin:end], nul_allowed=PASSAGE_TEXT)
            except NotStrictJSON as error:
                findings.problem(number, error.where, str(error), error.value)
                continue
            if isinstance(value, dict):
                yield Row(number, end - begin, value)
            else:
                findings.problem(number, "", f"an object is expected, this is {type_name(value)}", value)
    except JSONDecodeError as error:
        raise UnreadableFile.at(
            error.lineno, f"not JSON: {error.msg} (column {error.colno})", text[error.pos : error.pos + 80]
        ) from None
    except RecursionError:
        raise UnreadableFile.at(None, "not JSON that can be read: nested too deep") from None


def has_list(stream: BinaryIO, paths: Sequence[tuple[str, ...]], limits: Limits = USUAL_LIMITS) -> bool:
    """Whether the file is one JSON object with a list under one of the paths."""
    try:
        _list_under(_whole(stream, limits)[0], paths)
    except (JSONDecodeError, RecursionError, UnreadableFile):
        return False
    return True


def _whole(stream: BinaryIO, limits: Limits) -> tuple[str, list[int]]:
    """The text, and where each of its lines begins."""
    lines, starts, length = [], [], 0
    bound = Limits(min(limits.total, LARGEST_DOCUMENT), min(limits.total, LARGEST_DOCUMENT))
    for line in raw_lines(stream, bound):
        lines.append(decode(line) + "\n")
        starts.append(length)
        length += len(lines[-1])
    return "".join(lines), starts


def _list_under(text: str, paths: Sequence[tuple[str, ...]]) -> int:
    start = _skip(text, 0)
    if text[start : start + 1] == "[":
        return start
    for path in paths:
        at = _list_at(text, start, path)
        if at is not None:
            return at
    keys = ", ".join(".".join(path) for path in paths) or "none"
    raise UnreadableFile.at(
        1, f"one JSON object, in which no list of records is known here (looked for: {keys})", text[:80]
    )


def _list_at(text: str, start: int, path: tuple[str, ...]) -> int | None:
    """Where the list under one path begins, where there is one."""
    at: int | None = start
    for key in path:
        at = _value_of(text, at, key) if at is not None else None
    return at if at is not None and text[at : at + 1] == "[" else None


def _tell_left_out(text: str, paths: Sequence[tuple[str, ...]], findings: Findings) -> None:
    for path in paths:
        at = _list_at(text, _skip(text, 0), path)
        number = 0 if at is None else sum(1 for _element in _elements(text, at))
        if number:
            findings.notice(f"{number} records under {'.'.join(path)} were left out: they are not read here.")


def _value_of(text: str, at: int, wanted: str) -> int | None:
    """Where the value of a key of the object at `at` begins."""
    if text[at : at + 1] != "{":
        return None
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        key, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise JSONDecodeError("':' expected", text, at)
        at = _skip(text, at + 1)
        if key == wanted:
            return at
        _value, at = _decoder.raw_decode(text, at)
        at = _skip(text, at)
        if text[at : at + 1] != ",":
            break
        at = _skip(text, at + 1)
    return None


def _elements(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Begin and end of each element of the array at `at`."""
    at = _skip(text, at + 1)
    if text[at : at + 1] == "]":
        return
    while True:
        _value, end = _decoder.raw_decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at : at + 1] == "]":
            return
        if text[at : at + 1] != ",":
            raise JSONDecodeError("',' or ']' expected", text, at)
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while text[at : at + 1] and text[at] in _SPACE:
        at += 1
    return at
