"""REST: watches over production, from the first day to the series."""

import pytest

from calibration.models import Watch, WatchBatch, WatchJudging
from calibration.watches import judge_here
from tests.api import Api, problem
from tests.calibration.test_report import command
from tests.calibration.test_watches import (  # noqa: F401  (fixtures)
    evalset,
    kept_labelled,
    labelled,
    lines,
    trusted,
)

pytestmark = pytest.mark.django_db
WATCHES = "/evalsets/roles/versions/1/watches/"
WATCH = f"{WATCHES}production/"
BATCHES = f"{WATCH}batches/"


@pytest.fixture
def api(lead):
    return Api(lead)


@pytest.fixture
def watch(labelled, api):  # noqa: F811
    assert api.post(WATCHES, {"name": "production"}).status_code == 201
    return Watch.objects.get()


def test_a_watch_is_opened_once_under_its_name(api, trusted):  # noqa: F811
    new = {"name": "production", "judge": "lexical-baseline", "minimum": 0.07}
    answer = api.post(WATCHES, new, key="open")
    assert answer.status_code == 201
    assert api.post(WATCHES, new, key="open").content == answer.content
    assert (answer.json()["judge"], answer.json()["minimum"]) == ("lexical-baseline", 0.07)
    whole = api.client.get(answer["Location"]).json()
    assert (whole["batches"], whole["first_date"]) == (0, None)
    (error,) = problem(api.post(WATCHES, new), 409)["errors"]
    assert (error["field"], error["value"]) == ("name", "production")
    (error,) = problem(api.post(WATCHES, {"name": "x", "judge": "nobody"}), 409)["errors"]
    assert (error["field"], error["value"]) == ("judge", "nobody")
    for bad in ({"name": "Two words"}, {"name": "x", "minimum": 0}, {"name": "x", "minimum": "0.1"}, {}):
        problem(api.post(WATCHES, bad), 400)
    assert [row["name"] for row in api.get(WATCHES).json()["results"]] == ["production"]


def test_a_day_comes_in_once_and_is_judged(api, watch):
    first = api.send_file(f"{BATCHES}2026-03-01/", lines(refused=2, answered=8), key="day")
    assert first.status_code == 201
    assert (first.json()["responses"], first.json()["counts"]["responses"]) == (10, 10)
    assert (
        api.send_file(f"{BATCHES}2026-03-01/", lines(refused=2, answered=8), key="day").json() == first.json()
    )
    again = api.send_file(f"{BATCHES}2026-03-01/", lines(refused=2, answered=8))
    assert (again.status_code, again.json()["counts"]) == (200, None)
    assert WatchBatch.objects.count() == 1
    judge_here(batch=WatchBatch.objects.get())
    (judged,) = api.get(f"{BATCHES}2026-03-01/").json()["judged"]
    assert (judged["judge"], judged["run_state"], judged["reason"]) == ("phrase-matcher", "complete", "")
    assert api.get(BATCHES).json()["results"] == [api.get(f"{BATCHES}2026-03-01/").json()]
    told = api.get(f"{WATCH}series/").json()
    assert told == command("watch_series", "production")
    refused = next(series for series in told["series"] if series["rate"] == "refused")
    assert refused["days"][0]["share"]["value"] == pytest.approx(0.2)
    assert api.get(WATCH).json()["last_date"] == "2026-03-01"


def test_a_day_that_cannot_be_is_refused_and_nothing_is_stored(api, watch):
    api.send_file(f"{BATCHES}2026-03-01/", lines())
    (error,) = problem(api.send_file(f"{BATCHES}2026-03-01/", lines(refused=5)), 422)["errors"]
    assert error["value"] == "2026-03-01"
    problem(api.send_file(f"{BATCHES}2026-03-02/", b'{"id": 7}\n'), 422)
    problem(api.send_file(f"{BATCHES}2999-01-01/", lines()), 422)
    problem(api.send_file(f"{BATCHES}0001-01-01/", lines()), 422)
    for day in ("tomorrow", "20260301", "2026-02-30"):
        problem(api.send_file(f"{BATCHES}{day}/", lines()), 404)
        problem(api.get(f"{BATCHES}{day}/"), 404)
    problem(api.get(f"{BATCHES}2026-03-02/"), 404)
    assert WatchBatch.objects.count() == 1


def test_a_day_for_which_the_judge_was_not_trusted_is_asked_about_again(api, watch, trusted):  # noqa: F811
    Watch.objects.update(judge=trusted)
    trusted.runs.update(requested_fingerprint="0" * 64)
    api.send_file(f"{BATCHES}2026-03-01/", lines(claims=["The ferry leaves at noon."]))
    judged = {entry["judge"]: entry for entry in api.get(f"{BATCHES}2026-03-01/").json()["judged"]}
    assert (judged["lexical-baseline"]["gate"], judged["lexical-baseline"]["run"]) == ("STALE", None)
    assert api.post(f"{WATCH}judge/").json() == {"asked": 0, "not_asked": 1}
    assert WatchJudging.objects.count() == 3


def test_marks_are_set_once_and_taken_away(api, watch):
    mark = {"date": "2026-03-01", "text": "deploy 7"}
    made = api.post(f"{WATCH}marks/", mark, key="mark")
    assert made.status_code == 201
    assert api.post(f"{WATCH}marks/", mark, key="mark").json() == made.json()
    assert api.post(f"{WATCH}marks/", mark).json() == made.json()
    one = f"{WATCH}marks/{made.json()['id']}/"
    assert api.get(one).json() == api.get(f"{WATCH}marks/").json()["results"][0]
    problem(api.post(f"{WATCH}marks/", {"date": "20260301", "text": "x"}), 400)
    problem(api.post(f"{WATCH}marks/", {"date": "2026-03-01", "text": "  "}), 409)
    address = f"/api/v1{one}"
    assert api.client.delete(address, headers={"Idempotency-Key": "gone"}).status_code == 204
    assert api.client.delete(address, headers={"Idempotency-Key": "gone"}).status_code == 204
    problem(api.client.delete(address), 404)
    assert api.get(f"{WATCH}marks/").json()["results"] == []


def test_a_watch_is_for_leads_and_for_tokens_that_may_import(watch, lead, grader_a, stranger):
    for somebody in (grader_a, stranger):
        api = Api(somebody)
        for path in (WATCH, f"{WATCH}series/", BATCHES, f"{WATCH}marks/"):
            problem(api.get(path), 404)
        problem(api.send_file(f"{BATCHES}2026-03-01/", lines()), 404)
    problem(Api(lead, "read", "judge").send_file(f"{BATCHES}2026-03-01/", lines()), 403)
    assert Api(lead, "import").send_file(f"{BATCHES}2026-03-01/", lines()).status_code == 201
    problem(Api(lead, "import").post(WATCHES, {"name": "other"}), 403)
