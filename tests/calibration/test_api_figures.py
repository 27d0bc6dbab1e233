"""REST: comparisons, pairs, retrieval, plans, one-page reports, what trust rests on, chosen gold."""

import io
import json

import pyarrow.parquet
import pytest
from django.contrib.auth import get_user_model

from annotate.models import WarmUpAnswer
from calibration.models import Alert, CalibrationSplit, Summary
from calibration.summaries import as_json
from evalsets.models import Membership
from tests.api import Api, problem
from tests.calibration.api_world import V, furnish, make_world
from tests.calibration.test_report import command

pytestmark = pytest.mark.django_db
SLUG = "api@1"


@pytest.fixture(scope="module")
def world(kept):
    world = kept(make_world)
    kept(furnish, world)
    return world


@pytest.fixture
def api(world):
    return Api(world.lead)


def content(answer) -> bytes:
    return b"".join(answer.streaming_content)


# Two systems


def test_a_comparison_is_that_of_the_command_with_a_note(api):
    told = api.get(f"{V}/rates/comparison/", before="1:1", after="1:2").json()
    note = told.pop("release_note")
    assert told == json.loads(json.dumps(command("compare", SLUG, "--before", "1:1", "--after", "1:2")))
    assert note.startswith("large against small (run 1) on api@1, by gold: ")
    hallucination = next(rate for rate in told["rates"] if rate["name"] == "hallucination")
    # One claim of two, and two of three, are bad on each of 20 items.
    assert [hallucination[side]["value"] for side in ("before", "after")] == pytest.approx([1 / 2, 2 / 3])


def test_what_must_not_be_compared_is_told_with_the_reason(api):
    same = api.get(f"{V}/rates/comparison/", before="1:1", after="1:1").json()
    assert same == {"refused": ["Both sides are the same system run."]}
    units = {"unit_before": "claim", "unit_after": "response"}
    assert (
        "units" in api.get(f"{V}/rates/comparison/", before="1:1", after="1:2", **units).json()["refused"][0]
    )
    by_judge = {"source_before": "judge:judge-a"}
    told = api.get(f"{V}/rates/comparison/", before="1:1", after="1:2", **by_judge).json()
    assert told["nothing"] is True, "forty claims of one system are too few to be trusted on it"
    assert told["withheld"]["grounding"]["state"] == "INSUFFICIENT"


def test_a_comparison_that_cannot_be_is_refused(api):
    problem(api.get(f"{V}/rates/comparison/", before="1:1"), 400)
    problem(api.get(f"{V}/rates/comparison/", before="1", after="1:2"), 400)
    (error,) = problem(api.get(f"{V}/rates/comparison/", before="1:1", after="1:9"), 409)["errors"]
    assert (error["field"], error["value"]) == ("after", "1:9")
    problem(api.get(f"{V}/rates/comparison/", before="1:1", after="1:2", source_after="judge:nobody"), 409)


def test_the_pair_of_every_system_stands_beside_its_settings(api, world):
    rates = {entry["system"]: entry["abstention"] for entry in api.get(f"{V}/rates/").json()["per_system"]}
    for temperature, run in enumerate(world.labelled.runs):
        run.system.settings = {"temperature": temperature}
        run.system.model = "one"
        run.system.save()
    told = api.get(f"{V}/rates/pairs/").json()
    assert [entry["settings"] for entry in told["systems"]] == [{"temperature": 0}, {"temperature": 1}]
    for entry in told["systems"]:
        of_rates = rates[entry["system"]]
        assert entry["over_answering"] == of_rates["over_answering"]
        assert entry["over_refusal"] == of_rates["over_refusal"]
    (sweep,) = told["sweeps"]
    assert (sweep["lever"], [step["setting"] for step in sweep["steps"]]) == ("temperature", ["0", "1"])
    by_judge = api.get(f"{V}/rates/pairs/", source="judge:judge-a").json()
    assert [entry["over_refusal"] for entry in by_judge["systems"]] == [None, None]
    problem(api.get(f"{V}/rates/pairs/", source="judge:nobody"), 404)
    problem(api.get(f"{V}/rates/pairs/", round=9), 404)


