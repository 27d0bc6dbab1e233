"""REST: whether a trusted judge still reads the same, and what it says of known cases."""

import pytest

from calibration import drift
from calibration.judge_warm_up import ask_waiting
from calibration.models import Judge, JudgeRun, SentinelPlan
from tests.api import Api, problem
from tests.calibration.api_world import define
from tests.calibration.test_drift import answered, kept_trusted, trusted  # noqa: F401  (fixtures)
from tests.calibration.test_watches import REFUSAL

pytestmark = pytest.mark.django_db
V = "/evalsets/set/versions/1/"
DRIFT = f"{V}judge-runs/1/drift/"


@pytest.fixture
def api(trusted, lead):  # noqa: F811
    return Api(lead)


def test_a_plan_is_shown_first_and_made_once(api):
    (askable,) = api.get(DRIFT).json()["can_be_asked_again"]
    assert (askable["dimension"], askable["targets"]) == ("grounding", 120)
    shown = api.post(f"{DRIFT}plan/", {"targets": 40, "dry_run": True})
    assert (shown.status_code, shown.json()["targets"], shown.json()["calls"]) == (200, 40, 40)
    assert not SentinelPlan.objects.exists()
    wanted = {"dimensions": ["grounding"], "targets": 40, "every_days": 3, "budget_calls": 50}
    made = api.post(f"{DRIFT}plan/", wanted, key="plan")
    assert (made.status_code, made.json()["targets"], made.json()["budget_calls"]) == (201, 40, 50)
    assert api.post(f"{DRIFT}plan/", wanted, key="plan").json() == made.json()
    assert SentinelPlan.objects.count() == 1
    assert api.get(DRIFT).json()["plan"] == made.json()
    assert api.post(f"{DRIFT}plan/end/").json() == {"ended": True}
    assert api.post(f"{DRIFT}plan/end/").json() == {"ended": False}


def test_a_plan_that_cannot_be_made_is_refused(api):
    problem(api.post(f"{DRIFT}plan/", {"targets": 3}), 400)
    problem(api.post(f"{DRIFT}plan/", {"dimensions": ["colour"]}), 400)
    problem(api.post(f"{DRIFT}plan/", {"dimensions": ["abstention"]}), 409)
    problem(api.post(f"{DRIFT}plan/", {"budget_money": 5}), 409)
    problem(api.post(f"{DRIFT}runs/"), 409)
    problem(api.get(f"{V}judge-runs/9/drift/"), 404)
    assert not SentinelPlan.objects.exists()


def test_a_sentinel_run_that_alarms_makes_the_judge_stale_and_says_why(api, trusted):  # noqa: F811
    api.post(f"{DRIFT}plan/", {"targets": 100})
    started = api.post(f"{DRIFT}runs/", key="now")
    assert started.status_code == 201
    assert api.post(f"{DRIFT}runs/", key="now").json() == started.json()
    assert started["Location"].endswith("/judge-runs/2/")
    run = JudgeRun.objects.get(number=2)
    answered(run, lambda before: "unsupported" if before == "supported" else before)
    drift.settle_sentinel_runs()
    told = api.get(DRIFT).json()
    (stands,) = told["standings"]
    assert stands["state"] == "STALE"
    assert "sentinel run 2" in stands["changes"][0]
    assert {chart["chart"] for chart in told["charts"]} == {"flagged", "unverifiable", "agreement"}
    assert [point["judge_run"] for point in told["charts"][0]["points"]] == [1, 2]
    (finding,) = api.get(f"{DRIFT}findings/").json()["results"]
    assert finding["sentence"] in stands["changes"][0]
    assert ("correctness" in finding["alarms"], finding["observed_run"]) == (True, 2)
    assert [row["run"] for row in api.get(f"{DRIFT}runs/").json()["results"]] == [2]
    problem(api.post(f"{DRIFT}runs/"), 409)
    (judge,) = api.get(f"{V}trust/").json()["standings"]
    assert (judge["judge"], judge["state"], judge["changes"]) == ("judge-a", "STALE", stands["changes"])


def test_known_cases_are_put_to_a_judge_once(api, trusted):  # noqa: F811
    labelled, _run, _report = trusted
    define(labelled)
    labelled.round.rubric_version.warm_up_cases.create(
        position=1, dimension="abstention", question="When?", response=REFUSAL, label="REFUSED"
    )
    path = f"{V}judge-warm-up/"
    asked = {"judge": "phrase-matcher"}
    problem(api.post(path, asked), 404)
    api.post(f"{V}judge-runs/", asked | {"dry_run": True})
    made = api.post(path, asked, key="cases")
    assert (made.status_code, made.json()) == (201, {"asked": 1})
    assert api.post(path, asked, key="cases").json() == {"asked": 1}
    assert api.post(path, asked).json() == {"asked": 0}
    assert api.get(path, judge="phrase-matcher").json()["waiting"] == 1
    ask_waiting()
    told = api.get(path, judge="phrase-matcher").json()
    (answer,) = told["answers"]
    assert (answer["state"], answer["known_label"], answer["label"]) == ("valid", "REFUSED", "REFUSED"), (
        answer
    )
    assert (told["cases"], told["right"], told["is_done"]) == (1, 1, True)
    problem(api.get(path), 400)


def test_a_panel_is_added_once_of_judges_that_are_there(api, trusted):  # noqa: F811
    for name in ("llm-1", "llm-2"):
        api.post(f"{V}judges/", {"name": name, "model": name, "base_url": "http://localhost:9/v1"})
    new = {"name": "panel", "members": ["llm-1", "llm-2"], "rule": "majority"}
    made = api.post(f"{V}judges/panels/", new, key="p")
    assert (made.status_code, made.json()["kind"]) == (201, "panel")
    assert api.post(f"{V}judges/panels/", new, key="p").json() == made.json()
    (error,) = problem(api.post(f"{V}judges/panels/", new | {"members": ["llm-1", "nobody"]}), 409)["errors"]
    assert (error["field"], error["value"]) == ("members", str([judge_pk("llm-1"), "nobody"]))
    problem(api.post(f"{V}judges/panels/", new), 409)
    problem(api.post(f"{V}judges/panels/", new | {"rule": "loudest"}), 400)


def judge_pk(name):
    return Judge.objects.get(name=name).pk


def test_baselines_are_started_once(api, trusted):  # noqa: F811
    first = api.post(f"{V}judges/baselines/", key="b")
    assert first.status_code == 201
    assert "lexical-baseline" in [entry["judge"] for entry in first.json()["started"]]
    assert api.post(f"{V}judges/baselines/", key="b").json() == first.json()
    assert api.post(f"{V}judges/baselines/").json()["started"] == []
