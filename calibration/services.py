"""Every write about judges. The verdict rows are the truth; a queue message is only a doorbell.

A verdict goes pending -> claimed -> valid or failed. Claiming and recording are single conditional updates:
whoever finds the row in another state, or held under another token, has lost it and drops what it has.
"""

import hashlib
import json
import logging
import os
import random
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, transaction
from django.db.models import Exists, F, Max, Min, OuterRef, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError as BrokerError

from annotate.models import Round, RubricVersion
from annotate.services import rubric_v1
from calibration.judges import baseline, prompts
from calibration.judges.asking import Outcome, judge_target
from calibration.judges.clients import CallFailed, Client, Permanent, Retryable
from calibration.judges.material import dimension_texts, prompt_of
from calibration.judges.parsing import PARSER_VERSION, Reading
from calibration.models import Judge, JudgeRun, Verdict, WorkerSighting
from evalsets.labels import LABEL_SET_VERSION, LABELS, TARGET_OF
from evalsets.models import Claim, EvalSet, EvalSetVersion, Response, SystemRun

log = logging.getLogger(__name__)

BATCH = 2000
CANDIDATES = 64  # ids that a worker looks at before it asks the database again
TURN_SECONDS = 20  # how long a worker stays with one run before the next run has its turn
BACKOFF_SECONDS = 1.0  # doubled with every attempt
LONGEST_WAIT_SECONDS = 600.0  # whatever a server asks for
LONGEST_PAUSE_SECONDS = 15.0  # how long a rate-limited worker holds still before it tries another verdict
LOST_LEASES_AT_MOST = 10  # a row whose worker dies this often is what kills it
SIGHTING_SECONDS = 5
RAW_OUTPUT_CHARACTERS = 20_000
DEFAULT_CONCURRENCY = 4
DEFAULT_BASE_URL = "https://api.openai.com/v1"
OWN_PARAMETERS = {"concurrency"}  # how we work; no part of what the model is asked
BUILT_IN = {
    Judge.Kind.LEXICAL.value: ("grounding",),
    Judge.Kind.PHRASES.value: ("abstention",),
}
KEY_VARIABLE = re.compile(r"(?:[A-Z][A-Z0-9_]*_)?API_KEY(?:_[A-Z0-9_]+)?")

State = Verdict.State
OPEN_STATES = (State.PENDING, State.CLAIMED)


class Refused(Exception):
    """The request cannot be done as asked; the message is a sentence for the person who asked."""


# Judges


def judge_named(*, evalset: EvalSet, name: str) -> Judge:
    """The judge of this name; the two that need no key are made on first use."""
    if judge := Judge.objects.filter(evalset=evalset, name=name).first():
        return judge
    if name not in BUILT_IN:
        names = sorted({*Judge.objects.filter(evalset=evalset).values_list("name", flat=True), *BUILT_IN})
        raise Refused(
            _("There is no judge named {name!r} here. There are: {names}.").format(
                name=name, names=", ".join(names)
            )
        )
    judge, _made = Judge.objects.get_or_create(evalset=evalset, name=name, defaults={"kind": name})
    return judge


def add_judge(
    *,
    evalset: EvalSet,
    name: str,
    model: str,
    base_url: str = "",
    provider: str = "",
    family: str = "",
    api_key_variable: str = "",
    prompt_version: str = prompts.LATEST,
    parameters: dict | None = None,
    person=None,
) -> Judge:
    """Add an LLM judge. It is never changed afterwards: another setting is another judge."""
    if name in BUILT_IN:
        raise Refused(_("The name {name!r} belongs to a built-in judge.").format(name=name))
    if api_key_variable and not KEY_VARIABLE.fullmatch(api_key_variable):
        raise Refused(
            _(
                "{name!r} is not accepted as the variable of an API key: its name must be in capitals and "
                "contain API_KEY, so that no other secret of the server can be sent out."
            ).format(name=api_key_variable)
        )
    judge, made = Judge.objects.get_or_create(
        evalset=evalset,
        name=name,
        defaults={
            "kind": Judge.Kind.OPENAI,
            "model": model,
            "base_url": base_url.rstrip("/"),
            "provider": provider,
            "family": family,
            "api_key_variable": api_key_variable,
            "prompt_version": prompt_version,
            "parameters": parameters or {},
            "created_by": person,
        },
    )
    if not made:
        raise Refused(
            _("There is a judge named {name!r} already; a changed judge needs another name.").format(
                name=name
            )
        )
    return judge


