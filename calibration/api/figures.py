"""What may be told: agreement, calibration reports, the gate, rates, and how each figure is defined."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import prompt_serializers, serializers
from calibration.api.judging import judge_run_of
from calibration.cases import CellForm, Differences, DoubtForm, doubt_gold
from calibration.checking import check_judge
from calibration.facts import (
    agreement_facts,
    rates_by_judge,
    rates_by_people,
    report_facts,
    round_facts,
)
from calibration.method import definitions
from calibration.models import Judge
from calibration.pairing import chosen_round, dimensions_of
from calibration.rates import grader_names
from calibration.reports import build_report
from calibration.sightings import note_sighting
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.labels import LABELS

TAG = "figures"


def round_asked_for(version, number):
    """The round of this number, or the one that holds; None while nobody has been asked to label."""
    round = chosen_round(version=version, number=number)
    if round is None and number is not None:
        raise Http404
    return round


def people_asked_for(version, asked):
    """The round, and who speaks in it: gold, or one of its graders."""
    round, source = round_asked_for(version, asked.get("round")), asked.get("source", "gold")
    kind, _colon, name = source.partition(":")
    if source != "gold" and not (kind == "grader" and name in grader_names(round)):
        raise Http404
    return round, source


def rates_asked_for(version, asked, *, unit):
    """By gold, a grader or a judge: the figures, or what stands in their place."""
    kind, _colon, name = asked.get("source", "gold").partition(":")
    if kind == "judge":
        judge = get_object_or_404(Judge, evalset=version.evalset, name=name)
        return rates_by_judge(judge=judge, version=version, unit=unit)
    round, source = people_asked_for(version, asked)
    return rates_by_people(version=version, round=round, source=source, unit=unit)


class Agreement(ApiView):
    """How far the graders agree with each other, as the command `agreement` prints it."""

    tag = TAG
    asks = {"GET": serializers.AgreementQuery}
    answers = {"GET": serializers.AgreementWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        round = round_asked_for(version, self.asked.get("round"))
        there, wanted = dimensions_of(round), self.asked.get("dimension")
        if wanted and wanted not in {*there, *LABELS}:
            raise Http404
        dimensions = [wanted] if wanted else there
        return Response(agreement_facts(version=version, round=round, dimensions=dimensions))


class Reports(ListView):
    """The calibration reports of a judge run. POST builds one; nothing changed is the same report."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.ReportRow
    ordering = "-number"
    takes = {"POST": serializers.NewReport}
    answers = {"POST": {201: serializers.ReportWhole}}

    def rows(self):
        place = self.kwargs
        run = judge_run_of(self.request.user, place["slug"], place["number"], place["run"])
        return run.reports.select_related("judge_run", "round")

    @once
    def post(self, request, slug, number, run):
        judge_run = judge_run_of(request.user, slug, number, run)
        given = self.body(request, serializers.NewReport)
        round = round_asked_for(judge_run.version, given.get("round"))
        if round is None:
            raise Http404
        made = build_report(
            judge_run=judge_run, round=round, dimension=given["dimension"], person=request.user
        )
        where = reverse("calibration_api:report", args=[slug, number, run, made.number])
        return Response(_whole(made), status=201, headers={"Location": where})

    def again(self, told):
        """The same report as it stands by now: a judge that is not trusted any more is told no rates of."""
        place = self.kwargs
        run = judge_run_of(self.request.user, place["slug"], place["number"], place["run"])
        return _whole(_report_of(run, told["report"]))


def _whole(report) -> dict:
    return {
        "version": str(report.judge_run.version),
        "report": report.number,
        "round": round_facts(report.round),
        "created_at": report.created_at,
        **report_facts(report),
    }


def _report_of(judge_run, number):
    reports = judge_run.reports.select_related(
        "judge_run__judge", "judge_run__version__evalset", "round__rubric_version__rubric"
    )
    return get_object_or_404(reports, number=number)


class Report(ApiView):
    """One report, with what has changed since it was built."""

    tag = TAG
    answers = {"GET": serializers.ReportWhole}

    def get(self, request, slug, number, run, report):
        judge_run = judge_run_of(request.user, slug, number, run)
        return Response(_whole(_report_of(judge_run, report)))


class ReportCases(ListView):
    """The targets on which the judge and gold differ. Who has read them decides no gold for it any more."""

    tag, reads, row = TAG, Scope.JUDGE, prompt_serializers.CaseRow
    pagination_class = NumberedPages
    asks = {"GET": prompt_serializers.CaseQuery}

    def rows(self):
        place = self.kwargs
        judge_run = judge_run_of(self.request.user, place["slug"], place["number"], place["run"])
        report = _report_of(judge_run, place["report"])
        form = CellForm(self.asked, labels=report.payload["agreement"]["confusion"]["labels"])
        if not form.is_valid():
            raise Refusal.of_form(form)
        note_sighting(run=judge_run, person=self.request.user)
        return Differences(report, **form.cleaned_data)


class DoubtGold(BehindTheDoor):
    """Log that gold seems wrong in the light of a verdict. It changes nothing; what is decided then does."""

    tag, writes = TAG, Scope.JUDGE
    takes = {"POST": prompt_serializers.NewDoubt}
    answers = {"POST": {201: prompt_serializers.DoubtRow}}

    @once
    def post(self, request, slug, number, run, report):
        judge_run = judge_run_of(request.user, slug, number, run)
        form = DoubtForm(self.body(request, prompt_serializers.NewDoubt))
        if not form.is_valid():
            raise Refusal.of_form(form)
        found = _report_of(judge_run, report)
        made = doubt_gold(report=found, person=request.user, **form.cleaned_data)
        return Response(prompt_serializers.DoubtRow(made).data, status=201)


class Check(ApiView):
    """The gate and the limits for a CI job: `passed` says whether it may go on."""

    tag = TAG
    asks = {"GET": serializers.CheckQuery}
    answers = {"GET": serializers.CheckWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        judge = get_object_or_404(Judge, evalset=version.evalset, name=self.asked["judge"])
        found = check_judge(
            judge=judge,
            version=version,
            unit=self.asked.get("unit", version.primary_unit),
            dimension=self.asked.get("dimension"),
            limits=serializers.CheckQuery.limits_in(self.asked),
        )
        return Response({"version": str(version), "judge": judge.name} | found)


class Rates(ApiView):
    """Rates by gold, by one grader, or by a judge that is trusted; else the reason, and what is missing."""

    tag = TAG
    asks = {"GET": serializers.RatesQuery}
    answers = {"GET": serializers.RatesWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        unit = self.asked.get("unit", version.primary_unit)
        return Response(rates_asked_for(version, self.asked, unit=unit))


class Methods(ListView):
    """How each figure is defined, in the order of the page of methods."""

    tag, row = TAG, serializers.MethodRow
    pagination_class = NumberedPages

    def rows(self):
        return definitions()
