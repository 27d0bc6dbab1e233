from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from annotate.access import labels_of
from calibration.baselines import start_baselines
from calibration.services import Refused, add_panel
from calibration.trust_forms import PanelForm


@require_http_methods(["GET", "POST"])
def new_panel(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = PanelForm(request.POST or None, evalset=version.evalset)
    if request.method == "POST" and form.is_valid():
        try:
            judge = add_panel(evalset=version.evalset, person=request.user, **form.cleaned_data)
        except Refused as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request, _("{judge} can be started once each of its judges has run.").format(judge=judge)
            )
            return redirect("calibration:judges", slug, number)
    context = {"version": version, "form": form}
    return render(request, "calibration/panel_new.html", context, status=400 if form.errors else 200)


@require_POST
def run_baselines(request, slug, number):
    """Start every baseline that has not run over this version."""
    version = labels_of(request.user, slug, number)
    started, refused = start_baselines(version=version, person=request.user)
    for reason in refused:
        messages.warning(request, reason)
    if started:
        names = ", ".join(run.judge.name for run in started)
        messages.success(
            request, _("Started: {names}. Build the report anew when they are complete.").format(names=names)
        )
    elif not refused:
        messages.info(request, _("Every baseline has run over this version already."))
    return redirect("calibration:judges", slug, number)
