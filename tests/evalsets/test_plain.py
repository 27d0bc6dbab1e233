"""A plain line becomes what the rules make of it; whatever else it is, the rules decide."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evalsets.importing.findings import Findings
from evalsets.importing.jsonl import RowReader
from evalsets.importing.plain import PlainLines
from evalsets.importing.reading import RawLine
from evalsets.importing.validate import record_of
from tests.evalsets.files import line


def by_rules(content: bytes, *, items_known: bool = False):
    findings = Findings()
    row = RowReader(findings).row_of(RawLine(1, 0, content))
    record = record_of(row, findings, items_known=items_known) if row else None
    return record, findings


def shown(record) -> str:
    stateless = replace(record.item, stated=frozenset())  # a set has no order
    return repr(replace(record, item=stateless))


def plainly(content: bytes, *, items_known: bool = False):
    return PlainLines(items_known=items_known).record_of(RawLine(1, 0, content))


def agree(content: bytes, *, items_known: bool = False) -> bool:
    """Whether the line is plain; if so, it is to be what the rules make of it, to the type of each number."""
    record = plainly(content, items_known=items_known)
    if record is None:
        return False
    expected, findings = by_rules(content, items_known=items_known)
    assert not findings.refused and not findings.notices
    assert record == expected
    assert shown(record) == shown(expected)  # 1, 1.0 and true are equal to Python, too
    return True


WHOLE = line(
    id="r1",
    item_id="q1",
    strata={"language": "de"},
    answerable=False,
    unanswerable_reason="false_premise",
    reference_answer="",
    expected_documents=["d"],
    expected_passages=[],
    variant_of="q1-en",
    context=[
        {"id": "p1", "text": "t \u00e9 \u0001", "title": "T", "document": "d"},
        {"id": "p 2", "text": ""},
    ],
    system={"model": None, "name": "n", "settings": {"k": 1.5}},
    run=2,
    retrieval_query="trial",
    sample=3,
    claims=[
        {
            "id": "c1",
            "text": "x",
            "source_ids": ["p1"],
            "decision": True,
            "human_labels": {"ana": "supported", "ben": None},
            "judge_labels": {"gpt": "unsupported"},
            "original": {"a": [1, 2.5, None, True, {"b": -0.0}]},
            "meta": [1],
        },
        {"id": "c2", "text": "y"},
    ],
    response_labels={"ana": "ANSWERED"},
    response_judge_labels={"gpt": "REFUSED"},
    source_dataset="s",
    source_ref=7,
    original=[1],
    meta={"m": 1},
)


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("colon", [":", ": ", " : ", "\t:"])
def test_a_line_with_every_field_is_plain(ascii_only, colon):
    text = json.dumps(WHOLE, ensure_ascii=ascii_only, separators=(", ", colon))
    assert agree(text.encode())
    assert agree(text.encode(), items_known=True)


def test_a_line_of_a_known_item_needs_no_question():
    content = json.dumps(line(question=...)).encode()
    assert not agree(content)
    assert agree(content, items_known=True)


def changed(path: tuple, value: object) -> dict:
    """A copy of the whole line with another value at one place."""
    whole = json.loads(json.dumps(WHOLE))
    inner = whole
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return whole


PLACES = [
    *((name,) for name in (*WHOLE, "stratum", "item_extra", "unknown")),
    *(("context", 0, name) for name in ("id", "text", "title", "document", "nul_at", "extra")),
    *(("claims", 0, name) for name in (*WHOLE["claims"][0], "extra", "unknown")),
    ("claims", 0, "human_labels", "ana"),
    ("claims", 0, "human_labels", " ana"),
    ("strata", ""),
    ("strata", "language"),
    ("system", "model"),
    ("system", "unknown"),
    ("system", "settings"),
    ("response_labels", "ana"),
]
ODD = [
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    1.5,
    -0.0,
    2**31,
    2**53,
    2**64,
    10**30,
    1e16,
    1e300,
    "",
    " ",
    "x",
    " x",
    "x\u200b",
    "\u200b",
    "p1",
    "q1",
    "Supported",
    "supported",
    "x" * 201,
    "x" * 501,
    "\U0001f600",
    [],
    {},
    [""],
    ["p1"],
    ["p1", 1],
    {"": ""},
    {"a": {"b": 1}},
    [[[[[]]]]],
    {"id": "x", "text": "y"},
    [{"id": "x", "text": "y"}],
    [{"id": "x", "text": "y"}, {"id": "x", "text": "z"}],
    'a": b',
    "\u4e2d :",
    {'a":': 1},
]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
@pytest.mark.parametrize("items_known", [False, True])
def test_an_odd_value_is_left_to_the_rules_or_read_as_they_read_it(place, items_known):
    for value in ODD:
        for ascii_only in (True, False):
            text = json.dumps(changed(place, value), ensure_ascii=ascii_only)
            agree(text.encode(), items_known=items_known)


@pytest.mark.parametrize(
    "written",
    [
        '"meta": NaN',
        '"meta": Infinity',
        '"meta": 1e999',
        '"meta": -0',
        '"meta": 0e0',
        '"meta": 1E400',
        '"meta": 123456789012345678901234567890',
        '"meta": -123456789012345678901234567890',
        '"meta": 00',
        '"meta": 18446744073709551616',
        '"meta": 18446744073709551615',
        '"meta": -9223372036854775809',
        '"meta": 0.1000000000000000055511151231257827',
        '"meta": 5e-324',
        '"meta": 9007199254740993.0',
        '"meta": "\\ud800"',
        '"meta": "\\u0000"',
        '"meta": "\\ud83d\\ude00"',
        '"meta": "\\uD83D"',
        '"meta": "\\x"',
        '"meta": {"a": 1, "a": 1}',
        '"meta": {"a": 1, "a" : 1}',
        '"meta": {"a": {"b": 1, "b": 2}}',
        '"meta": "tab\there"',
        "\"meta\": 'x'",
        '"meta": tru',
        '"meta": [1,]',
        '"meta": 1} {',
        '"meta": {"a":: 1}',
        '"system": {"model": "a", "model": "b"}',
        '"system": {"model": "x\ty"}',
        '"system": nul',
        '"system": {"settings": {"t": 1e999}}',
        '"system": {"name": "\\ud800"}',
        '"id": "again"',
        '"id" : "again"',
        '"response": "again"',
        '"context": [{"id": "p", "text": "t", "text": "u"}]',
        '"unknown": {"a": 1',
        '"meta": ' + "[" * 40 + "]" * 40,
        '"meta": ' + "[" * 70 + "]" * 70,
        '"meta": ' + "[" * 5000 + "]" * 5000,
        '"meta": {"\\u0000": 1}',
        '"sample": 1.0',
        '"sample": true',
        '"claims": [{"id": "c1", "text": "x", "human_labels": {"a": "supported", "a": "supported"}}]',
    ],
)
def test_what_json_does_not_say_once_and_clearly_is_left_to_the_rules(written):
    text = '{"id": "r1", "question": "q", "response": "r", ' + written + "}"
    agree(text.encode())


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        b'{"id": "\xff"}',
        b"",
        b" ",
        b"[]",
        b"null",
        b'{"id": "a", "question": "\xed\xa0\x80", "response": ""}',
    ],
)
def test_bytes_that_are_no_line_are_left_to_the_rules(content):
    assert plainly(content) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(place=st.sampled_from(PLACES), value=VALUES, ascii_only=st.booleans(), spaced=st.booleans())
def test_any_value_anywhere(place, value, ascii_only, spaced):
    colon = " : " if spaced else ":"
    text = json.dumps(changed(place, value), ensure_ascii=ascii_only, separators=(",", colon))
    agree(text.encode("utf-8", "surrogatepass"))
