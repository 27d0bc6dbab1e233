"""Langfuse: exported data set items, traces or observations, and scores (its annotations)."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import (
    HUMAN,
    JUDGE,
    Flat,
    Said,
    Shape,
    spread,
    text_of,
    with_objects,
    without,
)

_SCORE = {"name", "dataType", "source"}
# What a table holds as JSON.
_OBJECTS = ("input", "output", "expectedOutput", "metadata")
_TIMES = ("createdAt", "updatedAt", "timestamp", "startTime", "endTime", "validFrom")


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return (
        (keys >= _SCORE and bool(keys & {"traceId", "observationId", "subject"}))
        or keys >= {"input", "expectedOutput"}
        or (keys >= {"input", "output"} and bool(keys & {"traceId", "projectId", "sessionId"}))
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    if record.keys() >= _SCORE:
        text = record.get("stringValue")
        value = record.get("value") if text in (None, "") else text
        kind = HUMAN if record.get("source") == "ANNOTATION" else JUDGE
        name = text_of(record.get("authorUserName") or record.get("authorUserId"))
        record = _pointing(record)
        left = {"name", "value", "stringValue", "source", "dataType", "authorUserName", "authorUserId"}
        return Flat(without(record, left), [Said(text_of(record.get("name")), value, kind, name)])
    return Flat(spread(with_objects(record, _OBJECTS)))


def _pointing(score: Mapping[str, object]) -> Mapping[str, object]:
    """A score with what it is about as `traceId` or the like, which newer scores hold as their subject."""
    subject = score.get("subject")
    if not isinstance(subject, Mapping):
        return score
    return without(score, ["subject"]) | {f"{text_of(subject.get('kind'))}Id": subject.get("id")}


SHAPE = Shape(
    name="langfuse",
    title="Langfuse",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "input": "question",
        "output": "response",
        "output.answer": "response",
        "output.output": "response",
        "output.response": "response",
        "expectedOutput": "reference_answer",
        "expectedOutput.answer": "reference_answer",
        "expectedOutput.output": "reference_answer",
        **dict.fromkeys(_TIMES, "-"),
    },
    points_at={"traceId": "response"},
    cannot_carry=(
        "scores of observations, sessions and whole experiments, unless responses have their ids",
        "responses in a data set: its items hold what should come out; add responses afterwards",
        "scores that are measured numbers: only values that can be listed are labels",
    ),
)
