"""The rubric editor without scripts, and the warm-up by keyboard, in a real browser."""

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from annotate.models import Round, RubricVersion, WarmUpAnswer
from tests.annotate.worlds import make_round, make_version
from tests.browser.looking import PHONE, check_accessible, no_overflow

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def warm_round(evalset, grader_a, grader_b):
    round = make_round(make_version(evalset), grader_a, grader_b)
    Round.objects.filter(pk=round.pk).update(warm_up=True)
    return round


def editor_path(version):
    return reverse("annotate:new_rubric", args=[version.evalset.slug, version.number])


def test_a_lead_adds_a_dimension_without_scripts(open_as, lead, evalset):
    version = make_version(evalset)
    page = open_as(lead, editor_path(version), java_script_enabled=False)
    page.select_option("#preset", "context_relevance")
    page.get_by_role("button", name="Add this one").click()
    page.get_by_role("button", name="Add an empty one").click()
    page.fill("#d3-name", "tone")
    page.fill("#d3-question", "Is it polite?")
    page.select_option("#d3-target", "response")
    page.get_by_role("button", name="Check", exact=True).first.click()
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved: 4 things")
    page.check("[name=d3-after][value='1/1']")  # abstention: ANSWERED
    for at, name in enumerate(("polite", "blunt")):
        page.fill(f"#d3-l{at}-name", name)
        page.fill(f"#d3-l{at}-definition", f"It is {name}.")
    page.locator("#d3-l0-example-0").fill("“Thank you for asking.”")
    page.get_by_role("button", name="Save as a new version").first.click()
    expect(page.get_by_role("heading", name="What changed from version 1 to 2")).to_be_visible()
    tone = RubricVersion.objects.get(number=2).dimensions.get(name="tone")
    assert (tone.target, tone.position) == ("response", 4)
    assert tone.asked_when == {"dimension": "abstention", "labels": ["ANSWERED"]}
    assert tone.labels[0] == {
        "name": "polite",
        "key": "1",
        "definition": "It is polite.",
        "examples": ["“Thank you for asking.”"],
    }


def test_enter_in_a_field_checks_and_does_not_save(open_as, lead, evalset):
    page = open_as(lead, editor_path(make_version(evalset)))
    page.locator("#d0-l0-key").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("It is not saved yet")
    assert RubricVersion.objects.count() == 1


def test_the_rubric_pages_are_accessible_and_fit_a_phone(open_as, lead, evalset):
    version = make_version(evalset)
    page = open_as(lead, editor_path(version), viewport=PHONE)
    check_accessible(page)
    assert no_overflow(page)
    page.fill("#decisions", "1. One decision.")
    page.get_by_role("button", name="Save as a new version").first.click()
    expect(page.get_by_role("heading", name="What changed")).to_be_visible()
    for place in ("", reverse("annotate:rubric", args=[version.evalset.slug, version.number])):
        if place:
            page.goto(page.url.split("/evalsets")[0] + place)
        check_accessible(page)
        assert no_overflow(page)


def test_the_warm_up_goes_by_keyboard(open_as, grader_a, warm_round):
    page = open_as(grader_a, reverse("annotate:grade", args=[warm_round.pk]))
    cases = list(warm_round.rubric_version.warm_up_cases.all())
    for number, case in enumerate(cases, start=1):
        expect(page).to_have_title(f"Warm-up case {number} of {len(cases)} · Roles · Touchstone")
        light_up = page.locator("[data-action=evidence]")
        expect(light_up).to_be_visible()  # the script is there; the title comes first
        page.keyboard.press("e")
        expect(light_up).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("1")
        expect(page.get_by_text(case.explanation, exact=True)).to_be_visible()
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Warm-up done")).to_be_visible()
    assert WarmUpAnswer.objects.count() == len(cases)
    assert all(answer.milliseconds is not None for answer in WarmUpAnswer.objects.all())
    page.keyboard.press("Enter")
    expect(page.locator("#now")).to_be_visible()


def test_a_held_key_answers_one_case(open_as, grader_a, warm_round):
    page = open_as(grader_a, reverse("annotate:warm_up", args=[warm_round.pk]))
    for _ in range(30):
        page.keyboard.down("1")
    page.keyboard.up("1")
    expect(page.locator("[data-action=onward]")).to_be_visible()
    assert WarmUpAnswer.objects.count() == 1


def test_the_warm_up_is_accessible_and_works_without_scripts(open_as, grader_a, warm_round):
    path = reverse("annotate:warm_up", args=[warm_round.pk])
    page = open_as(grader_a, path, viewport=PHONE)
    check_accessible(page)
    assert no_overflow(page)
    page.get_by_role("button", name="REFUSED").click()
    expect(page.locator("[data-action=onward]")).to_be_visible()
    check_accessible(page)
    bare = open_as(grader_a, path, java_script_enabled=False)
    bare.get_by_role("button", name="ANSWERED").click()
    expect(bare.get_by_role("link", name="Next case")).to_be_visible()
    assert WarmUpAnswer.objects.count() == 2
