"""Invented files in the shape that each tool's present release writes, read by an explicit mapping."""

import json

import pytest

from evalsets.importing import ColumnMap, Findings, read_labels
from evalsets.importing.mapped import plan_of
from evalsets.importing.mapping import LEAVE_OUT, LabelRule
from tests.evalsets.shapes.reading import lines, problems, read, stream

PARTS = {"Yes": "ANSWERED", "No": "REFUSED"}


# Ragas: EvaluationDataset.to_jsonl

RAGAS = {
    "user_input": "Who may open the vault?",
    "retrieved_contexts": ["Two keepers open the vault together.", "The vault is in the cellar."],
    "reference_contexts": ["Two keepers open the vault together."],
    "response": "Two keepers.",
    "reference": "Two keepers together.",
    "faithfulness": 0.5,
}


def test_ragas_gives_question_passages_response_and_reference():
    records, notices = read(lines(RAGAS), ColumnMap("auto"), "samples.jsonl")
    (record,) = records
    assert record.item.question == "Who may open the vault?"
    assert record.item.reference_answer == "Two keepers together."
    assert [passage.text for passage in record.response.passages] == RAGAS["retrieved_contexts"]
    assert record.response.text == "Two keepers."
    assert record.response.extra["meta"] == {
        "reference_contexts": ["Two keepers open the vault together."],
        "faithfulness": 0.5,
    }
    assert any("Ragas" in notice for notice in notices)
    assert any("no column is the id" in notice.lower() for notice in notices)


def test_ragas_names_the_passages_by_their_ids():
    sample = RAGAS | {"retrieved_context_ids": ["v1", 22], "reference_context_ids": ["v1"]}
    (record,), _notices = read(lines(sample), ColumnMap("ragas"))
    assert [passage.passage_id for passage in record.response.passages] == ["v1", "22"]
    assert record.item.expected_passages == ["v1"]


def test_ragas_csv_as_pandas_writes_it():
    text = (
        ",user_input,retrieved_contexts,response,reference\n"
        '0,Who?,"[\'One, two.\', ""It\'s three.""]",Two.,Two.\n'
    )
    (record,), _notices = read(stream(text), ColumnMap("ragas"), "samples.csv")
    assert [passage.text for passage in record.response.passages] == ["One, two.", "It's three."]
    assert record.response.extra["meta"] == {"column 1": "0"}


def test_a_list_as_numpy_prints_it_is_never_joined():
    text = "user_input,retrieved_contexts,response\nWho?,\"['One.' 'Two.']\",Two.\n"
    ((line, column, message),) = problems(stream(text), ColumnMap("ragas"), "samples.csv")
    assert (line, column) == (2, "retrieved_contexts")
    assert "NumPy" in message


def test_a_conversation_is_no_question():
    sample = RAGAS | {"user_input": [{"content": "Hi", "type": "human"}, {"content": "Yes?", "type": "ai"}]}
    assert problems(lines(sample), ColumnMap("ragas")) == [
        (1, "user_input", "a conversation of 2 messages stands here; one text is expected")
    ]


# Label Studio: JSON export

TASK = {
    "id": 17,
    "data": {"question": "Who?", "answer": "Two keepers.", "ticket": "T-1"},
    "annotations": [
        {
            "id": 1,
            "completed_by": {"id": 4, "email": "ada@example.org"},
            "was_cancelled": False,
            "result": [
                {"from_name": "answered", "to_name": "a", "type": "choices", "value": {"choices": ["Yes"]}}
            ],
        },
        {
            "id": 2,
            "completed_by": 7,
            "was_cancelled": False,
            "result": [
                {"from_name": "answered", "to_name": "a", "type": "choices", "value": {"choices": ["No"]}}
            ],
        },
        {"id": 3, "completed_by": 9, "was_cancelled": True, "result": []},
    ],
    "predictions": [
        {
            "model_version": "guess-1",
            "result": [{"from_name": "answered", "type": "choices", "value": {"choices": ["Yes"]}}],
        }
    ],
}
BY_ANSWERED = ColumnMap(
    "label_studio", labels={"answered": LabelRule("abstention", PARTS)}, names={"7": "ben"}
)


