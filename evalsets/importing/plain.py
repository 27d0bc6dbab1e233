"""Plain lines, at once: lines of which nothing needs to be said.

Nearly every line of nearly every file is in order. Such a line is recognised by a compiled description and a
few checks, and becomes the record that `validate.record_of` makes of it. Of any other line nothing is decided
here: it is read again, by the rules that name its line, its field and its value.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, BinaryIO, Literal, NotRequired, TypedDict

import msgspec

from evalsets.importing.findings import Findings
from evalsets.importing.jsonl import Row, RowReader
from evalsets.importing.reading import Limits, RawLine, raw_lines
from evalsets.importing.records import (
    ITEM_FIELDS,
    ClaimRecord,
    ItemRecord,
    LineRecord,
    PassageRecord,
    ResponseRecord,
    SystemRecord,
)
from evalsets.importing.strictjson import NotStrictJSON, parse
from evalsets.importing.validate import (
    KEPT_WHOLE,
    LARGEST_SAMPLE,
    LONGEST_ID,
    LONGEST_NAME,
    Line,
    system_of,
)
from evalsets.labels import ABSTENTION, GROUNDING, UNANSWERABLE_REASONS
from evalsets.text import is_blank

_Grounding = dict[str, Literal[GROUNDING] | None]  # type: ignore[valid-type]
_Abstention = dict[str, Literal[ABSTENTION] | None]  # type: ignore[valid-type]
_STATED = frozenset(ITEM_FIELDS)
_KEPT_OF_CLAIM = ("original", "meta")
_OF_ANY_CLAIM = frozenset(("id", "text", "source_ids", "decision"))
_DEEPEST = 32  # of what is kept whole
_EXACT = 2**53
_SYSTEMS_KEPT = 1000
_SPACE_BEFORE_COLON = re.compile(rb'"[ \t\r]+:')


class _Passage(TypedDict):
    id: str
    text: str
    title: NotRequired[str | None]
    document: NotRequired[str | None]


class _Claim(TypedDict):
    id: str
    text: str
    source_ids: NotRequired[list[str] | None]
    decision: NotRequired[bool | None]
    human_labels: NotRequired[_Grounding | None]
    judge_labels: NotRequired[_Grounding | None]
    original: NotRequired[Any]
    meta: NotRequired[Any]


class _LineToKnownItem(TypedDict):
    id: str
    item_id: NotRequired[str | None]
    question: NotRequired[str]
    strata: NotRequired[dict[str, str] | None]
    answerable: NotRequired[bool | None]
    unanswerable_reason: NotRequired[Literal[UNANSWERABLE_REASONS] | None]  # type: ignore[valid-type]
    reference_answer: NotRequired[str | None]
    expected_documents: NotRequired[list[str] | None]
    expected_passages: NotRequired[list[str] | None]
    variant_of: NotRequired[str | None]
    context: NotRequired[list[_Passage] | None]
    response: str
    system: NotRequired[msgspec.Raw]
    run: NotRequired[Any]
    retrieval_query: NotRequired[str | None]
    sample: NotRequired[Any]
    claims: NotRequired[list[_Claim] | None]
    response_labels: NotRequired[_Abstention | None]
    response_judge_labels: NotRequired[_Abstention | None]
    source_dataset: NotRequired[Any]
    source_ref: NotRequired[Any]
    original: NotRequired[Any]
    meta: NotRequired[Any]


class _Line(_LineToKnownItem):
    question: str  # type: ignore[misc]


class _NotPlain(Exception):
    """Something is to be said of the line."""


def rows_or_records(
    stream: BinaryIO, findings: Findings, limits: Limits, *, items_known: bool
) -> Iterator[Row | LineRecord]:
    """As `jsonl.rows`, with the records of plain lines in place of their rows."""
    plain, reader = PlainLines(items_known=items_known), RowReader(findings)
    for line in raw_lines(stream, limits):
        if record := plain.record_of(line):
            reader.is_at_start = False
            yield record
        elif row := reader.row_of(line):
            yield row


class PlainLines:
    """Reads the plain lines of one file."""

    def __init__(self, *, items_known: bool) -> None:
        self._decode = msgspec.json.Decoder(_LineToKnownItem if items_known else _Line).decode
        self._systems: dict[bytes, SystemRecord | None] = {}

    def record_of(self, line: RawLine) -> LineRecord | None:
        """The record of a plain line; None where the line is to be read by the rules.

        Parameters
        ----------
        line : RawLine
            A physical line.

        Returns
        -------
        LineRecord or None
            What `validate.record_of` would give, without a finding.
        """
        content = line.content
        if b"\\u0000" in content:
            return None
        try:
            fields = self._decode(content)
            return self._record(line, fields)
        except (_NotPlain, ValueError, RecursionError):
            return None

    def _record(self, line: RawLine, fields: Any) -> LineRecord:
        passages, claims = fields.get("context") or (), fields.get("claims") or ()
        raw_system = bytes(fields.get("system") or b"")
        system = self._system(raw_system, fields.get("run"))
        kept = {key: fields[key] for key in KEPT_WHOLE if key in fields}
        human, judge = _said(fields.get("response_labels")), _said(fields.get("response_judge_labels"))
        text = fields["response"]
        if (human or judge) and is_blank(text):
            raise _NotPlain
        strata = fields.get("strata") or {}
        read = (
            len(fields)
            + sum(map(len, passages))
            + len(strata)
            + len(fields.get("response_labels") or ())
            + len(fields.get("response_judge_labels") or ())
            + _keys_within(kept.values())
        )
        served = {passage["id"] for passage in passages}
        claim_records = []
        for claim in claims:
            record, keys = _claim(claim, served)
            claim_records.append(record)
            read += keys
        # A key that is not known, or that stands twice, was left behind by the decoder.
        if read + _keys_in(raw_system) != _keys_in(line.content):
            raise _NotPlain
        identifier = fields["id"]
        item_id = fields.get("item_id")
        item = _item(fields, identifier if item_id is None else item_id, strata)
        if (
            not _is_identifier(identifier)
            or not all(map(_is_id, served))
            or len(served) != len(passages)
            or len({claim.claim_id for claim in claim_records}) != len(claim_records)
        ):
            raise _NotPlain
        response = ResponseRecord(
            identifier,
            text,
            system,
            _number(fields.get("sample")),
            fields.get("retrieval_query"),
            [PassageRecord(p["id"], p["text"], p.get("title"), p.get("document")) for p in passages],
            claim_records,
            kept,
            human,
            judge,
        )
        return LineRecord(line.number, len(line.content), item, response)

    def _system(self, raw: bytes, run: object) -> SystemRecord:
        if raw not in self._systems:
            if len(self._systems) >= _SYSTEMS_KEPT:
                self._systems.clear()
            self._systems[raw] = _plain_system(raw)
        found = self._systems[raw]
        if found is None:
            raise _NotPlain
        number = _number(run)
        return found if number == 1 else SystemRecord(found.given, found.fingerprint, number)


def _claim(claim: Any, served: set[str]) -> tuple[ClaimRecord, int]:
    """The record, and how many keys were read."""
    name, text, cited = claim["id"], claim["text"], claim.get("source_ids") or []
    if not (served.issuperset(cited) and _is_id(name)) or is_blank(text):
        raise _NotPlain
    keys, decision = len(claim), claim.get("decision")
    if _OF_ANY_CLAIM.issuperset(claim):
        return ClaimRecord(name, text, cited, decision), keys
    labels, verdicts = claim.get("human_labels"), claim.get("judge_labels")
    extra = {key: claim[key] for key in _KEPT_OF_CLAIM if key in claim}
    keys += len(labels or ()) + len(verdicts or ()) + _keys_within(extra.values())
    return ClaimRecord(name, text, cited, decision, extra, _said(labels), _said(verdicts)), keys


def _plain_system(raw: bytes) -> SystemRecord | None:
    findings = Findings()
    try:
        given = parse(raw.decode("utf-8")) if raw else None
    except (NotStrictJSON, UnicodeDecodeError):
        return None
    system = system_of(Line(1, findings), given, 1)
    return None if findings.refused or findings.notices else system


def _item(fields: Any, item_id: str, strata: dict[str, str]) -> ItemRecord:
    reason, variant_of = fields.get("unanswerable_reason"), fields.get("variant_of")
    if (
        not _is_identifier(item_id)
        or (reason is not None and fields.get("answerable") is not False)
        or (variant_of is not None and not _is_identifier(variant_of))
        or any(map(_is_blank_name, strata))
    ):
        raise _NotPlain
    return ItemRecord(
        item_id,
        fields.get("question"),
        strata,
        fields.get("answerable"),
        reason or "",
        fields.get("reference_answer"),
        fields.get("expected_documents"),
        fields.get("expected_passages"),
        variant_of or "",
        {},
        _STATED & fields.keys(),
    )


def _said(labels: dict[str, str | None] | None) -> dict[str, str]:
    if not labels:
        return {}
    said = {name: label for name, label in labels.items() if label is not None}
    if not all(map(_is_name, said)):
        raise _NotPlain
    return said


def _number(value: object) -> int:
    if value is None:
        return 1
    if type(value) is not int or not 1 <= value <= LARGEST_SAMPLE:
        raise _NotPlain
    return value


def _is_identifier(text: str) -> bool:
    return len(text) <= LONGEST_ID and text == text.strip() and not is_blank(text)


# Within a response ids, names and strata are few and the same again.
_is_id = lru_cache(maxsize=10_000)(_is_identifier)
_is_blank_name = lru_cache(maxsize=1000)(is_blank)


@lru_cache(maxsize=1000)
def _is_name(text: str) -> bool:
    return len(text) <= LONGEST_NAME and _is_identifier(text)


def _keys_in(content: bytes) -> int:
    """How many keys the JSON of a text has at most: as many as there are quotes before a colon."""
    found = content.count(b'":')
    if content.count(b":") > found:
        found += len(_SPACE_BEFORE_COLON.findall(content))
    return found


def _keys_within(values: Iterable[object], depth: int = 1) -> int:
    found = 0
    for value in values:
        if isinstance(value, dict):
            found += len(value) + _keys_within(value.values(), depth + 1)
        elif isinstance(value, list):
            found += _keys_within(value, depth + 1)
        elif type(value) is float and not -_EXACT < value < _EXACT:
            raise _NotPlain  # it may have been a whole number, which would have been kept to its last digit
    if depth > _DEEPEST:
        raise _NotPlain
    return found
