"""Watches over production: open one, send a day's responses, read the series, mark what happened."""

from datetime import date as Date

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import watch_serializers as serializers
from calibration.api.files import given_file
from calibration.models import Judge, Watch
from calibration.watch_facts import days_of, series_facts
from calibration.watch_forms import MarkForm, WatchForm
from calibration.watches import (
    add_mark,
    check_batch,
    dates_without_batch,
    judge_batches,
    open_watch,
    remove_mark,
    store_batch,
)
from evalsets.api.base import ApiView, ListView, Scope, once, once_after
from evalsets.api.bodies import FILE_PARSERS
from evalsets.api.paging import NumberedPages
from evalsets.api.problems import Refusal
from evalsets.fields import Day

TAG = "watches"


class Watches(BehindTheDoor, ListView):
    """The watches on this version, by name. POST opens one: a judge that is calibrated here is asked."""

    tag, writes, row = TAG, Scope.JUDGE, serializers.WatchRow
    pagination_class = NumberedPages
    takes = {"POST": serializers.NewWatch}
    answers = {"POST": {201: serializers.WatchRow}}

    def rows(self):
        version = labels_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return version.watches.select_related("judge", "created_by")

    @once
    def post(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = self.body(request, serializers.NewWatch)
        form = _form_of(version, given)
        if not form.is_valid():
            raise Refusal.of_form(form)
        chosen = {name: form.cleaned_data[name] for name in ("name", "judge")}
        made = open_watch(version=version, **chosen, minimum=given["minimum"], person=request.user)
        where = reverse("calibration_api:watch", args=[slug, number, made.name])
        return Response(serializers.WatchRow(made).data, status=201, headers={"Location": where})


def _form_of(version, given) -> WatchForm:
    """The form of the page; a judge goes by name here."""
    named = Judge.objects.filter(evalset=version.evalset, name=given.get("judge")).first()
    judge = named.pk if named else given.get("judge")
    return WatchForm(
        {"name": given["name"], "judge": judge, "points": 100 * given["minimum"]}, version=version
    )


def watch_of(person, slug, number, watch) -> Watch:
    version = labels_of(person, slug, number)
    found = version.watches.select_related("judge", "version__evalset", "material", "created_by")
    return get_object_or_404(found, name=watch)


class OneWatch(ApiView):
    """From when to when it has days, and how many are missing."""

    tag = TAG
    answers = {"GET": serializers.WatchWhole}

    def get(self, request, slug, number, watch):
        found = watch_of(request.user, slug, number, watch)
        days = list(found.batches.order_by("date"))
        found.n_batches, found.days_without_batch = len(days), dates_without_batch(days)
        found.first_date = days[0].date if days else None
        found.last_date = days[-1].date if days else None
        return Response(serializers.WatchWhole(found).data)


class Series(ApiView):
    """Shares of responses by day, with intervals, limits and the step test; why a judge has none."""

    tag = TAG
    answers = {"GET": serializers.SeriesWhole}

    def get(self, request, slug, number, watch):
        return Response(series_facts(watch_of(request.user, slug, number, watch)))


class Batches(ListView):
    """The days in the order in which they came, each with who was asked about it."""

    tag, row = TAG, serializers.BatchRow

    def rows(self):
        place = self.kwargs
        return days_of(watch_of(self.request.user, place["slug"], place["number"], place["watch"]))


class Batch(BehindTheDoor):
    """A day. POST stores its responses, which are never changed again, and has the judges asked."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = FILE_PARSERS
    takes = {"POST": serializers.BatchFile}
    answers = {
        "GET": serializers.BatchRow,
        "POST": {200: serializers.ImportedBatch, 201: serializers.ImportedBatch},
    }

    def get(self, request, slug, number, watch, day):
        days = days_of(watch_of(request.user, slug, number, watch))
        return Response(serializers.BatchRow(get_object_or_404(days, date=_day(day))).data)

    def read(self, request, slug, number, watch, day):
        about = {"watch": watch_of(request.user, slug, number, watch), "date": _day(day)}
        checked = check_batch(**about, **given_file(self, request, serializers.BatchFile))
        return {"checked": about | {"batch": checked}}

    @once_after(read)
    def post(self, request, slug, number, watch, day, checked):
        batch, imported = store_batch(**checked, person=request.user)
        stored = days_of(batch.watch).get(pk=batch.pk)
        stored.notices = imported.notices if imported else []
        stored.counts = imported.counts if imported else None
        told = serializers.ImportedBatch(stored).data
        return Response(told, status=201 if imported else 200)


def _day(text) -> Date:
    try:
        return Day().run_validation(text)
    except ValidationError as error:
        raise Http404 from error


class JudgeAgain(BehindTheDoor):
    """The days for which the judge was not trusted, or failed to start, once more."""

    tag, writes = TAG, Scope.JUDGE
    answers = {"POST": serializers.JudgedAgain}

    @once
    def post(self, request, slug, number, watch):
        asked, not_asked = judge_batches(watch=watch_of(request.user, slug, number, watch))
        return Response({"asked": asked, "not_asked": not_asked})


class Marks(BehindTheDoor, ListView):
    """What happened, day by day: it is drawn into the series. The same twice is one."""

    tag, writes, row = TAG, Scope.IMPORT, serializers.MarkRow
    takes = {"POST": serializers.NewMark}
    answers = {"POST": {201: serializers.MarkRow}}

    def rows(self):
        place = self.kwargs
        return watch_of(self.request.user, place["slug"], place["number"], place["watch"]).marks.all()

    @once
    def post(self, request, slug, number, watch):
        found = watch_of(request.user, slug, number, watch)
        form = MarkForm(self.body(request, serializers.NewMark))
        if not form.is_valid():
            raise Refusal.of_form(form)
        made = add_mark(watch=found, person=request.user, **form.cleaned_data)
        return Response(serializers.MarkRow(made).data, status=201)


class Mark(BehindTheDoor):
    """DELETE takes it out of the series again."""

    tag, writes = TAG, Scope.IMPORT
    answers = {"GET": serializers.MarkRow, "DELETE": {204: None}}

    def get(self, request, slug, number, watch, mark):
        found = watch_of(request.user, slug, number, watch)
        return Response(serializers.MarkRow(get_object_or_404(found.marks, pk=mark)).data)

    @once
    def delete(self, request, slug, number, watch, mark):
        found = watch_of(request.user, slug, number, watch)
        remove_mark(mark=get_object_or_404(found.marks, pk=mark))
        return Response(status=204)