def test_label_studio_annotations_become_labels_by_the_mapping_alone():
    (record,), _notices = read(stream([TASK]), BY_ANSWERED)
    assert record.response.response_id == "17"
    assert record.response.text == "Two keepers."
    assert record.response.human_labels == {"ada@example.org": "ANSWERED", "ben": "REFUSED"}
    assert record.response.judge_labels == {"guess-1": "ANSWERED"}
    assert record.response.extra["meta"] == {"ticket": "T-1"}


def test_a_label_that_is_not_mapped_is_a_problem_of_its_line():
    mapping = ColumnMap("label_studio", labels={"answered": LabelRule("abstention", {"Yes": "ANSWERED"})})
    assert problems(stream(json.dumps([TASK], indent=1)), mapping) == [
        (2, "answered", "the label 'No' is mapped to none of ours: map it, or leave it out")
    ]


def test_a_question_that_is_not_spoken_of_is_a_problem_where_labels_are_wanted():
    found = problems(stream([TASK]), ColumnMap("label_studio", labels={}))
    assert {message for _line, _field, message in found} == {
        "nothing says what its labels are here: map them, or leave the question out"
    }


def test_labels_nobody_spoke_of_are_counted_where_none_are_wanted():
    (record,), notices = read(stream([TASK]), ColumnMap("label_studio"))
    assert record.response.human_labels == {}
    assert "3 labels were left out: nothing was said about what they are here." in notices


def test_labels_left_out_on_purpose_are_counted():
    rule = LabelRule("abstention", {"Yes": "ANSWERED", "No": LEAVE_OUT})
    (record,), notices = read(stream([TASK]), ColumnMap("label_studio", labels={"answered": rule}))
    assert record.response.human_labels == {"ada@example.org": "ANSWERED"}
    assert any(notice.startswith("1 labels 'No'") for notice in notices)


def test_two_choices_are_not_one_label():
    task = json.loads(json.dumps(TASK).replace('["Yes"]', '["Yes", "No"]'))
    found = problems(stream([task]), BY_ANSWERED)
    assert [message for _line, _field, message in found] == ["one label is expected, not a list"] * 2


def test_label_studio_json_min_has_a_row_for_each_annotation():
    rows = [
        {"id": 5, "question": "Who?", "answer": "Two.", "kind": "Yes", "annotator": 4, "annotation_id": 1},
        {"id": 5, "question": "Who?", "answer": "Two.", "kind": "No", "annotator": 7, "annotation_id": 2},
    ]
    columns = {"id": "id", "question": "question", "answer": "response", "kind": "label"}
    columns |= {"annotator": "grader", "annotation_id": "-"}
    mapping = ColumnMap("label_studio", columns, {"kind": LabelRule("abstention", PARTS)}, {"4": "ada"})
    (record,), _notices = read(stream(rows), mapping)
    assert record.response.human_labels == {"ada": "ANSWERED", "7": "REFUSED"}


# Argilla: records.to_json (nested) and to_list(flatten=True)


def test_argilla_nested_and_flattened_say_the_same():
    nested = {
        "id": "r1",
        "fields": {"question": "Who?", "answer": "Two."},
        "metadata": {"lang": "en"},
        "suggestions": {"refused": {"value": "No", "score": 0.9, "agent": "guess-1"}},
        "responses": {"refused": [{"value": "Yes", "user_id": "u-1"}]},
        "vectors": {},
        "_server_id": "7d1c",
    }
    flattened = {
        "id": "r1",
        "_server_id": "7d1c",
        "question": "Who?",
        "answer": "Two.",
        "lang": "en",
        "refused.responses": ["Yes"],
        "refused.responses.users": ["u-1"],
        "refused.responses.status": ["submitted"],
        "refused.suggestion": "No",
        "refused.suggestion.agent": "guess-1",
        "refused.suggestion.score": 0.9,
    }
    rule = LabelRule("abstention", {"Yes": "REFUSED", "No": "ANSWERED"})
    for record in (nested, flattened):
        (read_record,), _notices = read(stream([record]), ColumnMap("auto", labels={"refused": rule}))
        assert read_record.response.response_id == "r1"
        assert read_record.response.human_labels == {"u-1": "REFUSED"}
        assert read_record.response.judge_labels == {"guess-1": "ANSWERED"}


