"""REST: extractions of claims, from what one would take to what it found."""

import pytest

from calibration.models import JudgeRun
from calibration.services import run_inline
from tests.api import Api, problem
from tests.calibration.extraction.conftest import claims_of

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
    assert (first.status_code, first.json()["state"]) == (201, "running")
    assert api.post(E, {"judge": judge.name}, key="e").content == first.content
    assert api.client.get(first["Location"]).json() == first.json()
    assert "under way" in problem(api.post(E, {"judge": judge.name}), 409)["detail"]
    assert api.post(f"{E}1/stop/").json()["state"] == "stopped"
    assert api.post(f"{E}1/resume/", {"budget_calls": 9}).json()["state"] == "running"
    gone = api.post(f"{E}1/cancel/", key="c").json()
    assert (gone["state"], gone["not_asked_about"], gone["failures"]) == ("complete", 3, {"cancelled": 3})
    assert api.post(f"{E}1/cancel/", key="c").json() == gone
    assert [row["run"] for row in api.get(E).json()["results"]] == [1]


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
