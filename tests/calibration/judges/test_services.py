"""Judges, starting runs, and stopping them."""

from datetime import timedelta

import pytest
from django.utils import timezone

from annotate.services import imported_rubric, rubric_v1
from calibration import leases, services, work
from calibration.judges import prompts
from calibration.models import Judge, JudgeRun, PromptVersion, Verdict
from calibration.queries import progress_of
from calibration.services import Refused, run_inline, start_run
from evalsets.labels import LABELS
from evalsets.models import Claim, Response, SystemRun
from tests.calibration.judges.conftest import claim_one, kinds_of, outcome, states_of

pytestmark = pytest.mark.django_db
State = Verdict.State


# Judges


def test_built_in_judge_is_made_once(evalset):
    first = services.judge_named(evalset=evalset, name="lexical-baseline")
    assert services.judge_named(evalset=evalset, name="lexical-baseline") == first
    assert first.kind == Judge.Kind.LEXICAL


def test_unknown_judge_is_refused_with_the_names_there_are(evalset):
    with pytest.raises(Refused, match=r"no judge named 'nobody'.*lexical-baseline.*phrase-matcher"):
        services.judge_named(evalset=evalset, name="nobody")


def test_a_judge_is_never_changed_under_its_name(judge):
    with pytest.raises(Refused, match="already"):
        services.add_judge(evalset=judge.evalset, name="fake", model="another")


@pytest.mark.parametrize("name", ["SECRET_KEY", "DATABASE_URL", "HOME", "openai_api_key"])
def test_a_key_variable_cannot_name_another_secret(evalset, name):
    with pytest.raises(Refused, match="API_KEY"):
        services.add_judge(evalset=evalset, name="x", model="m", api_key_variable=name)


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "JUDGE_API_KEY", "JUDGE_API_KEY_2", "API_KEY"])
def test_a_key_variable_of_the_usual_kind_is_taken(evalset, name):
    judge = services.add_judge(evalset=evalset, name="x", model="m", api_key_variable=name)
    assert judge.api_key_variable == name


# Starting


def test_start_run_makes_a_pending_verdict_per_target_dimension_and_repeat(judge, version):
    run = start_run(judge=judge, version=version, repeats=2)
    assert states_of(run) == {"pending": (6 + 3) * 2}
    assert set(run.verdicts.values_list("dimension", "run_index")) == {
        ("grounding", 1),
        ("grounding", 2),
        ("abstention", 1),
        ("abstention", 2),
    }


def test_a_dimension_that_is_named_twice_is_judged_and_shown_once(judge, version):
    run = start_run(judge=judge, version=version, dimensions=["abstention", "abstention"])
    assert run.dimensions == ["abstention"]
    assert states_of(run) == {"pending": 3}


def test_an_empty_response_has_no_abstention_and_a_split_claim_is_judged_by_its_parts(judge, version):
    empty_run = SystemRun.objects.create(version=version, system=version.runs.get().system, number=2)
    response = Response.objects.create(
        version=version,
        run=empty_run,
        item=version.items.first(),
        position=1,
        response_id="empty",
        text=" \n",
    )
    parent = Claim.objects.create(response=response, position=1, claim_id="whole", text="A and B.")
    parts = [
        Claim.objects.create(response=response, parent=parent, position=n, claim_id=f"part-{n}", text=f"{n}.")
        for n in (1, 2)
    ]
    SystemRun.objects.filter(pk=empty_run.pk).update(
        state="frozen", content_hash="d" * 64, frozen_at=timezone.now()
    )
    run = start_run(judge=judge, version=version, system_runs=[SystemRun.objects.get(pk=empty_run.pk)])
    assert list(run.verdicts.order_by("pk").values_list("claim", "dimension")) == [
        (part.pk, "grounding") for part in parts
    ]


