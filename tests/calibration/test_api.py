"""REST: judges and their runs, reports, the gate, rates, gold."""

import hashlib
import io
import json
import zipfile
from copy import deepcopy

import pytest

from annotate.models import Assignment
from calibration.api.gold import TYPES
from calibration.models import CalibrationReport, JudgeRun, VerdictSighting
from calibration.recompute import recompute
from calibration.reports import build_report
from calibration.thresholds import set_thresholds
from evalsets.models import EvalSet, Membership
from tests.api import Api, problem
from tests.calibration.labelled import judged, labelled_set, settled
from tests.calibration.test_report import as_now
from tests.evalsets.files import jsonl, line

pytestmark = pytest.mark.django_db
V = "/evalsets/roles/versions/1"
READS = [
    f"{V}/{path}"
    for path in (
        "judges/",
        "judge-runs/",
        "judge-runs/1/",
        "judge-runs/1/verdicts/",
        "judge-runs/1/reports/",
        "judge-runs/1/reports/1/",
        "agreement/",
        "check/?judge=judge-a",
        "rates/",
        "rates/?source=judge:judge-a",
        "gold/",
        "gold/files/manifest.json",
        "gold/files/gold.zip",
        "export/",
    )
]


def sixty_responses():
    labelled = labelled_set("roles")
    labels = ("supported", "contradicted", "unsupported")
    for number in range(60):
        response = labelled.response(f"r{number}")
        labelled.claim(response, labels[number % 3], labels[number % 3])
        labelled.claim(response, "supported", "supported")
    labelled.freeze()
    return labelled


def sixty_judged_responses():
    """The judge says what people say, and a report says so."""
    labelled = sixty_responses()
    run = as_now(judged(labelled, [(row.response, row.claim, row.label) for row in settled(labelled)]))
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    return labelled, run


@pytest.fixture(scope="module")
def kept_judged(kept):
    return kept(sixty_judged_responses)


@pytest.fixture
def labelled(db, kept_judged):
    return deepcopy(kept_judged[0])


@pytest.fixture
def evalset(labelled):
    return labelled.version.evalset


@pytest.fixture
def run(db, kept_judged):
    return deepcopy(kept_judged[1])


@pytest.fixture
def worse(labelled):
    supported = [(row.response, row.claim, "supported") for row in settled(labelled)]
    run = as_now(judged(labelled, supported, name="judge-b"))
    build_report(judge_run=run, round=labelled.round, dimension="grounding")
    return run


@pytest.fixture
def api(lead):
    return Api(lead)


def content(answer) -> bytes:
    return b"".join(answer.streaming_content)


# Whom it opens to


@pytest.mark.parametrize("path", READS)
def test_what_is_a_leads_opens_to_leads_only(run, path, lead, grader_a, stranger):
    assert Api(lead).get(path).status_code == 200
    for somebody in (grader_a, stranger):
        problem(Api(somebody).get(path), 404)


def test_all_of_it_is_closed_to_a_lead_who_still_grades(run, labelled, lead, evalset):
    Membership.objects.create(person=lead, evalset=evalset, role="grader")
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")
    for api in (Api(lead), Api(lead, "read", "judge", "gold")):
        for path in READS:
            told = problem(api.get(path), 403)
            assert told["type"].endswith("closed-while-grading")
            assert told["rounds"] == [{"evalset": "roles", "version": 1, "round": 1}]
    assert not VerdictSighting.objects.exists()


def test_a_kept_answer_is_not_given_again_to_a_lead_who_grades_by_now(labelled, lead, evalset):
    api, new = Api(lead), {"name": "llm", "model": "demo-1", "base_url": "http://localhost:9/v1"}
    assert api.post(f"{V}/judges/", new, key="job").status_code == 201
    assert api.post(f"{V}/judges/", new, key="job").status_code == 201
    Membership.objects.create(person=lead, evalset=evalset, role="grader")
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")
    told = problem(api.post(f"{V}/judges/", new, key="job"), 403)
    assert told["type"].endswith("closed-while-grading")


def test_scopes_part_what_a_token_may(run, lead):
    reader, judge, gold = (Api(lead, scope) for scope in ("read", "judge", "gold"))
    assert reader.get(f"{V}/rates/").status_code == 200
    problem(reader.get(f"{V}/judge-runs/1/verdicts/"), 403)
    problem(reader.get(f"{V}/gold/files/gold.jsonl"), 403)
    problem(reader.post(f"{V}/judge-runs/", {"judge": "lexical-baseline"}), 403)
    assert judge.get(f"{V}/judge-runs/1/verdicts/").status_code == 200
    assert gold.get(f"{V}/gold/files/gold.jsonl").status_code == 200


# Judges and their runs


