from django.contrib import messages
from django.http import FileResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration.gold_export import NotExportable, gold_overview, zipped_gold
from calibration.scope import GoldForm, ScopeForm


@require_safe
def gold(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ScopeForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    round = form.chosen_round
    context = {"version": version, "form": form, "round": round}
    if round:
        context |= gold_overview(version=version, round=round)
        context["choice"] = GoldForm({}, version=version, round=round)
    return render(request, "calibration/gold.html", context)


@require_safe
def gold_download(request, slug, number):
    version = labels_of(request.user, slug, number)
    scope = ScopeForm(request.GET, version=version)
    round = scope.chosen_round if scope.is_valid() else None
    form = GoldForm(request.GET, version=version, round=round)
    if not scope.is_valid() or not form.is_valid():
        return render(request, "calibration/scope_error.html", {"version": version, "form": form}, status=400)
    if round is None:
        return redirect("calibration:gold", slug, number)
    try:
        archive = zipped_gold(version=version, round=round, choice=form.choice)
    except NotExportable as error:
        messages.error(request, str(error))
        return redirect("calibration:gold", slug, number)
    name = f"gold-{slug}-{number}-round-{round.number}.zip"
    return FileResponse(archive, as_attachment=True, filename=name, content_type="application/zip")
