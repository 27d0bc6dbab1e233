"""The grader's pages as plain HTTP: roles, bad input, double submits, and what stands on the screen."""

import json
import re
import uuid
from datetime import UTC, datetime
from html import unescape

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotate import keys, services
from annotate.models import Annotation, AnnotationEvent, Assignment, ClaimSplit, Flag
from annotate.queries import next_assignment, parts_around
from evalsets.models import Passage, Response
from tests.annotate.pages import soup
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, response_of, say

pytestmark = pytest.mark.once

HTMX = {"HTTP_HX_REQUEST": "true"}


def url(round, name="grade"):
    return reverse(f"annotate:{name}", args=[round.pk])


def assignment_of(round, person, position) -> Assignment:
    return Assignment.objects.get(round=round, grader=grader_of(round, person), response__position=position)


def sent(round, person, position, claim="c1", **fields):
    """The fields of a form that shows this target."""
    response = response_of(round, position)
    return {
        "assignment": assignment_of(round, person, position).pk,
        "claim": response.claims.get(claim_id=claim).pk if claim else "",
        **fields,
    }


# Who may come in


@pytest.mark.parametrize("name", ["grade", "grader_rubric"])
def test_pages_open_for_assigned_graders_only(round, as_, grader_a, grader_b, lead, stranger, name):
    for person, status in [(grader_a, 200), (grader_b, 200), (lead, 404), (stranger, 404)]:
        assert as_(person).get(url(round, name)).status_code == status


@pytest.mark.parametrize("name", ["label", "take_back", "flag", "skip", "split"])
def test_actions_are_closed_to_others_and_to_get(round, as_, grader_a, lead, stranger, name):
    fields = sent(round, grader_a, 6, label="supported", parts="a\nb")
    for person in (lead, stranger):
        assert as_(person).post(url(round, name), fields).status_code == 404
    assert as_(grader_a).get(url(round, name)).status_code == 405
    assert AnnotationEvent.objects.count() == Flag.objects.count() == ClaimSplit.objects.count() == 0


@pytest.mark.parametrize("name", ["label", "flag", "skip", "split"])
def test_another_graders_assignment_does_not_exist(round, as_, grader_a, grader_b, name):
    fields = sent(round, grader_a, 6, label="supported", parts="a\nb")
    assert as_(grader_b).post(url(round, name), fields).status_code == 404
    assert as_(grader_b).get(url(round), {"at": fields["assignment"]}).status_code == 404
    assert AnnotationEvent.objects.count() == Flag.objects.count() == ClaimSplit.objects.count() == 0


def test_nobody_grades_without_logging_in(round, client):
    assert client.get(url(round)).status_code == 302


def test_a_person_who_left_the_eval_set_is_out(round, as_, grader_a):
    grader_a.memberships.all().delete()
    assert as_(grader_a).get(url(round)).status_code == 404


# The screen


def test_first_look_has_nothing_chosen(round, as_, grader_a, grader_b):
    for position in (1, 2, 4, 5, 6):
        labels = ["supported"] * response_of(round, position).claims.count()
        say(round, grader_a, position, *labels, "ANSWERED")
    page = soup(as_(grader_b).get(url(round)))
    assert (
        page.select(".label[aria-pressed=true]")
        == page.select("[checked]")
        == page.select(".tag:not(dialog *)")
        == []
    )


def test_screen_shows_question_response_claims_and_passages(round, as_, grader_a):
    page = soup(as_(grader_a).get(url(round), {"at": assignment_of(round, grader_a, 1).pk}))
    screen = page.select_one("#screen").get_text(" ", strip=True)
    for text in (
        "Question 1 about the ferry?",
        "The ferry leaves at nine.",
        "Bicycles travel free.",
        "Timetable 1",
    ):
        assert text in screen
    badges = [p.select(".cited:not([hidden])") for p in page.select("#passages .passage")]
    assert [[b.get_text() for b in of_one] for of_one in badges] == [["cited"], []]
    assert [p["data-rank"] for p in page.select("#passages .passage")] == ["2", "1"]
    assert page.select_one(".response mark").get_text() == "The ferry leaves at nine."
    assert page.title.get_text(strip=True).startswith("Claim 1 of 2 · response 1 of 5")


