"""Working through a judge run: one turn of one worker, the bells that call for it, and the sweep.

The rows are the truth (see `leases`); a queue message is only a doorbell. A turn claims many verdicts at a
time, asks about them in threads, and is alone in touching the database: what came back is recorded together
with the next claim, and only then is a place free again. So a worker that dies costs no more calls a second
time than may run at once.
"""

import logging
import os
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import timedelta

from celery import current_app
from django.conf import settings
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Count, Max
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from annotate.asking import Question
from calibration import computed
from calibration.candidates import Candidate, Ended, broken, candidates_of, with_material
from calibration.extraction_claims import overtaken, store_extracted
from calibration.judges import baseline
from calibration.judges.asking import Outcome, judge_target
from calibration.judges.clients import CallFailed, Client, Permanent, Retryable
from calibration.judges.material import Extracting, Setup, asking_of
from calibration.leases import (
    BACKOFF_SECONDS,
    OPEN_STATES,
    RULES_AT_ONCE,
    Claimed,
    calls_somebody,
    claim_verdicts,
    concurrency_of,
    due,
    free_places,
    give_back_expired,
    keep_calls,
    let_go,
    under_way,
)
from calibration.models import Judge, JudgeRun, Verdict, WorkerSighting
from calibration.spending import budget_in_words, calls_left
from calibration.targets import questions_about, what_follows

log = logging.getLogger(__name__)

CANDIDATES = 32  # verdicts that a turn looks at, at least, before it looks again
CANDIDATES_A_CALL = 4  # verdicts that a turn looks at, for each call at a time, before it looks again
PARTS_A_TURN = 4  # so many times as many candidates does each of several turns choose from
CALLS_OF_A_TURN = 32  # calls at the same time in one turn; a judge with more of them gets more turns
TURN_SECONDS = 20  # how long a worker stays with one run before the next run has its turn
PATIENCE_SECONDS = 1.0  # how long a turn waits for a free place
LOOK_AGAIN_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 15.0  # how long a place stays empty after a rate limit
DATABASE_AGAIN_SECONDS = 0.5
FIRST_CALLS = 10  # targets whose calls all failed alike, before any was answered: the run stops by itself
IN_A_ROW = {  # later on, so many failures without an answer between them
    Verdict.Failure.AUTH: 20,
    Verdict.Failure.BUDGET: 20,
    Verdict.Failure.REJECTED: 20,
    Verdict.Failure.TRANSPORT: 100,
    Verdict.Failure.TIMEOUT: 100,
}
SIGHTING_SECONDS = 5

State = Verdict.State


class AtOnce(Executor):
    """For judges that wait for nobody: everything is done when it is handed in."""

    def submit(self, fn, /, *args, **kwargs):
        done: Future = Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as error:
            done.set_exception(error)
        return done


