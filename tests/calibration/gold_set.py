"""A set with gold of every kind, its files, and the covering of traces in them."""

import json

from django.db import transaction

from annotate.models import Flag, Round
from calibration import gold_export, goldfile
from tests.calibration.labelled import labelled_set, records


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


def lines(folder, name):
    return records(folder / name)


def edit(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")


def with_new_hashes(folder):
    """What somebody would do who covers the traces: file hashes and the manifest's own made to fit again."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    for name in manifest["files"]:
        manifest["files"][name] = goldfile.file_facts(folder / name)
    manifest["manifest_sha256"] = goldfile.manifest_hash(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def write_lines(folder, rows):
    """These gold records, with hashes that fit them."""
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with_new_hashes(folder)
