"""What every address of the API has in common."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.generics import GenericAPIView
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from evalsets.api.paging import CursorPages
from evalsets.api.problems import Refusal
from evalsets.idempotency import Answer, OtherRequest, answer_once, fingerprint
from evalsets.models import ApiToken

Scope = ApiToken.Scope
READING = ("GET", "HEAD", "OPTIONS")


class Nothing(serializers.Serializer):
    """The body of a write that needs none: absent, or an empty object."""


class ApiView(GenericAPIView):
    """An address. `answers` and `takes` describe it in the schema, `asks` cleans its query, by method."""

    reads: ClassVar[str | None] = Scope.READ
    writes: ClassVar[str | None] = None
    asks: ClassVar[dict[str, type[serializers.Serializer]]] = {}
    takes: ClassVar[dict[str, Any]] = {}
    answers: ClassVar[dict[str, Any]] = {}
    tag: ClassVar[str] = ""
    pagination_class: Any = None
    many = False
    asked: dict[str, Any]

    def scope_for(self, method: str) -> str | None:
        return self.reads if method in READING else self.writes

    def initial(self, request, *args, **kwargs):
        super().initial(request, *args, **kwargs)
        self.asked = self._asked(request)
        if request.method == "POST" and hasattr(self, "post") and "POST" not in self.takes:
            self.body(request, Nothing)

    def _asked(self, request) -> dict[str, Any]:
        """What the query says; a name that means nothing here is an error, not ignored."""
        known: dict[str, Any] = {}
        for form in self.query_forms(request.method):
            known |= form().fields
        if unknown := [name for name in request.query_params if name not in known]:
            words = _("This is not known here. Known: {names}.").format(names=", ".join(known) or "-")
            raise serializers.ValidationError({name: [words] for name in unknown})
        asked: dict[str, Any] = {}
        for form in self.query_forms(request.method):
            cleaned = form(data=request.query_params)
            cleaned.is_valid(raise_exception=True)
            if form is self.asks.get(self.asking(request.method)):  # the rest is the paginator's
                asked = cleaned.validated_data
        return asked

    @staticmethod
    def asking(method: str) -> str:
        return "GET" if method == "HEAD" else method

    def query_forms(self, method: str) -> list[type[serializers.Serializer]]:
        form = self.asks.get(self.asking(method))
        return [form] if form else []

    def body(self, request, form: type[serializers.Serializer], **context: Any) -> dict[str, Any]:
        """The body as `form` cleans it; an unknown field is an error."""
        if not isinstance(request.data, dict):
            raise serializers.ValidationError(_("An object is expected."))
        cleaned = form(data=request.data, context=context)
        if unknown := [name for name in request.data if name not in cleaned.fields]:
            words = _("This is not known here. Known: {names}.")
            names = ", ".join(cleaned.fields) or "-"
            raise serializers.ValidationError({name: [words.format(names=names)] for name in unknown})
        cleaned.is_valid(raise_exception=True)
        return cleaned.validated_data

    def again(self, told: Any) -> Any:
        """The body of an answer that was kept, or what may be told of it by now."""
        return told

    def options(self, request, *args, **kwargs):
        return Response(status=204)

    def finalize_response(self, request, response, *args, **kwargs):
        response = super().finalize_response(request, response, *args, **kwargs)
        response["Cache-Control"] = "no-store"
        return response


class ListView(ApiView, ABC):
    """A list: `rows` finds them, `row` writes one."""

    many = True
    pagination_class: Any = CursorPages
    row: ClassVar[Any]
    ordering: ClassVar[str] = "pk"

    def query_forms(self, method):
        paged = [self.pagination_class.asked] if self.asking(method) == "GET" else []
        return [*super().query_forms(method), *paged]

    @abstractmethod
    def rows(self) -> Any: ...

    def get(self, request, *args, **kwargs):
        page = self.paginate_queryset(self.rows())
        return self.get_paginated_response(self.row(page, many=True).data)


def once_after(read: Callable[..., dict[str, Any]]):
    """The handler of a write; with the header Idempotency-Key it acts once.

    `read` reads and checks what was sent, before the transaction of the write; the handler is called with the
    names that it gives.
    """

    def decorated(handler):
        @wraps(handler)
        def answer(self, request, *args, **kwargs):
            def prepare():
                return partial(handler, self, request, *args, **kwargs, **read(self, request, **kwargs))

            key = request.headers.get("Idempotency-Key")
            return prepare()() if key is None else _answered_once(self, request, key, prepare)

        return answer

    return decorated


def _answered_once(view: ApiView, request, key: str, prepare: Callable[[], Callable[[], Response]]):
    if not (0 < len(key) <= 255 and key.isascii() and key.isprintable()):
        raise serializers.ValidationError({"Idempotency-Key": [_("1 to 255 printable ASCII characters.")]})
    mark = fingerprint(request.method, request.get_full_path(), request.data)
    try:
        given = answer_once(
            person=request.user, key=key, fingerprint=mark, prepare=lambda: partial(_acted, prepare())
        )
    except OtherRequest as error:
        words = _("This Idempotency-Key came before, with another request.")
        raise Refusal(422, "idempotency-key-reused", words) from error
    headers = {"Idempotency-Replayed": "true"} if given.repeated else {}
    if given.location:
        headers["Location"] = given.location
    told = json.loads(given.body)
    return Response(view.again(told) if given.repeated else told, status=given.status, headers=headers)


def _acted(act: Callable[[], Response]) -> Answer:
    made = act()
    body = json.dumps(made.data, cls=JSONEncoder, ensure_ascii=False, allow_nan=False)
    return Answer(made.status_code, body, made.get("Location", ""))


def _nothing(_view, _request, **_place) -> dict[str, Any]:
    return {}


once = once_after(_nothing)
