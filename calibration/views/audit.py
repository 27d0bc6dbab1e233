"""What the claim audits say. The figures hold no label, so a lead who still grades may read them."""

from django.core.paginator import Paginator
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.auditing import faulty_claims, samples_of
from calibration.extraction import extraction_of
from evalsets.access import version_of

PER_PAGE = 50


@require_safe
def extraction(request, slug, number):
    version = version_of(request.user, slug, number)
    runs = list(version.runs.select_related("system").order_by("number"))
    found = extraction_of(runs)
    faulty = Paginator(faulty_claims(runs, request.user, version), PER_PAGE)
    marked = sum(count for mark, count in found["marks"].items() if mark != "well_split")
    context = {
        "version": version,
        "figures": found,
        "samples": samples_of(version, request.user),
        "page_obj": faulty.get_page(request.GET.get("page")),
        "closed": marked - faulty.count,
    }
    return render(request, "calibration/extraction.html", context)