def dimensions_of(judge: Judge) -> tuple[str, ...]:
    """What a judge of this kind can be asked."""
    return BUILT_IN.get(judge.kind, tuple(LABELS))


# Starting a run


def rubric_in_force(version: EvalSetVersion) -> RubricVersion:
    """That of the newest grading round here, else the eval set's newest, else the built-in one."""
    latest_round = (
        Round.objects.filter(version=version).exclude(kind=Round.Kind.IMPORTED).order_by("-number").first()
    )
    if latest_round:
        return latest_round.rubric_version
    own = RubricVersion.objects.filter(rubric__evalset=version.evalset, rubric__is_imported=False)
    return own.order_by("-pk").first() or rubric_v1(evalset=version.evalset)


def targets_of(
    *, system_runs: Iterable[SystemRun], dimensions: Sequence[str]
) -> list[tuple[str, int, int | None]]:
    """(dimension, response, claim): each leaf claim's grounding, each non-empty response's abstention."""
    found: list[tuple[str, int, int | None]] = []
    runs = list(system_runs)
    if "grounding" in dimensions:
        leaves = Claim.objects.filter(response__run__in=runs, parts__isnull=True)
        leaves = leaves.order_by("response__run", "response__position", "position", "pk")
        found += [
            ("grounding", response, claim) for claim, response in leaves.values_list("pk", "response_id")
        ]
    if "abstention" in dimensions:
        responses = Response.objects.filter(run__in=runs).order_by("run", "position").only("pk", "text")
        found += [("abstention", response.pk, None) for response in responses if not response.is_empty]
    return found


@transaction.atomic
def start_run(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun] | None = None,
    dimensions: Sequence[str] | None = None,
    rubric_version: RubricVersion | None = None,
    repeats: int = 1,
    person=None,
    use_cache: bool = True,
) -> JudgeRun:
    """Create the run with a pending verdict per target, dimension and repeat, and ring for the workers."""
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    runs = list(version.runs.all()) if system_runs is None else list(system_runs)
    asked = tuple(dimensions or dimensions_of(judge))
    _refuse_start(judge, version, runs, asked, repeats)
    targets = targets_of(system_runs=runs, dimensions=asked)
    if not targets:
        raise Refused(_("There is nothing to judge: no claim and no response of the dimensions asked for."))
    rubric_version = rubric_version or rubric_in_force(version)
    _refuse_rubric(rubric_version, asked)
    requested = requested_of(judge, rubric_version)
    run = JudgeRun.objects.create(
        judge=judge,
        version=version,
        number=_next_number(version),
        rubric_version=rubric_version,
        dimensions=list(asked),
        repeats=repeats,
        requested=requested,
        requested_fingerprint=fingerprint_of(requested),
        use_cache=use_cache,
        created_by=person,
    )
    run.system_runs.set(runs)
    Verdict.objects.bulk_create(
        (
            Verdict(run=run, dimension=dimension, response_id=response, claim_id=claim, run_index=index)
            for index in range(1, repeats + 1)
            for dimension, response, claim in targets
        ),
        batch_size=BATCH,
    )
    transaction.on_commit(lambda: ring(run, bells=concurrency_of(run)))
    return run


