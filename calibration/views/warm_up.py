from django.contrib import messages
from django.http import QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from annotate.access import labels_of
from calibration.cases import reason_of
from calibration.forms import StartForm
from calibration.judge_warm_up import start_warm_up, warm_up_of
from calibration.models import Judge
from calibration.queries import worker_seen
from calibration.services import Refused, rubric_in_force


def judge_of(person, slug, number, judge):
    version = labels_of(person, slug, number)
    return version, get_object_or_404(Judge, evalset=version.evalset, pk=judge)


@require_safe
def judge_warm_up(request, slug, number, judge):
    """The known cases, and what the judge said of each. `judge=...` in the address: what is to be started."""
    version, judge = judge_of(request.user, slug, number, judge)
    rubric = rubric_in_force(version)
    found = warm_up_of(judge, rubric)
    form = StartForm(request.GET, version=version) if "judge" in request.GET else None
    context = {
        "version": version,
        "judge": judge,
        "rubric": rubric,
        "warm_up": found,
        "answers": [(verdict, reason_of(verdict)) for verdict in found.verdicts],
        "start": form if form and form.is_valid() else None,
        "query": request.GET.urlencode(),
        "nobody_works": bool(found.waiting) and not worker_seen(),
    }
    return render(request, "calibration/judge_warm_up.html", context)


@require_POST
def start_judge_warm_up(request, slug, number, judge):
    version, judge = judge_of(request.user, slug, number, judge)
    try:
        asked = start_warm_up(
            judge=judge,
            rubric_version=rubric_in_force(version),
            person=request.user,
            again="again" in request.POST,
        )
    except Refused as error:
        messages.error(request, str(error))
    else:
        said = ngettext("%(n)d case is asked about.", "%(n)d cases are asked about.", asked) % {"n": asked}
        messages.info(request, said if asked else _("Every case has been asked about already."))
    return to_warm_up(version, judge, request.GET)


def to_warm_up(version, judge, start: QueryDict | None = None):
    """To the page of the cases; `start` is kept in its address: what to start afterwards."""
    place = reverse("calibration:judge_warm_up", args=[version.evalset.slug, version.number, judge.pk])
    kept = start.copy() if start else QueryDict(mutable=True)
    for name in ("csrfmiddlewaretoken", "warm_up"):
        kept.pop(name, None)
    return redirect(f"{place}?{kept.urlencode()}" if kept else place)
