"""REST: members, the rubric, splits, work that is handed over, decisions taken back, and the claim audit."""

import pytest

from annotate import services
from annotate.models import Adjudication, Assignment, ClaimSplit, RubricTask, RubricVersion
from evalsets.models import Membership
from tests.annotate.worlds import claim_of, decide, gold_of, grader_of, make_round, make_version
from tests.api import Api, problem

pytestmark = pytest.mark.django_db
SET = "/evalsets/roles"
V = f"{SET}/versions/1"


@pytest.fixture
def api(lead):
    return Api(lead)


def rows_of(answer):
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


# Members


def test_members_are_added_told_and_removed(api, lead, grader_a, stranger):
    answer = api.post(f"{SET}/members/", {"username": "stranger", "role": "grader"}, key="m")
    assert answer.status_code == 201
    assert (
        api.post(f"{SET}/members/", {"username": "stranger", "role": "grader"}, key="m").json()
        == answer.json()
    )
    assert {(row["username"], row["role"]) for row in rows_of(api.get(f"{SET}/members/"))} >= {
        (lead.username, "lead"),
        (grader_a.username, "grader"),
        ("stranger", "grader"),
    }
    place = f"{SET}/members/{answer.json()['id']}/"
    assert api.get(place).json()["role"] == "grader"
    assert remove(api, place).status_code == 204
    problem(remove(api, place), 404)
    assert not Membership.objects.filter(person=stranger).exists()


def remove(api, place):
    return api.client.delete(f"/api/v1{place}", headers=api.headers)


def test_the_last_lead_stays(api, lead):
    own = Membership.objects.get(person=lead, role="lead")
    assert problem(remove(api, f"{SET}/members/{own.pk}/"), 409)["type"].endswith("last-lead")
    assert Membership.objects.filter(pk=own.pk).exists()


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"username": "nobody", "role": "grader"}, 409, "username"),
        ({"username": "lead", "role": "boss"}, 400, "role"),
        ({"role": "lead"}, 400, "username"),
    ],
)
def test_who_is_nobody_cannot_be_a_member(api, body, status, field):
    assert problem(api.post(f"{SET}/members/", body), status)["errors"][0]["field"] == field


def test_members_are_a_leads_and_need_their_scope(lead, grader_a, stranger):
    body = {"username": stranger.username, "role": "lead"}
    for somebody in (grader_a, stranger):
        problem(Api(somebody).get(f"{SET}/members/"), 404)
        problem(Api(somebody, "members").post(f"{SET}/members/", body), 404)
    assert problem(Api(lead, "read", "rounds").post(f"{SET}/members/", body), 403)["type"].endswith("scope")
    assert not Membership.objects.filter(person=stranger).exists()


# The rubric


def latest(api):
    return api.get(f"{V}/rubric/versions/1/").json()["content"]


def test_a_rubric_version_is_written_once_and_compared(api, version):
    assert [row["version"] for row in rows_of(api.get(f"{V}/rubric/versions/"))] == [1]
    content = latest(api)
    content["dimensions"][0]["labels"][0]["examples"].append("Another example")
    made = api.post(f"{V}/rubric/versions/", content)
    again = api.post(f"{V}/rubric/versions/", content)
    assert (made.status_code, made.json()["version"], made.json()["content"]) == (201, 2, content)
    assert (again.status_code, again.json()["version"]) == (200, 2)
    assert api.post(f"{V}/rubric/versions/", latest(api)).json()["version"] == 1
    [change] = api.get(f"{V}/rubric/changes/", earlier=1, later=2).json()["changes"]
    assert (change["kind"], change["pieces"]) == ("added", [{"kind": "added", "text": "Another example"}])
    assert change["where"][:2] == ["dimensions", "grounding"]


def test_what_makes_no_rubric_is_refused_where_it_stands(api, version):
    content = latest(api)
    content["dimensions"][0]["labels"][1]["key"] = content["dimensions"][0]["labels"][0]["key"]
    told = problem(api.post(f"{V}/rubric/versions/", content), 409)
    assert "dimensions[0].labels[1].key" in [error["field"] for error in told["errors"]]
    del content["decisions"]
    assert problem(api.post(f"{V}/rubric/versions/", content), 400)["errors"][0]["field"] == "decisions"
    problem(api.post(f"{V}/rubric/versions/", latest(api) | {"more": 1}), 400)
    assert RubricVersion.objects.count() == 1


