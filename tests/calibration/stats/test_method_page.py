"""The method page says what the code does, and every figure finds its entry there."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import pytest

from calibration import stats
from calibration.stats.method_page import PAGE, SECTIONS, entries, main, plain_formula, render
from calibration.stats.results import Number

from .examples import GROUNDING, K1, words
from .test_comparison_examples import A_BAD, B_BAD, ONES, SC1, corrected

GOLD, JUDGE = words(K1, GROUNDING)
BINARY = {"labels": ("good", "bad"), "positive": {"bad"}}


def everything():
    """One result of every kind."""
    rng = np.random.default_rng(0)
    once = stats.judge_vs_gold(GOLD, JUDGE, labels=GROUNDING)
    comparison = stats.compare_rates(A_BAD, ONES, B_BAD, ONES)
    span = stats.CitedResponse((stats.Statement((1,), True),), 1)
    retrieved = stats.retrieval_score(
        ["a"], expected_passages=["a"], documents=["d"], expected_documents=["d"]
    )
    return [
        stats.cohen_kappa(GOLD, JUDGE, labels=GROUNDING),
        stats.cohen_kappa([], [], labels=GROUNDING),
        stats.percent_agreement(GOLD, JUDGE, labels=GROUNDING),
        *stats.per_label_agreement(GOLD, JUDGE, labels=GROUNDING),
        stats.confusion_table(GOLD, JUDGE, labels=GROUNDING),
        stats.gwet_ac1(GOLD, JUDGE, labels=GROUNDING),
        stats.pabak(GOLD, JUDGE, labels=GROUNDING),
        stats.krippendorff_alpha(list(zip(GOLD, JUDGE, strict=True)), labels=GROUNDING),
        stats.fleiss_kappa([[2, 0], [1, 1]]),
        stats.marginal_homogeneity(GOLD, JUDGE, labels=GROUNDING),
        stats.marginal_homogeneity(GOLD, GOLD, labels=GROUNDING),
        once,
        stats.judge_vs_gold([], [], labels=GROUNDING),
        stats.clustered_rate([1, 0], [2, 3]),
        *[
            stats.hallucination_rates(GOLD, range(100), decision=[True] * 100, unit=unit)
            for unit in ("claim", "response", "decision")
        ],
        stats.hallucination_rates([None], ["r"]),
        stats.abstention_rates(["unanswerable"] * 2, ["REFUSED", "ANSWERED"], reason=["out_of_scope"] * 2),
        stats.stratified_rate([1, 0], [1, 1], ["a", "b"], weights={"a": 0.5, "b": 0.5}),
        stats.stratified_rate([1], [1], ["a"], weights={"a": 0.5, "b": 0.5}),
        corrected(0.2),
        *[
            stats.correct_bad_share(
                np.repeat([1, 0], [40, 160]),
                np.repeat([1, 0, 1, 0], [34, 6, 8, 152]),
                np.repeat([1, 0], [210, 790]),
                design=design,
                **BINARY,
            )
            for design in ("random", "separate", "outcome")
        ],
        stats.invert_confusion(GOLD, JUDGE, JUDGE, draws=50, rng=rng),
        stats.ppi_mean([1, 0, 0], [1, 0, 1], [1, 0, 0]),
        stats.ppi_ratio([2, 3], [1, 0], [1, 1], [3, 3], [1, 0]),
        comparison,
        stats.compare_rates(A_BAD, ONES, B_BAD, ONES, failed_b=90),
        stats.pair_verdict(comparison, comparison),
        stats.corrected_difference(
            corrected(0.2), corrected(0.2), corrected(0.2), corrected(0.1), pooled_calibration=True
        ),
        stats.equal_error_test(once.sensitivity, once.specificity, once.sensitivity, once.specificity),
        stats.plan_overlap(GOLD, JUDGE, labels=GROUNDING),
        stats.plan_overlap([], [], labels=GROUNDING),
        stats.gate_power(100, [0.5, 0.5], human_kappa=0.7, judge_kappa=0.7, draws=20, rng=rng),
        stats.self_consistency(np.array(SC1), labels=GROUNDING),
        stats.run_variance([[0, 1], [1, 1], [0, 0]]),
        *stats.marginal_homogeneity(GOLD, JUDGE, labels=GROUNDING).labels,
        stats.marginal_homogeneity(GOLD, JUDGE, labels=GROUNDING).bowker,
        *once.per_label,
        stats.alt_test({"one": GOLD, "two": JUDGE}, GOLD, labels=GROUNDING),
        stats.alt_test({"one": [], "two": []}, [], labels=GROUNDING),
        *stats.abstention_rates(["unanswerable"], ["REFUSED"], reason=["out_of_scope"]).by_reason,
        stats.mcnemar(3, 4),
        stats.ragtruth_span("Subtle Conflict", implicit_true=True),
        retrieved,
        stats.sentinel_drift(GOLD, JUDGE, GOLD),
        stats.agreement_drift(174, 200, 78, 100),
        stats.step_test([10] * 28 + [15] * 7, [100] * 35),
        *stats.control_chart([10, 20], [100, 100]),
        stats.answer_rate(["ANSWERED", "REFUSED"]),
        stats.response_lengths(["one two", "three"], ["ANSWERED", "ANSWERED"]),
        stats.extraction_error(["well split", "merged"], ["i", "j"], [0, 1], ["i", "j"]),
        stats.run_control([1, 2], [1, 2], [1, 3]),
        stats.retrieval_means([retrieved]),
        stats.citation_scores([span]),
        *stats.label_shares(["a", "b"], labels=("a", "b")),
        stats.magesh_rates(["correct", "incorrect"], ["grounded", "misgrounded"]),
    ]


def numbers_in(value):
    if isinstance(value, Number):
        yield value
    elif hasattr(value, "as_number"):
        yield value.as_number()
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers_in(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from numbers_in(part)


RESULTS = everything()


def test_committed_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == render(), "run python -m calibration.stats.method_page"
    assert main(["--check"]) == 0


def test_anchors_are_unique():
    anchors = [entry.anchor for entry in entries() if entry.title]
    assert len(anchors) == len(set(anchors))


def test_every_figure_finds_its_entry():
    anchors = {entry.anchor for entry in entries() if entry.title}
    used = {number.definition for result in RESULTS for number in numbers_in(result)}
    assert used - anchors == set()
    assert len(used) > 40


def test_a_result_class_of_another_module_is_told_where_it_is_returned():
    titles = [entry.title for entry in entries()]
    assert {"Per label agreement: agreement", "Pair verdict: difference"} <= set(titles)


def test_the_fields_of_a_result_class_are_told_once():
    told = [entry.body.splitlines()[0] for entry in entries() if entry.body.startswith("Further fields of")]
    assert len(told) == len(set(told))
    page = render()
    at = page.index("Further fields of `McNemar`")
    assert page.rindex("\n### ", 0, at) == page.index("\n### McNemar")


def test_every_public_function_has_an_entry():
    listed = {name for _, _, names in SECTIONS for name in names}
    functions = {
        name
        for name in stats.__all__
        if callable(getattr(stats, name)) and not isinstance(getattr(stats, name), type)
    }
    assert functions - listed == {"undefined_number"}


@pytest.mark.parametrize("name", [name for _, _, names in SECTIONS for name in names])
def test_every_docstring_says_what_goes_in_and_comes_out(name):
    docstring = getattr(stats, name).__doc__
    assert "Parameters\n" in docstring
    assert "Returns\n" in docstring
    if name not in {"confusion_table", "question_class", "who_owes"}:
        assert "References\n" in docstring


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)
def test_every_result_is_frozen_explains_itself_and_is_json(result):
    assert dataclasses.is_dataclass(result)
    assert result.__dataclass_params__.frozen
    json.dumps(result.as_dict(), allow_nan=False)
    sentence = result.explain()
    assert sentence.endswith(".")
    assert "None" not in sentence
    assert "nan" not in sentence.lower().split()
    for number in numbers_in(result):
        assert number.definition, number
        assert number.label, number


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\kappa = \frac{p_o - p_e}{1 - p_e}", "κ = (p_o - p_e) / (1 - p_e)"),
        (r"n_{i.} + n_{.i}", "n_i. + n_.i"),
        (r"\sqrt{\bar p(1-\bar p)}", "√(mean(p)(1-mean(p)))"),
        (r"\frac{a}{b}", "a / b"),
    ],
)
def test_formulas_are_readable_as_text(latex, plain):
    assert plain_formula(latex) == plain


def test_page_is_written_by_its_command():
    done = subprocess.run(
        [sys.executable, "-m", "calibration.stats.method_page", "--check"],
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "The method page is up to date.")
