"""Oracles and properties on random tables, degenerate ones included."""

import json
import math
import warnings

import hypothesis
import krippendorff
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support
from statsmodels.regression.linear_model import OLS
from statsmodels.stats import inter_rater
from statsmodels.stats.contingency_tables import SquareTable
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from calibration.stats import (
    BAD_LABELS,
    GROUNDING_LABELS,
    abstention_rates,
    clustered_rate,
    cohen_kappa,
    confusion_table,
    correct_bad_share,
    fleiss_kappa,
    gwet_ac1,
    hallucination_rates,
    judge_vs_gold,
    krippendorff_alpha,
    marginal_homogeneity,
    mcnemar,
    newcombe_difference,
    pabak,
    per_label_agreement,
    percent_agreement,
    rogan_gladen,
    wilson,
)
from calibration.stats.intervals import ratio_variance

from .examples import columns, letters

REPEATABLE = settings(max_examples=25, deadline=None, derandomize=True)


def given(*strategies):
    """The same examples in every run: a red run can be repeated."""
    return lambda test: REPEATABLE(hypothesis.given(*strategies)(test))


sizes = st.integers(2, 5)


@st.composite
def tables(draw, fewest=0, most=12):
    size = draw(sizes)
    row = st.lists(st.integers(fewest, most), min_size=size, max_size=size)
    return np.array(draw(st.lists(row, min_size=size, max_size=size)))


@st.composite
def graded(draw, most=40):
    """Label columns with gaps, and the item of each target."""
    size = draw(sizes)
    label = st.one_of(st.none(), st.integers(0, size - 1))
    rows = draw(st.lists(st.tuples(label, label, st.integers(0, 6)), max_size=most))
    first, second, item = ([row[at] for row in rows] for at in range(3))
    return size, first, second, item


def encoded(size, values):
    return [None if value is None else letters(size)[value] for value in values]


def same_number(one, other):
    assert (one.value is None) == (other.value is None)
    for name in ("value", "low", "high"):
        x, y = getattr(one, name), getattr(other, name)
        assert (x is None) == (y is None), name
        if x is not None:
            assert x == pytest.approx(y, abs=1e-9), name


def check_number(number, low=0.0, high=1.0):
    """What must hold for every figure: JSON without NaN, the interval holds the point, within its range."""
    json.dumps(number.as_dict(), allow_nan=False)
    assert number.explain()
    if number.value is None:
        assert number.undefined
        return
    assert low - 1e-12 <= number.value <= high + 1e-12
    if number.low is not None:
        assert low - 1e-12 <= number.low <= number.value <= number.high <= high + 1e-12


# Oracles


@given(tables())
def test_kappa_is_sklearns(table):
    rows, cols = columns(table)
    labels = letters(len(table))
    result = cohen_kappa(rows, cols, labels=labels)
    if len(rows) == 0:
        assert result.undefined == "empty_overlap"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = cohen_kappa_score(rows, cols, labels=np.arange(len(table)))
    if math.isnan(expected):
        assert result.undefined == "one_label_only"
        assert result.agreement.value == 1.0
    else:
        assert result.value == pytest.approx(expected, abs=1e-12)


@given(tables(1, 30))
def test_asymptotic_errors_are_those_of_statsmodels(table):
    rows, cols = columns(table)
    result = cohen_kappa(rows, cols, labels=letters(len(table)))
    expected = inter_rater.cohens_kappa(table)
    assert result.fce_se == pytest.approx(expected.std_kappa, abs=1e-10)
    assert result.se_null == pytest.approx(expected.std_kappa0, abs=1e-10)
    assert result.max_kappa == pytest.approx(expected.kappa_max, abs=1e-10)


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_statsmodels(counts):
    k, n = counts
    low, high = proportion_confint(k, n, method="wilson")
    assert wilson(k, n) == pytest.approx((max(0, low), min(1, high)), abs=1e-12)


