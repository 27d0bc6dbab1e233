"""Langfuse: exported data set items, traces or observations, and scores (its annotations)."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, spread, text_of, without

_SCORE = {"name", "dataType", "source"}
_TIMES = ("createdAt", "updatedAt", "timestamp", "startTime", "endTime", "validFrom")


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return (
        (keys >= _SCORE and bool(keys & {"traceId", "observationId"}))
        or keys >= {"input", "expectedOutput"}
        or (keys >= {"input", "output"} and bool(keys & {"traceId", "projectId", "sessionId"}))
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    if record.keys() >= _SCORE:
        text = record.get("stringValue")
        value = record.get("value") if text in (None, "") else text
        kind = HUMAN if record.get("source") == "ANNOTATION" else JUDGE
        name = text_of(record.get("authorUserName") or record.get("authorUserId"))
        left = {"name", "value", "stringValue", "source", "dataType", "authorUserName", "authorUserId"}
        return Flat(without(record, left), [Said(text_of(record.get("name")), value, kind, name)])
    return Flat(spread(record))


SHAPE = Shape(
    name="langfuse",
    title="Langfuse",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "input": "question",
        "output": "response",
        "expectedOutput": "reference_answer",
        "expectedOutput.answer": "reference_answer",
        "expectedOutput.output": "reference_answer",
        **dict.fromkeys(_TIMES, "-"),
    },
    points_at={"traceId": "response"},
    cannot_carry=(
        "responses in a data set: its items hold what should come out; add responses afterwards",
        "scores that are measured numbers: only values that can be listed are labels",
    ),
)
