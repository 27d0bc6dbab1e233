"""What the tools' releases write that their documentation does not say: invented contents, their shapes."""

import io
import json

import pytest
from openpyxl import Workbook

from evalsets.importing import ColumnMap, Findings, read_labels
from evalsets.importing.mapped import NATIVE, plan_of
from evalsets.importing.mapping import LEAVE_OUT, LabelRule
from tests.evalsets.shapes.reading import lines, problems, read, stream

ANSWERED = LabelRule("abstention", {"Yes": "ANSWERED", "No": "REFUSED"})
LEFT = LabelRule(LEAVE_OUT)


def texts(record) -> list[str]:
    return [passage.text for passage in record.response.passages]


# Ragas 0.4 and Hugging Face datasets 5


def test_a_table_with_ids_of_its_own_keeps_its_answer_and_its_passages():
    row = {"id": "h-7", "question": "Who?", "contexts": ["Two keepers."], "answer": "Two."}
    plan = plan_of(lines(row), "train.jsonl")
    (record,), _notices = read(lines(row), ColumnMap("auto"), "train.jsonl")
    assert plan.shape == "ragas"
    assert (record.response.response_id, record.response.text, texts(record)) == (
        "h-7",
        "Two.",
        ["Two keepers."],
    )


@pytest.mark.parametrize("other", ["answer", "output", "chunks"])
def test_a_line_that_names_its_answer_or_passages_otherwise_is_not_native(other):
    assert plan_of(lines({"id": "1", "question": "Who?", other: "Two."}), "a.jsonl").shape == "table"
    assert plan_of(lines({"id": "1", "question": "Who?", "note": "Two."}), "a.jsonl").shape == NATIVE


def test_a_conversation_in_a_table_is_no_question_either():
    text = "user_input,reference\n\"[{'content': 'Hi', 'type': 'human'}]\",Two.\n"
    assert problems(stream(text), ColumnMap("ragas"), "multi.csv") == [
        (2, "user_input", "a conversation of 1 messages stands here; one text is expected")
    ]


def test_a_list_that_was_cut_is_no_passage():
    text = 'user_input,retrieved_contexts,response\nWho?,"[\'Two keep",Two.\n'
    ((line, column, message),) = problems(stream(text), ColumnMap("ragas"), "samples.csv")
    assert (line, column) == (2, "retrieved_contexts")
    assert "cut off" in message


def test_records_written_column_by_column_are_refused_by_name():
    columns = {"user_input": {"0": "Who?", "1": "When?"}, "response": {"0": "Two.", "1": "At noon."}}
    (problem,) = plan_of(stream(columns), "samples.json").findings.problems
    assert problem.line == 1
    assert 'orient="records"' in problem.message


def test_a_full_cell_of_a_workbook_is_told():
    book = Workbook()
    book.active.append(["question", "answer"])
    book.active.append(["Who?", "x" * 32_767])
    file = io.BytesIO()
    book.save(file)
    _records, notices = read(file, ColumnMap("auto"), "a.xlsx")
    assert any("32,767 characters" in notice and "(line 2)" in notice for notice in notices)


# DeepEval 4


def case(**fields):
    return {"input": "Who?", "actual_output": "Two.", "expected_output": None, "name": None} | fields


def test_deepeval_names_that_are_missing_are_no_ids():
    records, notices = read(stream([case(name="first"), case()]), ColumnMap("auto"), "goldens.json")
    assert [record.response.response_id for record in records] == ["row-1", "row-2"]
    assert records[0].response.extra["meta"] == {"name": "first"}
    assert any("the records are numbered" in notice for notice in notices)


def test_deepeval_passages_are_parted_where_it_joins_them():
    (record,), notices = read(lines(case(retrieval_context="One.|Two.")), ColumnMap("auto"), "goldens.jsonl")
    assert texts(record) == ["One.", "Two."]
    assert any(notice.startswith('1 values of "retrieval_context" were parted') for notice in notices)
    (record,), _notices = read(stream([case(retrieval_context=["a|b"])]), ColumnMap("auto"))
    assert texts(record) == ["a|b"]


