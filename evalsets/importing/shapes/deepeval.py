"""DeepEval: test runs and evaluation results with their metrics, and data sets of test cases."""

from collections.abc import Iterator, Mapping

from evalsets.importing.cellvalues import BadValue
from evalsets.importing.shapes.base import JUDGE, Flat, Said, Shape, each, spread, text_of, without

_METRICS = ("metricsData", "metrics_data")
_LISTS = ("retrieval_context", "context")
_JOINED_BY = "|"  # in its CSV and JSON Lines; its own readers part the texts there too


def _recognise(record: Mapping[str, object]) -> bool:
    keys = record.keys()
    single = "input" in keys and keys & {"actual_output", "actualOutput", "expected_output", *_METRICS}
    return bool(single) or keys >= {"scenario", "turns"}


def _flatten(record: Mapping[str, object]) -> Flat:
    turns = record.get("turns")
    if isinstance(turns, list) and turns:
        raise BadValue(f"a conversation of {len(turns)} turns stands here; one input is expected")
    columns, told = spread(without(record, _METRICS)), []
    for name in _LISTS:
        joined = columns.get(name)
        if isinstance(joined, str) and _JOINED_BY in joined and not joined.startswith("["):
            columns[name] = joined.split(_JOINED_BY)
            told.append(
                f'values of "{name}" were parted at each {_JOINED_BY}, by which DeepEval joins texts.'
            )
    return Flat(columns, list(_said(record)), told)


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
        "conversations: they are refused, and counted where a test run lists them apart",
        "which texts a joined list had, where a text holds the | that CSV and JSON Lines join them by",
        "the system that answered",
    ),
    lists=(
        ("testCases",),
        ("testRunData", "testCases"),
        ("test_cases",),
        ("test_results",),
        ("testResults",),
    ),
    beside=(("conversationalTestCases",), ("testRunData", "conversationalTestCases")),
)
