"""Agreement of real, published label sets against the values computed for them with other libraries."""

import json
from itertools import combinations

import pytest

from calibration.stats import ABSTENTION_LABELS, GROUNDING_LABELS, cohen_kappa, krippendorff_alpha

from .examples import shared

LEVELS = {"claim": GROUNDING_LABELS, "response": ABSTENTION_LABELS}
SETS = ["faithbench_sentence", "faithbench_summary", "pubmedqa", "qags", "xstest"]


def units(name):
    """Item, human labels and judge labels of every labelled unit, claims and responses apart."""
    found = {"claim": [], "response": []}
    with shared(f"dev/{name}.jsonl").open(encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            item = row.get("item_id") or row["id"]
            found["response"].append(
                (item, row.get("response_labels") or {}, row.get("response_judge_labels") or {})
            )
            for claim in row.get("claims") or []:
                found["claim"].append(
                    (item, claim.get("human_labels") or {}, claim.get("judge_labels") or {})
                )
    return found


@pytest.mark.parametrize("name", SETS)
def test_published_label_sets(name):
    expected = json.loads(shared("dev/expected_agreement.json").read_text(encoding="utf-8"))[name]
    found = units(name)
    for level, labels in LEVELS.items():
        if "krippendorff_alpha_nominal" not in expected.get(level, {}):
            continue
        rows, wanted = found[level], expected[level]
        items = [item for item, _, _ in rows]
        alpha = krippendorff_alpha(
            [list(human.values()) for _, human, _ in rows], labels=labels, clusters=items
        )
        assert alpha.value == pytest.approx(wanted["krippendorff_alpha_nominal"], abs=5.1e-5)
        assert alpha.low < alpha.value < alpha.high
        pairs = {(pair["a"], pair["b"]): pair for pair in wanted["pairs_with_20_or_more"]}
        seen = set()
        met = {pair for _, human, _ in rows for pair in combinations(sorted(human), 2)}
        assert all(pair in met or pair[::-1] in met for pair in pairs)
        for a, b in sorted(met):
            result = cohen_kappa(
                [human.get(a) for _, human, _ in rows],
                [human.get(b) for _, human, _ in rows],
                labels=labels,
                clusters=items,
            )
            pair = pairs.get((a, b)) or pairs.get((b, a))
            if pair is None:
                assert result.n < 20
                continue
            seen.add((pair["a"], pair["b"]))
            assert result.n == pair["n"]
            assert result.po == pytest.approx(pair["percent"], abs=5.1e-5)
            if pair["kappa"] is None:
                assert result.value is None
            else:
                assert result.value == pytest.approx(pair["kappa"], abs=5.1e-5)
        assert seen == set(pairs)


@pytest.mark.parametrize("name", ["faithbench_summary", "xstest", "wice"])
def test_published_judges_against_each_person(name):
    expected = json.loads(shared("dev/expected_agreement.json").read_text(encoding="utf-8"))[name]
    found = units(name)
    for level, labels in LEVELS.items():
        for judge, values in expected.get(level, {}).get("judges", {}).items():
            for person, agreement in values["vs_each"].items():
                result = cohen_kappa(
                    [human.get(person) for _, human, _ in found[level]],
                    [verdicts.get(judge) for _, _, verdicts in found[level]],
                    labels=labels,
                )
                assert result.n == agreement["n"], (judge, person)
                assert result.po == pytest.approx(agreement["percent"], abs=5.1e-5)
                if agreement["kappa"] is not None:
                    assert result.value == pytest.approx(agreement["kappa"], abs=5.1e-5)
