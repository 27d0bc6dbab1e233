"""The pages of an eval set: its versions, what is in them, freezing, and who belongs to it."""

from django.contrib import messages
from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evalsets import queries, services
from evalsets.access import LEAD, evalset_of, has_role, version_of
from evalsets.forms import FreezeForm, MemberForm


@require_safe
def evalset(request, slug):
    found = evalset_of(request.user, slug, LEAD)
    context = {"evalset": found, "versions": queries.versions_of(found), "members": queries.members_of(found)}
    return render(request, "evalsets/evalset.html", context)


@require_safe
def version(request, slug, number):
    found = version_of(request.user, slug, number)
    runs = queries.runs_of(found)
    context = {
        "version": found,
        "composition": queries.composition(found),
        "runs": runs,
        "steps": queries.next_steps(found, runs),
    }
    return render(request, "evalsets/version.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def freeze(request, slug, number):
    found = version_of(request.user, slug, number)
    form = FreezeForm(request.POST or None, initial={"primary_unit": found.primary_unit})
    if request.method == "POST" and form.is_valid():
        services.freeze_version(
            version=found, person=request.user, primary_unit=form.cleaned_data["primary_unit"]
        )
        messages.success(request, _("Version %(number)d is frozen.") % {"number": found.number})
        return redirect("evalsets:version", slug, number)
    context = {"version": found, "form": form, "composition": queries.composition(found)}
    return render(request, "evalsets/freeze.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def freeze_run(request, slug, number, run_number):
    found = version_of(request.user, slug, number)
    run = get_object_or_404(found.runs.select_related("system"), number=run_number)
    context = {"version": found, "run": run}
    if request.method == "POST":
        try:
            services.freeze_run(run=run)
        except services.NotYet as why:
            return render(request, "evalsets/freeze_run.html", context | {"trouble": str(why)}, status=409)
        messages.success(request, _("Run %(number)d is frozen.") % {"number": run.number})
        return redirect("evalsets:version", slug, number)
    return render(request, "evalsets/freeze_run.html", context)


@require_POST
def freeze_runs(request, slug, number):
    found = version_of(request.user, slug, number)
    try:
        frozen = services.freeze_runs(version=found)
    except services.NotYet as why:
        messages.error(request, str(why))
    else:
        messages.success(request, _("%(n)d runs are frozen.") % {"n": len(frozen)})
    return redirect("evalsets:version", slug, number)


@require_safe
def items(request, slug, number):
    found = version_of(request.user, slug, number)
    search = request.GET.get("q", "").replace("\0", "").strip()[:200]
    page = queries.items_page(found, number=request.GET.get("page"), search=search)
    context = {
        "version": found,
        "page_obj": page,
        "search": search,
        "query": urlencode({"q": search}) if search else "",
    }
    return render(request, "evalsets/items.html", context)


@require_safe
def response(request, slug, number, pk):
    found = version_of(request.user, slug, number)
    shown = queries.response_in(found, pk)
    if shown is None:
        raise Http404
    context = {"version": found, "response": shown, "neighbours": queries.neighbours_of(shown)}
    return render(request, "evalsets/response.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
def members(request, slug):
    found = evalset_of(request.user, slug, LEAD)
    form = MemberForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        person, role = form.cleaned_data["username"], form.cleaned_data["role"]
        services.add_member(evalset=found, person=person, role=role)
        messages.success(request, _("%(person)s was added.") % {"person": person})
        return redirect("evalsets:members", slug)
    context = {"evalset": found, "members": queries.members_of(found), "form": form}
    return render(request, "evalsets/members.html", context)


@require_POST
def remove_member(request, slug, pk):
    found = evalset_of(request.user, slug, LEAD)
    membership = get_object_or_404(found.memberships.select_related("person"), pk=pk)
    try:
        services.remove_member(membership=membership)
    except services.LastLead as error:
        messages.error(request, str(error))
    else:
        removed = {"person": membership.person, "role": membership.get_role_display()}
        messages.success(request, _("%(person)s is no longer %(role)s here.") % removed)
    return redirect("evalsets:members", slug) if has_role(request.user, found, LEAD) else redirect("home")
