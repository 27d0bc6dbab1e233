"""What a lead can do about judges: add one, start, stop and resume its runs."""

import hashlib
import json
import re
import time
from collections.abc import Iterable, Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Min
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import Round, RubricVersion
from annotate.services import rubric_v1
from annotate.services.targets import Target
from calibration.computed import NotComputable, members_of, prepared
from calibration.judges import baseline, panel, prompts, trained
from calibration.judges.material import dimension_texts, wording_of
from calibration.judges.parsing import PARSER_VERSION
from calibration.leases import OPEN_STATES, concurrency_of
from calibration.models import Endpoint, Judge, JudgeRun, SentinelPlan, Verdict, Watch
from calibration.spending import NO_BUDGET, Budget, calls_left, cannot_be_kept, spent_in
from calibration.targets import questions_about, targets_of
from calibration.thresholds import policy_in_force
from calibration.work import bells_for, halt, ring, work_through
from evalsets.labels import LABEL_SET_VERSION, LABELS
from evalsets.models import EvalSet, EvalSetVersion, SystemRun

BATCH = 2000
DEFAULT_BASE_URL = "https://api.openai.com/v1"
OWN_PARAMETERS = {"concurrency", "only_cited"}  # how we work; no part of what the model is asked
BUILT_IN: dict[str, tuple[str, ...]] = {
    Judge.Kind.LEXICAL.value: ("grounding",),
    Judge.Kind.PHRASES.value: ("abstention",),
    Judge.Kind.TRAINED.value: ("grounding", "abstention"),
    Judge.Kind.MAJORITY.value: ("grounding", "abstention"),
}
RULE_VERSIONS = {
    Judge.Kind.LEXICAL.value: baseline.LEXICAL_VERSION,
    Judge.Kind.PHRASES.value: baseline.PHRASES_VERSION,
    Judge.Kind.TRAINED.value: trained.TRAINED_VERSION,
    Judge.Kind.MAJORITY.value: trained.MAJORITY_VERSION,
    Judge.Kind.PANEL.value: panel.VERSION,
}
KEY_VARIABLE = re.compile(r"(?:[A-Z][A-Z0-9_]*_)?API_KEY(?:_[A-Z0-9_]+)?")

State = Verdict.State
# An answer that is asked for again must leave nothing behind that a later failure could be read with.
NOT_ANSWERED: dict[str, Any] = {
    "failure": "",
    "detail": "",
    "raw_output": "",
    "resolved_model": "",
    "effective_parameters": {},
    "input_sha256": "",
    "milliseconds": None,
    "attempts": 0,
    "not_before": None,
}


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
    prompt_version: str = prompts.BUILT_IN,
    parameters: dict | None = None,
    prices: dict[str, str] | None = None,
    person=None,
) -> Judge:
    """Add an LLM judge. It is never changed afterwards: another setting is another judge."""
    if api_key_variable and not KEY_VARIABLE.fullmatch(api_key_variable):
        raise Refused(
            _(
                "{name!r} is not accepted as the variable of an API key: its name must be in capitals and "
                "contain API_KEY, so that no other secret of the server can be sent out."
            ).format(name=api_key_variable)
        )
    return _new_judge(
        evalset=evalset,
        name=name,
        kind=Judge.Kind.OPENAI,
        model=model,
        base_url=base_url.rstrip("/"),
        provider=provider,
        family=family,
        api_key_variable=api_key_variable,
        prompt_version=prompt_version,
        parameters=parameters or {},
        prices=prices or {},
        created_by=person,
    )


def limit_endpoint(
    *, base_url: str, concurrency: int | None = None, tokens_per_minute: int | None = None
) -> Endpoint:
    """What all workers together may ask of an address; None leaves a limit as it is, 0 takes it away."""
    endpoint, _made = Endpoint.objects.get_or_create(base_url=base_url.rstrip("/"))
    if concurrency is not None:
        endpoint.concurrency = concurrency or None
    if tokens_per_minute is not None:
        endpoint.tokens_per_minute = tokens_per_minute or None
    endpoint.save()
    return endpoint


def set_prices(*, judge: Judge, prices: dict[str, str]) -> None:
    """For runs from now on; a run keeps the prices of its start."""
    Judge.objects.filter(pk=judge.pk).update(prices=prices)


