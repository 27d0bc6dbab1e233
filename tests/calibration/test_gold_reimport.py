"""An edited gold set that comes back: what changed, what is refused, and what is taken over."""

import csv
import gzip
import io
import json
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.core.management.base import CommandError
from django.urls import reverse

from annotate import services
from annotate.models import Adjudication, Assignment, GoldLabel
from calibration import gold_export
from calibration.gold_lines import FIELDS, Shared
from calibration.recompute import recompute
from evalsets.models import EvalSetVersion, Membership
from tests.api import Api, problem
from tests.calibration.api_world import define
from tests.calibration.gold_set import a_set
from tests.calibration.labelled import records

pytestmark = pytest.mark.django_db


def hash_of(row):
    return Shared(row).target_hash(row["claim"], row["passage"])


@pytest.fixture(scope="module")
def made(kept, tmp_path_factory):
    return kept(_exported, tmp_path_factory.mktemp("gold"))


def _exported(folder):
    labelled = a_set()
    define(labelled)
    labelled.version.rounds.update(state="open")
    gold_export.export_gold(version=labelled.version, round=labelled.round, out=folder)
    return labelled, folder


@pytest.fixture
def labelled(made):
    return made[0]


@pytest.fixture
def folder(made, tmp_path):
    """A copy of the exported folder, to be edited."""
    for path in made[1].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def lead(labelled, person):
    someone = person("someone")
    Membership.objects.create(person=someone, evalset=labelled.version.evalset, role="lead")
    return someone


