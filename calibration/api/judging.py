"""Judges and their runs."""

from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import prompt_serializers, serializers
from calibration.baselines import start_baselines
from calibration.facts import dry_run_facts, judge_run_facts
from calibration.forms import JudgeForm, PricesForm
from calibration.models import Judge, JudgeRun
from calibration.queries import counted_runs_of
from calibration.services import (
    add_judge,
    add_panel,
    judge_named,
    resume_run,
    runs_numbered,
    set_prices,
    start_run,
    stop_run,
)
from calibration.sightings import note_sighting
from calibration.trust_forms import PanelForm
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.problems import Refusal

TAG = "judges"


class Judges(BehindTheDoor, ListView):
    """The judges of the eval set. POST adds an LLM judge."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.JudgeRow
    takes = {"POST": serializers.NewJudge}
    answers = {"POST": {201: serializers.JudgeRow}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return Judge.objects.filter(evalset=version.evalset)

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewJudge)
        form = JudgeForm(given, evalset=version.evalset)
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = add_judge(evalset=version.evalset, person=request.user, **form.judge)
        return Response(serializers.JudgeRow(made).data, status=201)


class Panels(BehindTheDoor):
    """Several judges as one. It can be started once each of them has run."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": serializers.NewPanel}
    answers = {"POST": {201: serializers.JudgeRow}}

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewPanel)
        known = dict(Judge.objects.filter(evalset=version.evalset).values_list("name", "pk"))
        members = [known.get(name, name) for name in given["members"]]
        form = PanelForm(given | {"members": members}, evalset=version.evalset)
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = add_panel(evalset=version.evalset, person=request.user, **form.cleaned_data)
        return Response(serializers.JudgeRow(made).data, status=201)


class Baselines(BehindTheDoor):
    """Start every baseline that has not run over this version."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": {201: serializers.StartedBaselines}}

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        started, refused = start_baselines(version=version, person=request.user)
        runs = [{"judge": run.judge.name, "run": run.number} for run in started]
        return Response({"started": runs, "refused": refused}, status=201)


class JudgePrices(BehindTheDoor):
    """What a judge's tokens cost, for runs that are started from now on."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": prompt_serializers.Prices}
    answers = {"POST": serializers.JudgeRow}

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, prompt_serializers.Prices)
        own = Judge.objects.filter(evalset=version.evalset, kind=Judge.Kind.OPENAI)
        judge = get_object_or_404(own, name=given.pop("judge"))
        form = PricesForm(given)
        if not form.is_valid():
            raise Refusal.of_form(form)
        set_prices(judge=judge, prices=form.prices)
        judge.refresh_from_db()
        return Response(serializers.JudgeRow(judge).data)


def judge_run_of(person, slug, number, run) -> JudgeRun:
    version = labels_of(person, slug, number)
    runs = JudgeRun.objects.select_related("judge", "version__evalset", "rubric_version__rubric")
    return get_object_or_404(runs, version=version, number=run)


class JudgeRuns(BehindTheDoor, ListView):
    """Newest first. POST starts one, or says with `dry_run` what it would take (answered with 200)."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.JudgeRunRow
    ordering = "-number"
    asks = {"GET": serializers.JudgeRunQuery}
    takes = {"POST": serializers.NewJudgeRun}
    answers = {"POST": {200: serializers.DryRun, 201: serializers.JudgeRunWhole}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        found, asked = counted_runs_of(version), dict(self.asked)
        if judge := asked.pop("judge", None):
            asked["judge__name"] = judge
        return found.filter(**asked)

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewJudgeRun)
        chosen = {
            "judge": judge_named(evalset=version.evalset, name=given["judge"]),
            "version": version,
            "system_runs": runs_numbered(version=version, numbers=given.get("system_runs")),
            "dimensions": given.get("dimensions"),
            "repeats": given["repeats"],
            "use_cache": given["use_cache"],
            "budget": serializers.NewJudgeRun.budget_in(given),
        }
        if given["dry_run"]:
            return Response(dry_run_facts(**chosen))
        run = start_run(**chosen, person=request.user)
        where = reverse("calibration_api:judge_run", args=[slug, number, run.number])
        return Response(judge_run_facts(run), status=201, headers={"Location": where})


class Run(ApiView):
    """How far it is: `state` is running, stopped or complete."""

    tag = TAG
    answers = {"GET": serializers.JudgeRunWhole}

    def get(self, request, slug, number, run):
        return Response(judge_run_facts(judge_run_of(request.user, slug, number, run)))


class StopRun(BehindTheDoor):
    """Start no more calls. Calls under way end and count; what is there stays, and can be gone on with."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.JudgeRunWhole}

    @once
    def post(self, request, slug, number, run):
        found = judge_run_of(request.user, slug, number, run)
        stop_run(run=found)
        return Response(judge_run_facts(found))


class ResumeRun(BehindTheDoor):
    """Go on with a stopped run, or with what failed; a budget replaces the run's own."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": serializers.Resuming}
    answers = {"POST": serializers.JudgeRunWhole}

    @once
    def post(self, request, slug, number, run):
        found = judge_run_of(request.user, slug, number, run)
        given = self.body(request, serializers.Resuming)
        budget = serializers.Resuming.new_budget_in(given)
        resume_run(run=found, retry_failed=given["retry_failed"], budget=budget)
        found.refresh_from_db()
        return Response(judge_run_facts(found))


class Verdicts(ListView):
    """Each verdict has a label or a failure. Who has read them here decides no gold for a judge any more."""

    tag, reads, row = TAG, Scope.JUDGE, serializers.VerdictRow
    asks = {"GET": serializers.VerdictQuery}

    def rows(self):
        place = self.kwargs
        run = judge_run_of(self.request.user, place["slug"], place["number"], place["run"])
        note_sighting(run=run, person=self.request.user)
        return run.verdicts.filter(**self.asked).select_related("response", "claim", "passage")
