"""`judge_run` and `add_judge`: the contract of their JSON, and one clear sentence for what cannot be done."""

import io
import itertools
import json

import pytest
from django.core.management import CommandError, call_command

from calibration import work
from calibration.models import Judge, JudgeRun, Verdict
from calibration.services import start_run, stop_run
from tests.calibration.judges.conftest import make_version


def command(*arguments):
    out, err = io.StringIO(), io.StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=err)
    return json.loads(out.getvalue()), err.getvalue()


@pytest.mark.django_db
def test_judge_run_starts_and_returns(judge, version):
    result, _words = command("judge_run", "roles@1", "--judge", "fake")
    assert (result["run"], result["state"]) == (1, "running")
    assert result["counts"] == {"valid": 0, "failed": 0, "pending": 9}
    assert result["failures"] == {}


@pytest.mark.django_db
def test_judge_run_wait_works_in_process_without_a_worker_and_says_so(version):
    result, words = command("judge_run", "roles@1", "--judge", "lexical-baseline", "--wait")
    assert (result["state"], result["counts"]) == ("complete", {"valid": 6, "failed": 0, "pending": 0})
    assert "No worker was seen in the last 30 s" in words
    assert "6 of 6, 0 failed" in words


@pytest.mark.django_db(transaction=True)
def test_judge_run_wait_makes_several_calls_at_the_same_time(judge, version, server):
    server.default, server.delay = "slow", 0.02
    server.script("refusing")
    result, _words = command("judge_run", "roles@1", "--judge", "fake", "--wait")
    assert result["counts"] == {"valid": 8, "failed": 1, "pending": 0}
    assert result["failures"] == {"refused_to_judge": 1}
    assert server.calls == 9


@pytest.mark.django_db
def test_judge_run_resume(version):
    judge = Judge.objects.create(evalset=version.evalset, name="lexical-baseline", kind=Judge.Kind.LEXICAL)
    run = start_run(judge=judge, version=version)
    stop_run(run=run)
    result, _words = command("judge_run", "roles@1", "--resume", "1", "--wait")
    assert (result["run"], result["state"], result["counts"]["valid"]) == (1, "complete", 6)


