"""Rates from columns of numbers are those from words, and those that come of counting claim by claim."""

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration import stats
from calibration.stats.abstention import VERDICTS
from calibration.stats.labels import GROUNDING_LABELS, QUESTION_CLASSES, UNANSWERABLE_REASONS

BAD = {"contradicted", "unsupported"}


def positions(words, known):
    return np.array([-1 if word is None else known.index(word) for word in words], dtype=np.int64)


class Drawn:
    """Responses with their items and verdicts, and claims, some of them without a label."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.responses = chance.sample(range(100), k=chance.randint(1, 9))
        self.items = [chance.randrange(5) for _ in self.responses]
        self.verdicts = [chance.choice([*VERDICTS, None]) for _ in self.responses]
        claims = range(chance.randint(0, 25))
        self.of = [chance.choice(self.responses) for _ in claims]
        self.labels = [chance.choice([*GROUNDING_LABELS, "supported", None]) for _ in claims]
        self.decision = [chance.random() < 0.5 for _ in claims]
        self.reasons = [
            "" if label else chance.choice(["not_labelled", "split", ""]) for label in self.labels
        ]
        kinds = [("answerable", None), (None, None)]
        kinds += [(stats.question_class(False, reason), reason) for reason in UNANSWERABLE_REASONS]
        self.classes, self.why = zip(*(chance.choice(kinds) for _ in self.responses), strict=True)

    def in_words(self, unit):
        return stats.hallucination_rates(
            self.labels,
            self.of,
            responses=self.responses,
            items=self.items,
            verdicts=self.verdicts,
            decision=self.decision,
            missing_reason=self.reasons,
            unit=unit,
        )

    def in_columns(self, unit):
        return stats.hallucination_rates(
            positions(self.labels, GROUNDING_LABELS),
            np.array(self.of, dtype=np.int64),
            responses=np.array(self.responses),
            items=np.array(self.items),
            verdicts=positions(self.verdicts, VERDICTS),
            empty=np.array([verdict == "EMPTY" for verdict in self.verdicts]),
            decision=np.array(self.decision, dtype=bool),
            missing_reason=np.array(self.reasons, dtype=object),
            unit=unit,
        )


def shares(figures):
    """Every number in the figures, by its path."""
    if isinstance(figures, dict):
        return {
            (name, *path): value for name, part in figures.items() for path, value in shares(part).items()
        }
    if isinstance(figures, list | tuple):
        return shares(dict(enumerate(figures)))
    return {(): figures}


def assert_alike(one, other):
    """The same but for rounding: items are added up in another order."""
    ours, theirs = shares(one), shares(other)
    assert ours.keys() == theirs.keys()
    for path, value in ours.items():
        wanted = theirs[path]
        assert value == (pytest.approx(wanted, abs=1e-12) if isinstance(wanted, float) else wanted), path


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9), unit=st.sampled_from(["claim", "decision", "response"]))
def test_columns_give_the_rates_that_words_give(seed, unit):
    drawn = Drawn(seed)
    assert_alike(drawn.in_columns(unit).as_dict(), drawn.in_words(unit).as_dict())
    of_words = stats.abstention_rates(drawn.classes, drawn.verdicts, reason=drawn.why, clusters=drawn.items)
    of_columns = stats.abstention_rates(
        positions(drawn.classes, QUESTION_CLASSES),
        positions(drawn.verdicts, VERDICTS),
        reason=positions(drawn.why, UNANSWERABLE_REASONS),
        clusters=np.array(drawn.items),
    )
    assert_alike(of_columns.as_dict(), of_words.as_dict())


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_claims_are_counted_as_one_after_the_other(seed):
    drawn = Drawn(seed)
    found = drawn.in_columns("claim")
    given = Counter(drawn.labels)
    bad, missing = sum(given[label] for label in BAD), given[None]
    checkable = bad + given["supported"]
    assert (found.hallucination.numerator, found.hallucination.denominator) == (bad, checkable)
    assert found.unverifiable_share.numerator == given["unverifiable"]
    assert found.missing == Counter(
        reason or "unlabelled" for label, reason in zip(drawn.labels, drawn.reasons, strict=True) if not label
    )
    if missing:
        whole = checkable + missing
        assert found.hallucination.worst_case == (bad / whole, (bad + missing) / whole)
    answered = {
        one for one, verdict in zip(drawn.responses, drawn.verdicts, strict=True) if verdict == "ANSWERED"
    }
    assert found.extraction_gaps == tuple(one for one in drawn.responses if one in answered - set(drawn.of))
    items = dict(zip(drawn.responses, drawn.items, strict=True))
    with_checkable = {
        items[of] for of, label in zip(drawn.of, drawn.labels, strict=True) if label in BAD | {"supported"}
    }
    assert found.hallucination.clusters == len(with_checkable)


def test_a_claim_of_an_unknown_response_is_refused_by_its_number():
    for unknown in (5, 99):
        with pytest.raises(ValueError, match=f"response holds {unknown}, which is not one of responses"):
            stats.hallucination_rates(np.array([0, 0]), np.array([7, unknown]), responses=np.array([7, 3]))
    with pytest.raises(ValueError, match="the same response twice"):
        stats.hallucination_rates(np.array([0]), np.array([7]), responses=np.array([7, 7]))
