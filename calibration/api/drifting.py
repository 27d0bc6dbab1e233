"""Whether a trusted judge still reads the same, and what it says of known cases."""

from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import drift_serializers as serializers
from calibration.api.judging import judge_run_of
from calibration.drift import findings_about, sentinel_runs_of
from calibration.drift_facts import drift_facts, plan_facts
from calibration.drift_forms import SentinelForm
from calibration.facts import estimate_facts, judge_run_facts
from calibration.judge_warm_up import start_warm_up, warm_up_of
from calibration.models import Judge
from calibration.queries import counted
from calibration.sentinels import active_plan, candidates_of, end_plan, plan_sentinels, start_sentinel
from calibration.serializers import JudgeRunRow, JudgeRunWhole
from calibration.services import rubric_in_force
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.problems import Refusal

TAG = "drift"


class Drift(ApiView):
    """Where the judge stands and why, what is asked again, the charts, and later rounds that wait."""

    tag = TAG
    answers = {"GET": serializers.DriftWhole}

    def get(self, request, slug, number, run):
        return Response(drift_facts(judge_run_of(request.user, slug, number, run)))


class Findings(ListView):
    """What later runs say about the judge, newest first. An alarm in one ends the trust for good."""

    tag, row = TAG, serializers.FindingRow
    ordering = "-pk"

    def rows(self):
        place = self.kwargs
        return findings_about(judge_run_of(self.request.user, place["slug"], place["number"], place["run"]))


class SentinelPlans(BehindTheDoor):
    """Choose what is asked again and how often, or see with `dry_run` what a run would take (200)."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": serializers.NewSentinelPlan}
    answers = {"POST": {200: serializers.DrySentinelPlan, 201: serializers.SentinelPlanWhole}}

    @once
    def post(self, request, slug, number, run):
        judge_run = judge_run_of(request.user, slug, number, run)
        given = self.body(request, serializers.NewSentinelPlan)
        dry_run, candidates = given.pop("dry_run"), candidates_of(judge_run)
        given.setdefault("dimensions", [found.dimension for found in candidates])
        form = SentinelForm(given, judge_run=judge_run, candidates=candidates)
        if not form.is_valid():
            raise Refusal.of_form(form)
        if dry_run:
            found = form.estimate
            return Response({"dry_run": True, "targets": found.targets, **estimate_facts(found)})
        plan = plan_sentinels(judge_run=judge_run, person=request.user, **form.plan)
        return Response(plan_facts(plan), status=201)


class EndSentinelPlan(BehindTheDoor):
    """Start no more sentinel runs. A run under way goes on."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.EndedPlan}

    @once
    def post(self, request, slug, number, run):
        return Response({"ended": end_plan(judge_run=judge_run_of(request.user, slug, number, run))})


class SentinelRuns(BehindTheDoor, ListView):
    """The sentinel runs, newest first. POST starts one now, by the plan."""

    tag, writes, row = TAG, Scope.JUDGE, JudgeRunRow
    ordering = "-number"
    answers = {"POST": {201: JudgeRunWhole}}

    def rows(self):
        place = self.kwargs
        judge_run = judge_run_of(self.request.user, place["slug"], place["number"], place["run"])
        return counted(sentinel_runs_of(judge_run).select_related("judge", "rubric_version__rubric"))

    @once
    def post(self, request, slug, number, run):
        plan = active_plan(judge_run_of(request.user, slug, number, run))
        started = start_sentinel(plan=plan, person=request.user) if plan else None
        if started is None:
            raise Refusal(409, "refused", _("There is no plan: choose first what is asked again."))
        where = reverse("calibration_api:judge_run", args=[slug, number, started.number])
        return Response(judge_run_facts(started), status=201, headers={"Location": where})


class JudgeWarmUp(BehindTheDoor):
    """What a judge says of the known cases. POST has it asked about those that it has not seen."""

    tag, reads, writes = TAG, Scope.JUDGE, Scope.JUDGE
    asks = {"GET": serializers.JudgeQuery}
    takes = {"POST": serializers.NewJudgeWarmUp}
    answers = {"GET": serializers.JudgeWarmUpWhole, "POST": {201: serializers.StartedWarmUp}}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        judge = get_object_or_404(Judge, evalset=version.evalset, name=self.asked["judge"])
        found = warm_up_of(judge, rubric_in_force(version))
        return Response(serializers.JudgeWarmUpWhole(found).data)

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewJudgeWarmUp)
        judge = get_object_or_404(Judge, evalset=version.evalset, name=given["judge"])
        asked = start_warm_up(
            judge=judge, rubric_version=rubric_in_force(version), person=request.user, again=given["again"]
        )
        return Response({"asked": asked}, status=201)
