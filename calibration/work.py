"""The life of a verdict row, and how workers come by it.

The rows are the truth; a queue message is only a doorbell. A verdict goes pending -> claimed -> valid or
failed. Claiming and recording are single conditional updates: whoever finds the row in another state, or held
under another token, has lost it and drops what it has.
"""

import logging
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from calibration.judges import baseline
from calibration.judges.asking import Outcome, judge_target
from calibration.judges.clients import CallFailed, Client, Permanent, Retryable
from calibration.judges.material import dimension_texts, prompt_of
from calibration.judges.parsing import Reading
from calibration.models import Judge, JudgeRun, Verdict, WorkerSighting

log = logging.getLogger(__name__)

CANDIDATES = 64  # ids that a worker looks at before it asks the database again
TURN_SECONDS = 20  # how long a worker stays with one run before the next run has its turn
BACKOFF_SECONDS = 1.0  # doubled with every attempt
LONGEST_WAIT_SECONDS = 600.0  # whatever a server asks for
LONGEST_PAUSE_SECONDS = 15.0  # how long a rate-limited worker holds still before it tries another verdict
LOST_LEASES_AT_MOST = 10  # a row whose worker dies this often is what kills it
REJECTED_IN_A_ROW = 20  # then the run stops by itself: a wrong key is not worth a thousand calls
OF_EVERY_CALL = {Verdict.Failure.AUTH, Verdict.Failure.REJECTED, Verdict.Failure.BUDGET}
SIGHTING_SECONDS = 5
RAW_OUTPUT_CHARACTERS = 20_000
DEFAULT_CONCURRENCY = 4

State = Verdict.State
OPEN_STATES = (State.PENDING, State.CLAIMED)


def concurrency_of(run: JudgeRun) -> int:
    return int(run.judge.parameters.get("concurrency", DEFAULT_CONCURRENCY))


# Working through a run


@dataclass(frozen=True)
class Claimed:
    """A verdict that this worker holds until the lease ends."""

    verdict: Verdict
    token: UUID


def due(run: JudgeRun) -> QuerySet[Verdict]:
    now = timezone.now()
    return run.verdicts.filter(state=State.PENDING).filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now)
    )


def claim_verdict(*, run: JudgeRun, candidates: list[int]) -> Claimed | None:
    """Take one due verdict by one conditional update; None when there is none, or the run was stopped.

    `candidates` is the worker's own list of ids to try, refilled here; in random order, so that workers
    seldom try the same row.
    """
    is_running = JudgeRun.objects.filter(pk=OuterRef("run_id"), state=JudgeRun.State.RUNNING)
    while True:
        if not candidates:
            candidates += due(run).order_by("pk").values_list("pk", flat=True)[:CANDIDATES]
            if not candidates:
                return None
            random.shuffle(candidates)
        token, now = uuid4(), timezone.now()
        taken = Verdict.objects.filter(Exists(is_running), pk=candidates.pop(), state=State.PENDING).update(
            state=State.CLAIMED,
            claim_token=token,
            lease_until=now + timedelta(seconds=settings.JUDGE_LEASE_SECONDS),
            attempts=F("attempts") + 1,
            updated_at=now,
        )
        if taken:
            held = Verdict.objects.select_related("response__item", "claim").prefetch_related(
                "response__passages"
            )
            return Claimed(verdict=held.get(claim_token=token), token=token)
        if not JudgeRun.objects.filter(pk=run.pk, state=JudgeRun.State.RUNNING).exists():
            return None


def record_verdict(
    *, claimed: Claimed, outcome: Outcome, input_sha256: str, from_cache: bool = False
) -> bool:
    """Write what came out, if the verdict is still held under the token; a late answer is dropped (False)."""
    reading = outcome.reading
    return _let_go(
        claimed,
        state=State.FAILED if reading.failure else State.VALID,
        label=reading.label,
        failure=reading.failure,
        detail=storable(reading.detail),
        raw_output=storable(outcome.raw_output),
        resolved_model=storable(outcome.resolved_model)[:300],
        effective_parameters=outcome.effective_parameters,
        input_sha256=input_sha256,
        from_cache=from_cache,
        milliseconds=outcome.milliseconds,
        **_spent(outcome),
    )


def _spent(outcome: Outcome) -> dict[str, Combinable]:
    """A retried failure cost tokens too: they stay, and what the next answer cost is added."""
    reported = {
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
    }
    return {name: Coalesce(F(name), 0) + tokens for name, tokens in reported.items() if tokens is not None}


