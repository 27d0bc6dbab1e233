"""From a judge's raw answer to a label or to a kind of failure; never a guess and never a default.

Only one JSON object with `label` (and, if it likes, `reason`) counts; what a model thinks aloud before it and
a code fence around it are put aside. A label is not looked for in prose: "not supported" contains
"supported".
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PARSER_VERSION = "2"

TRUNCATED = "truncated"
REFUSED_TO_JUDGE = "refused_to_judge"
UNPARSEABLE = "unparseable"
AMBIGUOUS = "ambiguous"
OFF_MENU = "off_menu"

_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_NAMES: dict[type, str] = {str: "string", list: "list", dict: "object"}
_BETWEEN_VALUES = re.compile(r"[\s,;]*")


class _Twice(ValueError):
    """A key stands there twice, so the object says two things."""


@dataclass(frozen=True)
class ReadClaim:
    """A claim as an extraction gave it, with the words of the response that it goes back to."""

    text: str
    quote: str


@dataclass(frozen=True)
class Reading:
    """A label, or a kind of failure with what was wrong; never both. Of an extraction also the claims."""

    label: str = ""
    failure: str = ""
    detail: str = ""
    claims: tuple[ReadClaim, ...] = ()


class Unreadable(Exception):
    """The answer is none of those that were asked for."""

    def __init__(self, failure: str, detail: str):
        self.reading = Reading(failure=failure, detail=detail)
        super().__init__(detail)


def read_answer(
    *, text: str | None, finish_reason: str | None, refusal: str | None, labels: tuple[str, ...]
) -> Reading:
    try:
        value = object_of(text=text, finish_reason=finish_reason, refusal=refusal)
        check_shape(value, required={"label": str}, optional={"reason": str})
    except Unreadable as unreadable:
        return unreadable.reading
    if value["label"] not in labels:
        return Reading(failure=OFF_MENU, detail=f"the label {value['label'][:100]!r} was not offered")
    return Reading(label=value["label"])


def object_of(*, text: str | None, finish_reason: str | None, refusal: str | None) -> dict[str, Any]:
    """How the answer ended comes first: a cut-off answer is not bad JSON, and asking again cannot help."""
    if finish_reason == "length":
        raise Unreadable(TRUNCATED, "the answer was cut off at the token limit")
    if finish_reason == "content_filter":
        raise Unreadable(REFUSED_TO_JUDGE, "the provider's content filter stopped the answer")
    if refusal:
        raise Unreadable(REFUSED_TO_JUDGE, refusal)
    if text is None or text.strip() == "":
        raise Unreadable(UNPARSEABLE, "the answer has no text")
    return _decoded(_unwrapped(text))


def _unwrapped(text: str) -> str:
    text = _THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text
    fenced = _FENCED.fullmatch(text)
    return fenced.group(1) if fenced else text


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = _DECODER.decode(text)
    except _Twice as error:
        raise Unreadable(AMBIGUOUS, str(error)) from error
    except (ValueError, RecursionError) as error:
        if _holds_several(text):
            raise Unreadable(AMBIGUOUS, "more than one JSON object") from error
        raise Unreadable(UNPARSEABLE, f"not exactly one JSON object: {error}") from error
    if not isinstance(value, dict):
        raise Unreadable(UNPARSEABLE, f"a JSON object was asked for, not {type(value).__name__}")
    return value


def check_shape(
    value: dict[str, Any], *, required: Mapping[str, type], optional: Mapping[str, type] | None = None
) -> None:
    """These keys with values of these types, and no others."""
    known = {**required, **(optional or {})}
    for name, kind in known.items():
        if name not in value:
            if name in required:
                raise Unreadable(UNPARSEABLE, f"the key {name!r} is missing")
        elif not isinstance(value[name], kind):
            found = type(value[name]).__name__
            raise Unreadable(UNPARSEABLE, f"{name!r} must be a {_NAMES[kind]}, not {found}")
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise Unreadable(UNPARSEABLE, f"the key {unknown[0][:100]!r} was not asked for")


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise _Twice(f"the key {key[:100]!r} stands there twice")
        found[key] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_no_constant)


def _holds_several(text: str) -> bool:
    """Whether the text is nothing but JSON objects, two or more."""
    at, found = _BETWEEN_VALUES.match(text).end(), 0  # type: ignore[union-attr]
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        found += 1
        at = _BETWEEN_VALUES.match(text, at).end()  # type: ignore[union-attr]
    return found > 1
