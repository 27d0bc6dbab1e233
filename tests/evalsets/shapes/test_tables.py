"""Plain tables in every kind of file, mapped by hand; and files that mean harm."""

import io
import json
import zipfile

import openpyxl
import pyarrow
import pyarrow.parquet
import pytest

from evalsets.importing import ColumnMap, Findings, Limits, read_records
from evalsets.importing.mapped import plan_of
from evalsets.importing.mapping import LabelRule, mapping_of, overruled

HEADER = ["Fall", "Frage", "Antwort", "Aussage", "Urteil Ada", "Urteil Ben", "Sprache"]
ROWS = [
    ["007", "Wie lange?", "14 Tage, kostenlos.", "Sie dauert 14 Tage.", "ja", "ja", "de"],
    ["007", "Wie lange?", "14 Tage, kostenlos.", "Sie ist kostenlos.", "nein", "unklar", "de"],
    ["7", "Wer?", "Zwei.", "Es sind zwei.", "ja", "", "de"],
]
GROUNDS = {"ja": "supported", "nein": "contradicted", "unklar": "unverifiable"}
MAPPING = ColumnMap(
    "table",
    {
        "Fall": "id",
        "Frage": "question",
        "Antwort": "response",
        "Aussage": "claim",
        "Urteil Ada": "label",
        "Urteil Ben": "label",
        "Sprache": "strata.language",
    },
    {
        "Urteil Ada": LabelRule("grounding", GROUNDS, "ada"),
        "Urteil Ben": LabelRule("grounding", GROUNDS, "ben"),
    },
)


def as_csv(rows=ROWS, separator=";"):
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in [HEADER, *rows])
    return io.BytesIO(text.encode()), "table.csv"


def as_xlsx(rows=ROWS):
    book = openpyxl.Workbook()
    for row in [HEADER, *rows]:
        book.active.append(row)
    book.create_sheet("Notizen").append(["vergessen"])
    stream = io.BytesIO()
    book.save(stream)
    return stream, "table.xlsx"


def as_parquet(rows=ROWS):
    columns = {name: [row[index] for row in rows] for index, name in enumerate(HEADER)}
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), stream)
    return stream, "table.parquet"


def as_json(rows=ROWS):
    records = [dict(zip(HEADER, row, strict=True)) for row in rows]
    return io.BytesIO(json.dumps(records).encode()), "table.json"


def read(stream, name, mapping=MAPPING, limits=None):
    findings = Findings()
    options = {"limits": limits} if limits else {}
    records = [record for record, _new in read_records(stream, name, findings, mapping=mapping, **options)]
    return records, findings


@pytest.mark.parametrize("write", [as_csv, as_xlsx, as_parquet, as_json])
def test_a_claim_a_row_is_a_response_with_claims(write):
    records, findings = read(*write())
    assert findings.problems == []
    first, second = records
    assert (first.response.response_id, second.response.response_id) == ("007", "7")
    assert [claim.text for claim in first.response.claims] == ["Sie dauert 14 Tage.", "Sie ist kostenlos."]
    assert [claim.claim_id for claim in first.response.claims] == ["c1", "c2"]
    assert first.response.claims[1].human_labels == {"ada": "contradicted", "ben": "unverifiable"}
    assert second.response.claims[0].human_labels == {"ada": "supported"}
    assert first.item.strata == {"language": "de"}


@pytest.mark.parametrize(
    ("cell", "texts"), [("[('Zwei.', 'Drei.')]", None), ("['Zwei.', {'text': 'Drei.'}]", ["Zwei.", "Drei."])]
)
def test_a_list_as_python_prints_it(cell, texts):
    columns = {"Fall": "id", "Frage": "question", "Antwort": "response", "Aussage": "context"}
    rows = [["1", "Wer?", "Zwei.", cell, "", "", ""]]
    records, findings = read(*as_csv(rows), ColumnMap("table", columns))
    if texts is None:
        assert [(problem.line, problem.field) for problem in findings.problems] == [(2, "Aussage")]
        assert "not a list" in findings.problems[0].message
    else:
        assert [passage.text for passage in records[0].response.passages] == texts


