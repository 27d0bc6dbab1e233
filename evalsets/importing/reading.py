"""Bytes to numbered lines: gzip by content, limits while unpacking, and only UTF-8."""

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from evalsets.importing.findings import UnreadableFile

MEGABYTE = 1024 * 1024
MAX_LINE = 16 * MEGABYTE
MAX_TOTAL = 512 * MEGABYTE
CHUNK = 64 * 1024

_UTF8_MARK = b"\xef\xbb\xbf"
_OTHER_MARKS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be unpacked, in bytes: of one line (or one CSV row), and of the whole file."""

    line: int = MAX_LINE
    total: int = MAX_TOTAL


USUAL_LIMITS = Limits()


class RawLine(NamedTuple):
    """One physical line without its line end; `offset` is its first byte in the unpacked file."""

    number: int
    offset: int
    content: bytes


def raw_lines(stream: BinaryIO, limits: Limits = USUAL_LIMITS) -> Iterator[RawLine]:
    """The physical lines of a plain or gzipped file, one at a time.

    Parameters
    ----------
    stream : binary file
        Read from its start to its end; it must be seekable.
    limits : Limits
        Checked while unpacking, so that a small file cannot fill the memory.

    Yields
    ------
    RawLine
        A leading UTF-8 byte-order mark is left out.

    Raises
    ------
    UnreadableFile
        The file is empty, ends early, is damaged, is too large or is UTF-16 or UTF-32.
    """
    stream.seek(0)
    start = stream.read(2)
    stream.seek(0)
    if not start:
        raise UnreadableFile.at(None, "the file is empty")
    source = gzip.GzipFile(fileobj=stream) if start == b"\x1f\x8b" else stream
    pending, number, total, line_start, first = bytearray(), 0, 0, 0, True
    while chunk := _read(source, number + 1):
        if first:
            _refuse_other_encodings(chunk)
            first = False
        total += len(chunk)
        if total > limits.total:
            raise UnreadableFile.at(
                number + 1, f"the file has more than {megabytes(limits.total)} unpacked, which is the limit"
            )
        *complete, rest = chunk.split(b"\n")
        for piece in complete:
            pending += piece
            number += 1
            _refuse_long_line(pending, number, limits)
            yield _line(number, line_start, pending)
            line_start += len(pending) + 1
            pending.clear()
        pending += rest
        _refuse_long_line(pending, number + 1, limits)
    if total == 0:
        raise UnreadableFile.at(None, "the file is empty")
    if pending:
        yield _line(number + 1, line_start, pending)


def decode(line: RawLine) -> str:
    """The line as text.

    Raises
    ------
    UnreadableFile
        It is not UTF-8; the problem names the line and the byte. A reader whose lines are independent of each
        other may report it and go on.
    """
    try:
        return line.content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = line.content[max(0, error.start - 30) : error.start + 30].decode("cp1252", "replace")
        raise UnreadableFile.at(
            line.number,
            f"not UTF-8: byte {error.start + 1} of the line (byte {line.offset + error.start + 1} of the "
            f"file) is 0x{line.content[error.start]:02x}. The file looks like Latin-1 or Windows-1252: "
            "save it as UTF-8",
            before,
        ) from None


def first_character(stream: BinaryIO, limits: Limits = USUAL_LIMITS) -> str:
    """The first character that is not white space; empty where there is none to be had."""
    for line in raw_lines(stream, limits):
        if line.content.strip():
            return line.content.strip()[:1].decode("latin-1")
    return ""


def _read(source: BinaryIO | gzip.GzipFile, line: int) -> bytes:
    try:
        return source.read(CHUNK)
    except EOFError:
        raise UnreadableFile.at(line, "the file ends early: the gzip data stops before its end") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableFile.at(line, f"the gzip data is damaged: {error}") from None


def _line(number: int, offset: int, content: bytearray) -> RawLine:
    text = bytes(content)
    if number == 1 and text.startswith(_UTF8_MARK):
        return RawLine(number, offset + len(_UTF8_MARK), text[len(_UTF8_MARK) :])
    return RawLine(number, offset, text)


def _refuse_long_line(content: bytearray, number: int, limits: Limits) -> None:
    if len(content) > limits.line:
        raise UnreadableFile.at(
            number,
            f"the line has more than {megabytes(limits.line)} unpacked, which is the limit",
            bytes(content[:400]).decode("utf-8", "replace"),
        )


def megabytes(size: int) -> str:
    return f"{size // MEGABYTE} MB" if size >= MEGABYTE else f"{size} bytes"


def _refuse_other_encodings(start: bytes) -> None:
    for mark, name in _OTHER_MARKS:
        if start.startswith(mark):
            raise UnreadableFile.at(1, f"the file is {name} (byte-order mark found): save it as UTF-8")
    # Without a mark, ASCII text in UTF-16 has a zero in every second byte.
    if len(start) >= 4 and (start[0:4:2] == b"\0\0" or start[1:4:2] == b"\0\0"):
        raise UnreadableFile.at(1, "the file looks like UTF-16 (every second byte is zero): save it as UTF-8")