def test_add_a_judge(api, run):
    new = {"name": "llm", "model": "demo-1", "base_url": "http://localhost:9/v1", "temperature": 0}
    answer = api.post(f"{V}/judges/", new)
    assert answer.status_code == 201
    assert answer.json()["parameters"]["temperature"] == 0
    (error,) = problem(api.post(f"{V}/judges/", new), 409)["errors"]
    assert error["field"] == "name"
    problem(api.post(f"{V}/judges/", {"name": "x", "model": "y", "base_url": "file:///etc"}), 400)
    problem(api.post(f"{V}/judges/", {"name": "x", "model": "y", "temperature": "0"}), 400)


def test_start_stop_and_resume_a_run(api, lead):
    unlabelled = EvalSet.objects.create(slug="unlabelled", name="Unlabelled")
    Membership.objects.create(person=lead, evalset=unlabelled, role="lead")
    new = "/evalsets/unlabelled/versions/1"
    made = jsonl(*(line(id=f"r{n}") for n in range(3)))
    api.send_file("/evalsets/unlabelled/versions/?freeze=true", made.getvalue())
    dry = api.post(f"{new}/judge-runs/", {"judge": "lexical-baseline", "dry_run": True})
    assert (dry.status_code, dry.json()["targets"]) == (200, 3)
    assert not JudgeRun.objects.filter(version__evalset=unlabelled).exists()
    start = {"judge": "lexical-baseline", "system_runs": [1], "dimensions": ["grounding"]}
    first = api.post(f"{new}/judge-runs/", start, key="job 1")
    assert first.status_code == 201
    assert first["Location"] == "/api/v1/evalsets/unlabelled/versions/1/judge-runs/1/"
    assert first.json()["counts"] == {"valid": 0, "failed": 0, "pending": 3}
    assert api.post(f"{new}/judge-runs/", start, key="job 1").content == first.content
    assert JudgeRun.objects.filter(version__evalset=unlabelled).count() == 1
    assert "under way" in problem(api.post(f"{new}/judge-runs/", start), 409)["detail"]
    assert api.post(f"{new}/judge-runs/1/stop/").json()["state"] == "stopped"
    assert api.post(f"{new}/judge-runs/1/resume/", {"budget_calls": 9}).json()["state"] == "running"
    problem(api.post(f"{new}/judge-runs/1/resume/", {"budget_calls": 0}), 400)
    assert api.get(f"{new}/judge-runs/", state="running").json()["results"][0]["run"] == 1
    assert api.get(f"{new}/judge-runs/", judge="nobody").json()["results"] == []


@pytest.mark.parametrize(
    "bad", [{"judge": "nobody"}, {"judge": "lexical-baseline", "system_runs": [9]}, {"judge": "judge-a"}]
)
def test_a_run_that_cannot_be_started_is_refused(api, run, bad):
    problem(api.post(f"{V}/judge-runs/", bad), 409)
    assert JudgeRun.objects.count() == 1


def test_verdicts_say_label_or_failure_and_the_look_is_noted(api, run, lead):
    page = api.get(f"{V}/judge-runs/1/verdicts/", state="valid", page_size=2).json()
    assert [row["label"] for row in page["results"]] == ["supported", "supported"]
    assert page["results"][0]["claim_id"] == "c1"
    assert page["next"]
    assert VerdictSighting.objects.get().person == lead
    assert api.get(f"{V}/judge-runs/1/verdicts/", state="failed").json()["results"] == []
    problem(api.get(f"{V}/judge-runs/1/verdicts/", state="odd"), 400)


# What may be told


def test_a_trusted_judges_rates_are_told_and_anothers_withheld(api, run, worse):
    told = api.get(f"{V}/rates/", source="judge:judge-a").json()
    assert told["hallucination"]["value"] == pytest.approx(40 / 120)
    held = api.get(f"{V}/rates/", source="judge:judge-b").json()
    assert held["withheld"]["state"] != "TRUSTED"
    assert any(condition["passed"] is False for condition in held["withheld"]["conditions"])
    assert "hallucination" not in held
    assert api.get(f"{V}/rates/", source="grader:ada").json()["hallucination"]["n"] == 120
    for wrong in ("judge:nobody", "grader:nobody", "everybody"):
        problem(api.get(f"{V}/rates/", source=wrong), 404)
    problem(api.get(f"{V}/rates/", round=7), 404)
    problem(api.get(f"{V}/rates/", unit="word"), 400)


def test_a_report_withholds_like_the_rates(api, run, worse):
    assert "withheld" in api.get(f"{V}/judge-runs/2/reports/1/").json()["rates"]
    told = api.get(f"{V}/judge-runs/1/reports/1/").json()
    assert told["gate"]["state"] == "TRUSTED"
    assert told["rates"]["hallucination"]["n"] == 120


def test_an_earlier_report_tells_no_rate_that_a_later_one_withholds(api, run, worse):
    earlier = f"{V}/judge-runs/1/reports/1/"
    assert "hallucination" in api.get(earlier).json()["rates"]
    JudgeRun.objects.filter(pk=worse.pk).update(judge=run.judge)
    told = api.get(earlier).json()
    assert (told["gate"]["state"], list(told["rates"]), told["corrected"]) == (
        "NOT_TRUSTED",
        ["withheld"],
        None,
    )
    assert "later report" in told["gate"]["changes"][0]


