"""What commands and the API say of the same things: each a JSON object."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from annotate.models import Round
from calibration.estimates import Estimate, estimate
from calibration.extraction import runs_graded, with_extraction
from calibration.extraction_prompts import extraction_wording_named
from calibration.extraction_runs import estimate_extraction, refuse_extraction, scope_of
from calibration.gold_export import judges_of
from calibration.judge_figures import judge_figures, standings_of
from calibration.levers import sweeps_of
from calibration.measures import Figures, agreement_of
from calibration.models import CalibrationReport, Judge, JudgeRun
from calibration.pairing import table_of
from calibration.plans import Question, plan_of
from calibration.queries import Progress, found_in, progress_of
from calibration.rates import human_figures, settings_of
from calibration.reports import Standing, standing_of
from calibration.retrieving import relevance, retrieval_figures, scored, wrong_answers
from calibration.services import dimensions_of, refuse_start, rubric_in_force
from calibration.spending import NO_BUDGET, Budget
from calibration.targets import targets_of
from evalsets.models import EvalSetVersion, SystemRun
from evalsets.traffic import Sample, lacks


def round_facts(round: Round | None) -> Figures | None:
    if round is None:
        return None
    return {
        "number": round.number,
        "kind": round.kind,
        "state": round.state,
        "rubric_version": str(round.rubric_version),
    }


def agreement_facts(*, version: EvalSetVersion, round: Round | None, dimensions: Iterable[str]) -> Figures:
    return {
        "version": str(version),
        "round": round_facts(round),
        "dimensions": [
            agreement_of(table_of(version=version, round=round, dimension=dimension))
            for dimension in dimensions
        ],
    }


def judge_run_facts(run: JudgeRun) -> Figures:
    """How far a run is, what failed and what it took."""
    return run_facts(run, progress_of(run)) | {"dimensions": run.dimensions}


def run_facts(run: JudgeRun, progress: Progress) -> Figures:
    return {
        "run": run.number,
        "judge": run.judge.name,
        "state": run.state,
        "counts": {"valid": progress.valid, "failed": progress.failed, "pending": progress.pending},
        "failures": progress.failures_by_kind,
        "resolved_models": progress.resolved_models,
        "from_cache": progress.from_cache,
        "tokens": _tokens(progress),
        "calls": progress.spent.calls,
        "calls_without_tokens": progress.spent.uncounted,
        "cost": _money(progress.cost, run.prices.get("currency", "")),
        "stopped": {"reason": run.stop_reason, "detail": run.stop_detail} if run.stop_reason else None,
    }


def dry_run_facts(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    dimensions: Sequence[str] | None = None,
    repeats: int = 1,
    use_cache: bool = True,
    budget: Budget = NO_BUDGET,
) -> Figures:
    """What a run would take; refused where it could not be started. Nothing is started."""
    rubric_version = rubric_in_force(version)
    asked = dimensions or list(dimensions_of(judge, rubric_version))
    refuse_start(
        judge=judge,
        version=version,
        system_runs=system_runs,
        dimensions=asked,
        rubric_version=rubric_version,
        repeats=repeats,
        budget=budget,
    )
    if judge.kind != Judge.Kind.OPENAI:
        targets = targets_of(system_runs=system_runs, dimensions=asked, rubric_version=rubric_version)
        return {"dry_run": True, "judge": judge.name, "targets": len(targets) * repeats, "calls": 0}
    found = estimate(
        judge=judge,
        rubric_version=rubric_version,
        system_runs=system_runs,
        dimensions=asked,
        repeats=repeats,
        use_cache=use_cache,
    )
    return {
        "dry_run": True,
        "judge": judge.name,
        "targets": found.targets,
        "conditional_at_most": found.conditional,
        **estimate_facts(found),
    }


def _tokens(of: Progress | Estimate) -> dict[str, int]:
    return {"prompt": of.prompt_tokens, "cached": of.cached_tokens, "completion": of.completion_tokens}


def estimate_facts(found: Estimate) -> Figures:
    return {
        "from_cache": found.from_cache,
        "calls": found.calls,
        "tokens": _tokens(found),
        "cost": _money(found.cost, found.currency),
        "seconds": found.seconds,
        "measured_calls": found.measured_calls,
    }


def extraction_facts(run: JudgeRun) -> Figures:
    """The same of an extraction, and what it found so far."""
    found = found_in(run)
    responses = {"with_claims": found.get("claims", 0), "without": found.get("no_claims", 0)}
    told = run_facts(run, progress_of(run))
    return told | {"prompt_version": run.requested["prompt_version"], "responses": responses}


def dry_extraction_facts(
    *, prompt_version: str, max_tokens: int | None, use_cache: bool, **asked: Any
) -> Figures:
    """What an extraction would take; refused where it could not be started. Nothing is started."""
    responses = refuse_extraction(**asked)
    scope = scope_of(asked["system_runs"], asked.get("responses"))
    wording = extraction_wording_named(asked["version"].evalset, prompt_version)
    found = estimate_extraction(
        judge=asked["judge"],
        responses=responses,
        prompt_version=wording.version,
        max_tokens=max_tokens,
        use_cache=use_cache,
    )
    return {
        "dry_run": True,
        "judge": asked["judge"].name,
        "prompt_version": wording.version,
        "targets": found.targets,
        "responses": {
            "without_claims": len(scope.without_claims),
            "looked_at_and_none": len(scope.found_none),
            "extracted": len(scope.extracted),
            "came_with_claims": scope.with_claims,
            "labelled": scope.labelled,
            "empty": scope.empty,
        },
        **estimate_facts(found),
    }


def _money(amount: Decimal | None, currency: str) -> Figures | None:
    return None if amount is None else {"amount": str(amount), "currency": currency}


def standing_facts(found: Standing) -> Figures:
    """Where a judge stands in one dimension, and what has changed since its report."""
    return {
        "dimension": found.dimension,
        "state": found.state,
        "judge_run": found.run,
        "report": found.report.number if found.report else None,
        "conditions": found.conditions,
        "changes": found.changes,
    }


def standings_facts(version: EvalSetVersion) -> list[Figures]:
    """Of every judge that was asked here, in every dimension."""
    return [
        {"judge": judge.name, **standing_facts(found)}
        for judge in judges_of(version)
        for found in standings_of(judge=judge, version=version).values()
    ]


def report_facts(report: CalibrationReport) -> Figures:
    """What a report says, with what has changed since; its rates only while it holds."""
    payload, holds = report.payload, standing_of(report)
    agreement = payload["agreement"]
    return {
        key: payload[key]
        for key in (
            "dimension",
            "unit",
            "judge",
            "thresholds",
            "design",
            "revised",
            "baselines",
            "evidence",
            "verdicts",
            "per_system",
            "per_stratum",
            "gold_rates",
        )
    } | {
        "gate": payload["gate"] | {"state": holds.state, "changes": holds.changes},
        "agreement": agreement | {"dimensions": [agreement]},
        "corrected": payload.get("corrected") if holds.trusted else None,
        "rates": payload["rates"] if holds.trusted and "rates" in payload else holds.withheld(),
    }


def rates_by_judge(*, judge: Judge, version: EvalSetVersion, unit: str) -> Figures:
    facts = {"version": str(version), "source": f"judge:{judge.name}", "unit": unit}
    return facts | judge_figures(judge=judge, version=version, unit=unit)


def rates_by_people(*, version: EvalSetVersion, round: Round | None, source: str, unit: str) -> Figures:
    """`source` is gold or grader:NAME."""
    facts = {"version": str(version), "source": source, "unit": unit, "round": round_facts(round)}
    rates = human_figures(version=version, round=round, source=source, unit=unit)
    return facts | with_extraction(rates, runs_graded(version, round))


def pair_facts(rates: Figures, *, version: EvalSetVersion, round: Round | None) -> Figures:
    """Of rates the pair of every system, what it was set to, and the systems that one setting tells apart."""
    named = ("version", "source", "round", "withheld")
    head: Figures = {name: rates[name] for name in named if name in rates}
    if "per_system" not in rates:
        return head | {"systems": [], "sweeps": []}
    settings = settings_of(version, round, rates)
    return head | {
        "systems": [
            {"system": entry["system"], "settings": dict(settings[entry["system"]].settings)}
            | {name: _half(entry.get("abstention", {}), name) for name in ("over_answering", "over_refusal")}
            for entry in rates["per_system"]
        ],
        "sweeps": [
            {
                "lever": sweep.lever,
                "steps": [{"system": system, "setting": setting} for system, setting in sweep.steps],
            }
            for sweep in sweeps_of(settings)
        ],
    }


def _half(abstention: Figures, name: str) -> Figures | None:
    """None where the source was not asked about the whole responses."""
    return abstention if "withheld" in abstention else abstention.get(name)


def retrieval_facts(*, version: EvalSetVersion, round: Round | None, source: str, k: int) -> Figures:
    """What was served, what people say of it, and each wrong answer sorted to its cause."""
    found = scored(runs=runs_graded(version, round), k=k)
    wrong = wrong_answers(found, version=version, round=round, source=source)
    return {
        "version": str(version),
        "source": source,
        "round": round_facts(round),
        "retrieval": retrieval_figures(found),
        "wrong_answers": wrong,
        "optional": relevance(version=version, round=round, source=source),
    }


def plan_facts(question: Question) -> Figures:
    return {"question": asdict(question), **plan_of(question)}


def sample_facts(sample: Sample, *, version: EvalSetVersion | None) -> Figures:
    """A draw from a traffic log, and what the log did not have; `version` is None: nothing is stored."""
    log = sample.log
    return {
        "evalset": version.evalset.slug if version else None,
        "version": version.number if version else None,
        "n": len(sample.draw.drawn),
        "seed": sample.draw.seed,
        "question": log.question,
        "counts": {
            "lines": log.lines,
            "blank": log.blank,
            "unreadable": log.unreadable,
            "without_question": log.without_question,
            "repeated": log.repeated,
        },
        "strata": [
            {
                "key": dict(zip(log.strata, one.key, strict=True)),
                "available": one.available,
                "drawn": one.drawn,
            }
            for one in sample.draw.strata
        ],
        "notices": lacks(sample),
        "dry_run": version is None,
    }
