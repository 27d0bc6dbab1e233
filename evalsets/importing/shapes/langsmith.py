"""LangSmith: examples of data sets, runs, tables of experiments, and feedback."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import HUMAN, JUDGE, Flat, Said, Shape, each, spread, text_of, without

_FEEDBACK = {"run_id", "key", "feedback_source"}
# What only a run says: its outputs are what a system answered, those of an example what should come out.
_OF_RUN = {"run_type", "execution_time"}
_OUTPUTS = ("answer", "output", "response", "result", "text")


def _recognise(record: Mapping[str, object]) -> bool:
    return (
        record.keys() >= _FEEDBACK
        or (isinstance(record.get("inputs"), Mapping) and "outputs" in record)
        or any(key.startswith("inputs.") for key in record)
    )


def _flatten(record: Mapping[str, object]) -> Flat:
    if record.keys() >= _FEEDBACK:
        return Flat(without(record, {*_FEEDBACK, "score", "value"} - {"run_id"}), [_said(record)])
    columns = spread(without(record, ["feedback"]))
    if record.keys() & _OF_RUN:
        columns = {_of_run(column): value for column, value in columns.items()}
    return Flat(columns, [_said(feedback) for feedback in each(record.get("feedback"))])


def _of_run(column: str) -> str:
    return f"run.{column}" if column.partition(".")[0] == "outputs" else column


def _said(feedback: Mapping[str, object]) -> Said:
    """A person's where the source is the app and names somebody, else an evaluator's."""
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
        "outputs": "reference_answer",
        **{f"outputs.{name}": "reference_answer" for name in _OUTPUTS},
        "outputs.reference": "reference_answer",
        "outputs.expected": "reference_answer",
        "inputs": "question",
        "run.outputs": "response",
        **{f"run.outputs.{name}": "response" for name in _OUTPUTS},
        **{f"reference.{name}": "reference_answer" for name in _OUTPUTS},
        "id": "id",
        "example_id": "item_id",
        "reference_example_id": "item_id",
        "reference_outputs.answer": "reference_answer",
        "reference_outputs.output": "reference_answer",
        "created_at": "-",
        "modified_at": "-",
    },
    points_at={"run_id": "response"},
    cannot_carry=(
        "a system's responses in a data set: its outputs are reference answers; add responses afterwards",
        "scores of evaluators in a table of an experiment: they are kept in meta",
        "attachments and traces",
    ),
)
