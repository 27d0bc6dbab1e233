"""Bad input raises an error that names the argument."""

import numpy as np
import pytest

from calibration import stats
from calibration.stats import GROUNDING_LABELS as GROUNDING

RNG = np.random.default_rng(0)

CASES = [
    ("a", lambda: stats.cohen_kappa(["maybe"], ["supported"], labels=GROUNDING)),
    ("b holds 'x' at index 1", lambda: stats.cohen_kappa(["a", "a"], ["a", "x"], labels=("a", "b"))),
    ("a and b", lambda: stats.cohen_kappa(["a"], [], labels=("a", "b"))),
    ("a must be a sequence", lambda: stats.cohen_kappa("supported", ["supported"], labels=GROUNDING)),
    ("a must be a sequence", lambda: stats.cohen_kappa(3, ["supported"], labels=GROUNDING)),
    ("a holds the position 4", lambda: stats.cohen_kappa(np.array([4]), np.array([0]), labels=GROUNDING)),
    ("a holds the position -2", lambda: stats.cohen_kappa(np.array([-2]), np.array([0]), labels=GROUNDING)),
    (
        "a must have one dimension",
        lambda: stats.cohen_kappa(np.array([[0]]), np.array([[0]]), labels=GROUNDING),
    ),
    ("a holds nan", lambda: stats.cohen_kappa([float("nan")], ["a"], labels=("a", "b"))),
    ("a holds", lambda: stats.cohen_kappa([["a"]], ["a"], labels=("a", "b"))),
    ("labels", lambda: stats.cohen_kappa([], [], labels=())),
    ("a is an integer array", lambda: stats.cohen_kappa(np.array([1]), np.array([1]), labels=(1, 2))),
    ("labels", lambda: stats.cohen_kappa([], [], labels=("a", "a"))),
    ("labels", lambda: stats.cohen_kappa([], [], labels=("a", None))),
    ("labels", lambda: stats.cohen_kappa([], [], labels="ab")),
    ("clusters", lambda: stats.cohen_kappa(["a"], ["a"], labels=("a", "b"), clusters=[1, 2])),
    ("clusters", lambda: stats.cohen_kappa(["a"], ["a"], labels=("a", "b"), clusters=[None])),
    ("clusters", lambda: stats.cohen_kappa(["a"], ["a"], labels=("a", "b"), clusters=[[1]])),
    ("interval", lambda: stats.cohen_kappa(["a"], ["a"], labels=("a", "b"), interval="wald")),
    ("level", lambda: stats.cohen_kappa(["a"], ["a"], labels=("a", "b"), level=95)),
    ("positive", lambda: stats.judge_vs_gold(["a"], ["a"], labels=("a", "b"))),
    ("gold holds", lambda: stats.judge_vs_gold(["?"], ["supported"], labels=GROUNDING)),
    ("rows and cols", lambda: stats.confusion_table(["supported"], [], labels=GROUNDING)),
    ("ratings", lambda: stats.krippendorff_alpha([["?"]], labels=GROUNDING)),
    ("ratings", lambda: stats.krippendorff_alpha(["supported"], labels=GROUNDING)),
    ("ratings", lambda: stats.krippendorff_alpha(np.array([0, 1]), labels=GROUNDING)),
    ("clusters", lambda: stats.krippendorff_alpha([["supported"] * 2], labels=GROUNDING, clusters=[1, 2])),
    ("counts", lambda: stats.fleiss_kappa([[0.5, 1.5]])),
    ("counts", lambda: stats.fleiss_kappa([["a"]])),
    ("counts", lambda: stats.fleiss_kappa([3, 4])),
    ("n must", lambda: stats.wilson(0, 0)),
    ("k must", lambda: stats.wilson(3, 2)),
    ("level", lambda: stats.wilson(1, 2, level=0)),
    ("bad exceeds den at index 1", lambda: stats.clustered_rate([0, 3], [1, 2])),
    ("bad and den", lambda: stats.clustered_rate([0], [1, 2])),
    ("den holds", lambda: stats.clustered_rate([0], [-1])),
    ("bad holds nan", lambda: stats.clustered_rate([float("nan")], [1])),
    ("bad must be numbers", lambda: stats.clustered_rate(["x"], [1])),
    ("missing", lambda: stats.clustered_rate([0], [1], missing=-1)),
    ("labels holds", lambda: stats.hallucination_rates(["good"], ["r"])),
    ("response must have", lambda: stats.hallucination_rates(["supported"], [])),
    ("response holds 'x'", lambda: stats.hallucination_rates(["supported"], ["x"], responses=["r"])),
    ("response holds None", lambda: stats.hallucination_rates(["supported"], [None])),
    ("responses holds the same", lambda: stats.hallucination_rates([], [], responses=["r", "r"])),
    ("items", lambda: stats.hallucination_rates(["supported"], ["r"], items=["i"])),
    ("verdicts", lambda: stats.hallucination_rates([], [], responses=["r"], verdicts=[])),
    ("decision", lambda: stats.hallucination_rates(["supported"], ["r"], unit="decision")),
    ("unit", lambda: stats.hallucination_rates([], [], unit="sentence")),
    ("verdict holds", lambda: stats.abstention_rates(["answerable"], ["YES"])),
    ("question_class holds", lambda: stats.abstention_rates(["hard"], ["ANSWERED"])),
    ("reason holds", lambda: stats.abstention_rates(["unanswerable"], ["REFUSED"], reason=["because"])),
    ("reason holds", lambda: stats.abstention_rates(["answerable"], ["REFUSED"], reason=["out_of_scope"])),
    (
        "question_class holds",
        lambda: stats.abstention_rates(["unanswerable"], ["REFUSED"], reason=["underspecified"]),
    ),
    (
        "p must",
        lambda: stats.rogan_gladen(2, 10, sensitivity=1, n_positive=5, specificity=1, n_negative=5),
    ),
    (
        "sensitivity",
        lambda: stats.rogan_gladen(0.5, 10, sensitivity=-1, n_positive=5, specificity=1, n_negative=5),
    ),
    (
        "n_positive",
        lambda: stats.rogan_gladen(0.5, 10, sensitivity=1, n_positive=-5, specificity=1, n_negative=5),
    ),
    ("design", lambda: stats.correct_bad_share([], [], [], design="lucky")),
    ("draws", lambda: stats.invert_confusion([], [], [], draws=0, rng=RNG)),
    ("positive", lambda: stats.invert_confusion([], [], [], positive={"x"}, rng=RNG)),
    ("labelled and judge_labelled", lambda: stats.ppi_mean([1], [1, 0], [1])),
    ("weight", lambda: stats.ppi_mean([1, 0], [1, 0], [1, 0], weight=2)),
    ("flagged exceeds", lambda: stats.ppi_ratio([1], [0], [2], [1], [0])),
    ("bad_a and den_a|bad_a", lambda: stats.compare_rates([1], [1, 1], [0], [1])),
    ("bad_b exceeds", lambda: stats.compare_rates([1], [1], [2], [1])),
    ("items_a and items_b", lambda: stats.compare_rates([1], [1], [0], [1], items_a=["i"])),
    ("den_a and den_b", lambda: stats.compare_rates([1, 1], [1, 1], [0], [1])),
    ("family", lambda: stats.compare_rates([1], [1], [0], [1], family=0)),
    ("failed_a", lambda: stats.compare_rates([1], [1], [0], [1], failed_a=-1)),
    ("graders", lambda: stats.alt_test({"one": []}, [], labels=GROUNDING)),
    ("epsilon", lambda: stats.alt_test({"one": [], "two": []}, [], labels=GROUNDING, epsilon=2)),
    ("mean_size", lambda: stats.kish_design_effect(0.5, 0.1)),
    ("icc", lambda: stats.kish_design_effect(2, 1.1)),
    ("bad exceeds", lambda: stats.intraclass_correlation([3], [2])),
    ("values", lambda: stats.run_variance([1, 2])),
    ("systems", lambda: stats.family_of(1)),
    ("only_first", lambda: stats.mcnemar(-1, 2)),
    ("k1", lambda: stats.two_proportion_test(3, 2, 1, 2)),
    ("runs", lambda: stats.self_consistency([["?", "supported"]], labels=GROUNDING)),
    ("gold and now", lambda: stats.sentinel_drift(["a"], ["a"], [])),
    ("hits", lambda: stats.step_test([3], [2])),
    ("hits and totals", lambda: stats.control_chart([1], [])),
    ("verdicts holds", lambda: stats.answer_rate(["YES"])),
    ("texts and verdicts", lambda: stats.response_lengths(["a"], [])),
    ("missed", lambda: stats.extraction_error([], [], [-1], ["i"])),
    ("first and other", lambda: stats.run_control([1], [1], [])),
    ("served and documents", lambda: stats.retrieval_score(["a"], documents=[])),
    ("k must", lambda: stats.retrieval_score([], k=0)),
    (
        "responses holds a citation",
        lambda: stats.citation_scores([stats.CitedResponse((stats.Statement((0,)),), 1)]),
    ),
    ("groundedness holds", lambda: stats.magesh_rates(["correct"], ["solid"])),
    ("claims holds", lambda: stats.ragtruth_claim_labels([(3, 1)], [])),
    ("table", lambda: stats.cluster_bootstrap(np.ones((1, 2)), lambda sums: sums[:, 0], rng=RNG)),
    ("draws", lambda: stats.cluster_bootstrap(np.ones((3, 2)), lambda sums: sums[:, 0], draws=0, rng=RNG)),
    ("value and undefined", lambda: stats.Number(value=None)),
    ("undefined", lambda: stats.Number(value=None, undefined="who knows")),
    ("finite", lambda: stats.Number(value=float("nan"))),
    ("flags", lambda: stats.Number(value=1, flags=("odd",))),
    ("low and high", lambda: stats.Number(value=1, low=0)),
]


@pytest.mark.parametrize(("message", "call"), CASES, ids=[f"{at}-{case[0]}" for at, case in enumerate(CASES)])
def test_error_names_the_argument(message, call):
    with pytest.raises(ValueError, match=message):
        call()


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute"):
        _ = stats.made_up
