"""The baselines that learn from people: cross-fitted by item, seeded, never on what they are scored on."""

import pytest

from calibration.judges.trained import Text, cross_fitted, fold_of, majority_labels

LABELS = ("supported", "contradicted", "unsupported", "unverifiable")


def claims(n=200):
    """Every second claim repeats its passage, the others name a number that is not there."""
    texts, labels, items = [], [], []
    for number in range(n):
        good = number % 2 == 0
        passage = f"The valve of pump {number} opens at {number + 10} bar in summer."
        said = passage if good else f"The valve of pump {number} closes at {number + 5000} bar in winter."
        texts.append(Text(said, "When does it open?", (passage, "Another passage about something else.")))
        labels.append("supported" if good else "contradicted")
        items.append(f"item {number // 2}")
    return texts, labels, items


def test_it_learns_what_the_words_numbers_and_passages_tell():
    texts, labels, items = claims()
    guesses = cross_fitted(texts, labels, items, seed=1)
    right = sum(guess.label == label for guess, label in zip(guesses, labels, strict=True))
    assert right / len(labels) > 0.95
    assert all(0.5 <= guess.share <= 1 for guess in guesses)


def test_it_is_the_same_again_for_the_same_seed():
    texts, labels, items = claims(60)
    assert cross_fitted(texts, labels, items, seed=4) == cross_fitted(texts, labels, items, seed=4)


def test_a_label_of_the_item_itself_changes_nothing():
    """What is scored is never learnt from: the guess of an item is the same whatever people said of it."""
    texts, labels, items = claims(60)
    turned = ["unsupported" if item == "item 3" else label for item, label in zip(items, labels, strict=True)]
    before, after = (cross_fitted(texts, said, items, seed=2) for said in (labels, turned))
    own = [row for row, item in enumerate(items) if item == "item 3"]
    assert [before[row] for row in own] == [after[row] for row in own]
    assert before != after, "items of other folds did learn from it"
    counted = [majority_labels(said, items, order=LABELS, seed=2) for said in (labels, turned)]
    assert [counted[0][row] for row in own] == [counted[1][row] for row in own]


def test_items_are_dealt_whole_into_folds_of_similar_size():
    folds = [fold_of(f"item {number}", seed=0) for number in range(1000)]
    assert {folds.count(fold) > 150 for fold in range(5)} == {True}
    assert folds == [fold_of(f"item {number}", seed=0) for number in range(1000)]
    assert folds != [fold_of(f"item {number}", seed=1) for number in range(1000)]


def test_targets_without_a_label_get_one_and_teach_nothing():
    texts, labels, items = claims(80)
    some = [label if row < 60 else None for row, label in enumerate(labels)]
    guesses = cross_fitted(texts, some, items, seed=1)
    assert all(guesses) and max(guess.learnt_from for guess in guesses) < 60


def test_where_only_one_label_is_known_it_is_that_and_where_none_is_there_is_no_guess():
    texts, _labels, items = claims(40)
    same = cross_fitted(texts, ["supported"] * 40, items, seed=1)
    assert {guess.label for guess in same} == {"supported"}
    assert cross_fitted(texts, [None] * 40, items, seed=1) == [None] * 40
    assert majority_labels([None] * 40, items, order=LABELS, seed=1) == [None] * 40
    one_item = cross_fitted(texts[:2], ["supported", "contradicted"], ["a", "a"], seed=1)
    assert one_item == [None, None], "its own item is all that is known"


def test_of_equally_frequent_labels_the_first_of_the_rubric_is_taken():
    guesses = majority_labels(
        ["unsupported", "supported"] * 20, [f"i{n // 2}" for n in range(40)], order=LABELS, seed=0
    )
    assert {(guess.label, guess.share) for guess in guesses} == {("supported", 0.5)}


@pytest.mark.parametrize("text", ["", "!?", "你好", "\u200b"])
def test_texts_without_words_do_no_harm(text):
    texts = [Text(text, text, (text,)) for _number in range(40)]
    labels = ["supported", "unsupported"] * 20
    guesses = cross_fitted(texts, labels, [f"i{number}" for number in range(40)], seed=0)
    assert len(guesses) == 40
    assert {guess.label for guess in guesses} <= set(LABELS)
