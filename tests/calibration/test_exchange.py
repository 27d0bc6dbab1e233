"""Files in and out: labels and verdicts, export and import again, label files."""

import io
import json
from collections import Counter

import pytest
from django.core.management import CommandError, call_command

from annotate.models import Annotation, GoldLabel, Grader, Round
from calibration import exchange
from calibration.label_files import import_labels
from calibration.models import Judge, JudgeRun, Verdict
from calibration.native_file import export_version
from evalsets.importing import ImportRefused
from evalsets.models import Claim, EvalSet, EvalSetVersion, Response, SystemRun
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = pytest.mark.django_db

DEV_FILES = [
    "abg_coqa",
    "attributionbench",
    "coconot_questions",
    "factcheck_gpt",
    "faithbench_sentence",
    "faithbench_summary",
    "falseqa",
    "pubmedqa",
    "qags",
    "refchecker_nocontext",
    "rgb_questions",
    "wice",
    "xstest",
]


def imported(*lines, name="set", **options):
    return exchange.import_evalset(stream=jsonl(*lines), filename="set.jsonl", name=name, **options)


def version_of(told) -> EvalSetVersion:
    return EvalSetVersion.objects.get(evalset__slug=told["evalset"], number=told["version"])


def exported(version, **options) -> tuple[bytes, dict]:
    out = io.BytesIO()
    return out, export_version(version=version, out=out, **options)


def refusal(call, *args, **options) -> list[tuple]:
    before = rows_of_every_table()
    with pytest.raises(ImportRefused) as refused:
        call(*args, **options)
    assert rows_of_every_table() == before
    return [(problem.line, problem.field, problem.message) for problem in refused.value.problems]


def labelled_line(**fields):
    claims = [
        {
            "id": "c1",
            "text": "The trial lasts 14 days.",
            "human_labels": {"ana": "supported", "ben": "supported", "eve": None},
            "judge_labels": {"gpt": "unsupported"},
        },
        {"id": "c2", "text": "It is free.", "human_labels": {"ana": "supported", "ben": "contradicted"}},
        {"id": "c3", "text": "It is long.", "human_labels": {"ana": "unverifiable"}},
    ]
    given = line(claims=claims, response_labels={"ana": "ANSWERED"}, response_judge_labels={"gpt": "REFUSED"})
    return given | fields


def test_labels_and_verdicts_are_imported_as_such():
    told = imported(labelled_line(), with_labels=True)
    assert told["counts"] == {
        "items": 1,
        "responses": 1,
        "passages": 1,
        "claims": 3,
        "annotations": 6,
        "verdicts": 2,
    }
    round = Round.objects.get()
    assert (round.kind, round.state, str(round.rubric_version)) == ("imported", "closed", "imported")
    assert list(Grader.objects.values_list("name", "person").order_by("name")) == [
        ("ana", None),
        ("ben", None),
    ]
    assert (
        list(
            GoldLabel.objects.values_list("claim__claim_id", "label", "source").order_by("claim__claim_id")
        ).__len__()
        == 3
    )
    assert set(GoldLabel.objects.values_list("claim__claim_id", "source")) == {
        ("c1", "agreed"),
        ("c3", "single"),
        (None, "single"),
    }
    run = JudgeRun.objects.get()
    assert (run.origin, run.state, run.judge.name) == ("imported", "complete", "gpt")
    assert Counter(Verdict.objects.values_list("dimension", "label")) == {
        ("grounding", "unsupported"): 1,
        ("abstention", "REFUSED"): 1,
    }


def test_labels_that_were_not_asked_for_are_left_out_and_told():
    told = imported(labelled_line())
    assert (told["counts"]["annotations"], told["counts"]["verdicts"]) == (0, 0)
    assert (Annotation.objects.count(), Verdict.objects.count(), Grader.objects.count()) == (0, 0, 0)
    assert "The file holds 6 labels of graders and 2 of judges" in told["notices"][-1]
    assert version_of(told).notices == told["notices"]


