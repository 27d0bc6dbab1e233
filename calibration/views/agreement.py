from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration.measures import agreement_of
from calibration.pairing import dimensions_of, table_of
from calibration.scope import ScopeForm

PAIRS_SHOWN = GRADERS_SHOWN = 30


@require_safe
def agreement(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ScopeForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    round = form.chosen_round
    dimension = form.chosen_dimension(round)
    figures = agreement_of(table_of(version=version, round=round, dimension=dimension))
    pairs = sorted(figures["pairs"], key=lambda pair: -pair["n"])
    graders = sorted(figures["graders"], key=lambda grader: -grader["n"])
    context = {
        "version": version,
        "form": form,
        "round": round,
        "dimension": dimension,
        "dimensions": dimensions_of(round),
        "figures": figures,
        "pairs": pairs[:PAIRS_SHOWN],
        "pairs_not_shown": max(0, len(pairs) - PAIRS_SHOWN),
        "graders": graders[:GRADERS_SHOWN],
        "graders_not_shown": max(0, len(graders) - GRADERS_SHOWN),
    }
    return render(request, "calibration/agreement.html", context)
