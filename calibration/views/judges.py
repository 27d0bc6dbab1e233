from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from annotate.access import labels_of
from calibration.forms import JudgeForm, PricesForm, StartForm
from calibration.judge_warm_up import start_warm_up
from calibration.models import Judge, JudgeRun
from calibration.queries import runs_of, worker_seen
from calibration.repeats import repeats_of
from calibration.services import Refused, add_judge, judge_named, resume_run, set_prices, start_run
from calibration.sightings import note_sighting
from calibration.views.running import live, resume_and_return, rows_of, run_of, stop_and_return
from calibration.views.warm_up import to_warm_up

PLACES = {
    "page": "calibration:judge_run",
    "progress": "calibration:judge_run_progress",
    "stop": "calibration:stop_judge_run",
    "resume": "calibration:resume_judge_run",
    "rows": "calibration:verdicts",
}


def judge_run_of(person, slug, number, run):
    return run_of(JudgeRun.objects.select_related("sentinel_plan__judge_run"), person, slug, number, run)


@require_safe
def judges(request, slug, number):
    version = labels_of(request.user, slug, number)
    context = {
        "version": version,
        "judges": Judge.objects.filter(evalset=version.evalset),
        "runs": runs_of(version),
        "form": StartForm(version=version),
    }
    return render(request, "calibration/judges.html", context)


@require_http_methods(["GET", "POST"])
def new_judge(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = JudgeForm(request.POST or None, evalset=version.evalset)
    if request.method == "POST" and form.is_valid():
        try:
            judge = add_judge(evalset=version.evalset, person=request.user, **form.judge)
        except Refused as error:
            form.add_error("name", str(error))
        else:
            messages.success(request, _("{judge} can be started now.").format(judge=judge))
            for warning in form.warnings:
                messages.warning(request, warning)
            return redirect("calibration:judges", slug, number)
    status = 400 if form.errors else 200
    return render(request, "calibration/judge_new.html", {"version": version, "form": form}, status=status)


@require_http_methods(["GET", "POST"])
def judge_prices(request, slug, number, judge):
    version = labels_of(request.user, slug, number)
    judge = get_object_or_404(Judge, evalset=version.evalset, kind=Judge.Kind.OPENAI, pk=judge)
    now = {f"price_{name}": judge.prices.get(name) for name in ("prompt", "cached", "completion")}
    now["currency"] = judge.prices.get("currency", "USD")
    form = PricesForm(request.POST or None, initial=now)
    if request.method == "POST" and form.is_valid():
        set_prices(judge=judge, prices=form.prices)
        messages.success(request, _("The prices hold for runs that are started from now on."))
        return redirect("calibration:judges", slug, number)
    context = {"version": version, "judge": judge, "form": form}
    status = 400 if form.errors else 200
    return render(request, "calibration/judge_prices.html", context, status=status)


@require_GET
def confirm_judge_run(request, slug, number):
    """What a start would mean, before it happens: the calls, and what speaks against them."""
    version = labels_of(request.user, slug, number)
    form = StartForm(request.GET, version=version)
    context = {"version": version, "form": form, "worker_seen": worker_seen()}
    if not form.is_valid():
        return render(request, "calibration/judge_start.html", context, status=400)
    context["judge"] = form.judges.get(form.cleaned_data["judge"])
    return render(request, "calibration/judge_start.html", context)


@require_POST
def start_judge_run(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = StartForm(request.POST, version=version)
    if not form.is_valid():
        context = {"version": version, "form": form}
        return render(request, "calibration/judge_start.html", context, status=400)
    if form.warms_up:
        judge = form.judges[form.cleaned_data["judge"]]
        start_warm_up(judge=judge, rubric_version=form.rubric_version, person=request.user)
        return to_warm_up(version, judge, request.POST)
    try:
        run = start_run(
            judge=judge_named(evalset=version.evalset, name=form.cleaned_data["judge"]),
            version=version,
            system_runs=form.chosen_runs,
            dimensions=form.asked,
            repeats=form.cleaned_data["repeats"],
            use_cache=form.cleaned_data["use_cache"],
            budget=form.budget,
            person=request.user,
        )
    except Refused as error:
        messages.error(request, str(error))
        return redirect("calibration:judges", slug, number)
    return redirect("calibration:judge_run", slug, number, run.number)


@require_safe
def judge_run(request, slug, number, run):
    version, judge_run = judge_run_of(request.user, slug, number, run)
    context = live(version, judge_run, PLACES)
    if judge_run.state != JudgeRun.State.RUNNING:
        context["repeats"] = repeats_of(judge_run)
    return render(request, "calibration/judge_run.html", context)


@require_safe
def progress(request, slug, number, run):
    """The piece of the page that changes; the page polls it while the run is under way."""
    version, judge_run = judge_run_of(request.user, slug, number, run)
    return render(request, "calibration/_judge_progress.html", live(version, judge_run, PLACES))


@require_POST
def stop_judge_run(request, slug, number, run):
    _version, judge_run = judge_run_of(request.user, slug, number, run)
    return stop_and_return(request, judge_run, PLACES)


@require_POST
def resume_judge_run(request, slug, number, run):
    _version, judge_run = judge_run_of(request.user, slug, number, run)
    return resume_and_return(request, judge_run, PLACES, resume=resume_run)


@require_safe
def verdicts(request, slug, number, run):
    version, judge_run = judge_run_of(request.user, slug, number, run)
    note_sighting(run=judge_run, person=request.user)
    context = {"version": version, **rows_of(judge_run, request.GET)}
    status = 400 if context["form"].errors else 200
    return render(request, "calibration/judge_verdicts.html", context, status=status)
