"""What a screen shows of each kind of target, and what travels with a label: evidence, a note, a setting."""

import uuid

import pytest
from django.urls import reverse

from annotate.models import Annotation, AnnotationEvent, Assignment
from evalsets.models import Passage
from tests.annotate.kinds import MANY, TYPES, ask_everything
from tests.annotate.pages import soup
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, response_of, say

pytestmark = [pytest.mark.django_db, pytest.mark.once]
HTMX = {"HTTP_HX_REQUEST": "true"}
FERRY = ("The ferry leaves at nine. Bicycles pay.", ["The ferry leaves at nine.", "Bicycles pay."])


@pytest.fixture
def round(evalset, grader_a):
    """Two responses of which everything is asked, by one grader."""
    ask_everything(evalset)
    return make_round(make_version(evalset, responses=[FERRY, ("Nothing is said.", [])]), grader_a)


@pytest.fixture
def a(client, grader_a):
    client.force_login(grader_a)
    return client


def url(round, name="grade"):
    return reverse(f"annotate:{name}", args=[round.pk])


def place(round, person, position):
    return {
        "at": Assignment.objects.get(
            round=round, grader=grader_of(round, person), response__position=position
        ).pk
    }


def form_of(shown) -> dict:
    """What the label form would send, without a label."""
    fields = {i["name"]: i.get("value", "") for i in shown.select("#label-form input[type=hidden]")}
    fields["evidence"] = [i["value"] for i in shown.select("#label-form [name=evidence][checked]")]
    fields["note"] = shown.select_one("#label-note").get_text()
    return fields


def ahead_of(shown) -> str:
    """The assignment whose response the page holds to be shown next."""
    return shown.find(id="ahead").find(id="screen")["data-assignment"]


def asked(shown) -> tuple:
    """The dimension, the claim's number, and the passage that the form is about."""
    fields = form_of(shown)
    about = shown.select_one("#work")["data-about"]
    heading = shown.select_one("#now .eyebrow").find(string=True).strip().split(" of ")[0]
    return fields["dimension"], heading, about


def label(client, round, shown, name, **more):
    answer = client.post(url(round, "label"), form_of(shown) | {"label": name, **more}, follow=True)
    assert answer.status_code == 200
    return soup(answer)


def at(client, round, position):
    return soup(client.get(url(round), place(round, client.person, position)))


@pytest.fixture
def shown(a, round, grader_a):
    a.person = grader_a
    return at(a, round, 1)


def test_every_kind_of_target_is_asked_in_order(a, round, shown):
    seen = []
    for choice in ("contradicted", TYPES[1], "full", "supported", "none", "ANSWERED", "wrong", "of use"):
        seen.append(asked(shown))
        shown = label(a, round, shown, choice)
    seen.append(asked(shown))
    assert seen == [
        ("grounding", "Claim 1", ""),
        ("error type", "Claim 1", ""),
        ("citation support", "Claim 1", "2"),
        ("grounding", "Claim 2", ""),
        ("citation support", "Claim 2", "2"),
        ("abstention", "The whole response", ""),
        ("correctness", "The whole response", ""),
        ("context relevance", "Passage 1", "1"),
        ("context relevance", "Passage 2", "2"),
    ]


def test_claim_with_several_labels_is_shown_once_with_all_of_them(a, round, shown):
    for choice in ("contradicted", TYPES[1], "full"):
        shown = label(a, round, shown, choice)
    rows = shown.select("#work .claims > li")
    texts = [row.select_one(".text, .claim").get_text() for row in rows[:2]]
    assert texts == FERRY[1]
    assert [tag.get_text(" ", strip=True) for tag in rows[0].select(".tag")] == [
        "contradicted",
        TYPES[1],
        "2 full",
    ]


def test_passage_that_is_asked_about_is_marked_and_first(a, round, shown):
    shown = label(a, round, shown, "supported")
    assert shown.select_one("#asks").get_text() == "Does this passage bear out the claim?"
    assert [p["data-rank"] for p in shown.select("#passages .passage")] == ["2", "1"]
    first = shown.select_one("#passages .passage")
    assert "asked" in first["class"]
    assert not first.select_one("[data-asked]").has_attr("hidden")
    assert shown.select("#label-form [name=evidence]") == []  # the passage is given with the question


