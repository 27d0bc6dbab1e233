"""REST: to whom every address opens, in one table; what is said there stands in the other files."""

import pytest

from calibration.models import VerdictSighting
from calibration.watches import WatchBatch
from tests.api import Api, problem
from tests.calibration.api_world import V, furnish, make_world

pytestmark = pytest.mark.django_db

READS = [
    f"{V}/{path}"
    for path in (
        "rates/comparison/?before=1:1&after=1:2",
        "rates/pairs/",
        "rates/retrieval/",
        "rates/retrieval/wrong-answers/",
        "plan/",
        "agreement/second-looks/2/",
        "rounds/1/warm-up/",
        "judge-warm-up/?judge=judge-a",
        "judge-runs/1/drift/",
        "judge-runs/1/drift/findings/",
        "judge-runs/1/drift/runs/",
        "trust/",
        "trust/designs/",
        "summaries/",
        "summaries/1/",
        "watches/",
        "watches/production/",
        "watches/production/series/",
        "watches/production/batches/",
        "watches/production/marks/",
        "extractions/",
        "extractions/1/",
        "extractions/1/answers/",
        "gold/files/gold.jsonl?sources=agreed",
    )
] + ["/evalsets/api/alerts/"]
WRITES = {
    f"{V}/{path}": body
    for path, body in {
        "rounds/1/second-look/": {"graders": ["gus"]},
        "judges/panels/": {"name": "both", "members": ["judge-a", "llm"], "rule": "majority"},
        "judges/baselines/": {},
        "judge-runs/1/drift/plan/": {},
        "judge-runs/1/drift/plan/end/": {},
        "judge-runs/1/drift/runs/": {},
        "judge-warm-up/": {"judge": "judge-a"},
        "trust/": {"reason": "stricter", "min_targets": 90},
        "trust/designs/": {"round": 1, "design": "random", "seed": 1},
        "summaries/": {},
        "watches/": {"name": "other"},
        "watches/production/judge/": {},
        "watches/production/marks/": {"date": "2026-03-02", "text": "index"},
        "extractions/": {"judge": "llm"},
        "extractions/1/stop/": {},
        "extractions/1/resume/": {},
        "extractions/1/cancel/": {},
    }.items()
}
ALERTS = {f"/evalsets/api/alerts/{{alert}}/{act}/": {} for act in ("acknowledge", "reopen", "send")}
SCOPES = {"judge-warm-up": "judge", "extractions/1/answers": "judge", "rounds": "rounds", "gold": "gold"}


@pytest.fixture(scope="module")
def world(kept):
    world = kept(make_world)
    kept(furnish, world)
    return world


def alert_of(world):
    return world.evalset.alerts.get().pk


@pytest.mark.parametrize("path", READS)
def test_what_is_a_leads_opens_to_leads_only_and_to_tokens_of_its_scope(world, path):
    needed = next((scope for part, scope in SCOPES.items() if f"/{part}" in path), "read")
    assert Api(world.lead, needed).get(path).status_code == 200
    if needed != "read":
        assert problem(Api(world.lead, "read").get(path), 403)["type"].endswith("scope")
    for somebody in (world.grader, world.stranger):
        problem(Api(somebody).get(path), 404)


def test_what_a_lead_may_write_nobody_else_may(world):
    writes = WRITES | {path.format(alert=alert_of(world)): body for path, body in ALERTS.items()}
    for path, body in writes.items():
        for somebody in (world.grader, world.stranger):
            problem(Api(somebody).post(path, body), 404)
    assert not WatchBatch.objects.exists()


def test_all_of_it_is_closed_to_a_lead_who_still_grades(world):
    world.let_the_lead_grade()
    for api in (Api(world.lead), Api(world.lead, "read", "judge", "gold", "rounds", "import")):
        for path in READS:
            assert problem(api.get(path), 403)["type"].endswith("closed-while-grading"), path
        writes = WRITES | {path.format(alert=alert_of(world)): body for path, body in ALERTS.items()}
        for path, body in writes.items():
            assert problem(api.post(path, body), 403)["type"].endswith("closed-while-grading"), path
    assert not VerdictSighting.objects.exists()


def test_who_may_only_read_may_write_nothing(world):
    reader = Api(world.lead, "read")
    for path, body in WRITES.items():
        assert problem(reader.post(path, body), 403)["type"].endswith("scope"), path


def test_a_kept_answer_is_not_given_again_to_a_lead_who_grades_by_now(world):
    asked = {
        f"{V}/watches/": {"name": "other"},
        f"{V}/summaries/": {},
        f"{V}/trust/": {"reason": "stricter", "min_targets": 41},
        f"{V}/extractions/1/cancel/": {},
        f"/evalsets/api/alerts/{alert_of(world)}/acknowledge/": {},
    }
    api = Api(world.lead)
    for path, body in asked.items():
        assert api.post(path, body, key=path).status_code in (200, 201), path
        assert api.post(path, body, key=path)["Idempotency-Replayed"] == "true"
    world.let_the_lead_grade()
    for path, body in asked.items():
        assert problem(api.post(path, body, key=path), 403)["type"].endswith("closed-while-grading"), path
