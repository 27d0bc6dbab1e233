"""Kappa and its companions against published and library values.

Sources: irrCAC, statsmodels, scikit-learn, krippendorff, and the papers named at each test.
"""

import csv
import json

import numpy as np
import pytest

from calibration.stats import (
    cluster_bootstrap,
    cohen_kappa,
    confusion_table,
    fleiss_kappa,
    gwet_ac1,
    judge_vs_gold,
    krippendorff_alpha,
    marginal_homogeneity,
    pabak,
    per_label_agreement,
)
from calibration.stats.agreement import kappa_values

from .examples import GROUNDING, K1, K2, K3, K4, K5, columns, k6, letters, shared, words


def kappa_of(table, **options):
    rows, cols = columns(table)
    return cohen_kappa(rows, cols, labels=letters(len(table)), **options)


def close(value, expected, digits=6):
    assert value == pytest.approx(expected, abs=0.51 * 10**-digits)


def test_kappa_of_one_hundred_claims():
    result = kappa_of(K1)
    close(result.po, 0.79)
    close(result.pe, 0.4104)
    close(result.value, 0.643826)
    close(result.fce_se, 0.066582)
    close(result.low, 0.513327)
    close(result.high, 0.774325)
    close(result.se_null, 0.065098)
    close(result.max_kappa, 0.966079)
    close(result.agreement.low, 0.700200)
    close(result.agreement.high, 0.858343)


def test_kappa_explains_itself():
    assert kappa_of(K1).explain() == (
        "The two graders agree on 79 of 100 claims; kappa 0.64 [0.51, 0.77]; "
        "the set is too small to tell 0.6 from 0.7."
    )


@pytest.mark.parametrize(
    ("table", "kappa", "se", "low", "high"),
    [
        (K2, 0.762259, 0.077039, 0.611264, 0.913253),
        (K3, 0.4, 0.126996, 0.151092, 0.648908),
        (K5, -0.023392, None, -0.047473, 0.000690),
    ],
)
def test_kappa_and_its_asymptotic_interval(table, kappa, se, low, high):
    result = kappa_of(table)
    close(result.value, kappa)
    if se is not None:
        close(result.fce_se, se)
    close(result.fce_low, low)
    close(result.fce_high, high)


def test_kappa_of_the_prevalence_paradox():
    result = kappa_of(K4)
    close(result.po, 0.675)
    close(result.value, 0.021968)
    assert "prevalence" in result.flags


def test_interval_above_one_is_clipped():
    rows, cols = columns(K2)
    clarify = per_label_agreement(rows, cols, labels=letters(3))[2].kappa
    close(clarify.fce_high, 1.0198, 4)
    assert clarify.high == 1.0


@pytest.mark.parametrize(
    ("table", "ac1", "bp"),
    [(K1, 0.738654, 0.72), (K2, 0.814725, 0.80), (K4, 0.532584, 0.35), (K5, 0.940776, 0.888)],
)
def test_prevalence_robust_companions(table, ac1, bp):
    rows, cols = columns(table)
    close(gwet_ac1(rows, cols, labels=letters(len(table))).value, ac1)
    close(pabak(rows, cols, labels=letters(len(table))).value, bp)


def test_ac1_standard_errors_are_those_of_irrcac():
    rows, cols = columns(K1)
    result = gwet_ac1(rows, cols, labels=letters(4))
    close(result.low, 0.63535, 4)
    close(result.high, 0.84196, 4)


def test_ac1_of_clustered_pairs_sums_its_residuals_by_item():
    first, second, item = k6()
    labels = ("S", "C", "U", "V")
    result = gwet_ac1(first, second, labels=labels, clusters=item)
    share = {label: (first.count(label) + second.count(label)) / 36 for label in labels}
    pe = sum(part * (1 - part) for part in share.values()) / 3
    residual = np.zeros(6)
    for a, b, at in zip(first, second, item, strict=True):
        chance = (1 - share[a] + 1 - share[b]) / 6
        residual[at] += ((a == b) - pe - 2 * (1 - result.value) * (chance - pe)) / (1 - pe) - result.value
    se = np.sqrt(6 / 5 * (residual**2).sum()) / 18
    # 2.570582 is the t quantile for 5 degrees of freedom.
    assert result.value - result.low == pytest.approx(2.570582 * se, abs=1e-6)


