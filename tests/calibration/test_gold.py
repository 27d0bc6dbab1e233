"""The gold export: what is in the files, what is made inert, and that every figure follows from the files."""

import csv
import io
import json
import re
import zipfile

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from annotate.models import Flag, Round
from calibration import gold_export, goldfile
from calibration.recompute import recompute
from evalsets.inert import inert
from tests.calibration.labelled import judged, labelled_set

pytestmark = pytest.mark.django_db


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


@pytest.fixture
def exported(tmp_path):
    labelled = a_set()
    manifest = gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)
    return tmp_path, manifest


def lines(folder, name):
    return list(goldfile.records(folder / name))


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
    assert [flag["note"] for flag in gold[-1]["flag"]] == ["look"]


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


def test_an_export_that_does_not_match_the_database_is_not_handed_out(tmp_path, monkeypatch):
    labelled = a_set()
    monkeypatch.setattr(
        gold_export.goldfile,
        "line_of",
        lambda row: goldfile.json.dumps(row | {"label": "supported"}).encode() + b"\n",
    )
    with pytest.raises(RuntimeError, match="does not match"):
        gold_export.export_gold(version=labelled.version, round=labelled.round, out=tmp_path)


def test_the_zip_file_holds_the_same_files():
    labelled = a_set()
    with gold_export.zipped_gold(version=labelled.version, round=labelled.round) as archive:
        names = zipfile.ZipFile(archive).namelist()
    assert set(names) - {"gold.parquet"} == {"gold.csv", "gold.jsonl", "manifest.json", "unresolved.jsonl"}


def test_parquet_holds_the_same_records_where_its_library_is_installed(exported):
    parquet = pytest.importorskip("pyarrow.parquet")
    folder, manifest = exported
    table = parquet.read_table(folder / "gold.parquet").to_pylist()

    gold = lines(folder, "gold.jsonl")
    assert [row["label"] for row in table] == [row["label"] for row in gold]
    assert json.loads(table[0]["annotations"]) == gold[0]["annotations"]
    assert "gold.parquet" in manifest["files"]