def test_empty_response_with_a_claim_says_that_it_is_empty(evalset, as_, grader_a):
    version = make_version(evalset, responses=[(" \n", ["A claim without a text."])])
    round = make_round(version, grader_a)
    page = soup(as_(grader_a).get(url(round)))
    assert "(empty response)" in page.get_text()
    answer = as_(grader_a).post(
        url(round, "label"), sent(round, grader_a, 1, label="unsupported"), follow=True
    )
    assert "Done" in soup(answer).select_one("#screen").get_text()


def test_unknown_question_is_not_an_empty_one(round, as_, grader_a, version):
    answer = as_(grader_a).get(url(round))
    assert "(the question is not known)" not in answer.content.decode()


def test_long_response_is_foldable_and_whole(evalset, as_, grader_a):
    text = "word " * 1500 + "END"
    round = make_round(make_version(evalset, responses=[(text, [])]), grader_a)
    page = soup(as_(grader_a).get(url(round)))
    assert page.select_one("details.fold[open] .response").get_text() == text


def test_texts_are_data(evalset, as_, grader_a):
    """In every field that a file or a grader fills."""

    def evil(where):
        return f'<img src=x onerror="{where}"></textarea></title><script>alert(1)</script>{{{{ 7 + 7 }}}}'

    claim = evil("claim")
    text = evil("before") + claim + evil("after")
    version = make_version(evalset, responses=[(text, [claim, evil("second")])], freeze=False)
    version.items.update(question=evil("question"))
    Passage.objects.update(title=evil("title"), text=evil("passage"))
    evalset.name = evil("evalset")
    evalset.save()
    round = make_round(freeze_all(version), grader_a)
    response = response_of(round, 1)
    first = response.claims.first()
    services.flag(
        round=round, grader=grader_of(round, grader_a), response=response, claim=first, note=evil("flag")
    )
    services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=first, parts=[evil("part"), "b"]
    )
    for answer in (as_(grader_a).get(url(round)), as_(grader_a).get(url(round), **HTMX)):
        page = answer.content.decode()
        assert "<img" not in page
        assert "<script>alert" not in page
        assert "14" not in soup(answer).select_one("#screen").get_text()
        shown = ("claim", "before", "after", "second", "question", "title", "passage", "flag", "part")
        for where in shown:
            assert f'onerror="{where}"' in unescape(page), where


def test_queries_do_not_grow_with_the_round(evalset, as_, grader_a):
    sizes = []
    for size in (3, 40):
        version = make_version(evalset, responses=[("A ferry.", ["A ferry.", "It floats."])] * size)
        round = make_round(version, grader_a)
        say(round, grader_a, 1, "supported", "supported", "ANSWERED")
        client = as_(grader_a)
        with CaptureQueriesContext(connection) as counted:
            client.get(url(round))
        sizes.append(len(counted))
    assert sizes[0] == sizes[1] <= 40


def test_long_list_of_claims_is_folded_around_the_current_one(evalset, as_, grader_a):
    claims = [f"Claim number {n}." for n in range(1, 11)]
    round = make_round(make_version(evalset, responses=[("A ferry.", claims)]), grader_a)
    say(round, grader_a, 1, *["supported"] * 5)
    page = soup(as_(grader_a).get(url(round)))
    summaries = [part.get_text() for part in page.select(".folded summary")]
    assert summaries == ["4 earlier claims", "2 more to come"]
    open_list = page.select_one("#work > .claims")
    assert [li.select_one(".text, .claim").get_text() for li in open_list.select("li")] == claims[4:9]
    assert len(page.select("#screen .judged .claims li .text")) >= 10


@pytest.mark.parametrize(
    ("earlier", "claim", "expected"),
    [
        ([], "2.", ("1. In ", "2.", "5 hours. 2. By bus.")),
        (["1.", "In 2.5 hours."], "2.", ("1. In 2.5 hours. ", "2.", " By bus.")),
        ([], "By plane.", ("1. In 2.5 hours. 2. By bus.", "", "")),
        (["By bus."], "1.", ("", "1.", " In 2.5 hours. 2. By bus.")),
    ],
)
def test_claim_is_found_in_the_response(earlier, claim, expected):
    assert parts_around("1. In 2.5 hours. 2. By bus.", earlier, claim) == expected