def test_a_bad_label_refuses_the_file_even_when_labels_are_not_wanted():
    assert [field for _, field, _ in refusal(imported, line(response_labels={"ana": "maybe"}))] == [
        "response_labels.ana"
    ]


def test_freeze_freezes_the_version_and_its_runs():
    told = imported(line(), freeze=True)
    assert (told["state"], len(told["content_hash"])) == ("frozen", 64)
    assert [(run["state"], len(run["content_hash"])) for run in told["runs"]] == [("frozen", 64)]
    assert SystemRun.objects.get().is_frozen


def test_a_dry_run_tells_all_and_stores_nothing():
    before = rows_of_every_table()
    told = imported(labelled_line(id="r1"), with_labels=True, freeze=True, dry_run=True)
    assert rows_of_every_table() == before
    again = imported(labelled_line(id="r1"), with_labels=True, freeze=True)
    assert told["dry_run"] and told | {"dry_run": False} == again


def test_graders_of_a_later_file_must_not_differ_in_case():
    imported(labelled_line(), with_labels=True)
    found = refusal(imported, line(response_labels={"ANA": "ANSWERED"}), with_labels=True)
    assert [(field, "'ana'" in message) for _, field, message in found] == [("grader", True)]


def test_responses_bring_their_labels():
    version = version_of(imported(line(id="a", item_id="q1"), freeze=True))
    more = labelled_line(id="b", item_id="q1", system={"model": "demo-2"})
    told = exchange.import_responses(
        stream=jsonl(more), filename="more.jsonl", version=version, with_labels=True, freeze=True
    )
    assert (told["run"], told["system"], told["problems"]) == (2, "demo-2", [])
    assert told["counts"]["annotations"] == 6
    assert [run["state"] for run in told["runs"]] == ["frozen"]
    assert list(Round.objects.get().runs.values_list("number", flat=True)) == [2]


