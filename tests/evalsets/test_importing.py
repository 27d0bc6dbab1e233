"""The pure readers: limits, encodings, both formats, and what must hold inside and between lines."""

import gzip
import io
import json

import pytest

from evalsets.importing import Findings, Limits, read_labels, read_records
from evalsets.importing.findings import MOST_LISTED
from tests.evalsets.files import jsonl, line


def read(stream, filename="file.jsonl", **options):
    findings = Findings()
    records = [record for record, _is_new in read_records(stream, filename, findings, **options)]
    return records, findings


def problems(stream, filename="file.jsonl", **options):
    _records, findings = read(stream, filename, **options)
    return [(problem.line, problem.field, problem.message) for problem in findings.problems]


def only_problem(stream, filename="file.jsonl", **options):
    (problem,) = problems(stream, filename, **options)
    return problem


def csv(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


def test_every_field_of_a_line_is_read():
    given = line(
        id="r1",
        item_id="q1",
        strata={"language": "de"},
        stratum="billing",
        answerable=False,
        unanswerable_reason="false_premise",
        reference_answer="",
        expected_documents=["d"],
        expected_passages=[],
        variant_of="q1-en",
        context=[{"id": "p1", "text": "t", "title": "T", "document": "d", "score": 0.5}],
        system={
            "model": None,
            "name": "n",
            "provider": "p",
            "family": "f",
            "date": "2026",
            "settings": {"k": 1},
        },
        retrieval_query="trial",
        sample=3,
        claims=[
            {
                "id": "c1",
                "text": "x",
                "source_ids": ["p1"],
                "decision": True,
                "human_labels": {"ana": "supported", "ben": None},
                "judge_labels": {"gpt": "unsupported"},
                "original": {"a": 1},
                "meta": [1],
            }
        ],
        response_labels={"ana": "ANSWERED"},
        response_judge_labels={"gpt": "REFUSED"},
        source_dataset="s",
        source_ref="r",
        original=[1],
        meta={"m": 1},
    )
    (record,), findings = read(jsonl(given))
    item, response = record.item, record.response
    assert (item.item_id, item.strata) == ("q1", {"language": "de", "stratum": "billing"})
    assert (item.answerable, item.unanswerable_reason, item.variant_of) == (False, "false_premise", "q1-en")
    assert (item.reference_answer, item.expected_documents, item.expected_passages) == ("", ["d"], [])
    assert item.extra == {}
    assert (response.response_id, response.sample, response.retrieval_query) == ("r1", 3, "trial")
    assert response.extra == {"source_dataset": "s", "source_ref": "r", "original": [1], "meta": {"m": 1}}
    assert response.system.given == given["system"]
    (passage,), (claim,) = response.passages, response.claims
    assert (passage.passage_id, passage.title, passage.document) == ("p1", "T", "d")
    assert passage.extra == {"score": 0.5}
    assert (claim.source_ids, claim.decision) == (["p1"], True)
    assert claim.extra == {"original": {"a": 1}, "meta": [1]}
    assert (claim.human_labels, claim.judge_labels) == ({"ana": "supported"}, {"gpt": "unsupported"})
    assert (response.human_labels, response.judge_labels) == ({"ana": "ANSWERED"}, {"gpt": "REFUSED"})
    assert not findings.refused


def test_an_item_without_a_response_keeps_the_rest_of_its_line():
    given = line(id="q1", response=..., claims=..., sample=2, original={"a": 1}, colour="red")
    (record,), findings = read(jsonl(given))
    assert record.response is None
    assert record.item.extra == {
        "context": given["context"],
        "system": given["system"],
        "sample": 2,
        "original": {"a": 1},
        "meta": {"colour": "red"},
    }
    assert any("1 items have no response yet" in notice for notice in findings.notices)


def test_unknown_keys_are_kept_in_meta_with_one_notice():
    lines = [line(score=n, meta={"kept": True}) for n in range(5)]
    records, findings = read(jsonl(*lines))
    assert records[3].response.extra["meta"] == {"kept": True, "score": 3}
    assert findings.notices == [
        'The key "score" is not known; it is kept in "meta". (lines 1, 2, 3 and 2 more)'
    ]


def test_absent_optional_fields_are_the_same_as_null():
    bare = {"id": "q1", "question": "?", "response": "r"}
    nulls = bare | dict.fromkeys(
        ("context", "claims", "system", "strata", "stratum", "sample", "item_id", "variant_of")
    )
    (one,), _ = read(jsonl(bare))
    (other,), _ = read(jsonl(nulls))
    assert (one.item.strata, one.response) == (other.item.strata, other.response)


@pytest.mark.parametrize(
    ("fields", "where", "message"),
    [
        (
            {"unanswerable_reason": "false_premise"},
            "unanswerable_reason",
            "only allowed where answerable is false",
        ),
        ({"answerable": False, "unanswerable_reason": "bored"}, "unanswerable_reason", "is expected"),
        ({"answerable": 0}, "answerable", "true, false or null"),
        ({"sample": 0}, "sample", "whole number from 1"),
        ({"sample": True}, "sample", "whole number from 1"),
        ({"sample": 1.5}, "sample", "whole number from 1"),
        ({"strata": {"language": 1}}, "strata.language", "a string is expected"),
        ({"strata": {"stratum": "a"}, "stratum": "b"}, "stratum", "differs"),
        ({"strata": ["a"]}, "strata", "an object is expected"),
        ({"question": 3}, "question", "a string is expected"),
        ({"expected_documents": "d"}, "expected_documents", "a list is expected"),
        ({"expected_passages": [1]}, "expected_passages[0]", "a string is expected"),
        ({"system": "gpt"}, "system", "an object is expected"),
        ({"system": {"model": 4}}, "system.model", "a string is expected"),
        ({"system": {"date": 2024}}, "system.date", "a string is expected"),
        ({"id": "x" * 501}, "id", "longer than 500"),
        ({"id": "\u200b"}, "id", "empty"),
        ({"item_id": 7}, "item_id", "a string is expected"),
        (
            {"claims": [{"id": "c", "text": "t", "decision": "yes"}]},
            "claims[0].decision",
            "true, false or null",
        ),
        ({"claims": [{"id": "c", "text": "\u200b "}]}, "claims[0].text", "has no text"),
        ({"claims": [{"text": "t"}]}, "claims[0].id", "missing"),
        (
            {"claims": [{"id": "c", "text": "t", "human_labels": ["x"]}]},
            "claims[0].human_labels",
            "an object",
        ),
        (
            {"claims": [{"id": "c", "text": "t", "human_labels": {" ": "supported"}}]},
            "claims[0].human_labels. ",
            "name",
        ),
        ({"response_labels": {"ana": "supported"}}, "response_labels.ana", "REFUSED, ANSWERED, CLARIFY"),
        ({"response_judge_labels": {"j": "HEDGED"}}, "response_judge_labels.j", "REFUSED, ANSWERED, CLARIFY"),
        ({"context": [{"id": "p1", "text": "a", "nul_at": {}}]}, "context[0].nul_at", "our own use"),
        ({"meta": "text", "score": 1}, "meta", "an object is expected"),
        ({"meta": {"score": 2}, "score": 1}, "meta", "already"),
    ],
)
def test_a_bad_value_is_named(fields, where, message):
    number, field, told = only_problem(jsonl(line(**fields)))
    assert (number, field) == (1, where)
    assert message in told


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"claims": [{"id": "c1", "text": "t"}]}, "claims"),
        ({"response_labels": {"ana": "REFUSED"}}, "response_labels"),
        ({"item_id": "other"}, "item_id"),
        ({"item_extra": {}}, "item_extra"),
        ({"context": "text"}, "context"),
    ],
)
def test_what_needs_a_response_is_refused_without_one(fields, where):
    given = line(**({"claims": ..., "context": ...} | fields))
    del given["response"]
    assert only_problem(jsonl(given))[:2] == (1, where)


