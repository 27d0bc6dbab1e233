"""The OpenAPI document, written from what each address says about itself."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from evalsets.api.bodies import BareFile, FormWithFile
from evalsets.api.problems import CONTENT_TYPE

BYTES = {"type": "string", "format": "binary"}
WRITING = ("POST", "PUT", "PATCH", "DELETE")


class ProblemError(serializers.Serializer):
    line = serializers.IntegerField(allow_null=True, help_text="Of the file, from 1.")
    field = serializers.CharField(allow_blank=True)
    message = serializers.CharField()
    value = serializers.CharField(allow_blank=True, help_text="The first 80 characters of what stood there.")


class Problem(serializers.Serializer):
    """A problem document (RFC 9457). `type` ends with a code where the kind matters to a program."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField(allow_blank=True)
    errors = ProblemError(many=True)


PROBLEMS = {
    400: "Query or body is not as described.",
    401: "No valid token and no session.",
    403: "The token lacks the scope, or labels are closed to somebody who still grades.",
    404: "It is not there, or not yours.",
    406: "Only JSON is answered.",
    409: "The state of things does not allow it; the detail says why.",
    413: "The body is too large.",
    415: "The body has a content type that is not read.",
    422: "The file is refused, line by line; or the Idempotency-Key came with another request.",
    429: "Too many requests in a minute.",
}
KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},  # spaces around a header are not of it
    OpenApiParameter.HEADER,
    description="The same key with the same request is answered the same, and done once. Kept for two days.",
)


class Described(AutoSchema):
    def get_tags(self) -> list[str]:
        return [self.view.tag] if getattr(self.view, "tag", "") else super().get_tags()

    def get_override_parameters(self) -> list[Any]:
        forms = self.view.query_forms(self.method) if hasattr(self.view, "query_forms") else []
        return [*forms, *([KEY] if self.method in WRITING else [])]

    def _get_pagination_parameters(self) -> list[Any]:
        return []  # the forms of the query say it

    def _get_filter_parameters(self) -> list[Any]:
        return []

    def _is_list_view(self, serializer: Any = None) -> bool:
        return self.method == "GET" and getattr(self.view, "many", False)

    def get_request_serializer(self) -> Any:
        """A bare file is its bytes; as a form it has fields beside it."""
        taken = getattr(self.view, "takes", {}).get(self.method)
        bare = [parser.media_type for parser in self.view.parser_classes if issubclass(parser, BareFile)]
        if not (taken and bare):
            return taken
        return {FormWithFile.media_type: taken} | dict.fromkeys(bare, BYTES)

    def get_response_serializers(self) -> Any:
        given = getattr(self.view, "answers", {}).get(self.method)
        if given is None and self.method == "GET" and getattr(self.view, "many", False):
            given = self.view.row
        answers = given if isinstance(given, dict) else {200: given}
        return answers | {
            (status, CONTENT_TYPE): OpenApiResponse(Problem, PROBLEMS[status]) for status in self._problems()
        }

    def _problems(self) -> list[int]:
        found = {400, 401, 403, 404, 406, 409, 429}
        if self.method in WRITING:
            found |= {413, 415, 422}
        return sorted(found)


class BearerScheme(OpenApiAuthenticationExtension):
    target_class = "evalsets.api.authentication.Token"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer"}


class TextSchema(OpenApiSerializerFieldExtension):
    """Says what the database cannot store."""

    target_class = "evalsets.fields.Text"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        schema = auto_schema._map_serializer_field(self.target, direction, bypass_extensions=True)
        if direction == "request" and "enum" not in schema:
            schema = schema | {"pattern": "^[^\\u0000]*$"}
            if not self.target.allow_blank:
                schema["minLength"] = 1
        return schema


def refuse_unknown_fields(result: dict[str, Any], generator: Any, request: Any, public: bool) -> Any:
    """Bodies hold the fields that are named, and no other: the API answers those with an error."""
    for name, component in result.get("components", {}).get("schemas", {}).items():
        if name.endswith("Request"):
            component["additionalProperties"] = False
    return result
