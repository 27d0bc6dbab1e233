"""One-page reports: frozen with a number; a change of the data makes the next one."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.response import Response

from annotate.access import labels_of
from calibration import summary_serializers as serializers
from calibration.api.figures import round_asked_for
from calibration.models import Summary
from calibration.summaries import as_json, build_summary
from evalsets.api.base import ApiView, ListView, Scope, once

TAG = "one-page reports"


class Summaries(ListView):
    """Newest first. POST freezes the page as of now; while nothing has changed, it is the latest one."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.SummaryRow
    ordering = "-number"
    takes = {"POST": serializers.NewSummary}
    answers = {"POST": {201: serializers.SummaryWhole}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return version.summaries.select_related("round", "created_by")

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        round = round_asked_for(version, self.body(request, serializers.NewSummary).get("round"))
        if round is None:
            raise Http404
        made = build_summary(version=version, round=round, person=request.user)
        where = reverse("calibration_api:summary", args=[slug, number, made.number])
        return Response(as_json(made), status=201, headers={"Location": where})

    def again(self, told):
        """The same page as it may be shown by now."""
        place = self.kwargs
        return as_json(summary_of(self.request.user, place["slug"], place["number"], told["report"]))


def summary_of(person, slug, number, summary) -> Summary:
    found = labels_of(person, slug, number).summaries
    return get_object_or_404(
        found.select_related("version__evalset", "round__rubric_version__rubric"), number=summary
    )


class OneSummary(ApiView):
    """Everything that the page says, and whether the data are still what it was built from."""

    tag = TAG
    answers = {"GET": serializers.SummaryWhole}

    def get(self, request, slug, number, summary):
        return Response(as_json(summary_of(request.user, slug, number, summary)))
