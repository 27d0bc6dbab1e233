"""Every answer that is not exactly what was asked for is a failure of its own kind, and never a label."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibration.judges.parsing import read_answer
from calibration.judges.prompts import answer_schema
from calibration.models import Verdict
from evalsets.labels import ABSTENTION, GROUNDING, LABELS

LABEL_WORDS = set(GROUNDING) | set(ABSTENTION)


def read(text, labels=GROUNDING, finish_reason="stop", refusal=None):
    return read_answer(text=text, finish_reason=finish_reason, refusal=refusal, labels=labels)


@pytest.mark.parametrize("dimension", LABELS)
def test_every_label_offered_is_a_label_accepted(dimension):
    """One source: the menu of the schema and the parser's labels are the same tuple in the same order."""
    menu = answer_schema(LABELS[dimension])["properties"]["label"]["enum"]
    for label in menu:
        answer = json.dumps({"reason": "so", "label": label})
        assert read(answer, LABELS[dimension]).label == label
    assert tuple(menu) == LABELS[dimension]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("", "empty_answer"),
        ("  \n\t", "empty_answer"),
        (None, "empty_answer"),
        ("supported", "invalid_json"),
        ("The label is supported.", "invalid_json"),
        ('```json\n{"label": "supported"}\n```', "invalid_json"),
        ('{"label": "supported"} {"label": "unsupported"}', "invalid_json"),
        ('{"label": "supported"}\n{"label": "supported"}', "invalid_json"),
        ('{"label": "supported", "label": "unsupported"}', "invalid_json"),
        ('{"label": "supported", "label": "supported"}', "invalid_json"),
        ('{"label": "supported"', "invalid_json"),
        ('["supported"]', "invalid_json"),
        ('"supported"', "invalid_json"),
        ("1", "invalid_json"),
        ("NaN", "invalid_json"),
        ('{"label": NaN}', "invalid_json"),
        ("null", "invalid_json"),
        ("{}", "invalid_json"),
        ('{"verdict": "supported"}', "invalid_json"),
        ('{"label": 1}', "invalid_json"),
        ('{"label": null}', "invalid_json"),
        ('{"label": ["supported"]}', "invalid_json"),
        ('{"label": {"label": "supported"}}', "invalid_json"),
        ('{"label": "supported", "reason": 5}', "invalid_json"),
        ('{"label": "supported", "confidence": 0.9}', "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ('{"label": "Supported"}', "off_menu"),
        ('{"label": " supported"}', "off_menu"),
        ('{"label": "mostly supported"}', "off_menu"),
        ('{"label": "REFUSED"}', "off_menu"),
        ('{"label": ""}', "off_menu"),
        ('{"label": "undetermined"}', "off_menu"),
    ],
)
def test_what_is_not_one_object_with_an_offered_label_fails(text, failure):
    reading = read(text)
    assert (reading.label, reading.failure) == ("", failure)


def test_reason_may_be_missing():
    assert read('{"label": "supported"}').label == "supported"


def test_how_the_answer_ended_is_looked_at_first():
    """A cut-off answer is not bad JSON, even when what arrived would parse."""
    whole = '{"label": "supported"}'
    assert read(whole, finish_reason="length").failure == "truncated"
    assert read("", finish_reason="length").failure == "truncated"
    assert read('{"reason": "The pass', finish_reason="length").failure == "truncated"
    assert read(whole, finish_reason="content_filter").failure == "refused"
    assert read(whole, refusal="I cannot help.").failure == "refused"


def test_the_offending_label_is_named():
    assert "'mostly'" in read('{"label": "mostly"}').detail


def test_failure_kinds_are_known_to_the_database_and_are_no_labels():
    kinds = set(Verdict.Failure.values)
    assert {read(text).failure for text in ("", "x", '{"label": "x"}')} <= kinds
    assert not kinds & LABEL_WORDS


@given(st.text() | st.sampled_from([f"not {label}" for label in GROUNDING]))
def test_no_label_is_ever_taken_from_prose(text):
    try:
        json.loads(text)
    except ValueError:
        reading = read(text)
        assert reading.label == ""
        assert reading.failure


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_json_gives_a_label_or_a_failure_but_not_both(value):
    reading = read(json.dumps(value))
    assert bool(reading.label) != bool(reading.failure)
    assert reading.label in ("", *GROUNDING)
