"""Extracting claims with a model: what it would take, the start, and what becomes of it."""

from django.contrib import messages
from django.shortcuts import redirect, render
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
from calibration.forms import ExtractionForm
from calibration.models import JudgeRun
from calibration.queries import extractions_of, found_in, worker_seen
from calibration.services import Refused
from calibration.views.running import live, resume_and_return, return_to, rows_of, run_of, stop_and_return

PLACES = {
    "page": "calibration:extraction_run",
    "progress": "calibration:extraction_progress",
    "stop": "calibration:stop_extraction",
    "resume": "calibration:resume_extraction",
    "cancel": "calibration:cancel_extraction",
    "rows": "calibration:extraction_answers",
}
# Pages that name a judge are closed to a lead who still grades, as all pages about judges are.


def extraction_run_of(person, slug, number, extraction):
    runs = JudgeRun.every.filter(purpose=JudgeRun.Purpose.EXTRACTION)
    return run_of(runs, person, slug, number, extraction)


@require_safe
def extractions(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ExtractionForm(version=version, initial={"response": request.GET.get("response")})
    context = {
        "version": version,
        "form": form,
        "scope": scope_of(form.runs.values()),
        "extractions": extractions_of(version),
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
            prompt_version=chosen["prompt_version"],
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
            prompt_version=chosen["prompt_version"],
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
    version, run = extraction_run_of(request.user, slug, number, extraction)
    return render(request, "calibration/extraction_run.html", _context(version, run))


@require_safe
def progress(request, slug, number, extraction):
    """The piece of the page that changes; the page polls it while the extraction is under way."""
    version, run = extraction_run_of(request.user, slug, number, extraction)
    return render(request, "calibration/_judge_progress.html", _context(version, run))


def _context(version, run):
    return live(version, run, PLACES) | {"found": found_in(run)}


@require_POST
def stop(request, slug, number, extraction):
    _version, run = extraction_run_of(request.user, slug, number, extraction)
    return stop_and_return(request, run, PLACES)


@require_POST
def resume(request, slug, number, extraction):
    _version, run = extraction_run_of(request.user, slug, number, extraction)
    return resume_and_return(request, run, PLACES, resume=resume_extraction)


@require_POST
def cancel(request, slug, number, extraction):
    _version, run = extraction_run_of(request.user, slug, number, extraction)
    messages.info(request, cancelled_in_words(cancel_extraction(run=run)))
    return return_to(run, PLACES)


@require_safe
def answers(request, slug, number, extraction):
    version, run = extraction_run_of(request.user, slug, number, extraction)
    context = {"version": version, **rows_of(run, request.GET)}
    status = 400 if context["form"].errors else 200
    return render(request, "calibration/extraction_answers.html", context, status=status)
