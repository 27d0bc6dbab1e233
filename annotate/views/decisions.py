"""The log of the lead's decisions, to read, to print and to take away."""

import csv

from django.core.paginator import Paginator
from django.http import StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from annotate.decisions import DecisionLog, as_rows

PER_PAGE = 100


@require_safe
def log(request, slug, number):
    version = labels_of(request.user, slug, number)
    entries = DecisionLog(version)
    whole = request.GET.get("all") == "1"
    pages = Paginator(entries, max(len(entries), 1) if whole else PER_PAGE)
    # The latest are on the last page, where a reader of a log begins.
    page = pages.get_page(request.GET.get("page", pages.num_pages))
    context = {"version": version, "page_obj": page, "whole": whole, "total": len(entries)}
    return render(request, "annotate/decisions.html", context)


@require_safe
def log_csv(request, slug, number):
    version = labels_of(request.user, slug, number)
    writer = csv.writer(_Echo())
    lines = (writer.writerow(row) for row in as_rows(DecisionLog(version)))
    name = f"decisions-{slug}-{number}.csv"
    return StreamingHttpResponse(
        lines,
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


class _Echo:
    """Hands back what is written, so that a long log leaves line by line."""

    def write(self, line: str) -> str:
        return line