def test_all_problems_of_all_lines_are_listed():
    found = problems(jsonl(line(id=1, answerable="x"), line(), line(id=2, question=...)))
    assert [(number, field) for number, field, _ in found] == [
        (1, "id"),
        (1, "answerable"),
        (3, "id"),
        (3, "question"),
    ]


def test_beyond_the_limit_problems_are_counted():
    _records, findings = read(jsonl(*(line(id=n) for n in range(MOST_LISTED + 5))))
    assert (len(findings.problems), findings.left_out) == (MOST_LISTED, 5)


def test_items_said_differently_are_refused_with_the_field():
    found = problems(
        jsonl(
            line(id="a", item_id="q", question="one"),
            line(id="b", item_id="q", question="two", answerable=None, system={"model": "other"}),
        )
    )
    assert [(number, field) for number, field, _ in found] == [(2, "question"), (2, "answerable")]
    assert "line 1" in found[0][2]


def test_samples_of_one_system_need_numbers():
    lines = [line(id="a", item_id="q"), line(id="b", item_id="q")]
    assert only_problem(jsonl(*lines))[:2] == (2, "sample")
    assert problems(jsonl(lines[0], lines[1] | {"sample": 2})) == []
    assert problems(jsonl(lines[0], lines[1] | {"system": {"model": "demo-2"}})) == []
    assert problems(jsonl(lines[0], lines[1] | {"run": 2})) == []


