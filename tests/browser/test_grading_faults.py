"""Grading through cut networks, killed servers and two tabs; then the database against what was confirmed.

The grader of these tests reads the claim on the screen and presses the key that its words ask for: a label on
the wrong claim, a lost one and a doubled one all show in the end.
"""

import contextlib
import os
import re
import signal

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from playwright.sync_api import Error, TimeoutError, expect

from annotate.models import Annotation, AnnotationEvent, Assignment
from tests import processes, servers
from tests.annotate.worlds import make_round, make_version

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

GROUNDING = ("supported", "contradicted", "unsupported", "unverifiable")
ABSTENTION = ("REFUSED", "ANSWERED", "CLARIFY")
SECONDS = 1000


def key_for(number: int, labels) -> str:
    return str(number % len(labels) + 1)


def expected(responses: int) -> dict:
    """What the graded set must look like: (dimension, number of the response) -> label."""
    numbers = range(1, responses + 1)
    return {("grounding", n): GROUNDING[int(key_for(n, GROUNDING)) - 1] for n in numbers} | {
        ("abstention", n): ABSTENTION[int(key_for(n, ABSTENTION)) - 1] for n in numbers
    }


def in_the_database(round) -> dict:
    rows = Annotation.objects.filter(round=round).select_related("response")
    return {(row.dimension, int(row.response.text.split()[-1].rstrip("."))): row.label for row in rows}


@pytest.fixture
def site(app_environment, started, tmp_path):
    """A web server that can be killed and started again at the same address."""

    class Site:
        port = servers.free_port()
        url = f"http://127.0.0.1:{port}"

        def start(self):
            self.web = processes.start_web(app_environment(), tmp_path / "web.log", port=self.port)
            started.append(self.web)

        def freeze(self):
            os.killpg(self.web.process.pid, signal.SIGSTOP)

        def kill(self):
            self.web.kill()

    site = Site()
    site.start()
    return site


@pytest.fixture
def round_of(evalset, grader_a):
    def make(responses: int):
        grader_a.password = PBKDF2PasswordHasher().encode("a password", "salt" * 6)  # as in production
        grader_a.save()
        texts = [(f"Answer {n}.", [f"Claim {n}."]) for n in range(1, responses + 1)]
        return make_round(make_version(evalset, responses=texts), grader_a)

    return make


def log_in(context, site):
    page = context.new_page()
    page.goto(f"{site.url}/login/")
    page.fill("[name=username]", "grader_a")
    page.fill("[name=password]", "a password")
    page.keyboard.press("Enter")
    # To check a password takes a while, on purpose.
    expect(page).to_have_title("Your work · Touchstone", timeout=30_000)
    return page


def open_screen(page, site, round):
    page.goto(f"{site.url}/grade/{round.pk}/")
    page.wait_for_selector("#screen")
    return page


STATE = """() => {
  const form = document.querySelector("#label-form");
  return {
    done: !form,
    busy: document.querySelector("#screen").getAttribute("aria-busy") === "true",
    key: form?.elements.key.value ?? "",
    dimension: form?.elements.dimension.value ?? "",
    text: document.querySelector("#screen .response")?.textContent ?? "",
    claim: document.querySelector("#now .claim")?.textContent ?? "",
    kept: document.querySelector("#kept").textContent,
    trouble: document.querySelector("#trouble").textContent,
  };
}"""