# What was served


def test_retrieval_is_that_of_the_command_and_its_cases_come_in_pages(api):
    told, whole = api.get(f"{V}/rates/retrieval/", k=3).json(), command("retrieval", SLUG, "--k", "3")
    cases = whole["wrong_answers"].pop("cases")
    assert told == whole
    assert told["retrieval"]["k"] == 3
    seen, answer = [], api.get(f"{V}/rates/retrieval/wrong-answers/", k=3, page_size=9)
    while True:
        page = answer.json()
        seen += page["results"]
        if not page["next"]:
            break
        answer = api.client.get(page["next"])
    assert seen == cases
    assert page["count"] == len(cases) == told["wrong_answers"]["wrong"] > 9
    assert {case["cause"] for case in cases} == {"retriever owes a passage", "generator strayed"}
    problem(api.get(f"{V}/rates/retrieval/", k=0), 400)
    for path in (f"{V}/rates/retrieval/", f"{V}/rates/retrieval/wrong-answers/"):
        problem(api.get(path, source="judge:judge-a"), 404)
        problem(api.get(path, source="grader:nobody"), 404)


# Planning, second looks, known cases


def test_a_plan_answers_the_question_of_its_page(api):
    told = api.get(f"{V}/plan/", base=10, difference=5, judge="judge-a", hourly=30).json()
    assert told["question"]["base"] == pytest.approx(0.1)
    assert (told["needed"] > 100, told["curve"][0]["n"], told["cost"]["money"] > 0) == (True, 100, True)
    assert api.get(f"{V}/plan/").json()["question"]["labelled"] == 100
    for query, field in (
        ({"base": 3, "difference": 5}, "difference"),
        ({"judge": "nobody"}, "judge"),
        ({"human_kappa": 0.2, "judge_kappa": 0.9}, "judge_kappa"),
    ):
        (error,) = problem(api.get(f"{V}/plan/", **query), 409)["errors"]
        assert error["field"] == field
    for query in ({"base": 0}, {"base": "NaN"}, {"minutes": "x"}, {"colour": 1}):
        problem(api.get(f"{V}/plan/", **query), 400)


def test_a_second_look_is_told_dimension_by_dimension(api, world):
    told = api.get(f"{V}/agreement/second-looks/2/").json()
    drawn = world.version.rounds.get(number=2).drawn
    in_responses = drawn.values("response").distinct().count()
    assert (drawn.count(), in_responses) == (3, told["unfinished"])
    assert told["first_round"] == 1
    assert {part["dimension"] for part in told["dimensions"]} <= {"grounding", "abstention"}
    problem(api.get(f"{V}/agreement/second-looks/1/"), 404)


def test_what_graders_said_of_known_cases_is_told_to_the_lead(api, world):
    case = world.labelled.round.rubric_version.warm_up_cases.create(
        position=1, dimension="abstention", response="I do not know.", label="REFUSED"
    )
    WarmUpAnswer.objects.create(case=case, grader=world.labelled.graders[0], label="ANSWERED")
    told = api.get(f"{V}/rounds/1/warm-up/").json()
    assert told["graders"] == [
        {"grader": "ada", "right": 0, "answered": 1},
        {"grader": "ben", "right": 0, "answered": 0},
    ]
    (one,) = told["cases"]
    assert one["answers"] == [{"grader": "ada", "label": "ANSWERED"}, {"grader": "ben", "label": None}]
    problem(api.get(f"{V}/rounds/9/warm-up/"), 404)


# One-page reports


