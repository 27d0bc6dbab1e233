"""The lead's pages of rounds, and who may open which page."""

import re

import pytest
from django.urls import reverse

from annotate import services
from annotate.models import Assignment, Round, Unblinding
from tests.annotate.pages import soup
from tests.annotate.worlds import claim_of, grader_of, make_round, make_version, response_of, say

pytestmark = pytest.mark.once

READS = ["rounds", "open_round", "round", "rubric", "disagreements", "adjudicate"]
WRITES = ["open_round", "move_round", "reassign", "adjudicate", "decide_split"]


@pytest.fixture
def lead_who_grades(member):
    return member("both", "lead", "grader")


def url(round, name, *more):
    version = round.version
    place = [version.evalset.slug, version.number]
    if name in ("round", "move_round", "reassign", "adjudicate", "decide_split"):
        place.append(round.number)
    if name == "adjudicate":
        more = more or ("grounding", claim_of(round, 6).pk)
    if name == "decide_split":
        more = more or (1,)
    return reverse(f"annotate:{name}", args=[*place, *more])


# Who may come in


@pytest.mark.parametrize("name", READS)
def test_pages_open_for_the_lead_only(round, as_, lead, grader_a, stranger, name):
    for person, status in [(lead, 200), (grader_a, 404), (stranger, 404)]:
        assert as_(person).get(url(round, name)).status_code == status


@pytest.mark.parametrize("name", WRITES)
def test_actions_are_closed_to_others(round, as_, grader_a, stranger, name):
    for person in (grader_a, stranger):
        assert as_(person).post(url(round, name)).status_code == 404


@pytest.mark.parametrize("name", ["move_round", "reassign", "decide_split"])
def test_actions_want_post(round, as_, lead, name):
    assert as_(lead).get(url(round, name)).status_code == 405


@pytest.mark.parametrize("name", ["round", "disagreements", "adjudicate"])
def test_lead_who_still_grades_finds_the_labels_closed(version, as_, grader_a, lead_who_grades, name):
    round = make_round(version, grader_a, lead_who_grades)
    answer = as_(lead_who_grades).get(url(round, name))
    assert answer.status_code == 403
    assert soup(answer).select_one(f'a[href="{reverse("annotate:grade", args=[round.pk])}"]')


def test_lead_who_still_grades_sees_no_progress_of_others(version, as_, grader_a, lead_who_grades):
    round = make_round(version, grader_a, lead_who_grades)
    before = _without_tokens(as_(lead_who_grades).get(url(round, "rounds")))
    say(round, grader_a, 2, "REFUSED")
    assert _without_tokens(as_(lead_who_grades).get(url(round, "rounds"))) == before


def _without_tokens(answer):
    text = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", answer.content.decode())
    return re.sub(r"X-CSRFToken[^}]*}", "", text)


def test_labels_are_final_once_a_lead_who_grades_has_looked(evalset, as_, grader_a, lead_who_grades):
    round = make_round(make_version(evalset, responses=[("A ferry.", [])]), grader_a, lead_who_grades)
    say(round, lead_who_grades, 1, "ANSWERED")
    services.take_back(round=round, grader=grader_of(round, lead_who_grades))
    say(round, lead_who_grades, 1, "REFUSED")  # until then it may be changed
    assert as_(lead_who_grades).get(url(round, "disagreements")).status_code == 200
    assert Unblinding.objects.get().person == lead_who_grades
    with pytest.raises(services.Conflict, match="everybody's labels"):
        services.take_back(round=round, grader=grader_of(round, lead_who_grades))
    say(round, grader_a, 1, "REFUSED")
    services.take_back(round=round, grader=grader_of(round, grader_a))  # nobody else is bound


# Rounds


@pytest.fixture
def wanted(version, grader_a, grader_b):
    return {
        "runs": [version.runs.get().pk],
        "people": [grader_a.pk, grader_b.pk],
        "rubric_version": services.rubric_v1(evalset=version.evalset).pk,
        "overlap": "all",
        "seed": 11,
    }


def test_open_round_counts_first_and_opens_when_confirmed(version, as_, lead, wanted):
    place = reverse("annotate:open_round", args=[version.evalset.slug, version.number])
    page = soup(as_(lead).post(place, wanted))
    text = page.select_one("[role=status]").get_text(" ", strip=True)
    assert "10 assignments" in text
    assert "over 5 responses" in text
    assert "1 response is left out" in text
    assert Round.objects.count() == 0
    for _ in range(2):  # a double click
        as_(lead).post(place, wanted | {"confirm": "1"})
    round = Round.objects.get()
    assert (round.seed, round.created_by, round.assignments.count()) == (11, lead, 10)


