"""Ragas evaluation data sets and results, and the question-contexts-answer tables on dataset hubs."""

from collections.abc import Mapping

from evalsets.importing.shapes.base import Flat, Shape

_NEW = {"user_input"}
_OLD = ({"question", "contexts"}, {"question", "ground_truth"}, {"question", "retrieved_contexts"})


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return keys >= _NEW or any(keys >= old for old in _OLD)


def _flatten(record: Mapping[str, object]) -> Flat:
    # Columns stay whole: a data set's lists are the passages, its scores are numbers and no labels.
    return Flat(dict(record))


SHAPE = Shape(
    name="ragas",
    title="Ragas / Hugging Face",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "user_input": "question",
        "question": "question",
        "response": "response",
        "answer": "response",
        "retrieved_contexts": "context",
        "contexts": "context",
        "retrieved_context_ids": "context_ids",
        "reference": "reference_answer",
        "ground_truth": "reference_answer",
        "reference_context_ids": "expected_passages",
    },
    cannot_carry=(
        "ids, unless a column of its own holds them: the records are numbered",
        "claims and labels: metric scores are numbers, not labels, and are kept in meta",
        "conversations of several turns: a list of messages is no question",
        "the system that answered",
    ),
)