@given(
    st.lists(
        st.integers(1, 9).flatmap(lambda m: st.tuples(st.integers(0, m), st.just(m))), min_size=3, max_size=25
    )
)
def test_clustered_error_is_that_of_statsmodels(rows):
    bad, den = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if bad.sum() in (0, den.sum()):
        return
    claims = np.concatenate([np.repeat([1.0, 0.0], [int(y), int(m - y)]) for y, m in rows])
    groups = np.repeat(np.arange(len(rows)), den.astype(int))
    fit = OLS(claims, np.ones(len(claims))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}
    )
    scale = len(rows) / (len(rows) - 1)
    assert ratio_variance(bad, den).se == pytest.approx(float(fit.bse[0]) * math.sqrt(scale), abs=1e-9)


@given(tables(1, 20))
def test_grader_bias_is_statsmodels(table):
    rows, cols = columns(table)
    result = marginal_homogeneity(rows, cols, labels=letters(len(table)))
    square = SquareTable(table, shift_zeros=False)
    stuart, bowker = square.homogeneity(method="stuart_maxwell"), square.symmetry()
    assert result.bowker.statistic == pytest.approx(bowker.statistic, abs=1e-9)
    assert result.bowker.p == pytest.approx(bowker.pvalue, abs=1e-9)
    assert result.stuart_maxwell.statistic == pytest.approx(stuart.statistic, abs=1e-7)
    assert result.stuart_maxwell.p == pytest.approx(stuart.pvalue, abs=1e-7)


@given(tables())
def test_grader_bias_never_breaks_on_degenerate_tables(table):
    rows, cols = columns(table)
    result = marginal_homogeneity(rows, cols, labels=letters(len(table)))
    json.dumps(result.as_dict(), allow_nan=False)
    for test in (result.bowker, result.bowker_all_pairs, result.stuart_maxwell):
        assert 0 <= test.p <= 1
        assert test.statistic >= 0
    assert sum(label.difference for label in result.labels) == 0


@given(st.integers(0, 60), st.integers(0, 60))
def test_exact_mcnemar_is_statsmodels(b, c):
    expected = statsmodels_mcnemar([[3, b], [c, 4]], exact=True).pvalue
    assert mcnemar(b, c).p == pytest.approx(expected, abs=1e-12)


@given(st.integers(1, 80), st.integers(1, 80), st.data())
def test_difference_of_shares_is_newcombes(n1, n2, data):
    k1, k2 = data.draw(st.integers(0, n1)), data.draw(st.integers(0, n2))
    expected = confint_proportions_2indep(k1, n1, k2, n2, method="newcomb")
    assert newcombe_difference(k1, n1, k2, n2) == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.lists(st.integers(-1, 3), min_size=4, max_size=4), min_size=1, max_size=25))
def test_alpha_is_krippendorffs(rows):
    ratings = np.array(rows)
    result = krippendorff_alpha(ratings, labels=letters(4))
    counts = np.stack([(ratings == label).sum(axis=1) for label in range(4)], axis=1)
    pairable = counts[counts.sum(axis=1) >= 2]
    if len(pairable) == 0:
        assert result.undefined == "empty_overlap"
    elif (pairable.sum(axis=0) > 0).sum() == 1:
        assert result.undefined == "one_label_only"
    else:
        expected = krippendorff.alpha(value_counts=pairable, level_of_measurement="nominal")
        assert result.value == pytest.approx(expected, abs=1e-10)


@given(st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=1, max_size=25))
def test_fleiss_is_statsmodels(rows):
    counts = np.stack([(np.array(rows) == label).sum(axis=1) for label in range(4)], axis=1)
    result = fleiss_kappa(counts)
    if (counts.sum(axis=0) > 0).sum() == 1:
        assert result.undefined == "one_label_only"
    else:
        assert result.value == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-10)


@given(graded())
def test_label_scores_are_sklearns(sample):
    size, first, second, item = sample
    kept = [row for row in range(len(first)) if first[row] is not None and second[row] is not None]
    labels = letters(size)
    result = judge_vs_gold(
        encoded(size, first), encoded(size, second), labels=labels, clusters=item, positive={labels[0]}
    )
    if not kept:
        return
    gold, judge = [first[row] for row in kept], [second[row] for row in kept]
    precision, recall, f1, support = precision_recall_fscore_support(
        gold, judge, labels=range(size), zero_division=np.nan
    )
    for at, scores in enumerate(result.per_label):
        for ours, theirs in ((scores.precision, precision[at]), (scores.recall, recall[at])):
            assert (ours.value is None) == math.isnan(theirs)
            if ours.value is not None:
                assert ours.value == pytest.approx(theirs)
        if scores.f1.value is not None and not math.isnan(f1[at]):
            assert scores.f1.value == pytest.approx(f1[at])
        assert scores.support == support[at]


