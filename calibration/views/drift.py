from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from calibration import drift_figures, figures
from calibration.drift import (
    FRESH_LEAST,
    ShownChart,
    charts_shown,
    findings_about,
    fresh_rounds_of,
    latest_report_of,
    latest_reports_of,
    sentinel_runs_of,
)
from calibration.drift_forms import SentinelForm
from calibration.models import CalibrationReport, JudgeRun, SentinelPlan
from calibration.reports import standing_of
from calibration.sentinels import active_plan, candidates_of, end_plan, plan_sentinels, start_sentinel
from calibration.services import Refused
from calibration.views.judges import judge_run_of

KINDS = ("svg", "png", "csv")


@require_safe
def drift(request, slug, number, run):
    """Does this judge still read the same? Its sentinel runs, fresh labels, and what was found in them."""
    version, judge_run = judge_run_of(request.user, slug, number, run)
    candidates = candidates_of(judge_run)
    form = SentinelForm(request.GET or None, judge_run=judge_run, candidates=candidates)
    chosen = bool(request.GET) and form.is_valid()
    context = _shown(version, judge_run) | {"form": form, "candidates": candidates, "chosen": chosen}
    status = 400 if form.errors else 200
    return render(request, "calibration/drift.html", context, status=status)


def _shown(version, judge_run) -> dict[str, Any]:
    plan = active_plan(judge_run)
    reports = latest_reports_of(judge_run)
    return {
        "version": version,
        "run": judge_run,
        "plan": plan,
        "standings": [standing_of(report) for report in reports],
        "charts": [chart for report in reports for chart in _charts(report, plan)] if plan else [],
        "sentinels": sentinel_runs_of(judge_run),
        "findings": findings_about(judge_run),
        "fresh": [entry for report in reports for entry in fresh_rounds_of(report)],
        "least": FRESH_LEAST,
        "kinds": KINDS,
    }


@dataclass(frozen=True)
class Chart:
    dimension: str
    name: str
    title: str
    rows: drift_figures.Rows

    @property
    def spec(self) -> dict[str, Any]:
        return drift_figures.control_chart(self.rows, self.title)

    @property
    def drawn(self) -> str:
        return figures.inline_svg(self.spec, drift_figures.described(self.rows, self.title))


def _charts(report: CalibrationReport, plan: SentinelPlan) -> list[Chart]:
    return [
        Chart(one.dimension, one.name, one.points[0].share.label, _rows(one))
        for one in charts_shown(report, plan)
    ]


def _rows(chart: ShownChart) -> drift_figures.Rows:
    return drift_figures.rows_of([_name_of(run) for run in chart.runs], chart.points)


def _name_of(run: JudgeRun) -> str:
    at = run.finished_at or run.created_at
    return _("run {number}, {date}").format(number=run.number, date=f"{at:%Y-%m-%d}")


@require_safe
def drift_chart(request, slug, number, run, dimension, picture, kind):
    """A control chart as a file: SVG, PNG or the numbers behind it."""
    _version, judge_run = judge_run_of(request.user, slug, number, run)
    plan, report = active_plan(judge_run), latest_report_of(judge_run, dimension)
    found = [chart for chart in (_charts(report, plan) if plan and report else []) if chart.name == picture]
    if not found or kind not in KINDS:
        raise Http404
    content, mime = _as_file(found[0], kind)
    name = f"{picture}-{slug}-{number}-run-{run}-{dimension}.{kind}"
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _as_file(chart: Chart, kind: str) -> tuple[str | bytes, str]:
    if kind == "svg":
        return figures.svg(chart.spec), "image/svg+xml"
    if kind == "png":
        return figures.png(chart.spec), "image/png"
    return drift_figures.chart_csv(chart.rows), "text/csv; charset=utf-8"


@require_POST
def plan_sentinel_runs(request, slug, number, run):
    version, judge_run = judge_run_of(request.user, slug, number, run)
    candidates = candidates_of(judge_run)
    form = SentinelForm(request.POST, judge_run=judge_run, candidates=candidates)
    if not form.is_valid():
        context = _shown(version, judge_run) | {"form": form, "candidates": candidates}
        return render(request, "calibration/drift.html", context, status=400)
    try:
        plan_sentinels(judge_run=judge_run, person=request.user, **form.plan)
    except Refused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The judge will be asked again. Nothing is called before then."))
    return redirect("calibration:drift", slug, number, run)


@require_POST
def end_sentinel_runs(request, slug, number, run):
    _version, judge_run = judge_run_of(request.user, slug, number, run)
    if end_plan(judge_run=judge_run):
        messages.info(request, _("No more sentinel runs are started. A run under way goes on."))
    return redirect("calibration:drift", slug, number, run)


@require_POST
def run_sentinel_now(request, slug, number, run):
    _version, judge_run = judge_run_of(request.user, slug, number, run)
    plan = active_plan(judge_run)
    try:
        started = start_sentinel(plan=plan, person=request.user) if plan else None
    except Refused as error:
        messages.error(request, str(error))
        return redirect("calibration:drift", slug, number, run)
    if started is None:
        messages.error(request, _("There is no plan: choose first what is asked again."))
        return redirect("calibration:drift", slug, number, run)
    return redirect("calibration:judge_run", slug, number, started.number)
