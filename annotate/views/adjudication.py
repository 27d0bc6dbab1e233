"""The lead decides where graders differ. No verdict of a judge is shown here."""

import hashlib

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate import keys, services
from annotate.access import labels_of
from annotate.forms import AdjudicationForm, SplitDecisionForm
from annotate.models import Adjudication, ClaimSplit, Dimension, Round
from annotate.queries import Status, disagreements, missing_labels, parts_around, voices, with_texts
from evalsets.labels import LABELS
from evalsets.models import Claim, Response

PER_PAGE = 50
FOLD_FROM = 6_000


@require_safe
def list_disagreements(request, slug, number):
    version = labels_of(request.user, slug, number)
    rounds = list(version.rounds.order_by("-number"))
    round = _chosen_round(rounds, request.GET.get("round", ""))
    context = {"version": version, "rounds": rounds, "round": round, "dimensions": list(LABELS)}
    if round is not None:
        wanted = _wanted(request.GET)
        everything = disagreements(round, dimension=wanted["dimension"])
        status = wanted["status"]
        page = Paginator([d for d in everything if status in ("", d.status)], PER_PAGE).get_page(
            request.GET.get("page")
        )
        page.object_list = with_texts(round, list(page.object_list))
        context |= {
            "page_obj": page,
            "counts": [(s, sum(d.status == s for d in everything)) for s in Status],
            "total": len(everything),
            "wanted": wanted,
            "query": urlencode({"round": round.number, **wanted}),
        }
    return render(request, "annotate/disagreements.html", context)


def _chosen_round(rounds, number: str) -> Round | None:
    if not number:
        return rounds[0] if rounds else None
    for round in rounds:
        if str(round.number) == number:
            return round
    raise Http404


def _wanted(given) -> dict[str, str]:
    """The filter of the list, as far as it is one."""
    status, dimension = given.get("status", Status.PENDING), given.get("dimension", "")
    return {
        "status": status if status in Status.values else "",
        "dimension": dimension if dimension in LABELS else "",
    }


@require_http_methods(["GET", "HEAD", "POST"])
def adjudicate(request, slug, number, round_number, dimension, target):
    version = labels_of(request.user, slug, number)
    case = Case(version, round_number, dimension, target)
    if request.method != "POST":
        return _case_page(request, version, case, case.form())
    form = case.form(request.POST)
    if not form.is_valid():
        return _case_page(request, version, case, form, status=400)
    if form.cleaned_data.pop("seen") != case.fingerprint:
        form = case.form(trouble=_("A grader has changed a label meanwhile. Look again before you decide."))
        return _case_page(request, version, case, form, status=409)
    try:
        services.adjudicate(**case.target, **form.cleaned_data, person=request.user)
    except services.Refused as refused:
        form.add_error(None, str(refused))
        return _case_page(request, version, case, form, status=409)
    messages.success(request, _("Decided: %(label)s") % {"label": form.cleaned_data["label"]})
    return redirect(_next_url(request, version, case))


@require_POST
def decide_split(request, slug, number, round_number, split):
    version = labels_of(request.user, slug, number)
    split = get_object_or_404(
        ClaimSplit.objects.select_related("claim__response", "round__rubric_version"),
        pk=split,
        round__version=version,
        round__number=round_number,
    )
    case = Case(version, round_number, "grounding", split.claim_id)
    form = SplitDecisionForm(request.POST, split=split)
    try:
        if "decline" in request.POST:
            services.decline_split(split=split, person=request.user)
            messages.success(request, _("The split is declined."))
            return redirect(case.url(version))
        if not form.is_valid():
            return _case_page(request, version, case, case.form(), {split.pk: form}, status=400)
        note = form.cleaned_data["note"]
        services.accept_split(split=split, parts=form.parts, note=note, person=request.user)
    except services.Refused as refused:
        return _case_page(request, version, case, case.form(trouble=str(refused)), status=409)
    messages.success(request, _("The claim is split; its parts count in its place."))
    return redirect(_next_url(request, version, case))


