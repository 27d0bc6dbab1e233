"""How one figure reads on a page."""

from dataclasses import replace

import numpy as np
import pytest
from django.template import Context, Template
from django.template.loader import render_to_string

from calibration import words
from calibration.stats import GROUNDING_LABELS, clustered_rate, invert_confusion
from calibration.stats.results import FLAGS, UNDEFINED_REASONS, beside, written_bar
from calibration.templatetags import figures

TEMPLATE = "{% load figures %}{% number figure %}"


def shown(figure):
    return " ".join(Template(TEMPLATE).render(Context({"figure": figure.as_dict()})).split())


def test_every_warning_and_reason_has_words_on_the_pages():
    assert words.FLAGS.keys() == FLAGS.keys()
    assert words.UNDEFINED.keys() == UNDEFINED_REASONS.keys()


def test_a_corrected_rate_stands_with_what_it_rests_on():
    """EX-MC2, where the unconstrained solution has a negative share."""
    gold, judge = [], []
    for i, row in enumerate(((104, 2, 12, 2), (2, 18, 4, 0), (8, 3, 25, 2), (1, 0, 4, 13))):
        for j, count in enumerate(row):
            gold += [GROUNDING_LABELS[i]] * count
            judge += [GROUNDING_LABELS[j]] * count
    rest = [label for label, n in zip(GROUNDING_LABELS, (700, 10, 250, 40), strict=True) for _ in range(n)]
    inverted = invert_confusion(gold, judge, rest, rng=np.random.default_rng(9)).hallucination
    share = clustered_rate([1] * 3 + [0] * 17, [1] * 20, label="Bad share", unit="claim")
    clipped = replace(share, flags=("clipped",))
    corrected = {"corrected": clipped.as_dict(), "raw": share.as_dict(), "n_without_gold": 1000}
    corrected |= {"hallucination": inverted.as_dict(), "method": "rogan_gladen", "why": []}
    text = " ".join(render_to_string("calibration/_corrected.html", {"corrected": corrected}).split())
    for part in (words.FLAGS["clipped"], words.FLAGS["on_simplex"], "n = 1000"):
        assert str(part) in text


def test_share_is_shown_with_its_interval():
    text = shown(
        clustered_rate([1, 0, 0, 0], [1, 1, 1, 1], clusters=["a", "b", "c", "d"], label="Rate", unit="claim")
    )
    assert "25.0" in text
    assert "no interval" not in text


def test_share_of_a_single_item_is_never_a_bare_percentage():
    text = shown(clustered_rate([1], [1], clusters=["a"], label="Rate", unit="claim"))
    assert "(1 of 1)" in text
    assert "no interval" in text


@pytest.mark.parametrize(
    ("value", "bar", "written"),
    [(0.5996, 0.6, "0.5996"), (0.59996, 0.6, "0.59996"), (0.6, 0.6, "0.600"), (0.6004, 0.6, "0.600")],
)
def test_a_value_below_its_bar_never_reads_like_the_bar(value, bar, written):
    assert beside(value, bar) == written
    assert (float(written) >= bar) == (value >= bar)


def test_a_bar_keeps_all_its_digits():
    assert [written_bar(bar) for bar in (0.6, -0.1, 0.625)] == ["0.60", "-0.10", "0.625"]


def test_a_condition_that_fails_by_little_is_not_printed_as_its_bar():
    low = {"name": "judge_agreement", "value": 0.5962, "threshold": 0.6, "passed": False}
    assert (figures.measured(low), figures.bar(low)) == ("0.596", "≥ 0.60")
    share = {"name": "valid_verdicts", "value": 2939 / 3000, "threshold": 0.98, "passed": False}
    assert figures.measured(share) == "97.97\u202f%", "97.9667 % would be written like the 98.0 % it misses"
    far = {"name": "judge_agreement", "value": 0.5, "threshold": 0.6, "passed": False}
    assert figures.measured(far) == "0.50"
    assert (figures.told_from(0.6996, 0.7), figures.told_from(0.7, 0.7), figures.told_from(0.5, 0.7)) == (
        "(0.6996)",
        "",
        "",
    )