@pytest.mark.parametrize(("table", "alpha"), [(K1, 0.645487), (K2, 0.764181), (K3, 0.4)])
def test_alpha_of_two_graders(table, alpha):
    close(krippendorff_alpha(np.column_stack(columns(table)), labels=letters(len(table))).value, alpha)


def test_kappa_with_clusters_uses_the_jackknife():
    first, second, item = k6()
    result = cohen_kappa(first, second, labels="S C U V".split(), clusters=item)
    close(result.value, 0.64)
    close(result.fce_se, 0.150489)
    close(result.jackknife_se, 0.074223)
    close(result.low, 0.449203)
    close(result.high, 0.830797)
    assert result.flags == ("too_few_clusters",)


def test_leave_one_out_values():
    from calibration.stats.agreement import leave_one_out_kappas, pair_up

    first, second, item = k6()
    values = leave_one_out_kappas(pair_up(first, second, "S C U V".split(), item))
    expected = [0.697987, 0.587097, 0.631579, 0.619048, 0.642857, 0.641026]
    assert values == pytest.approx(expected, abs=5e-7)


def test_one_label_only_has_no_kappa_but_full_agreement():
    result = cohen_kappa(["supported"] * 5, ["supported"] * 5, labels=GROUNDING)
    assert (result.value, result.undefined) == (None, "one_label_only")
    assert (result.agreement.value, result.agreement.n) == (1.0, 5)
    number = result.as_number().as_dict()
    assert number["value"] is None and number["undefined"] == "one_label_only"


def test_no_overlap_has_no_kappa():
    result = cohen_kappa([], [], labels=GROUNDING)
    assert (result.value, result.undefined) == (None, "empty_overlap")
    assert result.agreement.undefined == "empty_overlap"


def test_disjoint_labels_give_zero():
    result = cohen_kappa(["supported"] * 5, ["unsupported"] * 5, labels=GROUNDING)
    assert (result.value, result.pe, result.low) == (0.0, 0.0, None)


@pytest.mark.parametrize(("items", "po_low", "kappa_low"), [(40, 0.9119, 0.851), (8, 0.6306, None)])
def test_perfect_agreement_has_an_exact_lower_bound(items, po_low, kappa_low):
    # 41 of 64 pairs in one of two labels: chance agreement .5396; the bound is solved for po.
    first = ["supported"] * (items * 3) + ["unsupported"] * items
    item = [number % items for number in range(len(first))]
    result = cohen_kappa(first, list(first), labels=GROUNDING, clusters=item)
    assert (result.value, result.high) == (1.0, 1.0)
    close(result.low * (1 - result.pe) + result.pe, po_low, 4)
    if kappa_low is not None:
        close((po_low - 0.41) / 0.59, kappa_low, 3)


def test_per_label_agreement():
    rows, cols = words(K1, GROUNDING)
    expected = {
        "supported": (0.710744, 0.5706, 0.8509, 0.881356),
        "contradicted": (0.715909, 0.5011, 0.9308, 0.75),
        "unsupported": (0.500312, 0.2885, 0.7121, 0.60),
        "unverifiable": (0.633700, 0.3635, 0.9039, 0.666667),
    }
    for label in per_label_agreement(rows, cols, labels=GROUNDING):
        kappa, low, high, specific = expected[label.label]
        close(label.kappa.value, kappa)
        close(label.kappa.low, low, 4)
        close(label.kappa.high, high, 4)
        close(label.specific.value, specific)


def test_specific_agreement_of_the_rare_label_is_zero():
    supported, other = per_label_agreement(*columns(K5), labels=("supported", "not"))
    close(supported.specific.value, 0.971, 3)
    assert other.specific.value == 0.0


def test_specific_agreement_of_an_unused_label_is_undefined():
    results = per_label_agreement(["supported"], ["supported"], labels=GROUNDING)
    assert [result.specific.undefined for result in results] == [None] + ["zero_denominator"] * 3


