from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.extraction import runs_graded, with_extraction
from calibration.judge_figures import judge_figures
from calibration.models import Judge
from calibration.rates import human_figures, review_responses
from calibration.scope import RatesForm

PLOTTED = 12  # more systems than these cannot be told apart in one plot


@require_safe
def rates(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = RatesForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    round = form.chosen_round
    found = _rates(version, round, form)
    context = {
        "version": version,
        "form": form,
        "round": None if form.source.startswith("judge:") else round,
        "source": form.source,
        "sources": form.sources(),
        "unit": form.unit,
        "figures": found,
        "to_review": review_responses(version, found),
        "plot": _plot(found),
        "command": form.command("rates"),
    }
    return render(request, "calibration/rates.html", context)


def _rates(version, round, form):
    kind, _, name = form.source.partition(":")
    if kind == "judge":
        judge = Judge.objects.get(evalset=version.evalset, name=name)
        return judge_figures(judge=judge, version=version, unit=form.unit)
    rates = human_figures(version=version, round=round, source=form.source, unit=form.unit)
    return with_extraction(rates, runs_graded(version, round))


def _plot(found):
    pairs = [entry for entry in found.get("per_system", ()) if figures.is_pair(entry)]
    if not 0 < len(pairs) <= PLOTTED:
        return ""
    return figures.inline_svg(figures.pair_plot(pairs), figures.pairs_described(pairs))