@transaction.atomic
def add_panel(*, evalset: EvalSet, name: str, members: Sequence[Judge], rule: str, person=None) -> Judge:
    """Several judges as one. Like every judge it is never changed afterwards."""
    names = sorted({member.name for member in members})
    if len(names) < 2:
        raise Refused(_("A panel needs at least two judges."))
    if rule not in panel.RULES:
        raise Refused(_("The rule of a panel is one of {rules}.").format(rules=", ".join(panel.RULES)))
    strangers = [member for member in members if member.evalset_id != evalset.pk]
    if strangers:
        raise Refused(_("{judge} belongs to another eval set.").format(judge=strangers[0]))
    nested = [member for member in members if member.kind == Judge.Kind.PANEL]
    if nested:
        raise Refused(_("{judge} is a panel itself.").format(judge=nested[0]))
    return _new_judge(
        evalset=evalset,
        name=name,
        kind=Judge.Kind.PANEL,
        parameters={"members": names, "rule": rule},
        created_by=person,
    )


def _new_judge(*, evalset: EvalSet, name: str, **setting: Any) -> Judge:
    """A judge is never changed afterwards, so that its name is taken for good."""
    if name in BUILT_IN:
        raise Refused(_("The name {name!r} belongs to a built-in judge.").format(name=name))
    judge, made = Judge.objects.get_or_create(evalset=evalset, name=name, defaults=setting)
    if not made:
        raise Refused(
            _("There is a judge named {name!r} already; a changed judge needs another name.").format(
                name=name
            )
        )
    return judge


def dimensions_of(judge: Judge, rubric_version: RubricVersion | None = None) -> tuple[str, ...]:
    """What a judge of this kind can be asked: an LLM whatever the rubric asks, the others what they know."""
    if judge.kind == Judge.Kind.OPENAI and rubric_version is not None:
        return tuple(dimension.name for dimension in rubric_version.dimensions.all())
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


def runs_numbered(*, version: EvalSetVersion, numbers: Sequence[int] | None) -> list[SystemRun]:
    """The system runs of these numbers; without any, all of them."""
    if not numbers:
        return list(version.runs.all())
    runs = list(version.runs.filter(number__in=numbers))
    missing = sorted(set(numbers) - {run.number for run in runs})
    if missing:
        raise Refused(_("{version} has no system run {number}.").format(version=version, number=missing[0]))
    return runs


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
    budget: Budget = NO_BUDGET,
) -> JudgeRun:
    """Create the run with a pending verdict per target, dimension and repeat, and ring for the workers."""
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    runs = list(version.runs.all()) if system_runs is None else list(system_runs)
    rubric_version = rubric_version or rubric_in_force(version)
    asked = tuple(dict.fromkeys(dimensions or dimensions_of(judge, rubric_version)))
    refuse_start(
        judge=judge,
        version=version,
        system_runs=runs,
        dimensions=asked,
        rubric_version=rubric_version,
        repeats=repeats,
        budget=budget,
    )
    targets = targets_of(system_runs=runs, dimensions=asked, rubric_version=rubric_version)
    if not targets:
        raise Refused(_("There is nothing to judge: no claim and no response of the dimensions asked for."))
    try:
        rests_on = prepared(
            judge=judge, version=version, system_runs=runs, dimensions=asked, rubric_version=rubric_version
        )
    except NotComputable as error:
        raise Refused(str(error)) from error
    return open_run(
        judge=judge,
        version=version,
        system_runs=runs,
        requested=requested_of(judge, rubric_version),
        rests_on=rests_on,
        rows=[(index, target.where) for index in range(1, repeats + 1) for target in targets],
        budget=budget,
        rubric_version=rubric_version,
        dimensions=list(asked),
        repeats=repeats,
        use_cache=use_cache,
        policy=policy_in_force(version).as_dict(),
        created_by=person,
    )


@transaction.atomic
def start_sentinel_run(*, plan: SentinelPlan, targets: Sequence[Target], person=None) -> JudgeRun:
    """Ask again what the plan says, past the cache and within its budget."""
    reference = plan.judge_run
    assert reference.rubric_version is not None
    EvalSetVersion.objects.select_for_update().get(pk=reference.version_id)
    runs = list(reference.system_runs.all())
    dimensions = sorted({target.dimension for target in targets})
    budget = Budget(plan.budget_calls, plan.budget_tokens, plan.budget_money)
    refuse_start(
        judge=reference.judge,
        version=reference.version,
        system_runs=runs,
        dimensions=dimensions,
        rubric_version=reference.rubric_version,
        repeats=1,
        budget=budget,
    )
    return open_run(
        judge=reference.judge,
        version=reference.version,
        system_runs=runs,
        requested=requested_of(reference.judge, reference.rubric_version),
        rows=[(1, target.where) for target in targets],
        budget=budget,
        rubric_version=reference.rubric_version,
        dimensions=dimensions,
        use_cache=False,
        sentinel_plan=plan,
        policy=policy_in_force(reference.version).as_dict(),
        created_by=person,
    )


