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
        ("", "unparseable"),
        ("  \n\t", "unparseable"),
        (None, "unparseable"),
        ("supported", "unparseable"),
        ("The label is supported.", "unparseable"),
        ('So: ```json\n{"label": "supported"}\n```', "unparseable"),
        ('```json\n{"label": "supported"}\n```\n```json\n{"label": "unsupported"}\n```', "unparseable"),
        ('<think>{"label": "supported"}', "unparseable"),
        ('<think>{"label": "supported"}</think>', "unparseable"),
        ('{"label": "supported"} <think>no</think>', "unparseable"),
        ('{"label": "supported"} or rather {"label": "unsupported"}', "unparseable"),
        ('{"label": "supported"} {"label": "unsupported"}', "ambiguous"),
        ('{"label": "supported"}\n{"label": "supported"}', "ambiguous"),
        ('{"label": "supported"}, {"label": "unsupported"}', "ambiguous"),
        ('{"label": "supported", "label": "unsupported"}', "ambiguous"),
        ('{"label": "supported", "label": "supported"}', "ambiguous"),
        ('{"label": "supported"', "unparseable"),
        ('["supported"]', "unparseable"),
        ('"supported"', "unparseable"),
        ("1", "unparseable"),
        ("NaN", "unparseable"),
        ('{"label": NaN}', "unparseable"),
        ("null", "unparseable"),
        ("{}", "unparseable"),
        ('{"verdict": "supported"}', "unparseable"),
        ('{"label": 1}', "unparseable"),
        ('{"label": null}', "unparseable"),
        ('{"label": ["supported"]}', "unparseable"),
        ('{"label": {"label": "supported"}}', "unparseable"),
        ('{"label": "supported", "reason": 5}', "unparseable"),
        ('{"label": "supported", "confidence": 0.9}', "unparseable"),
        ("[" * 100_000, "unparseable"),
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


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"label": "supported"}\n```',
        '```\n{"label": "supported"}\n```\n',
        '<think>It might be {"label": "contradicted"}.</think>\n\n{"label": "supported"}',
        '<think></think>```JSON\n{"label": "supported"}\n```',
    ],
)
def test_a_fence_around_the_object_and_thoughts_before_it_are_put_aside(text):
    assert read(text).label == "supported"


def test_reason_may_be_missing():
    assert read('{"label": "supported"}').label == "supported"


def test_how_the_answer_ended_is_looked_at_first():
    """A cut-off answer is not bad JSON, even when what arrived would parse."""
    whole = '{"label": "supported"}'
    assert read(whole, finish_reason="length").failure == "truncated"
    assert read("", finish_reason="length").failure == "truncated"
    assert read('{"reason": "The pass', finish_reason="length").failure == "truncated"
    assert read(whole, finish_reason="content_filter").failure == "refused_to_judge"
    assert read(whole, refusal="I cannot help.").failure == "refused_to_judge"


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
