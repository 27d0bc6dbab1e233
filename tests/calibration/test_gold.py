"""The gold export: what is in the files, what is made inert, and which records are chosen."""

import csv
import io
import json
import re
import zipfile

import pyarrow.parquet
import pytest
import yaml
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError

from calibration import gold_export, gold_lines
from calibration.design import record_design
from calibration.recompute import recompute
from evalsets.hashing import fingerprint
from evalsets.inert import inert
from tests.calibration.gold_set import a_set, edit, lines, write_lines
from tests.calibration.labelled import judged, labelled_set

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def test_every_target_is_in_one_of_the_two_files(exported):
    folder, manifest = exported
    gold, unresolved = lines(folder, "gold.jsonl"), lines(folder, "unresolved.jsonl")

    assert [(row["response_id"], row["claim_id"], row["label"], row["source"]) for row in gold] == [
        ("r1", "c1", "supported", "agreed"),
        ("r1", "c2", "unsupported", "adjudicated"),
        ("r1", "c4", "unverifiable", "agreed"),
        ("r1", "c6", "supported", "adjudicated"),
        ("r1", "c7", "contradicted", "adjudicated"),
        ("r1", None, "ANSWERED", "agreed"),
        ("r2", None, "REFUSED", "adjudicated"),
    ]
    assert {(row["response_id"], row["claim_id"]): row["reason"] for row in unresolved} == {
        ("r1", "c3"): "unresolved",
        ("r1", "c5"): "split",
        ("r3", "c1"): "not_labelled",
        ("r3", None): "not_labelled",
        ("r4", None): "empty_response",
    }
    assert manifest["unresolved"] == {
        "grounding": {"not_labelled": 1, "split": 1, "unresolved": 1},
        "abstention": {"empty_response": 1, "not_labelled": 1},
    }
    assert manifest["counts"]["grounding"]["by_source"] == {"adjudicated": 3, "agreed": 2}


def test_a_record_has_the_fields_of_the_contract(exported):
    folder, _manifest = exported
    row = lines(folder, "gold.jsonl")[1]

    # Names and order as the format describes them; what follows `context` is ours.
    assert (
        list(row)[:27]
        == (
            "evalset version content_hash round system_run system_run_hash sample split flag item_id "
            "response_id claim_id dimension label source annotations adjudication rubric_version "
            "target_sha256 strata answerable unanswerable_reason system question response claim context"
        ).split()
    )
    assert [said["grader"] for said in row["annotations"]] == ["grader 1", "grader 2"]
    assert [said["label"] for said in row["annotations"]] == ["supported", "unsupported"]
    assert row["annotations"][0]["at"].endswith("Z")
    assert row["adjudication"]["by"] == "lead 1"
    assert row["adjudication"]["note"] == "why"
    assert row["context"] == [{"id": "p1", "title": "T", "text": "A passage.\nWith \u2028 and 😀"}]
    assert row["strata"] == {"language": "en"}


def test_no_name_of_a_grader_leaves_the_house(exported):
    folder, _manifest = exported
    for path in folder.iterdir():
        text = path.read_bytes().decode("utf-8", "replace")
        assert not re.search(r"\bada\b", text)  # a hash may hold the letters
        assert "adjudicator" not in text


def test_a_split_part_names_its_claim_and_a_flag_its_note(exported):
    folder, _manifest = exported
    gold = lines(folder, "gold.jsonl")

    assert [row["split"] for row in gold] == [None, None, None, {"of": "c5"}, {"of": "c5"}, None, None]
    assert [flag["note"] for flag in gold[-1]["flag"]] == [None]  # what graders noted is asked for


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "  =1", "\uff1d1", "\n=1"])
def test_a_cell_that_a_spreadsheet_would_run_is_made_inert(cell):
    assert inert(cell) == f"'{cell}"


@pytest.mark.parametrize("cell", ["text", "'=1", "1", "", "a=b"])
def test_other_cells_stay_as_they_are(cell):
    assert inert(cell) == cell