def test_a_rubric_version_settles_the_notes_that_it_names(api, split_over_six, lead):
    decide(split_over_six, lead, 6, "supported")
    decision = Adjudication.objects.get()
    rubric = split_over_six.rubric_version.rubric
    services.note_for_rubric(rubric=rubric, adjudication=decision, text="Say it.", person=lead)
    [note] = rows_of(api.get(f"{V}/rubric/notes/"))
    assert (note["note"], note["labels"], note["is_dismissed"]) == (
        "Say it.",
        {"supported": 1, "contradicted": 1},
        False,
    )
    place = f"{V}/rubric/notes/{note['id']}"
    assert api.post(f"{place}/dismiss/").json() == {"id": note["id"], "is_dismissed": True}
    assert api.post(f"{place}/restore/").json()["is_dismissed"] is False
    content = latest(api) | {"decisions": "Read it literally.", "settles": [note["id"]]}
    assert api.post(f"{V}/rubric/versions/", content).status_code == 201
    assert rows_of(api.get(f"{V}/rubric/notes/")) == []
    assert RubricTask.objects.get().settled_in.number == 2
    problem(api.post(f"{place}/dismiss/"), 409)


def test_notes_are_settled_by_whom_they_are_open_to(api, split_over_six, lead, grader_a, version):
    content = latest(api) | {"decisions": "Read it literally."}
    told = problem(api.post(f"{V}/rubric/versions/", content | {"settles": [4711]}), 409)
    assert [(error["field"], error["value"]) for error in told["errors"]] == [("settles", "4711")]
    decide(split_over_six, lead, 6, "supported")
    rubric = split_over_six.rubric_version.rubric
    note = services.note_for_rubric(
        rubric=rubric, adjudication=Adjudication.objects.get(), text="Say it.", person=lead
    )
    Membership.objects.create(evalset=version.evalset, person=lead, role="grader")
    make_round(make_version(version.evalset), lead, grader_a)
    problem(api.post(f"{V}/rubric/versions/", content | {"settles": [note.pk]}), 403)
    problem(api.get(f"{V}/rubric/notes/"), 403)
    assert RubricVersion.objects.count() == 1


# Handing over


def api_left(round, person):
    own = Assignment.objects.filter(round=round, grader=grader_of(round, person))
    return own.filter(state=Assignment.State.PENDING).count()


def test_unfinished_work_is_handed_over(api, round, grader_a, grader_b, member):
    third = member("third", "grader")
    asked = {"grader": grader_of(round, grader_a).name, "to": "third", "at_most": 2}
    told = api.post(f"{V}/rounds/1/reassign/", asked, key="h").json()
    assert (told["moved"], told["left"]) == (2, api_left(round, grader_a))
    assert api.post(f"{V}/rounds/1/reassign/", asked, key="h").json() == told
    assert Assignment.objects.filter(round=round, grader=grader_of(round, third)).count() == 2


@pytest.mark.parametrize("body", [{}, {"grader": "nobody"}, {"to": "stranger"}])
def test_handing_over_names_who(api, round, stranger, body):
    problem(api.post(f"{V}/rounds/1/reassign/", body), 409)
    problem(api.post(f"{V}/rounds/1/reassign/", {"at_most": 0}), 400)


def test_a_key_is_no_name(api, round, grader_a, grader_b):
    """What looks like the key of somebody names nobody."""
    before = list(Assignment.objects.order_by("pk").values_list("grader", "state"))
    for name, value, other in (
        ("grader", str(grader_of(round, grader_a).pk), {"to": grader_b.username}),
        ("to", str(grader_b.pk), {"grader": grader_of(round, grader_a).name}),
    ):
        told = problem(api.post(f"{V}/rounds/1/reassign/", {name: value, **other}), 409)
        assert [error["field"] for error in told["errors"]] == [name]
    assert list(Assignment.objects.order_by("pk").values_list("grader", "state")) == before


# Splits and decisions


@pytest.fixture
def split(split_over_six, grader_a):
    grader = grader_of(split_over_six, grader_a)
    claim = claim_of(split_over_six, 6)
    return ClaimSplit.objects.create(round=split_over_six, claim=claim, grader=grader, parts=["one", "two"])


