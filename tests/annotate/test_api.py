"""REST: rounds, a grader's own work, disagreements and decisions."""

import pytest

from annotate.models import Adjudication, Annotation, Assignment, Opening, Round
from tests.annotate.worlds import claim_of, grader_of, response_of, say
from tests.api import Api, problem
from tests.evalsets.files import rows_of_every_table

pytestmark = pytest.mark.django_db
V = "/evalsets/roles/versions/1"


@pytest.fixture
def api(lead):
    return Api(lead)


def case(round):
    return f"{V}/disagreements/1/grounding/{claim_of(round, 6).pk}/"


# A grader's own work


@pytest.fixture
def own(round, grader_a):
    return Api(grader_a), f"/my/rounds/{round.pk}"


def first_of(api, path):
    """An assignment whose response has a claim."""
    pending = api.get(f"{path}/assignments/", state="pending").json()["results"]
    places = (f"{path}/assignments/{row['id']}/" for row in pending)
    return next(place for place in places if api.get(place).json()["claims"])


def test_grade_over_the_api(own, round, grader_a):
    api, path = own
    assert api.get("/my/rounds/").json()["results"][0]["id"] == round.pk
    place = first_of(api, path)
    screen = api.get(place).json()
    target = screen["targets"][0]
    assert (target["label"], target["claim"]) == ("", screen["claims"][0]["id"])
    label = {"dimension": "grounding", "claim": target["claim"], "label": "supported", "evidence": [1]}
    kept = api.post(f"{place}annotations/", label, key="one")
    assert kept.json() == {"label": "supported", "assignment_state": "pending"}
    assert api.post(f"{place}annotations/", label, key="one").content == kept.content
    assert Annotation.objects.get().grader == grader_of(round, grader_a)
    (said,) = api.get(f"{path}/annotations/").json()["results"]
    assert (said["label"], said["evidence"]) == ("supported", [1])
    assert api.post(f"{path}/take-back/").json()["label"] == "supported"
    assert api.post(f"{path}/take-back/").json()["label"] is None
    assert not Annotation.objects.exists()


def test_what_is_anothers_is_not_there(own, round, grader_b, stranger, lead):
    api, path = own
    place = first_of(api, path)
    for somebody in (grader_b, stranger, lead):
        problem(Api(somebody).get(place), 404)
        problem(Api(somebody).post(f"{place}annotations/", {"dimension": "abstention", "label": "x"}), 404)
    for somebody in (stranger, lead):
        problem(Api(somebody).get(f"{path}/assignments/"), 404)
        assert Api(somebody).get("/my/rounds/").json()["results"] == []


@pytest.mark.parametrize(
    ("label", "status"),
    [
        ({"dimension": "grounding", "label": "splendid"}, 409),
        ({"dimension": "colour", "label": "supported"}, 409),
        ({"label": "supported"}, 400),
        ({"dimension": "grounding", "label": 7}, 400),
        ({"dimension": "grounding", "claim": 10**6, "label": "supported"}, 404),
        ({"dimension": "abstention", "label": "REFUSED", "evidence": [77]}, 409),
        ({"dimension": "abstention", "label": "REFUSED", "colour": "red"}, 400),
    ],
)
def test_a_label_that_cannot_be_is_refused(own, label, status):
    api, path = own
    place = first_of(api, path)
    problem(api.post(f"{place}annotations/", label), status)
    assert not Annotation.objects.exists()


def test_nothing_is_shown_of_a_round_that_is_not_open(own, round, api):
    grader, path = own
    place = first_of(grader, path)
    assert api.post(f"{V}/rounds/1/pause/").json()["state"] == "paused"
    problem(grader.get(place), 409)
    problem(grader.post(f"{place}annotations/", {"dimension": "abstention", "label": "REFUSED"}), 409)
    assert api.post(f"{V}/rounds/1/resume/").json()["state"] == "open"
    assert grader.get(place).status_code == 200


def test_grading_needs_its_scope(round, grader_a):
    problem(Api(grader_a, "read").get("/my/rounds/"), 403)
    assert Api(grader_a, "grade").get("/my/rounds/").status_code == 200


# Rounds