def test_judge_against_gold():
    gold, judge = words(K1, GROUNDING)
    result = judge_vs_gold(gold, judge, labels=GROUNDING)
    precision = [scores.precision.value for scores in result.per_label]
    recall = [scores.recall.value for scores in result.per_label]
    assert precision == pytest.approx([0.896552, 0.75, 0.571429, 0.666667], abs=5e-7)
    assert recall == pytest.approx([0.866667, 0.75, 0.631579, 0.666667], abs=5e-7)
    assert result.collapsed == ((61, 8), (6, 25))
    close(result.collapsed_kappa.value, 0.678457)
    close(result.collapsed_kappa.low, 0.523619)
    close(result.collapsed_kappa.high, 0.833295)
    close(result.sensitivity.value, 0.806452)
    close(result.sensitivity.low, 0.6372, 4)
    close(result.sensitivity.high, 0.9081, 4)
    close(result.specificity.value, 0.884058)
    close(result.specificity.low, 0.7875, 4)
    close(result.specificity.high, 0.9401, 4)


def test_judge_against_gold_of_one_class():
    result = judge_vs_gold(["supported"] * 3, ["supported"] * 3, labels=GROUNDING)
    assert result.sensitivity.undefined == "single_class_gold"
    assert result.youden.undefined == "single_class_gold"
    assert result.specificity.value == 1.0


@pytest.mark.parametrize(
    ("table", "bowker", "stuart"),
    [
        (K1, (0.777778, 6, 0.992656), (0.338028, 3, 0.952725)),
        (K2, (1.2, 3, 0.753004), (0.352941, 2, 0.838223)),
        (K4, (33.9846, 1, 5.6e-9), (33.9846, 1, 5.6e-9)),
    ],
)
def test_grader_bias(table, bowker, stuart):
    rows, cols = columns(table)
    result = marginal_homogeneity(rows, cols, labels=letters(len(table)))
    for test, (statistic, df, p) in ((result.bowker_all_pairs, bowker), (result.stuart_maxwell, stuart)):
        close(test.statistic, statistic, 4 if statistic > 30 else 6)
        assert test.df == df
        assert test.p == pytest.approx(p, abs=5e-7 if p > 1e-6 else 5e-11)


def test_pairs_of_labels_that_were_never_confused_take_no_degree_of_freedom():
    bowker = marginal_homogeneity(*columns(K1), labels=letters(4)).bowker
    assert (bowker.statistic, bowker.df) == (pytest.approx(0.777778, abs=5e-7), 5)


def test_a_label_without_disagreement_takes_no_degree_of_freedom():
    # Only a and b are ever confused; c is always agreed on and d is not used: one comparison is left.
    rows, cols = columns([[20, 9, 0, 0], [3, 15, 0, 0], [0, 0, 8, 0], [0, 0, 0, 0]])
    result = marginal_homogeneity(rows, cols, labels=letters(4))
    assert (result.stuart_maxwell.df, result.bowker.df) == (1, 1)
    # With two labels both tests are McNemar's: (9 - 3)^2 / 12 = 3, p .083265 (scipy.stats.chi2.sf).
    close(result.stuart_maxwell.statistic, 3.0)
    close(result.stuart_maxwell.p, 0.083265)


def test_equal_margins_are_not_dropped():
    # Circular confusion: every label has equal margins, yet the table is not symmetric.
    rows, cols = columns([[5, 6, 0], [0, 5, 6], [6, 0, 5]])
    result = marginal_homogeneity(rows, cols, labels=letters(3))
    assert (result.stuart_maxwell.df, result.stuart_maxwell.p) == (2, 1.0)
    assert (result.bowker.df, result.bowker.statistic) == (3, 18.0)


def test_exact_mcnemar_without_discordant_pairs():
    rows, cols = columns([[10, 0], [0, 5]])
    result = marginal_homogeneity(rows, cols, labels=("ok", "bad"))
    assert result.mcnemar.p == 1.0 and result.bowker.p == 1.0 and result.stuart_maxwell.p == 1.0


def test_exact_mcnemar():
    rows, cols = columns([[150, 12], [25, 13]])
    close(marginal_homogeneity(rows, cols, labels=("ok", "bad")).mcnemar.p, 0.047031)


def canonical_ratings():
    # Krippendorff (2011), data C: four observers, twelve units, gaps.
    rows = [
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    ]
    grid = [[None if cell == "." else int(cell) for cell in row.split()] for row in rows]
    return [list(unit) for unit in zip(*grid, strict=True)]


