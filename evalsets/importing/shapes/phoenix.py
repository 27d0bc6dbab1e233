"""Arize Phoenix: data set examples, spans and span annotations, as CSV or JSON Lines."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, spread, text_of, without

_OF_ANNOTATION = (
    "annotation_name",
    "name",
    "annotator_kind",
    "label",
    "score",
    "result.label",
    "result.score",
)


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return (
        "annotator_kind" in keys
        or "context.span_id" in keys
        or ("example_id" in keys and any(key.startswith("input") for key in keys))
        or (isinstance(record.get("input"), Mapping) and isinstance(record.get("output"), Mapping))
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    columns = spread(record)
    if "annotator_kind" not in columns:
        return Flat(columns)
    label = next(
        (columns[key] for key in ("label", "result.label") if columns.get(key) not in (None, "")), None
    )
    if label is None:
        label = next((columns[key] for key in ("score", "result.score") if key in columns), None)
    kind = HUMAN if columns["annotator_kind"] == "HUMAN" else JUDGE
    question = text_of(columns.get("annotation_name") or columns.get("name"))
    name = text_of(columns.get("user_id") or columns.get("identifier"))
    return Flat(without(columns, _OF_ANNOTATION), [Said(question, label, kind, name)])


SHAPE = Shape(
    name="phoenix",
    title="Arize Phoenix",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "example_id": "id",
        "context.span_id": "id",
        # The outputs of an example are what should come out; those of a span are what did.
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
    points_at={"span_id": "response"},
    cannot_carry=(
        "responses in a data set: its outputs are reference answers; add responses afterwards",
        "annotations of retrieved documents and of whole traces or sessions",
    ),
)