class Tab:
    """One tab of the grader, and what it has confirmed as saved."""

    def __init__(self, page, confirmed):
        self.page, self.confirmed = page, confirmed

    def look(self):
        self.page.wait_for_function(
            "() => document.querySelector('#screen')?.getAttribute('aria-busy') !== 'true'"
        )
        return self.page.evaluate(STATE)

    def right_key(self, state) -> str:
        number = int(re.search(r"\d+", state["text"]).group())
        if state["dimension"] == "grounding":
            assert state["claim"] == f"Claim {number}."
        return key_for(number, GROUNDING if state["dimension"] == "grounding" else ABSTENTION)

    def press(self, state, key=None):
        self.page.keyboard.press(key or self.right_key(state))

    def takes(self, state, key=None) -> bool:
        """Not for a second after this tab has sent a label of the other: the grader looks again then."""
        self.press(state, key)
        if "has just been saved" not in self.page.locator("#hint").text_content():
            return True
        self.pause_after_a_late_save()
        return False

    def wait_until_saved(self, state, *, by_either_tab=False):
        """Until the screen itself says so; only then is the label confirmed."""
        try:
            self._wait_for_another_key(state["key"], "from another tab" if by_either_tab else None)
        except TimeoutError as late:
            tabs = [page.evaluate(STATE) for page in self.page.context.pages]
            kept = self.page.evaluate("JSON.stringify(localStorage)")
            raise AssertionError(f"not saved: {state}; tabs {tabs}; in the browser {kept}") from late
        number = int(re.search(r"\d+", state["text"]).group())
        labels = GROUNDING if state["dimension"] == "grounding" else ABSTENTION
        self.confirmed[state["dimension"], number] = labels[int(self.right_key(state)) - 1]

    def _wait_for_another_key(self, key, or_words):
        self.page.wait_for_function(
            "([key, words]) => { const form = document.querySelector('#label-form');"
            " const now = form?.elements.key.value, kept = document.querySelector('#kept').textContent;"
            " return kept.includes('Saved')"
            " && (!form || (now !== '' && now !== key) || kept.includes(words)); }",
            arg=[key, or_words],
            timeout=60 * SECONDS,
        )

    def expect_not_taken(self):
        expect(self.page.locator("#trouble")).to_contain_text("Not saved", timeout=30 * SECONDS)

    def pause_after_a_late_save(self):
        self.page.wait_for_timeout(1.1 * SECONDS)


def cut_the_network(tab, state):
    tab.page.context.set_offline(True)
    tab.press(state)
    tab.expect_not_taken()
    for key in ("1", "2", "u", " "):  # none of these is taken
        tab.page.keyboard.press(key)
    tab.page.context.set_offline(False)
    tab.wait_until_saved(state)
    tab.pause_after_a_late_save()


def lose_the_answer(tab, state):
    """The label arrives and is stored; the network is gone before the answer is back."""

    def lose(route):
        route.fetch()
        route.abort()

    tab.page.route("**/label/", lose, times=1)
    tab.press(state)
    tab.wait_until_saved(state)
    tab.pause_after_a_late_save()


def cut_the_network_and_close_the_tab(tab, state):
    """The label outlives its tab; either tab may be the one that sends it in the end."""
    context, address = tab.page.context, tab.page.url
    context.set_offline(True)
    tab.press(state)
    tab.expect_not_taken()
    tab.page.close()
    context.route("**/label/", lambda route: route.abort())
    context.set_offline(False)
    tab.page = context.new_page()
    tab.page.goto(address)
    tab.expect_not_taken()
    waiting = tab.look()
    context.unroute_all()
    tab.wait_until_saved(waiting, by_either_tab=True)  # the other may have sent it before this page came
    tab.pause_after_a_late_save()


def kill_the_server(tab, state, site):
    """While the label is under way: the frozen server cannot answer before it is killed."""
    site.freeze()
    tab.press(state)
    tab.page.wait_for_selector("#screen[aria-busy=true]")
    tab.page.keyboard.press("3")
    site.kill()
    site.start()
    tab.wait_until_saved(state)
    tab.pause_after_a_late_save()


def kill_the_server_first(tab, state, site):
    site.kill()
    tab.press(state)
    tab.expect_not_taken()
    site.start()
    tab.wait_until_saved(state)
    tab.pause_after_a_late_save()