def test_open_round_with_overlap(version, as_, lead, wanted):
    place = reverse("annotate:open_round", args=[version.evalset.slug, version.number])
    wanted |= {"overlap": "random", "count": "2", "confirm": "1"}
    assert as_(lead).post(place, wanted).status_code == 302
    assert Assignment.objects.count() == 7


@pytest.mark.parametrize(
    "wrong",
    [
        {"runs": []},
        {"runs": [999]},
        {"people": []},
        {"people": [999]},
        {"overlap": "random", "count": ""},
        {"overlap": "first", "count": "6"},
        {"overlap": "random", "count": "-1"},
        {"seed": "x"},
    ],
)
def test_open_round_refuses_bad_input(version, as_, lead, wanted, wrong):
    place = reverse("annotate:open_round", args=[version.evalset.slug, version.number])
    answer = as_(lead).post(place, wanted | wrong | {"confirm": "1"})
    assert answer.status_code == 400
    assert soup(answer).select(".errorlist") or "seed" in wrong
    assert Round.objects.count() == 0


def test_a_person_of_another_eval_set_cannot_be_chosen(version, as_, lead, wanted, stranger):
    place = reverse("annotate:open_round", args=[version.evalset.slug, version.number])
    answer = as_(lead).post(place, wanted | {"people": [stranger.pk], "confirm": "1"})
    assert answer.status_code == 400


def test_round_is_paused_resumed_and_closed(round, as_, lead):
    for move, state in [("pause", "paused"), ("resume", "open"), ("close", "closed"), ("resume", "closed")]:
        as_(lead).post(url(round, "move_round"), {"move": move})
        round.refresh_from_db()
        assert round.state == state


def test_round_page_says_who_waits_for_whom(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 2, "REFUSED", milliseconds=900)
    say(round, grader_a, 5, "CLARIFY", milliseconds=3000)
    say(round, grader_b, 5, "CLARIFY")
    page = soup(as_(lead).get(url(round, "round")))
    rows = [row.get_text(" ", strip=True) for row in page.select("table tbody tr")]
    assert rows[0].startswith("grader_a 2 of 5 nobody 3 responses")
    assert rows[0].endswith("– 2 1 0 0 0")  # pace, labels, under 2 s, skipped, flags, notes
    assert rows[1].startswith("grader_b 1 of 5 1 waits for grader_b 4 responses")
    assert "1 waiting for grader_b" in page.select_one(".states").get_text(" ", strip=True)


def test_flags_and_splits_are_on_the_round_page_without_a_name(round, as_, lead, grader_a):
    response = response_of(round, 6)
    grader = grader_of(round, grader_a)
    services.flag(round=round, grader=grader, response=response, claim=None, note="ODD <b>one</b>")
    services.propose_split(round=round, grader=grader, claim=claim_of(round, 4), parts=["a", "b"])
    page = soup(as_(lead).get(url(round, "round")))
    assert "ODD <b>one</b>" in page.select_one(".flag").get_text()
    assert "grader_a" not in page.select_one(".flag").get_text()
    assert page.select_one("#splits-title").get_text(" ", strip=True) == "Proposed splits 1"


def test_reassign_hands_over_what_the_other_does_not_grade(version, as_, lead, grader_a, grader_b, member):
    round = make_round(version, grader_a, grader_b)
    third = member("third", "grader")
    say(round, grader_a, 2, "REFUSED")
    fields = {"grader": grader_of(round, grader_a).pk, "to": third.pk, "at_most": "3"}
    as_(lead).post(url(round, "reassign"), fields)
    held = Assignment.objects.filter(round=round, state="pending").values_list("grader__name", flat=True)
    assert sorted(held) == ["grader_a"] + ["grader_b"] * 5 + ["third"] * 3
    fields["to"] = grader_b.pk
    answer = as_(lead).post(url(round, "reassign"), fields, follow=True)
    assert "0 responses handed over; grader_a has 1 left." in answer.content.decode()


def test_reassign_refuses_a_person_who_is_no_grader(round, as_, lead, grader_a, stranger):
    fields = {"grader": grader_of(round, grader_a).pk, "to": stranger.pk}
    assert as_(lead).post(url(round, "reassign"), fields).status_code == 400
