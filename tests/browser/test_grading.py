"""The grader's job in a real browser."""

import time

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotate import services
from annotate.models import Adjudication, Annotation, AnnotationEvent, Assignment, ClaimSplit, Flag
from tests.annotate.worlds import grader_of, make_round, make_version, response_of, say
from tests.browser.looking import DESK, PHONE, check_accessible, no_overflow

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def round(evalset, grader_a, grader_b):
    return make_round(make_version(evalset), grader_a, grader_b)


def grade_path(round, person=None, position=None):
    path = reverse("annotate:grade", args=[round.pk])
    if position is None:
        return path
    own = Assignment.objects.get(round=round, grader=grader_of(round, person), response__position=position)
    return f"{path}?at={own.pk}"


def adjudicate_path(round, position):
    version, claim = round.version, response_of(round, position).claims.get()
    place = [version.evalset.slug, version.number, round.number, "grounding", claim.pk]
    return reverse("annotate:adjudicate", args=place)


def saved(page):
    """Waits until the page says that a label is saved."""
    expect(page.locator("#kept")).to_contain_text("Saved")


def submit_key(page):
    return page.locator("#label-form [name=key]").input_value()


def wait_for_change(page, before):
    """Until the server has answered: what is shown ahead of its answer has no key yet."""
    page.wait_for_function(
        "before => { const key = document.querySelector('#label-form [name=key]')?.value;"
        " return key !== '' && key !== before; }",
        arg=before,
    )


def press_and_wait(page, key):
    """Press a key that changes the screen, and wait for the next one."""
    before = submit_key(page)
    page.keyboard.press(key)
    wait_for_change(page, before)


def labels_of(round, person):
    return list(
        Annotation.objects.filter(round=round, grader=grader_of(round, person)).values_list(
            "dimension", "label"
        )
    )


# By keyboard alone


def test_whole_job_by_keyboard(round, live_server, page, grader_a):
    page.goto(live_server.url + "/login/")
    page.locator("[name=username]").focus()
    page.keyboard.type("grader_a")
    page.keyboard.press("Tab")
    page.keyboard.type("grader_a-password")
    page.keyboard.press("Enter")
    expect(page).to_have_title("Your work · Touchstone")
    for _ in range(12):  # to the link that leads to the work
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('href')") == grade_path(round):
            break
    page.keyboard.press("Enter")
    expect(page.locator("#now")).to_be_visible()

    page.keyboard.press("f")
    page.keyboard.type("1 is odd")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#kept")).to_contain_text("Flag kept")
    press_and_wait(page, " ")  # skip
    while page.locator("#now").count():
        if page.locator("[data-action=split]").count() and not ClaimSplit.objects.exists():
            page.keyboard.press("s")
            page.keyboard.press("Control+a")
            page.keyboard.type("one part")
            page.keyboard.press("Enter")
            page.keyboard.type("another part")
            page.keyboard.press("Control+Enter")
            expect(page.locator("#kept")).to_contain_text("Split proposed")
            press_and_wait(page, "4")
            press_and_wait(page, "u")
        press_and_wait(page, "2")
    expect(page.locator("#screen h2").first).to_have_text("Done")

    assert set(labels_of(round, grader_a)) == {("grounding", "contradicted"), ("abstention", "ANSWERED")}
    assert len(labels_of(round, grader_a)) == 9
    assert not Assignment.objects.filter(grader=grader_of(round, grader_a), state="pending").exists()
    assert ClaimSplit.objects.get().parts == ["one part", "another part"]
    assert Flag.objects.get().note == "1 is odd"
    assert all(row.milliseconds for row in Annotation.objects.all())


