"""Eval sets, their versions, items, systems, runs and responses."""

from dataclasses import asdict

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.response import Response

from evalsets import queries, serializers, services
from evalsets.access import LEAD, evalset_of, version_of
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.forms import MemberForm

TAG = "eval sets"


class EvalSets(ListView):
    """The eval sets that one belongs to, with one's roles; POST makes an empty one, to be its lead."""

    tag, writes = TAG, Scope.IMPORT
    row = serializers.EvalSetRow
    pagination_class = NumberedPages
    takes = {"POST": serializers.NewEvalSet}
    answers = {"POST": {201: serializers.EvalSetWhole}}

    def rows(self):
        return queries.evalsets_of(self.request.user)

    @once
    def post(self, request):
        given = self.body(request, serializers.NewEvalSet)
        try:
            made = services.create_evalset(**given, person=request.user)
        except services.NameTaken as error:
            raise Refusal(409, "name-taken", str(error)) from error
        made.roles = [LEAD]
        where = reverse("evalsets_api:evalset", args=[made.slug])
        return Response(serializers.EvalSetWhole(made).data, status=201, headers={"Location": where})


class EvalSet(ApiView):
    tag = TAG
    answers = {"GET": serializers.EvalSetWhole}

    def get(self, request, slug):
        found = evalset_of(request.user, slug, LEAD)
        found.roles = queries.roles_in(found, request.user)
        return Response(serializers.EvalSetWhole(found).data)


class Members(ListView):
    """Who is lead and who is grader. POST gives somebody a role; who has it keeps it."""

    tag, writes, row = TAG, Scope.MEMBERS, serializers.MemberRow
    takes = {"POST": serializers.NewMember}
    answers = {"POST": {201: serializers.MemberRow}}

    def rows(self):
        return evalset_of(self.request.user, self.kwargs["slug"], LEAD).memberships.select_related("person")

    @once
    def post(self, request, slug):
        found = evalset_of(request.user, slug, LEAD)
        form = MemberForm(self.body(request, serializers.NewMember))
        if not form.is_valid():
            raise Refusal.of_form(form)
        person, role = form.cleaned_data["username"], form.cleaned_data["role"]
        made = services.add_member(evalset=found, person=person, role=role)
        return Response(serializers.MemberRow(made).data, status=201)


class Member(ApiView):
    """DELETE takes the role away. What the person has said stays."""

    tag, writes = TAG, Scope.MEMBERS
    answers = {"GET": serializers.MemberRow, "DELETE": {204: None}}

    def _found(self, request, slug, member):
        evalset = evalset_of(request.user, slug, LEAD)
        return get_object_or_404(evalset.memberships.select_related("person"), pk=member)

    def get(self, request, slug, member):
        return Response(serializers.MemberRow(self._found(request, slug, member)).data)

    @once
    def delete(self, request, slug, member):
        membership = self._found(request, slug, member)
        try:
            services.remove_member(membership=membership)
        except services.LastLead as error:
            raise Refusal(409, "last-lead", str(error)) from error
        return Response(status=204)


class Versions(ListView):
    """Newest first."""

    tag, row = TAG, serializers.VersionRow
    ordering = "-number"

    def rows(self):
        return queries.versions_of(evalset_of(self.request.user, self.kwargs["slug"], LEAD))


class Version(ApiView):
    tag = TAG
    answers = {"GET": serializers.VersionWhole}

    def get(self, request, slug, number):
        found = version_of(request.user, slug, number)
        found.counts = queries.counts(found)
        return Response(serializers.VersionWhole(found).data)


class FreezeVersion(ApiView):
    """Make the items immutable. To freeze a frozen version changes nothing."""

    tag, writes = TAG, Scope.IMPORT
    takes = {"POST": serializers.Freezing}
    answers = {"POST": serializers.VersionWhole}

    @once
    def post(self, request, slug, number):
        found = version_of(request.user, slug, number)
        given = self.body(request, serializers.Freezing)
        frozen = services.freeze_version(version=found, person=request.user, **given)
        frozen.counts = queries.counts(frozen)
        return Response(serializers.VersionWhole(frozen).data)


class Composition(ApiView):
    """What the version consists of, every item counted in every table, and what is out of balance."""

    tag = TAG
    answers = {"GET": serializers.CompositionWhole}

    def get(self, request, slug, number):
        return Response(asdict(queries.composition(version_of(request.user, slug, number))))


class Items(ListView):
    tag, row = TAG, serializers.ItemRow
    asks = {"GET": serializers.ItemQuery}
    ordering = "position"

    def rows(self):
        found = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        asked = self.asked
        return queries.items_of(
            found,
            search=asked.get("search", ""),
            answerable=asked.get("answerable"),
            reason=asked.get("unanswerable_reason", ""),
        )


class Systems(ListView):
    tag, row = TAG, serializers.SystemRow

    def rows(self):
        return evalset_of(self.request.user, self.kwargs["slug"], LEAD).systems.all()


def run_of(person, slug, number, run_number):
    version = version_of(person, slug, number)
    return get_object_or_404(version.runs.select_related("system", "version__evalset"), number=run_number)


class Run(ApiView):
    """One system run: the responses of one system, imported together."""

    tag = TAG
    answers = {"GET": serializers.RunWhole}

    def get(self, request, slug, number, run_number):
        version = version_of(request.user, slug, number)
        for run in queries.runs_of(version):
            if run.number == run_number:
                return Response(serializers.RunWhole(run).data)
        raise Http404


class FreezeRun(ApiView):
    """Make responses, passages and claims immutable. To freeze a frozen run changes nothing."""

    tag, writes = TAG, Scope.IMPORT
    answers = {"POST": serializers.RunRow}

    @once
    def post(self, request, slug, number, run_number):
        frozen = services.freeze_run(run=run_of(request.user, slug, number, run_number))
        return Response(serializers.RunRow(frozen).data)


class Responses(ListView):
    """Whole responses, with passages and claims."""

    tag, row = TAG, serializers.ResponseRow
    asks = {"GET": serializers.ResponseQuery}
    ordering = "position"

    def rows(self):
        found = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return queries.responses_of(found, run=self.asked.get("run"))
