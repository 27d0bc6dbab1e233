from django.contrib import messages
from django.contrib.staticfiles import finders
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.scope import ScopeForm
from calibration.summaries import NotSummable, as_json, build_summary, has_changed, shown, superseding
from calibration.summary_page import ladder_rows, page_of
from evalsets.queries import composition

PLOTTED = 8  # more systems than these cannot be told apart in a picture of this size


@require_safe
def summaries(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ScopeForm(request.GET, version=version)
    context = {
        "version": version,
        "rounds": form.rounds,
        "round": form.chosen_round if form.is_valid() else None,
        "summaries": version.summaries.select_related("round", "created_by").order_by("-number"),
    }
    return render(request, "calibration/summaries.html", context)


@require_POST
def build(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ScopeForm(request.POST, version=version)
    round = form.chosen_round if form.is_valid() else None
    if round is None:
        messages.error(request, _("There is no such grading round: choose one that has labels."))
        return redirect("calibration:summaries", slug, number)
    try:
        made = build_summary(version=version, round=round, person=request.user)
    except NotSummable as error:
        messages.error(request, str(error))
        return redirect("calibration:summaries", slug, number)
    return redirect("calibration:summary", slug, number, made.number)


def summary_of(request, slug, number, summary):
    version = labels_of(request.user, slug, number)
    found = version.summaries.select_related("version__evalset", "round__rubric_version__rubric")
    return get_object_or_404(found, number=summary)


@require_safe
def summary(request, slug, number, summary):
    found = summary_of(request, slug, number, summary)
    return render(request, "calibration/summary.html", _context(found))


def _context(summary):
    payload = shown(summary)
    later = superseding(summary)
    composed = composition(summary.version)  # of frozen items, so it is what it was
    return {
        "summary": summary,
        "version": summary.version,
        "payload": payload,
        "later": later,
        "changed": later is None and has_changed(summary),
        "composition": composed,
        **page_of(payload, composed.warnings),
        **_pictures(payload),
    }


def _pictures(payload):
    rows, bar = ladder_rows(payload), payload["bar"]
    pairs = [entry for entry in payload["rates"]["per_system"] if figures.is_pair(entry)][:PLOTTED]
    return {
        "ladder": rows and figures.inline_svg(figures.ladder(rows, bar=bar), figures.described(rows, bar)),
        "pairs": pairs and figures.inline_svg(figures.pair_plot(pairs), figures.pairs_described(pairs)),
    }


@require_safe
def summary_file(request, slug, number, summary):
    """The page as one file that needs nothing else: for people who have no account here."""
    found = summary_of(request, slug, number, summary)
    with open(finders.find("css/app.css"), encoding="utf-8") as sheet:
        context = _context(found) | {"sheet": sheet.read()}
    content = render_to_string("calibration/summary_file.html", context, request)
    return HttpResponse(content, headers=_attached(found, "html"))


@require_safe
def summary_json(request, slug, number, summary):
    found = summary_of(request, slug, number, summary)
    return JsonResponse(as_json(found), headers=_attached(found, "json"), json_dumps_params={"indent": 1})


def _attached(summary, kind):
    name = f"one-page-report-{summary.version.evalset.slug}-{summary.version.number}-{summary.number}.{kind}"
    return {"Content-Disposition": f'attachment; filename="{name}"'}
