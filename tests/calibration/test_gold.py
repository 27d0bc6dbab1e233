"""The gold export: what is in the files, what is made inert, and that every figure follows from the files."""

import csv
import io
import json
import re
import shutil
import zipfile

import pyarrow.parquet
import pytest
import yaml
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from annotate.models import Flag, Round
from calibration import gold_export, gold_lines, goldfile
from calibration import recompute as recomputing
from calibration.design import record_design
from calibration.recompute import recompute
from evalsets.hashing import fingerprint
from evalsets.inert import inert
from tests.calibration.labelled import judged, labelled_set, records

pytestmark = [pytest.mark.django_db, pytest.mark.once]


def a_set(kind=Round.Kind.FIRST):
    """Two systems, agreed, adjudicated and open claims, a split, an empty response, one without a claim."""
    labelled = labelled_set(kind=kind)
    item = labelled.item("i1", strata={"language": "en"}, answerable=True)
    other = labelled.item(
        "i2", strata={"language": "de"}, answerable=False, unanswerable_reason="false_premise"
    )
    loose, strict = labelled.run("loose"), labelled.run("strict")
    first = labelled.response("r1", item=item, run=loose, text="=2+2 is what it says", assigned=True)
    first.passages.create(rank=1, passage_id="p1", title="T", text="A passage.\nWith \u2028 and 😀")
    labelled.claim(first, "supported", "supported", decision=True)
    labelled.claim(first, "supported", "unsupported", gold="unsupported")
    labelled.claim(first, "contradicted", "unsupported")
    labelled.claim(first, "unverifiable", "unverifiable")
    parent = labelled.claim(first, "supported", "contradicted")
    for label in ("supported", "contradicted"):
        labelled.claim(first, gold=label, parent=parent)
    labelled.verdict_on_response(first, "ANSWERED", "ANSWERED")
    second = labelled.response("r2", item=other, run=strict, text="I cannot tell.")
    labelled.verdict_on_response(second, "REFUSED", "ANSWERED", gold="REFUSED")
    third = labelled.response("r3", item=item, run=strict)
    labelled.claim(third, "supported", None)
    labelled.response("r4", item=other, run=loose, text=" ", assigned=False)
    Flag.objects.create(round=labelled.round, response=second, grader=labelled.graders[0], note="look")
    labelled.freeze()
    return labelled


def files_of_a_set(folder):
    """The files alone: the rows are taken back."""
    with transaction.atomic():
        labelled = a_set()
        manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=folder)
        transaction.set_rollback(True)
    return folder, manifest


@pytest.fixture(scope="module")
def kept_files(kept, tmp_path_factory):
    return kept(files_of_a_set, tmp_path_factory.mktemp("gold"))


@pytest.fixture
def exported(kept_files, tmp_path):
    """A copy of the files, which a test may edit."""
    folder, manifest = kept_files
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, manifest


def lines(folder, name):
    return records(folder / name)


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


@pytest.mark.parametrize("kind", [Round.Kind.FIRST, Round.Kind.IMPORTED])
def test_every_figure_is_recomputed_from_the_files(tmp_path, kind):
    labelled = a_set(kind)
    gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)

    assert recompute(tmp_path) == {
        "folder": str(tmp_path),
        "matches": True,
        "n_differences": 0,
        "differences": [],
        "quoted": ["judges"],
    }