class Case:
    """One target with everything said about it."""

    def __init__(self, version, round_number, dimension, target_id):
        if dimension not in LABELS:
            raise Http404
        self.round = get_object_or_404(
            Round.objects.select_related("version__evalset", "rubric_version__rubric"),
            version=version,
            number=round_number,
        )
        responses = Response.objects.filter(run__in=self.round.runs.all()).select_related("item")
        if dimension == "grounding":
            self.claim = get_object_or_404(
                Claim.objects.select_related("parent"), pk=target_id, response__in=responses
            )
            self.response = responses.get(pk=self.claim.response_id)
        else:
            self.claim, self.response = None, get_object_or_404(responses, pk=target_id)
        self.dimension = get_object_or_404(
            Dimension, rubric_version=self.round.rubric_version, name=dimension
        )
        whole = self.claim.parent if self.claim and self.claim.parent_id else self.claim
        self.voices = voices(self.round, self.response, whole, dimension)
        self.missing = missing_labels(self.round, self.response, self.voices)
        self.target = {
            "round": self.round,
            "response": self.response,
            "claim": self.claim,
            "dimension": dimension,
        }
        self.log = list(Adjudication.objects.filter(**self.target).select_related("by").order_by("-pk"))
        self.splits = list(self.claim.splits.filter(round=self.round)) if self.claim else []
        self.parts = list(self.claim.parts.all()) if self.claim else []
        self.number = self._number_of_claim(whole)

    def _number_of_claim(self, whole) -> int:
        ids = list(self.response.claims.filter(parent__isnull=True).values_list("pk", flat=True))
        return ids.index(whole.pk) + 1 if whole else 0

    @property
    def fingerprint(self) -> str:
        """Of the labels on the page, so that a decision is about what was seen."""
        said = sorted((v.annotation.grader_id, v.annotation.label) for v in self.voices)
        return hashlib.sha256(repr(said).encode()).hexdigest()

    def form(self, data=None, trouble="") -> AdjudicationForm:
        latest = self.log[0] if self.log else None
        initial = {"seen": self.fingerprint}
        if latest:
            initial |= {"label": latest.label, "reason": latest.reason, "note": latest.note}
        form = AdjudicationForm(data, dimension=self.dimension, initial=initial)
        form.trouble = trouble
        return form

    def url(self, version) -> str:
        target = self.claim.pk if self.claim else self.response.pk
        slug, number = version.evalset.slug, version.number
        return reverse(
            "annotate:adjudicate", args=[slug, number, self.round.number, self.dimension.name, target]
        )

    def parts_of_text(self) -> tuple[str, str, str]:
        if self.claim is None:
            return self.response.text, "", ""
        claims = list(self.response.claims.filter(parent__isnull=True).values_list("text", flat=True))
        return parts_around(self.response.text, claims[: self.number - 1], self.claim.text)


def _case_page(request, version, case, form, bound_splits=None, status=200):
    bound_splits = bound_splits or {}
    proposals = [
        (split, bound_splits.get(split.pk) or SplitDecisionForm(split=split))
        for split in case.splits
        if split.state == ClaimSplit.State.PROPOSED
    ]
    cites = set(case.claim.source_ids) if case.claim else set()
    passages = [(passage, passage.passage_id in cites) for passage in case.response.passages.all()]
    reasons = form.fields["reason"].choices
    table = (*keys.label_keys(case.dimension.labels), *keys.reason_keys(reasons), *keys.ADJUDICATING)
    context = {
        "version": version,
        "round": case.round,
        "rubric": case.round.rubric_version,
        "case": case,
        "form": form,
        "proposals": proposals,
        "is_split": any(split.state == ClaimSplit.State.ACCEPTED for split in case.splits),
        "passages": sorted(passages, key=lambda pair: (not pair[1], pair[0].rank)),
        "fold": len(case.response.text) > FOLD_FROM,
        "reasons": [(value, says, keys.REASONS[value]) for value, says in reasons],
        "key_table": table,
        "key_data": keys.as_data(table),
        "query": urlencode(_wanted(request.GET)),
    }
    return render(request, "annotate/adjudicate.html", context, status=status)


def _next_url(request, version, case) -> str:
    """The next target to decide within the filter, else the list."""
    wanted = _wanted(request.GET)
    slug, number = version.evalset.slug, version.number
    waiting = disagreements(case.round, dimension=wanted["dimension"], status=Status.PENDING)
    if not waiting:
        query = urlencode({"round": case.round.number, "status": ""})
        return reverse("annotate:disagreements", args=[slug, number]) + f"?{query}"
    place = [slug, number, case.round.number, waiting[0].dimension, waiting[0].target_id]
    return reverse("annotate:adjudicate", args=place) + f"?{urlencode(wanted)}"