def open_run(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    requested: dict,
    rows: Iterable[tuple[int, dict[str, Any]]],
    budget: Budget,
    rests_on: dict | None = None,
    purpose: str = JudgeRun.Purpose.JUDGING,
    **setting: Any,
) -> JudgeRun:
    """The run with its pending rows (run index, place); the caller holds the version and has checked all."""
    run = JudgeRun.objects.create(
        judge=judge,
        version=version,
        purpose=purpose,
        number=next_run_number(version, purpose),
        requested=requested | (rests_on or {}),
        requested_fingerprint=fingerprint_of(requested),
        endpoint=_endpoint_of(requested),
        prices=judge.prices,
        **budget.fields,
        **setting,
    )
    run.system_runs.set(system_runs)
    Verdict.objects.bulk_create(
        (Verdict(run=run, run_index=index, **where) for index, where in rows), batch_size=BATCH
    )
    transaction.on_commit(lambda: ring(run, bells=bells_for(concurrency_of(run))))
    return run


def _endpoint_of(requested: dict) -> Endpoint | None:
    """Workers lock its row while they count who calls there; a judge that calls nobody has none."""
    if not requested["base_url"]:
        return None
    return Endpoint.objects.get_or_create(base_url=requested["base_url"])[0]


def refuse_budget(budget: Budget, prices: dict) -> None:
    if budget.money is not None and not prices:
        raise Refused(_("A budget of money needs the judge's prices: set them first."))


def refuse_start(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    dimensions: Sequence[str],
    rubric_version: RubricVersion,
    repeats: int,
    budget: Budget = NO_BUDGET,
) -> None:
    """Refuse a run that could not be started so, before anything is made or reckoned."""
    able = dimensions_of(judge, rubric_version)
    _refuse_run(judge, version, system_runs, dimensions, able, repeats)
    refuse_budget(budget, judge.prices)
    _refuse_rubric(rubric_version, dimensions)


def _refuse_run(judge, version, runs, asked, able, repeats) -> None:
    if judge.kind == Judge.Kind.IMPORTED:
        raise Refused(
            _("{judge} is a name that came with imported verdicts; it cannot be run.").format(judge=judge)
        )
    if judge.evalset_id not in (version.evalset_id, _watched_with(version)):
        raise Refused(_("{judge} belongs to another eval set.").format(judge=judge))
    unfit = [name for name in asked if name not in able]
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
    running = JudgeRun.objects.filter(
        judge=judge, version=version, state=JudgeRun.State.RUNNING, system_runs__in=runs
    )
    under_way = next((run for run in running if set(run.dimensions) & set(asked)), None)
    if under_way:
        raise Refused(
            _("Run {number} of {judge} is still under way.").format(number=under_way.number, judge=judge)
        )


def _watched_with(version: EvalSetVersion) -> int | None:
    """The eval set whose judges look at this version, where it is a day of a watch."""
    watched = Watch.objects.filter(material=version.evalset_id)
    return watched.values_list("version__evalset", flat=True).first()


def _refuse_rubric(rubric_version, asked) -> None:
    texts = dimension_texts(rubric_version)
    for question in questions_about(asked, rubric_version):
        if question.after and question.after not in asked:
            raise Refused(
                _("{dimension} is asked after {parent}: choose both, or neither.").format(
                    dimension=question.dimension, parent=question.after
                )
            )
    for name in asked:
        defined = {label.name for label in texts[name].labels if label.definition} if name in texts else set()
        offered = [label.name for label in texts[name].labels] if name in texts else []
        missing = [label for label in LABELS.get(name, offered) if label not in defined]
        if missing:
            raise Refused(
                _("The rubric version {rubric} does not define {label} of {dimension}.").format(
                    rubric=rubric_version, label=missing[0], dimension=name
                )
            )