def test_a_split_is_accepted_once(api, split):
    [row] = rows_of(api.get(f"{V}/rounds/1/splits/", state="proposed"))
    assert (row["id"], row["target"], row["parts"]) == (split.pk, str(split.claim_id), ["one", "two"])
    assert "grader" not in row
    place = f"{V}/rounds/1/splits/{split.pk}/accept/"
    parts = [{"text": "one", "label": "supported"}, {"text": "two", "label": "contradicted"}]
    made = api.post(place, {"parts": parts}, key="s")
    assert made.status_code == 201
    assert [(row["label"], row["reason"]) for row in made.json()["decisions"]] == [
        ("supported", "split"),
        ("contradicted", "split"),
    ]
    assert api.post(place, {"parts": parts}, key="s").json() == made.json()
    problem(api.post(place, {"parts": parts}), 409)
    assert split.claim.parts.count() == 2


def test_a_split_is_declined_or_refused(api, split):
    place = f"{V}/rounds/1/splits/{split.pk}"
    problem(api.post(f"{place}/accept/", {"parts": [{"text": "one", "label": "supported"}]}), 409)
    problem(api.post(f"{place}/accept/", {"parts": [{"text": "one", "label": "maybe"}]}), 400)
    assert api.post(f"{place}/decline/").json()["state"] == "declined"
    problem(api.post(f"{V}/rounds/1/splits/{split.pk + 1}/decline/"), 404)


def test_a_lead_splits_what_nobody_proposed_to_split(api, split_over_six):
    claim, place = claim_of(split_over_six, 6), f"{V}/rounds/1/splits/"
    parts = [{"text": "one", "label": "supported"}, {"text": "two", "label": "contradicted"}]
    problem(api.post(place, {"target": claim.pk, "parts": parts[:1]}), 409)
    problem(api.post(place, {"parts": parts}), 400)
    problem(api.post(place, {"target": claim.pk + 1000, "parts": parts}), 404)
    assert not ClaimSplit.objects.exists()
    body = {"target": claim.pk, "parts": parts, "note": "two facts"}
    made = api.post(place, body, key="own")
    assert made.status_code == 201
    assert [row["note"] for row in made.json()["decisions"]] == ["two facts"] * 2
    assert api.post(place, body, key="own").json() == made.json()
    problem(api.post(place, body), 409)
    assert list(claim.parts.order_by("pk").values_list("text", flat=True)) == ["one", "two"]
    split = ClaimSplit.objects.get()
    assert rows_of(api.get(place, state="accepted"))[0]["id"] == split.pk
    assert sorted(label for label, _source in gold_of(split_over_six).values()) == [
        "contradicted",
        "supported",
    ]


def test_a_split_is_taken_back_by_further_entries(api, split):
    parts = [{"text": "one", "label": "supported"}, {"text": "two", "label": "contradicted"}]
    place = f"{V}/rounds/1/splits/{split.pk}"
    problem(api.post(f"{place}/take-back/", {}), 409)
    api.post(f"{place}/accept/", {"parts": parts})
    made = api.post(f"{place}/take-back/", {"note": "one fact"}, key="b")
    assert made.status_code == 201
    assert [(row["revokes"], row["note"]) for row in made.json()["decisions"]] == [(True, "one fact")] * 2
    assert api.post(f"{place}/take-back/", {"note": "one fact"}, key="b").json() == made.json()
    assert [row["state"] for row in rows_of(api.get(f"{V}/rounds/1/splits/"))] == ["taken_back"]
    assert gold_of(split.round) == {}


def test_a_decision_is_taken_back_by_a_further_entry(api, split_over_six, lead):
    decide(split_over_six, lead, 6, "supported")
    answer = api.post(f"{V}/adjudications/1/revoke/", {"note": "not so"}, key="r")
    assert (answer.status_code, answer.json()["revokes"], answer.json()["note"]) == (201, True, "not so")
    assert api.post(f"{V}/adjudications/1/revoke/", {"note": "not so"}, key="r").json() == answer.json()
    assert not gold_of(split_over_six)
    problem(api.post(f"{V}/adjudications/1/revoke/"), 409)
    problem(api.post(f"{V}/adjudications/3/revoke/"), 404)


# The claim audit