def record_failed_call(*, claimed: Claimed, failed: CallFailed, input_sha256: str = "") -> None:
    """Put a verdict whose call failed back in line, or fail it for good.

    A call without an answer never becomes a label, nor an answer that somebody reads.
    """
    attempts = claimed.verdict.attempts
    detail = storable(failed.detail)
    if not isinstance(failed, Retryable) or attempts >= settings.JUDGE_MAX_ATTEMPTS:
        _let_go(claimed, state=State.FAILED, failure=failed.kind, detail=detail, input_sha256=input_sha256)
        return
    wait = max(failed.retry_after or 0.0, BACKOFF_SECONDS * 2 ** (attempts - 1) * random.uniform(1, 1.25))
    wait = min(wait, LONGEST_WAIT_SECONDS)
    _let_go(
        claimed,
        state=State.PENDING,
        detail=f"{failed.kind}: {detail}",
        not_before=timezone.now() + timedelta(seconds=wait),
    )


def _let_go(claimed: Claimed, **values) -> bool:
    return bool(
        Verdict.objects.filter(pk=claimed.verdict.pk, state=State.CLAIMED, claim_token=claimed.token).update(
            claim_token=None, lease_until=None, updated_at=timezone.now(), **values
        )
    )


def storable(text: str) -> str:
    """What every database takes: no NUL, no half surrogate, and not the 100 MB of a server gone mad."""
    clean = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= RAW_OUTPUT_CHARACTERS:
        return clean
    return f"{clean[:RAW_OUTPUT_CHARACTERS]}\n[{len(clean) - RAW_OUTPUT_CHARACTERS} more characters not kept]"


def work_through(
    *,
    run_id: int,
    seconds: float | None = None,
    ending: Callable[[], bool] = lambda: False,
) -> int:
    """Judge due verdicts one after the other until none is left, the run is stopped or the time is up.

    Returns how many were worked on. Any number of workers may do this at once; one that is `ending` takes
    no more verdicts.
    """
    run = JudgeRun.objects.select_related("judge", "version", "rubric_version").get(pk=run_id)
    if run.state != JudgeRun.State.RUNNING or run.rubric_version is None:
        return 0
    ends = None if seconds is None else time.monotonic() + seconds
    rubric = dimension_texts(run.rubric_version)
    candidates: list[int] = []
    done = rejected = 0
    client = client_of(run)
    try:
        while (ends is None or time.monotonic() < ends) and not ending():
            claimed = claim_verdict(run=run, candidates=candidates)
            if claimed is None:
                break
            failed = _judge(run, claimed, client, rubric)
            done += 1
            rejected = rejected + 1 if failed and failed.kind in OF_EVERY_CALL else 0
            if rejected >= REJECTED_IN_A_ROW:
                log.warning("judge run %s stops: %s requests in a row were rejected", run.pk, rejected)
                halt(run=run)
            pause = _pause_after(failed)
            if pause:
                time.sleep(pause if ends is None else max(0.0, min(pause, ends - time.monotonic())))
    finally:
        client.close()
    finish_run(run=run)
    return done


def _pause_after(failed: CallFailed | None) -> float:
    """A rate limit holds for the next verdict as well."""
    if isinstance(failed, Retryable) and failed.kind == Verdict.Failure.RATE_LIMITED:
        return min(failed.retry_after or BACKOFF_SECONDS, LONGEST_PAUSE_SECONDS)
    return 0.0


def _judge(run: JudgeRun, claimed: Claimed, client: Client, rubric: dict) -> CallFailed | None:
    """Fill one verdict; what went wrong with the call, if anything did."""
    sha256 = ""
    try:
        prompt = prompt_of(claimed.verdict, rubric)
        sha256 = prompt.sha256
        cached = _cached(run, claimed.verdict, sha256)
        outcome = cached or judge_target(client, prompt, timeout=settings.JUDGE_TIMEOUT_SECONDS)
    except DatabaseError:
        raise
    except CallFailed as failed:
        record_failed_call(claimed=claimed, failed=failed, input_sha256=sha256)
        return failed
    except Exception as error:
        log.exception("verdict %s could not be judged", claimed.verdict.pk)
        broken = Permanent(Verdict.Failure.INTERNAL, f"{type(error).__name__}: {error}")
        record_failed_call(claimed=claimed, failed=broken, input_sha256=sha256)
        return broken
    record_verdict(claimed=claimed, outcome=outcome, input_sha256=sha256, from_cache=cached is not None)
    return None


def _cached(run: JudgeRun, verdict: Verdict, input_sha256: str) -> Outcome | None:
    """A label that the same request got before, in this eval set. Nothing was spent on it this time."""
    if not run.use_cache or run.judge.kind != Judge.Kind.OPENAI:
        return None
    found = (
        Verdict.objects.filter(
            input_sha256=input_sha256,
            run__requested_fingerprint=run.requested_fingerprint,
            run__version__evalset=run.version.evalset_id,
            run_index=verdict.run_index,
            state=State.VALID,
            from_cache=False,
        )
        .order_by("-pk")
        .first()
    )
    if found is None:
        return None
    return Outcome(
        reading=Reading(label=found.label),
        raw_output=found.raw_output,
        resolved_model=found.resolved_model,
        effective_parameters=found.effective_parameters,
    )


