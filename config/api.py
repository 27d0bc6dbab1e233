"""The API as a whole: its first page, its description, and the problem document for whatever goes wrong."""

from typing import ClassVar

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404, JsonResponse
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import bad_request, server_error
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer, OpenApiJsonRenderer2
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

import annotate.services
import calibration.services
import evalsets.services
from annotate.access import ClosedWhileGrading
from calibration.cases import NoDoubt
from calibration.design import BadDesign
from calibration.gold_export import NotExportable
from calibration.reports import NotReportable
from calibration.summaries import NotSummable
from calibration.thresholds import BadThresholds
from calibration.watches import WatchRefused
from evalsets.api.base import ApiView
from evalsets.api.problems import CONTENT_TYPE, Refusal, document, field_errors
from evalsets.importing import ImportRefused

ROOT = "/api/"
REFUSED = (
    annotate.services.Refused,
    calibration.services.Refused,
    evalsets.services.NotYet,
    NotExportable,
    NotReportable,
    NotSummable,
    NoDoubt,
    BadDesign,
    BadThresholds,
    WatchRefused,
)


def problem_of(exc: Exception, context: dict) -> Response | None:
    """What REST framework answers for an exception; None for a fault of our own."""
    request = context.get("request")
    told = _told(exc, request)
    if told is None:
        return None
    set_rollback()
    headers = {}
    if wait := getattr(exc, "wait", None):
        headers = {"Retry-After": str(int(wait) + 1)}
    if scheme := getattr(exc, "auth_header", None):
        headers = {"WWW-Authenticate": scheme}
    return Response(told, status=told["status"], headers=headers, content_type=CONTENT_TYPE)


def _told(exc: Exception, request) -> dict | None:
    match exc:
        case ClosedWhileGrading():
            return _closed(exc)
        case ImportRefused():
            problems = [problem.as_json() for problem in exc.problems]
            words = _("The file is refused, and nothing of it is stored.")
            more = {"problems_left_out": exc.left_out}
            return document(422, words, code="file-refused", errors=problems, **more)
        case Refusal():
            return document(exc.status_code, exc.detail, code=exc.get_codes(), errors=exc.errors)
        case exceptions.ValidationError():
            data = {**_query(request), **_body(request)}
            return document(400, _("The request is not as described."), errors=field_errors(exc.detail, data))
        case exceptions.APIException():
            return document(exc.status_code, exc.detail)
        case Http404():
            return document(404, _("It is not there, or it is not yours."))
        case PermissionDenied():
            return document(403, str(exc) or _("This is not allowed."))
        case RequestDataTooBig():
            return document(413, _("The body is too large."), code="too-large")
    if isinstance(exc, REFUSED):
        return document(409, str(exc), code="refused")
    return None


def _query(request) -> dict:
    return dict(request.query_params.items())


def _body(request) -> dict:
    try:
        return dict(request.data.items()) if hasattr(request.data, "items") else {}
    except exceptions.APIException:
        return {}


def _closed(exc: ClosedWhileGrading) -> dict:
    """The same that the page says."""
    words = _(
        "Labels, agreement, gold and verdicts are closed to you while you have unfinished assignments here."
    )
    if exc.second_look:
        words = _("Your earlier labels are closed to you until your second look at them is finished.")
    rounds = [
        {"evalset": round.version.evalset.slug, "version": round.version.number, "round": round.number}
        for round in exc.rounds
    ]
    return document(403, words, code="closed-while-grading", rounds=rounds)


class Start(ApiView):
    """Where to begin."""

    tag = "start"
    answers = {"GET": {200: {"type": "object", "additionalProperties": {"type": "string"}}}}

    def get(self, request):
        names = {
            "evalsets": "evalsets_api:evalsets",
            "imports": "calibration_api:imports",
            "samples": "calibration_api:samples",
            "schema": "api_schema",
        }
        return Response({name: request.build_absolute_uri(reverse(to)) for name, to in names.items()})


class Described(SchemaGenerator):
    """What is described hangs on the code and the language alone, and takes long to put together."""

    made: ClassVar[dict[str, dict]] = {}

    def get_schema(self, request=None, public=False):
        language = get_language()
        if language not in self.made:
            self.made[language] = super().get_schema(request, public)
        return self.made[language]


class WrittenOnce(OpenApiJsonRenderer):
    """The text of a description, which takes as long to write as the rest of the answer many times over."""

    written: ClassVar[dict[tuple, bytes]] = {}

    def render(self, data, accepted_media_type=None, renderer_context=None):
        language = get_language()
        if data is not Described.made.get(language):  # a refusal, or another language than the page's
            return super().render(data, accepted_media_type, renderer_context)
        way = language, self.get_indent(accepted_media_type, renderer_context or {})
        if way not in self.written:
            self.written[way] = super().render(data, accepted_media_type, renderer_context)
        return self.written[way]


class WrittenOnceAsJson(WrittenOnce):
    media_type = OpenApiJsonRenderer2.media_type


class Schema(SpectacularJSONAPIView):
    """This API as an OpenAPI document. Whoever may ask nothing may still read what could be asked."""

    renderer_classes = [WrittenOnce, WrittenOnceAsJson]
    generator_class = Described
    permission_classes = ()
    throttle_classes = ()
    serve_public = True


@csrf_exempt
@login_not_required  # a wrong address is a wrong address for everybody
def not_there(request):
    """Whatever no address of the API answers."""
    words = _("There is nothing at this address.")
    if not request.path.endswith("/"):
        words = _("There is nothing at this address. Every address ends with a slash.")
    return _plain(404, words)


def broken(request):
    """handler500: a document for programs, the page for people. Nothing of the fault is told."""
    if request.path.startswith(ROOT):
        return _plain(500, _("Something is wrong on our side; the log of the server has it."))
    return server_error(request)


def bad(request, exception=None):
    """handler400: a request that could not even be read."""
    if request.path.startswith(ROOT):
        return _plain(400, _("The request cannot be read."))
    return bad_request(request, exception)


def _plain(status: int, words: str) -> JsonResponse:
    return JsonResponse(document(status, words), status=status, content_type=CONTENT_TYPE)