def test_build_a_report(api, labelled):
    said = [(row.response, row.claim, row.label) for row in settled(labelled)]
    run = judged(labelled, said, name="judge-b")
    reports = f"{V}/judge-runs/{run.number}/reports/"
    made = api.post(reports, {"dimension": "grounding"})
    assert (made.status_code, made.json()["report"]) == (201, 1)
    assert api.post(reports, {"dimension": "grounding"}).json() == made.json()
    assert CalibrationReport.objects.filter(judge_run=run).count() == 1
    assert api.client.get(made["Location"]).json() == made.json()
    problem(api.post(reports, {"dimension": "abstention"}), 409)
    problem(api.post(reports, {"dimension": "grounding", "round": 9}), 404)


def test_a_report_that_is_answered_again_tells_no_rates_that_are_withheld_by_now(api, run):
    new = {"dimension": "grounding"}
    first = api.post(f"{V}/judge-runs/1/reports/", new, key="r").json()
    assert "hallucination" in first["rates"]
    assert api.post(f"{V}/judge-runs/1/reports/", new, key="r").json() == first
    set_thresholds(version=run.version, thresholds={"min_judge_agreement": 0.999}, reason="stricter")
    again = api.post(f"{V}/judge-runs/1/reports/", new, key="r")
    assert again["Idempotency-Replayed"] == "true"
    assert (again.json()["report"], again.json()["gate"]["state"]) == (1, "STALE")
    assert list(again.json()["rates"]) == ["withheld"]


def test_check_says_whether_a_job_may_go_on(api, run, worse):
    good = api.get(f"{V}/check/", judge="judge-a", max_rate="hallucination=0.7").json()
    assert good["passed"] is True
    over = api.get(f"{V}/check/", judge="judge-a", max_rate="hallucination=0.1,contradicted=0.9").json()
    assert [line["passed"] for line in over["rates"] if line["system"] is None] == [False, True]
    assert over["passed"] is False
    assert api.get(f"{V}/check/", judge="judge-b").json()["passed"] is False
    problem(api.get(f"{V}/check/", judge="nobody"), 404)
    problem(api.get(f"{V}/check/"), 400)
    for wrong in ("hallucination", "hallucination=2", "faithfulness=0.5", "hallucination=0.1;"):
        problem(api.get(f"{V}/check/", judge="judge-a", max_rate=wrong), 400)


def test_agreement_is_that_of_the_command(api, run, capsys):
    from django.core.management import call_command

    call_command("agreement", "roles@1", "--json")
    assert api.get(f"{V}/agreement/").json() == json.loads(capsys.readouterr().out)
    (one,) = api.get(f"{V}/agreement/", dimension="grounding").json()["dimensions"]
    assert one["n_labelled_twice"] == 120
    problem(api.get(f"{V}/agreement/", dimension="colour"), 404)


def test_methods_are_defined(api):
    page = api.get("/methods/", page_size=500).json()
    assert page["count"] == len(page["results"]) > 100
    assert "cohen-kappa" in [row["anchor"] for row in page["results"]]
    problem(api.get("/methods/", page=99), 404)


# Gold


def test_gold_can_be_taken_away_and_recomputed(api, run, tmp_path):
    answer = api.get(f"{V}/gold/files/gold.zip")
    assert answer["Content-Type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(content(answer))).extractall(tmp_path)
    assert recompute(tmp_path)["matches"]
    lines = content(api.get(f"{V}/gold/files/gold.jsonl"))
    assert lines == (tmp_path / "gold.jsonl").read_bytes()
    manifest = json.loads(content(api.get(f"{V}/gold/files/manifest.json")))
    assert manifest["counts"]["grounding"]["gold"] == 120
    assert api.get(f"{V}/gold/").json()["dimensions"][0]["gold"] == 120
    problem(api.get(f"{V}/gold/files/secrets.txt"), 404)
    problem(api.get(f"{V}/gold/files/gold.csv", round=9), 404)


def test_every_file_that_a_manifest_names_can_be_fetched(api, run):
    files = json.loads(content(api.get(f"{V}/gold/files/manifest.json")))["files"]
    assert files.keys() | {"manifest.json", "gold.zip"} == TYPES.keys()
    card = content(api.get(f"{V}/gold/files/README.md"))
    assert hashlib.sha256(card).hexdigest() == files["README.md"]["sha256"]


def test_a_file_is_given_whatever_the_client_accepts(api, run):
    answer = api.client.get(f"/api/v1{V}/gold/files/gold.csv", headers={"Accept": "text/csv"})
    assert answer.status_code == 200
    assert "ETag" not in answer


def test_the_native_file_comes_back(api, run):
    lines = content(api.get(f"{V}/export/", labels="true")).splitlines()
    assert len(lines) == 60
    assert "human_labels" in json.loads(lines[0])["claims"][0]
    assert "human_labels" not in json.loads(content(api.get(f"{V}/export/")).splitlines()[0])["claims"][0]