def _refuse_start(judge, version, runs, asked, repeats) -> None:
    if judge.kind == Judge.Kind.IMPORTED:
        raise Refused(
            _("{judge} is a name that came with imported verdicts; it cannot be run.").format(judge=judge)
        )
    if judge.evalset_id != version.evalset_id:
        raise Refused(_("{judge} belongs to another eval set.").format(judge=judge))
    unfit = [name for name in asked if name not in dimensions_of(judge)]
    if unfit:
        raise Refused(_("{judge} cannot judge {dimension}.").format(judge=judge, dimension=", ".join(unfit)))
    if not version.is_frozen:
        raise Refused(_("Freeze {version} first: a judge runs over frozen items.").format(version=version))
    foreign = [run for run in runs if run.version_id != version.pk]
    if foreign:
        raise Refused(_("{run} belongs to another version.").format(run=foreign[0]))
    drafts = [run for run in runs if not run.is_frozen]
    if drafts:
        raise Refused(_("Freeze {run} first: its claims may still change.").format(run=drafts[0]))
    if not runs:
        raise Refused(_("There is no system run to judge."))
    if not 1 <= repeats <= 20:
        raise Refused(_("The number of repeats must be from 1 to 20."))
    under_way = JudgeRun.objects.filter(
        judge=judge, version=version, state=JudgeRun.State.RUNNING, system_runs__in=runs
    ).first()
    if under_way:
        raise Refused(
            _("Run {number} of {judge} is still under way.").format(number=under_way.number, judge=judge)
        )


def _refuse_rubric(rubric_version, asked) -> None:
    texts = dimension_texts(rubric_version)
    for name in asked:
        defined = {label.name for label in texts[name].labels if label.definition} if name in texts else set()
        missing = [label for label in LABELS[name] if label not in defined]
        if missing:
            raise Refused(
                _("The rubric version {rubric} does not define {label} of {dimension}.").format(
                    rubric=rubric_version, label=missing[0], dimension=name
                )
            )


def requested_of(judge: Judge, rubric_version: RubricVersion) -> dict:
    """What is asked of whom: the parts of the fingerprint. Changing any of them makes another judge of it."""
    is_llm = judge.kind == Judge.Kind.OPENAI
    rule = {
        Judge.Kind.LEXICAL: baseline.LEXICAL_VERSION,
        Judge.Kind.PHRASES: baseline.PHRASES_VERSION,
    }.get(judge.kind, "")
    return {
        "kind": judge.kind,
        "provider": judge.provider,
        "base_url": (judge.base_url or settings.JUDGE_BASE_URL or DEFAULT_BASE_URL) if is_llm else "",
        "model": judge.model if is_llm else rule,
        "prompt_version": judge.prompt_version,
        "prompt_sha256": prompts.prompt_sha256(),
        "rubric_version": str(rubric_version),
        "rubric_sha256": rubric_version.sha256,
        "label_set_version": LABEL_SET_VERSION,
        "parameters": {name: value for name, value in judge.parameters.items() if name not in OWN_PARAMETERS},
        "parser_version": PARSER_VERSION,
    }


