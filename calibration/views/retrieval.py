from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration.extraction import runs_graded
from calibration.rates_scope import RetrievalForm
from calibration.retrieving import (
    LISTED,
    relevance,
    retrieval_figures,
    scored,
    with_responses,
    wrong_answers,
)


@require_safe
def retrieval(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = RetrievalForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    round, source = form.chosen_round, form.source
    found = scored(runs=runs_graded(version, round), k=form.depth)
    wrong = wrong_answers(found, version=version, round=round, source=source)
    cases = with_responses(wrong["cases"])
    context = {
        "version": version,
        "form": form,
        "round": round,
        "source": source,
        "sources": form.sources(),
        "figures": retrieval_figures(found),
        "wrong": wrong,
        "cases": cases,
        "not_listed": len(wrong["cases"]) - len(cases),
        "listed": LISTED,
        "optional": relevance(version=version, round=round, source=source),
        "command": form.command("retrieval"),
    }
    return render(request, "calibration/retrieval.html", context)
