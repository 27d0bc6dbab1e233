"""Extracting claims with a model: what it would take, the start, and what becomes of it."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST, require_safe

from annotate.access import labels_of
from calibration.extraction_runs import (
    cancel_extraction,
    cancelled_in_words,
    estimate_extraction,
    refuse_extraction,
    resume_extraction,
    scope_of,
    start_extraction,
)
from calibration.forms import BudgetForm, ExtractionForm
from calibration.judges import extracting
from calibration.models import JudgeRun
from calibration.queries import extractions_of, found_in, progress_of, worker_seen
from calibration.services import Refused, stop_run
from calibration.views.judges import budget_form_of, rows_of

PLACES = {
    "page": "calibration:extraction_run",
    "progress": "calibration:extraction_progress",
    "stop": "calibration:stop_extraction",
    "resume": "calibration:resume_extraction",
    "cancel": "calibration:cancel_extraction",
    "rows": "calibration:extraction_answers",
}
# Pages that name a judge are closed to a lead who still grades, as all pages about judges are.


def extraction_of(person, slug, number, extraction):
    version = labels_of(person, slug, number)
    runs = JudgeRun.every.filter(version=version, purpose=JudgeRun.Purpose.EXTRACTION)
    found = runs.select_related("judge", "version__evalset", "endpoint")
    return version, get_object_or_404(found, number=extraction)


@require_safe
def extractions(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ExtractionForm(version=version, initial={"response": request.GET.get("response")})
    context = {
        "version": version,
        "form": form,
        "scope": scope_of(form.runs.values()),
        "extractions": extractions_of(version),
        "prompt": {"version": extracting.VERSION, "system": extracting.SYSTEM, "closing": extracting.CLOSING},
    }
    return render(request, "calibration/extractions.html", context)


@require_GET
def confirm_extraction(request, slug, number):
    """What a start would mean, before it happens."""
    version = labels_of(request.user, slug, number)
    form = ExtractionForm(request.GET, version=version)
    context = {"version": version, "form": form, "worker_seen": worker_seen()}
    if form.is_valid():
        try:
            responses = refuse_extraction(**form.asked)
        except Refused as error:
            form.add_error(None, str(error))
        else:
            context |= _meaning(form, responses)
    status = 400 if form.errors else 200
    return render(request, "calibration/extraction_start.html", context, status=status)


def _meaning(form, responses):
    chosen = form.cleaned_data
    return {
        "scope": scope_of(form.chosen_runs, form.chosen_responses),
        "estimate": estimate_extraction(
            judge=form.chosen_judge,
            responses=responses,
            max_tokens=chosen["max_tokens"],
            use_cache=chosen["use_cache"],
        ),
    }


@require_POST
def start(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ExtractionForm(request.POST, version=version)
    if not form.is_valid():
        context = {"version": version, "form": form}
        return render(request, "calibration/extraction_start.html", context, status=400)
    chosen = form.cleaned_data
    try:
        extraction = start_extraction(
            **form.asked,
            max_tokens=chosen["max_tokens"],
            use_cache=chosen["use_cache"],
            person=request.user,
        )
    except Refused as error:
        messages.error(request, str(error))
        return redirect("calibration:extractions", slug, number)
    return redirect("calibration:extraction_run", slug, number, extraction.number)


@require_safe
def extraction_run(request, slug, number, extraction):
    version, run = extraction_of(request.user, slug, number, extraction)
    return render(request, "calibration/extraction_run.html", _context(version, run))


@require_safe
def progress(request, slug, number, extraction):
    """The piece of the page that changes; the page polls it while the extraction is under way."""
    version, run = extraction_of(request.user, slug, number, extraction)
    return render(request, "calibration/_judge_progress.html", _context(version, run))


def _context(version, run):
    return {
        "version": version,
        "run": run,
        "progress": progress_of(run),
        "found": found_in(run),
        "budget_form": budget_form_of(run),
        "places": PLACES,
    }


@require_POST
def stop(request, slug, number, extraction):
    _version, run = extraction_of(request.user, slug, number, extraction)
    stop_run(run=run)
    messages.info(request, _("No more calls are started. Calls under way end and count."))
    return redirect("calibration:extraction_run", slug, number, extraction)


@require_POST
def resume(request, slug, number, extraction):
    _version, run = extraction_of(request.user, slug, number, extraction)
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("A budget is a number above zero; nothing was changed."))
        return redirect("calibration:extraction_run", slug, number, extraction)
    given = form.budget if any(form.cleaned_data.values()) else None
    try:
        resume_extraction(run=run, retry_failed="retry_failed" in request.POST, budget=given)
    except Refused as error:
        messages.error(request, str(error))
    return redirect("calibration:extraction_run", slug, number, extraction)


@require_POST
def cancel(request, slug, number, extraction):
    _version, run = extraction_of(request.user, slug, number, extraction)
    messages.info(request, cancelled_in_words(cancel_extraction(run=run)))
    return redirect("calibration:extraction_run", slug, number, extraction)


@require_safe
def answers(request, slug, number, extraction):
    version, run = extraction_of(request.user, slug, number, extraction)
    context = {"version": version, **rows_of(run, request.GET)}
    status = 400 if context["form"].errors else 200
    return render(request, "calibration/extraction_answers.html", context, status=status)
