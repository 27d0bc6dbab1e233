"""Records in the forms that the files have: JSON lines, rows for a spreadsheet, columns.

All records of a response share most of what they say. That is written once, and read once where line after
line repeats it; a record adds what it has for itself. The export writes with these functions and the
recomputation reads with them. No database, no framework.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from json.encoder import encode_basestring
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import pyarrow
import pyarrow.parquet

from evalsets.hashing import canonical_json
from evalsets.inert import inert

FIELDS = (
    "evalset",
    "version",
    "content_hash",
    "round",
    "system_run",
    "system_run_hash",
    "sample",
    "split",
    "flag",
    "item_id",
    "response_id",
    "claim_id",
    "dimension",
    "label",
    "source",
    "annotations",
    "adjudication",
    "rubric_version",
    "target_sha256",
    "strata",
    "answerable",
    "unanswerable_reason",
    "system",
    "question",
    "response",
    "claim",
    "context",
    "passage",
    "assigned",
    "not_asked",
    "decision",
    "calibration_split",
)
# What an unresolved target keeps: everything that a figure rests on, and no text.
UNRESOLVED_FIELDS = (
    "version",
    "round",
    "system_run",
    "sample",
    "split",
    "flag",
    "item_id",
    "response_id",
    "claim_id",
    "passage",
    "dimension",
    "reason",
    "annotations",
    "strata",
    "answerable",
    "unanswerable_reason",
    "assigned",
    "not_asked",
    "decision",
    "empty",
)
# The same for all records of a response.
SHARED = (
    "evalset",
    "version",
    "content_hash",
    "round",
    "system_run",
    "system_run_hash",
    "sample",
    "item_id",
    "response_id",
    "rubric_version",
    "strata",
    "answerable",
    "unanswerable_reason",
    "system",
    "question",
    "response",
    "context",
    "assigned",
    "calibration_split",
)

Row = dict[str, Any]
Cells = Sequence[str | None]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_of(value: Any) -> str:
    """The encoder is slow to start: it is left out where the text is plain."""
    if value is None:
        return "null"
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return str(value)
    if value is True or value is False:
        return "true" if value else "false"
    return "[]" if value == [] else _encode(value)


class Form:
    """The fields of a kind of record in their order, and the text around what each record has for itself."""

    def __init__(self, fields: Sequence[str], label: str, between: str, end: str):
        self.own = tuple(name for name in fields if name not in SHARED)
        self.own_of = itemgetter(*self.own)
        self._runs: list[tuple[str, list[str]]] = []
        text, names = "", list[str]()
        for place, name in enumerate(fields):
            text += (between if place else "") + label.format(name)
            if name in SHARED:
                text, names = text + "%s", [*names, name]
            else:
                self._runs.append((text, names))
                text, names = "", []
        self._runs.append((text + end, names))

    def pieces(self, shared: Mapping[str, str]) -> list[str]:
        """The text of what is shared, with a gap at every second place for what is not."""
        pieces = [""] * (2 * len(self._runs) - 1)
        pieces[::2] = [text % tuple([shared[name] for name in names]) for text, names in self._runs]
        return pieces


class _Json(Form):
    def __init__(self, fields: Sequence[str]):
        super().__init__(fields, '"{}": ', ", ", "}\n")


GOLD_FORM = _Json(FIELDS)
UNRESOLVED_FORM = _Json(UNRESOLVED_FIELDS)
FILTERED_FORM = _Json((*UNRESOLVED_FIELDS, "label", "source"))
_SHEET = Form(FIELDS, "", ",", "\r\n")


class Shared:
    """What all records of a response say, and the text around what each has for itself."""

    def __init__(self, row: Row):
        self.row = row
        self._lines: dict[Form, list[str]] = {}

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {name: json_of(value) for name, value in self.row.items()}

    @cached_property
    def cells(self) -> Cells:
        """As text, in the order of SHARED."""
        return [self._cell(name) for name in SHARED]

    def _cell(self, name: str) -> str | None:
        value = self.row.get(name)
        return value if value is None or type(value) is str else self._texts[name]

    def line(self, form: Form, own: Sequence[str]) -> bytes:
        """A record as a line; `own` is the JSON of what it has for itself."""
        pieces = self._lines.get(form)
        if pieces is None:
            pieces = self._lines[form] = form.pieces(self._texts)
            pieces[0] = "{" + pieces[0]
        pieces[1::2] = own
        return "".join(pieces).encode("utf-8")

    @cached_property
    def _sheet(self) -> list[str]:
        cells = zip(SHARED, map(csv_cell, self.cells), strict=True)
        return _SHEET.pieces(dict(cells))

    def sheet_line(self, own: Cells) -> str:
        """A gold record as a line of the CSV file."""
        self._sheet[1::2] = map(csv_cell, own)
        return "".join(self._sheet)

    @cached_property
    def _about(self) -> tuple[bytes, bytes]:
        context, question, response = (
            f',"{name}":{canonical_json(self.row[name])}' for name in ("context", "question", "response")
        )
        return context.encode("utf-8"), f"{question}{response}}}".encode()

    def target_hash(self, claim: Any, passage: Any) -> str:
        """What a label is about: question, response, claim, the passages as served, and which one of them."""
        context, rest = self._about
        which = f',"passage":{canonical_json(passage)}'.encode() if passage else b""
        said = f'{{"claim":{canonical_json(claim)}'.encode()
        return hashlib.sha256(b"".join((said, context, which, rest))).hexdigest()


def cells_of(values: Sequence[Any]) -> Cells:
    """As columns of text: nested values as JSON."""
    return [value if value is None or type(value) is str else json_of(value) for value in values]


def texts_of(values: Sequence[Any], cells: Cells) -> list[str]:
    """The JSON of the same values: that of a nested one is its cell."""
    return [
        "null" if cell is None else encode_basestring(cell) if cell is value else cell
        for value, cell in zip(values, cells, strict=True)
    ]


def csv_cell(cell: str | None) -> str:
    """As it stands in the CSV file: nothing that a spreadsheet would run."""
    if not cell:
        return ""
    text = inert(cell)
    if '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return f'"{text}"' if "," in text or "\n" in text or "\r" in text else text


CSV_HEADER = ",".join(FIELDS) + "\r\n"


# Read again


# Of a record each value as it stands there, what is shared first; empty where it does not.
_OWN = tuple(name for name in dict.fromkeys((*FIELDS, *UNRESOLVED_FIELDS)) if name not in SHARED)
_Fragments = msgspec.defstruct(
    "_Fragments", [(name, msgspec.Raw, msgspec.Raw()) for name in (*SHARED, *_OWN)]
)
_fragments = msgspec.json.Decoder(_Fragments).decode
_string = msgspec.json.Decoder(str).decode


class Record(NamedTuple):
    shared: Shared
    row: Row  # with what is shared

    @property
    def own_cells(self) -> Cells:
        return cells_of([self.row.get(name) for name in GOLD_FORM.own])


class _Reader:
    """Records of lines; what line after line repeats is read once, and is one object."""

    def __init__(self) -> None:
        self._before: tuple[bytes, ...] = ()
        self._shared = Shared({})
        self._held: dict[bytes, Any] = {}

    MOST, SHORT = 1000, 100  # values held, bytes of each

    def record(self, line: bytes) -> Record:
        try:
            fragments = tuple(map(bytes, msgspec.structs.astuple(_fragments(line))))
        except msgspec.MsgspecError:
            row = json.loads(line.decode("utf-8"))  # which says what is wrong with it
            return Record(Shared({name: row[name] for name in SHARED if name in row}), row)
        shared = fragments[: len(SHARED)]
        if shared != self._before:
            self._before, self._shared = shared, Shared(self._values(SHARED, shared))
        return Record(self._shared, self._shared.row | self._values(_OWN, fragments[len(SHARED) :]))

    def _values(self, names: Sequence[str], fragments: Sequence[bytes]) -> Row:
        held = self._held
        return {
            name: held[fragment] if fragment in held else self._read(fragment)
            for name, fragment in zip(names, fragments, strict=True)
            if fragment
        }

    def _read(self, fragment: bytes) -> Any:
        value = _value(fragment)
        if len(fragment) <= self.SHORT:
            if len(self._held) >= self.MOST:
                self._held.clear()
            self._held[fragment] = value
        return value


def _value(fragment: bytes) -> Any:
    if fragment[:1] == b'"':
        try:
            return _string(fragment)
        except msgspec.MsgspecError:
            pass  # half a pair of surrogates, which JSON may hold
    return json.loads(fragment.decode("utf-8"))


def records_of(path: Path) -> Iterator[Record]:
    """The records of a file of JSON lines."""
    reader = _Reader()
    with path.open("rb") as file:
        for line in file:
            yield reader.record(line)


# Parquet


class Columns(NamedTuple):
    """A gold record on its way into columns."""

    shared: Shared
    own: Cells


def by_field(record: Columns) -> dict[str, str | None]:
    """Every cell by its name."""
    cells = {
        **dict(zip(SHARED, record.shared.cells, strict=True)),
        **dict(zip(GOLD_FORM.own, record.own, strict=True)),
    }
    return {name: cells[name] for name in FIELDS}


def csv_of(record: Columns) -> list[str]:
    """Every cell as the CSV file means it."""
    return ["" if cell is None else inert(cell) for cell in by_field(record).values()]


def columns_of(records: Sequence[Columns]) -> pyarrow.Table:
    places: dict[Shared, int] = {}
    place = pyarrow.array(
        [places.setdefault(shared, len(places)) for shared, _own in records], pyarrow.int64()
    )
    shared = _columns(SHARED, [shared.cells for shared in places])
    columns = {name: column.take(place) for name, column in shared}
    columns |= _columns(GOLD_FORM.own, [own for _shared, own in records])
    return pyarrow.table([columns[name] for name in FIELDS], schema=_SCHEMA)


def _columns(names: Sequence[str], rows: Sequence[Cells]) -> Iterator[tuple[str, pyarrow.Array]]:
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    for name, column in zip(names, columns, strict=True):
        yield name, pyarrow.array(column, type=pyarrow.string())


_SCHEMA = pyarrow.schema([(name, pyarrow.string()) for name in FIELDS])


class ParquetFile:
    """The records as columns of text; written in batches."""

    BATCH = 1000

    def __init__(self, path: Path):
        self.writer = pyarrow.parquet.ParquetWriter(path, _SCHEMA)
        self.records: list[Columns] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._flush()
        self.writer.close()

    def write(self, shared: Shared, own: Cells) -> None:
        self.records.append(Columns(shared, own))
        if len(self.records) >= self.BATCH:
            self._flush()

    def _flush(self) -> None:
        self.writer.write_table(columns_of(self.records))
        self.records = []


class ParquetRows:
    """The records of a Parquet file as they stand there, some at a time.

    Raises
    ------
    OSError, ValueError
        It cannot be read.
    """

    def __init__(self, path: Path):
        self._batches = pyarrow.parquet.ParquetFile(path).iter_batches(batch_size=ParquetFile.BATCH)
        self._left = _SCHEMA.empty_table()

    def take(self, number: int) -> pyarrow.Table:
        """The next ones; fewer where the file ends."""
        while len(self._left) < number and (batch := next(self._batches, None)) is not None:
            more = pyarrow.Table.from_batches([batch])
            self._left = pyarrow.concat_tables([self._left, more]) if len(self._left) else more
        taken, self._left = self._left.slice(0, number), self._left.slice(number)
        return taken
