"""A gold set that comes back: a folder, a zip archive or one of its files, read row by row. No database.

Which of the files was edited follows from the hashes in the manifest, where it came along. A file is not
believed: whether its texts are those of the version is for the caller to say, who has them.
"""

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

from calibration import goldfile
from calibration.gold_lines import FIELDS, json_of
from evalsets.importing import csvfile, jsonl, tables
from evalsets.importing.findings import Findings, ImportRefused, Problem, UnreadableFile, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.reading import CHUNK, USUAL_LIMITS, Limits, megabytes
from evalsets.importing.strictjson import NotStrictJSON, parse
from evalsets.inert import inert

EDITABLE = (goldfile.GOLD, goldfile.CSV)
READ = (*EDITABLE, goldfile.MANIFEST, goldfile.UNRESOLVED)
_ABSENT = object()


@dataclass
class GivenGold:
    """The file with the records, and what the files beside it tell about it."""

    name: str
    stream: BinaryIO
    is_csv: bool
    sha256: str
    limits: Limits
    edited: bool | None = None  # None: no manifest came along
    notices: list[str] = field(default_factory=list)
    left_out: frozenset[tuple[Any, ...]] = frozenset()  # targets that the choice of the export left out

    def rows(self, findings: Findings) -> Iterator["GivenRow"]:
        """Every record that can be read.

        Raises
        ------
        UnreadableFile
            Nothing after this point can be read.
        """
        if self.is_csv:
            for row in csvfile.cells(self.stream, findings, FIELDS, self.limits):
                yield GivenRow(row, is_csv=True)
        else:
            for row in jsonl.rows(self.stream, findings, self.limits):
                yield GivenRow(row, is_csv=False)


class GivenRow:
    """A record as it came: JSON values, or cells of a table whose nested values are JSON."""

    def __init__(self, row: Row, *, is_csv: bool):
        self.line, self.fields, self.is_csv = row.line, row.fields, is_csv

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def text(self, name: str) -> str:
        """A name as it was before it was made inert; empty where there is none."""
        value = self.fields.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            return shown(value)
        return _live(value) if self.is_csv else value

    def value(self, name: str) -> Any:
        """What stands there as JSON; a cell that is none is its text."""
        value = self.fields.get(name)
        if not self.is_csv or not isinstance(value, str):
            return value
        try:
            return parse(_live(value)) if value else None
        except NotStrictJSON:
            return value

    @property
    def rank(self) -> int | None:
        """Of the passage that the record is about."""
        passage = self.value("passage")
        rank = passage.get("rank") if isinstance(passage, dict) else None
        return rank if isinstance(rank, int) else None

    def is_as(self, name: str, current: Any) -> bool:
        """Whether a field stands there as an export would write it."""
        given = self.fields.get(name, _ABSENT)
        if not self.is_csv:
            return bool(given == current and type(given) is type(current))
        if given == _cell(current):
            return True
        # A spreadsheet writes TRUE, and may space the JSON of a cell in its own way.
        return not isinstance(current, str) and self.value(name) in (current, _as_spreadsheet(current))


def _cell(value: Any) -> str:
    """As the export writes it."""
    if value is None:
        return ""
    return inert(value if isinstance(value, str) else json_of(value))


def _as_spreadsheet(value: Any) -> Any:
    return str(value).upper() if isinstance(value, bool) else value