# Labelling


def test_label_saves_and_shows_the_next_target(round, as_, grader_a):
    fields = sent(round, grader_a, 1, label="supported", milliseconds=4200, key=uuid.uuid4())
    before = datetime.now(UTC)
    answer = as_(grader_a).post(url(round, "label"), fields, **HTMX)
    assert answer.status_code == 200
    row = Annotation.objects.get()
    assert (row.label, row.milliseconds, row.claim.claim_id) == ("supported", 4200, "c1")
    page = soup(answer)
    said = re.search(r"Saved (\d\d:\d\d:\d\d) UTC", page.select_one("#kept").get_text()).group(1)
    assert said == row.updated_at.strftime("%H:%M:%S")
    assert row.updated_at >= before
    assert page.select_one("#now .claim").get_text() == "Bicycles travel free."
    assert page.title.get_text(strip=True).startswith("Claim 2 of 2")


def test_latest_labels_come_with_a_page_and_to_a_script_when_asked_for(round, as_, grader_a, grader_b):
    say(round, grader_b, 6, "contradicted")
    client = as_(grader_a)
    answer = client.post(url(round, "label"), sent(round, grader_a, 6, label="supported"), **HTMX)
    assert not soup(answer).select("#latest")
    link = soup(answer).select_one("details.recent a[data-latest]")["href"]
    for latest in (client.get(link, **HTMX), client.get(link)):
        tags = soup(latest).select("#latest .tag")
        assert [tag.text for tag in tags] == ["supported"]


def test_label_without_script_comes_back_to_the_next_target(round, as_, grader_a):
    answer = as_(grader_a).post(url(round, "label"), sent(round, grader_a, 1, label="supported"), follow=True)
    assert len(answer.redirect_chain) == 1
    page = soup(answer)
    assert "Saved" in page.select_one(".messages").get_text()
    assert page.select_one("#now .claim").get_text() == "Bicycles travel free."