def test_deepeval_latest_run_lies_one_level_deeper_and_its_conversations_are_counted():
    run = {
        "testCases": [{"name": "c", "input": "Who?", "actualOutput": "Two.", "metricsData": []}],
        "conversationalTestCases": [{"name": "talk", "turns": []}],
    }
    (record,), notices = read(stream({"testRunData": run}), ColumnMap("auto"), "latest.json")
    assert record.response.text == "Two."
    assert any(notice.startswith("1 records under testRunData.conversationalTest") for notice in notices)


def test_deepeval_conversations_are_refused_line_by_line():
    talk = {"scenario": "At the vault", "turns": [{"role": "user", "content": "Who?"}]}
    assert problems(stream([talk]), ColumnMap("deepeval", {"input": "question"})) == [
        (1, "", "a conversation of 1 turns stands here; one input is expected")
    ]


def test_a_column_of_responses_without_any_is_none():
    text = "input,actual_output,expected_output\nWho?,,Two.\n"
    (record,), _notices = read(stream(text), ColumnMap("auto"), "goldens.csv")
    assert record.response is None
    text += "When?,At noon.,\n"
    (first, _second), notices = read(stream(text), ColumnMap("auto"), "goldens.csv")
    assert first.response.text == ""
    assert any(notice.startswith("1 responses are empty") for notice in notices)


# Argilla 2.8: to_json leaves the status of a response out; a table holds its lists as text


FLAT = {
    "id": "r1",
    "question": "Who?",
    "answer": "Two.",
    "refused.responses": ["Yes", "No", "No", "No"],
    "refused.responses.users": ["ada", "ben", "cleo", "dora"],
    "refused.responses.status": ["submitted", "draft", "discarded", "pending"],
}
REFUSED = {"refused": LabelRule("abstention", {"Yes": "REFUSED", "No": "ANSWERED"})}


def as_table(row: dict) -> str:
    cells = (str(value).replace('"', '""') for value in row.values())
    return ",".join(row) + "\n" + ",".join(f'"{cell}"' for cell in cells) + "\n"


@pytest.mark.parametrize(("written", "name"), [(FLAT, "a.jsonl"), (as_table(FLAT), "a.csv")])
def test_argilla_takes_only_submitted_responses_and_counts_the_others(written, name):
    file = stream(written) if isinstance(written, str) else lines(written)
    (record,), notices = read(file, ColumnMap("auto", labels=REFUSED), name)
    assert record.response.human_labels == {"ada": "REFUSED"}
    assert "1 responses that are drafts were left out." in notices
    assert "1 responses that were discarded were left out." in notices
    assert "1 responses that are neither submitted, drafts nor discarded were left out." in notices


def test_argilla_tells_where_the_status_of_a_response_is_not_known():
    nested = {
        "id": "r1",
        "fields": {"question": "Who?", "answer": "Two."},
        "responses": {"refused": [{"value": "Yes", "user_id": "ada"}]},
        "suggestions": {},
    }
    (record,), notices = read(stream([nested]), ColumnMap("auto", labels=REFUSED))
    assert record.response.human_labels == {"ada": "REFUSED"}
    assert any(notice.startswith("1 responses are taken as submitted") for notice in notices)


def test_argilla_responses_that_are_no_list_are_refused():
    text = as_table(FLAT | {"refused.responses": "Yes, No, No"})
    ((line, _field, message),) = problems(
        stream(text), ColumnMap("argilla", {"question": "question"}), "a.csv"
    )
    assert line == 2
    assert message.startswith("refused.responses is to be a list")


# Label Studio 1.23

ROW = {"id": 5, "question": "Who?", "answer": "Two.", "contexts": ["One."]}


def test_label_studio_rows_of_several_people_need_no_label_to_be_read():
    rows = [
        ROW | {"kind": "Yes", "annotator": 1, "annotation_id": 1},
        ROW | {"kind": "No", "annotator": 2, "annotation_id": 2},
    ]
    (record,), notices = read(stream(rows), ColumnMap("auto"))
    assert record.response.text == "Two."
    assert any(notice.startswith("1 further rows of a response differ") for notice in notices)


