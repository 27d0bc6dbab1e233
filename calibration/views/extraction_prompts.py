from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from annotate.access import labels_of
from calibration.extraction_prompts import (
    add_extraction_prompt,
    extraction_difference,
    extraction_trial,
    extraction_wordings_of,
)
from calibration.forms import ExtractionPromptForm, ExtractionTrialForm
from calibration.models import ExtractionPromptVersion
from calibration.services import Refused
from calibration.views.prompts import chosen_of


@require_safe
def extraction_prompts(request, slug, number):
    """One wording, what it changed, and the messages it makes of a response."""
    version = labels_of(request.user, slug, number)
    wordings = {wording.version: wording for wording in extraction_wordings_of(version.evalset)}
    shown = chosen_of(wordings, request.GET.get("prompt"))
    against = chosen_of(wordings, request.GET.get("against", "1"))
    form = ExtractionTrialForm(request.GET if "item" in request.GET else None, version=version)
    tried = form.cleaned_data["item"] if form.is_bound and form.is_valid() else None
    own = ExtractionPromptVersion.objects.filter(evalset=version.evalset, number=int(shown.version))
    context = {
        "version": version,
        "wordings": list(wordings.values()),
        "shown": shown,
        "against": against,
        "difference": extraction_difference(against, shown),
        "row": own.first(),
        "form": form,
        "trial": extraction_trial(wording=shown, response=tried) if tried else None,
    }
    status = 400 if form.errors else 200
    return render(request, "calibration/extraction_prompts.html", context, status=status)


@require_http_methods(["GET", "POST"])
def new_extraction_prompt(request, slug, number):
    version = labels_of(request.user, slug, number)
    wordings = {wording.version: wording for wording in extraction_wordings_of(version.evalset)}
    base = chosen_of(wordings, request.GET.get("from"))
    initial = {"system": base.system, "closing": base.closing}
    form = ExtractionPromptForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            made = add_extraction_prompt(evalset=version.evalset, person=request.user, **form.wording)
        except Refused as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request, _("Prompt version {n} can be chosen for a new extraction.").format(n=made)
            )
            return redirect("calibration:extraction_prompts", slug, number)
    status = 400 if form.errors else 200
    context = {"version": version, "form": form, "base": base}
    return render(request, "calibration/extraction_prompt_new.html", context, status=status)
