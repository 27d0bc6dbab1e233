"""Arize Phoenix: data set examples, spans and span annotations, as CSV or JSON Lines."""

import re
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

_OF_ANNOTATION = (
    "annotation_name",
    "name",
    "annotator_kind",
    "label",
    "score",
    "result.label",
    "result.score",
)
# What a data frame written as CSV holds as Python prints it.
_OBJECTS = ("input", "output", "metadata")
_DOCUMENT = re.compile(r"attributes\.retrieval\.documents\.(\d+)\.(.+)")


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return (
        "annotator_kind" in keys
        or "context.span_id" in keys
        or (bool(keys & {"example_id", "node_id"}) and any(key.startswith("input") for key in keys))
        or (isinstance(context := record.get("context"), Mapping) and "span_id" in context)
        or (isinstance(record.get("input"), Mapping) and isinstance(record.get("output"), Mapping))
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    columns = spread(with_objects(record, _OBJECTS))
    if "annotator_kind" not in columns:
        return Flat(_with_documents(columns), [], _told_of(columns))
    label = next(
        (columns[key] for key in ("label", "result.label") if columns.get(key) not in (None, "")), None
    )
    if label is None:
        label = next((columns[key] for key in ("score", "result.score") if key in columns), None)
    kind = HUMAN if columns["annotator_kind"] == "HUMAN" else JUDGE
    question = text_of(columns.get("annotation_name") or columns.get("name"))
    name = text_of(columns.get("user_id") or columns.get("identifier"))
    return Flat(without(columns, _OF_ANNOTATION), [Said(question, label, kind, name)])


def _with_documents(columns: dict[str, object]) -> dict[str, object]:
    """The documents of a span in one list, where each of their parts is an attribute of its own."""
    documents: dict[int, dict[str, object]] = {}
    for column in list(columns):
        part = _DOCUMENT.fullmatch(column)
        if part is not None:
            documents.setdefault(int(part[1]), {})[part[2]] = columns.pop(column)
    if documents:
        columns["attributes.retrieval.documents"] = [documents[number] for number in sorted(documents)]
    return columns


def _told_of(columns: Mapping[str, object]) -> list[str]:
    told = []
    if columns.get("attributes.input.mime_type") == "application/json":
        told.append(
            "inputs are JSON, as the call was given it, and stand here as the question word for word."
        )
    if columns.get("parent_id"):
        told.append(
            "spans are steps of another span, and items of their own here: what they found is not its."
        )
    return told


SHAPE = Shape(
    name="phoenix",
    title="Arize Phoenix",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "example_id": "id",
        "context.span_id": "id",
        # The outputs of an example are what should come out; those of a span are what did.
        "output": "reference_answer",
        "output_answer": "reference_answer",
        "output_output": "reference_answer",
        "output_response": "reference_answer",
        "output.answer": "reference_answer",
        "output.output": "reference_answer",
        "output.response": "reference_answer",
        "attributes.input.value": "question",
        "attributes.output.value": "response",
        "attributes.llm.model_name": "system.model",
        "attributes.llm.provider": "system.provider",
        "attributes.retrieval.documents": "context",
        "created_at": "-",
        "updated_at": "-",
    },
    lists=(("examples",), ("data", "examples")),
    points_at={"span_id": "response"},
    cannot_carry=(
        "responses in a data set: its outputs are reference answers; add responses afterwards",
        "annotations of retrieved documents and of whole traces or sessions",
    ),
)
