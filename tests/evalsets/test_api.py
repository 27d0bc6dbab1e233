"""REST: eval sets, versions, items, runs."""

import gzip

import pytest

from evalsets.models import EvalSet, EvalSetVersion, KeptAnswer, SystemRun
from tests.api import Api, problem
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = pytest.mark.django_db
VERSIONS = "/evalsets/roles/versions/"


@pytest.fixture
def api(lead):
    return Api(lead)


@pytest.fixture
def imported(api):
    lines = [line(id=f"r{n}", claims=[{"id": "c", "text": "So."}]) for n in range(3)]
    answer = api.send_file(f"{VERSIONS}?freeze=true", jsonl(*lines).getvalue())
    assert answer.status_code == 201
    return answer.json()


# Not yours is not there


def paths_of_the_set():
    whole = f"{VERSIONS}1/"
    return [
        VERSIONS,
        whole,
        *(f"{whole}{name}/" for name in ("composition", "items", "runs", "responses", "runs/1")),
        "/evalsets/roles/systems/",
    ]


@pytest.mark.parametrize("path", paths_of_the_set())
def test_what_is_not_yours_is_not_there(imported, path, lead, grader_a, stranger):
    assert Api(lead).get(path).status_code == 200
    for somebody in (grader_a, stranger):
        theirs = problem(Api(somebody).get(path), 404)
        assert problem(Api(somebody).get(path.replace("roles", "nowhere")), 404) == theirs


def test_an_eval_set_is_seen_by_its_members_with_their_roles(lead, grader_a, stranger, evalset):
    assert Api(lead).get("/evalsets/roles/").json()["roles"] == ["lead"]
    assert Api(grader_a).get("/evalsets/").json()["results"][0]["roles"] == ["grader"]
    assert Api(stranger).get("/evalsets/").json()["results"] == []
    for somebody in (grader_a, stranger):
        problem(Api(somebody).get("/evalsets/roles/"), 404)


# Eval sets and versions


def test_make_an_eval_set(api, lead):
    answer = api.post("/evalsets/", {"name": "Ferry bot", "description": "Timetables."})
    assert answer.status_code == 201
    assert answer["Location"] == "/api/v1/evalsets/ferry-bot/"
    assert api.get("/evalsets/ferry-bot/").json() == answer.json()
    assert EvalSet.objects.get(slug="ferry-bot").memberships.get().person == lead
    taken = problem(api.post("/evalsets/", {"name": "Ferry bot"}), 409)
    assert taken["type"].endswith("name-taken")


def test_an_eval_set_with_an_unknown_field_is_refused(api):
    (error,) = problem(api.post("/evalsets/", {"name": "x", "descripton": "typo"}), 400)["errors"]
    assert (error["field"], error["value"]) == ("descripton", "typo")
    (error,) = problem(api.post("/evalsets/", {"name": 7}), 400)["errors"]
    assert (error["field"], error["value"]) == ("name", "7")


def test_import_a_version_as_bare_file_gzip_and_form(api):
    content = jsonl(line(id="a")).getvalue()
    assert api.send_file(VERSIONS, content).json()["version"] == 1
    assert (
        api.send_file(VERSIONS, gzip.compress(content), content_type="application/gzip").json()["version"]
        == 2
    )
    form = api.client.post(
        "/api/v1/imports/", {"name": "Roles", "file": jsonl(line(id="a")), "freeze": "true"}
    ).json()
    assert (form["version"], form["state"]) == (3, "frozen")
    assert form["counts"]["items"] == 1
    listed = api.get(VERSIONS).json()["results"]
    assert [row["version"] for row in listed] == [3, 2, 1]


def test_a_dry_run_stores_nothing(api):
    before = rows_of_every_table()
    answer = api.send_file(f"{VERSIONS}?dry_run=true", jsonl(line()).getvalue())
    assert answer.json()["dry_run"] is True
    assert rows_of_every_table() == before


def test_a_refused_file_names_line_field_and_value(api):
    before = rows_of_every_table()
    content = jsonl(line(id="a"), line(id="a"), line(id="b", answerable="perhaps")).getvalue()
    told = problem(api.send_file(VERSIONS, content), 422)
    assert {(e["line"], e["field"]) for e in told["errors"]} == {(2, "id"), (3, "answerable")}
    assert [e["value"] for e in told["errors"]] == ["a", "perhaps"]
    assert rows_of_every_table() == before


def test_freeze_twice_is_freezing_once(api):
    api.send_file(VERSIONS, jsonl(line()).getvalue())
    first = api.post(f"{VERSIONS}1/freeze/", {"primary_unit": "response"})
    assert first.json()["state"] == "frozen"
    assert first.json()["primary_unit"] == "response"
    assert api.post(f"{VERSIONS}1/freeze/").json() == first.json()
    assert api.post(f"{VERSIONS}1/runs/1/freeze/").json()["state"] == "frozen"
    problem(api.post(f"{VERSIONS}1/freeze/", {"primary_unit": "words"}), 400)
    problem(api.post(f"{VERSIONS}1/runs/9/freeze/"), 404)


