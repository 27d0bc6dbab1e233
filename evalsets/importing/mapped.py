"""Files of other tools and plain tables: what is in them, and their records by a mapping."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import BinaryIO

from evalsets.importing import csvfile, tables
from evalsets.importing.cellvalues import said_text
from evalsets.importing.convert import (
    Converter,
    all_said,
    flattened,
    mapped_label,
    named,
    numbered_claims,
    rule_for,
)
from evalsets.importing.findings import Findings, UnreadableFile, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.labelfile import COLUMNS
from evalsets.importing.mapping import (
    KEEP,
    LABEL,
    LEAVE_OUT,
    POINTERS,
    ColumnMap,
    check_mapping,
    check_rules,
    named_field,
    suggested,
)
from evalsets.importing.reading import USUAL_LIMITS, Limits
from evalsets.importing.records import LabelRecord
from evalsets.importing.shapes import HUMAN, PLAIN, SHAPES, Said, Shape, shape_of
from evalsets.importing.validate import KNOWN_FIELDS, Line, check_name, identifier_of
from evalsets.labels import TARGET_OF

NATIVE, AUTO = "native", "auto"
FORMATS = (NATIVE, AUTO, *SHAPES)
LOOKED_AT = 20_000  # records that a preview reads
MOST_VALUES = 60  # more different values than that are no labels
_EXAMPLES, _SHOWN_FROM = 3, 200


@dataclass
class ColumnSeen:
    """A column, how many records fill it, and its first values."""

    name: str
    filled: int = 0
    examples: list[object] = field(default_factory=list)
    values: Counter[str] = field(default_factory=Counter)


@dataclass
class QuestionSeen:
    """A question of the file (or a column of labels), with the labels that were given to it and by whom."""

    name: str
    kind: str
    values: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    nameless: int = 0

    @property
    def too_many(self) -> bool:
        return len(self.values) > MOST_VALUES


@dataclass
class Plan:
    """What a file holds and how it would be read.

    Attributes
    ----------
    kind : str
        What it is written in (see `evalsets.importing.tables`).
    shape : str
        The name of the shape, or `NATIVE`.
    records : int
        How many were looked at; `whole` says whether those were all.
    suggested : dict
        A field for each column.
    told : Counter
        How often the shape left something out or took it for granted, by its words for that.
    findings : Findings
        What could not be read.
    """

    kind: str
    shape: str
    records: int = 0
    whole: bool = True
    columns: dict[str, ColumnSeen] = field(default_factory=dict)
    questions: dict[str, QuestionSeen] = field(default_factory=dict)
    suggested: dict[str, str] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    findings: Findings = field(default_factory=Findings)

    @property
    def title(self) -> str:
        return SHAPES[self.shape].title if self.shape in SHAPES else self.shape

    @property
    def cannot_carry(self) -> tuple[str, ...]:
        return SHAPES[self.shape].cannot_carry if self.shape in SHAPES else ()

    @property
    def notices(self) -> list[str]:
        return [f"{times} {what}" for what, times in sorted(self.told.items())]

    def mapping(self) -> ColumnMap:
        """The suggestion: columns by their names, and no label mapped."""
        return ColumnMap(self.shape, self.suggested, None)

    def as_json(self) -> dict:
        """A mapping to fill in: every label of every question stands there and is not decided."""
        return {
            "format": self.shape,
            "columns": self.suggested,
            "labels": {
                question.name: {
                    "dimension": "",
                    "name": "",
                    "values": {} if question.too_many else dict.fromkeys(sorted(question.values)),
                }
                for question in self.questions.values()
            },
            "names": {name: name for question in self.questions.values() for name in question.names},
        }


def plan_of(
    stream: BinaryIO,
    filename: str,
    *,
    shape: str = AUTO,
    mapping: ColumnMap | None = None,
    most: int = LOOKED_AT,
    limits: Limits = USUAL_LIMITS,
) -> Plan:
    """Look at a file: what wrote it, its columns, its questions and their labels.

    Parameters
    ----------
    stream : binary file
        Seekable; JSON Lines, JSON, CSV (gzipped or not), Parquet or a workbook.
    filename : str
        Tells CSV from JSON Lines where the content does not.
    shape : str
        One of `FORMATS`; `AUTO` finds it by the first record.
    mapping : ColumnMap, optional
        What has been decided so far: its columns of labels are questions too.
    most : int
        How many records to look at.
    limits : Limits
        How much may be unpacked.

    Returns
    -------
    Plan
        An unreadable file is a problem of its findings.
    """
    plan = Plan("", shape)
    try:
        plan.kind = tables.kind_of(stream, filename, limits)
        rows = tables.rows(stream, filename, plan.findings, known=KNOWN_FIELDS, limits=limits)
        first = next(rows, None)
        if first is not None:
            plan.shape = _shape_name(first.fields) if shape == AUTO else shape
            _look_at(plan, chain([first], rows), mapping, most)
    except UnreadableFile as error:
        plan.findings.add(error.problem)
    if plan.shape == AUTO:
        plan.shape = NATIVE
    if plan.shape in SHAPES:
        plan.suggested = _suggested(plan, SHAPES[plan.shape])
    return plan


def _suggested(plan: Plan, shape: Shape) -> dict[str, str]:
    """A field for each column, but no id where a record lacks it, and no response where none has one."""
    columns = suggested(plan.columns, shape.suggest)
    for column, target in columns.items():
        filled = plan.columns[column].filled
        if target == "id" and (not filled or (column in shape.suggest and filled < plan.records)):
            columns[column] = KEEP
        if target == "response" and not filled:
            columns[column] = KEEP
    return columns


def _shape_name(record: dict) -> str:
    shape = shape_of(record)
    is_native = "id" in record and bool(record.keys() & {"question", "item_id", "response"})
    return NATIVE if shape is PLAIN and is_native and not _says_it_otherwise(record) else shape.name


def _says_it_otherwise(record: dict) -> bool:
    """Whether the answer or its passages stand under another name than the native one."""
    meant = {named_field(key) for key in record}
    return any(part in meant and part not in record for part in ("response", "context"))


def _look_at(plan: Plan, rows: Iterable[Row], mapping: ColumnMap | None, most: int) -> None:
    shape = SHAPES.get(plan.shape, PLAIN)
    of_labels = {
        column for column, target in ((mapping and mapping.columns) or {}).items() if target == LABEL
    }
    for row in rows:
        if plan.records == most:
            plan.whole = False
            return
        plan.records += 1
        flat = flattened(shape, row, plan.findings)
        if flat is None:
            continue
        plan.told.update(flat.told)
        for column, value in flat.columns.items():
            _see_column(plan, column, value)
            if column in of_labels:
                _see_label(plan, Said(column, value))
        for said in flat.said:
            _see_label(plan, said)


def _see_column(plan: Plan, column: str, value: object) -> None:
    seen = plan.columns.setdefault(column, ColumnSeen(column))
    if value in (None, "", [], {}):
        return
    seen.filled += 1
    if len(seen.examples) < _EXAMPLES and plan.records <= _SHOWN_FROM:
        seen.examples.append(value)


def _see_label(plan: Plan, said: Said) -> None:
    if said.value in (None, "", []):
        return
    seen = plan.questions.setdefault(said.question, QuestionSeen(said.question, said.kind))
    text = said_text(said.value)
    if text is not None and (text in seen.values or not seen.too_many):
        seen.values[text] += 1
    if said.name:
        seen.names[said.name] += 1
    else:
        seen.nameless += 1


def mapped_rows(
    stream: BinaryIO,
    filename: str,
    findings: Findings,
    mapping: ColumnMap,
    *,
    items_known: bool = False,
    limits: Limits = USUAL_LIMITS,
) -> Iterator[Row]:
    """The native rows of a file, by a mapping.

    Parameters
    ----------
    stream, filename, limits
        As `plan_of`.
    findings : Findings
        Gets every problem with its line; a mapping that is wrong in itself is told first and alone.
    mapping : ColumnMap
        See `evalsets.importing.mapping`.
    items_known : bool
        True when the items are frozen already, so that no column need be the question.

    Raises
    ------
    UnreadableFile
        Nothing after this point can be read.
    """
    shape, columns = _decided(stream, filename, findings, mapping, limits)
    rows = tables.rows(stream, filename, findings, known=KNOWN_FIELDS, limits=limits)
    if shape is None:
        kind = tables.kind_of(stream, filename, limits)
        yield from csvfile.typed(rows, findings) if kind in (tables.CSV, tables.XLSX) else rows
        return
    whole = ColumnMap(shape.name, columns, mapping.labels, mapping.names)
    before = findings.count
    check_mapping(whole, findings, items_known=items_known)
    if findings.count == before:
        yield from numbered_claims(Converter(shape, whole, columns, findings).rows(rows))


def _decided(
    stream: BinaryIO, filename: str, findings: Findings, mapping: ColumnMap, limits: Limits
) -> tuple[Shape | None, dict[str, str]]:
    """The shape (None: native) and the columns, looked up in the file where the mapping leaves them open."""
    if mapping.shape not in ("", *FORMATS):
        raise UnreadableFile.at(None, f"there is no format {shown(mapping.shape)!r}: {', '.join(FORMATS)}")
    name = mapping.shape or AUTO
    columns = mapping.columns
    if name == AUTO or (columns is None and name != NATIVE):
        plan = plan_of(stream, filename, shape=name, limits=limits)
        if plan.findings.refused:
            raise UnreadableFile(plan.findings.problems[0])
        name, columns = plan.shape, plan.suggested if columns is None else columns
        if name != NATIVE:
            findings.notice(f"Read as {SHAPES[name].title} ({plan.kind}).")
    return (None, {}) if name == NATIVE else (SHAPES[name], dict(columns or {}))


# Files of labels


def mapped_labels(
    stream: BinaryIO,
    filename: str,
    findings: Findings,
    mapping: ColumnMap,
    *,
    limits: Limits = USUAL_LIMITS,
) -> Iterator[LabelRecord]:
    """The labels of another tool's annotations, for responses that are there already.

    The columns that name the target are mapped to item, response or claim. Labels that a machine gave are
    left out and counted: a label file holds what people said. Parameters and errors: as `mapped_rows`.
    """
    shape, columns = _decided(stream, filename, findings, mapping, limits)
    shape = shape or PLAIN
    pointers = _pointers(shape, mapping)
    if not set(pointers.values()) & {"item", "response"}:
        findings.problem(None, "map: columns", "no column says which item or response a label is about")
    check_rules(mapping, findings)
    if findings.refused:
        return
    told: Counter[str] = Counter()
    for row in tables.rows(stream, filename, findings, known=COLUMNS, limits=limits):
        flat = flattened(shape, row, findings)
        if flat is None:
            continue
        told.update(flat.told)
        targets = {target: flat.columns.get(column) for column, target in pointers.items()}
        for label in all_said(flat, columns):
            if label.kind != HUMAN:
                told["labels that no person gave were left out."] += 1
                continue
            record = _label_record(row.line, targets, label, mapping, findings)
            if record is not None:
                yield record
    for what, times in sorted(told.items()):
        findings.notice(f"{times} {what}")


def _pointers(shape: Shape, mapping: ColumnMap) -> dict[str, str]:
    if mapping.columns is None:
        return dict(shape.points_at)
    return {column: target for column, target in mapping.columns.items() if target in POINTERS}


def _label_record(
    number: int, targets: dict, said: Said, mapping: ColumnMap, findings: Findings
) -> LabelRecord | None:
    rule = rule_for(said, mapping, findings, number)
    if rule is None:
        return None
    if rule.dimension == LEAVE_OUT:
        findings.notice(f'Labels of "{shown(said.question)}" were left out, as asked for.', number)
        return None
    label = mapped_label(said, rule, findings, number)
    if label is None:
        return None
    if label == LEAVE_OUT:
        what = f'Labels {shown(said.value)!r} of "{shown(said.question)}"'
        findings.notice(f"{what} were left out, as asked for.", number)
        return None
    line = Line(number, findings)
    ids = {
        key: identifier_of(line, key, said_text(value))
        for key, value in targets.items()
        if value not in (None, "")
    }
    name = named(said, rule, mapping, findings, number)
    if name:
        check_name(line, "grader", name)
    if (TARGET_OF[rule.dimension] == "claim") != ("claim" in ids):
        needed = "needs a claim" if TARGET_OF[rule.dimension] == "claim" else "is about the whole response"
        line.problem("claim", f"{rule.dimension} {needed}", targets.get("claim"))
    if line.bad or not name:
        return None
    return LabelRecord(
        number, ids.get("item"), ids.get("response"), ids.get("claim"), name, label, rule.dimension
    )
