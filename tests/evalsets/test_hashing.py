"""Canonical JSON and set hashes."""

import hashlib
import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsets.hashing import canonical_json, fingerprint, item_content, response_content, set_hash

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def test_a_value_has_the_hash_of_its_canonical_text():
    assert canonical_json({"b": [1.0, None], "a": "ä\u0301"}) == '{"a":"ä\u0301","b":[1,null]}'
    assert fingerprint("x") == hashlib.sha256(b'"x"').hexdigest()


@given(values)
def test_a_trip_through_a_database_changes_nothing(value):
    """PostgreSQL gives numbers back as decimals without exponent, SQLite as they were written."""

    def as_postgresql(part):
        if isinstance(part, dict):
            return {key: as_postgresql(inner) for key, inner in part.items()}
        if isinstance(part, list):
            return [as_postgresql(inner) for inner in part]
        if isinstance(part, float):
            from decimal import Decimal

            return json.loads(format(Decimal(repr(part)), "f"))
        return part

    assert canonical_json(as_postgresql(value)) == canonical_json(value)
    assert canonical_json(json.loads(json.dumps(value))) == canonical_json(value)


@given(st.dictionaries(texts, values, max_size=5))
def test_order_does_not_matter(entries):
    assert set_hash(entries.items()) == set_hash(reversed(list(entries.items())))


def test_another_name_or_value_is_another_hash():
    hashes = {
        set_hash([("a", 1), ("b", 2)]),
        set_hash([("a", 2), ("b", 1)]),
        set_hash([("a", 1)]),
        set_hash([("a", 1), ("c", 2)]),
        set_hash([]),
    }
    assert len(hashes) == 5


def item(**changed):
    fields = {
        "item_id": "q",
        "question": "?",
        "strata": {},
        "answerable": None,
        "unanswerable_reason": "",
        "reference_answer": None,
        "expected_documents": None,
        "expected_passages": None,
        "variant_of": "",
        "extra": {},
    }
    return SimpleNamespace(**(fields | changed))


@pytest.mark.parametrize(
    "changed",
    [
        {"question": None},
        {"question": ""},
        {"question": "\u00e9"},
        {"question": "e\u0301"},
        {"strata": {"a": "b"}},
        {"answerable": True},
        {"answerable": False},
        {"answerable": False, "unanswerable_reason": "false_premise"},
        {"reference_answer": ""},
        {"expected_documents": []},
        {"expected_passages": []},
        {"variant_of": "p"},
        {"extra": {"original": None}},
    ],
)
def test_every_field_of_an_item_counts(changed):
    assert fingerprint(item_content(item(**changed))) != fingerprint(item_content(item()))


def test_every_part_of_a_response_counts():
    def content(
        text="r", query=None, passage="t", claim="c", sample=1, title=None, sources=(), decision=None
    ):
        return fingerprint(
            response_content(
                SimpleNamespace(response_id="r", sample=sample, text=text, retrieval_query=query, extra={}),
                item_id="q",
                passages=[
                    SimpleNamespace(passage_id="p", title=title, document=None, text=passage, extra={})
                ],
                claims=[
                    SimpleNamespace(
                        claim_id="c1", text=claim, source_ids=list(sources), decision=decision, extra={}
                    )
                ],
            )
        )

    changed = [
        content(),
        content(text=""),
        content(query=""),
        content(passage=""),
        content(claim="d"),
        content(sample=2),
        content(title=""),
        content(sources=["p"]),
        content(decision=False),
    ]
    assert len(set(changed)) == len(changed)