def test_an_item_line_may_stand_before_its_responses():
    alone = line(id="q", response=..., claims=...)
    assert problems(jsonl(alone, line(id="a", item_id="q"), line(id="b", item_id="q", sample=2))) == []
    assert only_problem(jsonl(line(id="a", item_id="q"), alone))[:2] == (2, "response")


def test_names_that_differ_in_case_are_reported_never_merged():
    claims = [{"id": "c1", "text": "t", "human_labels": {"ana": "supported"}}]
    found = only_problem(jsonl(line(claims=claims), line(claims=claims, response_labels={"Ana": "ANSWERED"})))
    assert found == (2, "grader", "the grader 'Ana' differs only in case from 'ana' (line 1)")


def test_labels_of_an_empty_response_are_left_out_with_a_notice():
    (record,), findings = read(jsonl(line(response=" \u200b", claims=[], response_labels={"ana": "REFUSED"})))
    assert record.response.human_labels == {}
    assert any("empty response" in notice for notice in findings.notices)


def test_folded_labels_are_told():
    (record,), findings = read(jsonl(line(response_labels={"ana": " refused "})))
    assert record.response.human_labels == {"ana": "REFUSED"}
    assert findings.notices == ['The label " refused " was read as "REFUSED". (line 1)']


def test_nul_in_a_passage_is_shown_and_kept_elsewhere_refused():
    given = line(context=[{"id": "p1", "text": "a\0b\0", "title": "\0"}])
    (record,), findings = read(jsonl(given))
    (passage,) = record.response.passages
    assert (passage.text, passage.title) == ("a\u2400b\u2400", "\u2400")
    assert passage.extra == {"nul_at": {"text": [1, 3], "title": [0]}}
    assert any("NUL" in notice for notice in findings.notices)
    assert only_problem(jsonl(line(response="a\0b")))[:2] == (1, "response")
    assert only_problem(jsonl(line(original={"x": ["\0"]})))[:2] == (1, "original.x[0]")
    assert only_problem(jsonl(line(context=[{"id": "p\0", "text": "t"}])))[:2] == (1, "context[0].id")


def test_depth_is_limited_and_never_a_recursion_error():
    def nested(levels):
        return json.loads("[" * levels + "]" * levels)

    assert problems(jsonl(line(original=nested(60)))) == []
    assert "nested" in only_problem(jsonl(line(original=nested(70))))[2]
    deep = json.dumps(line())[:-1] + ', "original": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert "nested" in only_problem(jsonl(deep))[2]


