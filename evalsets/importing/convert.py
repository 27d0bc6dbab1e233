"""From another tool's flat records to the fields of a native line, by an explicit mapping."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from evalsets.importing.cellvalues import (
    READERS,
    BadValue,
    name_in,
    passages_in,
    said_text,
    text_in,
    texts_in,
    truth_in,
)
from evalsets.importing.findings import Findings, shown, type_name
from evalsets.importing.jsonl import Row
from evalsets.importing.mapping import (
    GRADER,
    KEEP,
    LABEL,
    LEAVE_OUT,
    SYSTEM,
    ColumnMap,
    LabelRule,
)
from evalsets.importing.shapes import HUMAN, Flat, Said, Shape
from evalsets.importing.strictjson import PASSAGE_TEXT, NotStrictJSON, refuse_unstorable
from evalsets.labels import TARGET_OF

_LABELS_OF = {
    ("claim", HUMAN): "human_labels",
    ("claim", "judge"): "judge_labels",
    ("response", HUMAN): "response_labels",
    ("response", "judge"): "response_judge_labels",
}
_EMPTY = "responses are empty; a table cannot tell these from missing ones: leave out rows that have none."


@dataclass
class Converter:
    """Native rows out of a file's records; rows that follow each other and share an id are one response."""

    shape: Shape
    mapping: ColumnMap
    columns: Mapping[str, str]
    findings: Findings
    _left_out: Counter[str] = field(default_factory=Counter)

    def rows(self, records: Iterable[Row]) -> Iterator[Row]:
        """The native rows; what was left out is told as notices after the last one."""
        pending: Row | None = None
        for number, record in enumerate(records, 1):
            made = self._row(record, number)
            if made is None:
                continue
            if pending is not None and self._same_response(pending, made):
                self._merge(pending, made)
                continue
            if pending is not None:
                yield pending
            pending = made
        if pending is not None:
            yield pending
        for what, times in sorted(self._left_out.items()):
            self.findings.notice(f"{times} {what}")

    # One record

    def _row(self, record: Row, number: int) -> Row | None:
        before = self.findings.count
        flat = flattened(self.shape, record, self.findings)
        if flat is None:
            return None
        self._left_out.update(flat.told)
        fields: dict = {}
        claim: dict = {}
        meta: dict = {}
        for column, value in flat.columns.items():
            target = self.columns.get(column, KEEP)
            try:
                self._put(fields, claim, meta, column, target, value)
            except BadValue as error:
                self.findings.problem(record.line, shown(column), str(error), value)
        self._name_passages(fields, record.line)
        if "id" not in fields and "id" not in self.columns.values():
            fields["id"] = f"row-{number}"
            self.findings.notice("No column is the id: the records are numbered, row-1, row-2 and so on.")
        self._say(fields, claim, flat, record.line)
        if claim.get("text"):
            fields["claims"] = [claim | ({"meta": meta} if meta else {})]
        elif meta:
            fields["meta"] = meta
        if "question" in self.columns.values():
            fields.setdefault("question", None)
        try:
            refuse_unstorable(fields, PASSAGE_TEXT)
        except NotStrictJSON as error:
            self.findings.problem(record.line, error.where, str(error), error.value)
        return Row(record.line, record.size, fields) if self.findings.count == before else None

    def _put(self, fields: dict, claim: dict, meta: dict, column: str, target: str, value: object) -> None:
        if target == LEAVE_OUT:
            self._left_out[f'values of the column "{shown(column)}" were left out, as asked for.'] += 1
        elif target in (LABEL, GRADER):
            return  # read where labels are
        elif target == KEEP:
            if value not in (None, ""):
                meta[column] = value
        elif target == "response":
            if value is not None:
                fields["response"] = text_in(value)
            if value == "":
                self._left_out[_EMPTY] += 1
        elif value in (None, ""):
            return
        elif target == "context":
            passages = fields.setdefault("context", [])
            passages += passages_in(value, before=len(passages))
        elif target == "claim":
            claim["text"] = text_in(value)
        elif target == "claim_id":
            claim["id"] = text_in(value)
        elif target == "claim.source_ids":
            claim["source_ids"] = texts_in(value)
        elif target == "claim.decision":
            claim["decision"] = truth_in(value)
        elif target.startswith("strata."):
            fields.setdefault("strata", {})[target.removeprefix("strata.")] = text_in(value)
        elif target.startswith("system.settings."):
            settings = fields.setdefault("system", {}).setdefault("settings", {})
            settings[target.removeprefix("system.settings.")] = value
        elif target in SYSTEM:
            fields.setdefault("system", {})[target.removeprefix("system.")] = text_in(value)
        else:
            fields[target] = READERS[target](value)

    def _name_passages(self, fields: dict, line: int) -> None:
        ids = fields.pop("context_ids", None)
        passages = fields.get("context")
        if ids is None or passages is None:
            return
        if len(ids) != len(passages):
            message = f"{len(ids)} ids, but {len(passages)} passages"
            self.findings.problem(line, "context_ids", message, ids)
            return
        for passage, identifier in zip(passages, ids, strict=True):
            passage["id"] = identifier

    # What was said

    def _say(self, fields: dict, claim: dict, flat: Flat, line: int) -> None:
        for said in all_said(flat, self.columns):
            if self.mapping.labels is None:
                self._left_out["labels were left out: nothing was said about what they are here."] += 1
                continue
            rule = rule_for(said, self.mapping, self.findings, line)
            if rule is None:
                continue
            if rule.dimension == LEAVE_OUT:
                self._left_out[f'labels of "{shown(said.question)}" were left out, as asked for.'] += 1
            else:
                self._label(fields, claim, said, rule, line)

    def _label(self, fields: dict, claim: dict, said: Said, rule: LabelRule, line: int) -> None:
        label = mapped_label(said, rule, self.findings, line)
        if label is None:
            return
        if label == LEAVE_OUT:
            self._left_out[
                f'labels {shown(said.value)!r} of "{shown(said.question)}" were left out, as asked for.'
            ] += 1
            return
        name = named(said, rule, self.mapping, self.findings, line)
        if not name:
            return
        target = TARGET_OF[rule.dimension]
        if target == "claim" and not claim.get("text"):
            message = f"{rule.dimension} is asked of a claim, and this record has none"
            self.findings.problem(line, shown(said.question), message, said.value)
            return
        labels = (claim if target == "claim" else fields).setdefault(_LABELS_OF[target, said.kind], {})
        if name in labels:
            message = f"{shown(name)} has a label for this already ({labels[name]})"
            self.findings.problem(line, shown(said.question), message, said.value)
        labels[name] = label

    # Rows that belong together

    def _same_response(self, pending: Row, made: Row) -> bool:
        return pending.fields.get("id") is not None and pending.fields.get("id") == made.fields.get("id")

    def _merge(self, pending: Row, made: Row) -> None:
        """A claim a row, or a grader a row: what is said of the response itself must be the same."""
        held, new = pending.fields, made.fields
        together = {"claims", "meta", *_LABELS_OF.values()}
        for name in sorted((held.keys() | new.keys()) - together):
            if held.get(name) != new.get(name):
                message = (
                    f"differs from line {pending.line}, which is the same response {shown(held['id'])!r}"
                )
                self.findings.problem(made.line, name, message, new.get(name))
        if held.get("meta") != new.get("meta"):
            self._left_out[
                "further rows of a response differ in what is kept in meta: the first row's was kept."
            ] += 1
        for key in ("response_labels", "response_judge_labels"):
            _join(held, new, key, self.findings, made.line)
        says_more = new.get("claims") or new.keys() & {"response_labels", "response_judge_labels"}
        if not says_more and GRADER not in self.columns.values():
            message = (
                f"says nothing that line {pending.line} did not say of the response {shown(held['id'])!r}"
            )
            self.findings.problem(made.line, "id", message, held["id"])
        self._merge_claims(held, new, made.line)

    def _merge_claims(self, held: dict, new: dict, line: int) -> None:
        claims = held.setdefault("claims", []) if new.get("claims") else held.get("claims", [])
        for claim in new.get("claims", ()):
            same = next((other for other in claims if _is_same_claim(other, claim)), None)
            if same is None:
                claims.append(claim)
                continue
            for key in ("human_labels", "judge_labels"):
                _join(same, claim, key, self.findings, line)