def test_claims_are_marked_and_a_response_finished(api, version):
    made = api.post(f"{V}/claim-audit/samples/", {"size": 20, "seed": 3})
    assert (made.status_code, made.json()["sample"], made.json()["done"]) == (201, 1, 0)
    assert api.post(f"{V}/claim-audit/samples/", {"size": 20, "seed": 3}).json() == made.json()
    [row] = rows_of(api.get(f"{V}/claim-audit/samples/"))
    assert row == made.json()
    responses = rows_of(api.get(f"{V}/claim-audit/samples/1/responses/"))
    assert len(responses) == row["responses"]
    places = [f"{V}/claim-audit/samples/1/responses/{one['position']}/" for one in responses]
    place = next(place for place in places if api.get(place).json()["claims"])
    claims = api.get(place).json()["claims"]
    problem(api.post(f"{place}finish/", {"missing": 1}), 409)
    for claim in claims:
        marked = api.post(f"{place}marks/", {"claim": claim["id"], "mark": "badly_split"})
    assert {claim["mark"] for claim in marked.json()["claims"]} == {"badly_split"}
    told = api.post(f"{place}finish/", {"missing": 1, "note": "one is left out"}, key="f").json()
    assert (told["missing"], told["note"], told["done_at"] is None) == (1, "one is left out", False)
    assert api.post(f"{place}finish/", {"missing": 1, "note": "one is left out"}, key="f").json() == told
    assert rows_of(api.get(f"{V}/claim-audit/samples/"))[0]["done"] == 1
    problem(api.post(f"{place}marks/", {"claim": 10**9, "mark": "well_split"}), 404)
    problem(api.post(f"{place}marks/", {"claim": claims[0]["id"], "mark": "fine"}), 400)
    problem(api.post(f"{V}/claim-audit/samples/", {"system_runs": [9]}), 409)


# Who may


def written(split):
    """A note to move and a claim to mark are not there: who may not must not learn that."""
    return {
        f"{V}/rubric/versions/": {},
        f"{V}/rubric/notes/1/dismiss/": {},
        f"{V}/rubric/notes/1/restore/": {},
        f"{V}/claim-audit/samples/1/responses/1/marks/": {"claim": 1, "mark": "well_split"},
        f"{V}/rounds/1/reassign/": {"to": "lead"},
        f"{V}/rounds/1/splits/{split.pk}/accept/": {"parts": [{"text": "a", "label": "supported"}] * 2},
        f"{V}/rounds/1/splits/{split.pk}/decline/": {},
        f"{V}/rounds/1/splits/{split.pk}/take-back/": {},
        f"{V}/rounds/1/splits/": {
            "target": split.claim_id,
            "parts": [{"text": "a", "label": "supported"}] * 2,
        },
        f"{V}/adjudications/1/revoke/": {},
        f"{V}/claim-audit/samples/": {},
        f"{V}/claim-audit/samples/1/responses/1/finish/": {"missing": 0},
    }


READ = ["rubric/versions/", "rubric/changes/?earlier=1&later=1", "rubric/notes/", "rounds/1/splits/"]
READ += ["claim-audit/samples/", "claim-audit/samples/1/responses/", "claim-audit/samples/1/responses/1/"]
WHILE_GRADING = ("reassign", "splits", "revoke", "dismiss", "restore", "marks", "finish")


def test_all_of_it_is_a_leads(split, lead, grader_b, stranger):
    services.draw_audit(version=split.round.version, runs=[split.claim.response.run], size=2, person=lead)
    for path in READ:
        assert Api(lead).get(f"{V}/{path}").status_code == 200, path
        for somebody in (grader_b, stranger):
            problem(Api(somebody).get(f"{V}/{path}"), 404)
    for path, body in written(split).items():
        for somebody in (grader_b, stranger):
            problem(Api(somebody).post(path, body), 404)
        assert problem(Api(lead, "read").post(path, body), 403)["type"].endswith("scope"), path
    assert ClaimSplit.objects.get().state == "proposed"


def test_labels_stay_closed_to_a_lead_who_grades(split, lead, version, grader_b):
    Membership.objects.create(person=lead, evalset=version.evalset, role="grader")
    services.draw_audit(version=version, runs=list(version.runs.all()), size=20, seed=1, person=lead)
    make_round(version, lead, grader_b)
    api = Api(lead)
    for path, body in written(split).items():
        if any(word in path for word in WHILE_GRADING):
            assert problem(api.post(path, body), 403)["type"].endswith("closed-while-grading"), path
    for path in ("rubric/notes/", "rounds/1/splits/", "claim-audit/samples/1/responses/1/"):
        assert problem(api.get(f"{V}/{path}"), 403)["type"].endswith("closed-while-grading"), path
    assert api.get(f"{V}/rubric/versions/").status_code == 200
    assert ClaimSplit.objects.get().state == "proposed"
