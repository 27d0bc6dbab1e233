"""What trust rests on: thresholds, designs, where each judge stands; and who is told when it ends."""

from django.shortcuts import get_object_or_404
from rest_framework.response import Response

from annotate.access import labels_of, told_of
from annotate.api.behind import BehindTheDoor
from calibration import summary_serializers as serializers
from calibration.alerts import acknowledge, alerts_of, take_back_acknowledgement
from calibration.api.figures import round_asked_for
from calibration.design import record_design
from calibration.facts import standings_facts
from calibration.models import CalibrationSplit
from calibration.telling import tell_again
from calibration.thresholds import policy_in_force, set_thresholds
from calibration.trust_forms import ThresholdsForm
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.problems import Refusal

TAG = "trust"


def _whole(version) -> dict:
    facts = {
        "thresholds": policy_in_force(version).as_dict(),
        "changes": version.thresholds.select_related("by").order_by("-pk"),
        "standings": standings_facts(version),
    }
    return serializers.TrustWhole(facts).data


class Trust(BehindTheDoor):
    """The thresholds of the gate, and where each judge stands and why. POST sets thresholds."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": serializers.NewThresholds}
    answers = {"GET": serializers.TrustWhole, "POST": serializers.TrustWhole}

    def get(self, request, slug, number):
        return Response(_whole(labels_of(request.user, slug, number)))

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewThresholds)
        form = ThresholdsForm(policy_in_force(version).as_dict() | given, version=version)
        if not form.is_valid():
            raise Refusal.of_form(form)
        reason = form.cleaned_data["reason"]
        set_thresholds(version=version, thresholds=form.thresholds, reason=reason, person=request.user)
        return Response(_whole(version))


class Designs(BehindTheDoor, ListView):
    """How items with gold were drawn, newest first. POST records it; the same again is the same record."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.DesignRow
    ordering = "-pk"
    takes = {"POST": serializers.NewDesign}
    answers = {"POST": {201: serializers.DesignRow}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return CalibrationSplit.objects.filter(round__version=version).select_related("round", "by")

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewDesign)
        round = round_asked_for(version, given.pop("round"))
        made = record_design(round=round, **given, person=request.user)
        return Response(serializers.DesignRow(made).data, status=201)


# Alerts: closed like the labels, for all versions of the eval set


class BehindTheNotices(ApiView):
    def again(self, told):
        told_of(self.request.user, self.kwargs["slug"])
        return told


class Alerts(ListView):
    """What leads are told, newest first, with what became of the messages."""

    tag, row = TAG, serializers.AlertRow
    ordering = "-pk"

    def rows(self):
        return alerts_of(told_of(self.request.user, self.kwargs["slug"]))


class MoveAlert(BehindTheNotices):
    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.AlertRow}

    def move(self, alert, person) -> None:
        acknowledge(alert=alert, person=person)

    @once
    def post(self, request, slug, alert):
        alerts = alerts_of(told_of(request.user, slug))
        self.move(get_object_or_404(alerts, pk=alert), request.user)
        return Response(serializers.AlertRow(alerts.get(pk=alert)).data)


class AcknowledgeAlert(MoveAlert):
    """Take note of it. Who was first stays."""


class ReopenAlert(MoveAlert):
    """Take that back."""

    def move(self, alert, person):
        take_back_acknowledgement(alert=alert)


class SendAlertAgain(BehindTheNotices):
    """Try the messages again that were given up."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.SentAgain}

    @once
    def post(self, request, slug, alert):
        found = get_object_or_404(alerts_of(told_of(request.user, slug)), pk=alert)
        return Response({"messages": tell_again(alert=found)})
