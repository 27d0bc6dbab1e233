"""Opening a round by a share of every stratum, and a second look from the draw to its kappa."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from annotate.models import Assignment, Round
from annotate.queries import next_assignment
from evalsets.models import Item
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, say
from tests.browser.looking import PHONE, no_overflow

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

RESPONSES = 12
KEYS = {"supported": "1", "contradicted": "2"}


@pytest.fixture
def version(evalset):
    version = make_version(
        evalset,
        responses=[(f"Ferry {n} leaves at nine.", [f"Ferry {n} leaves at nine."]) for n in range(RESPONSES)],
        freeze=False,
    )
    for item in Item.objects.filter(version=version):
        item.strata = {"language": "de" if item.position > 8 else "en"}
        item.save()
    return freeze_all(version)


def place(version, name, *more):
    return reverse(name, args=[version.evalset.slug, version.number, *more])


def check_accessible(page):
    found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]})
    assert found.violations_count == 0, found.generate_report()


def label_response(screen, second, key):
    """Press the key and wait until the label is stored and the screen takes the next one."""
    done = Assignment.objects.filter(round=second, state="done")
    before = done.count()
    screen.keyboard.press(key)
    for _ in range(100):
        if done.count() > before:
            break
        screen.wait_for_timeout(100)
    assert done.count() == before + 1
    screen.wait_for_function("() => document.querySelector('#screen')?.getAttribute('aria-busy') !== 'true'")


def test_lead_opens_a_round_by_a_share_of_every_stratum(version, open_as, lead, grader_a, grader_b):
    page = open_as(lead, place(version, "annotate:rounds"))
    page.get_by_role("link", name="Open a round").first.click()
    for name in ("grader_a", "grader_b"):
        page.get_by_label(name, exact=True).check()
    expect(page.get_by_label("Share of every stratum, in percent")).to_be_hidden()
    page.get_by_label("A share of every stratum, drawn at random").check()
    expect(page.get_by_label("How many responses")).to_be_hidden()
    page.get_by_label("Share of every stratum, in percent").fill("30")
    check_accessible(page)
    page.get_by_role("button", name="See the plan").click()
    plan = page.locator("[role=status]")
    expect(plan).to_contain_text("3 responses go to 2 graders each")
    for row in ("de 4 1", "en 8 2"):
        expect(plan.get_by_role("row", name=row, exact=True)).to_be_visible()
    check_accessible(page)
    assert not Round.objects.exists()
    page.get_by_role("button", name="Open the round").click()
    expect(page.locator(".messages")).to_contain_text("Round 1 is open.")
    round = Round.objects.get()
    assert (round.overlap_kind, round.overlap, round.stratum) == ("share", 3, "language")
    assert Assignment.objects.filter(round=round).count() == RESPONSES + 3


def test_second_look_from_the_draw_to_kappa(version, open_as, lead, grader_a, grader_b):
    first = make_round(version, grader_a, grader_b)
    for position in range(1, RESPONSES + 1):
        for person in (grader_a, grader_b):
            say(first, person, position, "contradicted" if position % 2 else "supported", "ANSWERED")
    page = open_as(lead, place(version, "annotate:round", 1))
    check_accessible(page)
    page.get_by_role("link", name="Draw a second look").click()
    page.get_by_label("Targets to draw").fill("8")
    page.get_by_label("Dimension").select_option("grounding")
    page.get_by_label("grader_a", exact=True).check()
    check_accessible(page)
    page.get_by_role("button", name="Draw and open").click()
    expect(page.locator(".messages")).to_contain_text("Round 2 is open.")

    second = Round.objects.get(kind="second_look")
    screen = open_as(grader_a, "/", viewport=PHONE)
    assert no_overflow(screen)
    expect(screen.locator(f"article:has(#work-{first.pk})")).to_contain_text("Closed to you until")
    screen.get_by_role("link", name="Grade", exact=True).click()
    changed = 0
    grader = grader_of(second, grader_a)
    for number in range(8):
        expect(screen.locator("#label-form")).to_be_visible()
        assert screen.locator("[aria-pressed=true][name=label]").count() == 0  # no earlier label is shown
        position = next_assignment(second, grader).response.position
        label = "contradicted" if position % 2 else "supported"
        if number == 0:  # one that comes out otherwise
            label, changed = ("supported" if label == "contradicted" else "contradicted"), position
        label_response(screen, second, KEYS[label])
    expect(screen.get_by_role("heading", name="Done")).to_be_visible()

    page.goto(page.url)
    page.get_by_role("link", name="What the second look shows").click()
    expect(page.locator("main")).to_contain_text("8 of 8 drawn targets labelled again")
    expect(page.locator("main")).to_contain_text("87.5")  # 7 of 8 the same
    own = page.locator("section.card").filter(has_text="With oneself")
    expect(own).to_contain_text("grader_a, first · grader_a, again")
    rows = page.locator("table.cases tbody tr")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text(f"Ferry {changed - 1} leaves at nine.")
    check_accessible(page)
    page.set_viewport_size(PHONE)
    assert no_overflow(page)
