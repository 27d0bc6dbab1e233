"""The grader's screen."""

import uuid
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from annotate import keys, services
from annotate.access import own_assignment, own_round, round_for_grading
from annotate.asking import Place
from annotate.forms import AdvanceForm, FlagForm, LabelForm, SplitForm, TakeBackForm, TargetForm
from annotate.models import Assignment, Grader, Round
from annotate.queries import (
    Given,
    assignment_at,
    following_of,
    next_assignment,
    progress_of,
    recent_labels,
    screen_of,
    state_of,
    target_key,
)
from evalsets.models import Claim, Passage

SAID = ("dimension", "label", "note", "evidence", "milliseconds", "key")
ADVANCE = "touchstone_advance"  # a cookie: does a label bring the next target at once?
A_YEAR = 365 * 24 * 3600
FRAGMENTS = "jinja2"  # the engine of what a label renders
NO_SCREEN = {
    "screen": None,
    "is_held": False,
    "ahead": None,
    "progress": None,
    "recent": [],
}


@never_cache
@require_safe
def grade(request, round_id):
    round, grader = round_for_grading(request.user, round_id)
    if grader and round.state == Round.State.OPEN and services.is_warming_up(round, grader):
        return redirect("annotate:warm_up", round.pk)
    if grader and request.htmx and "recent" in request.GET:
        context = {"round": round, "recent": recent_labels(round, grader)}
        return render(request, "annotate/_recent_list.jinja", context, using=FRAGMENTS)
    at = request.GET.get("at", "")
    if grader and at:
        assignment = own_assignment(request.user, round_id, at if at.isdecimal() else 0)
        return _page(request, round, grader, assignment, target=request.GET.get("target", ""))
    return _page(request, round, grader)


@require_POST
def label(request, round_id):
    sent = _receive(request, round_id, LabelForm)
    if not sent.form.is_valid():
        return _refuse(request, sent, _("The label did not arrive whole. Choose it again."), 400)
    try:
        answered = services.annotate(
            round=sent.round,
            grader=sent.grader,
            response=sent.assignment.response,
            claim=sent.claim,
            passage=sent.passage,
            **{name: sent.form.cleaned_data[name] for name in SAID},
        )
    except services.Refused as refused:
        return _refuse(request, sent, refused)
    target = "" if _advances(request) else sent.target
    kept = answered.annotation
    said = _saved(kept.updated_at) if kept.pk else ""
    return _onward(request, sent, target=target, said=said, answered=answered)


@require_POST
def take_back(request, round_id):
    round, grader = own_round(request.user, round_id)
    form = TakeBackForm(request.POST)
    key = form.cleaned_data["key"] if form.is_valid() else None
    sent = Sent(round, grader, None, None, None, form)
    try:
        event = services.take_back(round=round, grader=grader, key=key)
    except services.Refused as refused:
        return _refuse(request, sent, refused)
    if event is None:
        return _onward(request, sent, said=_("There is nothing left to take back."))
    sent.assignment = assignment_at(round, grader, event.response_id)
    target = target_key(event.dimension, event.claim_id, event.passage_id)
    said = _("Taken back: %(label)s") % {"label": event.label}
    return _onward(request, sent, target=target, said=said)


@require_POST
def flag(request, round_id):
    sent = _receive(request, round_id, FlagForm)
    if not sent.form.is_valid():
        return _refuse(request, sent, _first_error(sent.form), 400)
    where = {
        "round": sent.round,
        "grader": sent.grader,
        "response": sent.assignment.response,
        "claim": sent.claim,
    }
    try:
        if sent.form.cleaned_data["remove"]:
            services.unflag(**where)
            return _onward(request, sent, target=sent.target, said=_("Flag removed"))
        services.flag(**where, note=sent.form.cleaned_data["note"])
    except services.Refused as refused:
        return _refuse(request, sent, refused)
    return _onward(request, sent, target=sent.target, said=_("Flag kept %(at)s") % {"at": _now()})


@require_POST
def split(request, round_id):
    sent = _receive(request, round_id, SplitForm)
    if sent.claim is None:
        raise Http404
    if not sent.form.is_valid():
        return _refuse(request, sent, _first_error(sent.form), 400)
    try:
        services.propose_split(
            round=sent.round, grader=sent.grader, claim=sent.claim, parts=sent.form.cleaned_data["parts"]
        )
    except services.Refused as refused:
        return _refuse(request, sent, refused)
    return _onward(request, sent, target=sent.target, said=_("Split proposed %(at)s") % {"at": _now()})


@require_POST
def skip(request, round_id):
    sent = _receive(request, round_id, TargetForm)
    try:
        services.skip(round=sent.round, grader=sent.grader, response=sent.assignment.response)
    except services.Refused as refused:
        return _refuse(request, sent, refused)
    following = next_assignment(sent.round, sent.grader)
    alone = following is not None and following.pk == sent.assignment.pk
    sent.assignment = following
    said = _("This is the only response left.") if alone else _("Skipped: it comes again at the end.")
    return _onward(request, sent, said=said)


@require_POST
def advance(request, round_id):
    sent = _receive(request, round_id, AdvanceForm)
    value = "on" if sent.form.cleaned_data["on"] else "off"
    request.COOKIES[ADVANCE] = value
    answer = _onward(request, sent, target=sent.target)
    answer.set_cookie(
        ADVANCE,
        value,
        max_age=A_YEAR,
        samesite="Lax",
        httponly=True,
        secure=settings.SESSION_COOKIE_SECURE,
    )
    return answer