def test_argilla_leaves_discarded_responses_out():
    record = {
        "id": "r1",
        "question": "Who?",
        "answer": "Two.",
        "refused.responses": ["Yes", None],
        "refused.responses.users": ["u-1", "u-2"],
        "refused.responses.status": ["discarded", "draft"],
    }
    rule = LabelRule("abstention", {"Yes": "REFUSED"})
    (found,), _notices = read(stream([record]), ColumnMap("auto", labels={"refused": rule}))
    assert found.response.human_labels == {}


# LangSmith, Langfuse, Phoenix: data sets hold what should come out, not what did


@pytest.mark.parametrize(
    ("tool", "record"),
    [
        (
            "langsmith",
            {"id": "e1", "inputs": {"question": "Who?"}, "outputs": {"answer": "Two."}, "metadata": {"s": 1}},
        ),
        (
            "langfuse",
            {"id": "e1", "input": {"question": "Who?"}, "expectedOutput": {"answer": "Two."}, "metadata": {}},
        ),
        ("phoenix", {"example_id": "e1", "input_question": "Who?", "output_answer": "Two."}),
    ],
)
def test_the_outputs_of_a_data_set_are_reference_answers(tool, record):
    plan = plan_of(lines(record), "examples.jsonl")
    assert plan.shape == tool
    (found,), _notices = read(lines(record), ColumnMap("auto"), "examples.jsonl")
    assert (found.item.item_id, found.item.question) == ("e1", "Who?")
    assert found.item.reference_answer == "Two."
    assert found.response is None


def test_phoenix_spans_hold_what_a_system_answered():
    span = {
        "context.span_id": "s1",
        "attributes.input.value": "Who?",
        "attributes.output.value": "Two.",
        "attributes.llm.model_name": "demo-1",
        "attributes.retrieval.documents": [
            {"document.id": "d1", "document.content": "Two keepers.", "document.score": 0.3}
        ],
    }
    (record,), _notices = read(lines(span), ColumnMap("auto"), "spans.jsonl")
    assert record.response.text == "Two."
    assert record.response.system.given == {"model": "demo-1"}
    assert [(p.passage_id, p.text) for p in record.response.passages] == [("d1", "Two keepers.")]


SCORES = [
    {
        "id": "a1",
        "traceId": "r1",
        "observationId": None,
        "timestamp": "2026-01-05T10:00:00Z",
        "source": "ANNOTATION",
        "name": "answered",
        "dataType": "CATEGORICAL",
        "value": 1,
        "stringValue": "Yes",
        "comment": "",
        "authorUserName": "Ada",
    },
    {"id": "a2", "traceId": "r1", "source": "EVAL", "name": "answered", "dataType": "BOOLEAN", "value": 0},
]
ANNOTATIONS = [
    {
        "span_id": "r1",
        "annotation_name": "answered",
        "annotator_kind": "HUMAN",
        "label": "Yes",
        "score": 1.0,
        "user_id": "Ada",
    },
    {"span_id": "r1", "annotation_name": "answered", "annotator_kind": "LLM", "label": "No"},
]


@pytest.mark.parametrize(("tool", "rows"), [("langfuse", SCORES), ("phoenix", ANNOTATIONS)])
def test_annotations_are_labels_for_responses_that_are_there(tool, rows):
    findings = Findings()
    mapping = ColumnMap(tool, labels={"answered": LabelRule("abstention", PARTS)})
    found = list(read_labels(lines(*rows), "scores.jsonl", findings, mapping=mapping))
    assert findings.problems == []
    assert [(r.response_id, r.grader, r.dimension, r.label) for r in found] == [
        ("r1", "Ada", "abstention", "ANSWERED")
    ]
    assert "1 labels that no person gave were left out." in findings.notices


def labels_read(rule):
    findings = Findings()
    mapping = ColumnMap("langfuse", labels={"answered": rule})
    return list(read_labels(lines(SCORES[0]), "scores.jsonl", findings, mapping=mapping)), findings


