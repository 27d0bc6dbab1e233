"""LangSmith data sets: examples with `inputs` and `outputs`, as JSON, JSON Lines or CSV."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of, without


def _recognise(record: Mapping[str, object]) -> bool:
    return (isinstance(record.get("inputs"), Mapping) and "outputs" in record) or any(
        key.startswith("inputs.") for key in record
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    columns = spread(without(record, ["feedback"]))
    return Flat(columns, [_said(feedback) for feedback in each(record.get("feedback"))])


def _said(feedback: Mapping[str, object]) -> Said:
    """Runs of an experiment carry feedback: a person's where the source is the app, else an evaluator's."""
    source = feedback.get("feedback_source")
    kind = source.get("type") if isinstance(source, Mapping) else source
    value = feedback["value"] if feedback.get("value") is not None else feedback.get("score")
    who = source.get("user_id") or source.get("ls_user_id") if isinstance(source, Mapping) else None
    return Said(
        text_of(feedback.get("key")), value, HUMAN if kind in ("app", "api") and who else JUDGE, text_of(who)
    )


SHAPE = Shape(
    name="langsmith",
    title="LangSmith",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        # The outputs of an example are what should come out, not what a system answered.
        "outputs": "reference_answer",
        "outputs.answer": "reference_answer",
        "outputs.output": "reference_answer",
        "outputs.response": "reference_answer",
        "outputs.reference": "reference_answer",
        "outputs.expected": "reference_answer",
        "inputs": "question",
        "reference_outputs.answer": "reference_answer",
        "reference_outputs.output": "reference_answer",
        "created_at": "-",
        "modified_at": "-",
    },
    cannot_carry=(
        "a system's responses: the outputs of a data set are reference answers; add responses afterwards",
        "attachments and traces",
    ),
)
