"""The lead decides where graders differ. No verdict of a judge is shown here."""

from dataclasses import replace
from functools import wraps

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate import keys, services
from annotate.access import labels_of
from annotate.adjudication_forms import (
    AdjudicationForm,
    DisagreementsForm,
    OwnSplitForm,
    SplitDecisionForm,
)
from annotate.cases import Case
from annotate.disagreement_kinds import Status, pairs_of, target_in_address
from annotate.disagreements import DisagreementQueue
from annotate.forms import MAX_TEXT
from annotate.models import Adjudication, ClaimSplit, Round
from annotate.queries import hue_of
from evalsets.queries import strata_of

PER_PAGE = 50
FOLD_FROM = 6_000


@require_safe
def list_disagreements(request, slug, number):
    version = labels_of(request.user, slug, number)
    first = version.rounds.exclude(kind=Round.Kind.SECOND_LOOK)  # nothing is decided in a second look
    rounds = list(first.select_related("rubric_version__rubric").order_by("-number"))
    round = _chosen_round(rounds, request.GET.get("round", ""))
    context = {"version": version, "rounds": rounds, "round": round}
    if round is not None:
        form = _filter(request, round)
        queue = DisagreementQueue(round, form.wanted)
        queue.read_ahead(request.GET.get("page"), PER_PAGE)
        context |= {
            "filter": form,
            "wanted": form.wanted,
            "page_obj": Paginator(queue, PER_PAGE).get_page(request.GET.get("page")),
            "counts": list(queue.counts.items()),
            "pairs": queue.pairs,
            "total": queue.total,
            "query": urlencode({"round": round.number, **form.query}),
        }
    return render(request, "annotate/disagreements.html", context)


def _chosen_round(rounds, number: str) -> Round | None:
    if not number:
        return rounds[0] if rounds else None
    for round in rounds:
        if str(round.number) == number:
            return round
    raise Http404


def _filter(request, round) -> DisagreementsForm:
    dimensions = list(round.rubric_version.dimensions.all())
    return DisagreementsForm(
        request.GET,
        pairs=list(pairs_of(dimensions)),
        dimensions=[dimension.name for dimension in dimensions],
        runs=round.runs.select_related("system").order_by("number"),
        strata=strata_of(round.version),
    )


def refuse_prefetch(view):
    """To open a target is an act of the lead, not of a browser that guesses the next page."""

    @wraps(view)
    def answer(request, *args, **kwargs):
        purposes = (request.headers.get(name, "") for name in ("Sec-Purpose", "Purpose", "X-Moz"))
        if any("prefetch" in purpose or "prerender" in purpose for purpose in purposes):
            return HttpResponse(status=503, headers={"Cache-Control": "no-store"})
        return view(request, *args, **kwargs)

    return answer


@refuse_prefetch
@require_http_methods(["GET", "HEAD", "POST"])
def adjudicate(request, slug, number, round_number, dimension, target):
    version = labels_of(request.user, slug, number)
    case = Case(version, round_number, dimension, target)
    if request.method == "GET" and case.standing is None:
        try:
            services.open_for_adjudication(**case.target, person=request.user)
        except services.Refused as refused:
            case.obstacle = str(refused)
    if request.method != "POST":
        return _case_page(request, version, case, _form(case))
    form = _form(case, request.POST)
    if not form.is_valid():
        return _case_page(request, version, case, form, status=400)
    if form.cleaned_data.pop("seen") != case.fingerprint:
        form = _form(case, trouble=_("A grader has changed a label meanwhile. Look again before you decide."))
        return _case_page(request, version, case, form, status=409)
    onward = _onward(request, version, case)
    try:
        decision = services.adjudicate(**case.target, **form.cleaned_data, person=request.user)
    except services.Refused as refused:
        form.add_error(None, str(refused))
        return _case_page(request, version, case, form, status=409)
    messages.success(request, _("Decided: %(label)s") % {"label": decision.label})
    return redirect(f"{onward}&decided={decision.pk}")


def _form(case, data=None, trouble="") -> AdjudicationForm:
    initial = {"seen": case.fingerprint}
    if holds := case.standing:
        initial |= {"label": holds.label, "note": holds.note}
        if holds.reason not in Adjudication.GIVEN_BY_AN_ACTION:
            initial["reason"] = holds.reason
    form = AdjudicationForm(data, dimension=case.dimension, initial=initial)
    form.trouble = trouble
    return form


@require_POST
def revoke(request, slug, number, round_number, decision):
    version = labels_of(request.user, slug, number)
    decision = get_object_or_404(
        Adjudication.objects.select_related("round__rubric_version", "response", "claim", "passage"),
        pk=decision,
        round__version=version,
        round__number=round_number,
    )
    try:
        services.revoke(
            adjudication=decision, note=request.POST.get("note", "")[:MAX_TEXT], person=request.user
        )
        messages.success(request, _("Taken back: what held before holds again."))
    except services.Refused as refused:
        messages.error(request, str(refused))
    case = Case(version, round_number, decision.dimension, address_of(decision))
    return redirect(f"{_url(version, case)}?{urlencode(_filter(request, case.round).query)}")


