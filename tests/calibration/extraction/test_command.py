"""extract_claims, as a pipeline calls it."""

import json

import pytest
from django.core.management import CommandError, call_command

from calibration.extraction_prompts import add_extraction_prompt
from calibration.judges.extracting import built_in
from calibration.models import JudgeRun
from tests.calibration.extraction.conftest import claims_of

pytestmark = pytest.mark.django_db


def command(capsys, *arguments):
    call_command("extract_claims", "roles@1", *arguments, "--json")
    return json.loads(capsys.readouterr().out)


def test_a_dry_run_tells_and_starts_nothing(judge, run, capsys):
    told = command(capsys, "--judge", "fake", "--dry-run")
    assert (told["calls"], told["targets"], told["cost"], told["seconds"]) == (3, 3, None, None)
    assert told["responses"] == {
        "without_claims": 3,
        "looked_at_and_none": 0,
        "extracted": 0,
        "came_with_claims": 1,
        "labelled": 0,
        "empty": 1,
    }
    assert not JudgeRun.every.exists()


def test_the_newest_prompt_asks_where_none_is_named(judge, run, capsys):
    text = built_in()
    add_extraction_prompt(evalset=judge.evalset, system=text.system, closing="The claims, please.")
    assert command(capsys, "--judge", "fake", "--dry-run")["prompt_version"] == "2"
    assert command(capsys, "--judge", "fake", "--prompt-version", "1")["prompt_version"] == "1"
    assert JudgeRun.every.get().requested["prompt_sha256"] == text.sha256


def test_wait_extracts_here_where_no_worker_is(judge, run, capsys):
    told = command(capsys, "--judge", "fake", "--wait")
    assert (told["run"], told["state"], told["counts"]["valid"]) == (1, "complete", 3)
    assert told["responses"] == {"with_claims": 2, "without": 1}
    assert claims_of(run)["r2"] == ["Bicycles cost two crowns."]


def test_failed_ones_are_retried_alone(judge, run, server, capsys):
    server.script("truncated")
    assert command(capsys, "--judge", "fake", "--wait")["failures"] == {"truncated": 1}
    told = command(capsys, "--resume", "1", "--retry-failed", "--wait")
    assert (told["counts"], server.calls) == ({"valid": 3, "failed": 0, "pending": 0}, 4)


def test_it_tells_people_too(judge, run, capsys):
    call_command("extract_claims", "roles@1", "--judge", "fake", "--dry-run")
    call_command("extract_claims", "roles@1", "--judge", "fake", "--wait")
    out = capsys.readouterr().out
    assert "fake, prompt 1, would make 3 calls for 3 responses" in out
    assert "Extraction 1 by fake, prompt 1: complete." in out
    assert "responses with claims 2, that make none 1" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Name the judge"),
        (["--judge", "nobody"], "no judge 'nobody'"),
        (["--judge", "fake", "--system-run", "7"], "no system run 7"),
        (["--judge", "fake", "--max-calls", "0"], "above zero"),
        (["--judge", "fake", "--prompt-version", "7"], "no extraction prompt 7"),
        (["--judge", "fake", "--answer-tokens", "0"], "above zero"),
        (["--judge", "fake", "--max-cost", "1"], "prices"),
        (["--judge", "fake", "--retry-failed"], "goes with --resume"),
        (["--resume", "3"], "no extraction 3"),
        (["--resume", "3", "--again"], "--again belongs to the start"),
        (["--resume", "3", "--prompt-version", "1"], "--prompt-version belongs to the start"),
    ],
)
def test_what_cannot_be_done_is_said(judge, run, arguments, says):
    with pytest.raises(CommandError, match=says):
        call_command("extract_claims", "roles@1", *arguments)
    assert not JudgeRun.every.exists()