def test_double_click_is_one_label(round, as_, grader_a):
    fields = sent(round, grader_a, 6, label="supported", key=uuid.uuid4())
    answers = [as_(grader_a).post(url(round, "label"), fields, **HTMX) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert Annotation.objects.count() == AnnotationEvent.objects.count() == 1


def test_stale_tab_labels_what_it_shows(round, as_, grader_a):
    """The form of an earlier screen, sent after the queue has moved on."""
    fields = sent(round, grader_a, 6, label="contradicted")
    head = next_assignment(round, grader_of(round, grader_a))
    while head.response.position == 6:
        services.skip(round=round, grader=head.grader, response=head.response)
        head = next_assignment(round, grader_of(round, grader_a))
    as_(grader_a).post(url(round, "label"), fields)
    row = Annotation.objects.get()
    assert (row.response.position, row.label) == (6, "contradicted")


@pytest.mark.parametrize(
    "wrong",
    [
        {"label": ""},
        {"label": "REFUSED"},
        {"label": "Supported"},
        {"label": "x" * 1000},
        {"milliseconds": -1},
        {"milliseconds": "soon"},
        {"key": "not-a-uuid"},
    ],
)
def test_bad_label_is_refused_on_the_screen(round, as_, grader_a, wrong):
    fields = sent(round, grader_a, 6, label="supported") | wrong
    answer = as_(grader_a).post(url(round, "label"), fields, **HTMX)
    assert answer.status_code == 400
    page = soup(answer)
    assert page.select_one("#screen [role=alert]").get_text(strip=True)
    assert page.select_one("#now .claim").get_text() == "Tickets cost 12 euros."
    assert AnnotationEvent.objects.count() == 0


@pytest.mark.parametrize(
    "wrong", [{"assignment": ""}, {"assignment": "x"}, {"assignment": 0}, {"claim": "x"}]
)
def test_target_that_is_none_is_not_found(round, as_, grader_a, wrong):
    fields = sent(round, grader_a, 6, label="supported") | wrong
    assert as_(grader_a).post(url(round, "label"), fields).status_code == 404


def test_claim_of_another_response_is_not_found(round, as_, grader_a):
    fields = sent(round, grader_a, 6, label="supported")
    fields["claim"] = response_of(round, 4).claims.get().pk
    assert as_(grader_a).post(url(round, "label"), fields).status_code == 404


def test_earlier_label_can_be_looked_at_and_changed(round, as_, grader_a):
    say(round, grader_a, 6, "supported", "ANSWERED")
    fields = sent(round, grader_a, 6)
    page = soup(as_(grader_a).get(url(round), {"at": fields["assignment"], "target": f"-{fields['claim']}-"}))
    assert page.select_one("#now [aria-pressed=true]")["value"] == "supported"
    as_(grader_a).post(url(round, "label"), fields | {"label": "unsupported"})
    assert Annotation.objects.get(claim=fields["claim"]).label == "unsupported"


# Taking back, skipping, flags, splits


def test_take_back_returns_to_the_target_with_its_former_label(round, as_, grader_a):
    say(round, grader_a, 1, "supported", "contradicted")
    page = soup(as_(grader_a).post(url(round, "take_back"), {"key": uuid.uuid4()}, **HTMX))
    assert page.select_one("#now .claim").get_text() == "Bicycles travel free."
    former = page.select_one("#now .label:has(small)")
    assert (former["value"], former.small.get_text()) == ("contradicted", "taken back")
    assert page.select("#now .label[aria-pressed=true]") == []
    page = soup(as_(grader_a).post(url(round, "take_back"), {"key": uuid.uuid4()}, follow=True))
    assert page.select_one("#now .claim").get_text() == "The ferry leaves at nine."
    assert Annotation.objects.count() == 0


def test_take_back_twice_with_one_key_is_one(round, as_, grader_a):
    say(round, grader_a, 1, "supported", "contradicted")
    key = uuid.uuid4()
    for _ in range(2):
        assert as_(grader_a).post(url(round, "take_back"), {"key": key}, **HTMX).status_code == 200
    assert Annotation.objects.count() == 1


def test_take_back_of_nothing_says_so(round, as_, grader_a):
    answer = as_(grader_a).post(url(round, "take_back"), follow=True)
    assert "nothing left to take back" in answer.content.decode()


def test_take_back_after_the_last_label(evalset, as_, grader_a):
    round = make_round(make_version(evalset, responses=[("A ferry.", [])]), grader_a)
    say(round, grader_a, 1, "ANSWERED")
    page = soup(as_(grader_a).post(url(round, "take_back"), follow=True))
    assert page.select_one("#now")


def test_skip_shows_the_next_and_comes_again_at_the_end(round, as_, grader_a):
    first = next_assignment(round, grader_of(round, grader_a))
    answer = as_(grader_a).post(url(round, "skip"), {"assignment": first.pk}, **HTMX)
    shown = int(soup(answer).select_one("#label-form [name=assignment]")["value"])
    assert shown != first.pk
    assert Annotation.objects.count() == 0


def test_skip_of_the_only_one_says_so(evalset, as_, grader_a):
    round = make_round(make_version(evalset, responses=[("A ferry.", [])]), grader_a)
    answer = as_(grader_a).post(
        url(round, "skip"), {"assignment": assignment_of(round, grader_a, 1).pk}, follow=True
    )
    assert "only response left" in answer.content.decode()


def test_flag_is_kept_changed_and_removed(round, as_, grader_a):
    fields = sent(round, grader_a, 6)
    for note in ("first", "second"):
        answer = as_(grader_a).post(url(round, "flag"), fields | {"note": note}, **HTMX)
        assert soup(answer).select_one("#flag-note").get_text() == note
    assert Flag.objects.get().note == "second"
    as_(grader_a).post(url(round, "flag"), fields | {"remove": "1"})
    assert not Flag.objects.exists()


def test_split_is_proposed_and_bad_one_is_refused(round, as_, grader_a):
    fields = sent(round, grader_a, 4)
    answer = as_(grader_a).post(url(round, "split"), fields | {"parts": "only one"}, **HTMX)
    assert answer.status_code == 400
    assert "at least two parts" in answer.content.decode()
    as_(grader_a).post(url(round, "split"), fields | {"parts": "Dogs may come.\r\nOn a lead.\r\n"})
    assert ClaimSplit.objects.get().parts == ["Dogs may come.", "On a lead."]


def test_split_of_a_whole_response_is_not_found(round, as_, grader_a):
    assert (
        as_(grader_a).post(url(round, "split"), sent(round, grader_a, 2, None, parts="a\nb")).status_code
        == 404
    )


# Nothing to grade


def test_empty_queue_says_done_and_not_that_somebody_else_is_awaited(evalset, as_, grader_a, grader_b):
    round = make_round(make_version(evalset, responses=[("A ferry.", [])]), grader_a, grader_b)
    say(round, grader_a, 1, "ANSWERED")
    text = soup(as_(grader_a).get(url(round))).select_one("#screen").get_text()
    assert "The one response assigned to you is graded." in text
    assert "grader_b" not in text
    assert "wait" not in text


@pytest.mark.parametrize(
    ("move", "word"), [(services.pause_round, "Paused"), (services.close_round, "Closed")]
)
def test_round_that_is_not_open_says_so_and_refuses(round, as_, grader_a, move, word):
    fields = sent(round, grader_a, 6, label="supported")
    move(round=round)
    assert soup(as_(grader_a).get(url(round))).select_one("#screen h2").get_text() == word
    for extra in ({}, HTMX):
        answer = as_(grader_a).post(url(round, "label"), fields, **extra)
        assert answer.status_code == 409
        assert soup(answer).select_one("#screen [role=alert]").get_text(strip=True)
    assert Annotation.objects.count() == 0


def test_grader_without_assignment_is_told_so(round, as_, member):
    page = soup(as_(member("third", "grader")).get(url(round)))
    assert page.select_one("#screen h2").get_text() == "Not assigned"


def test_server_error_is_never_called_done(round, as_, grader_a, monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("the database is on fire")

    monkeypatch.setattr("annotate.views.grading.next_assignment", broken)
    client = as_(grader_a)
    client.raise_request_exception = False
    answer = client.get(url(round))
    assert answer.status_code == 500
    assert b"Done" not in answer.content


# Keys


@pytest.mark.django_db
@pytest.mark.parametrize("dimension", ["grounding", "abstention"])
def test_no_key_means_two_things(evalset, dimension):
    rubric = services.rubric_v1(evalset=evalset)
    labels = keys.label_keys(rubric.dimensions.get(name=dimension).labels)
    reasons = tuple(keys.Key((key,), value, value) for value, key in keys.REASONS.items())
    for table in ((*labels, *keys.GRADING), (*labels, *reasons, *keys.ADJUDICATING)):
        caps = [key.lower() for entry in table for key in entry.keys]
        assert len(caps) == len(set(caps))


def test_every_key_has_something_to_act_on_and_a_line_on_the_sheet(round, as_, grader_a):
    page = soup(as_(grader_a).get(url(round), {"at": assignment_of(round, grader_a, 1).pk}))
    table = json.loads(page.select_one("script#keys").string)
    sheet = page.select_one("#keys-sheet")
    caps = [cap.get_text() for cap in sheet.select("dt kbd")]
    label_keys = json.loads(page.select_one("script#label-keys").string)
    assert [entry["keys"] for entry in label_keys] == [["1"], ["2"], ["3"], ["4"]]
    for entry in label_keys + [entry for entry in table if entry["action"] != "onward"]:
        assert page.select_one(f'[data-action="{entry["action"]}"]'), entry
        for key in entry["keys"]:
            assert (key if key != " " else "Space") in caps


def test_no_inline_script_or_style(round, as_, grader_a):
    page = soup(as_(grader_a).get(url(round)))
    assert page.select("[style], style, script:not([src]):not([type='application/json'])") == []
    assert not [a for tag in page.find_all(True) for a in tag.attrs if a.startswith("on")]


def test_reference_answer_is_shown_only_with_a_reference_based_rubric(evalset, as_, grader_a):
    version = make_version(evalset, freeze=False)
    item = Response.objects.get(version=version, position=1).item
    item.reference_answer = "REFERENCE"
    item.save()
    round = make_round(freeze_all(version), grader_a)
    at = {"at": assignment_of(round, grader_a, 1).pk}
    assert "REFERENCE" not in as_(grader_a).get(url(round), at).content.decode()
    rubric = round.rubric_version
    rubric.reference_based = True
    rubric.save()
    assert "REFERENCE" in as_(grader_a).get(url(round), at).content.decode()
