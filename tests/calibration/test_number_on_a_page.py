"""How one figure reads on a page."""

import pytest
from django.template import Context, Template

from calibration.stats import clustered_rate
from calibration.stats.results import beside, written_bar
from calibration.templatetags import figures

TEMPLATE = "{% load figures %}{% number figure %}"


def shown(figure):
    return " ".join(Template(TEMPLATE).render(Context({"figure": figure.as_dict()})).split())


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
