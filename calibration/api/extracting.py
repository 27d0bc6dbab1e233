"""Extractions of claims: start one, see how far it is, and what it found."""

from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import extraction_serializers as serializers
from calibration.extraction_runs import MOST_TOKENS, cancel_extraction, resume_extraction, start_extraction
from calibration.facts import dry_extraction_facts, extraction_facts
from calibration.forms import ExtractionForm
from calibration.models import JudgeRun
from calibration.queries import extractions_of
from calibration.serializers import Resuming
from calibration.services import stop_run
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.problems import Refusal

TAG = "claim extraction"


class Extractions(BehindTheDoor, ListView):
    """Newest first. POST starts one, or says with `dry_run` what it would take (answered with 200)."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.ExtractionRow
    ordering = "-number"
    takes = {"POST": serializers.NewExtraction}
    answers = {"POST": {200: serializers.DryExtraction, 201: serializers.ExtractionWhole}}

    def rows(self):
        return extractions_of(labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"]))

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewExtraction)
        asked = _asked(version, given)
        if given["dry_run"]:
            return Response(dry_extraction_facts(**asked))
        run = start_extraction(**asked, person=request.user)
        where = reverse("calibration_api:extraction", args=[slug, number, run.number])
        return Response(extraction_facts(run), status=201, headers={"Location": where})


def _asked(version, given) -> dict:
    """What the form of the page makes of it."""
    chosen = {name: given[name] for name in ("judge", "again", "use_cache")}
    chosen["prompt_version"] = given.get("prompt_version", "")
    chosen["max_tokens"] = given.get("max_tokens", MOST_TOKENS)
    chosen["system_runs"] = [str(number) for number in given.get("system_runs", ())]
    if "response" in given:
        chosen["response"] = get_object_or_404(version.responses, response_id=given["response"]).pk
    form = ExtractionForm(chosen, version=version)
    if not form.is_valid():
        raise Refusal.of_form(form)
    budget = serializers.NewExtraction.budget_in(given)
    words = ("prompt_version", "max_tokens", "use_cache")
    return form.asked | {name: chosen[name] for name in words} | {"budget": budget}


def extraction_of(person, slug, number, extraction) -> JudgeRun:
    version = labels_of(person, slug, number)
    runs = JudgeRun.every.filter(purpose=JudgeRun.Purpose.EXTRACTION)
    return get_object_or_404(
        runs.select_related("judge", "version__evalset"), version=version, number=extraction
    )


class Extraction(ApiView):
    """How far it is: `state` is running, stopped or complete."""

    tag = TAG
    answers = {"GET": serializers.ExtractionWhole}

    def get(self, request, slug, number, extraction):
        return Response(extraction_facts(extraction_of(request.user, slug, number, extraction)))


class StopExtraction(BehindTheDoor):
    """Start no more calls. Calls under way end and count; it can be gone on with."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.ExtractionWhole}

    @once
    def post(self, request, slug, number, extraction):
        found = extraction_of(request.user, slug, number, extraction)
        stop_run(run=found)
        return Response(extraction_facts(found))


class ResumeExtraction(BehindTheDoor):
    """Go on with a stopped one, or with what failed; a budget replaces its own."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": Resuming}
    answers = {"POST": serializers.ExtractionWhole}

    @once
    def post(self, request, slug, number, extraction):
        found = extraction_of(request.user, slug, number, extraction)
        given = self.body(request, Resuming)
        resume_extraction(run=found, retry_failed=given["retry_failed"], budget=Resuming.new_budget_in(given))
        found.refresh_from_db()
        return Response(extraction_facts(found))


class CancelExtraction(BehindTheDoor):
    """Ask about nothing more, for good: what is left may be asked about by another extraction."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.CancelledExtraction}

    @once
    def post(self, request, slug, number, extraction):
        found = extraction_of(request.user, slug, number, extraction)
        left = cancel_extraction(run=found)
        return Response(extraction_facts(found) | {"not_asked_about": left})


class Answers(ListView):
    """What the model answered, response by response: claims, none, or a failure."""

    tag, reads, row = TAG, Scope.JUDGE, serializers.AnswerRow
    asks = {"GET": serializers.AnswerQuery}

    def rows(self):
        place = self.kwargs
        run = extraction_of(self.request.user, place["slug"], place["number"], place["extraction"])
        return run.verdicts.filter(**self.asked).select_related("response")