# Properties


@given(graded())
def test_agreement_is_symmetric(sample):
    size, first, second, item = sample
    labels, one, two = letters(size), encoded(size, first), encoded(size, second)
    forward = cohen_kappa(one, two, labels=labels, clusters=item)
    backward = cohen_kappa(two, one, labels=labels, clusters=item)
    same_number(forward, backward)
    for measure in (gwet_ac1, pabak, percent_agreement):
        same_number(
            measure(one, two, labels=labels, clusters=item), measure(two, one, labels=labels, clusters=item)
        )


@given(graded(), st.randoms())
def test_agreement_ignores_names_and_order(sample, random):
    size, first, second, item = sample
    before = cohen_kappa(encoded(size, first), encoded(size, second), labels=letters(size), clusters=item)
    # Strings that collide under a 32-bit polynomial hash, numbers and tuples are all just different labels.
    names = ["Aa", "BB", 3, ("x", 1), "Aa\u0301"][:size]
    random.shuffle(names)
    renamed = [[None if value is None else names[value] for value in column] for column in (first, second)]
    shown = list(names)
    random.shuffle(shown)
    order = list(range(len(item)))
    random.shuffle(order)
    after = cohen_kappa(
        [renamed[0][row] for row in order],
        [renamed[1][row] for row in order],
        labels=shown,
        clusters=[f"item {item[row]}" for row in order],
    )
    same_number(before, after)
    assert before.undefined == after.undefined


@given(graded())
def test_every_agreement_figure_is_sound(sample):
    size, first, second, item = sample
    labels, one, two = letters(size), encoded(size, first), encoded(size, second)
    for interval in ("auto", "jackknife", "asymptotic"):
        result = cohen_kappa(one, two, labels=labels, clusters=item, interval=interval)
        check_number(result.as_number(), -1.0)
        json.dumps(result.as_dict(), allow_nan=False)
        assert result.explain()
    check_number(result.agreement)
    check_number(gwet_ac1(one, two, labels=labels, clusters=item), -1.0)
    check_number(pabak(one, two, labels=labels, clusters=item), -1.0)
    for label in per_label_agreement(one, two, labels=labels, clusters=item):
        check_number(label.specific)
        check_number(label.kappa.as_number(), -1.0)
    check_number(
        krippendorff_alpha(list(zip(one, two, strict=True)), labels=labels, clusters=item), -np.inf, 1.0
    )


@given(graded())
def test_missing_labels_are_counted_and_change_nothing(sample):
    size, first, second, item = sample
    labels = letters(size)
    kept = [row for row in range(len(first)) if first[row] is not None and second[row] is not None]
    whole = cohen_kappa(encoded(size, first), encoded(size, second), labels=labels, clusters=item)
    clean = cohen_kappa(
        encoded(size, [first[row] for row in kept]),
        encoded(size, [second[row] for row in kept]),
        labels=labels,
        clusters=[item[row] for row in kept],
    )
    same_number(whole, clean)
    assert whole.table == clean.table
    assert whole.n + sum(whole.excluded.values()) == len(first)


@given(graded(), graded())
def test_tables_of_two_halves_add_up(one, other):
    size = 5
    labels = letters(size)
    halves = [
        confusion_table(encoded(size, first), encoded(size, second), labels=labels)
        for _, first, second, _ in (one, other)
    ]
    whole = confusion_table(encoded(size, one[1] + other[1]), encoded(size, one[2] + other[2]), labels=labels)
    assert (whole.as_array() == halves[0].as_array() + halves[1].as_array()).all()
    assert whole.n == halves[0].n + halves[1].n


