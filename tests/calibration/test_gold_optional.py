"""Optional dimensions in the gold export: with their labels and passages, and recomputed from the files."""

import io
import json

import pytest

from annotate import services
from calibration import gold_export
from calibration.models import Judge, JudgeRun, Verdict
from calibration.native_file import export_version
from calibration.recompute import recompute
from tests.annotate.rich import open_rich, tell, tell_all
from tests.annotate.worlds import make_version, response_of
from tests.calibration.labelled import records


@pytest.fixture
def round(evalset, grader_a, grader_b, lead):
    """Response 6: both say contradicted and differ on the kind. Response 5: both refuse, and one informs."""
    round = open_rich(make_version(evalset), grader_a, grader_b)
    tell_all(round, grader_a, "contradicted", "evident conflict", cited="no support")
    tell_all(round, grader_b, "contradicted", "subtle conflict", cited="partial support")
    for person, informative in ((grader_a, "informative"), (grader_b, "informative")):
        tell(round, person, "abstention", "REFUSED", position=5, claim=None)
        tell(round, person, "refusal_informativeness", informative, position=5, claim=None)
    response = response_of(round, 6)
    services.adjudicate(
        round=round,
        response=response,
        claim=response.claims.get(),
        passage=response.passages.get(rank=2),
        dimension="citation_support",
        label="partial support",
        reason="other",
        person=lead,
    )
    return round


@pytest.fixture
def exported(round, tmp_path):
    return tmp_path, gold_export.export_gold(version=round.version, round=round, out=tmp_path)


def rows_of(folder, name, dimension):
    return [row for row in records(folder / name) if row["dimension"] == dimension]


def test_gold_of_a_citation_names_claim_and_passage(exported):
    (row,) = rows_of(exported[0], "gold.jsonl", "citation_support")
    assert (row["response_id"], row["claim_id"], row["passage"]) == (
        "response-6",
        "c1",
        {"id": "p2", "rank": 2},
    )
    assert (row["label"], row["source"]) == ("partial support", "adjudicated")
    assert {said["label"] for said in row["annotations"]} == {"no support", "partial support"}


def test_gold_of_passages_has_no_claim(exported):
    rows = rows_of(exported[0], "gold.jsonl", "context_relevance")
    assert [(row["claim_id"], row["passage"]["rank"], row["label"]) for row in rows] == [
        (None, 1, "irrelevant"),
        (None, 2, "irrelevant"),
    ]
    assert len({row["target_sha256"] for row in rows}) == 2


def test_what_was_not_asked_is_listed_with_the_reason(exported):
    reasons = {
        row["response_id"]: row["reason"]
        for row in rows_of(exported[0], "unresolved.jsonl", "refusal_informativeness")
    }
    assert reasons["response-6"] == "not_asked"
    assert "response-5" not in reasons
    (kind,) = [
        row
        for row in rows_of(exported[0], "unresolved.jsonl", "hallucination_type")
        if row["response_id"] == "response-6"
    ]
    assert kind["reason"] == "unresolved"


def test_manifest_counts_and_compares_every_dimension(exported):
    _folder, manifest = exported
    assert manifest["graded"] == [
        "grounding",
        "abstention",
        "hallucination_type",
        "citation_support",
        "refusal_informativeness",
        "context_relevance",
    ]
    assert manifest["counts"]["refusal_informativeness"]["by_label"] == {"informative": 1, "uninformative": 0}
    assert manifest["counts"]["hallucination_type"]["gold"] == 0
    pair = manifest["agreement"]["hallucination_type"]["pairs"][0]
    assert (pair["n"], pair["observed_agreement"]["value"]) == (1, 0.0)
    assert manifest["agreement"]["context_relevance"]["pairs"][0]["n"] == 2
    kinds = {d["name"]: d["asked_when"] for d in manifest["rubric"]["dimensions"]}
    assert kinds["refusal_informativeness"] == {"dimension": "abstention", "labels": ["REFUSED"]}


def test_export_of_optional_dimensions_recomputes(exported):
    folder, _manifest = exported
    assert recompute(folder)["matches"]


def test_a_changed_optional_label_is_found(exported):
    folder, _manifest = exported
    lines = (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["dimension"] == "citation_support":
            row["annotations"][0]["label"] = row["label"] = "full support"
    (folder / "gold.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = recompute(folder)
    assert not found["matches"]
    assert any(
        difference["where"].startswith("counts.citation_support") for difference in found["differences"]
    )


def test_overview_lists_every_dimension(round):
    found = gold_export.gold_overview(version=round.version, round=round)
    assert {row["name"]: row["gold"] for row in found["dimensions"]} == {
        "grounding": 1,
        "abstention": 2,
        "hallucination_type": 0,
        "citation_support": 1,
        "refusal_informativeness": 1,
        "context_relevance": 2,
    }


def test_the_native_file_leaves_optional_labels_out_and_says_so(round):
    out = io.BytesIO()
    told = export_version(version=round.version, out=out, with_labels=True)
    assert told["counts"]["annotations"] == 6  # two graders: one grounding and two abstention labels each
    assert any(notice.startswith("10 labels of optional dimensions") for notice in told["notices"])
    labels = [
        label
        for line in out.getvalue().splitlines()
        for claim in json.loads(line).get("claims") or []
        for label in claim.get("human_labels", {}).values()
    ]
    assert labels == ["contradicted", "contradicted"]


def test_the_native_file_leaves_verdicts_of_optional_dimensions_out_and_says_so(round):
    evalset, [response, *_rest] = round.version.evalset, round.version.responses.order_by("position")
    judge = Judge.objects.create(evalset=evalset, name="own", kind=Judge.Kind.OPENAI, model="m")
    run = JudgeRun.objects.create(
        judge=judge,
        version=round.version,
        number=1,
        rubric_version=round.rubric_version,
        dimensions=[],
        requested_fingerprint="d" * 64,
    )
    for dimension, label in (("abstention", "ANSWERED"), ("refusal_informativeness", "informative")):
        run.verdicts.create(response=response, dimension=dimension, label=label, state=Verdict.State.VALID)
    told = export_version(version=round.version, out=io.BytesIO(), with_labels=True)
    assert told["counts"]["verdicts"] == 1
    assert "1 verdicts of optional dimensions were left out" in told["notices"]


def test_a_split_claim_keeps_gold_in_no_dimension(round, lead, tmp_path):
    claim = response_of(round, 6).claims.get()
    parts = [("It leaves at noon.", "supported"), ("It takes dogs.", "contradicted")]
    services.split_claim(round=round, claim=claim, parts=parts, person=lead)
    manifest = gold_export.export_gold(version=round.version, round=round, out=tmp_path)
    gold = [row for row in records(tmp_path / "gold.jsonl") if row["claim_id"]]
    assert {(row["dimension"], row["claim_id"]) for row in gold} == {
        ("grounding", "c1.1"),
        ("grounding", "c1.2"),
    }
    whole = [row for row in records(tmp_path / "unresolved.jsonl") if row["claim_id"] == "c1"]
    assert {row["reason"] for row in whole if row["response_id"] == "response-6"} == {"split"}
    assert "citation_support" in {row["dimension"] for row in whole}
    assert recompute(tmp_path)["matches"]
    overview = gold_export.gold_overview(version=round.version, round=round)
    shown = {entry["name"]: entry["gold"] for entry in overview["dimensions"]}
    assert shown == {name: manifest["counts"][name]["gold"] for name in shown}
