"""A lead audits extracted claims in Chromium: by keyboard, on a phone, and without JavaScript."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotate import services
from annotate.models import AuditedResponse, ClaimAudit
from tests.annotate.worlds import make_version
from tests.browser.hints import hints

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]

TWO = (
    "The ferry leaves at nine. Bicycles travel free.",
    ["The ferry leaves at nine.", "Bicycles travel free."],
)
ONE = ("Tickets cost 12 euros.", ["Tickets cost 12 euros."])
NONE = ("The timetable does not mention winter.", [])


@pytest.fixture
def sample(evalset, lead):
    version = make_version(evalset, responses=[TWO, ONE, NONE], freeze=False)
    return services.draw_audit(version=version, runs=list(version.runs.all()), size=30, seed=3, person=lead)


@pytest.fixture
def open_sample(open_as, lead, sample):
    def opened(sample=sample, **context):
        version = sample.version
        at = [version.evalset.slug, version.number, sample.number, 1]
        return open_as(lead, reverse("annotate:audited", args=at), **context)

    return opened


def audited_by(sample):
    return {
        one.response.position: (
            dict(one.claims.values_list("claim__position", "mark")),
            one.missing,
            one.note,
        )
        for one in AuditedResponse.objects.filter(sample=sample)
    }


WHOLE = {1: ({1: "well_split", 2: "not_in_response"}, 1, ""), 2: ({1: "badly_split"}, 1, ""), 3: ({}, 1, "")}
KEY = {"well_split": "1", "badly_split": "2", "not_in_response": "3"}


def now(page):
    """What the page asks: the mark of a claim of a response, or what is missing of it."""
    text = page.locator(".audited").inner_text()
    position = next(p for p, (whole, _) in enumerate([TWO, ONE, NONE], start=1) if whole == text)
    claim = page.locator("[data-claim]")
    return position, [*[TWO, ONE, NONE][position - 1][1]].index(
        claim.inner_text()
    ) + 1 if claim.count() else 0


def test_whole_audit_by_keyboard(open_sample, sample):
    page = open_sample()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    for _ in range(6):
        position, claim = now(page)
        with page.expect_navigation():
            if claim:
                page.keyboard.press(KEY[WHOLE[position][0][claim]])
            else:
                assert page.evaluate("document.activeElement.name") == "missing"
                page.keyboard.type("1")
                page.keyboard.press("Enter")
    page.get_by_text("That was the last one").wait_for()
    assert audited_by(sample) == WHOLE
    assert complaints == []


def test_whole_audit_without_script(open_sample, sample):
    page = open_sample(java_script_enabled=False, viewport={"width": 390, "height": 800})
    for _ in range(6):
        position, claim = now(page)
        if claim:
            name = ClaimAudit.Mark(WHOLE[position][0][claim]).label
            page.get_by_role("button", name=str(name)).click()
        else:
            page.get_by_label("Statements of the response").fill("1")
            page.get_by_role("button", name="Save and go on").click()
    assert audited_by(sample) == WHOLE


def test_key_held_down_or_pressed_twice_marks_one_claim(open_sample, sample):
    page = open_sample()
    while now(page) != (1, 1):
        page.get_by_role("link", name="Next").click()
    said = hints(page)
    held = []
    page.route("**/mark/", lambda route: held.append(route))
    with page.expect_request("**/mark/"):
        page.keyboard.down("1")
    page.keyboard.down("1")
    page.keyboard.up("1")
    page.keyboard.press("3")
    with page.expect_navigation():
        held[0].continue_()
    assert "the mark before is still being saved" in said()
    assert len(held) == 1
    assert list(ClaimAudit.objects.values_list("claim__position", "mark")) == [(1, "well_split")]
    assert now(page) == (1, 2)


def test_going_back_by_key(open_sample, sample):
    page = open_sample()
    while now(page) != (1, 1):
        page.get_by_role("link", name="Next").click()
    for key in ("1", "u", "2"):
        with page.expect_navigation():
            page.keyboard.press(key)
    assert list(ClaimAudit.objects.values_list("claim__position", "mark")) == [(1, "badly_split")]
    assert now(page) == (1, 2)


def test_lit_words_fold_nothing_of_a_long_response(open_sample, evalset, lead):
    """What is missing among the claims has to be looked for in all of it."""
    text = "The ferry leaves at nine. " + "It rains on the quay. " * 300
    version = make_version(evalset, responses=[(text, ["The ferry leaves at nine."])], freeze=False)
    runs = list(version.runs.all())
    page = open_sample(services.draw_audit(version=version, runs=runs, size=1, seed=3, person=lead))
    page.keyboard.press("e")
    expect(page.locator(".audited mark")).to_have_text(["ferry", "leaves", "nine"])
    expect(page.locator(".audited .gap")).to_have_count(0)
    assert page.locator(".audited").inner_text() == text


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(open_sample, width):
    page = open_sample(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