def test_formulas_are_inert_in_csv_only(exported):
    folder, _manifest = exported
    with (folder / "gold.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert rows[0]["response"] == "'=2+2 is what it says"
    assert lines(folder, "gold.jsonl")[0]["response"] == "=2+2 is what it says"
    assert len(rows) == 7


def test_the_manifest_holds_agreement_rubric_hashes_and_gates(exported):
    folder, manifest = exported

    pair = manifest["agreement"]["grounding"]["pairs"][0]
    assert (pair["a"], pair["b"], pair["n"]) == ("grader 1", "grader 2", 5)
    assert all(entry["claims"]["extracted"] == 0 for entry in manifest["systems"])
    assert manifest["rubric"]["sha256"] == "c" * 64
    assert [entry["name"] for entry in manifest["rubric"]["dimensions"]] == ["grounding", "abstention"]
    assert manifest["files"]["gold.jsonl"]["lines"] == 7
    assert manifest["rates"]["hallucination"]["numerator"] == 2
    assert manifest["app"]["version"]
    assert (
        json.loads((folder / "manifest.json").read_text())["manifest_sha256"] == manifest["manifest_sha256"]
    )


def test_judges_are_named_with_their_gate_and_without_a_rate(tmp_path):
    labelled = a_set()
    claim = labelled.version.responses.get(response_id="r1").claims.first()
    judged(labelled, [(claim.response, claim, "unsupported")])
    manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)

    (judge,) = manifest["judges"]
    assert judge["name"] == "judge-a"
    assert judge["gate"][0]["state"] == "UNCALIBRATED"
    assert recompute(tmp_path)["quoted"] == ["judges"]


def test_the_commands_print_json_and_exit_1_on_a_mismatch(tmp_path, capsys):
    labelled = a_set()
    out = io.StringIO()
    call_command("export_gold", "set@1", "--out", str(tmp_path), "--json", stdout=out)
    assert json.loads(out.getvalue())["content_hash"] == labelled.version.content_hash

    out = io.StringIO()
    call_command("recompute", str(tmp_path), "--json", stdout=out)
    assert json.loads(out.getvalue())["matches"] is True

    edit(tmp_path / "gold.csv", lambda text: text + "\n")
    with pytest.raises(SystemExit) as left:
        call_command("recompute", str(tmp_path), "--json", stdout=io.StringIO())
    assert left.value.code == 1


def test_a_draft_has_no_gold_to_hand_out(tmp_path):
    labelled = labelled_set()
    labelled.claim(labelled.response("r1"), "supported", "supported")
    with pytest.raises(CommandError, match="Freeze"):
        call_command("export_gold", "set@1", "--out", str(tmp_path))


def own_of(form, texts):
    return {name: json.loads(text) for name, text in zip(form.own, texts, strict=True)}


def test_an_export_that_does_not_match_the_database_is_not_handed_out(tmp_path, monkeypatch):
    labelled = a_set()
    monkeypatch.setattr(
        gold_lines.Shared,
        "line",
        lambda shared, form, own: (
            json.dumps(shared.row | own_of(form, own) | {"label": "supported"}).encode() + b"\n"
        ),
    )
    with pytest.raises(RuntimeError, match="does not match"):
        gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)


def test_the_zip_file_holds_the_same_files():
    labelled = a_set()
    with gold_export.zipped_gold(version=labelled.version, round=labelled.round) as archive:
        names = zipfile.ZipFile(archive).namelist()
    assert set(names) == {
        "README.md",
        "gold.csv",
        "gold.jsonl",
        "gold.parquet",
        "manifest.json",
        "unresolved.jsonl",
    }


def test_parquet_holds_the_same_records(exported):
    folder, manifest = exported
    table = pyarrow.parquet.read_table(folder / "gold.parquet").to_pylist()

    gold = lines(folder, "gold.jsonl")
    assert [row["label"] for row in table] == [row["label"] for row in gold]
    assert json.loads(table[0]["annotations"]) == gold[0]["annotations"]
    assert "gold.parquet" in manifest["files"]


# A choice of records


def chosen(folder, **choice):
    labelled = a_set()
    given = gold_export.Choice(**choice)
    manifest = gold_export.export_gold(
        version=labelled.version, round=labelled.round, out=folder, choice=given
    )
    return labelled, manifest


