"""Two systems, the pair of each, what they were served, how much a set could show, and second looks."""

from django.shortcuts import get_object_or_404
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.models import Assignment, Round
from calibration import figure_serializers as serializers
from calibration.api.figures import people_asked_for, rates_asked_for, round_asked_for
from calibration.comparing import release_note
from calibration.extraction import extraction_of, runs_graded
from calibration.facts import pair_facts, plan_facts, retrieval_facts, round_facts
from calibration.plan_forms import PlanForm
from calibration.rates_scope import CompareForm
from calibration.retrieving import DEPTH, scored, with_response_names, wrong_answers
from calibration.second_look import second_look_figures
from evalsets.access import version_of
from evalsets.api.base import ApiView, ListView
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal

TAG = "figures"


class Comparison(ApiView):
    """Two system runs on the same items, as the command `compare` prints it, with a note for a release."""

    tag = TAG
    asks = {"GET": serializers.CompareQuery}
    answers = {"GET": serializers.ComparisonWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        form = CompareForm(request.query_params, version=version)
        if not form.is_valid():
            raise Refusal.of_form(form)
        form.open_to(request.user)
        found = form.compared()
        note = {"release_note": release_note(found)} if found.get("rates") else {}
        return Response(found | note)


class Pairs(ApiView):
    """Over-answering beside over-refusal, for every system, with what each was set to."""

    tag = TAG
    asks = {"GET": serializers.PairsQuery}
    answers = {"GET": serializers.PairsWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        round = round_asked_for(version, self.asked.get("round"))
        rates = rates_asked_for(version, self.asked, unit=version.primary_unit)
        return Response(pair_facts(rates, version=version, round=round))


class Retrieval(ApiView):
    """What was served, beside what was generated from it, and how often either is to blame."""

    tag = TAG
    asks = {"GET": serializers.RetrievalQuery}
    answers = {"GET": serializers.RetrievalWhole}

    def get(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        facts = retrieval_facts(**_of_retrieval(version, self.asked))
        del facts["wrong_answers"]["cases"]
        return Response(facts)


def _of_retrieval(version, asked) -> dict:
    round, source = people_asked_for(version, asked)
    return {"version": version, "round": round, "source": source, "k": asked.get("k", DEPTH)}


class WrongAnswers(ListView):
    """Each wrong answer, with whether the retriever owes a passage or the generator strayed."""

    tag, row = TAG, serializers.WrongAnswerRow
    pagination_class = NumberedPages
    asks = {"GET": serializers.RetrievalQuery}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        scope = _of_retrieval(version, self.asked)
        found = scored(runs=runs_graded(version, scope["round"]), k=scope.pop("k"))
        return wrong_answers(found, **scope)["cases"]

    def paginate_queryset(self, queryset):
        return with_response_names(super().paginate_queryset(queryset))


class ClaimAudit(ApiView):
    """How well the claims were extracted, by the claim audits. No label is in it."""

    tag = TAG
    answers = {"GET": serializers.ClaimAuditWhole}

    def get(self, request, slug, number):
        version = version_of(request.user, slug, number)
        runs = version.runs.select_related("system").order_by("number")
        return Response({"version": str(version)} | extraction_of(runs))


class Plan(ApiView):
    """How many items, and how many graded twice, a question needs."""

    tag = TAG
    asks = {"GET": serializers.PlanQuery}
    answers = {"GET": serializers.PlanWhole}

    def get(self, request, slug, number):
        form = PlanForm(request.query_params, version=labels_of(request.user, slug, number))
        if not form.is_valid():
            raise Refusal.of_form(form)
        return Response(plan_facts(form.question))


class SecondLook(ApiView):
    """How far a grading agrees with itself, and with somebody who grades it anew."""

    tag = TAG
    answers = {"GET": serializers.SecondLookWhole}

    def get(self, request, slug, number, round_number):
        version = labels_of(request.user, slug, number)
        looks = Round.objects.filter(version=version, kind=Round.Kind.SECOND_LOOK)
        round = get_object_or_404(looks.select_related("version__evalset"), number=round_number)
        parts = second_look_figures(round)
        waiting = round.assignments.filter(state=Assignment.State.PENDING)
        facts = {
            "version": str(version),
            "round": round_facts(round),
            "first_round": round.second_look_of.number if round.second_look_of else None,
            "unfinished": waiting.count(),
            "dimensions": [part | {"changed": len(part["changed"])} for part in parts],
        }
        return Response(facts)