def client_of(run: JudgeRun) -> Client:
    """A client for what the run asked for when it started, whatever the settings say now."""
    if run.judge.kind == Judge.Kind.LEXICAL:
        return baseline.lexical_client()
    if run.judge.kind == Judge.Kind.PHRASES:
        return baseline.phrase_client()
    from calibration.judges.openai_client import OpenAIClient

    return OpenAIClient(
        base_url=run.requested["base_url"],
        model=run.requested["model"],
        parameters=run.requested["parameters"],
        api_key=_api_key(run.judge),
        key_variable=run.judge.api_key_variable,
    )


def _api_key(judge: Judge) -> str:
    """A judge that names a variable gets that one only: another provider's key must not go to its address."""
    if judge.api_key_variable:
        return os.environ.get(judge.api_key_variable, "")
    return settings.JUDGE_API_KEY


# Ends and bells


def halt(*, run: JudgeRun) -> None:
    """From here on nothing more is claimed."""
    JudgeRun.objects.filter(pk=run.pk, state=JudgeRun.State.RUNNING).update(state=JudgeRun.State.STOPPED)


def finish_run(*, run: JudgeRun) -> bool:
    """Complete the run if nothing is pending or under way; failures count as done, and are shown."""
    left = Verdict.objects.filter(run=run.pk, state__in=OPEN_STATES)
    if left.exists():
        return False
    with transaction.atomic():
        # Somebody may be resuming the run: look again once the row is ours.
        unfinished = JudgeRun.objects.select_for_update().exclude(state=JudgeRun.State.COMPLETE)
        locked = unfinished.filter(pk=run.pk).order_by("pk").first()
        if locked is None or left.exists():
            return False
        locked.state, locked.finished_at = JudgeRun.State.COMPLETE, timezone.now()
        locked.save(update_fields=["state", "finished_at"])
        return True


def ring(run: JudgeRun, *, bells: int = 1, expires: float | None = None) -> None:
    """Tell the workers that there is something to do. With the broker down, the sweep rings again later."""
    try:
        for _bell in range(bells):
            current_app.send_task(
                "calibration.tasks.judge_verdicts", args=[run.pk], expires=expires, retry=False
            )
    except (BrokerError, OSError) as error:
        log.warning("could not ring for judge run %s: %s", run.pk, error)


def answer_bell(*, run_id: int, ending: Callable[[], bool] = lambda: False) -> None:
    """One worker's turn with a run; rings again when the time is up before the work is."""
    run = JudgeRun.objects.select_related("judge").filter(pk=run_id, state=JudgeRun.State.RUNNING).first()
    if run is None or _under_way(run) >= concurrency_of(run):
        return
    work_through(run_id=run.pk, seconds=TURN_SECONDS, ending=ending)
    if due(run).exists():
        ring(run)


def _under_way(run: JudgeRun) -> int:
    return run.verdicts.filter(state=State.CLAIMED, lease_until__gt=timezone.now()).count()


def sweep() -> None:
    """Take back expired leases, complete what is done, and ring for every running run with something due."""
    give_back_expired()
    for run in JudgeRun.objects.filter(state=JudgeRun.State.RUNNING).select_related("judge"):
        if finish_run(run=run):
            continue
        bells = min(due(run).count(), concurrency_of(run) - _under_way(run))
        if bells > 0:
            ring(run, bells=bells, expires=30)
    for run in JudgeRun.objects.filter(state=JudgeRun.State.STOPPED):
        finish_run(run=run)


def give_back_expired() -> int:
    """Whoever held these is gone. A row that loses its worker again and again is failed instead."""
    now = timezone.now()
    expired = Verdict.objects.filter(state=State.CLAIMED, lease_until__lt=now)
    free = {"claim_token": None, "lease_until": None, "updated_at": now}
    expired.filter(attempts__gte=LOST_LEASES_AT_MOST).update(
        state=State.FAILED,
        failure=Verdict.Failure.INTERNAL,
        detail=f"the worker was lost {LOST_LEASES_AT_MOST} times",
        **free,
    )
    return expired.update(state=State.PENDING, **free)


def note_worker(*, name: str) -> None:
    """Remember that a worker lives; at most one write every few seconds."""
    now = timezone.now()
    stale = now - timedelta(seconds=SIGHTING_SECONDS)
    sighting, made = WorkerSighting.objects.get_or_create(name=name, defaults={"seen_at": now})
    if not made and sighting.seen_at < stale:
        WorkerSighting.objects.filter(pk=sighting.pk).update(seen_at=now)
