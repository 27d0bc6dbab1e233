"""The OpenAPI document is true: what it allows is answered as it says, what it forbids is refused."""

import logging
from pathlib import Path

import pytest
import schemathesis
from django.conf import settings
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from evalsets.api.bodies import FILE_PARSERS
from evalsets.models import ApiToken
from evalsets.tokens import make_token
from tests.calibration.api_world import furnish, leave_to_decide, make_world

pytestmark = pytest.mark.once

KEY_REUSED = "idempotency-key-reused"  # by another operation of the test, which drew the same one
# What may stand in a file no schema tells: it is refused with 422.
FILES = {parser.media_type for parser in FILE_PARSERS}


@pytest.fixture
def world(db):
    """A set with something at every address."""
    world = make_world()
    furnish(world)
    leave_to_decide(world)
    return world


def places(world) -> dict:
    """Path parameters that are there."""
    round = world.labelled.round
    return {
        "slug": world.evalset.slug,
        "number": 1,
        "run_number": 1,
        "run": 1,
        "round_number": 1,
        "report": 1,
        "file": "manifest.json",
        "round_id": round.pk,
        "assignment": round.assignments.first().pk,
        "dimension": "grounding",
        "target": str(round.annotations.first().claim_id),
        "alert": world.evalset.alerts.get().pk,
        "extraction": 1,
        "summary": 1,
        "watch": "production",
        "day": "2026-03-01",
        "mark": world.version.watches.get().marks.get().pk,
        "member": world.evalset.memberships.get(person=world.grader).pk,
        "split": round.splits.get().pk,
        "entry": 1,
        "prompt": 1,
        "rubric_number": 1,
        "task": round.rubric_version.rubric.tasks.get().pk,
        "sample_number": 1,
        "position": 1,
    }


# Where another number is there than elsewhere
ELSEWHERE = {"/second-looks/": {"round_number": 2}}


def failures(server, world, person, examples: int, *, quick: bool = False) -> dict[str, str]:
    """By operation, what its answers did not have of what the document says, over the wire."""
    _row, secret = make_token(person=person, name="all", scopes=ApiToken.Scope.values, days=1)
    headers = {"Authorization": f"Bearer {secret}"}
    found: dict[str, str] = {}
    there = places(world)
    for result in schemathesis.openapi.from_url(f"{server.url}/api/v1/schema/").get_all_operations():
        operation = result.ok()
        here = there | next((ELSEWHERE[part] for part in ELSEWHERE if part in operation.path), {})
        writes = operation.method.upper() != "GET"
        for mode in GenerationMode if writes or not quick else (GenerationMode.POSITIVE,):
            _try(operation, mode, here, headers, examples, found)
    return found


def _try(operation, mode, there, headers, examples, found):
    @hypothesis_settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def run(case):
        if mode == GenerationMode.POSITIVE:
            case.path_parameters.update({name: there[name] for name in case.path_parameters or {}})
        called.append(case)
        answer = case.call(headers=headers)
        told_otherwise = case.media_type in FILES or KEY_REUSED in answer.text
        excluded = [positive_data_acceptance] if told_otherwise else []
        try:
            case.validate_response(answer, headers=headers, excluded_checks=excluded)
        except FailureGroup as failure:
            said = f"{case.as_curl_command()} -> {answer.status_code} {answer.text[:300]}"
            found[f"{operation.label} ({mode.value})"] = f"{str(failure.exceptions)[:600]} {said}"

    called: list = []
    run()
    if not called:
        found[f"{operation.label} ({mode.value})"] = "never called"


@pytest.mark.django_db(transaction=True)
def test_every_address_answers_as_it_is_described(live_server, world, caplog):
    caplog.set_level(logging.CRITICAL)
    assert failures(live_server, world, world.lead, examples=1, quick=True) == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("who", ["lead", "grader", "stranger"])
def test_every_address_answers_as_it_is_described_at_length(live_server, world, who):
    assert failures(live_server, world, getattr(world, who), examples=10) == {}


@pytest.mark.django_db
def test_the_document_describes_without_a_doubt(client, capsys):
    """The generator warns of what it had to guess."""
    document = client.get("/api/v1/schema/").json()
    assert capsys.readouterr().err == ""
    assert document["openapi"].startswith("3.1")
    operations = [op for path in document["paths"].values() for op in path.values()]
    assert all(
        {"401", "403", "429"} <= op["responses"].keys() for op in operations if op["operationId"] != "schema"
    )


@pytest.mark.django_db
def test_the_document_is_kept_for_every_language(client):
    first, other, again = (
        client.get("/api/v1/schema/", headers={"accept-language": language}).content
        for language in ("en", "de", "en")
    )
    assert first == again != other


@pytest.mark.django_db
def test_the_page_of_the_api_names_every_address(client):
    page = (Path(settings.BASE_DIR) / "docs" / "api.md").read_text()
    parts = {part for path in client.get("/api/v1/schema/").json()["paths"] for part in path.split("/")}
    assert [part for part in sorted(parts) if "{" not in part and part not in page] == []