@pytest.mark.django_db(transaction=True)
def test_judge_run_resume_retries_failures_on_request(judge, version, server):
    server.script(*["refusing"] * 9)
    first, _words = command("judge_run", "roles@1", "--judge", "fake", "--wait")
    assert first["counts"] == {"valid": 0, "failed": 9, "pending": 0}
    again, _words = command("judge_run", "roles@1", "--resume", "1", "--retry-failed", "--wait")
    assert again["counts"] == {"valid": 9, "failed": 0, "pending": 0}
    assert JudgeRun.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_judge_run_that_is_interrupted_ends_its_calls_and_takes_no_more(judge, version, server, monkeypatch):
    make_version(version.evalset, number=2, responses=30)
    server.default, server.delay = "slow", 0.05

    wait, looks = work.wait, itertools.count(1)

    def interrupted(calls, **given):
        if next(looks) == 3:
            raise KeyboardInterrupt
        return wait(calls, **given)

    monkeypatch.setattr(work, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_command("judge_run", "roles@2", "--judge", "fake", "--wait", stderr=io.StringIO())
    run = JudgeRun.objects.get()
    assert run.state == JudgeRun.State.RUNNING
    finished = run.verdicts.filter(state=Verdict.State.VALID).count()
    assert 0 < finished == server.calls < 90
    assert run.verdicts.filter(state=Verdict.State.PENDING).count() == 90 - finished


@pytest.mark.django_db
def test_judge_run_of_chosen_dimensions_and_systems(judge, version):
    result, _words = command(
        "judge_run", "roles@1", "--judge", "fake", "--dimension", "abstention", "--system-run", "1"
    )
    assert result["counts"]["pending"] == 3


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--judge", "nobody"], "no judge named 'nobody'"),
        ([], "Name the judge with --judge"),
        (["--resume", "9"], "no judge run 9"),
        (["--resume", "0"], "no judge run 0"),
        (["--resume", "0", "--judge", "fake"], "no judge run 0"),
        (["--resume", "1", "--repeats", "2"], "--repeats belongs to the start of a run"),
        (["--resume", "1", "--no-cache"], "--no-cache belongs to the start of a run"),
        (["--judge", "fake", "--retry-failed"], "--retry-failed goes with --resume RUN"),
        (["--judge", "fake", "--system-run", "7"], "no system run 7"),
        (["--judge", "lexical-baseline", "--dimension", "abstention"], "cannot judge abstention"),
        (["--judge", "fake", "--repeats", "0"], "from 1 to 20"),
        (["--judge", "fake", "--repeats", "0", "--dry-run"], "from 1 to 20"),
        (["--judge", "fake", "--dimension", "nonsense", "--dry-run"], "cannot judge nonsense"),
        (["--judge", "fake", "--max-cost", "1", "--dry-run"], "needs the judge's prices"),
        (["--judge", "nobody", "--dry-run"], "no judge named 'nobody'"),
    ],
)
def test_judge_run_with_bad_input_is_one_sentence(judge, version, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("judge_run", "roles@1", *arguments)
    assert not JudgeRun.objects.exists()


@pytest.mark.django_db
def test_judge_run_in_words(version, capsys):
    call_command("judge_run", "roles@1", "--judge", "phrase-matcher", "--wait")
    words = capsys.readouterr().out
    assert "Run 1 of phrase-matcher: complete." in words
    assert "valid 3, failed 0, pending 0" in words
    assert "ANSWERED" not in words


@pytest.mark.django_db
def test_add_judge(evalset):
    arguments = ["--name", "gpt", "--model", "gpt-x", "--base-url", "http://localhost:11434/v1/"]
    arguments += ["--provider", "Ollama", "--family", "llama", "--prompt-version", "1", "--temperature", "0"]
    arguments += ["--max-tokens", "300", "--api-key-variable", "OTHER_API_KEY"]
    result, _words = command("add_judge", "roles", *arguments)
    judge = Judge.objects.get(pk=result["id"])
    assert (judge.name, judge.model, judge.base_url) == ("gpt", "gpt-x", "http://localhost:11434/v1")
    assert judge.parameters == {"temperature": 0.0, "max_tokens": 300}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--base-url", "gopher://x"], "--base-url: The address must look like"),
        (["--temperature", "9"], "--temperature"),
        (["--api-key-variable", "SECRET_KEY"], "--api-key-variable"),
        (["--prompt-version", "none"], "--prompt-version"),
    ],
)
def test_add_judge_with_bad_input_names_the_option(evalset, arguments, message):
    with pytest.raises(CommandError, match=message):
        call_command("add_judge", "roles", "--name", "x", "--model", "m", *arguments)
    assert not Judge.objects.exists()


@pytest.mark.django_db
def test_add_judge_to_an_unknown_eval_set():
    with pytest.raises(CommandError, match="no eval set 'nowhere'"):
        call_command("add_judge", "nowhere", "--name", "x", "--model", "m")


@pytest.mark.django_db
def test_judge_run_dry_run_starts_nothing(judge, version):
    result, _words = command("judge_run", "roles@1", "--judge", "fake", "--dry-run")
    assert (result["dry_run"], result["targets"], result["calls"]) == (True, 9, 9)
    assert result["tokens"]["completion"] == 540
    assert (result["cost"], result["seconds"]) == (None, None)
    assert not JudgeRun.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_judge_run_stops_at_its_budget_and_goes_on_with_a_larger_one(judge, version, server):
    first, _words = command("judge_run", "roles@1", "--judge", "fake", "--max-calls", "4", "--wait")
    assert (first["state"], first["calls"]) == ("stopped", 4)
    assert first["stopped"] == {"reason": "budget", "detail": "calls: 4 of 4"}
    again, _words = command("judge_run", "roles@1", "--resume", "1", "--max-calls", "40", "--wait")
    assert (again["state"], again["stopped"], server.calls) == ("complete", None, 9)


@pytest.mark.django_db
def test_add_judge_with_prices_and_a_reasoning_model(version):
    command("add_judge", "roles", "--name", "r", "--model", "m", "--reasoning", "--reasoning-effort", "low",
            "--only-cited", "--price-prompt", "2.5", "--price-cached", ".5",
            "--price-completion", "10")  # fmt: skip
    judge = Judge.objects.get(name="r")
    assert judge.parameters == {"only_cited": True, "reasoning": True, "reasoning_effort": "low"}
    assert judge.prices == {"prompt": "2.5", "cached": "0.5", "completion": "10", "currency": "USD"}
