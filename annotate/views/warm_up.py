"""The warm-up: a grader labels known cases and sees each explained; the lead sees how it went."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from annotate import keys, services
from annotate.access import labels_of, own_round
from annotate.models import Round
from annotate.queries import parts_around
from annotate.rubric_forms import WarmUpForm
from annotate.rubric_queries import warm_up_cases, warm_up_result


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def warm_up(request, round_id):
    """One case at a time; `?case=` shows one that was answered, with its explanation."""
    round, grader = own_round(request.user, round_id)
    cases = warm_up_cases(round.rubric_version, grader)
    if not round.warm_up or not cases:
        return redirect("annotate:grade", round.pk)
    if request.method == "POST":
        return _answer(request, round, grader)
    asked = request.GET.get("case", "")
    shown = next((c for c in cases if c.own and str(c.case.pk) == asked), None)
    shown = shown or next((c for c in cases if c.own is None), None)
    if shown is None:
        return render(request, "annotate/warm_up_done.html", {"round": round, **_counts(cases)})
    return render(
        request, "annotate/warm_up.html", {"round": round, **_counts(cases), **_shown(round, *shown)}
    )


def _answer(request, round, grader):
    form = WarmUpForm(request.POST, rubric_version=round.rubric_version)
    if not form.is_valid():
        messages.error(request, _("The label did not arrive whole. Choose it again."))
        return redirect("annotate:warm_up", round.pk)
    try:
        answer = services.answer_warm_up(grader=grader, **form.cleaned_data)
    except services.Refused as refused:
        messages.error(request, str(refused))
        return redirect("annotate:warm_up", round.pk)
    return redirect(reverse("annotate:warm_up", args=[round.pk]) + f"?case={answer.case_id}")


def _counts(cases) -> dict:
    answered = [known for known in cases if known.own]
    return {
        "total": len(cases),
        "done": len(answered),
        "right": sum(known.own.label == known.case.label for known in answered),
    }


def _shown(round, case, own) -> dict:
    dimension = get_object_or_404(round.rubric_version.dimensions, name=case.dimension)
    table = keys.WARM_UP_EXPLAINED if own else (*keys.label_keys(dimension.labels), *keys.WARM_UP)
    return {
        "case": case,
        "own": own,
        "rubric": round.rubric_version,
        "dimension": dimension,
        "parts": parts_around(case.response, [], case.claim) if case.claim else (case.response, "", ""),
        "passages": list(enumerate(case.passages, start=1)),
        "key_table": table,
        "key_data": keys.as_data(table),
    }


@require_safe
def warm_up_results(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    round = get_object_or_404(
        Round.objects.exclude(kind=Round.Kind.IMPORTED).select_related("rubric_version__rubric"),
        version=version,
        number=round_number,
    )
    context = {"version": version, "round": round, "result": warm_up_result(round)}
    return render(request, "annotate/warm_up_results.html", context)