def edit(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def with_new_hashes(folder):
    """What somebody would do who covers the traces: file hashes and the manifest's own made to fit again."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in manifest["files"]:
        manifest["files"][name] = goldfile.file_facts(folder / name)
    manifest["manifest_sha256"] = goldfile.manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def tampered(folder):
    result = recompute(folder)
    assert not result["matches"]
    return [difference["where"] for difference in result["differences"]]


@pytest.mark.parametrize("covered", [False, True], ids=["plain", "hashes made to fit"])
def test_one_changed_label_is_found(exported, covered):
    folder, _manifest = exported
    edit(
        folder / "gold.jsonl", lambda text: text.replace('"label": "supported"', '"label": "unsupported"', 1)
    )
    if covered:
        with_new_hashes(folder)
    assert any("agreement" in where or "source" in where for where in tampered(folder))


@pytest.mark.parametrize("name", ["gold.jsonl", "unresolved.jsonl", "gold.csv"])
@pytest.mark.parametrize("covered", [False, True], ids=["plain", "hashes made to fit"])
def test_one_removed_line_is_found(exported, name, covered):
    folder, _manifest = exported
    edit(folder / name, lambda text: "".join(text.splitlines(keepends=True)[:-1]))
    if covered:
        with_new_hashes(folder)
    tampered(folder)


@pytest.mark.parametrize("covered", [False, True], ids=["plain", "hashes made to fit"])
def test_a_tampered_number_is_found(exported, covered):
    folder, manifest = exported
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["agreement"]["grounding"]["pairs"][0]["cohen_kappa"]["value"] += 1e-6
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if covered:
        with_new_hashes(folder)
    assert "agreement.grounding.pairs[0].cohen_kappa.value" in tampered(folder)


def test_a_tampered_gate_is_found_by_the_manifests_own_hash(exported):
    folder, _manifest = exported
    edit(folder / "manifest.json", lambda text: text.replace('"judges": []', '"judges": [{"name": "x"}]'))
    assert tampered(folder) == ["manifest_sha256"]


def test_a_changed_text_no_longer_fits_its_hash(exported):
    folder, _manifest = exported
    edit(folder / "gold.jsonl", lambda text: text.replace("I cannot tell.", "I can tell."))
    with_new_hashes(folder)
    assert any("target_sha256" in where for where in tampered(folder))


@pytest.mark.parametrize(
    ("name", "content"),
    [("manifest.json", "{"), ("manifest.json", "[]"), ("gold.jsonl", "{}\n"), ("gold.jsonl", "no json\n")],
)
def test_a_file_that_is_none_is_named(exported, name, content):
    folder, _manifest = exported
    (folder / name).write_text(content)
    assert any(name in where for where in tampered(folder))


def test_a_missing_file_is_named(exported):
    folder, _manifest = exported
    (folder / "unresolved.jsonl").unlink()
    assert any("unresolved.jsonl" in where for where in tampered(folder))


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


def write_lines(folder, rows):
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text())
    for name in manifest["files"]:
        manifest["files"][name] = goldfile.file_facts(folder / name)
    manifest["manifest_sha256"] = goldfile.manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


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


def test_what_records_share_is_read_anew_where_one_differs(exported):
    folder, _manifest = exported
    rows = lines(folder, "gold.jsonl")
    rows[1]["question"] = "Another?"
    write_lines(folder, rows)
    hashes = [found for found in recompute(folder)["differences"] if "target_sha256" in found["where"]]
    assert [found["where"] for found in hashes] == ["gold of r1 c2 grounding: target_sha256"]


def test_a_sheet_with_other_quotes_and_ends_of_lines_is_the_same_sheet(exported):
    folder, _manifest = exported
    path = folder / "gold.csv"
    cells = list(csv.reader(io.StringIO(path.read_bytes().decode(), newline="")))
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(cells)
    with_new_hashes(folder)
    assert recompute(folder)["differences"] == []


def test_a_cell_is_named_by_its_record_wherever_it_stands(exported, monkeypatch):
    monkeypatch.setattr(recomputing, "AT_ONCE", 2)
    folder, _manifest = exported
    sheet = (folder / "gold.csv").read_bytes()
    edited = sheet.replace(b",c6,", b",c9,", 1).replace(b"abstention,REFUSED", b"abstention,ANSWERED", 1)
    (folder / "gold.csv").write_bytes(edited)
    with_new_hashes(folder)
    assert [found["where"] for found in recompute(folder)["differences"]] == [
        "gold.csv, record 4: claim_id",
        "gold.csv, record 7: label",
    ]


def test_a_line_and_its_hash_are_those_of_the_standard_writers(exported):
    folder, _manifest = exported
    written = (folder / "gold.jsonl").read_text(encoding="utf-8").split("\n")
    for line in written[:-1]:
        row = json.loads(line)
        about = {name: row[name] for name in ("question", "response", "claim", "context")}
        assert line == json.dumps(row, ensure_ascii=False)
        assert row["target_sha256"] == fingerprint(about)


def test_records_written_with_other_spaces_are_the_same_records(exported):
    folder, _manifest = exported
    edit(
        folder / "gold.jsonl",
        lambda text: "".join(json.dumps(json.loads(line)) + " \n" for line in text.split("\n")[:-1]),
    )
    with_new_hashes(folder)
    assert recompute(folder)["differences"] == []


def test_a_cell_too_many_is_named_even_when_the_hashes_are_mended(exported):
    folder, _manifest = exported
    first, *rest = (folder / "gold.csv").read_bytes().split(b"\r\n")[::-1]
    (folder / "gold.csv").write_bytes(b"\r\n".join([*rest[:0:-1], rest[0] + b",more", first]))
    with_new_hashes(folder)
    assert recompute(folder)["differences"] == [
        {"where": "gold.csv, record 7: cells", "recorded": 33, "recomputed": 32}
    ]


def mended(folder, name):
    """The same for one file that somebody edited."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = goldfile.file_facts(folder / name)
    manifest["manifest_sha256"] = goldfile.manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_an_edited_parquet_cell_is_named_even_when_the_hashes_are_mended(exported):
    folder, _manifest = exported
    path = folder / "gold.parquet"
    table = pyarrow.parquet.read_table(path).to_pylist()
    table[1]["label"] = "supported"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), path)
    assert recompute(folder)["differences"][0]["where"] == "files.gold.parquet.bytes"
    mended(folder, "gold.parquet")
    assert recompute(folder)["differences"] == [
        {"where": "gold.parquet, record 2.label", "recorded": "supported", "recomputed": "unsupported"}
    ]


def test_a_removed_parquet_row_is_named(exported):
    folder, _manifest = exported
    path = folder / "gold.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 6), path)
    mended(folder, "gold.parquet")
    assert recompute(folder)["differences"] == [
        {"where": "gold.parquet: rows", "recorded": 6, "recomputed": 7}
    ]


@pytest.mark.parametrize("name", ["gold.parquet", "gold.csv", "gold.jsonl", "README.md", "unresolved.jsonl"])
def test_one_changed_byte_of_any_file_is_found_and_the_file_named(exported, name):
    folder, _manifest = exported
    content = bytearray((folder / name).read_bytes())
    at = len(content) // 2
    content[at] = content[at] ^ 1
    (folder / name).write_bytes(bytes(content))
    found = recompute(folder)
    assert not found["matches"]
    assert any(name in difference["where"] for difference in found["differences"])


def test_a_missing_parquet_file_is_named(exported):
    folder, _manifest = exported
    (folder / "gold.parquet").unlink()
    assert "gold.parquet" in recompute(folder)["differences"][0]["where"]


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


def test_an_edited_figure_of_the_card_is_named(exported):
    folder, _manifest = exported
    path = folder / "README.md"
    path.write_text(path.read_text().replace("| grounding | 8 | 5 | 3 |", "| grounding | 8 | 8 | 0 |"))
    mended(folder, "README.md")
    (difference,) = recompute(folder)["differences"]
    assert difference["where"].startswith("README.md, line ")
    assert "| 8 | 8 | 0 |" in difference["recorded"]


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
