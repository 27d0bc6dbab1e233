"""What the pages of a judge run and of an extraction have in common: progress, stop, resume, and the rows."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _

from annotate.access import labels_of
from calibration.forms import BudgetForm, VerdictFilter
from calibration.queries import progress_of
from calibration.services import Refused, stop_run

PAGE = 50


def run_of(runs, person, slug, number, run):
    """Version and run, for a lead who may see what a judge said."""
    version = labels_of(person, slug, number)
    found = runs.select_related("judge", "version__evalset", "endpoint", "rubric_version__rubric")
    return version, get_object_or_404(found, version=version, number=run)


def live(version, run, places):
    """What `_judge_progress.html` needs; `places` names its addresses."""
    names = ("budget_calls", "budget_tokens", "budget_money")
    return {
        "version": version,
        "run": run,
        "progress": progress_of(run),
        "budget_form": BudgetForm(initial={name: getattr(run, name) for name in names}),
        "places": places,
    }


def stop_and_return(request, run, places):
    stop_run(run=run)
    messages.info(request, _("No more calls are started. Calls under way end and count."))
    return return_to(run, places)


def resume_and_return(request, run, places, *, resume):
    """`resume` is the service that does it."""
    form = BudgetForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("A budget is a number above zero; nothing was changed."))
        return return_to(run, places)
    given = form.budget if any(form.cleaned_data.values()) else None
    try:
        resume(run=run, retry_failed="retry_failed" in request.POST, budget=given)
    except Refused as error:
        messages.error(request, str(error))
    return return_to(run, places)


def return_to(run, places):
    return redirect(places["page"], run.version.evalset.slug, run.version.number, run.number)


def rows_of(run, asked):
    """One page of a run's verdicts, as the query string asks for them."""
    form = VerdictFilter(asked)
    chosen = {name: value for name, value in form.cleaned_data.items() if value} if form.is_valid() else {}
    found = (
        run.verdicts.filter(**chosen)
        .select_related("response__item", "claim")
        .prefetch_related("calls")
        .order_by("pk")
    )
    query = asked.copy()
    query.pop("page", None)
    return {
        "run": run,
        "form": form,
        "page_obj": Paginator(found, PAGE).get_page(asked.get("page")),
        "query": query.urlencode(),
    }
