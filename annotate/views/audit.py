"""Claim audit: a lead looks at a drawn sample of responses and says how well their claims were extracted."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate import keys, services
from annotate.access import audited_of
from annotate.auditing import audit_screen, samples_of
from annotate.forms import DrawAuditForm, FinishAuditedForm, MarkForm
from annotate.models import ClaimAudit
from annotate.queries import parts_around
from evalsets.access import version_of
from evalsets.models import Claim


@require_http_methods(["GET", "HEAD", "POST"])
def audits(request, slug, number):
    version = version_of(request.user, slug, number)
    initial = {"seed": services.new_seed(), "size": 30, "runs": version.runs.all()}
    form = DrawAuditForm(request.POST or None, version=version, initial=initial)
    if form.is_valid():
        try:
            sample = services.draw_audit(version=version, person=request.user, **form.cleaned_data)
        except services.Refused as refused:
            form.add_error(None, str(refused))
        else:
            messages.success(request, _drawn(sample.responses.count(), form.cleaned_data["size"]))
            return redirect("annotate:audits", slug, number)
    context = {"version": version, "samples": samples_of(version, request.user), "form": form}
    return render(request, "annotate/audits.html", context, status=400 if form.errors else 200)


def _drawn(drawn: int, asked: int) -> str:
    said = ngettext("%(n)s response is drawn.", "%(n)s responses are drawn.", drawn) % {"n": drawn}
    return said if drawn == asked else f"{said} {_('There are no more with text.')}"


@require_safe
def audited(request, slug, number, sample_number, position):
    audited = audited_of(request.user, slug, number, sample_number, position)
    claim = request.GET.get("claim", "")
    return _page(request, audited, claim=int(claim) if claim.isdecimal() else None)


@require_POST
def mark(request, slug, number, sample_number, position):
    audited = audited_of(request.user, slug, number, sample_number, position)
    form = MarkForm(request.POST)
    if not form.is_valid():
        return _page(request, audited, trouble=_("The mark did not arrive whole. Choose it again."))
    claim = get_object_or_404(Claim, pk=form.cleaned_data["claim"], response=audited.response_id)
    try:
        services.mark_claim(audited=audited, claim=claim, mark=form.cleaned_data["mark"])
    except services.Refused as refused:
        return _page(request, audited, trouble=str(refused))
    place = reverse("annotate:audited", args=[slug, number, sample_number, position])
    return redirect(f"{place}#now")


@require_POST
def finish(request, slug, number, sample_number, position):
    audited = audited_of(request.user, slug, number, sample_number, position)
    form = FinishAuditedForm(request.POST)
    if not form.is_valid():
        return _page(request, audited, form=form, status=400)
    try:
        services.finish_audited(audited=audited, person=request.user, **form.cleaned_data)
    except services.Refused as refused:
        return _page(request, audited, trouble=str(refused))
    following = audit_screen(audited, request.user).progress.next_position
    if following is None:
        messages.success(request, _("That was the last one that is left for you in this sample."))
        return redirect("annotate:audits", slug, number)
    messages.success(request, _("Response %(n)s is saved.") % {"n": position})
    return redirect("annotate:audited", slug, number, sample_number, following)


def _page(request, audited, *, claim=None, form=None, trouble="", status=200):
    screen = audit_screen(audited, request.user, claim)
    response, marks = audited.response, ClaimAudit.Mark.choices
    asking = "mark" if screen.now else "finish"
    table = keys.AUDITING[asking] if asking == "finish" else (*keys.mark_keys(marks), *keys.AUDITING[asking])
    earlier = [marked.claim.text for marked in screen.claims[: screen.now.number - 1]] if screen.now else []
    context = {
        "version": audited.sample.version,
        "screen": screen,
        "audited": audited,
        "response": response,
        "parts": parts_around(response.text, earlier, screen.now.claim.text if screen.now else ""),
        "marks": [(value, says, keys.MARKS[value]) for value, says in marks],
        "form": form or FinishAuditedForm(initial={"missing": audited.missing, "note": audited.note}),
        "trouble": trouble,
        "key_table": table,
        "key_data": keys.as_data(table),
    }
    return render(request, "annotate/audited.html", context, status=400 if trouble else status)
