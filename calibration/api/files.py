"""Files in: eval sets, versions, responses, labels, and draws from a traffic log.

Each is read and checked to its end before anything is written (see `once_after`).
"""

from django.urls import reverse
from rest_framework.response import Response

from annotate import services
from annotate.access import labels_of
from annotate.api.behind import BehindTheDoor
from calibration import exchange, file_serializers
from calibration.facts import sample_facts
from calibration.label_files import check_labels, store_labels
from evalsets import serializers
from evalsets.access import LEAD, evalset_of, version_of
from evalsets.api import views as evalsets
from evalsets.api.base import ApiView, ListView, Scope, once_after
from evalsets.api.bodies import FILE_PARSERS, FormWithFile
from evalsets.traffic import draw_sample, store_sample

TAG = "files"


def given_file(view, request, form) -> dict:
    """File and choices: of the form, and of the query with a bare file."""
    given = view.body(request, form)
    file = given.pop("file")
    return given | view.asked | {"stream": file.file, "filename": file.name}


def checked_evalset(given: dict, *, name: str) -> dict:
    """What to store, once it has been read to its end."""
    source = {"stream": given.pop("stream"), "filename": given.pop("filename")}
    checked = exchange.check_evalset(**source, name=name, with_labels=given["with_labels"])
    return {"given": given | {"name": name, "checked": checked}}


class Imports(ApiView):
    """A file as a new eval set, or as the next version (a draft) of the one that has this name."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = [FormWithFile]
    takes = {"POST": serializers.NamedFileToImport}
    answers = {"POST": {201: serializers.ImportedFile}}

    def read(self, request):
        given = given_file(self, request, serializers.NamedFileToImport)
        return checked_evalset(given, name=given.pop("name"))

    @once_after(read)
    def post(self, request, given):
        told = exchange.store_evalset(**given, person=request.user)
        where = reverse("evalsets_api:version", args=[told["evalset"], told["version"]])
        return Response(told, status=201, headers={"Location": where})


class Versions(evalsets.Versions):
    """Newest first. POST imports a file as the next version, a draft."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = FILE_PARSERS
    asks = {"POST": serializers.FileQuery}
    takes = {"POST": serializers.FileToImport}
    answers = {"POST": {201: serializers.ImportedFile}}

    def read(self, request, slug):
        evalset = evalset_of(request.user, slug, LEAD)
        return checked_evalset(given_file(self, request, serializers.FileToImport), name=evalset.slug)

    @once_after(read)
    def post(self, request, slug, given):
        told = exchange.store_evalset(**given, person=request.user)
        where = reverse("evalsets_api:version", args=[slug, told["version"]])
        return Response(told, status=201, headers={"Location": where})


class Runs(ListView):
    """The system runs of a version. POST adds the responses of a file: a run for each of its systems."""

    tag, writes, row = TAG, Scope.IMPORT, serializers.RunRow
    ordering = "number"
    parser_classes = FILE_PARSERS
    asks = {"GET": serializers.RunQuery, "POST": serializers.FileQuery}
    takes = {"POST": serializers.FileToImport}
    answers = {"POST": {201: serializers.ImportedResponses}}

    def rows(self):
        version = version_of(self.request.user, self.kwargs["slug"], self.kwargs["number"])
        return version.runs.filter(**self.asked).select_related("system")

    def read(self, request, slug, number):
        version = version_of(request.user, slug, number)
        given = given_file(self, request, serializers.FileToImport) | {"version": version}
        source = {"stream": given.pop("stream"), "filename": given.pop("filename"), "version": version}
        checked = exchange.check_responses(**source, with_labels=given["with_labels"])
        return {"given": given | {"checked": checked}}

    @once_after(read)
    def post(self, request, slug, number, given):
        told = exchange.store_responses(**given)
        where = reverse("evalsets_api:run", args=[slug, number, told["run"]])
        return Response(told, status=201, headers={"Location": where})


class Labels(BehindTheDoor):
    """Labels of a file for responses that are there: item or response, claim, grader and label in each line.

    A refusal may name a label that is there from an earlier import.
    """

    tag, writes = TAG, Scope.IMPORT
    parser_classes = FILE_PARSERS
    asks = {"POST": file_serializers.LabelFileQuery}
    takes = {"POST": file_serializers.LabelFile}
    answers = {"POST": {201: file_serializers.ImportedLabels}}

    def read(self, request, slug, number):
        version = labels_of(request.user, slug, number)
        given = given_file(self, request, file_serializers.LabelFile) | {"version": version}
        dry_run = given.pop("dry_run")
        return {"given": {"read": check_labels(**given), "version": given["version"], "dry_run": dry_run}}

    @once_after(read)
    def post(self, request, slug, number, given):
        return Response(store_labels(**given), status=201)


class Samples(ApiView):
    """A seeded, balanced draw from a traffic log, as a draft version. With `dry_run` it is only shown."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = [FormWithFile]
    takes = {"POST": file_serializers.LogToSample}
    answers = {"POST": {200: file_serializers.DrawnSample, 201: file_serializers.DrawnSample}}

    def read(self, request):
        given = given_file(self, request, file_serializers.LogToSample)
        given.setdefault("seed", services.new_seed())
        stored = {"name": given.pop("name"), "dry_run": given.pop("dry_run")}
        return stored | {"sample": draw_sample(**given)}

    @once_after(read)
    def post(self, request, name, dry_run, sample):
        if dry_run:
            return Response(sample_facts(sample, version=None))
        drawn = {"content": sample.content, "source_name": sample.source_name}
        version = store_sample(**drawn, name=name, person=request.user)
        where = reverse("evalsets_api:version", args=[version.evalset.slug, version.number])
        return Response(sample_facts(sample, version=version), status=201, headers={"Location": where})
