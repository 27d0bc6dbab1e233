import csv
import io

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.plan_forms import PlanForm
from calibration.plans import plan_of
from calibration.series_chart import mdd_curve, mdd_described


@require_safe
def plan(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = PlanForm(request.GET, version=version)
    context = {"version": version, "form": form, "query": request.GET.urlencode()}
    if not form.is_valid():
        return render(request, "calibration/plan.html", context, status=422)
    found = plan_of(form.question)
    context |= {
        "plan": found,
        "question": form.question,
        "command": form.command,
        "chart": figures.inline_svg(mdd_curve(found["curve"]), mdd_described(found["curve"])),
    }
    return render(request, "calibration/plan.html", context)


@require_safe
def plan_csv(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = PlanForm(request.GET, version=version)
    if not form.is_valid():
        return render(request, "calibration/plan.html", {"version": version, "form": form}, status=422)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["n", "smallest_difference", "by_people", "hours", "money"])
    for row in plan_of(form.question)["curve"]:
        writer.writerow([row["n"], row["mdd"], row["by_people"], row["cost"]["hours"], row["cost"]["money"]])
    headers = {"Content-Disposition": f'attachment; filename="plan-{slug}-{number}.csv"'}
    return HttpResponse(out.getvalue(), content_type="text/csv; charset=utf-8", headers=headers)
