"""Fields that take a value for what it is: in JSON a number is no text, and no text is a number."""

import re
from datetime import date
from typing import Any, cast

from django.utils.translation import gettext_lazy as _
from rest_framework import serializers
from rest_framework.utils import html

_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NUMBER = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,3})?")


def _is_text_only(field: serializers.Field) -> bool:
    """Whether the value came from a query or a form, where everything is text."""
    root = cast(Any, field.root)
    return html.is_html_input(getattr(root, "initial_data", None))


class AsSent(serializers.Field):
    """An empty value of a query or a form is a value, and not as if nothing had been sent."""

    def get_value(self, dictionary: Any) -> Any:
        return dictionary.get(self.field_name, serializers.empty)


class Text(AsSent, serializers.CharField):
    """Kept as it is: nothing is trimmed off. Empty only where that is allowed."""

    default_error_messages = {"invalid": _("A text is expected.")}

    def __init__(self, **options: Any):
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(AsSent, serializers.IntegerField):
    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str) and _is_text_only(self) and _WHOLE.fullmatch(data):
            return int(data)
        if isinstance(data, float) and data.is_integer() and abs(data) < 2**53:
            return int(data)  # to JSON 1.0 is a whole number, too
        if not isinstance(data, int) or isinstance(data, bool):
            self.fail("invalid")
        return data


class Number(AsSent, serializers.FloatField):
    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, str) and _is_text_only(self) and _NUMBER.fullmatch(data):
            return float(data)
        if not isinstance(data, int | float) or isinstance(data, bool):
            self.fail("invalid")
        return float(data)


class Day(AsSent, serializers.DateField):
    """As in 2026-03-14, and in no other way."""

    default_error_messages = {"invalid": _("A day as in 2026-03-14 is expected.")}

    def to_internal_value(self, value: Any) -> date:
        if not (isinstance(value, str) and _DAY.fullmatch(value)):
            self.fail("invalid")
        return super().to_internal_value(value)


class Flag(AsSent, serializers.BooleanField):
    """true or false. Unlike a box in a form, what is not sent is not false."""

    WORDS = {"true": True, "false": False}

    def to_internal_value(self, data: Any) -> bool:
        if isinstance(data, str) and _is_text_only(self) and data in self.WORDS:
            return self.WORDS[data]
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Choice(AsSent, serializers.ChoiceField):
    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid_choice", input=data)
        return super().to_internal_value(data)


class Shaped(AsSent, serializers.RegexField):
    """A text of one shape."""
