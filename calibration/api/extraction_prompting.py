"""The wordings that ask a model for claims: all of them, what changed, and what it would be asked."""

from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import extraction_serializers as serializers
from calibration.api.extracting import TAG
from calibration.api.prompting import PromptChanges, one_of, with_rows
from calibration.extraction_prompts import (
    add_extraction_prompt,
    extraction_difference,
    extraction_trial,
    extraction_wording_named,
    extraction_wordings_of,
)
from calibration.forms import ExtractionPromptForm, ExtractionTrialForm
from calibration.models import ExtractionPromptVersion
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal


def _known(evalset):
    rows = ExtractionPromptVersion.objects.filter(evalset=evalset)
    return with_rows(extraction_wordings_of(evalset), rows)


class ExtractionPrompts(BehindTheDoor, ListView):
    """The built-in one first. POST adds another wording; extractions take it from then on."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.ExtractionPromptRow
    pagination_class = NumberedPages
    takes = {"POST": serializers.NewExtractionPrompt}
    answers = {"POST": {201: serializers.ExtractionPromptRow}}

    def rows(self):
        return _known(labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"]).evalset)

    @once
    def post(self, request, slug, number):
        evalset = labels_of(request.user, slug, number).evalset
        form = ExtractionPromptForm(self.body(request, serializers.NewExtractionPrompt))
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = add_extraction_prompt(evalset=evalset, person=request.user, **form.wording)
        wording = extraction_wording_named(evalset, str(made.number))
        return Response(serializers.ExtractionPromptRow((wording, made)).data, status=201)


class ExtractionPrompt(ApiView):
    tag = TAG
    answers = {"GET": serializers.ExtractionPromptRow}

    def get(self, request, slug, number, prompt):
        known = _known(labels_of(request.user, slug, number).evalset)
        return Response(serializers.ExtractionPromptRow(one_of(known, str(prompt))).data)


class ExtractionPromptChanges(PromptChanges):
    """What differs between two wordings, line by line."""

    tag = TAG
    known, differing = staticmethod(_known), staticmethod(extraction_difference)


class ExtractionPromptTrial(ApiView):
    """The messages that a model would get about a response."""

    tag, reads = TAG, Scope.JUDGE
    asks = {"GET": serializers.ExtractionTrialQuery}
    answers = {"GET": serializers.ExtractionTrial}

    def get(self, request, slug, number, prompt):
        version = labels_of(request.user, slug, number)
        wording, _row = one_of(_known(version.evalset), str(prompt))
        form = ExtractionTrialForm(self.asked, version=version)
        if not form.is_valid():
            raise Refusal.of_form(form)
        found = extraction_trial(wording=wording, response=form.cleaned_data["item"])
        told = {"version": wording.version, "messages": found.messages}
        return Response(serializers.ExtractionTrial(told).data)
