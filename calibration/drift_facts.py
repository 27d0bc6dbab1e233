"""Whether a judge still reads the same, as a JSON object."""

from calibration.drift import (
    FRESH_LEAST,
    FreshRound,
    ShownChart,
    charts_shown,
    fresh_rounds_of,
    latest_reports_of,
)
from calibration.facts import standing_facts
from calibration.measures import Figures
from calibration.models import JudgeRun, SentinelPlan
from calibration.reports import standing_of
from calibration.sentinels import LEAST, active_plan, candidates_of


def drift_facts(judge_run: JudgeRun) -> Figures:
    """Where the judge stands and why, what is asked again, the charts, and the later rounds that wait."""
    plan, reports = active_plan(judge_run), latest_reports_of(judge_run)
    return {
        "judge": judge_run.judge.name,
        "judge_run": judge_run.number,
        "standings": [standing_facts(standing_of(report)) for report in reports],
        "plan": plan_facts(plan) if plan else None,
        "can_be_asked_again": [
            {"dimension": one.dimension, "targets": len(one.verdicts), "least": LEAST}
            for one in candidates_of(judge_run)
        ],
        "charts": [chart_facts(one) for report in reports for one in charts_shown(report, plan)]
        if plan
        else [],
        "fresh_rounds": [fresh_facts(one) for report in reports for one in fresh_rounds_of(report)],
    }


def plan_facts(plan: SentinelPlan) -> Figures:
    return {
        "targets": len(plan.verdicts),
        "seed": plan.seed,
        "every_days": plan.every_days,
        "next_at": plan.next_at,
        "problem": plan.problem,
        "budget_calls": plan.budget_calls,
        "budget_tokens": plan.budget_tokens,
        "budget_money": None if plan.budget_money is None else float(plan.budget_money),
        "created_at": plan.created_at,
    }


def chart_facts(chart: ShownChart) -> Figures:
    return {
        "dimension": chart.dimension,
        "chart": chart.name,
        "points": [
            {"judge_run": run.number, "finished_at": run.finished_at, **point.as_dict()}
            for run, point in zip(chart.runs, chart.points, strict=True)
        ],
    }


def fresh_facts(fresh: FreshRound) -> Figures:
    return {
        "dimension": fresh.dimension,
        "version": fresh.round.version.number,
        "round": fresh.round.number,
        "judge_run": fresh.run.number,
        "targets": fresh.n,
        "least": FRESH_LEAST,
        "unsettled": fresh.unsettled,
        "ungraded": fresh.ungraded,
    }
