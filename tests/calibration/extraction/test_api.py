"""REST: extractions of claims, from what one would take to what it found."""

import pytest

from calibration.models import ExtractionPromptVersion, JudgeRun
from calibration.services import run_inline
from evalsets.claims import origin_of
from evalsets.models import Claim
from tests.api import Api, problem
from tests.calibration.extraction.conftest import claims_of, let_grade

pytestmark = pytest.mark.django_db
E = "/evalsets/roles/versions/1/extractions/"


@pytest.fixture
def api(lead, version, judge):
    return Api(lead)


def test_what_an_extraction_would_take_is_told_and_nothing_is_started(api, judge):
    shown = api.post(E, {"judge": judge.name, "dry_run": True})
    assert (shown.status_code, shown.json()["targets"]) == (200, 3)
    assert shown.json()["responses"]["came_with_claims"] == 1
    one = api.post(E, {"judge": judge.name, "response": "r2", "dry_run": True})
    assert one.json()["targets"] == 1
    assert not JudgeRun.every.exists()


def test_an_extraction_is_started_once_stopped_resumed_and_cancelled(api, judge):
    first = api.post(E, {"judge": judge.name}, key="e")
    assert (first.status_code, first.json()["state"], first.json()["prompt_version"]) == (201, "running", "1")
    assert api.post(E, {"judge": judge.name}, key="e").content == first.content
    assert api.client.get(first["Location"]).json() == first.json()
    assert "under way" in problem(api.post(E, {"judge": judge.name}), 409)["detail"]
    assert api.post(f"{E}1/stop/").json()["state"] == "stopped"
    assert api.post(f"{E}1/resume/", {"budget_calls": 9}).json()["state"] == "running"
    gone = api.post(f"{E}1/cancel/", key="c").json()
    assert (gone["state"], gone["not_asked_about"], gone["failures"]) == ("complete", 3, {"cancelled": 3})
    assert api.post(f"{E}1/cancel/", key="c").json() == gone
    [row] = api.get(E).json()["results"]
    assert (row["run"], row["prompt_version"]) == (1, "1")


def test_what_was_found_stands_in_the_answers_and_with_the_responses(api, judge, run, server):
    server.say = lambda prompt: '{"claims": ["It is so."]}'
    api.post(E, {"judge": judge.name})
    run_inline(run=JudgeRun.every.get())
    told = api.get(f"{E}1/").json()
    assert told["state"] == "complete"
    rows = api.get(f"{E}1/answers/").json()["results"]
    assert len(rows) == told["counts"]["valid"] + told["counts"]["failed"] == 3
    assert len(api.get(f"{E}1/answers/", state="valid").json()["results"]) == told["counts"]["valid"]
    listed = {row["id"]: [c["text"] for c in row["claims"]] for row in responses(api)}
    assert listed == claims_of(run)


def responses(api):
    return api.get("/evalsets/roles/versions/1/responses/").json()["results"]


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        ({}, 400),
        ({"judge": "nobody"}, 409),
        ({"system_runs": [9]}, 409),
        ({"response": "r99"}, 404),
        ({"prompt_version": "7"}, 409),
        ({"prompt_version": "new"}, 400),
        ({"max_tokens": 3}, 400),
        ({"again": "yes"}, 400),
    ],
)
def test_an_extraction_that_cannot_be_started_is_refused(api, judge, bad, status):
    problem(api.post(E, ({"judge": judge.name} if bad else {}) | bad), status)
    assert not JudgeRun.every.exists()


def test_a_judge_run_is_no_extraction_and_the_other_way_round(api, judge):
    api.post(E, {"judge": judge.name})
    problem(api.get(f"{E}7/"), 404)
    problem(api.get("/evalsets/roles/versions/1/judge-runs/1/"), 404)
    problem(api.get(f"{E}1/answers/", state="odd"), 400)


def test_a_prompt_is_added_told_compared_tried_and_asked_with(api, judge, server):
    [built_in] = api.get(f"{E}prompts/").json()["results"]
    assert (built_in["version"], built_in["created_by"]) == ("1", None)
    new = {"system": built_in["system"], "closing": "The claims, please.", "note": "shorter"}
    made = api.post(f"{E}prompts/", new, key="p")
    assert made.status_code == 201
    assert api.post(f"{E}prompts/", new, key="p").json() == made.json()
    assert api.get(f"{E}prompts/2/").json() == made.json()
    assert (made.json()["note"], made.json()["created_by"]) == ("shorter", "lead")
    [change] = api.get(f"{E}prompts/changes/", earlier=1, later=2).json()["changes"]
    assert change == {
        "part": "closing",
        "lines": [
            {"kind": "removed", "text": built_in["closing"]},
            {"kind": "added", "text": "The claims, please."},
        ],
    }
    tried = api.get(f"{E}prompts/2/trial/", item="r2").json()
    assert (tried["version"], server.calls) == ("2", 0)
    assert api.post(E, {"judge": judge.name, "response": "r2"}).json()["prompt_version"] == "2"
    run_inline(run=JudgeRun.every.get())
    assert [request["messages"] for request in server.requests] == [tried["messages"]]
    claim = Claim.objects.get(text="Bicycles cost two crowns.")
    assert origin_of(claim)["prompt_sha256"] == made.json()["sha256"]


def test_a_prompt_that_cannot_be_added_or_is_not_there_is_refused(api):
    [built_in] = api.get(f"{E}prompts/").json()["results"]
    same = {name: built_in[name] for name in ("system", "closing")}
    assert "very wording" in problem(api.post(f"{E}prompts/", same), 409)["detail"]
    assert "quote" in problem(api.post(f"{E}prompts/", same | {"system": '{nonce} "claims"'}), 409)["detail"]
    problem(api.post(f"{E}prompts/", {"system": built_in["system"]}), 400)
    problem(api.get(f"{E}prompts/2/"), 404)
    problem(api.get(f"{E}prompts/2/trial/", item="r2"), 404)
    problem(api.get(f"{E}prompts/changes/", earlier=1, later=2), 404)
    problem(api.get(f"{E}prompts/1/trial/"), 400)
    assert problem(api.get(f"{E}prompts/1/trial/", item="r99"), 409)["errors"][0]["field"] == "item"
    assert not ExtractionPromptVersion.objects.exists()


PROMPTS = [
    f"{E}prompts/",
    f"{E}prompts/1/",
    f"{E}prompts/changes/?earlier=1&later=1",
    f"{E}prompts/1/trial/?item=r2",
]


def test_prompts_are_a_leads(api, lead, grader_a, stranger):
    for somebody in (grader_a, stranger):
        for path in PROMPTS:
            problem(Api(somebody).get(path), 404)
        problem(Api(somebody).post(f"{E}prompts/", {}), 404)
    assert {api.get(path).status_code for path in PROMPTS} == {200}
    reader = Api(lead, "read")
    assert problem(reader.post(f"{E}prompts/", {}), 403)["type"].endswith("scope")
    assert problem(reader.get(PROMPTS[-1]), 403)["type"].endswith("scope")


def test_prompts_close_while_a_lead_grades(api, version, lead):
    let_grade(version, lead)
    for answer in (*map(api.get, PROMPTS), api.post(f"{E}prompts/", {})):
        assert problem(answer, 403)["type"].endswith("closed-while-grading")
