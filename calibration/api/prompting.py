"""The wordings of a judge's prompt: all of them, what changed, and what a target would be asked."""

from django.http import Http404
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import prompt_serializers as serializers
from calibration.forms import PromptForm, TrialForm
from calibration.judges.material import wording_of
from calibration.models import PromptVersion
from calibration.prompt_versions import add_prompt_version, difference, trial, wordings_of
from calibration.services import rubric_in_force
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal

TAG = "prompts"


def with_rows(wordings, rows):
    """Each wording with its row; the built-in one has none."""
    by_version = {str(row.number): row for row in rows.select_related("created_by")}
    return [(wording, by_version.get(wording.version)) for wording in wordings]


def one_of(pairs, version):
    found = next((pair for pair in pairs if pair[0].version == version), None)
    if found is None:
        raise Http404
    return found


def _known(evalset):
    return with_rows(wordings_of(evalset), PromptVersion.objects.filter(evalset=evalset))


class Prompts(BehindTheDoor, ListView):
    """The built-in one first. POST adds another wording; it can be chosen for a new judge."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.PromptRow
    pagination_class = NumberedPages
    takes = {"POST": serializers.NewPrompt}
    answers = {"POST": {201: serializers.PromptRow}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return _known(version.evalset)

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewPrompt)
        methods = {f"method_{name}": text for name, text in given.pop("methods").items()}
        form = PromptForm(given | methods)
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = add_prompt_version(evalset=version.evalset, person=request.user, **form.wording)
        told = serializers.PromptRow((wording_of(version.evalset, str(made.number)), made)).data
        return Response(told, status=201)


class Prompt(ApiView):
    tag = TAG
    answers = {"GET": serializers.PromptRow}

    def get(self, request, slug, number, prompt):
        version = labels_of(request.user, slug, number)
        return Response(serializers.PromptRow(one_of(_known(version.evalset), str(prompt))).data)


class PromptChanges(ApiView):
    """What differs between two wordings, line by line."""

    tag = TAG
    asks = {"GET": serializers.PromptChangesQuery}
    answers = {"GET": serializers.PromptChanges}
    known, differing = staticmethod(_known), staticmethod(difference)

    def get(self, request, slug, number):
        known = self.known(labels_of(request.user, slug, number).evalset)
        two = [one_of(known, self.asked[name])[0] for name in ("earlier", "later")]
        changes = [{"part": part, "lines": lines} for part, lines in self.differing(*two)]
        return Response(serializers.PromptChanges(self.asked | {"changes": changes}).data)


class PromptTrial(ApiView):
    """The messages that a judge would get about a target."""

    tag, reads = TAG, Scope.JUDGE
    asks = {"GET": serializers.TrialQuery}
    answers = {"GET": serializers.PromptTrial}

    def get(self, request, slug, number, prompt):
        version = labels_of(request.user, slug, number)
        wording, _row = one_of(_known(version.evalset), str(prompt))
        form = TrialForm(self.asked, version=version)
        if not form.is_valid():
            raise Refusal.of_form(form)
        found = trial(
            rubric_version=rubric_in_force(version),
            evalset=version.evalset,
            version=wording.version,
            response=form.cleaned_data["response"],
            claim=form.cleaned_data["claim"],
            dimension=form.cleaned_data["dimension"],
            only_cited=form.cleaned_data["only_cited"],
        )
        told = {"version": wording.version, "messages": found.messages, "label_names": found.labels}
        return Response(serializers.PromptTrial(told).data)
