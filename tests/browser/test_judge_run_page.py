"""A lead starts a judge and watches it in Chromium, with and without JavaScript."""

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import expect

from calibration import services, work
from calibration.models import JudgeRun
from tests.calibration.judges.conftest import make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


@pytest.fixture
def version(evalset):
    services.judge_named(evalset=evalset, name="lexical-baseline")
    return make_version(evalset, responses=10)


@pytest.fixture
def log_in(live_server, lead):
    def give_session(context):
        client = Client()
        client.force_login(lead)
        cookie = client.cookies["sessionid"]
        context.add_cookies([{"name": "sessionid", "value": cookie.value, "url": live_server.url}])

    return give_session


def start_in(page, live_server, version):
    page.goto(live_server.url + reverse("calibration:judges", args=[version.evalset.slug, version.number]))
    page.get_by_label("Judge", exact=True).select_option("lexical-baseline")
    page.get_by_role("button", name="Next: how many calls?").click()
    page.get_by_text("20 targets").wait_for()
    page.get_by_role("button", name="Start").click()
    page.get_by_text("0 of 20").wait_for()


def test_the_page_follows_the_run_and_stops_asking(page, live_server, version, log_in):
    log_in(page.context)
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    start_in(page, live_server, version)
    run = JudgeRun.objects.get()
    page.get_by_role("button", name="Stop").focus()
    page.evaluate("document.getElementById('stop-run').setAttribute('data-before', '')")
    expect(page.locator("#stop-run[data-before]")).to_have_count(0)  # it has been swapped
    assert page.evaluate("document.activeElement.id") == "stop-run"  # and the keyboard is where it was
    work.work_through(run_id=run.pk)
    page.get_by_text("20 of 20").wait_for(timeout=15_000)
    page.get_by_text("complete", exact=True).wait_for()
    assert page.get_by_role("button", name="Stop").count() == 0
    assert page.locator("[hx-trigger]").count() == 0
    assert complaints == []


def test_stop_and_resume_by_button(page, live_server, version, log_in):
    log_in(page.context)
    start_in(page, live_server, version)
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("stopped", exact=True).wait_for()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("running", exact=True).wait_for()


def test_without_javascript(browser, live_server, version, log_in):
    context = browser.new_context(java_script_enabled=False)
    log_in(context)
    page = context.new_page()
    start_in(page, live_server, version)
    work.work_through(run_id=JudgeRun.objects.get().pk)
    page.get_by_text("20 of 20").wait_for(timeout=20_000)  # by the page's own refresh
    context.close()
