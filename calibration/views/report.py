from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotate.access import labels_of
from annotate.disagreement_kinds import target_in_address
from calibration import figures
from calibration.cases import CellForm, Differences, DoubtForm, NoDoubt, doubt_gold
from calibration.measures import costly_cell
from calibration.models import JudgeRun
from calibration.pairing import chosen_round
from calibration.reports import (
    NotReportable,
    build_report,
    closed_systems,
    labels_have_changed,
    standing_of,
    uncalibrated,
)
from calibration.scope import ScopeForm
from calibration.sightings import note_sighting

CASES_PER_PAGE = 25


def judged_of(request, slug, number, run, dimension):
    """Version and judge run, for a lead; a dimension that the run was not asked about does not exist."""
    version = labels_of(request.user, slug, number)
    judge_run = get_object_or_404(
        JudgeRun.objects.select_related("judge", "rubric_version__rubric"), version=version, number=run
    )
    if dimension not in judge_run.dimensions:
        raise Http404
    return version, judge_run


def chosen_report(judge_run, dimension, number=None):
    reports = judge_run.reports.filter(dimension=dimension).select_related(
        "judge_run__judge", "round__rubric_version__rubric", "round__version"
    )
    if number is None:
        return reports.order_by("-number").first()
    return get_object_or_404(reports, number=number)


@require_safe
def report(request, slug, number, run, dimension):
    version, judge_run = judged_of(request, slug, number, run, dimension)
    form = ScopeForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    found = chosen_report(judge_run, dimension, form.cleaned_data["report"])
    context = {
        "version": version,
        "run": judge_run,
        "dimension": dimension,
        "report": found,
        "reports": judge_run.reports.filter(dimension=dimension).order_by("-number"),
        "holds": standing_of(found) if found else uncalibrated(dimension=dimension, run=run),
        "rounds": form.rounds,
        "round": found.round if found else chosen_round(version=version),
    }
    if found:
        context |= _shown(found, context["holds"])
    return render(request, "calibration/report.html", context)


def _shown(report, holds):
    payload = report.payload
    rows = figures.ladder_rows(payload["agreement"])
    bar = payload["gate"]["policy"]["min_judge_agreement"]
    closed = closed_systems(report)
    return {
        "payload": payload,
        "ladder_rows": rows,
        "ladder": figures.inline_svg(figures.ladder(rows, bar=bar), figures.described(rows, bar)),
        "chart_kinds": ("svg", "png", "csv"),
        "failing": [entry for entry in payload["gate"]["conditions"] if entry["passed"] is False],
        "unknown": [
            entry
            for entry in payload["gate"]["conditions"]
            if entry["name"] == "fingerprint" and entry["passed"] is None
        ],
        "gold_pair": payload["agreement"]["judge_vs_gold"],
        "costly": costly_cell(payload["agreement"]["confusion"]),
        "labels_changed": labels_have_changed(report),
        "closed": closed,
        # Sums of the judge's labels are its rate: not while one system's is withheld.
        "sums_shown": holds.trusted and not closed,
    }


@require_POST
def build(request, slug, number, run, dimension):
    version, judge_run = judged_of(request, slug, number, run, dimension)
    form = ScopeForm(request.POST, version=version)
    round = form.chosen_round if form.is_valid() else None
    if round is None:
        messages.error(request, _("There is no such grading round: choose one that has labels."))
        return redirect("calibration:report", slug, number, run, dimension)
    try:
        made = build_report(judge_run=judge_run, round=round, dimension=dimension, person=request.user)
    except NotReportable as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Report %(number)s is built.") % {"number": made.number})
    return redirect("calibration:report", slug, number, run, dimension)


@require_safe
def kappa_chart(request, slug, number, run, dimension, report, kind):
    """The chart of a report as a file: SVG, PNG or the numbers behind it."""
    _version, judge_run = judged_of(request, slug, number, run, dimension)
    payload = chosen_report(judge_run, dimension, report).payload
    rows = figures.ladder_rows(payload["agreement"])
    spec = figures.ladder(rows, bar=payload["gate"]["policy"]["min_judge_agreement"])
    name = f"kappa-{slug}-{number}-run-{run}-{dimension}-report-{report}.{kind}"
    content, mime = _drawn(spec, rows, kind)
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _drawn(spec, rows, kind):
    if kind == "svg":
        return figures.svg(spec), "image/svg+xml"
    if kind == "png":
        return figures.png(spec), "image/png"
    if kind == "csv":
        return figures.ladder_csv(rows), "text/csv; charset=utf-8"
    raise Http404


@require_safe
def cases(request, slug, number, run, dimension):
    """Where judge and gold differ: how often, and target by target."""
    version, judge_run = judged_of(request, slug, number, run, dimension)
    found = chosen_report(judge_run, dimension)
    if found is None:
        raise Http404
    form = CellForm(request.GET, labels=found.payload["agreement"]["confusion"]["labels"])
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    note_sighting(run=judge_run, person=request.user)
    differences = Differences(found, **form.cleaned_data)
    context = {
        "version": version,
        "run": judge_run,
        "dimension": dimension,
        "report": found,
        "form": form,
        "cell": form.cleaned_data,
        "differences": differences,
        "page_obj": Paginator(differences, CASES_PER_PAGE).get_page(request.GET.get("page")),
        "query": urlencode({name: value for name, value in form.cleaned_data.items() if value}),
    }
    return render(request, "calibration/report_cases.html", context)


@require_POST
def doubt(request, slug, number, run, dimension):
    """Gold was wrong: into the log, and on to the page where the lead decides anew."""
    version, judge_run = judged_of(request, slug, number, run, dimension)
    found = chosen_report(judge_run, dimension)
    form = DoubtForm(request.POST)
    if found is None or not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    try:
        made = doubt_gold(report=found, person=request.user, **form.cleaned_data)
    except NoDoubt as error:
        messages.error(request, str(error))
        return redirect("calibration:report_cases", slug, number, run, dimension)
    messages.info(
        request,
        _("Logged. What you decide here is gold, but counts for no judge: there the label of before stays."),
    )
    place = target_in_address(made.response_id, made.claim_id, made.passage_id)
    return redirect("annotate:adjudicate", slug, number, found.round.number, dimension, place)
