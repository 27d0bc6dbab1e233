"""The claim audit: samples of responses, and how well each claim was extracted.

Open to leads who still grade, but for the responses that they have yet to grade themselves.
"""

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework.response import Response

from annotate import audit_serializers as serializers
from annotate import services
from annotate.access import audited_of
from annotate.auditing import audit_screen, progress_of_sample, samples_of
from annotate.forms import DrawAuditForm
from evalsets.access import version_of
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.models import Claim

TAG = "claim audit"


class AuditSamples(ListView):
    """Newest first. POST draws one, at random from all the chosen runs together."""

    tag, writes, row = TAG, Scope.ROUNDS, serializers.AuditSampleRow
    pagination_class = NumberedPages
    takes = {"POST": serializers.NewAuditSample}
    answers = {"POST": {201: serializers.AuditSampleRow}}

    def rows(self):
        version = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return samples_of(version, self.request.user)

    @once
    def post(self, request, slug, number):
        version = version_of(request.user, slug, number)
        given = self.body(request, serializers.NewAuditSample)
        form = _form_of(version, given)
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = services.draw_audit(version=version, person=request.user, **form.cleaned_data)
        told = serializers.AuditSampleRow(progress_of_sample(made, request.user)).data
        return Response(told, status=201)


def _form_of(version, given) -> DrawAuditForm:
    """The form of the page, filled with what stands in the body."""
    runs = dict(version.runs.values_list("number", "pk"))
    numbers = given.pop("system_runs", None) or runs
    given.setdefault("seed", services.new_seed())
    # A number that is not there stays one that the form does not know.
    return DrawAuditForm(given | {"runs": [runs.get(n, -n) for n in numbers]}, version=version)


class AuditSample(ListView):
    """The responses of a sample, in the order in which they are looked at."""

    tag, row = TAG, serializers.AuditedRow
    ordering = "position"

    def rows(self):
        version = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        sample = get_object_or_404(version.audit_samples, number=self.kwargs["sample_number"])
        return sample.responses.select_related("response")


class OfAudited(ApiView):
    tag = TAG

    def told(self):
        audited = audited_of(self.request.user, **self.kwargs)
        return serializers.AuditedWhole(audit_screen(audited, self.request.user)).data

    def again(self, _told):
        """What was kept is told anew: it may be closed by now."""
        return self.told()


class Audited(OfAudited):
    """One response of a sample, with its claims and their marks."""

    answers = {"GET": serializers.AuditedWhole}

    def get(self, request, **_place):
        return Response(self.told())


class MarkClaim(OfAudited):
    """How well a claim was extracted; a later mark takes the place of an earlier one."""

    writes = Scope.ROUNDS
    takes = {"POST": serializers.Marking}
    answers = {"POST": serializers.AuditedWhole}

    @once
    def post(self, request, **place):
        audited = audited_of(request.user, **place)
        given = self.body(request, serializers.Marking)
        claim = Claim.objects.filter(pk=given["claim"], response=audited.response_id).first()
        if claim is None:
            raise Http404
        services.mark_claim(audited=audited, claim=claim, mark=given["mark"])
        return Response(self.told())


class FinishAudited(OfAudited):
    """Every claim is marked, and so many are missing: from here on the response counts."""

    writes = Scope.ROUNDS
    takes = {"POST": serializers.Finishing}
    answers = {"POST": serializers.AuditedWhole}

    @once
    def post(self, request, **place):
        given = self.body(request, serializers.Finishing)
        services.finish_audited(audited=audited_of(request.user, **place), person=request.user, **given)
        return Response(self.told())