def _live(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and inert(cell[1:]) == cell else cell


@contextmanager
def gold_in_folder(folder: Path, limits: Limits = USUAL_LIMITS) -> Iterator[GivenGold]:
    """The records of an exported folder, or of one file."""
    with ExitStack() as files:
        if not folder.is_dir():
            stream = files.enter_context(_opened(folder))
            yield files.enter_context(gold_in_file(stream, folder.name, limits))
            return
        found = {
            name: files.enter_context(_opened(folder / name)) for name in READ if (folder / name).is_file()
        }
        yield _chosen(found, limits)


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        problem = Problem(None, "file", f"cannot be read: {error.strerror}", str(path))
        raise ImportRefused([problem]) from error


@contextmanager
def gold_in_file(stream: BinaryIO, filename: str, limits: Limits = USUAL_LIMITS) -> Iterator[GivenGold]:
    """The records of a zip archive of the export, or of gold.jsonl or gold.csv alone, gzipped or not.

    Raises
    ------
    ImportRefused
        It is none of these.
    """
    with ExitStack() as files:
        try:
            kind = tables.kind_of(stream, filename, limits)
        except UnreadableFile as error:
            raise ImportRefused([error.problem]) from error
        if kind == tables.XLSX:  # any archive begins like a workbook
            yield _chosen(_unpacked(stream, files, limits), limits)
        elif kind in (tables.JSONL, tables.CSV):
            yield GivenGold(filename, stream, kind == tables.CSV, _sha256(stream), limits)
        else:
            raise _refused(f"gold.jsonl, gold.csv or the zip archive is expected, this file is {kind}")


def _unpacked(stream: BinaryIO, files: ExitStack, limits: Limits) -> dict[str, BinaryIO]:
    stream.seek(0)
    try:
        archive = files.enter_context(ZipFile(stream))
        members = {
            PurePosixPath(info.filename).name: info for info in archive.infolist() if not info.is_dir()
        }
        found: dict[str, BinaryIO] = {}
        for name in (name for name in READ if name in members):
            kept = files.enter_context(TemporaryFile())  # noqa: SIM115  (the stack closes it)
            with archive.open(members[name]) as packed:
                while chunk := packed.read(CHUNK):
                    kept.write(chunk)
                    if kept.tell() > limits.total:
                        most = megabytes(limits.total)
                        raise _refused(f"{name} has more than {most} unpacked, which is the limit")
            kept.seek(0)
            found[name] = kept
    except (BadZipFile, OSError, RuntimeError, EOFError, zlib.error, LZMAError) as error:
        raise _refused(f"the archive cannot be unpacked: {error}") from error
    return found


def _chosen(files: Mapping[str, BinaryIO], limits: Limits) -> GivenGold:
    """The file that was edited; gold.jsonl where none was, or where that cannot be known."""
    there = [name for name in EDITABLE if name in files]
    if not there:
        raise _refused("neither gold.jsonl nor gold.csv is in it")
    hashes = {name: _sha256(files[name]) for name in there}
    recorded = _recorded_hashes(files.get(goldfile.MANIFEST))
    edited = [name for name in there if recorded and hashes[name] != recorded.get(name)]
    if len(edited) > 1:
        raise _refused("gold.jsonl and gold.csv were both edited: give the one that is meant alone")
    name = (edited or there)[0]
    given = GivenGold(name, files[name], name == goldfile.CSV, hashes[name], limits)
    given.edited = bool(edited) if recorded else None
    if recorded is None and len(there) > 1:
        given.notices.append("There is no manifest that tells which file was edited: gold.jsonl was read.")
    if goldfile.UNRESOLVED in files:
        given.left_out = _left_out(files[goldfile.UNRESOLVED])
    return given


def _recorded_hashes(manifest: BinaryIO | None) -> dict[str, str] | None:
    if manifest is None:
        return None
    try:
        files = json.loads(manifest.read())["files"]
        return {name: str(facts["sha256"]) for name, facts in files.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _refused(f"manifest.json cannot be read: {error!r}") from error


def _left_out(unresolved: BinaryIO) -> frozenset[goldfile.Key]:
    """Targets with gold that was not asked for."""
    found = set()
    try:
        for line in unresolved:
            row = json.loads(line)
            if row["reason"] == goldfile.FILTERED:
                found.add(goldfile.key_of(row))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _refused(f"unresolved.jsonl cannot be read: {error!r}") from error
    return frozenset(found)


def _sha256(stream: BinaryIO) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(CHUNK):
        digest.update(chunk)
    stream.seek(0)
    return digest.hexdigest()


def _refused(message: str) -> ImportRefused:
    return ImportRefused([Problem(None, "file", message)])