def _is_same_claim(one: dict, other: dict) -> bool:
    if "id" in one and "id" in other:
        return one["id"] == other["id"]
    return one["text"] == other["text"]


def _join(held: dict, new: dict, key: str, findings: Findings, line: int) -> None:
    for name, label in new.get(key, {}).items():
        labels = held.setdefault(key, {})
        if name in labels:
            message = f"{shown(name)} has a label for this already ({labels[name]})"
            findings.problem(line, key, message, label)
        labels[name] = label


def numbered_claims(rows: Iterable[Row]) -> Iterator[Row]:
    """Claims without ids of their own are numbered within their response."""
    for row in rows:
        for number, claim in enumerate(row.fields.get("claims") or (), 1):
            if isinstance(claim, dict):
                claim.setdefault("id", f"c{number}")
        yield row


def flattened(shape: Shape, record: Row, findings: Findings) -> Flat | None:
    """The record laid flat, or None with a problem where its parts cannot be told apart."""
    try:
        _refuse_columns(record.fields)
        return shape.flatten(record.fields)
    except BadValue as error:
        findings.problem(record.line, "", str(error), record.fields)
        return None


def _refuse_columns(record: Mapping[str, object]) -> None:
    """A table written column by column is one record, whose values are objects by the number of the row."""
    if len(record) > 1 and all(isinstance(value, dict) and "0" in value for value in record.values()):
        raise BadValue(
            "written column by column, as pandas does unless told otherwise: write one record after another "
            '(orient="records", lines=True)'
        )