def fingerprint_of(requested: dict) -> str:
    canonical = json.dumps(requested, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def concurrency_of(run: JudgeRun) -> int:
    return int(run.judge.parameters.get("concurrency", DEFAULT_CONCURRENCY))


def _next_number(version: EvalSetVersion) -> int:
    return (version.judge_runs.aggregate(last=Max("number"))["last"] or 0) + 1


# Imported verdicts


@transaction.atomic
def record_imported_verdicts(
    *,
    version: EvalSetVersion,
    runs: Sequence[SystemRun],
    verdicts: Iterable[tuple[str, int, int | None, str, str]],
) -> list[JudgeRun]:
    """Store (judge name, response, claim or None, dimension, label) rows: one complete run per judge.

    A later import into the same version extends the judge's imported run.
    """
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    rows: dict[str, list[tuple[int, int | None, str, str]]] = defaultdict(list)
    for judge_name, response, claim, dimension, label in verdicts:
        _refuse_label(dimension, label, claim)
        rows[judge_name].append((response, claim, dimension, label))
    return [_import_run(version, runs, name, own) for name, own in rows.items()]


def _refuse_label(dimension: str, label: str, claim: int | None) -> None:
    if label not in LABELS.get(dimension, ()) or (TARGET_OF[dimension] == "claim") != (claim is not None):
        raise Refused(
            _("{label!r} is not a label of the dimension {dimension!r}.").format(
                label=label, dimension=dimension
            )
        )


def _import_run(version, runs, name, rows) -> JudgeRun:
    run = JudgeRun.objects.filter(
        version=version, judge=_imported_judge(version.evalset, name), origin=JudgeRun.Origin.IMPORTED
    ).first()
    now = timezone.now()
    if run is None:
        run = JudgeRun.objects.create(
            judge=_imported_judge(version.evalset, name),
            version=version,
            number=_next_number(version),
            origin=JudgeRun.Origin.IMPORTED,
            state=JudgeRun.State.COMPLETE,
            finished_at=now,
        )
    _refuse_known_targets(run, name, rows)
    run.system_runs.add(*runs)
    run.dimensions = sorted(
        {*run.dimensions, *(dimension for _, _, dimension, _ in rows)}, key=list(LABELS).index
    )
    run.save(update_fields=["dimensions"])
    Verdict.objects.bulk_create(
        (
            Verdict(
                run=run,
                response_id=response,
                claim_id=claim,
                dimension=dimension,
                label=label,
                state=State.VALID,
            )
            for response, claim, dimension, label in rows
        ),
        batch_size=BATCH,
    )
    return run


def _imported_judge(evalset: EvalSet, name: str) -> Judge:
    """A judge of kind imported; "(imported)" is added where a judge to be run has the name."""
    taken = Judge.objects.filter(evalset=evalset, name=name).exclude(kind=Judge.Kind.IMPORTED).exists()
    judge, _made = Judge.objects.get_or_create(
        evalset=evalset,
        name=f"{name} (imported)" if taken or name in BUILT_IN else name,
        defaults={"kind": Judge.Kind.IMPORTED},
    )
    return judge


def _refuse_known_targets(run, name, rows) -> None:
    known = set(run.verdicts.values_list("response_id", "claim_id", "dimension"))
    again = Counter((response, claim, dimension) for response, claim, dimension, _ in rows)
    double = [target for target, times in again.items() if times > 1 or target in known]
    if double:
        raise Refused(
            _("The judge {name!r} has more than one verdict for {count} of the targets.").format(
                name=name, count=len(double)
            )
        )


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
        prompt_tokens=outcome.prompt_tokens,
        completion_tokens=outcome.completion_tokens,
        milliseconds=outcome.milliseconds,
    )


def record_failed_call(*, claimed: Claimed, failed: CallFailed, input_sha256: str = "") -> float:
    """Put a verdict whose call failed back in line, or fail it for good; the seconds a worker should pause.

    A call without an answer never becomes a label, nor an answer that somebody reads.
    """
    attempts = claimed.verdict.attempts
    detail = storable(failed.detail)
    if not isinstance(failed, Retryable) or attempts >= settings.JUDGE_MAX_ATTEMPTS:
        _let_go(claimed, state=State.FAILED, failure=failed.kind, detail=detail, input_sha256=input_sha256)
        return 0.0
    wait = max(failed.retry_after or 0.0, BACKOFF_SECONDS * 2 ** (attempts - 1) * random.uniform(1, 1.25))
    wait = min(wait, LONGEST_WAIT_SECONDS)
    _let_go(
        claimed,
        state=State.PENDING,
        detail=f"{failed.kind}: {detail}",
        not_before=timezone.now() + timedelta(seconds=wait),
    )
    return min(wait, LONGEST_PAUSE_SECONDS) if failed.kind == Verdict.Failure.RATE_LIMITED else 0.0


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


def work_through(*, run_id: int, seconds: float | None = None, on_verdict=None) -> int:
    """Judge due verdicts one after the other until none is left, the run is stopped or the time is up.

    Returns how many were worked on. Any number of workers may do this at once.
    """
    run = JudgeRun.objects.select_related("judge", "version", "rubric_version").get(pk=run_id)
    if run.state != JudgeRun.State.RUNNING or run.rubric_version is None:
        return 0
    ends = None if seconds is None else time.monotonic() + seconds
    rubric = dimension_texts(run.rubric_version)
    candidates: list[int] = []
    done = 0
    client = client_of(run)
    try:
        while ends is None or time.monotonic() < ends:
            claimed = claim_verdict(run=run, candidates=candidates)
            if claimed is None:
                break
            pause = _judge(run, claimed, client, rubric)
            done += 1
            if on_verdict:
                on_verdict()
            if pause:
                time.sleep(pause if ends is None else max(0.0, min(pause, ends - time.monotonic())))
    finally:
        client.close()
    finish_run(run=run)
    return done