@require_safe
def grader_rubric(request, round_id):
    round, _grader = own_round(request.user, round_id)
    return render(request, "annotate/grader_rubric.html", {"round": round, "rubric": round.rubric_version})


# What a form of the screen sent


@dataclass
class Sent:
    round: Round
    grader: Grader
    assignment: Assignment | None
    claim: Claim | None
    passage: Passage | None
    form: TargetForm | TakeBackForm

    @property
    def target(self) -> str:
        dimension = self.form.cleaned_data.get("dimension", "") if self.form.is_bound else ""
        return target_key(
            dimension, self.claim.pk if self.claim else None, self.passage.pk if self.passage else None
        )


def _receive(request, round_id, form_class) -> Sent:
    """Only an own assignment and a claim of its response exist; the rest of the form may still be invalid."""
    form = form_class(request.POST)
    form.is_valid()
    if {"assignment", "claim", "passage"} & set(form.errors):
        raise Http404
    assignment = own_assignment(request.user, round_id, form.cleaned_data["assignment"])
    claim_id = form.cleaned_data["claim"]
    claim = _part_of(assignment.response, Claim, claim_id) if claim_id else None
    passage_id = form.cleaned_data["passage"]
    passage = _part_of(assignment.response, Passage, passage_id) if passage_id else None
    return Sent(assignment.round, assignment.grader, assignment, claim, passage, form)


def _part_of(response, kind, pk):
    shown = response.whole_claims if kind is Claim else response.ranked_passages
    found = next((part for part in shown if part.pk == pk), None)
    return found or get_object_or_404(kind, pk=pk, response=response)


def _first_error(form) -> str:
    return next(iter(form.errors.values()))[0]


def _now() -> str:
    return timezone.now().strftime("%H:%M:%S UTC")


def _saved(at) -> str:
    return _("Saved %(at)s") % {"at": at.strftime("%H:%M:%S UTC")}


# Answers: a fragment to htmx, a redirect to a plain form


def _onward(request, sent: Sent, *, target="", said="", answered=None):
    """To the same response while it has something left (or a target is named), else to the next one."""
    if sent.assignment is not None:
        sent.assignment.state = answered.state if answered else state_of(sent.assignment)
    stay = sent.assignment is not None and (target or sent.assignment.state == Assignment.State.PENDING)
    if request.htmx:
        given = _given(answered) if stay and answered else None
        assignment = sent.assignment if stay else None
        return _page(request, sent.round, sent.grader, assignment, target, given=given, said=said)
    if said:
        messages.success(request, said)
    query = {"at": sent.assignment.pk, "target": target} if stay else {}
    return redirect(
        reverse("annotate:grade", args=[sent.round.pk]) + (f"?{urlencode(query)}" if stay else "")
    )


def _given(answered: services.Answered) -> dict[Place, Given] | None:
    """What the grader has said of the response, as it was read with the label; None: it was not read."""
    if answered.said is None:
        return None
    return {
        place: Given(said.label, said.note, tuple(said.evidence)) for place, said in answered.said.items()
    }


def _refuse(request, sent: Sent, refused, status: int | None = None):
    """The screen as it was, with the reason, and nothing stored."""
    if status is None:
        status = 409 if isinstance(refused, services.Conflict) else 400
    sent.round.refresh_from_db(fields=["state"])
    return _page(
        request,
        sent.round,
        sent.grader,
        sent.assignment,
        target=sent.target if sent.assignment else "",
        trouble=str(refused),
        status=status,
    )


def _page(request, round, grader, assignment=None, target="", *, given=None, said="", trouble="", status=200):
    context = NO_SCREEN | {"round": round, "said": said, "trouble": trouble, "rubric": round.rubric_version}
    if grader is not None:
        assignment = assignment or next_assignment(round, grader)
    if grader is None:
        context["empty"] = "not_assigned"
    elif round.state != Round.State.OPEN:
        context |= {"empty": round.state, "progress": progress_of(round, grader)}
    elif assignment is None:
        context |= {
            "empty": "done",
            "progress": progress_of(round, grader),
            **_recent(request, round, grader),
        }
    else:
        context |= _screen(request, screen_of(assignment, target, given))
    context |= {"submit_key": uuid.uuid4(), "take_back_key": uuid.uuid4()}
    if request.htmx:
        return render(request, "annotate/_answer.jinja", context, status=status, using=FRAGMENTS)
    context |= {"key_table": keys.GRADING, "key_data": keys.as_data(keys.GRADING)}
    return render(request, "annotate/grade.html", context, status=status)


def _screen(request, screen) -> dict:
    """The screen and, unless the page holds it already, the response that comes after it."""
    round, grader, held = screen.assignment.round, screen.assignment.grader, _held(request)
    following = following_of(screen.assignment)
    is_new = following is not None and following not in held
    ahead = next_assignment(round, grader, other_than=screen.assignment) if is_new else None
    return {
        "screen": screen,
        "is_held": screen.assignment.pk in held,
        "progress": progress_of(round, grader),
        **_recent(request, round, grader),
        "following": following,
        "ahead": screen_of(ahead) if ahead else None,
        "advances": _advances(request),
    }


def _recent(request, round, grader) -> dict:
    """The latest labels with a page; a fragment says where to fetch them, should somebody want to look."""
    return {"recent": None if request.htmx else recent_labels(round, grader)}


def _advances(request) -> bool:
    return request.COOKIES.get(ADVANCE) != "off"


def _held(request) -> set[int]:
    """Assignments whose response the page holds, as its script says; it is not sent again."""
    named = request.headers.get("Touchstone-Held", "").split(",")
    return {int(pk) for pk in named if pk.isdecimal() and len(pk) < 19}