@pytest.mark.parametrize("digits", ["1e999", "-1e9999", "9" * 400 + ".0", "NaN", "Infinity"])
def test_numbers_without_an_end_are_refused(digits):
    given = json.dumps(line())[:-1] + f', "original": {{"x": {digits}}}}}'
    assert only_problem(jsonl(given))[:2] == (1, "original.x")


def test_a_line_with_two_faults_is_refused_all_the_same():
    assert "not JSON" in only_problem(jsonl('{"id": NaN, oops}'))[2]
    assert "nested" in only_problem(jsonl('{"id": NaN, "x": ' + "[" * 100_000 + "]" * 100_000 + "}"))[2]


def test_a_number_of_thousands_of_digits_is_refused():
    assert "number" in only_problem(jsonl(json.dumps(line())[:-1] + ', "original": ' + "9" * 5000 + "}"))[2]


def test_a_line_at_the_limit_is_read_and_one_beyond_it_is_not():
    whole = jsonl(line()).getvalue()
    assert problems(io.BytesIO(whole), limits=Limits(line=len(whole) - 1)) == []
    assert "limit" in only_problem(io.BytesIO(whole), limits=Limits(line=len(whole) - 2))[2]


def test_the_whole_file_is_limited_unpacked():
    packed = gzip.compress((b" " * 999 + b"\n") * 1000 + jsonl(line()).getvalue())
    assert len(packed) < 10_000
    assert "limit" in only_problem(io.BytesIO(packed), limits=Limits(total=100_000))[2]
    assert problems(io.BytesIO(packed)) == []


def test_gzip_is_found_by_content_and_damage_is_told():
    packed = gzip.compress(jsonl(*(line() for _ in range(200))).getvalue())
    records, _ = read(io.BytesIO(packed), "plain.jsonl")
    assert len(records) == 200
    assert "ends early" in problems(io.BytesIO(packed[:-10]), "x.gz")[-1][2]
    damaged = bytearray(packed)
    damaged[-6] ^= 0xFF  # the checksum
    assert "damaged" in only_problem(io.BytesIO(bytes(damaged)))[2]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(encoding):
    told = only_problem(io.BytesIO(jsonl(line()).getvalue().decode().encode(encoding)))[2]
    assert encoding[:6].upper() in told


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf", b"\n \r\n"])
def test_a_file_of_nothing_has_no_rows(content):
    assert "no rows" in only_problem(io.BytesIO(content))[2]
    assert "no rows" in only_problem(io.BytesIO(content), "file.csv")[2]


def test_a_control_character_is_kept():
    (record,), _ = read(jsonl(line(response="bell \u0007")))
    assert record.response.text == "bell \u0007"


def test_an_object_over_several_lines_is_one_problem():
    assert "object over several lines" in only_problem(io.BytesIO(json.dumps(line(), indent=1).encode()))[2]
    assert "array" in only_problem(io.BytesIO(json.dumps([line(), line()]).encode()))[2]


def test_csv_has_the_types_of_json_lines():
    text = (
        "id,item_id,question,strata,answerable,unanswerable_reason,context,response,system,claims,sample,original,note\n"
        '007,q,,"{""language"": ""de""}",FALSE,time_shifted,"[{""id"": ""p1"", ""text"": ""t""}]",,'
        '"{""model"": ""m""}","[{""id"": ""c1"", ""text"": ""x"", ""source_ids"": [""p1""]}]",2,plain,hm\n'
    )
    (record,), findings = read(csv(text), "file.csv")
    assert (record.item.item_id, record.item.question, record.item.answerable) == ("q", None, False)
    assert (record.item.unanswerable_reason, record.item.strata) == ("time_shifted", {"language": "de"})
    response = record.response
    assert (response.response_id, response.text, response.sample) == ("007", "", 2)
    assert (response.system.given, response.claims[0].source_ids) == ({"model": "m"}, ["p1"])
    assert response.extra == {"original": "plain", "meta": {"note": "hm"}}
    assert not findings.refused


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_separators_are_found_and_told(delimiter):
    text = f"id{delimiter}question{delimiter}response\n1{delimiter}a, b{delimiter}c\n"
    (record,), findings = read(csv(text), "file.csv")
    assert record.item.question == "a, b"
    assert any("separated by" in notice for notice in findings.notices)


