"""Rounds, disagreements and decisions: for leads."""

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from rest_framework.response import Response

from annotate import serializers, services
from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from annotate.cases import Case
from annotate.decisions import DecisionLog
from annotate.disagreement_kinds import Wanted
from annotate.disagreements import DisagreementQueue
from annotate.forms import OpenRoundForm, ReassignForm, SecondLookForm, graders_among_members
from annotate.models import Adjudication, ClaimSplit, Grader, Round
from annotate.progress import left_out_of, progress_of_round, progress_per_grader
from annotate.rubric_queries import warm_up_result
from evalsets.access import version_of
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.queries import stratum_names

TAG = "rounds"


class Rounds(ListView):
    """Newest first. POST opens a round over frozen system runs."""

    tag, writes, row = TAG, Scope.ROUNDS, serializers.RoundRow
    ordering = "-number"
    takes = {"POST": serializers.NewRound}
    answers = {"POST": {201: serializers.RoundRow}}

    def rows(self):
        version = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return version.rounds.select_related("rubric_version__rubric", "second_look_of")

    @once
    def post(self, request, slug, number):
        version = version_of(request.user, slug, number)
        form = _form_of(version, self.body(request, serializers.NewRound), request.user)
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = services.open_round_with(
            version=version, people=form.cleaned_data["people"], person=request.user, **form.round
        )
        return Response(serializers.RoundRow(made).data, status=201)


def round_in(version, number) -> Round:
    rounds = Round.objects.select_related("rubric_version__rubric", "second_look_of", "version__evalset")
    return get_object_or_404(rounds, version=version, number=number)


class OneRound(ApiView):
    """How far it is, and who waits for whom."""

    tag = TAG
    answers = {"GET": serializers.RoundWhole}

    def get(self, request, slug, number, round_number):
        round = round_in(labels_of(request.user, slug, number), round_number)
        round.progress = progress_of_round(round)
        round.graders = progress_per_grader(round)
        round.left_out = left_out_of(round)
        return Response(serializers.RoundWhole(round).data)


class MoveRound(ApiView):
    tag, writes = TAG, Scope.ROUNDS
    answers = {"POST": serializers.RoundRow}
    move = staticmethod(services.pause_round)

    @once
    def post(self, request, slug, number, round_number):
        round = round_in(version_of(request.user, slug, number), round_number)
        if round.kind == Round.Kind.IMPORTED:
            raise Http404
        return Response(serializers.RoundRow(self.move(round=round)).data)


class PauseRound(MoveRound):
    """Nobody can label in it until it is resumed."""


class ResumeRound(MoveRound):
    """Open a paused round again."""

    move = staticmethod(services.resume_round)


class CloseRound(MoveRound):
    """Labels in it are final."""

    move = staticmethod(services.close_round)


class WarmUpResults(ApiView):
    """What each grader said of the known cases, before the round counted."""

    tag, reads = TAG, Scope.ROUNDS
    answers = {"GET": serializers.WarmUpResults}

    def get(self, request, slug, number, round_number):
        round = round_in(labels_of(request.user, slug, number), round_number)
        if round.kind == Round.Kind.IMPORTED:
            raise Http404
        return Response(serializers.WarmUpResults(warm_up_result(round)).data)


class SecondLook(BehindTheDoor):
    """Draw targets that carry a label, to be labelled again: by the same graders or by others."""

    tag, writes = TAG, Scope.ROUNDS
    takes = {"POST": serializers.NewSecondLook}
    answers = {"POST": {201: serializers.RoundRow}}

    @once
    def post(self, request, slug, number, round_number):
        round = round_in(labels_of(request.user, slug, number), round_number)
        if round.kind == Round.Kind.SECOND_LOOK:
            raise Http404
        given = self.body(request, serializers.NewSecondLook)
        form = SecondLookForm(_named(round, given), round=round, pool=services.drawable(round=round))
        if not form.is_valid():
            raise Refusal.of_form(form)
        return Response(serializers.RoundRow(form.draw(person=request.user)).data, status=201)


def _named(round, given) -> dict:
    """What the form of the page takes: people and graders go by name here."""
    evalset = round.version.evalset
    known = dict(graders_among_members(evalset).values_list("username", "pk"))
    graders = dict(Grader.objects.filter(evalset=evalset).values_list("name", "pk"))
    return {
        "n": given["n"],
        "dimension": given.get("dimension", ""),
        "of": _pk(graders, given.get("of")),
        "people": [_pk(known, name) for name in given["graders"]],
        "seed": given.get("seed", services.new_seed()),
    }