def test_labels_of_an_optional_dimension_have_their_keys_and_no_class_of_their_own(a, round, shown):
    shown = label(a, round, shown, "unsupported")
    buttons = shown.select("#label-form .label")
    assert [b.kbd.get_text() for b in buttons] == ["1", "2", "3", "4"]
    assert [b["value"] for b in buttons] == list(TYPES)
    assert [b["class"][1] for b in buttons] == ["hue-1", "hue-2", "hue-3", "hue-4"]
    sheet = shown.select_one("#keys-sheet")
    assert {h.get_text() for h in sheet.select("h3")} >= {"error type", "informativeness"}
    assert [dd.get_text() for dd in sheet.select("dd")][:4] == [
        "supported",
        "contradicted",
        "unsupported",
        "unverifiable",
    ]


def test_up_to_nine_labels_of_a_refusal(a, round, shown, grader_a):
    shown = label(a, round, at(a, round, 2), "REFUSED")
    assert asked(shown)[0] == "informativeness"
    assert [b["value"] for b in shown.select("#label-form .label")] == list(MANY)


def test_changed_label_takes_its_dependent_question_off_the_screen(a, round, shown, grader_a):
    shown = label(a, round, label(a, round, shown, "contradicted"), TYPES[0])
    again = place(round, grader_a, 1) | {"target": f"grounding-{response_of(round, 1).claims.first().pk}-"}
    shown = soup(a.get(url(round), again))
    assert [tag.get_text(strip=True) for tag in shown.select("#now .tag")] == [TYPES[0]]
    shown = label(a, round, shown, "supported")
    assert asked(shown) == ("citation support", "Claim 1", "2")
    assert [tag.get_text(strip=True) for tag in shown.select("#now .tag")] == ["supported"]
    assert not Annotation.objects.filter(dimension="error type").exists()


def test_flag_comes_back_to_the_question_it_was_raised_at(a, round, shown):
    shown = label(a, round, shown, "contradicted")
    fields = {i["name"]: i["value"] for i in shown.select("[data-action=flag] input[type=hidden]")}
    shown = soup(a.post(url(round, "flag"), fields | {"note": "look"}, follow=True))
    assert asked(shown)[0] == "error type"


def test_labels_after_which_nothing_is_left_are_known_before_they_are_chosen(a, evalset, grader_a):
    ask_everything(evalset)
    version = make_version(evalset, responses=[("Nothing is said.", [])], freeze=False)
    Passage.objects.all().delete()
    round = make_round(freeze_all(version), grader_a)
    shown = soup(a.get(url(round)))
    finishing = [b["value"] for b in shown.select("#label-form .label[data-finishes]")]
    assert finishing == ["CLARIFY"]  # the others lead to a further question


# Evidence and note


def test_evidence_travels_with_the_label_and_is_shown_again(a, round, shown, grader_a):
    boxes = shown.select("#label-form [name=evidence]")
    assert [box["value"] for box in boxes] == ["1", "2"]
    shown = label(a, round, shown, "supported", evidence=["1", "2"], note="both say it\nclearly")
    row = Annotation.objects.get()
    assert (row.evidence, row.note) == ([1, 2], "both say it\nclearly")
    assert AnnotationEvent.objects.get().evidence == [1, 2]
    again = place(round, grader_a, 1) | {"target": f"grounding-{row.claim_id}-"}
    fields = form_of(soup(a.get(url(round), again)))
    assert (fields["evidence"], fields["note"]) == (["1", "2"], "both say it\nclearly")


def test_evidence_and_note_come_back_with_a_label_taken_back(a, round, shown):
    label(a, round, shown, "supported", evidence=["2"], note="there")
    shown = soup(a.post(url(round, "take_back"), follow=True))
    assert (form_of(shown)["evidence"], form_of(shown)["note"]) == (["2"], "there")
    assert Annotation.objects.count() == 0


def test_evidence_of_one_claim_does_not_stand_at_the_next(a, round, shown):
    shown = label(a, round, shown, "supported", evidence=["1"], note="x")
    assert form_of(shown)["note"] == ""
    shown = label(a, round, shown, "full")
    assert asked(shown)[:2] == ("grounding", "Claim 2")
    assert (form_of(shown)["evidence"], form_of(shown)["note"]) == ([], "")


@pytest.mark.parametrize("wrong", [["3"], ["x"], ["1", "-2"]])
def test_evidence_that_is_no_passage_is_refused(a, round, shown, wrong):
    answer = a.post(url(round, "label"), form_of(shown) | {"label": "supported", "evidence": wrong})
    assert answer.status_code == 400
    assert Annotation.objects.count() == 0


# Auto-advance