@given(graded())
def test_integer_positions_and_labels_say_the_same(sample):
    size, first, second, item = sample
    by_label = cohen_kappa(encoded(size, first), encoded(size, second), labels=letters(size), clusters=item)
    positions = [
        np.array([-1 if value is None else value for value in column], dtype=np.int64)
        for column in (first, second)
    ]
    by_position = cohen_kappa(*positions, labels=letters(size), clusters=np.array(item, dtype=np.int64))
    same_number(by_label, by_position)


claim = st.one_of(st.none(), st.sampled_from(GROUNDING_LABELS))


@st.composite
def claim_sets(draw):
    responses = list(range(draw(st.integers(1, 8))))
    rows = draw(st.lists(st.tuples(claim, st.sampled_from(responses), st.booleans()), max_size=30))
    verdicts = draw(
        st.lists(
            st.sampled_from(["ANSWERED", "REFUSED", "CLARIFY", "EMPTY", None]),
            min_size=len(responses),
            max_size=len(responses),
        )
    )
    items = draw(st.lists(st.integers(0, 3), min_size=len(responses), max_size=len(responses)))
    return responses, items, verdicts, rows


def rates_of(sample, unit, **changes):
    responses, items, verdicts, rows = sample
    labels, response, decision = ([row[at] for row in rows] for at in range(3))
    return hallucination_rates(
        changes.get("labels", labels),
        response,
        responses=responses,
        items=items,
        verdicts=verdicts,
        decision=decision,
        unit=unit,
    )


@pytest.mark.parametrize("unit", ["claim", "response", "decision"])
@given(claim_sets())
def test_every_rate_is_sound(unit, sample):
    rates = rates_of(sample, unit)
    json.dumps(rates.as_dict(), allow_nan=False)
    assert rates.explain()
    for name in ("hallucination", "contradicted", "faithfulness", "unverifiable_share", "supported_share"):
        check_number(getattr(rates, name))
    for name in ("mean_share", "mean_faithfulness", "mean_faithfulness_without_gaps"):
        check_number(getattr(rates, name))
    if rates.hallucination.value is not None:
        assert rates.hallucination.value + rates.faithfulness.value == pytest.approx(1)
        assert rates.contradicted.value <= rates.hallucination.value
    if rates.hallucination.worst_case and unit != "response" and rates.hallucination.value is not None:
        low, high = rates.hallucination.worst_case
        assert low <= rates.hallucination.value <= high


@given(claim_sets())
def test_failures_never_change_label_counts(sample):
    labels = [row[0] for row in sample[3]]
    rates = rates_of(sample, "claim")
    assert rates.counts == {label: labels.count(label) for label in GROUNDING_LABELS}
    assert sum(rates.missing.values()) == labels.count(None)
    # Labelling what was missing keeps the rate inside the range that was announced.
    if rates.hallucination.worst_case:
        for guess in ("supported", "unsupported"):
            filled = rates_of(sample, "claim", labels=[label or guess for label in labels])
            low, high = rates.hallucination.worst_case
            assert low - 1e-12 <= filled.hallucination.value <= high + 1e-12


@given(claim_sets())
def test_rates_of_two_halves_add_up(sample):
    responses, items, verdicts, rows = sample
    whole = rates_of(sample, "claim")
    halves = [
        rates_of((responses, items, verdicts, part), "claim")
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :])
    ]
    for part in ("numerator", "denominator"):
        assert getattr(whole.hallucination, part) == sum(getattr(half.hallucination, part) for half in halves)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["answerable", "unanswerable", "underspecified", None]),
            st.sampled_from(["ANSWERED", "REFUSED", "CLARIFY", "EMPTY", None]),
            st.sampled_from([True, False, None]),
            st.integers(0, 5),
        ),
        max_size=40,
    )
)
def test_every_abstention_rate_is_sound(rows):
    kind, verdict, informative, item = ([row[at] for row in rows] for at in range(4))
    rates = abstention_rates(kind, verdict, informative=informative, clusters=item)
    json.dumps(rates.as_dict(), allow_nan=False)
    for name in ("over_answering", "over_answering_with_underspecified", "over_refusal", "clarification"):
        check_number(getattr(rates, name))
    check_number(rates.needless_clarification)
    check_number(rates.informativeness)
    assert sum(sum(row.values()) for row in rates.matrix.values()) + rates.unclassified == len(rows)


