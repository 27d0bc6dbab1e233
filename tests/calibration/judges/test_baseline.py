"""The two judges without a model: what they do, and how they are wrong."""

import pytest

from calibration.judges.baseline import lexical_client, lexical_label, phrase_client, phrase_label
from calibration.judges.parsing import read_answer
from calibration.judges.prompts import Served, Target
from evalsets.labels import ABSTENTION, GROUNDING
from tests.calibration.judges.conftest import prompt

PASSAGES = (
    Served("Returns are free within 30 days of delivery."),
    Served("Die Fähre nach Amrum fährt täglich um 9 Uhr."),
)


def label_of(claim, passages=PASSAGES):
    return lexical_label(Target("q", "r", claim, passages))[0]


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("Returns are free within 30 days.", "supported"),
        ("Die Fähre fährt täglich nach Amrum.", "supported"),
        ("Returns are free within 60 days.", "contradicted"),
        ("Returns are not free within 30 days.", "contradicted"),
        ("The shop sells garden furniture.", "unsupported"),
        ("It is.", "unverifiable"),
        ("!!!", "unverifiable"),
    ],
)
def test_lexical_baseline_counts_shared_words_numbers_and_negations(claim, label):
    assert label_of(claim) == label


def test_lexical_baseline_without_a_passage():
    assert label_of("Returns are free.", ()) == "unsupported"


def test_lexical_baseline_is_poor_and_this_is_how():
    """A rewording shares no words; turned-round words share all of them."""
    assert label_of("You can send an item back at no cost for a month.") == "unsupported"
    assert label_of("Delivery is free within 30 days of returns.") == "supported"


def test_the_words_of_one_passage_must_do():
    parts = (Served("ferry leaves harbour"), Served("morning island daily"))
    assert label_of("ferry leaves harbour morning island daily", parts) == "unsupported"


def refusal_of(text):
    return phrase_label(Target("q", text, None, ()))[0]


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The documents do not contain information about parking.", "REFUSED"),
        ("I could not find anything on that in the sources.", "REFUSED"),
        ("I don't know.", "REFUSED"),
        ("Die Dokumente enthalten dazu keine Angaben.", "REFUSED"),
        ("Das geht aus den Quellen leider nicht hervor.", "REFUSED"),
        ("Diese Frage kann ich nicht beantworten.", "REFUSED"),
        ("Which plan do you mean?", "CLARIFY"),
        ("Could you tell me which region you are in?", "CLARIFY"),
        ("Welche Fassung meinen Sie?", "CLARIFY"),
        ("The pass costs 9 euros.", "ANSWERED"),
        ("It may be around 9 euros, but please check.", "ANSWERED"),
        ("Vermutlich drei Tage, ohne Gewähr.", "ANSWERED"),
        ("Anything else?", "ANSWERED"),
    ],
)
def test_phrase_matcher_english_german_and_hedges(text, label):
    assert refusal_of(text) == label


def test_phrase_matcher_is_poor_and_this_is_how():
    """A refusal that goes on to advise is ANSWERED, which phrases cannot tell; nor who it is that cannot."""
    assert refusal_of("The sources do not mention it. Just reset the router twice.") == "REFUSED"
    assert refusal_of("If you cannot find the button, press F5.") == "REFUSED"


def test_a_long_text_with_a_phrase_of_refusing_is_taken_for_an_answer():
    assert refusal_of("The sources do not mention it. " + "Go on like this. " * 20) == "ANSWERED"


def test_their_answers_go_through_the_parser_of_every_judge():
    for client, dimension, labels in (
        (lexical_client(), "grounding", GROUNDING),
        (phrase_client(), "abstention", ABSTENTION),
    ):
        answer = client.ask(prompt(dimension), timeout=1)
        reading = read_answer(text=answer.text, finish_reason="stop", refusal=None, labels=labels)
        assert reading.label in labels


def test_the_same_target_gives_the_same_answer():
    assert lexical_client().ask(prompt(), timeout=1) == lexical_client().ask(prompt(), timeout=1)
