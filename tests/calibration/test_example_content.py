"""The built-in example keeps what its README and the pages that show it rely on."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[2] / "calibration" / "example"
REASONS = {
    "out_of_scope",
    "in_domain_absent",
    "false_premise",
    "time_shifted",
    "permission_shifted",
    "underspecified",
}
LABELS = {
    "grounding": ["supported", "contradicted", "unsupported", "unverifiable"],
    "abstention": ["REFUSED", "ANSWERED", "CLARIFY"],
}
BAD = {"contradicted", "unsupported"}
GRADERS = ("ada", "ben")
ITEM_FIELDS = (
    "question",
    "strata",
    "answerable",
    "unanswerable_reason",
    "reference_answer",
    "expected_documents",
    "expected_passages",
    "variant_of",
)
RESPONSE_FIELDS = {
    *ITEM_FIELDS,
    "id",
    "item_id",
    "retrieval_query",
    "context",
    "system",
    "response",
    "claims",
}


def read_lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (EXAMPLE / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def responses() -> dict[str, dict]:
    return {line["id"]: line for line in read_lines("evalset.jsonl")}


@pytest.fixture(scope="module")
def items(responses) -> dict[str, dict]:
    return {line["item_id"]: line for line in responses.values()}


@pytest.fixture(scope="module")
def labels() -> list[dict]:
    return read_lines("labels.jsonl")


@pytest.fixture(scope="module")
def graded(labels) -> set[str]:
    return {label["response"] for label in labels}


def label_pairs(labels: list[dict], dimension: str) -> list[tuple[str, str]]:
    by_target: dict[tuple, dict[str, str]] = {}
    for label in labels:
        if label["dimension"] == dimension:
            by_target.setdefault((label["response"], label["claim"]), {})[label["grader"]] = label["label"]
    return [(given["ada"], given["ben"]) for given in by_target.values()]


def kappa(pairs: list[tuple[str, str]], dimension: str) -> float:
    from sklearn.metrics import cohen_kappa_score

    first, second = zip(*pairs, strict=True)
    return cohen_kappa_score(first, second, labels=LABELS[dimension])


def test_counts_are_those_of_the_readme(responses, items, labels, graded):
    assert len(read_lines("evalset.jsonl")) == len(responses) == 88
    assert len(items) == 44
    assert sum(len(line["claims"]) for line in responses.values()) == 299
    assert len(graded) == 52
    assert len(label_pairs(labels, "grounding")) == 183
    assert len(label_pairs(labels, "abstention")) == 52


def test_lines_hold_only_native_fields_and_no_labels(responses):
    for line in responses.values():
        assert set(line) <= RESPONSE_FIELDS
        for claim in line["claims"]:
            assert set(claim) <= {"id", "text", "source_ids", "decision"}
        for passage in line["context"]:
            assert set(passage) == {"id", "title", "document", "text"}


def test_each_item_is_answered_once_by_each_of_two_systems(responses, items):
    answered = Counter((line["item_id"], line["system"]["name"]) for line in responses.values())
    assert answered == Counter((item, name) for item in items for name in ("loose prompt", "strict prompt"))
    systems = {json.dumps(line["system"], sort_keys=True) for line in responses.values()}
    assert len(systems) == 2
    assert len({line["system"]["model"] for line in responses.values()}) == 1


def test_item_fields_agree_between_the_systems(responses):
    seen: dict[str, list] = {}
    for line in responses.values():
        fields = [line.get(field) for field in ITEM_FIELDS]
        assert seen.setdefault(line["item_id"], fields) == fields


def test_ids_follow_one_pattern(responses):
    for line in responses.values():
        assert re.fullmatch(r"gh-\d{3}", line["item_id"])
        assert line["id"] == f"{line['item_id']}-{line['system']['settings']['prompt']}"
        assert [claim["id"] for claim in line["claims"]] == [
            f"c{number}" for number in range(1, len(line["claims"]) + 1)
        ]


def test_unanswerable_items_have_all_six_reasons_and_a_sound_share(items):
    unanswerable = [item for item in items.values() if not item["answerable"]]
    assert {item["unanswerable_reason"] for item in unanswerable} == REASONS
    assert 0.15 <= len(unanswerable) / len(items) <= 0.20
    for item in items.values():
        assert isinstance(item["answerable"], bool)
        assert (item["unanswerable_reason"] is None) == item["answerable"]


def test_answerable_items_have_reference_and_expectation(items):
    for item in items.values():
        assert bool(item["reference_answer"]) == item["answerable"]
        assert bool(item["expected_documents"]) == item["answerable"]
        documents = list(dict.fromkeys(passage.split("#")[0] for passage in item["expected_passages"]))
        assert item["expected_documents"] == documents


def test_expected_passages_are_served_but_for_one_retrieval_miss(responses):
    missed = {
        line["item_id"]
        for line in responses.values()
        if not set(line["expected_passages"]) <= {passage["id"] for passage in line["context"]}
    }
    assert missed == {"gh-015"}


def test_strata_are_balanced(items):
    topics = Counter(item["strata"]["topic"] for item in items.values())
    assert topics == {"installation": 11, "climate": 11, "alarms": 11, "account": 11}
    assert Counter(item["strata"]["language"] for item in items.values()) == {"en": 30, "de": 14}
    question_types = Counter(item["strata"]["question_type"] for item in items.values())
    assert set(question_types) == {"lookup", "procedure", "judgement"}
    assert min(question_types.values()) >= 12


def test_variants_are_german_twins_of_english_items(items):
    variants = [item for item in items.values() if item.get("variant_of")]
    assert len(variants) == 6
    for item in variants:
        twin = items[item["variant_of"]]
        assert (item["strata"]["language"], twin["strata"]["language"]) == ("de", "en")
        assert item["strata"]["topic"] == twin["strata"]["topic"]


def test_passages_are_served_under_unique_ids_and_cited_within_the_response(responses):
    texts: dict[str, dict] = {}
    for line in responses.values():
        served = [passage["id"] for passage in line["context"]]
        assert 1 <= len(served) <= 4
        assert len(set(served)) == len(served)
        for passage in line["context"]:
            assert passage["id"].split("#")[0] == passage["document"]
            assert texts.setdefault(passage["id"], passage) == passage
        for claim in line["claims"]:
            assert set(claim.get("source_ids", ())) <= set(served)


def test_numbered_citations_point_at_served_passages(responses):
    for line in responses.values():
        cited = {int(number) for number in re.findall(r"\[(\d+)\]", line["response"])}
        assert cited <= set(range(1, len(line["context"]) + 1)), line["id"]


def test_a_passage_has_text_directly_under_its_heading(responses):
    texts = {passage["text"] for line in responses.values() for passage in line["context"]}
    assert any(re.search(r"^# [^\n]+\n[A-Z][^\n]+\n\n## ", text) for text in texts)


def test_texts_are_distinct_and_free_of_markup(responses, items):
    questions = [item["question"] for item in items.values()]
    answers = [line["response"] for line in responses.values()]
    claims = [claim["text"] for line in responses.values() for claim in line["claims"]]
    passages = {passage["id"]: passage["text"] for line in responses.values() for passage in line["context"]}
    for texts in (questions, answers, claims, list(passages.values())):
        assert len(set(texts)) == len(texts)
        assert not [text for text in texts if "<" in text or "&" in text]


def test_claims_mark_decisions_and_lack_citations_now_and_then(responses):
    claims = [claim for line in responses.values() for claim in line["claims"]]
    assert 0.2 < sum(claim.get("decision", False) for claim in claims) / len(claims) < 0.7
    assert sum("source_ids" not in claim for claim in claims) >= 50


def test_the_hard_kinds_of_response_are_there(responses):
    empty = [line["id"] for line in responses.values() if not line["response"]]
    assert empty == ["gh-041-strict"]
    assert responses["gh-041-strict"]["claims"] == []
    without_claims = [line["id"] for line in responses.values() if line["response"] and not line["claims"]]
    assert len(without_claims) >= 10
    assert {"gh-032-strict", "gh-033-strict"} <= set(without_claims)
    questions_back = [line["id"] for line in responses.values() if line["response"].endswith("?")]
    assert {"gh-010-strict", "gh-021-strict", "gh-044-strict"} <= set(questions_back)


def test_both_graders_label_every_target_of_a_graded_response_once(responses, labels, graded):
    expected = Counter()
    for response in graded:
        targets = [(None, "abstention")]
        targets += [(claim["id"], "grounding") for claim in responses[response]["claims"]]
        for claim, dimension in targets:
            expected.update((grader, response, claim, dimension) for grader in GRADERS)
    given = Counter((row["grader"], row["response"], row["claim"], row["dimension"]) for row in labels)
    assert given == expected
    for row in labels:
        assert row["label"] in LABELS[row["dimension"]]
        assert set(row) <= {"grader", "response", "claim", "dimension", "label", "note", "flag"}


def test_three_fifths_of_the_gradable_responses_are_graded(responses, graded):
    gradable = {line["id"] for line in responses.values() if line["response"]}
    assert graded <= gradable
    assert round(len(graded) / len(gradable), 2) == 0.60


@pytest.mark.parametrize("part", ["graded", "waiting"])
def test_both_parts_cover_systems_strata_and_answerability(responses, graded, part):
    lines = [line for line in responses.values() if (line["id"] in graded) == (part == "graded")]
    assert {line["system"]["name"] for line in lines} == {"loose prompt", "strict prompt"}
    assert {line["strata"]["language"] for line in lines} == {"en", "de"}
    assert {line["strata"]["topic"] for line in lines} == {"installation", "climate", "alarms", "account"}
    assert {line["answerable"] for line in lines} == {True, False}


def test_graders_disagree_plausibly_on_grounding(labels):
    pairs = label_pairs(labels, "grounding")
    assert 0.6 < kappa(pairs, "grounding") < 0.8
    for given in zip(*pairs, strict=True):
        assert set(given) == set(LABELS["grounding"])


def test_graders_disagree_plausibly_on_abstention(labels):
    pairs = label_pairs(labels, "abstention")
    assert 0.7 < kappa(pairs, "abstention") < 0.9
    agreed = Counter(first for first, second in pairs if first == second)
    assert agreed["REFUSED"] >= 10
    assert agreed["ANSWERED"] >= 20
    assert agreed["CLARIFY"] >= 1


def test_a_judge_can_be_evaluated_once_disagreements_are_settled(labels, graded):
    """The trust gate asks for 100 claims in 30 responses, 20 of them bad and 20 not bad."""
    pairs = label_pairs(labels, "grounding")
    assert len(pairs) > 100
    assert len(graded) >= 30
    assert sum(first in BAD and second in BAD for first, second in pairs) >= 20
    assert sum(first not in BAD and second not in BAD for first, second in pairs) >= 20


def test_loose_prompt_strays_and_strict_prompt_refuses_too_much(responses, labels):
    bad_shares, refusals = {}, {}
    for prompt in ("loose", "strict"):
        of_system = [row for row in labels if row["response"].endswith(prompt)]
        pairs = label_pairs(of_system, "grounding")
        bad_shares[prompt] = sum(first in BAD and second in BAD for first, second in pairs) / len(pairs)
        refusals[prompt] = sum(
            row["label"] == "REFUSED" and responses[row["response"]]["answerable"] for row in of_system
        )
    assert bad_shares["loose"] > 3 * bad_shares["strict"]
    assert refusals["strict"] > refusals["loose"]


def test_notes_and_flags_say_something(labels):
    assert len([row for row in labels if row.get("flag")]) == 3
    written = [row[kind] for row in labels for kind in ("note", "flag") if kind in row]
    assert len(written) >= 20
    assert all(text.strip() == text and len(text) > 10 for text in written)
    assert len(set(written)) == len(written)


def test_readme_names_responses_that_exist(responses):
    named = re.findall(r"`(gh-\d{3}-(?:loose|strict))`", (EXAMPLE / "README.md").read_text(encoding="utf-8"))
    assert len(named) >= 10
    assert set(named) <= set(responses)
