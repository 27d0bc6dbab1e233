"""Argilla: records as `to_json`/`to_list` write them, nested or flattened."""

from collections.abc import Iterator, Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of

_RESPONSES, _USERS, _STATUS = ".responses", ".responses.users", ".responses.status"
_SUGGESTION, _AGENT = ".suggestion", ".suggestion.agent"


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
        return Flat(columns, [*_nested(record.get("responses")), *_suggested(record.get("suggestions"))])
    questions = {
        key.removesuffix(ending)
        for key in record
        for ending in (_RESPONSES, _SUGGESTION)
        if key.endswith(ending)
    }
    used = tuple(f"{question}." for question in questions)
    columns = {key: value for key, value in record.items() if not key.startswith(used)}
    return Flat(columns, list(_flattened(record, sorted(questions))))


def _nested(responses: object) -> Iterator[Said]:
    if isinstance(responses, Mapping):
        for question, given in responses.items():
            for response in each(given):
                if response.get("status") != "discarded":
                    yield Said(question, response.get("value"), HUMAN, text_of(response.get("user_id")))


def _suggested(suggestions: object) -> Iterator[Said]:
    if isinstance(suggestions, Mapping):
        for question, given in suggestions.items():
            if isinstance(given, Mapping) and given.get("value") is not None:
                yield Said(question, given["value"], JUDGE, text_of(given.get("agent")))


def _flattened(record: Mapping[str, object], questions: list[str]) -> Iterator[Said]:
    for question in questions:
        values, users, states = (
            found if isinstance(found := record.get(question + part), list) else []
            for part in (_RESPONSES, _USERS, _STATUS)
        )
        for index, value in enumerate(values):
            if index < len(states) and states[index] == "discarded":
                continue
            yield Said(question, value, HUMAN, text_of(users[index]) if index < len(users) else "")
        if record.get(question + _SUGGESTION) is not None:
            agent = text_of(record.get(question + _AGENT))
            yield Said(question, record[question + _SUGGESTION], JUDGE, agent)


SHAPE = Shape(
    name="argilla",
    title="Argilla",
    recognise=_recognise,
    flatten=_flatten,
    suggest={"_server_id": "-", "status": "-"},
    cannot_carry=(
        "discarded responses: they are left out",
        "spans, rankings and texts: only single labels and ratings are labels here",
        "vectors, and when a label was given",
    ),
)
