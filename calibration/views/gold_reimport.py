"""An edited gold set that comes back: first what changed, then what of it is taken over."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from annotate.access import labels_of
from annotate.models import Round
from calibration.gold_forms import GoldFileForm, TakeOverForm, shown_of
from calibration.gold_reimport import MOST_LISTED, described, listed, take_over
from calibration.views.exchange import within_the_limit
from evalsets.importing import ImportRefused

PAGE = "calibration/gold_reimport.html"


@within_the_limit
@require_http_methods(["GET", "HEAD", "POST"])
def compare_gold(request, slug, number):
    """Nothing is stored."""
    version = labels_of(request.user, slug, number)
    form = GoldFileForm(request.POST or None, request.FILES or None, version=version)
    context = {"version": version, "form": form}
    if request.method != "POST" or not form.is_valid():
        return render(request, PAGE, context, status=422 if form.is_bound else 200)
    try:
        found = form.compared()
    except ImportRefused as refused:
        context |= {"problems": refused.problems, "left_out": refused.left_out}
        return render(request, PAGE, context, status=422)
    take = TakeOverForm(initial={"shown": shown_of(found)})
    cannot = [change for change in found.new if not change.can_be_taken]
    context |= {
        "found": listed(found),
        "take": take,
        "to_take": described(take.changes, found.round),
        "not_shown": len(found.to_take) - len(take.changes),
        "cannot": described(cannot[:MOST_LISTED], found.round),
        "cannot_not_listed": len(cannot[MOST_LISTED:]),
    }
    return render(request, PAGE, context)


@require_POST
def take_over_gold(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = TakeOverForm(request.POST)
    if form.facts is None:
        return render(request, PAGE, _again(version, form.errors["shown"]), status=422)
    round = get_object_or_404(Round, pk=form.facts["round"], version=version)
    context = _again(version) | {"take": form, "to_take": described(form.changes, round)}
    if not form.is_valid():
        return render(request, PAGE, context, status=422)
    given = {name: form.cleaned_data[name] for name in ("note", "judge_seen")}
    try:
        made = take_over(
            round=round, changes=form.chosen, origin=form.facts["origin"], person=request.user, **given
        )
    except ImportRefused as refused:
        context |= {"problems": refused.problems, "left_out": refused.left_out}
        return render(request, PAGE, context, status=409)
    words = ngettext("%(n)d label is taken over.", "%(n)d labels are taken over.", len(made))
    messages.success(request, words % {"n": len(made)})
    return redirect("annotate:decisions", slug, number)


def _again(version, errors=()) -> dict:
    return {"version": version, "form": GoldFileForm(version=version), "errors": errors}