def test_starting_rings_after_the_commit(judge, version, monkeypatch, django_capture_on_commit_callbacks):
    bells = []
    monkeypatch.setattr(work.current_app, "send_task", lambda name, **options: bells.append((name, options)))
    with django_capture_on_commit_callbacks(execute=True):
        run = start_run(judge=judge, version=version)
        assert bells == []
    assert len(bells) == 1  # one turn has place for all of them
    assert bells[0][0] == "calibration.tasks.judge_verdicts"
    assert bells[0][1]["args"] == [run.pk]


def test_a_broker_that_is_down_loses_nothing(judge, version, monkeypatch, django_capture_on_commit_callbacks):
    def refuse(*_args, **_options):
        raise work.BrokerError("Connection refused")

    monkeypatch.setattr(work.current_app, "send_task", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        run = start_run(judge=judge, version=version)
    assert states_of(run) == {"pending": 9}


def test_what_cannot_be_judged_is_refused_with_the_reason(judge, version, evalset):
    imported = Judge.objects.create(evalset=evalset, name="old", kind=Judge.Kind.IMPORTED)
    with pytest.raises(Refused, match="cannot be run"):
        start_run(judge=imported, version=version)
    lexical = services.judge_named(evalset=evalset, name="lexical-baseline")
    with pytest.raises(Refused, match="cannot judge abstention"):
        start_run(judge=lexical, version=version, dimensions=["abstention"])
    with pytest.raises(Refused, match="repeats"):
        start_run(judge=judge, version=version, repeats=0)
    with pytest.raises(Refused, match="no system run"):
        start_run(judge=judge, version=version, system_runs=[])
    with pytest.raises(Refused, match="does not define supported of grounding"):
        start_run(judge=judge, version=version, rubric_version=imported_rubric(evalset=evalset))
    assert not JudgeRun.objects.exists()


def test_a_draft_is_refused(judge, version):
    draft = SystemRun.objects.create(version=version, system=version.runs.get().system, number=2)
    with pytest.raises(Refused, match="Freeze run 2"):
        start_run(judge=judge, version=version, system_runs=[draft])


def test_a_second_start_while_one_is_under_way_is_refused(judge, version):
    start_run(judge=judge, version=version)
    with pytest.raises(Refused, match="Run 1 of fake is still under way"):
        start_run(judge=judge, version=version)


def test_another_dimension_may_be_asked_about_meanwhile(judge, version):
    """A watch asks about one after the other, and cannot wait in between."""
    for dimension in LABELS:
        assert start_run(judge=judge, version=version, dimensions=[dimension]).state == "running"
    with pytest.raises(Refused, match="still under way"):
        start_run(judge=judge, version=version, dimensions=["abstention"])


def test_every_part_of_the_request_moves_the_fingerprint(judge, version, settings, monkeypatch):
    rubric = rubric_v1(evalset=version.evalset)
    wording = PromptVersion.objects.create(
        evalset=version.evalset, number=2, system="{menu}", methods={"claim": "Judge."}, closing="Now."
    )

    def fingerprint(**changes):
        changed = Judge.objects.get(pk=judge.pk)
        for name, value in changes.items():
            setattr(changed, name, value)
        return services.fingerprint_of(services.requested_of(changed, rubric))

    first = fingerprint()
    assert fingerprint() == first
    assert (
        fingerprint(parameters={"temperature": 0, "concurrency": 9}) == first
    )  # how we work, not what we ask
    others = {
        fingerprint(provider="other"),
        fingerprint(base_url="http://localhost:1/v1"),
        fingerprint(model="other"),
        fingerprint(parameters={"temperature": 1}),
        fingerprint(prompt_version=str(wording.number)),
        fingerprint(parameters={"temperature": 0, "only_cited": True}),
    }
    for module, name in (
        (services, "LABEL_SET_VERSION"),
        (services, "PARSER_VERSION"),
        (prompts, "SYSTEM"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, getattr(module, name) + "x")
            others.add(fingerprint())
    rubric.sha256 = "0" * 64
    others.add(fingerprint())
    assert len(others - {first}) == 10


# Stop, resume, sweep


def test_stop_claims_no_more_and_keeps_the_call_in_flight(judge, version, server):
    run = start_run(judge=judge, version=version, dimensions=["grounding"])
    in_flight = claim_one(run)
    services.stop_run(run=run)
    assert run.state == JudgeRun.State.STOPPED
    assert claim_one(run) is None
    assert work.work_through(run_id=run.pk) == 0
    assert leases.record_verdict(claimed=in_flight, outcome=outcome(), input_sha256="a")
    assert states_of(run) == {"valid": 1, "pending": 5}
    services.resume_run(run=run)
    run_inline(run=run)
    assert states_of(run) == {"valid": 6}
    assert server.calls == 5


def test_resume_retries_failures_only_when_asked(judge, version, server, no_waiting):
    server.default = "refusing"
    run = run_inline(run=start_run(judge=judge, version=version))
    with pytest.raises(Refused, match="nothing left"):
        services.resume_run(run=run)
    server.default = "good"
    services.resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert states_of(run) == {"valid": 9}
    assert JudgeRun.objects.get(pk=run.pk).state == JudgeRun.State.COMPLETE


def test_retrying_failures_leaves_the_valid_verdicts_alone(judge, version, server, no_waiting):
    server.script("refusing")
    run = run_inline(run=start_run(judge=judge, version=version))
    before = set(run.verdicts.filter(state=State.VALID).values_list("pk", "updated_at"))
    services.resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert before <= set(run.verdicts.values_list("pk", "updated_at"))
    assert server.calls == 10


def test_a_retry_that_gets_no_answer_keeps_nothing_of_the_earlier_one_but_its_cost(
    judge, version, server, no_waiting
):
    server.default = "off_menu"
    run = run_inline(run=start_run(judge=judge, version=version, dimensions=["abstention"]))
    server.default = "unauthorized"
    services.resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert kinds_of(run) == {"auth": 3}
    for verdict in run.verdicts.all():
        assert (verdict.raw_output, verdict.resolved_model, verdict.effective_parameters) == ("", "", {})
        assert verdict.milliseconds is None
    assert (progress_of(run).prompt_tokens, progress_of(run).completion_tokens) == (600, 60)
    server.default = "good"
    services.resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert (progress_of(run).prompt_tokens, progress_of(run).completion_tokens) == (900, 90)


def test_sweep_rings_only_for_what_is_due_and_leaves_room(judge, version, monkeypatch):
    bells = []
    monkeypatch.setattr(work.current_app, "send_task", lambda *args, **options: bells.append(options))
    run = start_run(judge=judge, version=version)
    claim_one(run)
    work.sweep()
    assert [bell["expires"] for bell in bells] == [30]
    run.verdicts.update(not_before=timezone.now() + timedelta(minutes=1))
    bells.clear()
    work.sweep()
    assert bells == []


def test_sweep_completes_a_run_whose_last_worker_died_before_saying_so(judge, version):
    run = start_run(judge=judge, version=version)
    run.verdicts.update(state=State.FAILED, failure="timeout")
    work.sweep()
    run.refresh_from_db()
    assert run.state == JudgeRun.State.COMPLETE


def test_a_doubled_or_late_bell_does_nothing(judge, version, server):
    run = start_run(judge=judge, version=version)
    for _bell in range(3):
        work.answer_bell(run_id=run.pk)
    work.answer_bell(run_id=987654)
    assert server.calls == 9


def test_a_bell_beyond_the_concurrency_is_not_answered(judge, version, server):
    Judge.objects.filter(pk=judge.pk).update(parameters={"concurrency": 1})
    judge.refresh_from_db()
    run = start_run(judge=judge, version=version)
    claim_one(run)
    work.answer_bell(run_id=run.pk)
    assert server.calls == 0
