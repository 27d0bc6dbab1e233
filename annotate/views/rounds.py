"""The lead's pages about rounds: open one, see how far it is, pause or close it, hand work over."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Prefetch, prefetch_related_objects
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate import services
from annotate.access import labels_of, unfinished_rounds
from annotate.forms import OpenRoundForm, ReassignForm, ResponsesForm
from annotate.models import Assignment, ClaimSplit, Round
from annotate.progress import (
    left_out_of,
    progress_of_round,
    progress_per_grader,
    remarks_of,
    responses_in,
    rounds_of,
    with_subjects,
)
from evalsets.access import version_of
from evalsets.queries import stratum_names

PER_PAGE, REMARKS_PER_PAGE = 50, 20


@require_safe
def rounds(request, slug, number):
    version = version_of(request.user, slug, number)
    context = {
        "version": version,
        "rounds": rounds_of(version),
        # How far the others are is nothing for somebody who still grades.
        "still_grading": unfinished_rounds(request.user, version).exists(),
        "gradable": version.is_frozen and version.runs.filter(state="frozen").exists(),
    }
    return render(request, "annotate/rounds.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def open_round(request, slug, number):
    version = version_of(request.user, slug, number)
    form = _open_form(request, version)
    context = {"version": version, "form": form}
    if form.is_valid():
        try:
            if "confirm" in request.POST:
                round = services.open_round_with(
                    version=version, people=form.cleaned_data["people"], person=request.user, **form.round
                )
                messages.success(request, _("Round %(number)s is open.") % {"number": round.number})
                return redirect("annotate:rounds", slug, number)
            context |= _plan(version, form)
        except services.Refused as refused:
            form.add_error(None, str(refused))
    return render(request, "annotate/open_round.html", context, status=400 if form.errors else 200)


def _open_form(request, version) -> OpenRoundForm:
    rubric = _rubric_for(request, version)
    initial = {
        "seed": services.new_seed(),
        "runs": version.runs.filter(state="frozen"),
        "rubric_version": rubric,
        "warm_up": rubric.warm_up_cases.exists(),
    }
    strata = stratum_names(version)
    return OpenRoundForm(request.POST or None, version=version, strata=strata, initial=initial)


def _rubric_for(request, version):
    """The version that the rubric page sent the lead here with, else the latest."""
    latest = services.latest_rubric(evalset=version.evalset, person=request.user)
    asked = request.GET.get("rubric", "")
    if not asked.isdecimal() or len(asked) > 8:
        return latest
    return latest.rubric.versions.filter(number=asked).first() or latest


def _plan(version, form) -> dict:
    data = form.cleaned_data
    planned = services.plan_round(
        version=version,
        runs=data["runs"],
        graders=list(data["people"]),
        rubric_version=data["rubric_version"],
        overlap=form.plan,
        seed=data["seed"],
    )
    per_grader = [(person, of, of.labels / form.labels_an_hour) for person, of in planned.per_grader.items()]
    return {"planned": planned, "per_grader": per_grader, "pace": form.labels_an_hour}


@require_safe
def round(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    round = _round_of(version, round_number)
    return _round_page(request, version, round, ReassignForm(round=round))


def _round_of(version, number) -> Round:
    rounds = Round.objects.select_related("rubric_version__rubric", "second_look_of", "version__evalset")
    return get_object_or_404(rounds, version=version, number=number)


def _round_page(request, version, round, form, status=200):
    remarks = Paginator(remarks_of(round), REMARKS_PER_PAGE).get_page(request.GET.get("page"))
    splits = ClaimSplit.objects.filter(round=round, state=ClaimSplit.State.PROPOSED).select_related("claim")
    context = {
        "version": version,
        "round": round,
        "graders": progress_per_grader(round),
        "progress": progress_of_round(round),
        "left_out": left_out_of(round),
        "page_obj": remarks,
        "remarks": with_subjects(remarks),
        "splits": splits.order_by("pk")[:PER_PAGE],
        "n_splits": splits.count(),
        "second_looks": round.second_looks.order_by("number"),
        "n_drawn": round.drawn.count(),
        "form": form,
    }
    return render(request, "annotate/round.html", context, status=status)


@require_safe
def round_responses(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    round = _round_of(version, round_number)
    form = ResponsesForm(request.GET, round=round)
    if not form.is_valid():
        raise Http404
    found = responses_in(round, **form.cleaned_data)
    page = Paginator(found.select_related("item", "run__system"), PER_PAGE).get_page(request.GET.get("page"))
    of_round = Assignment.objects.filter(round=round).select_related("grader").order_by("grader__number")
    prefetch_related_objects(page.object_list, Prefetch("assignments", of_round, to_attr="of_round"))
    context = {
        "version": version,
        "round": round,
        "form": form,
        "page_obj": page,
        "query": urlencode({name: request.GET.get(name, "") for name in form.fields}),
    }
    return render(request, "annotate/round_responses.html", context)


MOVES = {
    "pause": services.pause_round,
    "resume": services.resume_round,
    "close": services.close_round,
}


@require_POST
def move_round(request, slug, number, round_number):
    version = version_of(request.user, slug, number)
    round = get_object_or_404(
        Round.objects.exclude(kind=Round.Kind.IMPORTED), version=version, number=round_number
    )
    move = MOVES.get(request.POST.get("move", ""))
    if move is None:
        messages.error(request, _("Choose pause, resume or close."))
        return redirect("annotate:rounds", slug, number)
    try:
        round = move(round=round)
        messages.success(
            request,
            _("Round %(number)s is %(state)s.")
            % {"number": round.number, "state": round.get_state_display()},
        )
    except services.Refused as refused:
        messages.error(request, str(refused))
    return redirect("annotate:rounds", slug, number)


@require_POST
def reassign(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    round = _round_of(version, round_number)
    form = ReassignForm(request.POST, round=round)
    if not form.is_valid():
        return _round_page(request, version, round, form, status=400)
    try:
        moved, left = form.hand_over()
    except services.Refused as refused:
        form.add_error(None, str(refused))
        return _round_page(request, version, round, form, status=400)
    said = ngettext("%(n)s response handed over", "%(n)s responses handed over", moved) % {"n": moved}
    whom = form.cleaned_data["grader"] or form.cleaned_data["to"]
    messages.success(
        request, _("%(said)s; %(name)s has %(left)s left.") % {"said": said, "left": left, "name": whom}
    )
    return redirect("annotate:round", slug, number, round_number)
