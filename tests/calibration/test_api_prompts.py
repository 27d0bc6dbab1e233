"""REST: prompts and what they make of a target, prices, and gold that is doubted."""

import pytest

from annotate.models import Adjudication
from calibration.models import GoldDoubt, Judge, PromptVersion, VerdictSighting
from tests.api import Api, problem
from tests.calibration.api_world import define
from tests.calibration.test_cases import differing  # noqa: F401  (a fixture)
from tests.calibration.test_gold_reimport import let_grade

pytestmark = pytest.mark.django_db
V = "/evalsets/roles/versions/1"


@pytest.fixture
def world(differing, lead):  # noqa: F811
    labelled, _run, _report = differing
    define(labelled)
    return labelled


@pytest.fixture
def api(lead):
    return Api(lead)


def test_a_prompt_is_added_told_and_compared(world, api):
    [built_in] = api.get(f"{V}/prompts/").json()["results"]
    assert (built_in["version"], built_in["created_by"]) == ("1", None)
    new = {name: built_in[name] for name in ("system", "methods", "closing")}
    new |= {"closing": f"{built_in['closing']} Think twice.", "note": "slower"}
    made = api.post(f"{V}/prompts/", new, key="p")
    assert made.status_code == 201
    assert api.post(f"{V}/prompts/", new, key="p").json() == made.json()
    assert api.get(f"{V}/prompts/2/").json() == made.json()
    assert (made.json()["note"], made.json()["created_by"]) == ("slower", "lead")
    [change] = api.get(f"{V}/prompts/changes/", earlier=1, later=2).json()["changes"]
    assert change["part"] == "closing"
    assert {"kind": "added", "text": new["closing"]} in change["lines"]
    problem(api.post(f"{V}/prompts/", new), 409)  # this very wording is there
    problem(api.get(f"{V}/prompts/3/"), 404)
    problem(api.post(f"{V}/prompts/", new | {"methods": {}}), 400)
    problem(api.post(f"{V}/prompts/", new | {"closing": "No place for it."}), 409)
    assert PromptVersion.objects.count() == 1


def test_a_trial_shows_what_a_judge_would_be_sent(world, api):
    asked = {"item": "r0", "claim_id": "c1", "dimension": "grounding"}
    told = api.get(f"{V}/prompts/1/trial/", **asked).json()
    assert [message["role"] for message in told["messages"]] == ["system", "user"]
    assert "claim 1" in told["messages"][1]["content"]
    assert told["label_names"] == ["supported", "contradicted", "unsupported", "unverifiable"]
    assert (
        problem(api.get(f"{V}/prompts/1/trial/", **asked | {"item": "r99"}), 409)["errors"][0]["field"]
        == "item"
    )
    problem(api.get(f"{V}/prompts/1/trial/", item="r0"), 400)


def test_prices_hold_for_a_judge_that_calls_somebody(world, api):
    Judge.objects.create(evalset=world.version.evalset, name="llm", kind="openai", model="m")
    prices = {"judge": "llm", "price_prompt": 0.5, "price_completion": 1.5, "currency": "EUR"}
    told = api.post(f"{V}/judges/prices/", prices).json()
    assert told["prices"] == {"prompt": "0.5", "completion": "1.5", "currency": "EUR"}
    told = api.post(f"{V}/judges/prices/", prices | {"price_cached": 0.125}).json()
    assert told["prices"] == {"prompt": "0.5", "cached": "0.125", "completion": "1.5", "currency": "EUR"}
    problem(api.post(f"{V}/judges/prices/", {"judge": "llm", "price_prompt": 0.5}), 409)
    problem(api.post(f"{V}/judges/prices/", prices | {"currency": "euro"}), 400)
    problem(api.post(f"{V}/judges/prices/", prices | {"judge": "nobody"}), 404)
    assert api.post(f"{V}/judges/prices/", {"judge": "llm"}).json()["prices"] == {}


def test_cases_are_told_and_gold_is_doubted_once(world, api, lead):
    place = f"{V}/judge-runs/1/reports/1"
    found = api.get(f"{place}/cases/").json()
    assert found["count"] == 3
    one = api.get(f"{place}/cases/", row="supported", column="unsupported").json()["results"]
    assert [(case["response_id"], case["gold"], case["verdict"]) for case in one] == [
        ("r5", "supported", "unsupported")
    ]
    assert [said["label"] for said in one[0]["labels"]] == ["supported", "supported"]
    assert VerdictSighting.objects.filter(person=lead).exists()
    doubt = {"target": one[0]["target"], "note": "the passage says otherwise"}
    made = api.post(f"{place}/doubts/", doubt)
    assert (made.status_code, made.json()["gold"], made.json()["verdict"]) == (
        201,
        "supported",
        "unsupported",
    )
    assert api.post(f"{place}/doubts/", doubt).json() == made.json()
    assert (GoldDoubt.objects.count(), Adjudication.objects.count()) == (1, 0)
    problem(api.post(f"{place}/doubts/", doubt | {"target": "999999999"}), 409)
    problem(api.post(f"{place}/doubts/", {"target": "x", "note": "so"}), 400)
    problem(api.get(f"{place}/cases/", row="bogus"), 409)
    problem(api.get(f"{V}/judge-runs/1/reports/9/cases/"), 404)


REPORT = f"{V}/judge-runs/1/reports/1"
READS = [
    f"{V}/prompts/",
    f"{V}/prompts/1/",
    f"{V}/prompts/changes/?earlier=1&later=1",
    f"{V}/prompts/1/trial/?item=r0&dimension=grounding",
    f"{REPORT}/cases/",
]
WRITES = [f"{V}/prompts/", f"{V}/judges/prices/", f"{REPORT}/doubts/"]


def test_all_of_it_is_a_leads(world, lead, grader_a, stranger):
    for somebody in (grader_a, stranger):
        for path in READS:
            problem(Api(somebody).get(path), 404)
        for path in WRITES:
            problem(Api(somebody).post(path, {}), 404)
    for path in READS:
        assert Api(lead).get(path).status_code == 200, path
    for path in WRITES:
        assert problem(Api(lead, "read").post(path, {}), 403)["type"].endswith("scope")
    assert problem(Api(lead, "read").get(f"{REPORT}/cases/"), 403)["type"].endswith("scope")


def test_all_of_it_closes_while_a_lead_grades(world, lead, api):
    let_grade(world, lead)
    for answer in (*map(api.get, READS), *(api.post(path, {}) for path in WRITES)):
        assert problem(answer, 403)["type"].endswith("closed-while-grading")
