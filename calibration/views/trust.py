from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from annotate.access import labels_of
from calibration.design import BadDesign, record_design
from calibration.models import CalibrationSplit
from calibration.thresholds import BadThresholds, set_thresholds
from calibration.trust_forms import DesignForm, ThresholdsForm


@require_safe
def trust(request, slug, number):
    """What trust rests on in this version, before any run is looked at."""
    version = labels_of(request.user, slug, number)
    return _page(request, version)


def _page(request, version, *, thresholds=None, design=None, status=200):
    context = {
        "version": version,
        "thresholds": thresholds or ThresholdsForm(version=version),
        "design": design or DesignForm(version=version),
        "changes": version.thresholds.select_related("by").order_by("-pk"),
        "designs": CalibrationSplit.objects.filter(round__version=version)
        .select_related("round", "by")
        .order_by("-pk"),
        "has_runs": version.judge_runs.exists(),
    }
    return render(request, "calibration/trust.html", context, status=status)


@require_POST
def change_thresholds(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = ThresholdsForm(request.POST, version=version)
    if not form.is_valid():
        return _page(request, version, thresholds=form, status=400)
    try:
        made = set_thresholds(
            version=version,
            thresholds=form.thresholds,
            reason=form.cleaned_data["reason"],
            person=request.user,
        )
    except BadThresholds as error:
        form.add_error(None, str(error))
        return _page(request, version, thresholds=form, status=400)
    if made:
        messages.success(request, _("The thresholds are set. Reports built before have to be built again."))
    else:
        messages.info(request, _("These thresholds hold already."))
    return redirect("calibration:trust", slug, number)


@require_POST
def change_design(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = DesignForm(request.POST, version=version)
    if not form.is_valid():
        return _page(request, version, design=form, status=400)
    try:
        record_design(**form.values, person=request.user)
    except BadDesign as error:
        form.add_error(None, str(error))
        return _page(request, version, design=form, status=400)
    messages.success(request, _("The design is recorded."))
    return redirect("calibration:trust", slug, number)