def test_one_key_saves_and_shows_the_next(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    expect(page).to_have_title("Claim 1 of 2 · response 1 of 5 · Roles · Touchstone")
    press_and_wait(page, "1")
    saved(page)
    expect(page.locator("#now .claim")).to_have_text("Bicycles travel free.")
    expect(page.locator(".claims .tag").first).to_have_text("supported")
    expect(page).to_have_title("Claim 2 of 2 · response 1 of 5 · Roles · Touchstone")
    assert labels_of(round, grader_a) == [("grounding", "supported")]


def test_key_held_down_is_one_label(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    until = time.monotonic() + 2
    while time.monotonic() < until:
        page.keyboard.down("1")  # after the first one these are repeats
        page.wait_for_timeout(30)
    page.keyboard.up("1")
    saved(page)
    assert AnnotationEvent.objects.count() == 1
    press_and_wait(page, "1")
    assert AnnotationEvent.objects.count() == 2


def test_keys_with_modifiers_and_in_text_fields_are_not_taken(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    for key in ("Control+1", "Alt+1", "Meta+1", "Shift+Backspace", "Shift+ "):
        page.keyboard.press(key)
    page.keyboard.press("f")
    page.keyboard.type("1234 u s e r ?")
    expect(page.locator("#flag-note")).to_have_value("1234 u s e r ?")
    expect(page.locator("dialog[open]")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.locator("#flag-note")).not_to_be_focused()
    assert AnnotationEvent.objects.count() == Flag.objects.count() == 0
    press_and_wait(page, "1")
    assert AnnotationEvent.objects.count() == 1


def test_key_while_a_save_is_under_way_is_not_taken(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    held = []
    page.route("**/label/", lambda route: held.append(route))
    page.keyboard.press("1")
    page.keyboard.press("2")
    expect(page.locator("#hint")).to_contain_text("still being saved")
    page.locator("#label-form button").nth(2).click()
    held[0].continue_()
    saved(page)
    assert [event.label for event in AnnotationEvent.objects.all()] == ["supported"]


def test_space_on_a_focused_button_presses_the_button(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    page.locator("#label-form button").nth(3).focus()
    page.keyboard.press(" ")
    saved(page)
    assert labels_of(round, grader_a) == [("grounding", "unverifiable")]
    expect(page.locator("#now")).to_be_focused()


def test_sheets_open_and_close_by_key(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    for key, sheet in [("?", "#keys-sheet"), ("r", "#rubric")]:
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_visible()
        page.keyboard.press("1")
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_hidden()
    assert AnnotationEvent.objects.count() == 0


def test_sheets_open_by_key_where_nothing_is_to_be_labelled(round, open_as, grader_a):
    services.pause_round(round=round)
    page = open_as(grader_a, grade_path(round))
    expect(page.locator("#screen h2").first).to_have_text("Paused")
    for key, sheet in [("?", "#keys-sheet"), ("r", "#rubric")]:
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_visible()
        page.keyboard.press(key)
        expect(page.locator(sheet)).to_be_hidden()


def test_words_of_the_claim_are_lit_on_demand(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    passage = page.locator("[data-passage]").first
    text = passage.text_content()
    expect(page.locator(".evidence mark")).to_have_count(0)
    page.keyboard.press("e")
    assert passage.locator("mark").all_text_contents() == ["ferry", "leaves", "nine"]
    assert passage.text_content() == text
    expect(page.locator("#hint")).to_contain_text("3 / 3")
    page.keyboard.press("e")
    expect(page.locator(".evidence mark")).to_have_count(0)
    assert passage.text_content() == text


def test_time_in_a_hidden_tab_does_not_count(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    hide = (
        "hidden => { Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange')); }"
    )
    began = page.evaluate("performance.now()")
    press_and_wait(page, "1")  # the clock starts with the next claim
    page.evaluate(hide, True)
    page.wait_for_timeout(3000)
    page.evaluate(hide, False)
    page.wait_for_timeout(200)
    ended = page.evaluate("performance.now()")
    press_and_wait(page, "2")
    recorded = Annotation.objects.get(label="contradicted").milliseconds
    assert 200 <= recorded <= ended + 500 - began - 3000


# When the server does not answer


def block(page, how):
    page.route("**/label/", how)


def test_label_that_cannot_be_sent_is_kept_and_sent_once(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    posts = []
    page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    block(page, lambda route: route.abort())
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("Not saved: the server cannot be reached")
    expect(page.locator("#trouble strong")).to_have_text("contradicted")
    expect(page.locator("#now .claim")).to_have_text("The ferry leaves at nine.")
    page.keyboard.press("1")
    expect(page.locator("#hint")).to_contain_text("an earlier label still waits")
    assert AnnotationEvent.objects.count() == 0
    assert len(posts) == 1
    page.unroute_all()
    saved(page)
    expect(page.locator("#trouble")).to_be_empty()
    expect(page.locator("#now .claim")).to_have_text("Bicycles travel free.")
    assert len(posts) == 2
    assert [event.label for event in AnnotationEvent.objects.all()] == ["contradicted"]
    page.keyboard.press("1")  # meant for the label that waited, not for the claim that has just appeared
    expect(page.locator("#hint")).to_contain_text("this is the next one")
    page.wait_for_timeout(1000)
    press_and_wait(page, "1")
    assert AnnotationEvent.objects.count() == 2


def test_label_whose_answer_was_lost_is_stored_once(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))

    def lose_the_answer(route):
        route.fetch()
        route.abort()

    page.route("**/label/", lose_the_answer, times=1)
    page.keyboard.press("2")
    saved(page)
    assert [event.label for event in AnnotationEvent.objects.all()] == ["contradicted"]


def test_label_waits_through_server_errors(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    page.route("**/label/", lambda route: route.fulfill(status=503, body="down"), times=2)
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("Not saved")
    saved(page)
    assert AnnotationEvent.objects.count() == 1


def test_label_survives_a_reload(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    block(page, lambda route: route.abort())
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("Not saved")
    page.reload()
    expect(page.locator("#trouble strong")).to_have_text("contradicted")
    page.unroute_all()
    saved(page)
    assert [event.label for event in AnnotationEvent.objects.all()] == ["contradicted"]


def test_label_waits_for_the_log_in(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    cookies = page.context.cookies()
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("2")
    expect(page.locator("#trouble")).to_contain_text("you are logged out")
    expect(page.locator("#now .claim")).to_have_text("The ferry leaves at nine.")
    page.context.add_cookies([cookie for cookie in cookies if cookie["name"] == "sessionid"])
    saved(page)
    assert [event.label for event in AnnotationEvent.objects.all()] == ["contradicted"]


def test_other_actions_say_that_they_were_not_done(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    page.route("**/flag/", lambda route: route.abort())
    page.keyboard.press("f")
    page.keyboard.type("do not lose this")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#trouble")).to_contain_text("That was not done: the server cannot be reached")
    expect(page.locator("#trouble a")).to_have_count(0)
    expect(page.locator("#flag-note")).to_have_value("do not lose this")
    page.unroute_all()
    page.context.clear_cookies(name="sessionid")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#trouble")).to_contain_text("That was not done: you are logged out")
    expect(page.locator("#trouble").get_by_role("link", name="Log in")).to_have_attribute("href", "/login/")
    expect(page.locator("#flag-note")).to_have_value("do not lose this")


def test_refusal_is_shown_and_the_label_not_kept(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round, grader_a, 1))
    services.pause_round(round=round)
    page.keyboard.press("1")
    expect(page.locator("#screen [role=alert]")).to_contain_text("paused")
    expect(page.locator("#screen h2").first).to_have_text("Paused")
    assert page.evaluate("localStorage.length") == 0


def test_two_graders_at_once(round, open_as, grader_a, grader_b):
    pages = [open_as(person, grade_path(round, person, 1)) for person in (grader_a, grader_b)]
    for key in ("1", "2", "2"):
        before = [submit_key(page) for page in pages]
        for page in pages:
            page.keyboard.press(key)
        for page, shown in zip(pages, before, strict=True):
            wait_for_change(page, shown)
            saved(page)
    assert labels_of(round, grader_a) == labels_of(round, grader_b)
    assert len(labels_of(round, grader_a)) == 3


# Without script


def test_whole_job_without_script(round, open_as, grader_a):
    page = open_as(grader_a, grade_path(round), java_script_enabled=False)
    page.locator("details[data-action=flag] summary").click()
    page.locator("#flag-note").fill("odd")
    page.get_by_role("button", name="Keep the flag").click()
    expect(page.locator(".messages")).to_contain_text("Flag kept")
    page.get_by_role("button", name="Skip").click()
    page.locator("#label-form button").first.click()
    expect(page.locator(".messages")).to_contain_text("Saved")
    page.get_by_role("button", name="Take back").click()
    expect(page.locator("#now .label small")).to_have_text("taken back")
    page.get_by_role("link", name="Rubric").click()
    page.get_by_role("link", name="Back to grading").click()
    for _ in range(9):
        page.locator("#label-form button").first.click()
    expect(page.locator("#screen h2").first).to_have_text("Done")
    assert len(labels_of(round, grader_a)) == 9
    assert Flag.objects.get().note == "odd"


# How it looks


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_grading_is_accessible_and_fits(round, open_as, grader_a, viewport):
    page = open_as(grader_a, grade_path(round, grader_a, 1), viewport=viewport)
    press_and_wait(page, "1")
    assert no_overflow(page)
    for key in ("", "?", "f"):
        if key:
            page.keyboard.press(key)
        check_accessible(page)
        page.keyboard.press("Escape")


def test_labels_under_the_thumb_do_not_cover_the_claim(evalset, open_as, grader_a):
    claims = ["The ferry leaves at nine.", "Bicycles travel free. " * 4]
    version = make_version(evalset, responses=[("The ferry leaves at nine. " * 25, claims)])
    page = open_as(grader_a, grade_path(make_round(version, grader_a)), viewport=PHONE)
    press_and_wait(page, "1")
    labels = page.locator(".thumb").bounding_box()
    claim = page.locator("#now .claim").bounding_box()
    assert labels["y"] + labels["height"] == pytest.approx(PHONE["height"], abs=1)
    assert claim["y"] + claim["height"] <= labels["y"]
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    last = page.locator(".passage").last.bounding_box()
    assert last["y"] + last["height"] <= page.locator(".thumb").bounding_box()["y"]


def test_long_words_do_not_widen_the_page(evalset, open_as, grader_a):
    long = "x" * 3000
    round = make_round(make_version(evalset, responses=[(long, [long])]), grader_a)
    page = open_as(grader_a, grade_path(round), viewport=PHONE)
    assert no_overflow(page)


@pytest.mark.parametrize("viewport", [DESK, PHONE])
def test_adjudication_by_keyboard_and_accessible(round, open_as, lead, grader_a, grader_b, viewport):
    say(round, grader_a, 6, "supported", milliseconds=900)
    say(round, grader_b, 6, "contradicted")
    services.propose_split(
        round=round,
        grader=grader_of(round, grader_a),
        claim=response_of(round, 6).claims.get(),
        parts=["Tickets cost money.", "The price is 12 euros."],
    )
    page = open_as(lead, adjudicate_path(round, 6), viewport=viewport)
    assert no_overflow(page)
    check_accessible(page)
    for key in ("2", "c", "n"):
        page.keyboard.press(key)
    page.keyboard.type("see 1 and 2")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("Decided: contradicted")
    row = Adjudication.objects.get()
    assert (row.label, row.reason, row.note) == ("contradicted", "edge_case", "see 1 and 2")
