"""The claims of a version: where they come from, and correcting those of a draft run by hand.

They hold no labels, so a lead who still grades may work on a draft run, as with the claim audit.
"""

from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from calibration.extraction_review import claims_by_run, reviewed, shown_responses
from calibration.forms import ClaimForm
from evalsets.access import version_of
from evalsets.claims import ClaimRefused, add_claim, change_claim, remove_claim
from evalsets.models import Claim, Response

PER_PAGE = 20


@require_safe
def claims(request, slug, number):
    version = version_of(request.user, slug, number)
    return render(request, "calibration/claims.html", {"version": version, "runs": claims_by_run(version)})


@require_safe
def run_claims(request, slug, number, run_number):
    version = version_of(request.user, slug, number)
    run = get_object_or_404(version.runs.select_related("system"), number=run_number)
    only_without = request.GET.get("show") == "without"
    pages = Paginator(shown_responses(run, only_without=only_without), PER_PAGE)
    page = pages.get_page(request.GET.get("page"))
    context = {
        "version": version,
        "run": run,
        "only_without": only_without,
        "page_obj": page,
        "reviewed": [reviewed(response) for response in page],
        "query": "show=without" if only_without else "",
    }
    return render(request, "calibration/run_claims.html", context)


def response_of(person, slug, number, pk):
    version = version_of(person, slug, number)
    found = Response.objects.select_related("item", "run__system", "version__evalset")
    return version, get_object_or_404(found, pk=pk, version=version)


@require_safe
def response_claims(request, slug, number, pk):
    version, response = response_of(request.user, slug, number, pk)
    return _page(request, version, response, ClaimForm())


def _page(request, version, response, form, changing=None, status=200):
    shown = reviewed(response)
    context = {"version": version, "response": response, "run": response.run, "reviewed": shown}
    context |= {"form": form, "changing": changing}
    return render(request, "calibration/response_claims.html", context, status=status)


@require_POST
def add(request, slug, number, pk):
    version, response = response_of(request.user, slug, number, pk)
    form = ClaimForm(request.POST)
    if form.is_valid():
        try:
            claim = add_claim(response=response, text=form.cleaned_data["text"])
        except ClaimRefused as refused:
            form.add_error("text", str(refused))
        else:
            messages.success(request, _("Claim %(id)s was added.") % {"id": claim.claim_id})
            return redirect("calibration:response_claims", slug, number, pk)
    return _page(request, version, response, form, status=400)


def claim_of(person, slug, number, pk, claim):
    version, response = response_of(person, slug, number, pk)
    claims = Claim.objects.select_related("response__run__system").filter(parent__isnull=True)
    return version, response, get_object_or_404(claims, pk=claim, response=response)


@require_POST
def change(request, slug, number, pk, claim):
    version, response, claim = claim_of(request.user, slug, number, pk, claim)
    form = ClaimForm(request.POST)
    if form.is_valid():
        try:
            change_claim(claim=claim, text=form.cleaned_data["text"], was=form.cleaned_data["was"])
        except ClaimRefused as refused:
            form.add_error("text", str(refused))
        else:
            messages.success(request, _("Claim %(id)s was changed.") % {"id": claim.claim_id})
            return redirect("calibration:response_claims", slug, number, pk)
    return _page(request, version, response, form, changing=claim.pk, status=400)


def _removed(claim):
    """With its text, so that it can be added again."""
    return _("Claim %(id)s was removed: %(text)s") % {"id": claim.claim_id, "text": claim.text}


@require_POST
def remove(request, slug, number, pk, claim):
    _version, _response, claim = claim_of(request.user, slug, number, pk, claim)
    try:
        remove_claim(claim=claim)
    except ClaimRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _removed(claim))
    return redirect("calibration:response_claims", slug, number, pk)