@pytest.mark.parametrize(
    ("given", "value"),
    [([{"rating": 4}], "4"), ('[{"rating":4}]', "4"), ([{"number": 4}], "4"), ("4", "4")],
)
def test_label_studio_choices_and_ratings_come_out_of_their_wrapping(given, value):
    row = ROW | {"stars": given, "annotator": 1, "annotation_id": 1}
    columns = {
        "id": "id",
        "question": "question",
        "answer": "response",
        "stars": "label",
        "annotator": "grader",
    }
    rule = LabelRule("abstention", {value: "ANSWERED"})
    (record,), _notices = read(stream([row]), ColumnMap("label_studio", columns, {"stars": rule}))
    assert record.response.human_labels == {"1": "ANSWERED"}


def test_label_studio_choices_of_one_question_stay_together():
    row = ROW | {"topics": {"choices": ["fee", "vault"]}, "annotator": 1, "annotation_id": 1}
    (record,), _notices = read(stream([row]), ColumnMap("auto"))
    assert record.response.extra["meta"] == {"topics": ["fee", "vault"]}


def test_label_studio_counts_what_an_export_does_not_hold_in_full():
    task = {
        "id": 17,
        "data": {"question": "Who?", "answer": "Two."},
        "annotations": [
            {"completed_by": 1, "was_cancelled": True, "result": []},
            {
                "completed_by": 2,
                "was_cancelled": False,
                "result": [{"from_name": "why", "type": "text", "value": {"text": ["because"]}}],
            },
        ],
        "drafts": [{"id": 9}],
        "predictions": [1, 2],
    }
    _records, notices = read(stream([task]), ColumnMap("auto"))
    assert "1 annotations that were cancelled were left out." in notices
    assert "1 drafts of annotations were left out." in notices
    assert "1 results that are no choice, label, rating or number were left out." in notices
    assert any(notice.startswith("2 predictions were left out") for notice in notices)


# Phoenix 20: the server's CSV, the client's data frames and lists

EXAMPLE = {"id": "e1", "node_id": "e1", "input": {"question": "Who?"}, "output": {"answer": "Two."}}


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("id,node_id,input.question,output.answer\ne1,e1,Who?,Two.\n", "dataset.csv"),
        ("example_id,input,output\ne1,{'question': 'Who?'},{'answer': 'Two.'}\n", "frame.csv"),
        (json.dumps({"name": "vault", "examples": [EXAMPLE]}), "dataset.json"),
        (json.dumps({"data": {"dataset_id": "d", "examples": [EXAMPLE]}}), "examples.json"),
    ],
)
def test_phoenix_examples_in_every_form_hold_question_and_reference(written, name):
    assert plan_of(stream(written), name).shape == "phoenix"
    (record,), _notices = read(stream(written), ColumnMap("auto"), name)
    assert (record.item.item_id, record.item.question, record.item.reference_answer) == ("e1", "Who?", "Two.")
    assert record.response is None


def test_phoenix_spans_as_a_frame_writes_them_have_their_id_twice():
    text = (
        "context.span_id,parent_id,context.span_id,attributes.input.value,attributes.output.value\n"
        "s1,,s1,Who?,Two.\ns2,s1,s2,When?,At noon.\n"
    )
    records, notices = read(stream(text), ColumnMap("auto"), "spans.csv")
    assert [record.response.response_id for record in records] == ["s1", "s2"]
    assert any(
        notice.startswith('1 columns have the name of an earlier one; here they are: "context')
        for notice in notices
    )
    assert any(notice.startswith("1 spans are steps of another span") for notice in notices)


def test_phoenix_spans_as_a_list_hold_their_documents_one_by_one():
    span = {
        "context": {"span_id": "s1", "trace_id": "t"},
        "attributes": {
            "input.value": '{"messages": []}',
            "input.mime_type": "application/json",
            "output.value": "Two.",
            "retrieval.documents.10.document.content": "Last.",
            "retrieval.documents.2.document.content": "First.",
            "retrieval.documents.2.document.id": "d2",
        },
    }
    (record,), notices = read(stream([span]), ColumnMap("auto"), "spans.json")
    assert [(p.passage_id, p.text) for p in record.response.passages] == [("d2", "First."), ("p2", "Last.")]
    assert any(notice.startswith("1 inputs are JSON") for notice in notices)