def test_open_a_round(api, version, grader_a, grader_b):
    new = {"graders": ["grader_a", "grader_b"], "overlap": "first", "count": 2, "seed": 7}
    made = api.post(f"{V}/rounds/", new)
    assert made.status_code == 201
    assert (made.json()["overlap"], made.json()["seed"]) == (2, 7)
    assert api.post(f"{V}/rounds/", new).json() == made.json()  # its seed is its name
    assert Round.objects.count() == 1
    assert api.get(f"{V}/rounds/").json()["results"] == [made.json()]


@pytest.mark.parametrize(
    "bad", [{"graders": ["nobody"]}, {"graders": []}, {"graders": ["grader_a"], "overlap": "random"}]
)
def test_a_round_that_cannot_be_is_refused(api, version, grader_a, bad):
    before = rows_of_every_table()["annotate_round"]
    assert problem(api.post(f"{V}/rounds/", bad), 409)["errors"]
    assert rows_of_every_table()["annotate_round"] == before


def test_the_lead_sees_how_far_a_round_is(api, split_over_six):
    told = api.get(f"{V}/rounds/1/").json()
    assert told["progress"]["to_decide"] == 1
    assert {row["grader"]: row["labels"] for row in told["graders"]} == {"grader_a": 1, "grader_b": 1}


def test_rounds_are_not_there_for_graders(round, grader_a):
    for path in ("rounds/", "rounds/1/", "disagreements/", "adjudications/"):
        problem(Api(grader_a).get(f"{V}/{path}"), 404)
    problem(Api(grader_a).post(f"{V}/rounds/1/close/"), 404)


# Disagreements


def test_decide_a_disagreement(api, split_over_six, lead):
    (row,) = api.get(f"{V}/disagreements/").json()["results"]
    assert row["labels"] == {"supported": 1, "contradicted": 1}
    place = case(split_over_six)
    assert problem(api.get(place), 409)["type"].endswith("not-opened")
    opened = api.post(f"{place}open/").json()
    assert Opening.objects.get().by == lead
    assert sorted(voice["label"] for voice in opened["voices"]) == ["contradicted", "supported"]
    assert api.get(place).json() == opened
    decision = {"label": "supported", "reason": "edge_case", "note": "Look.", "seen": opened["seen"]}
    made = api.post(place, decision, key="d1")
    assert made.status_code == 201
    assert api.post(place, decision, key="d1").content == made.content
    assert Adjudication.objects.count() == 1
    assert api.get(f"{V}/disagreements/").json()["results"] == []
    (logged,) = api.get(f"{V}/adjudications/").json()["results"]
    assert (logged["decision"], logged["note"]) == ("supported", "Look.")
    assert {said["grader"] for said in logged["labels"]} == {"grader_a", "grader_b"}


def test_an_opened_case_is_not_shown_again_to_a_lead_who_grades_by_now(api, split_over_six, lead, grader_a):
    place = case(split_over_six)
    assert api.post(f"{place}open/", key="o").status_code == 200
    grader = grader_of(split_over_six, grader_a)
    grader.person = lead
    grader.save()
    Assignment.objects.filter(grader=grader).update(state="pending")
    told = problem(api.post(f"{place}open/", key="o"), 403)
    assert told["type"].endswith("closed-while-grading")


def test_a_decision_is_about_what_was_seen(api, split_over_six, grader_b):
    place = case(split_over_six)
    good = {"label": "supported", "reason": "edge_case"}
    problem(api.post(place, good), 400)
    assert problem(api.post(place, good | {"seen": "other"}), 409)["type"].endswith("changed-meanwhile")
    assert not Adjudication.objects.exists()


def test_what_somebody_has_yet_to_label_is_not_shown(api, round, grader_a):
    say(round, grader_a, 6, "supported")
    place = case(round)
    problem(api.post(f"{place}open/"), 409)
    problem(api.get(place), 409)
    Opening.objects.create(
        round=round, response=response_of(round, 6), by=round.version.evalset.memberships.first().person
    )
    problem(api.get(place), 409)


def test_a_case_that_is_none_is_not_there(api, split_over_six):
    for wrong in ("1/grounding/999999", "9/grounding/1", "1/colour/1", "1/grounding/x"):
        problem(api.get(f"{V}/disagreements/{wrong}/"), 404)