def test_a_rule_of_labels_that_is_wrong_in_itself_is_told():
    for rule in (LabelRule("answering", PARTS), LabelRule("abstention", {"Yes": "yes"})):
        found, findings = labels_read(rule)
        assert found == []
        assert [(problem.line, problem.field) for problem in findings.problems] == [(None, "answered")]


def test_annotations_that_are_left_out_on_purpose_are_counted():
    found, findings = labels_read(LabelRule("abstention", {"Yes": LEAVE_OUT}))
    assert (found, findings.problems) == ([], [])
    assert findings.notices[1:] == ["Labels 'Yes' of \"answered\" were left out, as asked for. (line 1)"]


# promptfoo: `promptfoo eval -o results.json`, version 3 of its results


def result(test, prompt, provider, passed):
    return {
        "testIdx": test,
        "promptIdx": prompt,
        "vars": {"question": f"Who {test}?", "context": "Two keepers."},
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "Answer: Who?", "label": "short"},
        "response": {"output": "Two."},
        "success": passed,
        "score": 1,
        "gradingResult": {
            "pass": passed,
            "score": 1,
            "componentResults": [
                {"pass": passed, "score": 1, "assertion": {"type": "llm-rubric", "metric": "answers"}},
                {"pass": True, "score": 1, "assertion": {"type": "human"}},
            ],
        },
    }


def test_promptfoo_results_of_several_providers_share_their_items():
    document = {
        "evalId": "e",
        "results": {"version": 3, "results": [result(0, 0, "a:one", True), result(0, 1, "b:two", False)]},
    }
    labels = {
        "answers": LabelRule("abstention", {"pass": "ANSWERED", "fail": "REFUSED"}),
        "human": LabelRule("abstention", {"pass": "ANSWERED"}, "ada"),
    }
    records, _notices = read(stream(json.dumps(document, indent=2)), ColumnMap("auto", labels=labels))
    assert [record.response.response_id for record in records] == ["0-0", "0-1"]
    assert {record.item.item_id for record in records} == {"test-0"}
    assert [record.response.system.given["model"] for record in records] == ["a:one", "b:two"]
    assert records[1].response.judge_labels == {"promptfoo llm-rubric": "REFUSED"}
    assert records[0].response.human_labels == {"ada": "ANSWERED"}


# DeepEval: the latest test run, and evaluate()'s results


@pytest.mark.parametrize(
    "document",
    [
        {
            "testFile": "test_vault.py",
            "testCases": [
                {
                    "name": "case_0",
                    "input": "Who?",
                    "actualOutput": "Two.",
                    "expectedOutput": "Two keepers.",
                    "retrievalContext": ["Two keepers."],
                    "context": ["The ideal passage."],
                    "metricsData": [
                        {"name": "Faithfulness", "success": True, "score": 1.0, "evaluationModel": "m-1"}
                    ],
                }
            ],
        },
        {
            "test_results": [
                {
                    "name": "case_0",
                    "input": "Who?",
                    "actual_output": "Two.",
                    "expected_output": "Two keepers.",
                    "retrieval_context": ["Two keepers."],
                    "context": ["The ideal passage."],
                    "metrics_data": [
                        {"name": "Faithfulness", "success": True, "score": 1.0, "evaluation_model": "m-1"}
                    ],
                }
            ]
        },
    ],
)
def test_deepeval_cases_and_metrics(document):
    rule = LabelRule("abstention", {"success": "ANSWERED"})
    (record,), _notices = read(stream(document), ColumnMap("auto", labels={"Faithfulness": rule}))
    assert record.item.reference_answer == "Two keepers."
    assert [passage.text for passage in record.response.passages] == ["Two keepers."]
    assert record.response.judge_labels == {"m-1": "ANSWERED"}
    assert record.response.extra["meta"] == {"context": ["The ideal passage."]}


def test_a_label_of_a_claim_needs_a_claim():
    rule = LabelRule("grounding", {"success": "supported"})
    case = {
        "name": "c",
        "input": "Who?",
        "actual_output": "Two.",
        "metrics_data": [{"name": "F", "success": True}],
    }
    ((_line, field, message),) = problems(stream([case]), ColumnMap("auto", labels={"F": rule}))
    assert field == "F"
    assert message == "grounding is asked of a claim, and this record has none"
