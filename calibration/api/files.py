"""Files in: eval sets, versions, responses. Files out: the native file again."""

from django.urls import reverse
from rest_framework.response import Response

from calibration import exchange
from evalsets import serializers
from evalsets.access import LEAD, evalset_of, version_of
from evalsets.api import views as evalsets
from evalsets.api.base import ApiView, ListView, Scope, once
from evalsets.api.bodies import FILE_PARSERS, FormWithFile

TAG = "files"


def _given_file(view, request, form) -> dict:
    """File and choices: of the form, and of the query with a bare file."""
    given = view.body(request, form)
    file = given.pop("file")
    return given | view.asked | {"stream": file.file, "filename": file.name}


class Imports(ApiView):
    """A file as a new eval set, or as the next version (a draft) of the one that has this name."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = [FormWithFile]
    takes = {"POST": serializers.NamedFileToImport}
    answers = {"POST": {201: serializers.ImportedFile}}

    @once
    def post(self, request):
        given = _given_file(self, request, serializers.NamedFileToImport)
        told = exchange.import_evalset(**given, person=request.user)
        where = reverse("evalsets_api:version", args=[told["evalset"], told["version"]])
        return Response(told, status=201, headers={"Location": where})


class Versions(evalsets.Versions):
    """Newest first. POST imports a file as the next version, a draft."""

    tag, writes = TAG, Scope.IMPORT
    parser_classes = FILE_PARSERS
    asks = {"POST": serializers.FileQuery}
    takes = {"POST": serializers.FileToImport}
    answers = {"POST": {201: serializers.ImportedFile}}

    @once
    def post(self, request, slug):
        evalset = evalset_of(request.user, slug, LEAD)
        given = _given_file(self, request, serializers.FileToImport)
        told = exchange.import_evalset(**given, name=evalset.slug, person=request.user)
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

    @once
    def post(self, request, slug, number):
        version = version_of(request.user, slug, number)
        given = _given_file(self, request, serializers.FileToImport)
        told = exchange.import_responses(**given, version=version)
        where = reverse("evalsets_api:run", args=[slug, number, told["run"]])
        return Response(told, status=201, headers={"Location": where})
