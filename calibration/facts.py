"""What commands and the API say of the same things: each a JSON object."""

from collections.abc import Iterable, Sequence
from decimal import Decimal

from annotate.models import Round
from calibration.estimates import Estimate, estimate
from calibration.extraction import runs_graded, with_extraction
from calibration.judge_figures import judge_figures
from calibration.measures import Figures, agreement_of
from calibration.models import CalibrationReport, Judge, JudgeRun
from calibration.pairing import table_of
from calibration.queries import Progress, progress_of
from calibration.rates import human_figures
from calibration.reports import standing_of
from calibration.services import dimensions_of, refuse_start, rubric_in_force
from calibration.spending import NO_BUDGET, Budget
from calibration.targets import targets_of
from evalsets.models import EvalSetVersion, SystemRun


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
        "tokens": {"prompt": progress.prompt_tokens, "completion": progress.completion_tokens},
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


def estimate_facts(found: Estimate) -> Figures:
    return {
        "from_cache": found.from_cache,
        "calls": found.calls,
        "tokens": {"prompt": found.prompt_tokens, "completion": found.completion_tokens},
        "cost": _money(found.cost, found.currency),
        "seconds": found.seconds,
        "measured_calls": found.measured_calls,
    }


def _money(amount: Decimal | None, currency: str) -> Figures | None:
    return None if amount is None else {"amount": str(amount), "currency": currency}


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
