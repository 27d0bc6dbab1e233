"""From a judge's raw answer to a label or to a kind of failure; never a guess and never a default.

Only one JSON object with `label` (and, if it likes, `reason`) counts. A label is not looked for in prose:
"not supported" contains "supported".
"""

import json
from dataclasses import dataclass

PARSER_VERSION = "1"

TRUNCATED = "truncated"
REFUSED = "refused"
EMPTY_ANSWER = "empty_answer"
INVALID_JSON = "invalid_json"
OFF_MENU = "off_menu"


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
        return Reading(failure=REFUSED, detail="the provider's content filter stopped the answer")
    if refusal:
        return Reading(failure=REFUSED, detail=refusal)
    if text is None or text.strip() == "":
        return Reading(failure=EMPTY_ANSWER, detail="the answer has no text")
    return _read_text(text, labels)


def _read_text(text: str, labels: tuple[str, ...]) -> Reading:
    try:
        value = json.loads(text, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return Reading(failure=INVALID_JSON, detail=f"not exactly one JSON object: {error}")
    problem = _problem_of_shape(value)
    if problem:
        return Reading(failure=INVALID_JSON, detail=problem)
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
            raise ValueError(f"the key {key[:100]!r} stands there twice")
        found[key] = value
    return found


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