@pytest.mark.parametrize(
    ("name", "with_labels"),
    [
        *(
            pytest.param(name, True, marks=() if name in {"wice", "xstest"} else pytest.mark.once)
            for name in DEV_FILES
        ),
        ("wice", False),
        ("xstest", False),
    ],
)
def test_real_sets_come_back_the_same(shared, name, with_labels):
    """Import, export, import again: the same hashes, labels and verdicts."""
    path = shared / "data" / "dev" / f"{name}.jsonl"
    with path.open("rb") as stream:
        first = exchange.import_evalset(
            stream=stream, filename=path.name, name=name, with_labels=with_labels, freeze=True
        )
    lines = [json.loads(text) for text in path.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    assert first["counts"]["responses"] == sum("response" in given for given in lines)
    assert first["counts"]["claims"] == sum(len(given.get("claims") or []) for given in lines)
    out, told = exported(version_of(first), with_labels=with_labels)
    assert told["counts"] == first["counts"] and told["notices"] == []
    again = exchange.import_evalset(
        stream=out, filename="again.jsonl", name=f"{name} again", with_labels=with_labels, freeze=True
    )
    assert again["content_hash"] == first["content_hash"]
    assert again["runs"] == first["runs"]
    assert again["counts"] == first["counts"]
    if with_labels:
        assert labels_in(again) == labels_in(first)
        assert first["counts"]["annotations"] == labels_given(lines, "human_labels", "response_labels")
        assert first["counts"]["verdicts"] == labels_given(lines, "judge_labels", "response_judge_labels")


def labels_in(told) -> tuple[Counter, Counter]:
    version = version_of(told)
    annotations = Annotation.objects.filter(round__version=version).values_list(
        "grader__name", "response__response_id", "claim__claim_id", "label"
    )
    verdicts = Verdict.objects.filter(run__version=version).values_list(
        "run__judge__name", "response__response_id", "claim__claim_id", "label"
    )
    return Counter(annotations), Counter(verdicts)


def labels_given(lines, of_claim, of_response) -> int:
    maps = [given.get(of_response) or {} for given in lines]
    maps += [claim.get(of_claim) or {} for given in lines for claim in given.get("claims") or []]
    return sum(label is not None for labels in maps for label in labels.values())


def test_an_exported_line_is_the_imported_one():
    given = {
        "id": "r1",
        "item_id": "q1",
        "question": None,
        "answerable": False,
        "unanswerable_reason": "false_premise",
        "strata": {"language": "de"},
        "reference_answer": "",
        "expected_documents": [],
        "expected_passages": ["p1"],
        "variant_of": "q0",
        "context": [{"id": "p1", "title": "", "text": "a\0b", "score": 0.5}, {"id": "p2", "text": ""}],
        "response": "R",
        "system": {"model": None, "note": "x"},
        "retrieval_query": "",
        "sample": 2,
        "claims": [
            {
                "id": "c1",
                "text": "t",
                "source_ids": ["p1"],
                "decision": False,
                "original": None,
                "meta": {"a": 1.5},
            }
        ],
        "source_dataset": None,
        "source_ref": "r",
        "original": {"deep": [1, {"x": None}]},
        "meta": "text",
    }
    out, _ = exported(version_of(imported(given)))
    assert json.loads(out.getvalue()) == given


def test_export_import_elsewhere_and_export_again_are_the_same_bytes():
    """Nothing that the file says depends on where it was: no id, no time, no name of the set."""
    first = imported(
        labelled_line(id="r1", item_id="q1", strata={"b": "2", "a": "1"}, meta={"z": 1.0, "a": [None, 1e-7]}),
        labelled_line(
            id="r2", item_id="q1", strata={"b": "2", "a": "1"}, system={"model": "demo-2"}, sample=2
        ),
        {"id": "q2", "question": None, "context": [{"id": "p", "text": "a\0"}], "original": {"k": "v"}},
        with_labels=True,
    )
    out, _told = exported(version_of(first), with_labels=True)
    out.seek(0)
    elsewhere = exchange.import_evalset(stream=out, filename="x.jsonl", name="elsewhere", with_labels=True)
    again, told = exported(version_of(elsewhere), with_labels=True)
    assert again.getvalue() == out.getvalue()
    assert told["notices"] == []


def test_an_item_without_a_response_comes_back_whole():
    given = {
        "id": "q1",
        "question": "?",
        "answerable": None,
        "unanswerable_reason": None,
        "context": [{"id": "p1", "text": "a\0"}],
        "system": {"model": "m"},
        "sample": 3,
        "source_ref": "r",
        "meta": {"colour": "red"},
    }
    out, told = exported(version_of(imported(given)))
    assert json.loads(out.getvalue()) == given
    assert (told["counts"]["items"], told["counts"]["responses"]) == (1, 0)


def test_hashes_survive_when_responses_came_later():
    first = imported(
        line(id="q1", question="One?", response=..., claims=..., source_ref="kept\u2028"),
        line(id="q2", question="Two?", response=..., claims=...),
        freeze=True,
    )
    version = version_of(first)
    for n in (1, 2):
        told = exchange.import_responses(
            stream=jsonl({"id": f"a{n}", "item_id": "q1", "response": "r", "system": {"model": "m"}}),
            filename="a.jsonl",
            version=version,
            freeze=True,
        )
        assert told["run"] == n
    out, _ = exported(version)
    again = exchange.import_evalset(stream=out, filename="again.jsonl", name="again", freeze=True)
    assert again["content_hash"] == first["content_hash"]
    hashes = list(version.runs.values_list("content_hash", flat=True).order_by("number"))
    assert [run["content_hash"] for run in again["runs"]] == hashes


def test_parts_of_splits_are_left_out_of_the_export_and_told():
    version = version_of(imported(labelled_line(), with_labels=True, freeze=True))
    claim = Claim.objects.get(claim_id="c2")
    part = Claim.objects.create(
        response=claim.response, parent=claim, position=2, claim_id="c2.1", text="half"
    )
    annotation = Annotation.objects.first()
    Annotation.objects.create(
        round=annotation.round,
        grader=annotation.grader,
        response=claim.response,
        claim=part,
        dimension="grounding",
        label="supported",
    )
    out, told = exported(version, with_labels=True)
    assert "half" not in out.getvalue().decode()
    assert told["notices"] == [
        "1 labels of parts of split claims were left out: the native file holds whole claims"
    ]
    assert told["counts"]["annotations"] == 6


# Label files


@pytest.fixture
def version():
    return version_of(
        imported(
            line(id="q1"),
            line(id="b1", item_id="q2", question="Two?"),
            line(id="b2", item_id="q2", question="Two?", sample=2),
            line(id="e", response="", claims=[]),
            freeze=True,
        )
    )


def labels(version, *rows, **options):
    text = "item,response,claim,grader,label\n" + "".join(f"{row}\n" for row in rows)
    return import_labels(stream=io.BytesIO(text.encode()), filename="labels.csv", version=version, **options)


def test_a_label_file_becomes_annotations(version):
    told = labels(
        version, "q1,,c1,ana,supported", ",b2,c1,ana,unsupported", "q1,,,ana,ANSWERED", ",b2,c1,ben,supported"
    )
    assert told["counts"]["annotations"] == Annotation.objects.count() == 4
    assert (told["evalset"], told["state"], told["problems"]) == ("set", "frozen", [])
    assert set(
        Annotation.objects.values_list("response__response_id", "claim__claim_id", "grader__name", "label")
    ) == {
        ("q1", "c1", "ana", "supported"),
        ("b2", "c1", "ana", "unsupported"),
        ("q1", None, "ana", "ANSWERED"),
        ("b2", "c1", "ben", "supported"),
    }


def test_the_hostile_label_file_is_refused_with_every_reason(shared):
    version = version_of(imported(line(id="q1")))
    path = shared / "hostile" / "30_grader_labels_twice.csv"
    before = rows_of_every_table()
    with path.open("rb") as stream, pytest.raises(ImportRefused) as refused:
        import_labels(stream=stream, filename=path.name, version=version)
    assert rows_of_every_table() == before
    found = sorted((problem.line, problem.field, problem.message) for problem in refused.value.problems)
    assert found == [
        (3, "label", "ana has a label for this target on line 2 and again on line 3"),
        (5, "claim", "the response 'q1' has no claim 'c9'"),
        (6, "item", "the version has no item 'q7' with a response"),
        (7, "grader", "the grader 'Ana' differs only in case from 'ana' (line 2)"),
    ]


@pytest.mark.parametrize(
    ("row", "field", "message"),
    [
        ("q2,,c1,ana,supported", "item", "has 2 responses; name the response instead (b1, b2)"),
        (",zz,c1,ana,supported", "response", "has no response 'zz'"),
        ("q1,b1,c1,ana,supported", "item", "is not about this item"),
        ("q1,,c1,ana,partly", "label", "one of supported"),
        ("q1,,,ana,supported", "label", "one of REFUSED"),
        ("q1,,c1,,supported", "grader", "a name is expected"),
    ],
)
def test_a_bad_label_is_refused(version, row, field, message):
    ((number, where, told),) = refusal(labels, version, "q1,,c1,ben,supported", row)
    assert (number, where) == (3, field)
    assert message in told


def test_a_label_file_may_be_imported_again_but_not_contradict(version):
    labels(version, "q1,,c1,ana,supported")
    told = labels(version, "q1,,c1,ana,supported", "q1,,c1,ben,supported")
    assert told["counts"]["annotations"] == 1
    assert told["notices"] == ["Labels that were imported before were left out. (line 2)"]
    assert [(number, where) for number, where, _ in refusal(labels, version, "q1,,c1,ana,contradicted")] == [
        (2, "label")
    ]
    assert [where for _, where, _ in refusal(labels, version, "q1,,c1,ANA,supported")] == ["grader"]


def test_labels_of_empty_responses_are_left_out_and_told(version):
    told = labels(version, ",e,,ana,REFUSED", "q1,,,ana,REFUSED")
    assert told["counts"]["annotations"] == 1
    assert "empty response" in told["notices"][0]


def test_the_dimension_may_be_given_for_all(version):
    assert labels(version, "q1,,c1,ana,supported", dimension="grounding")["counts"]["annotations"] == 1
    assert [
        where for _, where, _ in refusal(labels, version, "q1,,,ben,ANSWERED", dimension="grounding")
    ] == [
        "claim",
        "label",
    ]


def test_a_dry_run_of_labels_stores_nothing(version):
    before = rows_of_every_table()
    assert labels(version, "q1,,c1,ana,supported", dry_run=True)["counts"]["annotations"] == 1
    assert rows_of_every_table() == before


# Commands


def run(capsys, *arguments) -> dict:
    call_command(*map(str, arguments), "--json")
    (text,) = capsys.readouterr().out.splitlines()
    return json.loads(text)


@pytest.fixture
def file(tmp_path):
    def write(*lines):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.jsonl"
        path.write_bytes(jsonl(*lines).getvalue())
        return path

    return write


def test_the_commands_do_the_whole_trip(capsys, file, tmp_path):
    told = run(
        capsys, "import_evalset", file(labelled_line(id="r", item_id="q")), "--name", "Trip", "--freeze"
    )
    assert {"evalset", "version", "state", "content_hash", "counts", "notices"} <= told.keys()
    assert set(told["counts"]) == {"items", "responses", "passages", "claims", "annotations", "verdicts"}
    more = run(
        capsys,
        "import_responses",
        file({"id": "s", "item_id": "q", "response": "r", "system": {"name": "Second"}}),
        "--into",
        "trip@1",
        "--freeze",
    )
    assert (more["run"], more["system"], more["problems"]) == (2, "Second", [])
    given = {"response": "s", "claim": None, "grader": "ana", "label": "ANSWERED"}
    labelled = run(capsys, "import_labels", file(given), "--into", "trip@1")
    assert labelled["counts"]["annotations"] == 1
    for name in ("out.jsonl", "out.jsonl.gz"):
        out = run(capsys, "export_version", "trip@1", "--out", tmp_path / name, "--with-labels")
        assert out["content_hash"] == told["content_hash"]
        again = run(capsys, "import_evalset", tmp_path / name, "--name", name, "--freeze", "--with-labels")
        assert again["content_hash"] == told["content_hash"]
        assert again["counts"] == out["counts"]
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["import_evalset", "/nowhere.jsonl", "--name", "x"], "cannot be read"),
        (["import_responses", "/nowhere.jsonl", "--into", "none@1"], "none@1"),
        (["import_labels", "/nowhere.jsonl", "--into", "none@one"], "none@one"),
        (["export_version", "none@1", "--out", "/nowhere/out.jsonl"], "none@1"),
    ],
)
def test_a_command_that_cannot_work_says_so_in_json(capsys, arguments, message):
    with pytest.raises(CommandError):
        call_command(*arguments, "--json")
    told = json.loads(capsys.readouterr().out)
    assert message in json.dumps(told["problems"])


def test_without_json_problems_go_to_stderr(capsys, file):
    with pytest.raises(CommandError, match="Refused, nothing was stored: 2 problems"):
        call_command("import_evalset", str(file(line(id=1, question=...))), "--name", "x")
    told = capsys.readouterr()
    assert told.out == ""
    assert "line 1, id: a string is expected, not a number [1]" in told.err
    assert EvalSet.objects.count() == 0


def test_without_json_the_result_is_told_in_words(capsys, file):
    call_command("import_evalset", str(file(line(score=1))), "--name", "Words", "--dry-run")
    told = capsys.readouterr().out
    assert "Imported words@1 (draft)." in told and "1 responses" in told
    assert 'Note: The key "score"' in told and "dry run" in told
    assert Response.objects.count() == 0 and Judge.objects.count() == 0