@pytest.mark.parametrize(
    ("choice", "taken"),
    [
        ({"dimensions": ("abstention",)}, [("r1", None), ("r2", None)]),
        ({"sources": ("agreed",)}, [("r1", "c1"), ("r1", "c4"), ("r1", None)]),
        ({"strata": (("language", "de"),)}, [("r2", None)]),
        ({"strata": (("language", "de"), ("language", "fr"))}, [("r2", None)]),
        ({"strata": (("language", "fr"),)}, []),
        ({"parts": ("tuning",)}, []),
    ],
)
def test_a_choice_takes_records_and_moves_no_figure(tmp_path, exported, choice, taken):
    _folder, whole = exported
    round, out = a_set().round, tmp_path / "chosen"
    choice = gold_export.Choice(**choice)
    manifest = gold_export.export_gold(version=round.version, round=round, out=out, choice=choice)
    assert [(row["response_id"], row["claim_id"]) for row in lines(out, "gold.jsonl")] == taken
    for name in ("counts", "agreement", "rates"):
        assert manifest[name] == whole[name]
    left = sum(reasons.get("filtered", 0) for reasons in manifest["unresolved"].values())
    assert left == 7 - len(taken)
    assert recompute(out)["matches"]


def test_a_record_that_was_not_asked_for_keeps_no_text(tmp_path):
    chosen(tmp_path, dimensions=("abstention",))
    text = (tmp_path / "unresolved.jsonl").read_text(encoding="utf-8")
    assert "A passage." not in text and "=2+2" not in text


def test_notes_of_graders_leave_only_when_asked_for(tmp_path):
    _labelled, manifest = chosen(tmp_path, grader_notes=True)
    assert [flag["note"] for flag in lines(tmp_path, "gold.jsonl")[-1]["flag"]] == ["look"]
    assert manifest["choice"]["grader_notes"] is True


def test_the_parts_of_the_design_are_marked_and_follow_from_the_manifest(tmp_path):
    labelled = a_set()
    record_design(round=labelled.round, design="random", seed=3, tuning_share=0.5, few_shot=["i2"])
    manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    parts = {row["item_id"]: row["calibration_split"] for row in lines(tmp_path, "gold.jsonl")}
    assert parts["i2"] == "few_shot"
    assert parts["i1"] in ("tuning", "calibration")
    assert manifest["calibration_split"]["seed"] == 3

    rewrite(tmp_path, lambda row: row | {"calibration_split": "calibration"})
    places = [difference["where"] for difference in recompute(tmp_path)["differences"]]
    assert any(place.endswith("calibration_split") and "r2" in place for place in places)


def rewrite(folder, change):
    """Edit every gold record and mend all hashes, so that only what follows from them can tell."""
    rows = [change(row) for row in lines(folder, "gold.jsonl")]
    write_lines(folder, rows)


TRICKY = [
    "",
    "plain",
    "=1+1",
    " -x",
    'a "word"',
    "a, b",
    "a\r\nb",
    "\n",
    "100 % of %s",
    "ü \u2028 😀",
    "'",
    None,
]


@pytest.mark.parametrize("shift", range(len(TRICKY)))
def test_a_line_of_the_sheet_is_that_of_the_standard_writer(shift):
    cells = {name: TRICKY[(place + shift) % len(TRICKY)] for place, name in enumerate(gold_lines.FIELDS)}
    shared = gold_lines.Shared({name: cells[name] for name in gold_lines.SHARED})
    own = [cells[name] for name in gold_lines.GOLD_FORM.own]
    sheet = io.StringIO()
    csv.writer(sheet).writerow([inert(cell or "") for cell in cells.values()])
    assert shared.sheet_line(own) == sheet.getvalue()
    line = shared.line(gold_lines.GOLD_FORM, [gold_lines.json_of(cell) for cell in own])
    assert line.decode() == json.dumps(cells, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    "value", [None, True, False, 1, 0, 1.0, -0.5, "", "1", [], [[]], {}, {"a": [1, True]}]
)
def test_json_is_that_of_the_standard_writer(value):
    assert gold_lines.json_of(value) == json.dumps(value, ensure_ascii=False)