def requested_of(judge: Judge, rubric_version: RubricVersion) -> dict:
    """What is asked of whom: the parts of the fingerprint. Changing any of them makes another judge of it."""
    is_llm = judge.kind == Judge.Kind.OPENAI
    return {
        "kind": judge.kind,
        "provider": judge.provider,
        "base_url": address_of(judge) if is_llm else "",
        "model": judge.model if is_llm else RULE_VERSIONS.get(judge.kind, ""),
        "prompt_version": judge.prompt_version,
        "prompt_sha256": wording_of(judge.evalset, judge.prompt_version).sha256,
        "passages": "cited" if judge.parameters.get("only_cited") else "served",
        "rubric_version": str(rubric_version),
        "rubric_sha256": rubric_version.sha256,
        "label_set_version": LABEL_SET_VERSION,
        "parameters": asked_parameters(judge),
        "parser_version": PARSER_VERSION,
        **_members_requested(judge, rubric_version),
    }


def address_of(judge: Judge) -> str:
    return judge.base_url or settings.JUDGE_BASE_URL or DEFAULT_BASE_URL


def asked_parameters(judge: Judge) -> dict[str, Any]:
    return {name: value for name, value in judge.parameters.items() if name not in OWN_PARAMETERS}


def _members_requested(judge: Judge, rubric_version: RubricVersion) -> dict:
    """A panel is another one when a judge in it is; null for imported verdicts, of which nobody knows."""
    if judge.kind != Judge.Kind.PANEL:
        return {}
    return {
        "members": {
            member.name: None
            if member.kind == Judge.Kind.IMPORTED
            else fingerprint_of(requested_of(member, rubric_version))
            for member in members_of(judge)
        }
    }


def fingerprint_of(requested: dict) -> str:
    canonical = json.dumps(requested, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def next_run_number(version: EvalSetVersion, purpose: str = JudgeRun.Purpose.JUDGING) -> int:
    """Extractions are counted by themselves."""
    runs = JudgeRun.every.filter(version=version, purpose=purpose)
    return (runs.aggregate(last=Max("number"))["last"] or 0) + 1


# Working in this process, stopping, going on


def run_inline(*, run: JudgeRun, calls: int = 1) -> JudgeRun:
    """Work through everything that is pending in this process, waiting out back-offs."""
    while True:
        work_through(run_id=run.pk, calls=calls)
        run.refresh_from_db()
        waiting = run.verdicts.filter(state=State.PENDING)
        if run.state != JudgeRun.State.RUNNING or not waiting.exists():
            return run
        next_due = waiting.aggregate(at=Min("not_before"))["at"]
        if next_due:
            time.sleep(min(max((next_due - timezone.now()).total_seconds(), 0.01), 5))


def stop_run(*, run: JudgeRun) -> None:
    """Claim no more. Calls in flight end and are recorded."""
    halt(run=run)
    run.refresh_from_db()


@transaction.atomic
def resume_run(*, run: JudgeRun, retry_failed: bool = False, budget: Budget | None = None) -> None:
    """Go on with a stopped run, or with a run's failed verdicts; for a running one this only rings again.

    `budget` replaces the run's own; without one that stays.
    """
    if run.origin == JudgeRun.Origin.IMPORTED:
        raise Refused(_("Imported verdicts cannot be run again."))
    run = JudgeRun.every.select_for_update().get(pk=run.pk)
    now = timezone.now()
    if retry_failed:
        failed = run.verdicts.filter(state=State.FAILED).exclude(failure=Verdict.Failure.WITHDRAWN)
        failed.update(state=State.PENDING, updated_at=now, **NOT_ANSWERED)
    run.verdicts.filter(state=State.PENDING).update(not_before=None)
    if not run.verdicts.filter(state__in=OPEN_STATES).exists():
        raise Refused(_("There is nothing left to do in this run."))
    if budget is not None:
        refuse_budget(budget, run.prices)
        JudgeRun.every.filter(pk=run.pk).update(**budget.fields)
        run.refresh_from_db()
    if cannot_be_kept(run, spent_in(run)):
        raise Refused(_("The server tells no tokens of its calls: only a budget of calls can be kept."))
    if calls_left(run, under_way=0, tokens_each=1) == 0:
        raise Refused(_("The budget of this run is used up: give it a larger one to go on."))
    JudgeRun.every.filter(pk=run.pk).update(
        state=JudgeRun.State.RUNNING, finished_at=None, stop_reason="", stop_detail="", resumed_at=now
    )
    transaction.on_commit(lambda: ring(run, bells=bells_for(concurrency_of(run))))