def test_what_no_database_can_hold_is_refused_in_parquet_as_in_json():
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"id": ["a"], "question": ["Wer?\0"]}), stream)
    records, findings = read(stream, "set.parquet", ColumnMap("native"))
    assert records == []
    assert [(problem.line, problem.field) for problem in findings.problems] == [(1, "question")]
    assert "NUL" in findings.problems[0].message


def test_sheets_that_are_not_read_are_named():
    _records, findings = read(*as_xlsx())
    assert findings.notices == ['The sheet "Notizen" was left out: only the first one is read.']


def test_rows_of_one_response_that_contradict_each_other_are_refused():
    rows = [ROWS[0], [*ROWS[1][:2], "15 Tage.", *ROWS[1][3:]]]
    _records, findings = read(*as_csv(rows))
    (problem,) = findings.problems
    assert (problem.line, problem.field) == (3, "response")
    assert "differs from line 2" in problem.message


def test_one_response_in_two_places_is_refused():
    _records, findings = read(*as_csv([ROWS[0], ROWS[2], ROWS[1]]))
    assert [(problem.line, problem.field) for problem in findings.problems] == [(4, "id")]


def test_an_unmapped_label_is_a_problem_and_never_a_default():
    rows = [ROWS[0], [*ROWS[1][:4], "vielleicht", "", "de"]]
    _records, findings = read(*as_csv(rows))
    (problem,) = findings.problems
    assert (problem.line, problem.field, problem.value) == (3, "Urteil Ada", "vielleicht")


def test_several_columns_of_passages_are_served_in_the_order_of_the_columns():
    table = """Frage;Antwort;Quelle 2;Quelle 1
Wann?;Nie.;Am Montag.;"[""Am Dienstag."", ""Nie.""]"
Wo?;Hier.;;Hier.
"""
    columns = {"Frage": "question", "Antwort": "response", "Quelle 1": "context", "Quelle 2": "context"}
    records, findings = read(io.BytesIO(table.encode()), "table.csv", ColumnMap("table", columns))
    assert findings.problems == []
    assert [[(p.passage_id, p.text) for p in record.response.passages] for record in records] == [
        [("p1", "Am Montag."), ("p2", "Am Dienstag."), ("p3", "Nie.")],
        [("p1", "Hier.")],
    ]


def test_numbers_of_a_workbook_stay_what_they_look_like():
    book = openpyxl.Workbook()
    book.active.append(["id", "question", "response"])
    book.active.append([7, "How many?", 2.0])
    book.active.append(["007", "How many?", None])
    stream = io.BytesIO()
    book.save(stream)
    columns = {"id": "id", "question": "question", "response": "response"}
    records, findings = read(stream, "numbers.xlsx", ColumnMap("table", columns))
    assert findings.problems == []
    assert [(r.response.response_id, r.response.text) for r in records] == [("7", "2"), ("007", "")]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"Frage": "question", "Antwort": "question"}, "two columns are to be question"),
        ({"Frage": "qestion", "Antwort": "response"}, "there is no field 'qestion'"),
        ({"Antwort": "response"}, "no column is the question"),
        ({"Frage": "question", "Aussage": "claim"}, "choose the id"),
    ],
)
def test_a_mapping_that_is_wrong_in_itself_is_told_alone(columns, message):
    _records, findings = read(*as_csv(), ColumnMap("table", columns))
    assert len(findings.problems) >= 1
    assert all(problem.line is None for problem in findings.problems)
    assert any(message in problem.message for problem in findings.problems)


def test_a_label_that_the_dimension_does_not_have_is_refused():
    rule = LabelRule("grounding", {"ja": "REFUSED"}, "ada")
    mapping = ColumnMap("table", MAPPING.columns, {"Urteil Ada": rule, "Urteil Ben": LabelRule("-")})
    _records, findings = read(*as_csv(), mapping)
    (problem,) = findings.problems
    assert "a label that grounding does not have" in problem.message


def test_a_mapping_of_another_form_is_refused_with_the_place():
    findings = Findings()
    mapping_of({"columns": {"a": 1}, "labels": {"q": 3}, "other": {}}, findings)
    assert {problem.field for problem in findings.problems} == {
        "map: columns",
        "map: labels: q",
        "map: other",
    }