def test_auto_advance_is_a_setting_of_the_browser(a, round, shown, grader_a):
    where = {name: form_of(shown)[name] for name in ("assignment", "dimension", "claim", "passage")}
    shown = soup(a.post(url(round, "advance"), where, follow=True))
    assert a.cookies["touchstone_advance"].value == "off"
    assert shown.select_one("form[action$='/advance/'] button")["aria-pressed"] == "false"
    shown = label(a, round, shown, "contradicted")
    assert asked(shown) == ("grounding", "Claim 1", "")
    assert shown.select_one("#now .label[aria-pressed=true]")["value"] == "contradicted"
    shown = soup(a.get(shown.select_one("[data-action=onward]")["href"]))
    assert asked(shown) == ("error type", "Claim 1", "")
    shown = soup(a.post(url(round, "advance"), where | {"on": "1"}, follow=True))
    shown = label(a, round, shown, "supported")
    assert asked(shown)[0] == "citation support"


def test_setting_of_another_graders_screen_is_not_found(round, shown, client, grader_a, grader_b):
    fields = {"assignment": place(round, grader_a, 1)["at"]}
    client.force_login(grader_b)
    assert client.post(url(round, "advance"), fields).status_code == 404


# Only what changes is sent; what comes next is held before it is asked for


def test_page_holds_the_next_response_before_it_is_asked_for(a, round, shown, grader_a):
    """Nothing is written by it, and it is the grader's own next one."""
    assert ahead_of(shown) == str(place(round, grader_a, 2)["at"]) == shown.select_one("#work")["data-ahead"]
    assert AnnotationEvent.objects.count() == 0
    assert set(Assignment.objects.values_list("state", "skips")) == {("pending", 0)}


def test_what_the_page_holds_is_not_sent_again(a, round, shown, grader_a):
    first, second = place(round, grader_a, 1)["at"], place(round, grader_a, 2)["at"]
    fields = form_of(shown) | {"label": "supported"}
    answer = a.post(url(round, "label"), fields, **HTMX, HTTP_TOUCHSTONE_HELD=f"{first},{second}")
    got = soup(answer)
    assert got.select_one("#work")["data-assignment"] == str(first)
    assert got.select("#screen, #ahead, .passage, .question, .response") == []
    assert len(answer.content) < 15_000
    fields = form_of(got) | {"label": "full"}
    whole = soup(a.post(url(round, "label"), fields, **HTMX))
    assert whole.select("#screen > .grade .passage")


def test_answer_to_the_last_label_brings_the_response_after_next(a, evalset, grader_a):
    version = make_version(evalset, responses=[(f"Answer {n}.", []) for n in range(1, 5)])
    round = make_round(version, grader_a)
    shown = soup(a.get(url(round)))
    first, ahead = shown.select_one("#screen")["data-assignment"], ahead_of(shown)
    fields = form_of(shown) | {"label": "ANSWERED"}
    got = soup(a.post(url(round, "label"), fields, **HTMX, HTTP_TOUCHSTONE_HELD=f"{first},{ahead}"))
    assert got.select_one("#work")["data-assignment"] == ahead
    after = ahead_of(got)
    assert after not in (first, ahead)
    assert got.select_one("#work")["data-ahead"] == after


@pytest.mark.parametrize("held", ["x", "1,,2", "-1", "9" * 400, "<b>"])
def test_any_word_about_what_is_held_is_survived(a, round, shown, held):
    fields = form_of(shown) | {"label": "supported", "key": uuid.uuid4()}
    answer = a.post(url(round, "label"), fields, **HTMX, HTTP_TOUCHSTONE_HELD=held)
    assert answer.status_code == 200
    assert "Saved" in soup(answer).select_one("#kept").get_text()


def test_claim_is_found_in_the_text_as_a_browser_counts(a, evalset, grader_a):
    """UTF-16 units, after the parser has made one line end of two characters: 🙂 counts two."""
    text = "One 🙂\r\ntwo. Three."
    round = make_round(make_version(evalset, responses=[(text, ["Three."])]), grader_a)
    shown = soup(a.get(url(round)))
    assert shown.select_one("#work")["data-claim-at"] == "12-18"


def test_label_given_from_one_tab_shows_in_a_stale_one_as_what_it_labels(a, round, shown):
    """The stale form still names its own target: nothing lands on what came after it."""
    label(a, round, shown, "supported")
    label(a, round, shown, "unsupported", key=uuid.uuid4())
    rows = Annotation.objects.values_list("dimension", "label")
    assert list(rows) == [("grounding", "unsupported")]
    assert say(round, a.person, 1, None, "supported").claim.position == 2
