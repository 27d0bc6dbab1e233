"""Argilla: records as `to_json`/`to_list` write them, nested or flattened."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from evalsets.importing.cellvalues import BadValue, list_in
from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of

_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTION, _AGENT = ".suggestion", ".suggestion.agent"
_TAKEN = ("submitted", "")
_OTHERWISE = "responses that are neither submitted, drafts nor discarded were left out."
_TOLD = {
    "discarded": "responses that were discarded were left out.",
    "draft": "responses that are drafts were left out.",
    "": "responses are taken as submitted: the file does not say whether they are, or drafts or discarded.",
}


def _recognise(record: Mapping[str, object]) -> bool:
    if isinstance(record.get("fields"), Mapping):
        return "responses" in record or "suggestions" in record
    return any(key.endswith((_RESPONSES, _SUGGESTION)) for key in record)


def _flatten(record: Mapping[str, object]) -> Flat:
    if isinstance(record.get("fields"), Mapping):
        columns = {
            "id": record.get("id") or record.get("_server_id"),
            **spread(record["fields"]),
            **spread(record.get("metadata") or {}, "metadata"),
        }
        given = list(_nested(record.get("responses")))
        return _flat(columns, given, list(_suggested(record.get("suggestions"))))
    questions = {
        key.removesuffix(ending)
        for key in record
        for ending in (_RESPONSES, _SUGGESTION)
        if key.endswith(ending)
    }
    used = tuple(f"{question}." for question in questions)
    columns = {key: value for key, value in record.items() if not key.startswith(used)}
    return _flat(columns, *_flattened(record, sorted(questions)))


def _flat(columns: dict[str, object], given: list[tuple[str, Said]], suggestions: list[Said]) -> Flat:
    """Only a submitted response is a label; of one whose status is not told, that is told."""
    told = [_TOLD.get(status, _OTHERWISE) for status, _said in given if status != "submitted"]
    return Flat(columns, [said for status, said in given if status in _TAKEN] + suggestions, told)


def _nested(responses: object) -> Iterator[tuple[str, Said]]:
    if isinstance(responses, Mapping):
        for question, given in responses.items():
            for response in each(given):
                said = Said(question, response.get("value"), HUMAN, text_of(response.get("user_id")))
                yield text_of(response.get("status")), said


def _suggested(suggestions: object) -> Iterator[Said]:
    if isinstance(suggestions, Mapping):
        for question, given in suggestions.items():
            if isinstance(given, Mapping) and given.get("value") is not None:
                yield Said(question, given["value"], JUDGE, text_of(given.get("agent")))


def _flattened(
    record: Mapping[str, object], questions: list[str]
) -> tuple[list[tuple[str, Said]], list[Said]]:
    given, suggestions = [], []
    for question in questions:
        values, users, states = (
            _listed(record.get(question + part), question + part) for part in (_RESPONSES, _USERS, _STATUS)
        )
        for value, user, status in zip_longest(values, users[: len(values)], states[: len(values)]):
            given.append((text_of(status), Said(question, value, HUMAN, text_of(user))))
        if record.get(question + _SUGGESTION) not in (None, ""):
            agent = text_of(record.get(question + _AGENT))
            suggestions.append(Said(question, record[question + _SUGGESTION], JUDGE, agent))
    return given, suggestions


def _listed(value: object, column: str) -> list:
    """A list, which a table holds as text."""
    if value in (None, ""):
        return []
    found = list_in(value)
    if found is None:
        raise BadValue(f"{column} is to be a list of what each person said, and cannot be read as one")
    return found


SHAPE = Shape(
    name="argilla",
    title="Argilla",
    recognise=_recognise,
    flatten=_flatten,
    suggest={"_server_id": "-", "status": "-"},
    cannot_carry=(
        "drafts and discarded responses: they are left out, and counted",
        "whether a response was submitted, where the records are nested (to_json): flattened ones say it",
        "spans, rankings and texts: only single labels and ratings are labels here",
        "vectors, and when a label was given",
    ),
)