def test_a_write_that_needs_no_body_takes_none(api):
    api.send_file(VERSIONS, jsonl(line()).getvalue())
    run = f"{VERSIONS}1/runs/1/freeze/"
    problem(api.post(run, {"force": True}), 400)
    problem(api.post(run, b"--x--", content_type="multipart/form-data; boundary=x"), 415)
    assert SystemRun.objects.get().state == "draft"
    assert api.client.post(f"/api/v1{run}", content_type="application/json").status_code == 200


# Runs and items


def test_push_responses_to_a_frozen_version(api, imported):
    more = jsonl(*(line(id=f"s{n}", item_id=f"r{n}", system={"model": "demo-2"}) for n in range(3)))
    answer = api.send_file(f"{VERSIONS}1/runs/", more.getvalue())
    assert answer.status_code == 201
    assert (answer.json()["run"], answer.json()["system"]) == (2, "demo-2")
    assert answer["Location"] == "/api/v1/evalsets/roles/versions/1/runs/2/"
    assert api.get(f"{VERSIONS}1/runs/", state="draft").json()["results"][0]["run"] == 2
    whole = api.get(f"{VERSIONS}1/runs/2/").json()
    assert (whole["responses"], whole["claims"], whole["empty_responses"]) == (3, 3, 0)
    responses = api.get(f"{VERSIONS}1/responses/", run=2).json()["results"]
    assert [row["id"] for row in responses] == ["s0", "s1", "s2"]
    assert responses[0]["context"][0]["text"] == "The trial lasts 14 days."


def test_responses_to_unknown_items_are_refused(api, imported):
    told = problem(api.send_file(f"{VERSIONS}1/runs/", jsonl(line(id="z")).getvalue()), 422)
    assert told["errors"][0]["line"] == 1
    assert SystemRun.objects.count() == 1


def test_pages_follow_each_other_and_miss_nothing(api, imported):
    seen, answer = [], api.get(f"{VERSIONS}1/items/", page_size=2)
    while True:
        page = answer.json()
        seen += [row["item_id"] for row in page["results"]]
        if not page["next"]:
            break
        answer = api.client.get(page["next"])
    assert seen == ["r0", "r1", "r2"]
    assert api.get(f"{VERSIONS}1/items/", search="r1").json()["results"][0]["item_id"] == "r1"
    assert api.get(f"{VERSIONS}1/items/", answerable="false").json()["results"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page_size": "0"}, "page_size"),
        ({"page_size": "many"}, "page_size"),
        ({"page_size": ""}, "page_size"),
        ({"answerable": ""}, "answerable"),
        ({"unanswerable_reason": ""}, "unanswerable_reason"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_query_that_means_nothing_is_an_error(api, imported, query, field):
    (error,) = problem(api.get(f"{VERSIONS}1/items/", **query), 400)["errors"]
    assert error["field"] == field
    problem(api.get(f"{VERSIONS}1/items/", cursor="cD1hYmM="), 404)  # p=abc


# The same write once


def test_the_same_key_and_body_are_the_same_write(api):
    content = jsonl(line(id="a")).getvalue()
    first = api.send_file(VERSIONS, content, key="job 17")
    again = api.send_file(VERSIONS, content, key="job 17")
    assert (again.status_code, again.content) == (201, first.content)
    assert again["Location"] == first["Location"]
    assert again["Idempotency-Replayed"] == "true"
    assert EvalSetVersion.objects.count() == 1


def test_the_same_key_with_another_body_is_refused(api):
    api.send_file(VERSIONS, jsonl(line(id="a")).getvalue(), key="k")
    other = api.send_file(VERSIONS, jsonl(line(id="b")).getvalue(), key="k")
    assert problem(other, 422)["type"].endswith("idempotency-key-reused")
    assert problem(api.post("/evalsets/", {"name": "x"}, key="k"), 422)
    assert EvalSetVersion.objects.count() == 1


def test_a_key_is_the_persons_own(api, member):
    other = Api(member("other_lead", "lead"))
    for somebody in (api, other):
        assert somebody.send_file(VERSIONS, jsonl(line(id="a")).getvalue(), key="k").status_code == 201
    assert EvalSetVersion.objects.count() == 2


def test_what_was_refused_may_be_tried_again_with_its_key(api):
    problem(api.send_file(VERSIONS, b"{", key="k"), 422)
    assert not KeptAnswer.objects.exists()
    assert api.send_file(VERSIONS, jsonl(line()).getvalue(), key="k").status_code == 201


def test_a_key_must_be_printable(api):
    problem(api.post("/evalsets/", {"name": "x"}, key="k" * 256), 400)


def test_old_answers_are_pruned(api, django_user_model):
    from datetime import timedelta

    from django.utils import timezone

    from evalsets.tasks import prune

    api.post("/evalsets/", {"name": "one"}, key="old")
    api.post("/evalsets/", {"name": "two"}, key="new")
    KeptAnswer.objects.filter(key="old").update(created_at=timezone.now() - timedelta(days=3))
    prune()
    assert [kept.key for kept in KeptAnswer.objects.all()] == ["new"]