def edit(folder, line, **fields):
    """Another value in a record of gold.jsonl, as an editor would write it."""
    lines = (folder / "gold.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    lines[line - 1] = json.dumps(json.loads(lines[line - 1]) | fields, ensure_ascii=False)
    (folder / "gold.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def edit_csv(folder, line, **cells):
    path = folder / "gold.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[line - 1] |= cells
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


def run(labelled, *words, **options):
    out = io.StringIO()
    call_command("import_gold", *words, into=str(labelled.version), json=True, stdout=out, **options)
    return json.loads(out.getvalue())


def refused(labelled, *words, **options):
    out = io.StringIO()
    with pytest.raises(CommandError):
        call_command("import_gold", *words, into=str(labelled.version), json=True, stdout=out, **options)
    return json.loads(out.getvalue())["problems"]


def take(folder, lead, **options):
    return {"take_over": True, "by": lead.username, "judge_seen": "no", **options}


# What changed


def test_an_export_that_comes_back_changes_nothing(labelled, folder):
    told = run(labelled, folder)

    assert told["counts"] == {
        "rows": 7,
        "same": 7,
        "changed": 0,
        "new": 0,
        "missing": 0,
        "left_out": 0,
        "unusable": 0,
    }
    assert told["file"]["edited"] is False
    assert (told["differing"], told["moves"], told["notices"]) == ({}, [], [])


def test_every_kind_of_edit_is_told_apart(labelled, folder):
    edit(folder, 1, label="contradicted")
    edit(folder, 2, label="bogus")
    edit(folder, 3, claim_id="c99")
    edit(folder, 4, strata={"language": "fr"})
    lines = (folder / "gold.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    unresolved = next(r for r in records(folder / "unresolved.jsonl") if r["reason"] == "unresolved")
    added = json.loads(lines[0]) | {"claim_id": unresolved["claim_id"], "label": "unsupported"}
    added |= {"claim": "claim 3", "target_sha256": ""}
    added["target_sha256"] = hash_of(added)
    (folder / "gold.jsonl").write_text("\n".join([*lines[:-1], json.dumps(added)]) + "\n", encoding="utf-8")
    told = run(labelled, folder)

    assert [(c["line"], c["claim_id"], c["text"], c["from"], c["to"]) for c in told["changed"]] == [
        (1, "c1", "claim 1", "supported", "contradicted")
    ]
    assert told["changed"][0]["source"] == "agreed"
    assert told["changed"][0]["decided_by"] is None
    assert [said["label"] for said in told["changed"][0]["labels"]] == ["supported", "supported"]
    assert [(c["line"], c["claim_id"], c["from"], c["to"], c["why_no_gold"]) for c in told["new"]] == [
        (7, "c3", None, "unsupported", "unresolved")
    ]
    assert [(p["line"], p["field"], p["value"]) for p in told["unusable"]] == [
        (2, "label", "bogus"),
        (3, "claim_id", "c99"),
    ]
    assert [(m["response_id"], m["claim_id"], m["label"]) for m in told["missing"]] == [
        ("r1", "c4", "unverifiable"),
        ("r2", None, "REFUSED"),
    ]
    # What was added was copied from a target that graders agreed on.
    assert told["differing"] == {"strata": 1, "source": 1, "decision": 1, "annotations": 1}
    counts = {"rows": 7, "same": 3, "changed": 1, "new": 1, "missing": 2, "left_out": 0, "unusable": 2}
    assert told["counts"] == counts
    assert told["file"]["edited"] is True


def test_a_change_names_who_decided_before(labelled, folder):
    edit(folder, 2, label="Supported")  # folded, as in every file of labels
    change = run(labelled, folder)["changed"][0]

    assert (change["from"], change["to"]) == ("unsupported", "supported")
    assert (change["source"], change["decided_for"]) == ("adjudicated", "edge_case")
    assert change["decided_by"] == labelled.round.adjudications.first().by.username
    assert change["settled_at"].endswith("Z")


def test_the_csv_file_is_read_where_it_is_the_one_that_was_edited(labelled, folder):
    edit_csv(folder, 6, label="CLARIFY")
    told = run(labelled, folder)

    assert told["file"]["name"] == "gold.csv"
    assert [(c["dimension"], c["from"], c["to"]) for c in told["changed"]] == [
        ("abstention", "ANSWERED", "CLARIFY")
    ]
    assert told["counts"]["same"] == 6  # texts that begin like formulas among them
    assert told["differing"] == {}


def test_a_table_that_a_spreadsheet_wrote_says_the_same(labelled, folder):
    edit_csv(folder, 1, answerable="TRUE", strata='{ "language":"en" }')
    told = run(labelled, folder)
    assert (told["counts"]["same"], told["differing"]) == (7, {})


def test_two_edited_files_are_refused(labelled, folder):
    edit(folder, 1, label="contradicted")
    edit_csv(folder, 1, label="unsupported")
    assert "both edited" in refused(labelled, folder)[0]["message"]


def test_what_the_export_left_out_is_not_missing(labelled, tmp_path):
    choice = gold_export.Choice(dimensions=("grounding",))
    out = tmp_path / "part"
    gold_export.export_gold(version=labelled.version, round=labelled.round, out=out, choice=choice)
    counts = run(labelled, out)["counts"]
    assert (counts["same"], counts["missing"], counts["left_out"]) == (5, 0, 2)


def test_the_file_alone_is_compared_as_well(labelled, folder):
    edit(folder, 1, label="contradicted")
    packed = folder / "edited.jsonl.gz"
    packed.write_bytes(gzip.compress((folder / "gold.jsonl").read_bytes()))
    told = run(labelled, packed)
    assert (told["counts"]["changed"], told["file"]["edited"]) == (1, None)


# What is refused


@pytest.mark.parametrize("field", ["response", "claim", "question"])
def test_an_edited_text_is_named_and_refused(labelled, folder, field):
    edit(folder, 1, **{field: "another text"})
    found = refused(labelled, folder)
    assert [(p["line"], p["field"], p["value"]) for p in found] == [(1, field, "another text")]


def test_an_edited_passage_is_refused_though_its_hash_was_mended(labelled, folder):
    row = records(folder / "gold.jsonl")[0] | {"context": [{"id": "p1", "text": "other"}]}
    edit(folder, 1, context=row["context"], target_sha256=hash_of(row))
    assert [(p["line"], p["field"]) for p in refused(labelled, folder)] == [(1, "context")]


def test_a_hash_of_other_texts_is_refused(labelled, folder):
    edit(folder, 3, target_sha256="0" * 64)
    assert [(p["line"], p["field"]) for p in refused(labelled, folder)] == [(3, "target_sha256")]


def test_gold_of_another_version_is_refused(labelled, folder):
    for line in range(1, 8):
        edit(folder, line, content_hash="f" * 64)
    found = refused(labelled, folder)
    assert [(p["line"], p["field"], p["value"]) for p in found] == [(1, "content_hash", "f" * 64)]


def test_responses_of_another_run_are_refused(labelled, folder):
    edit(folder, 1, system_run_hash="0" * 64)
    assert [(p["line"], p["field"]) for p in refused(labelled, folder)] == [(1, "system_run_hash")]


@pytest.mark.parametrize(
    ("content", "field"),
    [(b"", ""), (b"{}\n", "content_hash"), (b"not json\n", ""), (b"PK\x03\x04rest", "file")],
)
def test_what_is_no_gold_is_refused(labelled, tmp_path, content, field):
    path = tmp_path / "gold.jsonl"
    path.write_bytes(content)
    assert refused(labelled, path)[0]["field"] == field


def test_a_damaged_archive_is_refused(labelled, folder, tmp_path):
    path = tmp_path / "gold.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "gold.jsonl", "gold.jsonl")
    content = bytearray(path.read_bytes())
    content[60:90] = bytes(30)
    path.write_bytes(content)
    assert "cannot be unpacked" in refused(labelled, path)[0]["message"]


def test_columns_that_are_facts_may_be_missing(labelled, folder):
    lines = records(folder / "gold.jsonl")
    for row in lines:
        del row["annotations"], row["strata"]
    alone = folder.with_name("alone.jsonl")
    alone.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    told = run(labelled, alone)
    assert (told["counts"]["same"], told["differing"]) == (len(lines), {})
    del lines[0]["claim_id"]
    alone.write_text("".join(json.dumps(row) + "\n" for row in lines), encoding="utf-8")
    assert [(p["line"], p["field"]) for p in refused(labelled, alone)] == [(1, "claim_id")]


def test_a_target_that_stands_twice_counts_once(labelled, folder):
    lines = (folder / "gold.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    (folder / "gold.jsonl").write_text("\n".join([*lines, lines[0]]) + "\n", encoding="utf-8")
    told = run(labelled, folder)
    assert [(p["line"], p["field"]) for p in told["unusable"]] == [(8, "response_id")]
    assert told["counts"]["same"] == 7


# Taking over


def test_changes_become_decisions_and_are_taken_back_by_a_further_entry(labelled, folder, lead):
    edit(folder, 1, label="contradicted")
    told = run(labelled, folder, **take(folder, lead, note="Seen again with the vendor"))
    decision = Adjudication.objects.order_by("pk").last()

    assert told["taken"] == 1
    assert (decision.label, decision.reason, decision.by, decision.judge_seen) == (
        "contradicted",
        "reimported",
        lead,
        False,
    )
    assert decision.note.startswith("Seen again with the vendor\ngold.jsonl (SHA-256 ")
    assert decision.note.endswith("line 1")
    gold = GoldLabel.objects.get(adjudication=decision)
    assert (gold.label, gold.source) == ("contradicted", "adjudicated")
    services.revoke(adjudication=decision, person=lead)
    assert GoldLabel.objects.get(claim=decision.claim).source == "agreed"


def test_the_next_export_has_the_change_and_matches_itself(labelled, folder, lead, tmp_path):
    edit(folder, 2, label="supported")
    run(labelled, folder, **take(folder, lead))
    out = tmp_path / "again"
    gold_export.export_gold(version=labelled.version, round=labelled.round, out=out)
    row = records(out / "gold.jsonl")[1]
    assert (row["label"], row["adjudication"]["reason"]) == ("supported", "reimported")
    assert recompute(out)["matches"]
    assert run(labelled, folder)["counts"]["changed"] == 0


def test_the_same_file_twice_is_taken_over_once(labelled, folder, lead):
    edit(folder, 1, label="contradicted")
    run(labelled, folder, **take(folder, lead))
    assert run(labelled, folder, **take(folder, lead))["taken"] == 0
    assert Adjudication.objects.filter(reason="reimported").count() == 1


def test_only_the_lines_that_were_asked_for_are_taken_over(labelled, folder, lead):
    edit(folder, 1, label="contradicted")
    edit(folder, 6, label="CLARIFY")
    told = run(labelled, folder, **take(folder, lead, line=[6]))
    assert (told["counts"]["changed"], told["taken"]) == (2, 1)
    assert refused(labelled, folder, **take(folder, lead, line=[6]))[0]["line"] == 6  # it holds by now


@pytest.mark.parametrize(
    ("option", "given"),
    [("by", "lead"), ("judge_seen", "no"), ("line", [1]), ("note", "Seen again with the vendor")],
)
def test_an_option_that_would_do_nothing_is_refused(labelled, folder, option, given):
    edit(folder, 1, label="contradicted")
    (problem,) = refused(labelled, folder, **{option: given})
    assert f"--{option.replace('_', '-')} would do nothing" in problem["message"]


def test_what_cannot_be_taken_over_stays_and_is_told(labelled, folder, lead):
    lines = (folder / "gold.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    added = json.loads(lines[-1]) | {"response_id": "r3", "claim_id": "c1", "dimension": "grounding"}
    added |= {"label": "supported", "response": "An answer.", "claim": "claim 1", "context": []}
    added |= {"question": "question i1"}
    added["target_sha256"] = hash_of(added)
    (folder / "gold.jsonl").write_text("\n".join([*lines, json.dumps(added)]) + "\n", encoding="utf-8")
    told = run(labelled, folder, **take(folder, lead))
    assert [(c["line"], c["why_no_gold"], c["can_be_taken"]) for c in told["new"]] == [
        (8, "not_labelled", False)
    ]
    assert told["taken"] == 0
    found = refused(labelled, folder, **take(folder, lead, line=[8]))
    assert (found[0]["line"], found[0]["field"], found[0]["value"]) == (8, "label", "supported")


def test_verdicts_in_view_are_kept_with_the_decision(labelled, folder, lead):
    edit(folder, 1, label="contradicted")
    run(labelled, folder, **take(folder, lead, judge_seen="yes"))
    assert Adjudication.objects.get(reason="reimported").judge_seen


@pytest.mark.parametrize("missing", ["by", "judge_seen"])
def test_who_and_whether_a_judge_was_seen_must_be_said(labelled, folder, lead, missing):
    assert (
        f"--{missing.replace('_', '-')}"
        in refused(labelled, folder, **take(folder, lead) | {missing: None})[0]["message"]
    )


def test_a_stranger_and_a_lead_who_grades_take_nothing_over(labelled, folder, lead, person):
    edit(folder, 1, label="contradicted")
    assert "is no lead" in refused(labelled, folder, **take(folder, person("stranger")))[0]["message"]
    let_grade(labelled, lead)
    assert "finish grading round 1" in refused(labelled, folder, **take(folder, lead))[0]["message"]
    assert not Adjudication.objects.filter(reason="reimported").exists()


def let_grade(labelled, lead):
    labelled.graders[0].person = lead
    labelled.graders[0].save()
    Membership.objects.create(person=lead, evalset=labelled.version.evalset, role="grader")
    Assignment.objects.filter(grader=labelled.graders[0]).update(state="pending")


# The pages


def address(labelled, name):
    return reverse(f"calibration:{name}", args=[labelled.version.evalset.slug, 1])


def send(client, labelled, path):
    file = SimpleUploadedFile(path.name, path.read_bytes())
    return client.post(address(labelled, "compare_gold"), {"file": file})


def zipped(folder):
    path = folder / "gold.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part in folder.iterdir():
            if part != path:
                archive.write(part, f"gold-set/{part.name}")
    return path


def test_the_page_shows_what_changed_and_stores_nothing(client, labelled, folder, lead):
    client.force_login(lead)
    assert client.get(address(labelled, "compare_gold")).status_code == 200
    edit(folder, 1, label="contradicted")
    edit(folder, 7, label="<b>")
    answer = send(client, labelled, zipped(folder))
    page = answer.content.decode()

    assert answer.status_code == 200
    assert '<s class="tag supported">supported</s>' in page
    assert "edited since the export" in page
    assert "&lt;b&gt;" in page
    assert not Adjudication.objects.filter(reason="reimported").exists()


def test_what_was_ticked_is_taken_over_once(client, labelled, folder, lead):
    client.force_login(lead)
    edit(folder, 1, label="contradicted")
    edit(folder, 6, label="CLARIFY")
    form = send(client, labelled, zipped(folder)).context["take"]
    given = {"shown": form.initial["shown"], "take": ["6"], "judge_seen": "no", "note": "why not"}
    answer = client.post(address(labelled, "take_over_gold"), given)
    assert answer["Location"] == reverse("annotate:decisions", args=[labelled.version.evalset.slug, 1])
    assert "re-imported gold" in client.get(answer["Location"]).content.decode()
    again = client.post(address(labelled, "take_over_gold"), given)

    assert again.status_code == 409
    assert "Other gold holds by now" in again.content.decode()
    assert [d.label for d in Adjudication.objects.filter(reason="reimported")] == ["CLARIFY"]


@pytest.mark.parametrize(
    "change", [{"take": []}, {"take": ["2"]}, {"judge_seen": ""}, {"shown": "made up"}, {"shown": ""}]
)
def test_a_form_that_says_too_little_stores_nothing(client, labelled, folder, lead, change):
    client.force_login(lead)
    edit(folder, 1, label="contradicted")
    form = send(client, labelled, zipped(folder)).context["take"]
    given = {"shown": form.initial["shown"], "take": ["1"], "judge_seen": "no"} | change
    answer = client.post(address(labelled, "take_over_gold"), given)
    assert answer.status_code == 422
    assert not Adjudication.objects.filter(reason="reimported").exists()


def test_a_refused_file_is_told_on_the_page(client, labelled, folder, lead):
    client.force_login(lead)
    edit(folder, 1, claim="another text")
    answer = send(client, labelled, folder / "gold.jsonl")
    assert answer.status_code == 422
    assert "the text was edited" in answer.content.decode()
    assert client.post(address(labelled, "compare_gold"), {"round": ""}).status_code == 422


def test_changes_shown_for_another_set_are_not_there(client, labelled, folder, lead):
    client.force_login(lead)
    edit(folder, 1, label="contradicted")
    form = send(client, labelled, zipped(folder)).context["take"]
    other = EvalSetVersion.objects.create(evalset=labelled.version.evalset, number=2)
    given = {"shown": form.initial["shown"], "take": ["1"], "judge_seen": "no"}
    place = reverse("calibration:take_over_gold", args=[other.evalset.slug, other.number])
    assert client.post(place, given).status_code == 404


def test_the_pages_are_for_leads_who_do_not_grade(client, labelled, lead, person):
    client.force_login(person("stranger"))
    assert client.get(address(labelled, "compare_gold")).status_code == 404
    assert client.post(address(labelled, "take_over_gold")).status_code == 404
    client.force_login(lead)
    assert client.get(address(labelled, "take_over_gold")).status_code == 405
    let_grade(labelled, lead)
    assert client.get(address(labelled, "compare_gold")).status_code == 403
    assert client.post(address(labelled, "take_over_gold")).status_code == 403


# REST


def test_the_api_tells_and_takes_over(labelled, folder, lead):
    api = Api(lead, "rounds")
    edit(folder, 1, label="contradicted")
    content = (folder / "gold.jsonl").read_bytes()
    path = f"/evalsets/{labelled.version.evalset.slug}/versions/1/gold/edited/"
    told = api.send_file(path, content)
    assert (told.status_code, told.json()["counts"]["changed"], told.json()["taken"]) == (200, 1, 0)

    problem(api.send_file(f"{path}?take_over=true", content), 400)
    problem(api.send_file(f"{path}?take_over=true&judge_seen=false&lines=3", content), 422)
    taken = api.send_file(f"{path}?take_over=true&judge_seen=false&lines=1", content, key="once")
    again = api.send_file(f"{path}?take_over=true&judge_seen=false&lines=1", content, key="once")
    assert (taken.status_code, taken.json()["taken"]) == (201, 1)
    assert again.json() == taken.json()
    assert Adjudication.objects.filter(reason="reimported").count() == 1


def test_the_api_is_for_leads_who_do_not_grade(labelled, folder, lead, person):
    content = (folder / "gold.jsonl").read_bytes()
    path = f"/evalsets/{labelled.version.evalset.slug}/versions/1/gold/edited/"
    problem(Api(person("stranger"), "rounds").send_file(path, content), 404)
    problem(Api(lead, "read").send_file(path, content), 403)
    api = Api(lead, "rounds")
    edit(folder, 1, claim="another text")
    found = problem(api.send_file(path, (folder / "gold.jsonl").read_bytes()), 422)["errors"]
    assert [(error["line"], error["field"]) for error in found] == [(1, "claim")]
    let_grade(labelled, lead)
    problem(api.send_file(path, content), 403)
