"""A grader's own work: what the grader's screen shows, and nothing that it does not."""

from django.db.models import F, Q
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework.response import Response

from annotate import serializers, services
from annotate.access import own_assignment, own_round
from annotate.models import Annotation, Assignment, Round
from annotate.queries import screen_of, work_of
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.models import Claim, Passage

TAG = "own work"


class OwnRounds(ListView):
    """The rounds in which one grades."""

    tag, reads, row = TAG, Scope.GRADE, serializers.OwnRound
    pagination_class = NumberedPages

    def rows(self):
        return work_of(self.request.user)


class OwnAssignments(ListView):
    """One's own queue, skipped responses last."""

    tag, reads, row = TAG, Scope.GRADE, serializers.OwnAssignment
    asks = {"GET": serializers.OwnQuery}
    ordering = "order"

    def rows(self):
        round, grader = own_round(self.request.user, self.kwargs["round_id"])
        return Assignment.objects.filter(round=round, grader=grader, **self.asked)


def _open_assignment(request, round_id, assignment) -> Assignment:
    found = own_assignment(request.user, round_id, assignment)
    if found.round.state != Round.State.OPEN:
        words = _("The round is {state}: nothing is shown of it.")
        raise Refusal(409, "not-open", words.format(state=found.round.get_state_display()))
    if services.is_warming_up(found.round, found.grader):
        raise Refusal(409, "warm-up", _("The warm-up comes first: it is on the pages."))
    return found


class OneAssignment(ApiView):
    tag, reads = TAG, Scope.GRADE
    answers = {"GET": serializers.OwnScreen}

    def get(self, request, round_id, assignment):
        screen = screen_of(_open_assignment(request, round_id, assignment))
        return Response(serializers.OwnScreen(screen).data)


class Label(ApiView):
    """Label one target of an own assignment. Another label in its place is a change, and kept as such."""

    tag, writes = TAG, Scope.GRADE
    takes = {"POST": serializers.NewLabel}
    answers = {"POST": serializers.KeptLabel}

    @once
    def post(self, request, round_id, assignment):
        found = _open_assignment(request, round_id, assignment)
        given = self.body(request, serializers.NewLabel)
        answered = services.annotate(
            round=found.round,
            grader=found.grader,
            response=found.response,
            claim=_part_of(found, Claim, given.pop("claim", None)),
            passage=_part_of(found, Passage, given.pop("passage", None)),
            **given,
        )
        return Response({"label": answered.annotation.label, "assignment_state": answered.state})


def _part_of(assignment, kind, pk):
    if pk is None:
        return None
    part = kind.objects.filter(pk=pk, response=assignment.response_id).first()
    if part is None:
        raise Http404
    return part


class TakeBack(ApiView):
    """Take back one's latest label of the round."""

    tag, writes = TAG, Scope.GRADE
    answers = {"POST": serializers.TakenBack}

    @once
    def post(self, request, round_id):
        round, grader = own_round(request.user, round_id)
        event = services.take_back(round=round, grader=grader)
        if event is None:
            return Response(dict.fromkeys(("dimension", "label", "claim", "passage")))
        where = {"claim": event.claim_id, "passage": event.passage_id}
        return Response({"dimension": event.dimension, "label": event.label, **where})


class OwnLabels(ListView):
    """One's own labels of the round."""

    tag, reads, row = TAG, Scope.GRADE, serializers.OwnLabel

    def rows(self):
        round, grader = own_round(self.request.user, self.kwargs["round_id"])
        slot = Q(response__assignments__round=round, response__assignments__grader=grader)
        own = Annotation.objects.filter(slot, round=round, grader=grader)
        return own.annotate(assignment_id=F("response__assignments__pk"))
