"""Every page that a lead reaches by links: barriers, width, and what the browser itself complains of."""

import re
from collections import deque
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import resolve

from annotate import rubric_text
from annotate.models import Rubric
from calibration.models import Judge, JudgeRun
from tests.browser.looking import COLOURS, PHONE, check_accessible, no_overflow
from tests.calibration.api_world import furnish, leave_to_decide, make_world

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

FILES = re.compile(r"^/(logout|static|api|admin)/|/export/$|\.(csv|json|jsonl|png|svg|parquet|zip)$")
IN_SIGHT = {"exclude": [["nav"]]}  # a row of links that is scrolled shows a part of the first one
OF_A_VIEW = 2  # pages of one view that are looked at: a first one, and one with another content


@pytest.fixture
def world(db):
    world = make_world()
    Rubric.objects.update(name=rubric_text.NAME)  # the one that pages look for
    furnish(world)
    leave_to_decide(world)
    # As every judge has that is set up on a page
    Judge.objects.filter(kind="openai").update(prompt_version="1")
    for run in JudgeRun.objects.all():
        JudgeRun.objects.filter(pk=run.pk).update(requested=run.requested | {"prompt_version": "1"})
    return world


def linked(page):
    """Addresses of the product's pages on this one, without the place in them."""
    found = page.eval_on_selector_all("a[href]:not([download])", "all => all.map(a => a.href)")
    for address in map(urlsplit, found):
        if address.netloc == urlsplit(page.url).netloc and not FILES.search(address.path):
            yield address.path + (f"?{address.query}" if address.query else "")


def every_page(page, origin):
    """Walks through the pages; yields the address of each, once it is open."""
    waiting, seen, looked_at = deque(["/"]), {"/"}, {}
    while waiting:
        address = waiting.popleft()
        name = resolve(urlsplit(address).path).view_name
        if looked_at.get(name, 0) == OF_A_VIEW:
            continue
        answer = page.goto(origin + address)
        if "html" not in answer.headers.get("content-type", ""):
            continue
        assert answer.status == 200, address
        looked_at[name] = looked_at.get(name, 0) + 1
        fresh = [one for one in dict.fromkeys(linked(page)) if one not in seen]
        seen.update(fresh)
        waiting.extend(fresh)
        yield address


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_page_of_a_lead_is_free_of_barriers(world, open_as, live_server):
    complaints, barriers = [], []
    desk, phone = (open_as(world.lead, "/", **options) for options in ({}, {"viewport": PHONE}))
    for page in (desk, phone):
        page.on("console", lambda said: complaints.append(said.text) if said.type != "log" else None)
    looked_at = 0
    for address in every_page(desk, live_server.url):
        looked_at += 1
        phone.goto(live_server.url + address)
        for page in (desk, phone):
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        try:
            check_accessible(desk)
            check_accessible(phone, COLOURS)
            rules = {"runOnly": ["scrollable-region-focusable", "target-size"]}
            found = Axe().run(phone, context=IN_SIGHT, options=rules)
            assert found.violations_count == 0, found.generate_report()
        except AssertionError as barrier:
            barriers.append(f"{address}: {barrier}")
        if not no_overflow(phone):
            barriers.append(f"{address}: wider than the phone")
    assert barriers == []
    assert complaints == []
    assert looked_at > 60


def test_a_hidden_heading_of_a_wide_table_widens_no_page(world, open_as):
    page = open_as(world.lead, f"/evalsets/{world.evalset.slug}/1/", viewport=PHONE)
    assert page.locator("th .visually-hidden").count() == 1
    assert no_overflow(page)


def test_a_table_wider_than_the_screen_is_scrolled_by_keyboard(world, open_as):
    path = f"/evalsets/{world.evalset.slug}/1/rates/"
    page = open_as(world.lead, path, viewport=PHONE)
    wide = page.locator(".scroll[tabindex='0'][aria-labelledby]").first
    wide.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("place => place.scrollLeft > 0", arg=wide.element_handle())
    page.set_viewport_size({"width": 1280, "height": 800})
    page.wait_for_function("() => document.querySelector('.scroll[data-scrolls]') === null")