def test_a_line_and_its_hash_are_those_of_the_standard_writers(exported):
    folder, _manifest = exported
    written = (folder / "gold.jsonl").read_text(encoding="utf-8").split("\n")
    for line in written[:-1]:
        row = json.loads(line)
        about = {name: row[name] for name in ("question", "response", "claim", "context")}
        assert line == json.dumps(row, ensure_ascii=False)
        assert row["target_sha256"] == fingerprint(about)


# The card


def test_the_card_has_a_head_that_hubs_read_and_the_counts_of_the_manifest(exported):
    folder, manifest = exported
    text = (folder / "README.md").read_text(encoding="utf-8")
    _empty, head, body = text.split("---\n", 2)
    told = yaml.safe_load(head)
    assert told["pretty_name"] == "Set (gold, version 1)"
    assert told["language"] == ["de", "en"]
    assert told["configs"][0]["data_files"][0]["path"] == "gold.parquet"
    assert manifest["content_hash"] in body
    assert "| grounding | 8 | 5 | 3 |" in body


def test_other_peoples_words_are_no_markup_in_the_card(tmp_path):
    labelled = a_set()
    labelled.version.evalset.name = "<script>x</script> [a](b)\n# c"
    manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    text = (tmp_path / "README.md").read_text()
    body = text.split("---\n", 2)[2]
    assert "<script>" not in body and "[a](b)" not in body and "\n# c" not in body
    assert yaml.safe_load(text.split("---\n", 2)[1])["pretty_name"].startswith("<script>")
    assert manifest["evalset_name"].endswith("# c")


def test_the_page_offers_the_choice_and_downloads_it(client, tmp_path):
    labelled = a_set()
    person = get_user_model().objects.create_user("lead", password="x")
    labelled.version.evalset.memberships.create(person=person, role="lead")
    client.force_login(person)
    page = client.get("/evalsets/set/1/gold/").content.decode()
    assert 'name="sources"' in page and 'value="language=de"' in page
    answer = client.get("/evalsets/set/1/gold/download/?sources=agreed&strata=language%3Den&notes=on")
    names = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    rows = [json.loads(line) for line in names.read("gold.jsonl").splitlines()]
    assert {(row["source"], row["strata"]["language"]) for row in rows} == {("agreed", "en")}
    assert json.loads(names.read("manifest.json"))["choice"]["grader_notes"] is True


@pytest.mark.parametrize("query", ["sources=invented", "strata=nothing", "round=99", "parts=all"])
def test_a_choice_that_is_none_is_said_and_nothing_is_downloaded(client, query):
    labelled = a_set()
    person = get_user_model().objects.create_user("lead", password="x")
    labelled.version.evalset.memberships.create(person=person, role="lead")
    client.force_login(person)
    assert client.get(f"/evalsets/set/1/gold/download/?{query}").status_code == 400


def test_the_command_takes_the_choice(tmp_path):
    labelled = a_set()
    out = io.StringIO()
    words = ["--source", "adjudicated", "--stratum", "language=en", "--split", "calibration"]
    call_command("export_gold", "set@1", "--out", str(tmp_path), *words, "--json", stdout=out)
    assert json.loads(out.getvalue())["choice"] == {
        "dimensions": [],
        "sources": ["adjudicated"],
        "strata": [["language", "en"]],
        "parts": ["calibration"],
        "grader_notes": False,
    }
    with pytest.raises(CommandError, match="NAME=VALUE"):
        call_command("export_gold", "set@1", "--out", str(tmp_path), "--stratum", "en")
    with pytest.raises(CommandError, match="does not ask about 'nothing'"):
        call_command("export_gold", "set@1", "--out", str(tmp_path), "--dimension", "nothing")
    assert labelled.version.number == 1


def test_a_claim_that_another_round_split_is_no_gold_of_this_one(tmp_path):
    labelled = labelled_set()
    response = labelled.response("r1")
    whole = labelled.claim(response, "supported", "supported")
    labelled.claim(response, "supported", "supported")
    for _part in range(2):
        labelled.claim(response, parent=whole)
    labelled.freeze()
    manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    assert manifest["counts"]["grounding"]["gold"] == 1
    assert [row["claim_id"] for row in lines(tmp_path, "gold.jsonl")] == ["c2"]
    assert recompute(tmp_path)["matches"]