def test_alpha_of_many_graders_with_gaps():
    result = krippendorff_alpha(canonical_ratings(), labels=(1, 2, 3, 4, 5))
    close(result.value, 904 / 1216, 6)
    assert (result.n, dict(result.excluded)) == (11, {"labelled_once": 1})


def test_alpha_of_krippendorffs_other_tables():
    # Krippendorff (2011): data A (two observers, binary) and data B (two observers, five nominal values).
    binary = list(zip([0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0], strict=True))
    nominal = list(zip("aabbdccceddd", "babbbcccedda", strict=True))
    close(krippendorff_alpha(binary, labels=(0, 1)).value, 0.095238)
    close(krippendorff_alpha(nominal, labels=tuple("abcde")).value, 0.691964, 3)


def test_alpha_without_two_labels_or_two_values():
    assert krippendorff_alpha([["a"], [None]], labels=("a", "b")).undefined == "empty_overlap"
    assert krippendorff_alpha([["a", "a"], ["a", "a"]], labels=("a", "b")).undefined == "one_label_only"


def test_fleiss_kappa_needs_a_constant_number_of_graders():
    assert fleiss_kappa([[2, 0], [1, 2]]).undefined == "method_not_valid_for_design"
    assert fleiss_kappa([[3, 0], [3, 0]]).undefined == "one_label_only"


def test_textbook_tables():
    tables = json.loads(shared("kappa_tables.json").read_text())
    for case in tables["cohen"]:
        result = kappa_of(case["table_rows_rater_a"])
        assert result.n == case["n"], case["name"]
        if case["kappa"] is None:
            assert result.value is None, case["name"]
            continue
        close(result.value, case["kappa"])
        close(result.po, case["percent_agreement"])
        low, high = case["asymptotic_ci95"]
        close(result.fce_low, low, 4)
        close(result.fce_high, high, 4)
    for case in tables["fleiss"]:
        counts = case.get("counts")
        if counts is None:
            ratings = np.array(case["ratings"])
            counts = np.stack([(ratings == label).sum(axis=1) for label in range(1, 6)], axis=1)
        close(fleiss_kappa(counts).value, case["kappa"])


def test_published_label_pairs():
    expected = json.loads(shared("pairs/expected.json").read_text())
    for name, values in expected.items():
        with shared(f"pairs/{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        first, second = [row["grader_a"] for row in rows], [row["grader_b"] for row in rows]
        result = cohen_kappa(first, second, labels=sorted({*first, *second}))
        assert result.n == values["n"], name
        close(result.value, values["cohen_kappa"])
        close(result.po, values["percent_agreement"])


def test_confusion_table_keeps_the_label_order():
    table = confusion_table(["unsupported", None], ["supported", "supported"], labels=GROUNDING)
    assert table.counts[2][0] == 1 and table.n == 1
    assert dict(table.excluded) == {"missing_rows": 1}


def test_bootstrap_of_one_hundred_claims_is_a_cross_check():
    rows, cols = columns(K1)
    cells = np.eye(16)[rows * 4 + cols]

    def kappas(sums):
        tables = sums.reshape(-1, 4, 4)
        rows, cols = tables.sum(axis=2), tables.sum(axis=1)
        return kappa_values(rows.sum(axis=1), np.trace(tables, axis1=1, axis2=2), rows, cols)

    low, high, _ = cluster_bootstrap(cells, kappas, draws=10_000, rng=np.random.default_rng(20240607))
    assert (low, high) == pytest.approx((0.5104, 0.7677), abs=0.006)


def test_published_gate_example():
    lines = shared("gate_example_claims.csv").read_text().splitlines()
    rows = np.array([[int(cell) for cell in line.split(",")] for line in lines if not line.startswith("#")])
    response, first, second, judge = rows.T
    human = cohen_kappa(first, second, labels=letters(4), clusters=response)
    close(human.value, 0.758460)
    close(human.jackknife_se, 0.048056)
    close(human.low, 0.661258)
    close(human.high, 0.855663)
    close(human.fce_low, 0.6707, 4)
    close(human.fce_high, 0.8462, 4)
    close(cohen_kappa(judge, first, labels=letters(4), clusters=response).value, 0.687682)
    close(cohen_kappa(judge, second, labels=letters(4), clusters=response).value, 0.677701)
    assert (human.n, human.clusters) == (189, 40)