@dataclass
class Turn:
    """One worker's time with one run."""

    run: JudgeRun
    client: Client
    pool: Executor
    calls: int
    setup: Setup | Extracting
    ending: Callable[[], bool]
    ends: float | None = None
    candidates: deque[Candidate] = field(default_factory=deque)
    in_flight: dict[Future, tuple[Claimed, Candidate]] = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)
    empty_until: list[float] = field(default_factory=list)  # places that a rate limit keeps empty
    in_a_row: Counter = field(default_factory=Counter)
    was_answered: bool = False
    is_dry: bool = False  # nothing is due
    is_halted: bool = False
    is_handed_over: bool = False
    done: int = 0

    def work(self) -> int:
        """How many verdicts were worked on."""
        try:
            self._go_on()
        except KeyboardInterrupt:  # what is under way is paid for
            wait(self.in_flight)
            self._collect()
            self._record_and_claim(0)
            raise
        return self.done

    def _go_on(self) -> None:
        active = time.monotonic()
        while True:
            room = self._room() if self._may_go_on() else 0
            if room > len(self.candidates):
                self._look_for_candidates()
            came = bool(self.ended)
            claimed = self._record_and_claim(room if self.candidates else 0)
            self._ask(claimed)
            if came and not claimed:  # it was looked at, and its places are free now
                active = time.monotonic()
                continue
            if self.in_flight:
                self._look_ahead()
                wait(self.in_flight, timeout=LOOK_AGAIN_SECONDS, return_when=FIRST_COMPLETED)
            self._collect()
            if claimed or self.in_flight or self.ended:
                active = time.monotonic()
            elif self.is_dry or not self._may_go_on() or not self._waits_for_a_place(active):
                return

    def _may_go_on(self) -> bool:
        over = self.ends is not None and time.monotonic() >= self.ends
        if over and self.in_flight and not self.is_handed_over:
            self.is_handed_over = True
            ring(self.run)  # so that another turn takes the places as they become free
        return not (over or self.is_halted or self.ending())

    def _room(self) -> int:
        now = time.monotonic()
        self.empty_until = [until for until in self.empty_until if until > now]
        return max(0, self.calls - len(self.in_flight) - self._held() - len(self.empty_until))

    def _held(self) -> int:
        """An answer hands its place on at once; a failure may stop the run, and is looked at first."""
        if self.was_answered and not any(one.failure for one in self.ended):
            return 0
        return len(self.ended)

    def _waits_for_a_place(self, since: float) -> bool:
        """Others hold all places, a limit is reached, or a rate limit keeps the places empty."""
        if stop_without_budget(self.run):
            return False
        if not self.empty_until and time.monotonic() - since > PATIENCE_SECONDS:
            return False
        time.sleep(LOOK_AGAIN_SECONDS)
        return True

    # What is asked next

    def _look_ahead(self) -> None:
        """While calls are under way: a place that becomes free should not wait for its prompt."""
        if self.is_dry or len(self.candidates) >= self.calls or not self._may_go_on():
            return
        self._look_for_candidates()

    def _look_for_candidates(self) -> None:
        try:
            self._find_candidates()
        except (OperationalError, InterfaceError):
            if connection.in_atomic_block or not (self.in_flight or self.ended):
                raise
            connection.close()  # what is paid for comes first, and waits for the database if it has to

    def _find_candidates(self) -> None:
        known = [candidate.verdict.pk for candidate in self.candidates]
        found = with_material(due(self.run).exclude(pk__in=known).order_by("pk"))
        many = max(CANDIDATES, CANDIDATES_A_CALL * self.calls)
        start = many * self._part_to_look_at()
        verdicts = list(found[start : start + many]) or (list(found[:many]) if start else [])
        self.candidates.extend(candidates_of(self.run, verdicts, self.setup))
        self.is_dry = not self.candidates

    def _part_to_look_at(self) -> int:
        """Several turns should seldom want the same rows."""
        turns = -(-concurrency_of(self.run) // self.calls)
        return random.randrange(PARTS_A_TURN * turns) if turns > 1 else 0

    # What came back, and the next claim, in one transaction

    def _record_and_claim(self, room: int) -> list[tuple[Claimed, Candidate]]:
        """Again and again while the database is away: an answer that was paid for is not given up."""
        ended, deadline = self.ended, time.monotonic() + settings.JUDGE_LEASE_SECONDS
        if not ended and not room:
            return []
        while True:
            try:
                with transaction.atomic():
                    record(self.run, ended)
                    claimed = self._claim(room)
                break
            except (OperationalError, InterfaceError):
                if connection.in_atomic_block or time.monotonic() > deadline:
                    raise
                log.warning("judge run %s: the database is away, %s answers wait", self.run.pk, len(ended))
                connection.close()
                time.sleep(DATABASE_AGAIN_SECONDS)
        self.ended, self.is_dry = [], self.is_dry and not ended  # an answer may lead to another question
        self._watch(ended)
        return claimed

    def _claim(self, room: int) -> list[tuple[Claimed, Candidate]]:
        if not room:
            return []
        places = min(room, free_places(self.run, tokens_each=self.candidates[0].tokens))
        wanted = {candidate.verdict.pk: candidate for candidate in list(self.candidates)[:places]}
        if not wanted:
            return []
        claimed = claim_verdicts(run=self.run, verdicts=(one.verdict for one in wanted.values()))
        self.is_halted = not claimed and not _is_running(self.run)
        for _candidate in wanted:  # those that were not won are somebody else's
            self.candidates.popleft()
        return [(held, wanted[held.verdict.pk]) for held in claimed]

    def _ask(self, claimed: list[tuple[Claimed, Candidate]]) -> None:
        for held, candidate in claimed:
            self.done += 1
            if candidate.known is not None:
                self.ended.append(Ended(held, candidate, candidate.known))
            else:
                asked = self.pool.submit(_ask, self.client, candidate)
                self.in_flight[asked] = (held, candidate)

    def _collect(self) -> None:
        for asked in [asked for asked in self.in_flight if asked.done()]:
            held, candidate = self.in_flight.pop(asked)
            self.ended.append(Ended(held, candidate, asked.result()))

    # When to stop

    def _watch(self, ended: list[Ended]) -> None:
        """A rate limit keeps its place empty for a while; a run that only fails is stopped."""
        for one in ended:
            if isinstance(one.came, Retryable) and one.failure == Verdict.Failure.RATE_LIMITED:
                pause = min(one.came.retry_after or BACKOFF_SECONDS, LONGEST_PAUSE_SECONDS)
                self.empty_until.append(time.monotonic() + pause)
            if one.candidate.known is not None:
                continue
            if not one.failure:
                self.was_answered = True
                self.in_a_row.clear()
                continue
            self.in_a_row[one.failure] += 1
            if self.in_a_row[one.failure] == IN_A_ROW.get(Verdict.Failure(one.failure)):
                self._stop(one.failure, self.in_a_row[one.failure])
        if ended and not self.was_answered and calls_somebody(self.run):
            self._stop_if_nothing_was_ever_answered()

    def _stop_if_nothing_was_ever_answered(self) -> None:
        found = first_failures(self.run)
        if "" in found:
            self.was_answered = True
        elif len(found) == 1:
            [(kind, count)] = found.items()
            if count >= FIRST_CALLS:
                self._stop(kind, count)

    def _stop(self, kind: str, count: int) -> None:
        self.is_halted = True
        if halt(run=self.run, reason=JudgeRun.StopReason.BREAKER, detail=f"{kind}: {count}"):
            log.warning("judge run %s stops: %s calls in a row failed as %s", self.run.pk, count, kind)


def _is_running(run: JudgeRun) -> bool:
    return JudgeRun.every.filter(pk=run.pk, state=JudgeRun.State.RUNNING).exists()


def _ask(client: Client, candidate: Candidate) -> Outcome | CallFailed:
    """In a thread of its own, without the database."""
    assert candidate.prompt is not None
    try:
        return judge_target(client, candidate.prompt, timeout=settings.JUDGE_TIMEOUT_SECONDS)
    except CallFailed as failed:
        return failed
    except Exception as error:
        return broken(error)


def record(run: JudgeRun, ended: list[Ended]) -> None:
    """Write what came back, each verdict only if it is still ours, what is asked after it, and every call."""
    if not ended:
        return
    if run.extracts:
        ended = _as_still_wanted(run, ended)
    ours = let_go([(one.claimed, one.changes) for one in ended])
    if run.extracts:
        _store_claims(run, [one for one in ended if one.claimed.verdict.pk in ours])
    elif questions := _conditional_questions(run):
        for one in ended:
            if one.claimed.verdict.pk in ours and one.label:
                _ask_what_follows(run, one.claimed.verdict, one.label, questions)
    if calls_somebody(run):
        keep_calls(run=run, ended=[(one.claimed, one.exchanges) for one in ended])


def _as_still_wanted(run: JudgeRun, ended: list[Ended]) -> list[Ended]:
    """Claims that came too late are not stored, and their verdict says so; nobody can freeze meanwhile."""
    gone = overtaken(run, [one.claimed.verdict.response_id for one in ended], hold=True)
    return [
        replace(one, came=_too_late(one, gone[one.claimed.verdict.response_id]))
        if one.label and one.claimed.verdict.response_id in gone
        else one
        for one in ended
    ]


def _too_late(one: Ended, why: CallFailed) -> CallFailed:
    late = Permanent(why.kind, why.detail)
    late.exchanges = tuple(one.exchanges)
    return late


def _store_claims(run: JudgeRun, ended: list[Ended]) -> None:
    for one in ended:
        if isinstance(one.came, Outcome) and one.label:
            store_extracted(
                run=run,
                response=one.claimed.verdict.response,
                claims=one.came.reading.claims,
                resolved_model=one.came.resolved_model,
            )


def _conditional_questions(run: JudgeRun) -> list[Question]:
    return [question for question in questions_about(run.dimensions, run.rubric_version) if question.after]


def _ask_what_follows(run: JudgeRun, verdict: Verdict, label: str, questions: Sequence[Question]) -> None:
    Verdict.objects.bulk_create(
        [
            Verdict(run=run, run_index=verdict.run_index, **target.where)
            for target in what_follows(verdict, label, questions)
        ],
        ignore_conflicts=True,
    )


def first_failures(run: JudgeRun) -> dict[str, int]:
    """Of the targets asked about since the latest start, how each one's latest call went; "" is an answer.

    A rate limit passes, so a target counts only once it has been given up.
    """
    latest = run.calls.filter(at__gte=run.resumed_at).values("verdict").annotate(last=Max("pk"))
    calls = run.calls.filter(pk__in=latest.values("last"))
    found = dict(calls.values_list("failure").annotate(n=Count("pk")))
    if Verdict.Failure.RATE_LIMITED in found:
        given_up = calls.filter(failure=Verdict.Failure.RATE_LIMITED, verdict__state=State.FAILED)
        found[Verdict.Failure.RATE_LIMITED] = given_up.count()
    return found


def stop_without_budget(run: JudgeRun) -> bool:
    """Stop a run whose budget allows no further call; what is under way ends and counts."""
    if calls_left(run, under_way=under_way(run), tokens_each=1) != 0 or under_way(run):
        return False
    return halt(run=run, reason=JudgeRun.StopReason.BUDGET, detail=budget_in_words(run))


def work_through(
    *,
    run_id: int,
    calls: int = 1,
    seconds: float | None = None,
    ending: Callable[[], bool] = lambda: False,
) -> int:
    """Judge due verdicts, several at a time, until none is left, the run is stopped or the time is up.

    Returns how many were worked on. Any number of workers may do this at once; one that is `ending` takes
    no more verdicts.
    """
    runs = JudgeRun.every.select_related("judge__evalset", "version", "rubric_version")
    run = runs.prefetch_related("rubric_version__dimensions").get(pk=run_id)
    asking = asking_of(run)
    if run.state != JudgeRun.State.RUNNING or asking is None:
        return 0
    if run.judge.kind in computed.KINDS:
        done = computed.compute(run=run)
        finish_run(run=run)
        return done
    client = client_of(run)
    try:
        with ThreadPoolExecutor(calls) if calls_somebody(run) else AtOnce() as pool:
            turn = Turn(
                run=run,
                client=client,
                pool=pool,
                calls=calls if calls_somebody(run) else RULES_AT_ONCE,
                ending=ending,
                ends=None if seconds is None else time.monotonic() + seconds,
                setup=asking,
            )
            done = turn.work()
    finally:
        client.close()
    finish_run(run=run)
    return done


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


def halt(*, run: JudgeRun, reason: JudgeRun.StopReason = JudgeRun.StopReason.ASKED, detail: str = "") -> bool:
    """From here on nothing more is claimed. The first reason stays."""
    running = JudgeRun.every.filter(pk=run.pk, state=JudgeRun.State.RUNNING)
    return bool(running.update(state=JudgeRun.State.STOPPED, stop_reason=reason, stop_detail=detail))


def finish_run(*, run: JudgeRun) -> bool:
    """Complete the run if nothing is pending or under way; failures count as done, and are shown."""
    left = Verdict.objects.filter(run=run.pk, state__in=OPEN_STATES)
    if left.exists():
        return False
    with transaction.atomic():
        # Somebody may be resuming the run: look again once the row is ours.
        unfinished = JudgeRun.every.select_for_update().exclude(state=JudgeRun.State.COMPLETE)
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


def bells_for(calls: int) -> int:
    return -(-calls // CALLS_OF_A_TURN)


def answer_bell(*, run_id: int, ending: Callable[[], bool] = lambda: False) -> None:
    """One worker's turn with a run; rings again when the time is up before the work is."""
    run = JudgeRun.every.select_related("judge").filter(pk=run_id, state=JudgeRun.State.RUNNING).first()
    if run is None or not due(run).exists():
        return
    calls = min(concurrency_of(run), CALLS_OF_A_TURN)
    done = work_through(run_id=run.pk, calls=calls, seconds=TURN_SECONDS, ending=ending)
    if done and due(run).exists():
        ring(run)


def sweep() -> None:
    """Take back expired leases, complete what is done, and ring for every running run with something due."""
    give_back_expired()
    for run in JudgeRun.every.filter(state=JudgeRun.State.RUNNING).select_related("judge"):
        if finish_run(run=run) or stop_without_budget(run):
            continue
        bells = bells_for(min(due(run).count(), concurrency_of(run) - under_way(run)))
        if bells > 0:
            ring(run, bells=bells, expires=30)
    for run in JudgeRun.every.filter(state=JudgeRun.State.STOPPED):
        finish_run(run=run)


def note_worker(*, name: str) -> None:
    """Remember that a worker lives; at most one write every few seconds."""
    now = timezone.now()
    stale = now - timedelta(seconds=SIGHTING_SECONDS)
    sighting, made = WorkerSighting.objects.get_or_create(name=name, defaults={"seen_at": now})
    if not made and sighting.seen_at < stale:
        WorkerSighting.objects.filter(pk=sighting.pk).update(seen_at=now)
