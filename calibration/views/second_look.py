from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from annotate.models import Assignment, Grader, Round
from calibration.second_look import CHANGED_SHOWN, second_look_figures, with_texts
from evalsets.access import LEAD


@require_safe
def second_look(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    rounds = Round.objects.filter(kind=Round.Kind.SECOND_LOOK).select_related(
        "rubric_version__rubric", "version__evalset", "second_look_of__rubric_version__rubric"
    )
    round = get_object_or_404(rounds, version=version, number=round_number)
    parts = second_look_figures(round)
    for part in parts:
        part["not_shown"] = max(0, len(part["changed"]) - CHANGED_SHOWN)
        part["n_changed"] = len(part["changed"])
        part["changed"] = with_texts(part["changed"], part["unit"])
    context = {
        "version": version,
        "round": round,
        "first": round.second_look_of,
        "parts": parts,
        "unfinished": Assignment.objects.filter(round=round, state=Assignment.State.PENDING).count(),
        "also_leads": _also_leads(round),
    }
    return render(request, "calibration/second_look.html", context)


def _also_leads(round):
    """Who looked again and may have seen the first labels on the lead's pages before."""
    return Grader.objects.filter(
        assignments__round=round,
        person__memberships__evalset=round.version.evalset_id,
        person__memberships__role=LEAD,
    ).distinct()