def _judge(run: JudgeRun, claimed: Claimed, client: Client, rubric: dict) -> float:
    sha256 = ""
    try:
        prompt = prompt_of(claimed.verdict, rubric)
        sha256 = prompt.sha256
        cached = _cached(run, claimed.verdict, sha256)
        outcome = cached or judge_target(client, prompt, timeout=settings.JUDGE_TIMEOUT_SECONDS)
    except CallFailed as failed:
        return record_failed_call(claimed=claimed, failed=failed, input_sha256=sha256)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("verdict %s could not be judged", claimed.verdict.pk)
        broken = Permanent(Verdict.Failure.INTERNAL, f"{type(error).__name__}: {error}")
        return record_failed_call(claimed=claimed, failed=broken, input_sha256=sha256)
    record_verdict(claimed=claimed, outcome=outcome, input_sha256=sha256, from_cache=cached is not None)
    return 0.0


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


def run_inline(*, run: JudgeRun, on_verdict=None) -> JudgeRun:
    """Work through everything that is pending in this process, waiting out back-offs."""
    while True:
        work_through(run_id=run.pk, on_verdict=on_verdict)
        run.refresh_from_db()
        waiting = run.verdicts.filter(state=State.PENDING)
        if run.state != JudgeRun.State.RUNNING or not waiting.exists():
            return run
        next_due = waiting.aggregate(at=Min("not_before"))["at"]
        if next_due:
            time.sleep(min(max((next_due - timezone.now()).total_seconds(), 0.01), 5))


# Finishing, stopping, going on


def finish_run(*, run: JudgeRun) -> bool:
    """Complete the run if nothing is pending or under way; failures count as done, and are shown."""
    open_verdicts = Verdict.objects.filter(run=OuterRef("pk"), state__in=OPEN_STATES)
    return bool(
        JudgeRun.objects.filter(~Exists(open_verdicts), pk=run.pk)
        .exclude(state=JudgeRun.State.COMPLETE)
        .update(state=JudgeRun.State.COMPLETE, finished_at=timezone.now())
    )


def stop_run(*, run: JudgeRun) -> None:
    """Claim no more. Calls in flight end and are recorded."""
    JudgeRun.objects.filter(pk=run.pk, state=JudgeRun.State.RUNNING).update(state=JudgeRun.State.STOPPED)
    run.refresh_from_db()


@transaction.atomic
def resume_run(*, run: JudgeRun, retry_failed: bool = False) -> None:
    """Go on with a stopped run, or with a run's failed verdicts; for a running one this only rings again."""
    if run.origin == JudgeRun.Origin.IMPORTED:
        raise Refused(_("Imported verdicts cannot be run again."))
    run = JudgeRun.objects.select_for_update().get(pk=run.pk)
    now = timezone.now()
    if retry_failed:
        run.verdicts.filter(state=State.FAILED).update(
            state=State.PENDING, failure="", detail="", attempts=0, not_before=None, updated_at=now
        )
    run.verdicts.filter(state=State.PENDING).update(not_before=None)
    if not run.verdicts.filter(state__in=OPEN_STATES).exists():
        raise Refused(_("There is nothing left to do in this run."))
    JudgeRun.objects.filter(pk=run.pk).update(state=JudgeRun.State.RUNNING, finished_at=None)
    transaction.on_commit(lambda: ring(run, bells=concurrency_of(run)))


# The doorbell and the sweep


def ring(run: JudgeRun, *, bells: int = 1, expires: float | None = None) -> None:
    """Tell the workers that there is something to do. With the broker down, the sweep rings again later."""
    try:
        for _bell in range(bells):
            current_app.send_task(
                "calibration.tasks.judge_verdicts", args=[run.pk], expires=expires, retry=False
            )
    except (BrokerError, OSError) as error:
        log.warning("could not ring for judge run %s: %s", run.pk, error)


def answer_bell(*, run_id: int) -> None:
    """One worker's turn with a run; rings again when the time is up before the work is."""
    run = JudgeRun.objects.select_related("judge").filter(pk=run_id, state=JudgeRun.State.RUNNING).first()
    if run is None or _under_way(run) >= concurrency_of(run):
        return
    work_through(run_id=run.pk, seconds=TURN_SECONDS)
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