def grade_through_faults(site, new_context, round, responses: int):
    context = new_context()
    confirmed: dict = {}
    first = log_in(context, site)
    tabs = [Tab(open_screen(first, site, round), confirmed)]
    tabs.append(Tab(open_screen(context.new_page(), site, round), confirmed))
    labels = 2 * responses
    faults = [
        (cut_the_network, ()),
        (kill_the_server, (site,)),
        (lose_the_answer, ()),
        (kill_the_server_first, (site,)),
        (cut_the_network_and_close_the_tab, ()),
    ]
    due = {labels * (place + 1) // (len(faults) + 1): fault for place, fault in enumerate(faults)}
    change_tab_every = max(3, labels // 10)
    taken_back = stale = given = 0
    tab = tabs[0]
    while True:
        if given and given % change_tab_every == 0:
            tab = tabs[given // change_tab_every % 2]
            tab.page.bring_to_front()
        state = tab.look()
        if state["done"]:
            break
        number = int(re.search(r"\d+", state["text"]).group())
        if (state["dimension"], number) in confirmed:
            stale += 1  # this tab has not heard of it: it is labelled again, as it shows
        if given in due:
            fault, arguments = due.pop(given)
            fault(tab, state, *arguments)
        else:
            if given % 17 == 5:  # a slip, and back
                if not tab.takes(state, "1"):
                    continue
                tab.wait_until_saved(state)
                now = tab.look()
                tab.press(now, "u")
                tab.page.wait_for_function(
                    "() => document.querySelector('#kept').textContent.includes('Taken back')"
                )
                taken_back += 1
                state = tab.look()
            if not tab.takes(state):
                continue
            tab.wait_until_saved(state)
        given += 1
        assert given < 3 * labels
    assert not due, "every fault has happened"
    return confirmed, taken_back, stale


def check(round, responses, confirmed, taken_back=0):
    assert in_the_database(round) == expected(responses)
    assert confirmed == expected(responses)
    assert Annotation.objects.filter(round=round).count() == 2 * responses
    assert set(Assignment.objects.filter(round=round).values_list("state", flat=True)) == {"done"}
    events = AnnotationEvent.objects.filter(round=round)
    assert events.filter(action="taken_back").count() == taken_back
    assert events.filter(action="labelled").count() == 2 * responses + taken_back  # nothing twice
    assert not events.filter(action="changed").exists()


def test_nothing_is_lost_doubled_or_misplaced(site, new_context, round_of):
    round = round_of(10)
    confirmed, taken_back, _stale = grade_through_faults(site, new_context, round, 10)
    check(round, 10, confirmed, taken_back)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_is_lost_doubled_or_misplaced_in_120_responses(site, new_context, round_of):
    round = round_of(120)
    confirmed, taken_back, stale = grade_through_faults(site, new_context, round, 120)
    print(f"{2 * 120} labels, {taken_back} slips taken back, {stale} seen in a stale tab")
    check(round, 120, confirmed, taken_back)


# Without script: plain forms; after a cut the grader opens the page again


def grade_without_script(site, new_context, round, responses: int):
    context = new_context(java_script_enabled=False)
    page = open_screen(log_in(context, site), site, round)
    labels = 2 * responses
    cuts = {labels // 4, labels // 2}
    kill_at = 3 * labels // 4
    given = 0
    while page.locator("#label-form").count():
        text = page.locator("#screen .response").text_content()
        number = int(re.search(r"\d+", text).group())
        dimension = page.locator("#label-form [name=dimension]").get_attribute("value")
        key = key_for(number, GROUNDING if dimension == "grounding" else ABSTENTION)
        button = page.locator("#label-form .label").nth(int(key) - 1)
        if given in cuts or given == kill_at:
            cuts.discard(given)
            if given == kill_at:
                kill_at = -1
                site.kill()
                with_error(button)
                site.start()
            else:
                context.set_offline(True)
                with_error(button)
                context.set_offline(False)
            open_screen(page, site, round)
            continue
        button.click()
        expect(page.locator(".messages")).to_contain_text("Saved")
        given += 1
    expect(page.locator("#screen h2").first).to_have_text("Done")


def with_error(button):
    with contextlib.suppress(Error):
        button.click(timeout=3 * SECONDS)  # done at once; then it waits in vain for the page that cannot come
    expect(button).to_have_count(0)  # the browser's own page about the error stands there


def test_without_script_nothing_is_lost_doubled_or_misplaced(site, new_context, round_of):
    round = round_of(30)
    grade_without_script(site, new_context, round, 30)
    check(round, 30, expected(30))