@pytest.mark.parametrize(
    ("text", "number", "field", "message"),
    [
        ("id,question,response\n1,a\n", 2, "", "2 cells, but the header has 3 columns"),
        ("id,question,response\n1,a,b,c\n", 2, "", "4 cells"),
        ('id,question,response\n\n1,"a\nb",c,d\n', 3, "", "4 cells"),
        ("id,id,response\n1,a,b\n", 1, "", "two columns are called 'id'"),
        ("id,,response\n1,a,b\n", 1, "", "a column has no name"),
        ("question,response\na,b\n", 1, "", "the columns are not those of an eval set"),
        ("id,response\na,b\n", 1, "", "the columns are not those of an eval set"),
        ('id,question,response\n1,a,"never closed\n2,b,c\n', 2, "", "not CSV"),
        ("id,question,response,claims\n1,a,b,[1\n", 2, "claims", "cut off"),
        ("id,question,response,claims\n1,a,b,{}\n", 2, "claims", "a list is expected"),
        ("id,question,response,answerable\n1,a,b,maybe\n", 2, "answerable", "true, false or nothing"),
        ("id,question,response,sample\n1,a,b,two\n", 2, "sample", "a whole number"),
        ("id,question,response\n1,a,x\0y\n", 2, "", "NUL"),
    ],
)
def test_bad_csv_is_named(text, number, field, message):
    found = problems(csv(text), "file.csv")
    assert [(found[0][0], found[0][1])] == [(number, field)]
    assert message in found[0][2]


def test_blank_csv_rows_are_skipped_and_counted():
    records, findings = read(csv("id,question,response\n1,a,b\n,,\n\n2,a,b\n"), "file.csv")
    assert [record.line for record in records] == [2, 5]
    assert "1 rows without any content were skipped." in findings.notices


def test_a_long_csv_cell_is_read_whole():
    (record,), _ = read(csv(f"id,question,response\n1,a,{'x' * 300_000}\n"), "file.csv")
    assert len(record.response.text) == 300_000


def labels_of(stream, filename, **options):
    findings = Findings()
    return list(read_labels(stream, filename, findings, **options)), findings


def test_label_files_are_read_in_both_formats():
    text = "item,claim,grader,label\nq1,c1,ana,supported\nq1,,ana,REFUSED\n"
    (one, two), findings = labels_of(csv(text), "labels.csv")
    assert (one.item_id, one.claim_id, one.dimension) == ("q1", "c1", "grounding")
    assert (two.claim_id, two.dimension, findings.refused) == (None, "abstention", False)
    given = {"response": "r1", "claim": None, "grader": "ana", "label": "ANSWERED"}
    (three,), _ = labels_of(jsonl(given), "labels.jsonl")
    assert (three.response_id, three.item_id, three.label) == ("r1", None, "ANSWERED")


@pytest.mark.parametrize(
    ("fields", "options", "field"),
    [
        ({"label": "partly"}, {}, "label"),
        ({"grader": ""}, {}, "grader"),
        ({"grader": " ana"}, {}, "grader"),
        ({"item": None}, {}, "item"),
        ({"item": 7}, {}, "item"),
        ({"dimension": "tone"}, {}, "dimension"),
        ({"claim": None}, {"dimension": "grounding"}, "claim"),
        ({"label": "REFUSED"}, {"dimension": "abstention"}, "claim"),
    ],
)
def test_a_bad_label_line_is_named(fields, options, field):
    given = {"item": "q1", "claim": "c1", "grader": "ana", "label": "supported"} | fields
    _records, findings = labels_of(jsonl(given), "labels.jsonl", **options)
    assert [problem.field for problem in findings.problems] == [field]


def test_other_columns_are_no_label_file():
    _records, findings = labels_of(csv("id,question,response\n1,a,b\n"), "x.csv")
    assert "not those of a label file" in findings.problems[0].message