def test_json_lines_whose_records_have_a_list_called_examples_stay_json_lines():
    rows = [{"question": "Who?", "answer": "Two.", "examples": [1]}, {"question": "When?", "answer": "Noon."}]
    records, _notices = read(lines(*rows), ColumnMap("auto"), "a.jsonl")
    assert len(records) == 2


# LangSmith 0.15: runs and experiments hold what a system answered


@pytest.mark.parametrize(
    ("row", "reference"),
    [
        (
            {
                "inputs.question": "Who?",
                "outputs.answer": "Two.",
                "reference.answer": "Two keepers.",
                "execution_time": 0.1,
                "example_id": "e1",
                "id": "r1",
            },
            "Two keepers.",
        ),
        (
            {
                "id": "r1",
                "run_type": "chain",
                "inputs": {"question": "Who?"},
                "outputs": {"answer": "Two."},
                "reference_example_id": "e1",
            },
            None,
        ),
    ],
)
def test_langsmith_outputs_of_a_run_are_responses(row, reference):
    (record,), _notices = read(lines(row), ColumnMap("auto"), "runs.jsonl")
    assert (record.item.item_id, record.item.reference_answer) == ("e1", reference)
    assert (record.response.response_id, record.response.text) == ("r1", "Two.")


FEEDBACK = {
    "run_id": "r1",
    "key": "answered",
    "score": 1,
    "value": "Yes",
    "feedback_source": {"type": "app", "user_id": "ada"},
}
SCORE = {
    "id": "a1",
    "name": "answered",
    "source": "ANNOTATION",
    "dataType": "CATEGORICAL",
    "value": "Yes",
    "authorUserId": "ada",
    "subject": {"kind": "trace", "id": "r1"},
}


@pytest.mark.parametrize(
    "rows",
    [
        (FEEDBACK, FEEDBACK | {"value": "No", "feedback_source": {"type": "model", "user_id": None}}),
        (SCORE, SCORE | {"source": "EVAL"}),
    ],
    ids=["langsmith", "langfuse"],
)
def test_feedback_and_scores_of_people_are_labels_of_runs(rows):
    findings = Findings()
    found = list(
        read_labels(
            lines(*rows), "a.jsonl", findings, mapping=ColumnMap("auto", labels={"answered": ANSWERED})
        )
    )
    assert [(label.response_id, label.grader, label.label) for label in found] == [("r1", "ada", "ANSWERED")]
    assert findings.problems == []
    assert "1 labels that no person gave were left out." in findings.notices


def test_langfuse_observations_hold_what_a_system_answered():
    row = {"id": "o1", "projectId": "p", "input": '{"question": "Who?"}', "output": '{"answer": "Two."}'}
    (record,), _notices = read(lines(row), ColumnMap("auto"), "observations.jsonl")
    assert (record.item.question, record.response.text) == ("Who?", "Two.")


# promptfoo 0.121


def test_promptfoo_keeps_a_test_s_description_and_a_person_s_comment():
    result = {
        "testIdx": 0,
        "promptIdx": 0,
        "vars": {"question": "Who?"},
        "provider": {"id": "echo", "label": ""},
        "prompt": {"raw": "Who?", "label": "short"},
        "response": {"output": "Two."},
        "testCase": {"description": "opening"},
        "gradingResult": {"pass": True, "comment": "fine"},
    }
    (record,), _notices = read(lines(result), ColumnMap("auto"), "results.jsonl")
    assert record.response.extra["meta"] == {
        "prompt.raw": "Who?",
        "description": "opening",
        "comment": "fine",
    }


@pytest.mark.parametrize("name", ["results.yaml", "results.html", "RESULTS.YML.gz"])
def test_what_is_not_read_is_refused_by_name(name):
    (problem,) = plan_of(stream("evalId: e\n"), name).findings.problems
    assert "are not read" in problem.message
