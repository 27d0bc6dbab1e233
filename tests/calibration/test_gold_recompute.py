"""The figures of a gold export follow from its files, and whatever is edited in them is found and named."""

import csv
import io
import json

import pyarrow.parquet
import pytest

from annotate.models import Round
from calibration import gold_export
from calibration import recompute as recomputing
from calibration.recompute import recompute
from tests.calibration.gold_set import a_set, edit, lines, with_new_hashes, write_lines

pytestmark = [pytest.mark.django_db, pytest.mark.once]


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


def test_an_edited_parquet_cell_is_named_even_when_the_hashes_are_mended(exported):
    folder, _manifest = exported
    path = folder / "gold.parquet"
    table = pyarrow.parquet.read_table(path).to_pylist()
    table[1]["label"] = "supported"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(table), path)
    assert recompute(folder)["differences"][0]["where"] == "files.gold.parquet.bytes"
    with_new_hashes(folder)
    assert recompute(folder)["differences"] == [
        {"where": "gold.parquet, record 2.label", "recorded": "supported", "recomputed": "unsupported"}
    ]


def test_a_removed_parquet_row_is_named(exported):
    folder, _manifest = exported
    path = folder / "gold.parquet"
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(path).slice(0, 6), path)
    with_new_hashes(folder)
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


def test_an_edited_figure_of_the_card_is_named(exported):
    folder, _manifest = exported
    path = folder / "README.md"
    path.write_text(path.read_text().replace("| grounding | 8 | 5 | 3 |", "| grounding | 8 | 8 | 0 |"))
    with_new_hashes(folder)
    (difference,) = recompute(folder)["differences"]
    assert difference["where"].startswith("README.md, line ")
    assert "| 8 | 8 | 0 |" in difference["recorded"]
