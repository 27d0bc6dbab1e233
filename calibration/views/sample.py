from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from calibration.sample_forms import SampleForm, StoreForm, carried
from calibration.views.exchange import within_the_limit
from evalsets.importing import ImportRefused
from evalsets.traffic import lacks
from evalsets.traffic import store_sample as store

PROBLEMS_SHOWN = 10


@within_the_limit
@require_http_methods(["GET", "HEAD", "POST"])
def sample(request):
    """The first step: what the log holds and what would be drawn. Nothing is stored."""
    form = SampleForm(request.POST or None, request.FILES or None)
    if request.method != "POST" or not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "calibration/sample.html", {"form": form}, status=status)
    try:
        found = form.draw()
    except ImportRefused as refused:
        context = {"form": form, "problems": refused.problems, "left_out": refused.left_out}
        return render(request, "calibration/sample.html", context, status=422)
    context = {
        "form": form,
        "sample": found,
        "lacks": lacks(found),
        "unreadable": found.log.problems[:PROBLEMS_SHOWN],
        "store": StoreForm(initial={"name": form.cleaned_data["name"], "drawn": carried(found)}),
    }
    return render(request, "calibration/sample.html", context)


@require_POST
def store_sample(request):
    """The second step: the draw that was shown, as a draft version."""
    form = StoreForm(request.POST)
    if not form.is_valid():
        for errors in form.errors.values():
            messages.error(request, " ".join(errors))
        return redirect("calibration:sample")
    drawn = form.cleaned_data["drawn"]
    try:
        version = store(
            content=drawn["content"].encode(),
            source_name=drawn["source"],
            name=form.cleaned_data["name"],
            person=request.user,
        )
    except ImportRefused as refused:
        messages.error(request, "; ".join(str(problem) for problem in refused.problems[:3]))
        return redirect("calibration:sample")
    messages.success(request, _("The drawn items are a draft version: look at them, then freeze it."))
    return redirect("evalsets:version", version.evalset.slug, version.number)
