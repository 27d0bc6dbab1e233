from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.extraction import runs_graded, with_extraction
from calibration.judge_figures import beside_people, judge_figures
from calibration.levers import sweeps_of
from calibration.models import Judge
from calibration.rates import human_figures, human_rates, review_responses, settings_of
from calibration.scope import RatesForm
from calibration.templatetags.figures import largest
from evalsets.queries import abstention_warnings

KINDS = ("svg", "png", "csv")
STRATA_DRAWN = 16  # groups of a stratum in a picture; the CSV file has them all
STRATUM_RATES = ("hallucination", "over_answering", "over_refusal")


@require_safe
def rates(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = RatesForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    found = _rates(form)
    context = {
        "version": version,
        "form": form,
        "round": None if form.by_judge else form.chosen_round,
        "source": form.source,
        "sources": form.sources(),
        "unit": form.unit,
        "figures": found,
        "to_review": review_responses(version, found),
        "command": form.command("rates"),
        "warnings": abstention_warnings(version),
        "kinds": KINDS,
        "query": urlencode(form.query()),
        **_pictures(form, found),
    }
    return render(request, "calibration/rates.html", context)


def _rates(form):
    version, round = form.version, form.chosen_round
    if form.by_judge:
        judge = Judge.objects.get(evalset=version.evalset, name=form.source.removeprefix("judge:"))
        return judge_figures(judge=judge, version=version, unit=form.unit)
    rates = human_figures(version=version, round=round, source=form.source, unit=form.unit)
    return with_extraction(rates, runs_graded(version, round))


def _pictures(form, found) -> dict:
    context: dict = {"people": [], "strata": []}
    pairs = [entry for entry in found.get("per_system", ()) if figures.is_pair(entry)]
    if pairs:
        settings, sweeps = _settings(form, found)
        systems = found["per_system"]
        spec = figures.pair_plot(systems, sweeps)
        context |= {
            "plot": figures.inline_svg(spec, figures.pairs_described(pairs)),
            "settings": settings,
            "sweeps": sweeps,
            "numbered": len(pairs) > figures.NAMED,
        }
    for rate in STRATUM_RATES:
        rows = figures.drawn_rows(figures.share_rows(found.get("per_stratum", ()), rate))
        if len(rows) > 1:
            context["strata"].append(
                _drawn(rate, largest(rows, STRATA_DRAWN, "n"), rows[0]["share"]["label"])
            )
    for rate, compared in _people(form, found).items():
        rows = figures.people_rows(compared)
        context["people"].append(_drawn(rate, rows, rows[0]["share"]["label"]) | {"compared": compared})
    return context


def _drawn(rate, rows, title) -> dict:
    spec = figures.share_ladder(rows, title=title)
    return {
        "rate": rate,
        "title": title,
        "svg": figures.inline_svg(spec, figures.shares_described(rows)),
    }


def _settings(form, found):
    """What each system was set to, in words, and the sweeps among them."""
    settings = settings_of(form.version, form.chosen_round, found)
    written = {
        name: ", ".join(f"{key} {value}" for key, value in setting.settings.items())
        for name, setting in settings.items()
    }
    return written, sweeps_of(settings)


def _people(form, found) -> dict:
    """Beside what a trusted judge says of the systems, what people say of them."""
    if not form.by_judge or "withheld" in found:
        return {}
    people = human_rates(
        version=form.version, round=form.chosen_round, source="gold", unit=form.unit, strata=False
    )
    return beside_people(found, people)


@require_safe
def rates_chart(request, slug, number, picture, kind):
    """A picture of the page as a file, or the numbers behind it; what the page withholds is not in it."""
    version = labels_of(request.user, slug, number)
    form = RatesForm(request.GET, version=version)
    if not form.is_valid():
        raise Http404
    spec, numbers = _picture(picture, form, _rates(form))
    content, mime = figures.as_file(spec, numbers, kind)
    name = f"{picture}-{slug}-{number}-{form.unit}.{kind}"
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )


def _picture(picture, form, found):
    """What is drawn and its numbers; 404 where the figures have nothing of the kind."""
    kind, _dash, rate = picture.partition("-")
    if picture == "pair" and any(figures.is_pair(entry) for entry in found.get("per_system", ())):
        settings, sweeps = _settings(form, found)
        return figures.pair_plot(found["per_system"], sweeps), figures.pair_csv(found["per_system"], settings)
    rows = []
    if kind == "strata" and rate in STRATUM_RATES:
        rows = figures.share_rows(found.get("per_stratum", ()), rate)
    elif kind == "people":
        rows = figures.people_rows(_people(form, found).get(rate, ()))
    drawn = figures.drawn_rows(rows)
    if not drawn:
        raise Http404(_("There is no such picture of these rates."))
    if kind == "strata":
        drawn = largest(drawn, STRATA_DRAWN, "n")
    return figures.share_ladder(drawn, title=rows[0]["share"]["label"]), figures.share_csv(rows)
