"""From a judge's raw answer to a label or to a kind of failure; never a guess and never a default.

Only one JSON object with `label` (and, if it likes, `reason`) counts; what a model thinks aloud before it and
a code fence around it are put aside. A label is not looked for in prose: "not supported" contains
"supported".
"""

import json
import re
from dataclasses import dataclass

PARSER_VERSION = "2"

TRUNCATED = "truncated"
REFUSED_TO_JUDGE = "refused_to_judge"
UNPARSEABLE = "unparseable"
AMBIGUOUS = "ambiguous"
OFF_MENU = "off_menu"

_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_BETWEEN_VALUES = re.compile(r"[\s,;]*")


class _Twice(ValueError):
    """A key stands there twice, so the object says two things."""


@dataclass(frozen=True)
class Reading:
    """A label, or a kind of failure with what was wrong; never both."""

    label: str = ""
    failure: str = ""
    detail: str = ""


def read_answer(
    *, text: str | None, finish_reason: str | None, refusal: str | None, labels: tuple[str, ...]
) -> Reading:
    """How the answer ended comes first: a cut-off answer is not bad JSON, and asking again cannot help."""
    if finish_reason == "length":
        return Reading(failure=TRUNCATED, detail="the answer was cut off at the token limit")
    if finish_reason == "content_filter":
        return Reading(failure=REFUSED_TO_JUDGE, detail="the provider's content filter stopped the answer")
    if refusal:
        return Reading(failure=REFUSED_TO_JUDGE, detail=refusal)
    if text is None or text.strip() == "":
        return Reading(failure=UNPARSEABLE, detail="the answer has no text")
    return _read_text(_unwrapped(text), labels)


def _unwrapped(text: str) -> str:
    text = _THOUGHT.sub("", text, count=1) if _THOUGHT.match(text) else text
    fenced = _FENCED.fullmatch(text)
    return fenced.group(1) if fenced else text


def _read_text(text: str, labels: tuple[str, ...]) -> Reading:
    try:
        value = _DECODER.decode(text)
    except _Twice as error:
        return Reading(failure=AMBIGUOUS, detail=str(error))
    except (ValueError, RecursionError) as error:
        if _holds_several(text):
            return Reading(failure=AMBIGUOUS, detail="more than one JSON object")
        return Reading(failure=UNPARSEABLE, detail=f"not exactly one JSON object: {error}")
    problem = _problem_of_shape(value)
    if problem:
        return Reading(failure=UNPARSEABLE, detail=problem)
    if value["label"] not in labels:
        return Reading(failure=OFF_MENU, detail=f"the label {value['label'][:100]!r} was not offered")
    return Reading(label=value["label"])


def _problem_of_shape(value: object) -> str:
    if not isinstance(value, dict):
        return f"a JSON object was asked for, not {type(value).__name__}"
    if "label" not in value:
        return "the key 'label' is missing"
    if not isinstance(value["label"], str):
        return f"'label' must be a string, not {type(value['label']).__name__}"
    if not isinstance(value.get("reason", ""), str):
        return f"'reason' must be a string, not {type(value['reason']).__name__}"
    unknown = sorted(set(value) - {"label", "reason"})
    return f"the key {unknown[0][:100]!r} was not asked for" if unknown else ""


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
