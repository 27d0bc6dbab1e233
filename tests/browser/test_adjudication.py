"""The lead goes through the queue of disagreements with the keyboard alone."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotate import services
from annotate.models import Adjudication, GoldLabel, RubricTask
from tests.annotate.worlds import make_round, make_version, response_of, say
from tests.browser.hints import hints
from tests.browser.looking import check_accessible

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def three(evalset, grader_a, grader_b):
    """Three responses about which two graders differ."""
    round = make_round(make_version(evalset, responses=[("A ferry.", [])] * 3), grader_a, grader_b)
    for position in (1, 2, 3):
        say(round, grader_a, position, "REFUSED", evidence=[2])
        say(round, grader_b, position, "ANSWERED")
    return round


@pytest.fixture
def queue(three, lead, open_as):
    """The lead's page of the first of them."""
    return open_as(lead, place(three, 1))


def place(round, position):
    version = round.version
    at = [version.evalset.slug, version.number, round.number, "abstention", response_of(round, position).pk]
    return reverse("annotate:adjudicate", args=at)


def at(page, round, position):
    page.wait_for_url(lambda url: place(round, position) in url)


def test_queue_by_keyboard_alone(queue, three):
    page = queue
    page.keyboard.press("j")
    at(page, three, 2)
    page.keyboard.press("k")
    at(page, three, 1)
    assert not Adjudication.objects.exists()
    page.keyboard.press("2")
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.keyboard.press("n")
    page.keyboard.type("a j k u z in a note are letters")
    page.keyboard.press("Control+Enter")
    at(page, three, 2)
    entry = Adjudication.objects.get()
    assert (entry.label, entry.reason, entry.note) == (
        "ANSWERED",
        "guideline_gap",
        "a j k u z in a note are letters",
    )
    assert RubricTask.objects.get().adjudication == entry
    page.keyboard.press("u")
    at(page, three, 1)
    page.keyboard.press("z")
    page.keyboard.type("wrong key")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Taken back: what held before holds again.")).to_be_visible()
    assert Adjudication.objects.get(revokes=entry).note == "wrong key"
    assert not GoldLabel.objects.exists()


def test_page_names_the_marked_passages_and_passes_axe(queue):
    page = queue
    expect(page.locator(".evidence .marked")).to_have_count(1)
    check_accessible(page)


def test_enter_pressed_twice_is_one_decision(queue, three):
    page = queue
    said = hints(page)
    held = []
    page.route("**/disagreements/**", lambda route: held.append(route))
    page.keyboard.press("2")
    page.keyboard.press("g")
    with page.expect_request("**/disagreements/**"):
        page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    held[0].continue_()
    at(page, three, 2)
    assert "still being saved" in said()
    assert Adjudication.objects.count() == len(held) == 1


def test_every_key_of_a_split_claim_does_something(open_as, evalset, grader_a, grader_b, lead):
    """Nothing can be decided there, so no key of a decision is bound or shown."""
    version = make_version(evalset, responses=[("A ferry.", ["A ferry."])])
    round = make_round(version, grader_a, grader_b)
    for person, label in ((grader_a, "supported"), (grader_b, "unsupported")):
        say(round, person, 1, label, "ANSWERED")
    claim = response_of(round, 1).claims.get()
    parts = [("A ferry", "supported"), ("sails", "unsupported")]
    services.split_claim(round=round, claim=claim, parts=parts, person=lead)
    page = open_as(
        lead,
        reverse(
            "annotate:adjudicate",
            args=[version.evalset.slug, version.number, round.number, "grounding", claim.pk],
        ),
    )
    for key, sheet in (("?", "#keys-sheet"), ("r", "#rubric")):
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_visible()
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_hidden()
    page.keyboard.press("e")
    expect(page.locator("[data-action=evidence]")).to_have_attribute("aria-pressed", "true")
    bound = page.evaluate("JSON.parse(document.getElementById('keys').textContent).map(k => k.action)")
    assert not {"decide", "note", "for-rubric", "own-split", "label-supported"} & set(bound)