def _pk(known: dict[str, int], name: str | None) -> int | str | None:
    """A name that is not there stays one that the form does not know, also where it looks like a key."""
    return known.get(name, f"“{name}”") if name else None


class Reassign(BehindTheDoor):
    """Hand unfinished responses to others. What their grader said so far stays as history only."""

    tag, writes = TAG, Scope.ROUNDS
    takes = {"POST": serializers.Reassigning}
    answers = {"POST": serializers.Reassigned}

    @once
    def post(self, request, slug, number, round_number):
        round = round_in(labels_of(request.user, slug, number), round_number)
        given = self.body(request, serializers.Reassigning)
        known = dict(graders_among_members(round.version.evalset).values_list("username", "pk"))
        graders = dict(Grader.objects.filter(evalset=round.version.evalset).values_list("name", "pk"))
        named = {"grader": _pk(graders, given.get("grader")), "to": _pk(known, given.get("to"))}
        form = ReassignForm(named | {"at_most": given.get("at_most")}, round=round)
        if not form.is_valid():
            raise Refusal.of_form(form)
        moved, left = form.hand_over()
        return Response({"moved": moved, "left": left})


# Disagreements


class Disagreements(ListView):
    """The targets whose graders differ, those first whose decision teaches most."""

    tag, reads, row = TAG, Scope.ROUNDS, serializers.DisagreementRow
    pagination_class = NumberedPages
    asks = {"GET": serializers.DisagreementQuery}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        rounds = version.rounds.exclude(kind=Round.Kind.SECOND_LOOK).select_related("rubric_version__rubric")
        asked = self.asked
        if "round" in asked:
            rounds = rounds.filter(number=asked["round"])
        round = rounds.order_by("-number").first()
        if round is None:
            raise Http404
        status = "" if asked["status"] == "all" else asked["status"]
        wanted = Wanted(status=status, dimension=asked.get("dimension", ""), run=asked.get("run"))
        return DisagreementQueue(round, wanted)


def case_of(view, request) -> Case:
    place = view.kwargs
    version = labels_of(request.user, place["slug"], place["number"])
    return Case(version, place["round_number"], place["dimension"], place["target"])


class OneCase(BehindTheDoor):
    """What was said of a target, once it is opened or decided. POST decides it."""

    tag, reads, writes = TAG, Scope.ROUNDS, Scope.ROUNDS
    takes = {"POST": serializers.Deciding}
    answers = {"GET": serializers.CaseWhole, "POST": {201: serializers.DecisionRow}}

    def get(self, request, **_place):
        case = case_of(self, request)
        if case.standing is None and not case.round.openings.filter(response=case.response).exists():
            words = _("Open it first: from then on the labels of its response are final.")
            raise Refusal(409, "not-opened", words)
        if case.obstacle:
            raise Refusal(409, "refused", case.obstacle)
        return Response(serializers.CaseWhole(case).data)

    @once
    def post(self, request, **_place):
        case = case_of(self, request)
        given = self.body(request, serializers.Deciding)
        if given.pop("seen") != case.fingerprint:
            words = _("A grader has changed a label meanwhile. Look again before you decide.")
            raise Refusal(409, "changed-meanwhile", words)
        decided: Adjudication = services.adjudicate(**case.target, **given, person=request.user)
        return Response(serializers.DecisionRow(decided).data, status=201)


class OpenCase(BehindTheDoor):
    """See what was said of a target. From here on the labels of its response are final."""

    tag, writes = TAG, Scope.ROUNDS
    answers = {"POST": serializers.CaseWhole}

    @once
    def post(self, request, **_place):
        case = case_of(self, request)
        if case.standing is None:
            services.open_for_adjudication(**case.target, person=request.user)
        return Response(serializers.CaseWhole(case).data)


