"""How one figure reads on a page."""

from django.template import Context, Template

from calibration.stats import clustered_rate

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