def test_a_mapping_survives_its_own_json():
    findings = Findings()
    assert mapping_of(json.loads(json.dumps(MAPPING.as_json())), findings) == MAPPING
    assert findings.problems == []


def test_a_field_told_of_one_column_is_taken_from_the_other():
    assert overruled({"a": "question", "b": "response"}, {"c": "question"}) == {
        "a": "meta",
        "b": "response",
        "c": "question",
    }


# The preview


def test_the_preview_tells_columns_examples_and_suggestions():
    stream, name = as_csv()
    plan = plan_of(stream, name)
    assert (plan.kind, plan.shape, plan.records, plan.whole) == ("CSV", "table", 3, True)
    assert plan.columns["Frage"].examples == ["Wie lange?", "Wie lange?", "Wer?"]
    assert plan.columns["Urteil Ben"].filled == 2
    assert set(plan.suggested.values()) == {"meta"}  # no German name is guessed, and no label ever


def test_columns_of_labels_are_questions_once_they_are_chosen():
    stream, name = as_csv()
    plan = plan_of(stream, name, shape="table", mapping=MAPPING)
    assert dict(plan.questions["Urteil Ada"].values) == {"ja": 2, "nein": 1}
    assert plan.as_json()["labels"]["Urteil Ada"]["values"] == {"ja": None, "nein": None}


def test_a_native_file_is_known_as_one():
    line = {"id": "a", "question": "Who?", "response": "Two.", "context": []}
    assert plan_of(io.BytesIO(json.dumps(line).encode()), "x.jsonl").shape == "native"
    records, findings = read(io.BytesIO(json.dumps([line]).encode()), "x.json", ColumnMap("auto"))
    assert findings.problems == []
    assert records[0].response.text == "Two."


# Files that mean harm


def bomb():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * 3_000_000)
    return stream


HARM = {
    "no_workbook.xlsx": io.BytesIO(b"PK\x03\x04" + b"x" * 100),
    "other_zip.xlsx": bomb(),
    "cut.parquet": io.BytesIO(as_parquet()[0].getvalue()[:-30]),
    "only_the_mark.parquet": io.BytesIO(b"PAR1"),
    "deep.json": io.BytesIO(b"[" * 100_000),
    "cut.json": io.BytesIO(b'[{"Frage": "a"}, {"Fra'),
    "no_list.json": io.BytesIO(b'{\n"a": {"b": 1}\n}'),
    "empty.json": io.BytesIO(b"[]"),
    "empty": io.BytesIO(b""),
    "numbers.json": io.BytesIO(b"[1, 2]"),
    "nan.json": io.BytesIO(b'[{"Frage": NaN}]'),
    "nul.json": io.BytesIO(b'[{"Frage": "a\\u0000b"}]'),
    "twice.json": io.BytesIO(b'[{"Frage": "a", "Frage": "b"}]'),
}


@pytest.mark.parametrize("name", HARM)
def test_harm_is_refused_in_words(name):
    records, findings = read(HARM[name], name, ColumnMap("table", {"Frage": "question"}))
    assert records == []
    assert findings.problems
    assert all(problem.message and "Traceback" not in problem.message for problem in findings.problems)


@pytest.mark.parametrize("name", HARM)
def test_a_preview_of_harm_is_a_problem_too(name):
    assert plan_of(HARM[name], name).findings.problems or name == "empty.json"


def test_what_unpacks_to_more_than_the_limit_is_refused():
    small = Limits(total=1000)
    big = [["1", "x" * 5000, "", "", "", "", ""]]
    for stream, name in (as_xlsx(big), as_parquet(big), as_json(big)):
        _records, findings = read(stream, name, limits=small)
        assert "limit" in findings.problems[0].message, name


def test_bytes_in_a_parquet_file_are_no_text():
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"Frage": [b"\xff"]}), stream)
    _records, findings = read(stream, "x.parquet", ColumnMap("table", {"Frage": "question"}))
    assert [(problem.line, problem.field) for problem in findings.problems] == [(1, "Frage")]


def test_html_stays_text():
    row = ["1", "<script>alert(1)</script>", "=1+1", "", "", "", ""]
    (record,), _findings = read(*as_xlsx([row]))
    assert record.item.question == "<script>alert(1)</script>"