class Decisions(ListView):
    """The log of decisions, in order; an entry keeps its number."""

    tag, reads, row = TAG, Scope.ROUNDS, serializers.LoggedRow
    pagination_class = NumberedPages

    def rows(self):
        return DecisionLog(labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"]))


class Splits(BehindTheDoor, ListView):
    """Proposals to judge a claim part by part. POST splits a claim that nobody has proposed to split."""

    tag, reads, writes, row = TAG, Scope.ROUNDS, Scope.ROUNDS, serializers.SplitRow
    asks = {"GET": serializers.SplitQuery}
    takes = {"POST": serializers.SplittingClaim}
    answers = {"POST": {201: serializers.AcceptedSplit}}

    def rows(self):
        place = self.kwargs
        round = round_in(labels_of(self.request.user, place["slug"], place["number"]), place["round_number"])
        return round.splits.filter(**self.asked).select_related("claim__response", "decided_by")

    @once
    def post(self, request, slug, number, round_number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.SplittingClaim)
        case = Case(version, round_number, "grounding", str(given["target"]))
        made = services.split_claim(
            round=case.round, claim=case.claim, parts=_parts(given), note=given["note"], person=request.user
        )
        return Response(serializers.AcceptedSplit({"decisions": made}).data, status=201)


def _parts(given) -> list[tuple[str, str]]:
    return [(part["text"], part["label"]) for part in given["parts"]]


class OfSplit(BehindTheDoor):
    tag, writes = TAG, Scope.ROUNDS

    def found(self, slug, number, round_number, split) -> ClaimSplit:
        version = labels_of(self.request.user, slug, number)
        splits = ClaimSplit.objects.select_related("claim__response", "round__rubric_version", "decided_by")
        return get_object_or_404(splits, pk=split, round__version=version, round__number=round_number)


class AcceptSplit(OfSplit):
    """The parts count in the place of the claim, each with a decision of its own."""

    takes = {"POST": serializers.AcceptingSplit}
    answers = {"POST": {201: serializers.AcceptedSplit}}

    @once
    def post(self, request, **place):
        split = self.found(**place)
        given = self.body(request, serializers.AcceptingSplit)
        made = services.accept_split(
            split=split, parts=_parts(given), note=given["note"], person=request.user
        )
        return Response(serializers.AcceptedSplit({"decisions": made}).data, status=201)


class DeclineSplit(OfSplit):
    """The claim stays whole."""

    answers = {"POST": serializers.SplitRow}

    @once
    def post(self, request, **place):
        declined = services.decline_split(split=self.found(**place), person=request.user)
        return Response(serializers.SplitRow(declined).data)


class TakeSplitBack(OfSplit):
    """The whole claim counts again: further entries take the decisions on its parts back."""

    takes = {"POST": serializers.Revoking}
    answers = {"POST": {201: serializers.AcceptedSplit}}

    @once
    def post(self, request, **place):
        split = self.found(**place)
        given = self.body(request, serializers.Revoking)
        made = services.take_split_back(split=split, person=request.user, **given)
        return Response(serializers.AcceptedSplit({"decisions": made}).data, status=201)


class Revoke(BehindTheDoor):
    """Take a decision of the log back by a further entry: what held before holds again."""

    tag, writes = TAG, Scope.ROUNDS
    takes = {"POST": serializers.Revoking}
    answers = {"POST": {201: serializers.DecisionRow}}

    @once
    def post(self, request, slug, number, entry):
        log = DecisionLog(labels_of(request.user, slug, number))
        given = self.body(request, serializers.Revoking)
        if not 1 <= entry <= len(log):
            raise Http404
        [logged] = log[entry - 1 : entry]
        made = services.revoke(adjudication=logged.entry, person=request.user, **given)
        return Response(serializers.DecisionRow(made).data, status=201)


def _form_of(version, given, person) -> OpenRoundForm:
    """The form of the page, filled with what stands in the body."""
    latest = services.latest_rubric(evalset=version.evalset, person=person)
    rubric = latest
    if "rubric_version" in given:
        rubric = get_object_or_404(latest.rubric.versions, number=given.pop("rubric_version"))
    form = OpenRoundForm(None, version=version, strata=stratum_names(version))
    runs = form.fields["runs"].queryset
    if numbers := given.pop("system_runs", None):
        runs = runs.filter(number__in=numbers)
    people = form.fields["people"].queryset.filter(username__in=given.pop("graders"))
    given.setdefault("seed", services.new_seed())
    data = given | {
        "runs": [run.pk for run in runs],
        "people": [person.pk for person in people],
        "rubric_version": rubric.pk,
    }
    return OpenRoundForm(data, version=version, strata=stratum_names(version))
