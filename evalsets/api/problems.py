"""Problem documents (RFC 9457): the one shape of everything that went wrong."""

from http import HTTPStatus
from typing import Any

from django.forms import Form
from rest_framework.exceptions import APIException

CONTENT_TYPE = "application/problem+json"
VALUE_LENGTH = 80

Figures = dict[str, Any]


class Refusal(APIException):
    """A request that is understood and not done. `code` names the kind for programs."""

    def __init__(self, status: int, code: str, detail: str, *, errors: list[Figures] | None = None):
        self.status_code, self.errors = status, errors or []
        super().__init__(detail, code)

    @classmethod
    def of_form(cls, form: Form) -> "Refusal":
        """What a form of the pages finds wrong with values that are well-formed."""
        errors = [
            error(message, field="" if name == "__all__" else name, value=form.data.get(name) or "")
            for name, messages in form.errors.items()
            for message in messages
        ]
        return cls(409, "refused", " ".join(found["message"] for found in errors), errors=errors)


def document(
    status: int, detail: str = "", *, code: str = "", errors: list[Figures] | None = None, **more: Any
) -> Figures:
    """The JSON object; `errors` tell line, field, value and message where these are known."""
    return {
        "type": f"urn:touchstone:problem:{code}" if code else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": str(detail),
        "errors": errors or [],
        **more,
    }


def error(message: Any, *, line: int | None = None, field: str = "", value: object = "") -> Figures:
    text = value if isinstance(value, str) else repr(value)
    return {"line": line, "field": field, "message": str(message), "value": text[:VALUE_LENGTH]}


def field_errors(detail: Any, given: Any, place: str = "") -> list[Figures]:
    """What serializers and filters found, flattened, each with the place and what stood there."""
    if isinstance(detail, dict):
        return [
            found
            for name, part in detail.items()
            for found in field_errors(part, _inside(given, name), _place(place, name))
        ]
    if not isinstance(detail, list):
        detail = [detail]
    found: list[Figures] = []
    for index, part in enumerate(detail):
        if isinstance(part, dict):
            found += field_errors(part, _inside(given, index), f"{place}[{index}]")
        elif isinstance(part, list):
            found += field_errors(part, given, place)
        else:
            found.append(error(part, field=place, value="" if given is None else given))
    return found


def _place(place: str, name: object) -> str:
    if name in ("non_field_errors", "__all__"):
        return place
    if isinstance(name, int):
        return f"{place}[{name}]"
    return f"{place}.{name}" if place else str(name)


def _inside(given: Any, name: Any) -> Any:
    if name in ("non_field_errors", "__all__"):
        return None
    try:
        return given[name]
    except (KeyError, IndexError, TypeError):
        return None
