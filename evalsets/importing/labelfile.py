"""Label files: one label of one grader a line, for a version whose responses are there already."""

from collections.abc import Iterator
from typing import BinaryIO

from evalsets.importing import csvfile, jsonl
from evalsets.importing.findings import Findings, UnreadableFile, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.ledger import note_name
from evalsets.importing.reading import USUAL_LIMITS, Limits
from evalsets.importing.records import LabelRecord
from evalsets.importing.validate import Line, check_name, fold_label, identifier_of
from evalsets.labels import LABELS, TARGET_OF

COLUMNS = ("item", "response", "claim", "grader", "label", "dimension")
# The names that a native file uses for the same things.
_OTHER_NAMES = {"item_id": "item", "response_id": "response", "claim_id": "claim"}


def label_records(
    stream: BinaryIO,
    findings: Findings,
    *,
    is_csv: bool,
    dimension: str | None = None,
    limits: Limits = USUAL_LIMITS,
) -> Iterator[LabelRecord]:
    """The labels of a CSV or JSON Lines file.

    Parameters
    ----------
    stream : binary file
        With the columns (keys) item or response, claim, grader, label and, if wanted, dimension.
    findings : Findings
        Gets every problem.
    is_csv : bool
        CSV when true, else JSON Lines.
    dimension : str, optional
        Where given, all labels are of this dimension. Else the line says it, else a line with a claim is
        about grounding and one without is about abstention.
    limits : Limits
        See `evalsets.importing.reading`.

    Yields
    ------
    LabelRecord
        Whether the target exists, and whether a grader labels it twice, is for the caller to say, who knows
        which names mean the same target.
    """
    names: dict[tuple[str, str], tuple[str, int]] = {}
    found = False
    for row in _rows(stream, findings, is_csv, limits):
        found = True
        record = _label_of(row, findings, dimension)
        if record is not None:
            note_name(findings, names, "grader", record.grader, record.line)
            yield record
    if not found and not findings.refused:
        findings.problem(None, "", "no rows: the file holds no labels")


def _rows(stream: BinaryIO, findings: Findings, is_csv: bool, limits: Limits) -> Iterator[Row]:
    if not is_csv:
        yield from (_renamed(row) for row in jsonl.rows(stream, findings, limits))
        return
    first = True
    for row in csvfile.cells(stream, findings, (*COLUMNS, *_OTHER_NAMES), limits):
        renamed = _renamed(row)
        if first:
            _refuse_other_columns(renamed)
            first = False
        yield Row(row.line, row.size, {key: cell for key, cell in renamed.fields.items() if cell != ""})


def _renamed(row: Row) -> Row:
    return Row(row.line, row.size, {_OTHER_NAMES.get(key, key): value for key, value in row.fields.items()})


def _refuse_other_columns(row: Row) -> None:
    if not {"grader", "label"} <= row.fields.keys() or not {"item", "response"} & row.fields.keys():
        raise UnreadableFile.at(
            1,
            "the columns are not those of a label file: item (or response), claim, grader and label are "
            "expected, "
            f"found {', '.join(shown(name) for name in row.fields)}",
        )


def _label_of(row: Row, findings: Findings, wanted: str | None) -> LabelRecord | None:
    line, fields = Line(row.line, findings), row.fields
    targets = {
        key: identifier_of(line, key, fields[key]) for key in ("item", "response", "claim") if fields.get(key)
    }
    if "item" not in targets and "response" not in targets:
        line.problem("item", "missing; item or response is required")
    check_name(line, "grader", fields.get("grader"))
    for key in fields.keys() - set(COLUMNS):
        line.notice(f'The column "{shown(key)}" is not known; it was not used.')
    dimension = wanted or fields.get("dimension") or ("grounding" if "claim" in targets else "abstention")
    if not isinstance(dimension, str) or dimension not in LABELS:
        line.problem("dimension", f"one of {', '.join(LABELS)} is expected", dimension)
        return None
    if fields.get("dimension") not in (None, dimension):
        line.problem("dimension", f"the labels of this import are of {dimension}", fields["dimension"])
    if (TARGET_OF[dimension] == "claim") != ("claim" in targets):
        needed = "needs a claim" if TARGET_OF[dimension] == "claim" else "is about the whole response"
        line.problem("claim", f"{dimension} {needed}", fields.get("claim"))
    label = fold_label(fields.get("label"), LABELS[dimension])
    if label is None:
        line.problem("label", f"one of {', '.join(LABELS[dimension])} is expected", fields.get("label"))
    elif label != fields["label"]:
        line.notice(f'The label "{shown(fields["label"])}" was read as "{label}".')
    if line.bad or label is None:
        return None
    return LabelRecord(
        row.line,
        targets.get("item"),
        targets.get("response"),
        targets.get("claim"),
        fields["grader"],
        label,
        dimension,
    )