def test_a_one_page_report_is_built_once_and_read_as_its_page(api, world):
    first = api.post(f"{V}/summaries/", key="page")
    assert (first.status_code, first.json()["report"]) == (201, 1)
    assert api.post(f"{V}/summaries/", key="page").json() == first.json()
    assert api.post(f"{V}/summaries/", {"round": 1}).json() == first.json()
    assert Summary.objects.count() == 1
    assert api.client.get(first["Location"]).json() == json.loads(json.dumps(as_json(Summary.objects.get())))
    assert api.get(f"{V}/summaries/").json()["results"][0]["report"] == 1
    problem(api.post(f"{V}/summaries/", {"round": 9}), 404)
    problem(api.get(f"{V}/summaries/9/"), 404)


def test_a_page_that_is_answered_again_tells_no_rates_that_are_withheld_by_now(api, world):
    first = api.post(f"{V}/summaries/", key="page").json()
    (judge,) = (entry for entry in first["judges"] if entry["name"] == "judge-a")
    assert "hallucination" in judge["rates"]
    set_to = api.post(f"{V}/trust/", {"min_judge_agreement": 0.999, "reason": "stricter"})
    assert set_to.json()["thresholds"]["min_judge_agreement"] == 0.999
    again = api.post(f"{V}/summaries/", key="page")
    assert again["Idempotency-Replayed"] == "true"
    (judge,) = (entry for entry in again.json()["judges"] if entry["name"] == "judge-a")
    assert list(judge["rates"]) == ["withheld"]


# What trust rests on


def test_thresholds_are_set_with_a_reason_and_every_change_is_told(api):
    before = api.get(f"{V}/trust/").json()
    new = {"min_targets": 90, "reason": "few items"}
    told = api.post(f"{V}/trust/", new, key="t").json()
    assert told["thresholds"] == before["thresholds"] | {"min_targets": 90}
    assert api.post(f"{V}/trust/", new, key="t").json() == told
    (change,) = told["changes"]
    assert (change["reason"], change["by"], change["thresholds"]) == (
        "few items",
        "lena",
        {"min_targets": 90},
    )
    (judge,) = told["standings"]
    assert (judge["judge"], judge["state"]) == ("judge-a", "STALE")
    assert "min_targets" in judge["changes"][0]
    problem(api.post(f"{V}/trust/", {"min_targets": 80}), 400)
    problem(api.post(f"{V}/trust/", {"min_targets": 80.5, "reason": "x"}), 409)
    problem(api.post(f"{V}/trust/", {"min_valid_rate": 7, "reason": "x"}), 409)
    problem(api.post(f"{V}/trust/", {"min_colour": 7, "reason": "x"}), 400)


def test_a_design_is_recorded_once(api):
    new = {"round": 1, "design": "stratified", "stratum": "language", "seed": 7, "tuning_share": 0.2}
    made = api.post(f"{V}/trust/designs/", new, key="d")
    assert (made.status_code, made.json()["tuning_share"], made.json()["by"]) == (201, 0.2, "lena")
    assert api.post(f"{V}/trust/designs/", new, key="d").json() == made.json()
    assert api.post(f"{V}/trust/designs/", new).json() == made.json()
    assert CalibrationSplit.objects.count() == 1
    assert api.get(f"{V}/trust/designs/").json()["results"] == [made.json()]
    problem(api.post(f"{V}/trust/designs/", new | {"stratum": "colour"}), 409)
    problem(api.post(f"{V}/trust/designs/", new | {"few_shot": ["nothing"]}), 409)
    problem(api.post(f"{V}/trust/designs/", new | {"design": "odd"}), 400)
    problem(api.post(f"{V}/trust/designs/", new | {"round": 9}), 404)


