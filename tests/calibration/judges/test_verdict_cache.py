"""What the same request got before is not paid for twice."""

import pytest

from calibration import services
from calibration.judges import prompts
from calibration.models import Verdict
from calibration.services import run_inline, start_run
from tests.calibration.judges.conftest import states_of
from tests.calibration.judges.fake_server import MODEL

pytestmark = pytest.mark.django_db
State = Verdict.State


# The cache


def second_run(judge, version, **options):
    return run_inline(run=start_run(judge=judge, version=version, **options))


@pytest.fixture
def first(judge, version):
    return run_inline(run=start_run(judge=judge, version=version))


def test_the_same_request_is_not_paid_twice_and_is_marked(judge, version, server, first):
    run = second_run(judge, version)
    assert server.calls == 9
    assert set(run.verdicts.values_list("from_cache", flat=True)) == {True}
    assert set(run.verdicts.values_list("prompt_tokens", flat=True)) == {None}
    assert set(run.verdicts.values_list("resolved_model", flat=True)) == {MODEL}


def test_the_cache_can_be_bypassed(judge, version, server, first):
    run = second_run(judge, version, use_cache=False)
    assert server.calls == 18
    assert set(run.verdicts.values_list("from_cache", flat=True)) == {False}


def test_a_changed_prompt_misses_the_cache(judge, version, server, first, monkeypatch):
    monkeypatch.setattr(prompts, "SYSTEM", prompts.SYSTEM + " Be strict.")
    second_run(judge, version)
    assert server.calls == 18


def test_another_model_or_parameter_misses_the_cache(version, server, first):
    for changes in ({"model": "other"}, {"parameters": {"temperature": 1}}):
        settings = {"model": "judge-alias", "parameters": {"temperature": 0}, **changes}
        other = services.add_judge(
            evalset=version.evalset, name=str(changes), base_url=server.url, provider="fake", **settings
        )
        before = server.calls
        second_run(other, version)
        assert server.calls == before + 9


def test_repeats_do_not_answer_each_other_from_the_cache(judge, version, server):
    run_inline(run=start_run(judge=judge, version=version, repeats=2))
    assert server.calls == 18


def test_a_failure_is_never_cached(judge, version, server, no_waiting):
    server.default = "refusing"
    run_inline(run=start_run(judge=judge, version=version))
    server.default = "good"
    assert states_of(second_run(judge, version)) == {"valid": 9}
    assert server.calls == 18