def all_said(flat: Flat, columns: Mapping[str, str]) -> Iterator[Said]:
    """The labels of a record: those of its shape, and those of columns that are mapped to be labels."""
    names = [name_in(flat.columns.get(column)) for column, target in columns.items() if target == GRADER]
    of_columns = (
        Said(column, flat.columns.get(column), HUMAN, names[0] if names else "")
        for column, target in columns.items()
        if target == LABEL
    )
    return (said for said in (*flat.said, *of_columns) if said.value not in (None, "", []))


def rule_for(said: Said, mapping: ColumnMap, findings: Findings, line: int) -> LabelRule | None:
    """What the mapping says of the label's question, or None with a problem."""
    rule = (mapping.labels or {}).get(said.question)
    if rule is None:
        message = "nothing says what its labels are here: map them, or leave the question out"
        findings.problem(line, shown(said.question), message, said.value)
    return rule


def mapped_label(said: Said, rule: LabelRule, findings: Findings, line: int) -> str | None:
    """Our label, `LEAVE_OUT`, or None with a problem: an unmapped label is never a default."""
    value = said_text(said.value)
    if value is None:
        message = f"one label is expected, not {type_name(said.value)}"
        findings.problem(line, shown(said.question), message, said.value)
        return None
    label = rule.values.get(value)
    if label is None:
        message = f"the label {shown(value)!r} is mapped to none of ours: map it, or leave it out"
        findings.problem(line, shown(said.question), message, value)
    return label


def named(said: Said, rule: LabelRule, mapping: ColumnMap, findings: Findings, line: int) -> str:
    """Who gave the label, by the mapping's names; a problem where nobody is named."""
    name = mapping.names.get(said.name, said.name) or rule.name
    if not name:
        message = "the file does not say whose label this is: give a name for the question"
        findings.problem(line, shown(said.question), message, said.value)
    return name