shares = st.floats(0, 1)


@given(shares, st.integers(1, 500), shares, st.integers(1, 200), shares, st.integers(1, 200))
def test_every_corrected_rate_is_sound(p, n, se, m1, sp, m0):
    check_number(rogan_gladen(p, n, sensitivity=se, n_positive=m1, specificity=sp, n_negative=m0))


@pytest.mark.parametrize("design", ["random", "separate", "outcome"])
@given(st.lists(st.tuples(claim, claim, st.integers(0, 4)), max_size=25), st.lists(claim, max_size=25))
def test_every_choice_of_correction_is_sound(design, rows, rest):
    gold, judge, item = ([row[at] for row in rows] for at in range(3))
    result = correct_bad_share(gold, judge, rest, design=design, clusters=item)
    json.dumps(result.as_dict(), allow_nan=False)
    check_number(result.number)
    check_number(result.raw)
    assert result.why and result.explain()


@given(st.lists(st.integers(1, 6), min_size=2, max_size=12), st.data())
def test_clustered_rate_is_the_pooled_share(sizes, data):
    bad = [data.draw(st.integers(0, size)) for size in sizes]
    number = clustered_rate(bad, sizes)
    check_number(number)
    assert number.value == pytest.approx(sum(bad) / sum(sizes))
    by_claim = clustered_rate(
        [1] * sum(bad) + [0] * (sum(sizes) - sum(bad)),
        [1] * sum(sizes),
        [row for row, count in enumerate(bad) for _ in range(count)]
        + [
            row for row, (count, size) in enumerate(zip(bad, sizes, strict=True)) for _ in range(size - count)
        ],
    )
    same_number(number, by_claim)


# Traps


def test_asymmetric_table_keeps_rows_and_columns():
    result = judge_vs_gold(
        ["supported"] * 3 + ["unsupported"],
        ["supported", "unsupported", "unsupported", "unsupported"],
        labels=GROUNDING_LABELS,
    )
    assert result.table[0][2] == 2 and result.table[2][0] == 0
    assert result.as_dict()["confusion"]["rows"] == "gold"


def test_total_disagreement_is_never_above_zero():
    labels = ["supported", "unsupported"] * 20
    other = ["unsupported", "supported"] * 20
    result = cohen_kappa(labels, other, labels=GROUNDING_LABELS)
    assert result.value <= 0 and result.agreement.value == 0.0


def test_one_constant_grader_is_zero_without_an_interval():
    result = cohen_kappa(["supported"] * 12, ["supported"] * 9 + ["unsupported"] * 3, labels=GROUNDING_LABELS)
    assert (result.value, result.low, result.high) == (0.0, None, None)
    assert "one_grader_constant" in result.flags


def test_one_disagreement_among_many_gives_alpha_near_zero():
    ratings = [["supported", "supported"]] * 200 + [["supported", "unsupported"]]
    assert krippendorff_alpha(ratings, labels=GROUNDING_LABELS).value == pytest.approx(0, abs=0.01)


def test_an_ordinary_number_of_missing_ratings_does_not_ruin_kappa():
    first = ["supported", "unsupported", "contradicted"] * 20
    second = list(first)
    second[:14] = [None] * 14
    assert cohen_kappa(first, second, labels=GROUNDING_LABELS).value == 1.0


def test_failing_more_never_raises_the_rate_in_silence():
    labels = ["supported"] * 50 + ["unsupported"] * 50
    whole = hallucination_rates(labels, range(100)).hallucination
    failing = hallucination_rates(["supported"] * 50 + [None] * 50, range(100)).hallucination
    assert failing.value == 0 and failing.worst_case == (0, 0.5)
    assert failing.worst_case[0] <= whole.value <= failing.worst_case[1]


def test_bad_labels_are_contradicted_and_unsupported():
    assert frozenset({"contradicted", "unsupported"}) == BAD_LABELS
