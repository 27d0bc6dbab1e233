from django.contrib import messages
from django.db.models import Count
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.series_chart import series_csv, series_described, time_series
from calibration.views.exchange import within_the_limit
from calibration.watch_forms import BatchForm, MarkForm, WatchForm
from calibration.watch_series import asked_of, series_of
from calibration.watches import (
    WatchRefused,
    add_mark,
    dates_without_batch,
    import_batch,
    judge_batches,
    open_watch,
    remove_mark,
)
from evalsets.importing import ImportRefused

DAYS_SHOWN = 35  # the two windows of the step test; the CSV file has them all


@require_http_methods(["GET", "HEAD", "POST"])
def watches(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = WatchForm(request.POST or None, version=version)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = open_watch(
                version=version,
                name=given["name"],
                judge=given["judge"],
                minimum=given["points"] / 100,
                person=request.user,
            )
        except WatchRefused as error:
            form.add_error("name", str(error))
        else:
            return redirect("calibration:watch", slug, number, made.name)
    context = {"version": version, "form": form, "watches": version.watches.select_related("judge")}
    status = 422 if form.is_bound else 200
    return render(request, "calibration/watches.html", context, status=status)


def watch_of(request, slug, number, watch):
    version = labels_of(request.user, slug, number)
    return get_object_or_404(version.watches.select_related("judge", "version__evalset"), name=watch)


@require_safe
def watch(request, slug, number, watch):
    return _page(request, watch_of(request, slug, number, watch))


def _page(request, found, *, batch_form=None, mark_form=None, problems=None, left_out=0, status=200):
    asked = asked_of(found)
    series, marks = series_of(found, asked), list(found.marks.all())
    batches = list(found.batches.annotate(n_responses=Count("material__responses")).order_by("date"))
    context = {
        "version": found.version,
        "watch": found,
        "batches": batches,
        "gaps": dates_without_batch(batches),
        "series": series,
        "rows": _rows(batches, series),
        "withheld": [one for one in asked if one.withheld],
        "chart": any(one.points for one in series)
        and figures.inline_svg(time_series(series, marks), series_described(series)),
        "kinds": ("svg", "png", "csv"),
        "marks": marks,
        "batch_form": batch_form or BatchForm(),
        "mark_form": mark_form or MarkForm(),
        "problems": problems,
        "left_out": left_out,
    }
    return render(request, "calibration/watch.html", context, status=status)


def _rows(batches, series):
    """The latest days first: each batch with its day and share in every series."""
    shown = list(reversed(batches))[:DAYS_SHOWN]
    found = [
        {day.date: (day, share and share.as_dict()) for day, share in zip(one.days, one.shares, strict=True)}
        for one in series
    ]
    return [{"batch": batch, "cells": [days.get(batch.date) for days in found]} for batch in shown]


@within_the_limit
@require_POST
def add_batch(request, slug, number, watch):
    found = watch_of(request, slug, number, watch)
    form = BatchForm(request.POST, request.FILES)
    if not form.is_valid():
        return _page(request, found, batch_form=form, status=422)
    given = form.cleaned_data
    try:
        batch, imported = import_batch(
            watch=found,
            stream=given["file"].file,
            filename=given["file"].name,
            date=given["date"],
            person=request.user,
        )
    except ImportRefused as refused:
        return _page(
            request, found, batch_form=form, problems=refused.problems, left_out=refused.left_out, status=422
        )
    for words in told_of_batch(batch, imported):
        messages.success(request, words)
    return redirect("calibration:watch", slug, number, watch)


def told_of_batch(batch, imported):
    if imported is None:
        return [_("This file is the batch of {date} already: nothing was done.").format(date=batch.date)]
    words = _("{date}: {responses} responses, {claims} claims.").format(date=batch.date, **imported.counts)
    return [words, *imported.notices]


@require_POST
def judge_again(request, slug, number, watch):
    found = watch_of(request, slug, number, watch)
    asked, not_asked = judge_batches(watch=found)
    messages.info(
        request,
        _("{asked} batches are put to the judge; for {not_asked} it is not trusted.").format(
            asked=asked, not_asked=not_asked
        ),
    )
    return redirect("calibration:watch", slug, number, watch)


@require_POST
def mark(request, slug, number, watch):
    found = watch_of(request, slug, number, watch)
    form = MarkForm(request.POST)
    if not form.is_valid():
        return _page(request, found, mark_form=form, status=422)
    add_mark(watch=found, person=request.user, **form.cleaned_data)
    return redirect("calibration:watch", slug, number, watch)


@require_POST
def unmark(request, slug, number, watch, mark):
    found = watch_of(request, slug, number, watch)
    remove_mark(mark=get_object_or_404(found.marks, pk=mark))
    return redirect("calibration:watch", slug, number, watch)


@require_safe
def watch_chart(request, slug, number, watch, kind):
    found = watch_of(request, slug, number, watch)
    series, marks = series_of(found), list(found.marks.all())
    if kind == "csv":
        content, mime = series_csv(series), "text/csv; charset=utf-8"
    elif kind in ("svg", "png") and any(one.points for one in series):
        draw = figures.svg if kind == "svg" else figures.png
        content, mime = draw(time_series(series, marks)), "image/svg+xml" if kind == "svg" else "image/png"
    else:
        raise Http404
    name = f"watch-{found.name}.{kind}"
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
