"""The life of a verdict row: pending, claimed under a lease, then valid or failed.

Claiming and recording are conditional updates: whoever finds a row in another state, or held under another
token, has lost it and drops what it has. What all workers together may ask of an endpoint is counted from the
rows too, while the endpoint's own row is locked.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Exists, F, Model, OuterRef, Q, QuerySet, Sum
from django.utils import timezone

from calibration.judges.asking import Outcome
from calibration.judges.clients import CallFailed, Exchange, Retryable
from calibration.models import Call, Endpoint, Judge, JudgeRun, Verdict
from calibration.spending import UNCOUNTED, calls_left

BACKOFF_SECONDS = 1.0  # doubled with every attempt
LONGEST_WAIT_SECONDS = 600.0  # whatever a server asks for
LOST_LEASES_AT_MOST = 10  # a row whose worker dies this often is what kills it
RAW_OUTPUT_CHARACTERS = 20_000
RAW_REQUEST_CHARACTERS = 200_000
DEFAULT_CONCURRENCY = 4
RULES_AT_ONCE = 64  # verdicts of a judge that calls nobody

State = Verdict.State
TOKENS = ("prompt_tokens", "cached_tokens", "completion_tokens")
OPEN_STATES = (State.PENDING, State.CLAIMED)


def calls_somebody(run: JudgeRun) -> bool:
    return run.judge.kind == Judge.Kind.OPENAI


def concurrency_of(run: JudgeRun) -> int:
    if not calls_somebody(run):
        return RULES_AT_ONCE
    return int(run.judge.parameters.get("concurrency", DEFAULT_CONCURRENCY))


@dataclass(frozen=True)
class Claimed:
    """A verdict that this worker holds until the lease ends."""

    verdict: Verdict
    token: UUID
    attempts: int


def due(run: JudgeRun) -> QuerySet[Verdict]:
    now = timezone.now()
    return run.verdicts.filter(state=State.PENDING).filter(
        Q(not_before__isnull=True) | Q(not_before__lte=now)
    )


def under_way(run: JudgeRun) -> int:
    return run.verdicts.filter(state=State.CLAIMED, lease_until__gt=timezone.now()).count()


def claim_verdicts(*, run: JudgeRun, verdicts: Iterable[Verdict]) -> list[Claimed]:
    """Take these by one conditional update, in the transaction that counted the free places.

    Those that somebody else has taken, or that wait again by now, are not among them; none of them are when
    the run was stopped.
    """
    wanted = {verdict.pk: verdict for verdict in verdicts}
    token, now = uuid4(), timezone.now()
    is_running = JudgeRun.every.filter(pk=OuterRef("run_id"), state=JudgeRun.State.RUNNING)
    due(run).filter(Exists(is_running), pk__in=wanted).update(
        state=State.CLAIMED,
        claim_token=token,
        lease_until=now + timedelta(seconds=settings.JUDGE_LEASE_SECONDS),
        attempts=F("attempts") + 1,
        updated_at=now,
    )
    won = Verdict.objects.filter(pk__in=wanted, claim_token=token).values_list("pk", "attempts")
    return [Claimed(verdict=wanted[pk], token=token, attempts=attempts) for pk, attempts in won]


def free_places(run: JudgeRun, *, tokens_each: int = 0) -> int:
    """How many calls may begin now: by the judge, by its endpoint's limits, and by the run's budget."""
    endpoint = _locked_endpoint(run)
    held = under_way(run)
    places = [concurrency_of(run) - held]
    if endpoint is not None and endpoint.concurrency is not None:
        places.append(endpoint.concurrency - _held_at(endpoint))
    if endpoint is not None and endpoint.tokens_per_minute is not None:
        places.append(_left_this_minute(endpoint, tokens_each))
    allowed = calls_left(run, under_way=held, tokens_each=tokens_each)
    if allowed is not None:
        places.append(allowed)
    return max(0, min(places))


def _locked_endpoint(run: JudgeRun) -> Endpoint | None:
    """Held to the end of the transaction, so that two workers do not count the same free place."""
    if run.endpoint_id is None:
        return None
    return Endpoint.objects.select_for_update().get(pk=run.endpoint_id)


def _held_at(endpoint: Endpoint) -> int:
    return Verdict.objects.filter(
        run__endpoint=endpoint, state=State.CLAIMED, lease_until__gt=timezone.now()
    ).count()


def _left_this_minute(endpoint: Endpoint, tokens_each: int) -> int:
    assert endpoint.tokens_per_minute is not None
    lately = Call.objects.filter(
        run__endpoint=endpoint, at__gte=timezone.now() - timedelta(minutes=1)
    ).aggregate(
        prompt=Sum("prompt_tokens", default=0),
        completion=Sum("completion_tokens", default=0),
        uncounted=Count("pk", filter=UNCOUNTED),
    )
    used = lately["prompt"] + lately["completion"] + lately["uncounted"] * tokens_each
    held = _held_at(endpoint)
    if used == held == 0:
        return 1  # a single call may be larger than the limit; it must not wait for ever
    return (endpoint.tokens_per_minute - used) // max(1, tokens_each) - held


def record_verdict(
    *, claimed: Claimed, outcome: Outcome, input_sha256: str, from_cache: bool = False
) -> bool:
    """Write what came out, if the verdict is still held under the token; a late answer is dropped (False)."""
    return bool(let_go([(claimed, as_recorded(outcome, input_sha256=input_sha256, from_cache=from_cache))]))


def as_recorded(outcome: Outcome, *, input_sha256: str, from_cache: bool = False) -> dict[str, Any]:
    """What a verdict is after an answer, readable or not."""
    reading = outcome.reading
    return {
        "state": State.FAILED if reading.failure else State.VALID,
        "label": reading.label,
        "failure": reading.failure,
        "detail": storable(reading.detail),
        "raw_output": storable(outcome.raw_output),
        "resolved_model": storable(outcome.resolved_model)[:300],
        "effective_parameters": outcome.effective_parameters,
        "input_sha256": input_sha256,
        "from_cache": from_cache,
        "milliseconds": outcome.milliseconds,
        **{name: getattr(outcome, name) for name in TOKENS},
    }


def as_failed_call(failed: CallFailed, *, attempts: int, input_sha256: str = "") -> dict[str, Any]:
    """What a verdict is after a call without an answer: back in line, or failed for good.

    Such a call never becomes a label, nor an answer that somebody reads.
    """
    detail = storable(failed.detail)
    cost = {name: _sum(getattr(exchange, name) for exchange in failed.exchanges) for name in TOKENS}
    if not isinstance(failed, Retryable) or attempts >= settings.JUDGE_MAX_ATTEMPTS:
        given_up = {"state": State.FAILED, "failure": failed.kind, "detail": detail}
        return {**given_up, "input_sha256": input_sha256, **cost}
    return {
        "state": State.PENDING,
        "detail": f"{failed.kind}: {detail}",
        "not_before": timezone.now() + timedelta(seconds=wait_after(failed, attempts)),
        **cost,
    }


def wait_after(failed: Retryable, attempts: int) -> float:
    """At least what the server asks for, and longer each time; jittered, lest all come back at once."""
    wait = max(failed.retry_after or 0.0, BACKOFF_SECONDS * 2 ** (attempts - 1))
    return min(wait * random.uniform(1, 1.25), LONGEST_WAIT_SECONDS)


def keep_calls(*, run: JudgeRun, ended: Sequence[tuple[Claimed, Sequence[Exchange]]]) -> None:
    """What was sent and what came back, one row a request; also of an answer that came too late."""
    now = timezone.now()
    rows = [
        {
            "run": run.pk,
            "verdict": claimed.verdict.pk,
            "at": now,
            "failure": exchange.failure,
            "finish_reason": storable(exchange.finish_reason)[:50],
            "request": storable(exchange.request, RAW_REQUEST_CHARACTERS),
            "reply": storable(exchange.reply),
            **{name: getattr(exchange, name) for name in TOKENS},
            "reasoning_tokens": exchange.reasoning_tokens,
            "milliseconds": exchange.milliseconds,
        }
        for claimed, exchanges in ended
        for exchange in exchanges
    ]
    if not rows:
        return
    table, columns, prepared = _as_sql(Call, tuple(rows[0]))
    holders = ", ".join(["%s"] * len(columns))
    with connection.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({holders})", [prepared(row) for row in rows]
        )


WRITTEN = (
    "state",
    "label",
    "failure",
    "detail",
    "raw_output",
    "resolved_model",
    "effective_parameters",
    "input_sha256",
    "from_cache",
    "milliseconds",
    *TOKENS,
    "not_before",
    "claim_token",
    "lease_until",
    "updated_at",
)


@transaction.atomic
def let_go(changes: Sequence[tuple[Claimed, Mapping[str, Any]]]) -> set[int]:
    """Write what the held verdicts are now, and end their leases; the ids of those that were still held.

    One statement, many rows: built by hand, since the ORM takes longer over each row than the database.
    """
    held = {claimed.verdict.pk: (claimed, values) for claimed, values in changes}
    now, rows, ours = timezone.now(), [], set()
    locked = Verdict.objects.select_for_update().filter(pk__in=held, state=State.CLAIMED).order_by("pk")
    for pk, token, *spent in locked.values_list("pk", "claim_token", *TOKENS):
        claimed, values = held[pk]
        if token != claimed.token:
            continue
        ours.add(pk)
        rows.append(_row(claimed.verdict, values, spent, now))
    if rows:
        table, columns, prepared = _as_sql(Verdict, WRITTEN)
        changed = ", ".join(f"{column} = %s" for column in columns)
        with connection.cursor() as cursor:
            cursor.executemany(
                f"UPDATE {table} SET {changed} WHERE id = %s", [[*prepared(row), row["pk"]] for row in rows]
            )
    return ours


def _row(
    verdict: Verdict, values: Mapping[str, Any], spent: Sequence[int | None], now: datetime
) -> dict[str, Any]:
    """A retried failure cost tokens too: they stay, and what the next answer cost is added."""
    changes = {
        **values,
        **{name: _sum([before, values.get(name)]) for name, before in zip(TOKENS, spent, strict=True)},
        "claim_token": None,
        "lease_until": None,
        "updated_at": now,
    }
    for name, value in changes.items():
        setattr(verdict, name, value)
    return {"pk": verdict.pk, **{name: getattr(verdict, name) for name in WRITTEN}}


def _as_sql(model: type[Model], names: Sequence[str]) -> tuple[str, list[str], Callable[..., list]]:
    """A table and columns as they stand in a statement, and what makes the values of a row fit for it."""
    quoted, fields = connection.ops.quote_name, [model._meta.get_field(name) for name in names]
    fit = [(field.name, field.get_db_prep_save) for field in fields]  # type: ignore[union-attr]
    columns = [quoted(str(field.column)) for field in fields]  # type: ignore[union-attr]
    return (
        quoted(model._meta.db_table),
        columns,
        lambda row: [made(row[name], connection) for name, made in fit],
    )


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


def prune_calls(*, days: int) -> int:
    """Delete what was sent and what came back, of calls older than this; what follows from it stays."""
    old = Call.objects.filter(at__lt=timezone.now() - timedelta(days=days)).exclude(request="", reply="")
    return old.update(request="", reply="")


def storable(text: str, characters: int = RAW_OUTPUT_CHARACTERS) -> str:
    """What every database takes: no NUL, no half surrogate, and not the 100 MB of a server gone mad."""
    clean = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(clean) <= characters:
        return clean
    return f"{clean[:characters]}\n[{len(clean) - characters} more characters not kept]"


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
