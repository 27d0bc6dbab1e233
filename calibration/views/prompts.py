from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotate.access import labels_of
from calibration.forms import PromptForm, TrialForm
from calibration.models import PromptVersion
from calibration.prompt_versions import add_prompt_version, difference, trial, wordings_of
from calibration.services import Refused, rubric_in_force


@require_safe
def prompts(request, slug, number):
    """One wording, what it changed, and the messages it makes of a target."""
    version = labels_of(request.user, slug, number)
    wordings = {wording.version: wording for wording in wordings_of(version.evalset)}
    shown = chosen_of(wordings, request.GET.get("prompt"))
    against = chosen_of(wordings, request.GET.get("against", "1"))
    form = TrialForm(request.GET if "item" in request.GET else None, version=version)
    context = {
        "version": version,
        "wordings": list(wordings.values()),
        "shown": shown,
        "against": against,
        "difference": difference(against, shown),
        "row": PromptVersion.objects.filter(evalset=version.evalset, number=int(shown.version)).first(),
        "form": form,
        "trial": _trial(form, version, shown.version),
    }
    status = 400 if form.is_bound and form.errors else 200
    return render(request, "calibration/prompts.html", context, status=status)


def chosen_of(wordings, version):
    """The newest one where none is named."""
    found = wordings.get(version or next(reversed(wordings)))
    if found is None:
        raise Http404
    return found


def _trial(form, version, wording):
    if not form.is_bound or not form.is_valid():
        return None
    try:
        return trial(
            rubric_version=rubric_in_force(version),
            evalset=version.evalset,
            version=wording,
            response=form.cleaned_data["response"],
            claim=form.cleaned_data["claim"],
            dimension=form.cleaned_data["dimension"],
            only_cited=form.cleaned_data["only_cited"],
        )
    except Refused as error:
        form.add_error("dimension", str(error))
        return None


@require_http_methods(["GET", "POST"])
def new_prompt(request, slug, number):
    version = labels_of(request.user, slug, number)
    wordings = {wording.version: wording for wording in wordings_of(version.evalset)}
    base = chosen_of(wordings, request.GET.get("from"))
    form = PromptForm(request.POST or None, initial=PromptForm.initial_of(base))
    if request.method == "POST" and form.is_valid():
        try:
            made = add_prompt_version(evalset=version.evalset, person=request.user, **form.wording)
        except Refused as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _("Prompt version {n} can be chosen for a new judge.").format(n=made))
            return redirect("calibration:prompts", slug, number)
    status = 400 if form.errors else 200
    context = {"version": version, "form": form, "base": base}
    return render(request, "calibration/prompt_new.html", context, status=status)