@require_POST
def split_claim(request, slug, number, round_number, claim):
    version = labels_of(request.user, slug, number)
    case = Case(version, round_number, "grounding", str(claim))
    form = OwnSplitForm(request.POST)
    if not form.is_valid():
        return _case_page(request, version, case, _form(case), own_split=form, status=400)
    onward = _onward(request, version, case)
    try:
        services.split_claim(
            round=case.round,
            claim=case.claim,
            parts=form.parts,
            note=form.cleaned_data["note"],
            person=request.user,
        )
    except services.Refused as refused:
        form.add_error(None, str(refused))
        return _case_page(request, version, case, _form(case), own_split=form, status=409)
    messages.success(request, _("The claim is split; its parts count in its place."))
    return redirect(onward)


def _split_of(version, round_number, split) -> ClaimSplit:
    splits = ClaimSplit.objects.select_related("claim__response", "round__rubric_version")
    return get_object_or_404(splits, pk=split, round__version=version, round__number=round_number)


@require_POST
def take_split_back(request, slug, number, round_number, split):
    version = labels_of(request.user, slug, number)
    split = _split_of(version, round_number, split)
    try:
        services.take_split_back(
            split=split, note=request.POST.get("note", "")[:MAX_TEXT], person=request.user
        )
        messages.success(request, _("The split is taken back: the whole claim counts again."))
    except services.Refused as refused:
        messages.error(request, str(refused))
    case = Case(version, round_number, "grounding", str(split.claim_id))
    return redirect(f"{_url(version, case)}?{urlencode(_filter(request, case.round).query)}")


@require_POST
def decide_split(request, slug, number, round_number, split):
    version = labels_of(request.user, slug, number)
    split = _split_of(version, round_number, split)
    case = Case(version, round_number, "grounding", str(split.claim_id))
    form = SplitDecisionForm(request.POST, split=split)
    onward = _onward(request, version, case)
    try:
        if "decline" in request.POST:
            services.decline_split(split=split, person=request.user)
            messages.success(request, _("The split is declined."))
            return redirect(_url(version, case))
        if not form.is_valid():
            return _case_page(request, version, case, _form(case), {split.pk: form}, status=400)
        note = form.cleaned_data["note"]
        services.accept_split(split=split, parts=form.parts, note=note, person=request.user)
    except services.Refused as refused:
        return _case_page(request, version, case, _form(case, trouble=str(refused)), status=409)
    messages.success(request, _("The claim is split; its parts count in its place."))
    return redirect(onward)


def address_of(row) -> str:
    """How an address names the target of a decision."""
    return target_in_address(row.response_id, row.claim_id, row.passage_id)


def _url(version, case) -> str:
    place = [version.evalset.slug, version.number, case.round.number, case.dimension.name, case.address]
    return reverse("annotate:adjudicate", args=place)


def _case_page(request, version, case, form, bound_splits=None, own_split=None, status=200):
    filter = _filter(request, case.round)
    reasons = form.fields["reason"].choices
    table = _keys_of(case, reasons)
    context = {
        "version": version,
        "round": case.round,
        "rubric": case.round.rubric_version,
        "case": case,
        "form": form,
        "labels": [(label, hue_of(case.dimension, label["name"])) for label in case.dimension.labels],
        "proposals": _proposals(case, bound_splits or {}),
        "own_split": own_split or (OwnSplitForm() if case.can_be_split else None),
        "own_split_open": own_split is not None,
        "place": DisagreementQueue(case.round, filter.wanted).around(*case.place),
        "latest": _decided_before(request, case),
        "fold": len(case.response.text) > FOLD_FROM,
        "reasons": [(value, says, keys.REASONS[value]) for value, says in reasons],
        "key_table": table,
        "key_data": keys.as_data(table),
        "query": urlencode(filter.query),
    }
    return render(request, "annotate/adjudicate.html", context, status=status)


def _keys_of(case, reasons):
    """Keys that do nothing on this case are not shown."""
    if case.obstacle or case.is_split:
        return keys.LOOKING
    return (*keys.label_keys(case.dimension.labels), *keys.reason_keys(reasons), *keys.ADJUDICATING)


def _proposals(case, bound_splits):
    """Each with the form that was sent for it, or an empty one."""
    proposed = (split for split in case.splits if split.state == ClaimSplit.State.PROPOSED)
    return [(split, bound_splits.get(split.pk) or SplitDecisionForm(split=split)) for split in proposed]


def _decided_before(request, case) -> Adjudication | None:
    """The decision that led here, so that a slip of the finger is one key away."""
    pk = request.GET.get("decided", "")
    if not (pk.isdecimal() and len(pk) < 19):
        return None
    decided = Adjudication.objects.filter(pk=pk, round=case.round).first()
    if decided:
        decided.address = address_of(decided)
    return decided


def _onward(request, version, case) -> str:
    """The next target to decide within the filter, else the list; asked before the case leaves the queue."""
    filter = _filter(request, case.round)
    queue = DisagreementQueue(case.round, replace(filter.wanted, status=Status.PENDING))
    slug, number, round = version.evalset.slug, version.number, case.round.number
    place = queue.around(*case.place)
    follows = place.after or (queue.first() if place.before else None)
    if follows is None:
        query = urlencode({"round": round, "status": DisagreementsForm.ALL})
        return reverse("annotate:disagreements", args=[slug, number]) + f"?{query}"
    url = reverse("annotate:adjudicate", args=[slug, number, round, follows.dimension, follows.target])
    return f"{url}?{urlencode(filter.query or {'status': Status.PENDING.value})}"
