"""DeepEval: test runs and evaluation results with their metrics, and data sets of test cases."""

from collections.abc import Iterator, Mapping

from evalsets.importing.shapes.base import JUDGE, Flat, Said, Shape, each, spread, text_of, without

_METRICS = ("metricsData", "metrics_data")


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    return "input" in keys and bool(keys & {"actual_output", "actualOutput", "expected_output", *_METRICS})


def _flatten(record: Mapping[str, object]) -> Flat:
    return Flat(spread(without(record, _METRICS)), list(_said(record)))


def _said(record: Mapping[str, object]) -> Iterator[Said]:
    for key in _METRICS:
        for metric in each(record.get(key)):
            if metric.get("success") is None:
                continue
            model = text_of(metric.get("evaluationModel") or metric.get("evaluation_model"))
            value = "success" if metric["success"] else "failure"
            yield Said(text_of(metric.get("name")), value, JUDGE, model or "DeepEval")


SHAPE = Shape(
    name="deepeval",
    title="DeepEval",
    recognise=_recognise,
    flatten=_flatten,
    suggest={
        "name": "id",
        "input": "question",
        "actualOutput": "response",
        "actual_output": "response",
        "expectedOutput": "reference_answer",
        "expected_output": "reference_answer",
        "retrievalContext": "context",
        "retrieval_context": "context",
        # The ideal context, not what was served.
        "context": "meta",
    },
    cannot_carry=(
        "the metrics' scores and reasons: only success and failure are labels here",
        "conversational test cases",
        "the system that answered",
    ),
    lists=(("testCases",), ("test_cases",), ("test_results",), ("testResults",)),
)
