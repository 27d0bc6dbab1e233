"""Every real data set, imported as a user would, gives the agreement that its publishers' labels have.

The expected values come with the data (`expected_agreement.json`: scikit-learn's unweighted kappa, the
krippendorff package's nominal alpha, counts). Sets that are added to the folder are tried as well.
"""

import json
import os
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from calibration.models import Judge

FOLDER = (
    Path(os.environ.get("TOUCHSTONE_SHARED") or Path(__file__).resolve().parents[3] / "shared")
    / "data"
    / "dev"
)
EXPECTED = FOLDER / "expected_agreement.json"
SETS = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.is_file() else {}
DIMENSION = {"claim": "grounding", "response": "abstention"}
DIGITS = 4

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(
        not SETS, reason=f"the shared test data are not on this machine ({EXPECTED} is missing)"
    ),
]


def command(*args):
    out = StringIO()
    call_command(*args, "--json", stdout=out)
    return json.loads(out.getvalue())


def rounded(number):
    return None if number["value"] is None else round(number["value"], DIGITS)


def of(pair):
    return {
        "n": pair["n"],
        "percent": rounded(pair["observed_agreement"]),
        "kappa": rounded(pair["cohen_kappa"]),
    }


def by_names(pairs):
    return {frozenset((pair["a"], pair["b"])): pair for pair in pairs}


ON_BOTH = {"wice", "xstest"}  # claims, and responses with judges: the others tell no more about a database


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in ON_BOTH else pytest.mark.once) for name in sorted(SETS)]
)
def test_a_real_set_has_the_agreement_of_its_labels(name):
    command("import_evalset", str(FOLDER / f"{name}.jsonl"), "--name", name, "--with-labels", "--freeze")
    shown = {entry["dimension"]: entry for entry in command("agreement", f"{name}@1")["dimensions"]}
    for unit, expected in SETS[name].items():
        if unit not in DIMENSION:
            continue
        found = shown[DIMENSION[unit]]
        check_counts(found, expected)
        check_pairs(found, expected)
        check_judges(f"{name}@1", DIMENSION[unit], expected)


def check_counts(found, expected):
    given = {label: count for label, count in found["majority"].items() if count}
    assert given == expected["majority_counts"]
    labels = {}
    for grader in found["graders"]:
        for label, count in grader["labels"].items():
            labels[label] = labels.get(label, 0) + count
    assert {label: count for label, count in labels.items() if count} == expected["labels"]
    assert found["n_labelled_twice"] == expected.get("units_with_2_or_more_humans", 0)
    assert found["label_pairs"] == expected.get("label_pairs", 0)
    assert rounded(found["krippendorff_alpha"]) == expected.get("krippendorff_alpha_nominal")
    assert rounded(found["pairwise_agreement"]) == expected.get("pairwise_percent_agreement")


def check_pairs(found, expected):
    pairs = by_names(found["pairs"])
    for pair in expected.get("pairs_with_20_or_more", []):
        assert of(pairs[frozenset((pair["a"], pair["b"]))]) == {
            key: pair[key] for key in ("n", "percent", "kappa")
        }
    first_two = expected.get("kappa_first_two_by_sorted_name")
    if first_two and len(found["graders"]) > 2:
        assert {
            "n": found["kappa_first_two_by_name"]["n"],
            "kappa": rounded(found["kappa_first_two_by_name"]["kappa"]),
        } == first_two


def check_judges(version, dimension, expected):
    assert Judge.objects.count() == len(expected["judges"])
    for judge, values in expected["judges"].items():
        report = command("calibration_report", version, "--judge", judge, "--dimension", dimension)
        pairs = by_names(report["agreement"]["pairs"])
        for grader, value in values["vs_each"].items():
            assert of(pairs[frozenset((grader, judge))]) == value
        assert of(report["agreement"]["judge_vs_majority"]) == values["vs_majority"]
        assert report["agreement"]["n_judged"] == values["units_judged"]
        assert report["gate"]["state"] != "TRUSTED", "imported verdicts carry no fingerprint"
        assert set(report["rates"]) == {"withheld"}