def test_an_alert_is_taken_note_of_once_and_again_after_that(api):
    alert = Alert.objects.get()
    place = f"/evalsets/api/alerts/{alert.pk}"
    first = api.post(f"{place}/acknowledge/", key="a").json()
    assert (first["acknowledged_by"], first["title"]) == ("lena", "judge-a")
    assert api.post(f"{place}/acknowledge/", key="a").json() == first
    assert api.get("/evalsets/api/alerts/").json()["results"] == [first]
    assert api.post(f"{place}/reopen/").json()["acknowledged_at"] is None
    assert api.post(f"{place}/send/").json() == {"messages": 0}
    problem(api.post("/evalsets/api/alerts/999/acknowledge/"), 404)
    problem(api.post(f"{place}/acknowledge/", {"loudly": True}), 400)


# Gold, chosen


def test_gold_is_chosen_by_dimension_source_and_stratum_in_every_format(api):
    query = {"dimensions": "grounding", "strata": "language=de", "sources": "agreed"}
    rows = [json.loads(line) for line in content(api.get(f"{V}/gold/files/gold.jsonl", **query)).splitlines()]
    assert {(row["dimension"], row["source"], row["strata"]["language"]) for row in rows} == {
        ("grounding", "agreed", "de")
    }
    assert len(rows) == 50  # ten items in German, two and three claims
    cells = content(api.get(f"{V}/gold/files/gold.csv", **query)).decode().splitlines()
    assert len(cells) == 51
    columns = pyarrow.parquet.read_table(
        io.BytesIO(content(api.get(f"{V}/gold/files/gold.parquet", **query)))
    )
    assert columns.num_rows == 50
    both = api.get(
        f"{V}/gold/files/gold.jsonl", dimensions=["grounding", "abstention"], strata=["language=de"]
    )
    assert len(content(both).splitlines()) == 70


def test_a_choice_moves_no_figure_and_a_wrong_one_is_refused(api):
    whole = json.loads(content(api.get(f"{V}/gold/files/manifest.json")))
    chosen = json.loads(content(api.get(f"{V}/gold/files/manifest.json", strata="language=de")))
    assert chosen["choice"]["strata"] == [["language", "de"]]
    assert chosen["rates"] == whole["rates"]
    for wrong in ({"dimensions": "colour"}, {"strata": "language=fr"}):
        (error,) = problem(api.get(f"{V}/gold/files/gold.jsonl", **wrong), 409)["errors"]
        assert error["field"] in wrong
    for wrong in ({"sources": "guessed"}, {"parts": "rest"}, {"notes": "perhaps"}):
        problem(api.get(f"{V}/gold/files/gold.jsonl", **wrong), 400)


def test_a_second_look_is_drawn_once(api, world):
    path = f"{V}/rounds/1/second-look/"
    vera = get_user_model().objects.create_user("vera")
    Membership.objects.create(person=vera, evalset=world.evalset, role="grader")
    new = {"n": 5, "graders": ["vera"], "dimension": "grounding", "of": "ben", "seed": 9}
    made = api.post(path, new, key="look")
    assert (made.status_code, made.json().get("kind")) == (201, "second_look"), made.json()
    assert api.post(path, new, key="look").json() == made.json()
    assert world.version.rounds.count() == 3
    for field, wrong in {"graders": ["nobody"], "of": "nobody", "dimension": "colour"}.items():
        (error,) = problem(api.post(path, new | {field: wrong}), 409)["errors"]
        assert error["field"] in (field, "people")
    problem(api.post(path, new | {"n": 0}), 400)
    problem(api.post(f"{V}/rounds/2/second-look/", new), 404)
    for somebody in (world.grader, world.stranger):
        problem(Api(somebody).post(path, new), 404)


def test_what_nobody_audited_is_told_even_to_a_lead_who_grades(api, world):
    told = api.get(f"{V}/claim-audit/").json()
    assert (told["error"]["value"], told["error"]["undefined"], told["responses_audited"]) == (
        None,
        "not_audited",
        0,
    )
    world.let_the_lead_grade()
    assert api.get(f"{V}/claim-audit/").json() == told
    problem(Api(world.grader).get(f"{V}/claim-audit/"), 404)
