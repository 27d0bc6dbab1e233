from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from annotate.access import told_of
from calibration.alerts import acknowledge, alerts_of, open_alerts, take_back_acknowledgement
from calibration.telling import tell_again

PAGE = 30


@require_safe
def alerts(request, slug):
    evalset = told_of(request.user, slug)
    context = {
        "evalset": evalset,
        "page_obj": Paginator(alerts_of(evalset), PAGE).get_page(request.GET.get("page")),
        "open": open_alerts(evalset).count(),
    }
    return render(request, "calibration/alerts.html", context)


def _alert_of(person, slug, alert):
    return get_object_or_404(alerts_of(told_of(person, slug)), pk=alert)


@require_POST
def acknowledge_alert(request, slug, alert):
    found = _alert_of(request.user, slug, alert)
    if not acknowledge(alert=found, person=request.user):
        messages.info(request, _("Somebody had taken note of it already."))
    return redirect("calibration:alerts", slug)


@require_POST
def reopen_alert(request, slug, alert):
    found = _alert_of(request.user, slug, alert)
    if not take_back_acknowledgement(alert=found):
        messages.info(request, _("Nobody had taken note of it."))
    return redirect("calibration:alerts", slug)


@require_POST
def send_alert_again(request, slug, alert):
    found = _alert_of(request.user, slug, alert)
    again = tell_again(alert=found)
    said = ngettext("%(n)d message is sent again.", "%(n)d messages are sent again.", again) % {"n": again}
    messages.info(request, said if again else _("No message of this alert was given up."))
    return redirect("calibration:alerts", slug)
