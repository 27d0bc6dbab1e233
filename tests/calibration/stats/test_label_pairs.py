"""What a pair of labels costs, and how each grader uses each label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.stats import (
    GROUNDING_LABELS,
    cohen_kappa,
    krippendorff_alpha,
    label_pair_costs,
    label_use,
)

# Claims of two graders: the table of 100 claims whose kappa of .643826 statsmodels and irrCAC confirm
TABLE = [[52, 1, 5, 2], [1, 9, 2, 0], [4, 2, 12, 1], [1, 0, 2, 6]]


def ratings_of(table):
    pairs = [(i, j) for i, row in enumerate(table) for j, n in enumerate(row) for _ in range(n)]
    return np.array(pairs, dtype=np.int64)


def kappa_by_hand(table):
    table = np.array(table, dtype=float)
    n = table.sum()
    chance = float(table.sum(axis=0) @ table.sum(axis=1)) / n**2
    return (np.trace(table) / n - chance) / (1 - chance)


def resolved(table, i, j):
    changed = np.array(table, dtype=float)
    apart = changed[i, j] + changed[j, i]
    changed[i, j] = changed[j, i] = 0
    changed[i, i] += apart / 2
    changed[j, j] += apart / 2
    return changed


def test_cost_is_the_kappa_of_the_resolved_table_minus_kappa():
    costs = {(c.one, c.other): c for c in label_pair_costs(ratings_of(TABLE), labels=GROUNDING_LABELS)}
    assert len(costs) == 5  # contradicted and unverifiable were never confused
    for (one, other), cost in costs.items():
        i, j = GROUNDING_LABELS.index(one), GROUNDING_LABELS.index(other)
        assert cost.lost.value == pytest.approx(kappa_by_hand(resolved(TABLE, i, j)) - kappa_by_hand(TABLE))
        assert cost.targets == cost.disagreements == TABLE[i][j] + TABLE[j][i]
        assert cost.share.value == pytest.approx(cost.targets / 21)


def test_the_most_costly_pair_comes_first():
    first = label_pair_costs(ratings_of(TABLE), labels=GROUNDING_LABELS)[0]
    assert (first.one, first.other, first.targets) == ("supported", "unsupported", 9)
    assert first.explain() == (
        "supported stands against unsupported on 9 targets; without these the agreement would be 0.15 higher."
    )


def test_interval_is_the_jackknife_over_items():
    ratings, items = ratings_of(TABLE), np.arange(100) % 25
    shown = label_pair_costs(ratings, labels=GROUNDING_LABELS, clusters=items)[0].lost
    without = []
    for item in range(25):
        table = np.zeros((4, 4))
        np.add.at(table, tuple(ratings[items != item].T), 1)
        without.append(kappa_by_hand(resolved(table, 0, 2)) - kappa_by_hand(table))
    se = np.sqrt(24 / 25 * np.square(np.array(without) - np.mean(without)).sum())
    assert shown.clusters == 25
    assert shown.high - shown.value == pytest.approx(2.0638985616280205 * se)  # t of 24 degrees, 97.5 %


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(*[st.integers(-1, 2)] * 3), min_size=1, max_size=40))
def test_costs_of_alpha_add_up_to_what_is_missing(rows):
    """Alpha's label frequencies stay, so the parts of its disagreement are all of it."""
    ratings, labels = np.array(rows, dtype=np.int64), ("a", "b", "c")
    alpha = krippendorff_alpha(ratings, labels=labels)
    costs = label_pair_costs(ratings, labels=labels)
    if alpha.value is not None:
        assert sum(cost.lost.value for cost in costs) == pytest.approx(1 - alpha.value, abs=1e-9)


def test_nothing_to_resolve_is_no_pair():
    for ratings in (np.zeros((0, 2)), np.zeros((5, 2)), np.zeros((5, 0)), np.zeros((5, 1))):
        assert label_pair_costs(ratings.astype(np.int64), labels=GROUNDING_LABELS) == ()


def test_one_item_gives_a_cost_without_an_interval():
    cost = label_pair_costs(ratings_of(TABLE), labels=GROUNDING_LABELS, clusters=["x"] * 100)[0].lost
    assert cost.value == pytest.approx(0.152594, abs=1e-6)
    assert cost.low is cost.high is None
    assert "too_few_clusters" in cost.flags


def test_cost_does_not_depend_on_who_comes_first():
    ratings = ratings_of(TABLE)
    one, two = (label_pair_costs(r, labels=GROUNDING_LABELS) for r in (ratings, ratings[:, ::-1]))
    assert [c.lost.value for c in one] == pytest.approx([c.lost.value for c in two])


# Use of labels


def test_use_is_own_share_minus_the_share_of_the_others():
    shown = label_use(ratings_of(TABLE), labels=GROUNDING_LABELS, graders=["ada", "ben"])
    of_ada = {use.label: use for use in shown if use.grader == "ada"}
    assert (of_ada["supported"].own, of_ada["supported"].others) == pytest.approx((0.60, 0.58))
    assert of_ada["supported"].difference.value == pytest.approx(0.02)
    of_ben = {use.label: use for use in shown if use.grader == "ben"}
    for label in GROUNDING_LABELS:
        assert of_ben[label].difference.value == pytest.approx(-of_ada[label].difference.value)


def test_use_compares_with_the_others_on_the_same_targets_only():
    ratings = np.array([[0, 0, 1], [0, 1, -1], [1, -1, -1]])
    shown = {(u.grader, u.label): u for u in label_use(ratings, labels=("s", "c"), graders=["a", "b", "c"])}
    use = shown["a", "s"]
    assert use.own == 1.0  # the third target has no other label
    assert use.others == pytest.approx((0.5 + 0) / 2)
    assert (use.difference.n, dict(use.difference.excluded)) == (2, {"labelled_once": 1})


def test_use_without_anything_in_common_is_undefined():
    shown = label_use(np.array([[0, -1], [-1, 1]]), labels=("s", "c"), graders=["a", "b"])
    assert {use.difference.undefined for use in shown} == {"empty_overlap"}
    assert not any(use.stands_out for use in shown)


def test_a_grader_who_always_says_more_stands_out():
    ratings = np.array([[0, 1]] * 10 + [[1, 1]] * 30)
    use = label_use(ratings, labels=("s", "c"), graders=["a", "b"], clusters=range(40))[0]
    assert use.difference.value == pytest.approx(0.25)
    assert use.stands_out


@pytest.mark.parametrize("wrong", [np.zeros(3, dtype=np.int64), np.zeros((3, 3), dtype=np.int64)])
def test_use_refuses_ratings_that_do_not_fit_the_graders(wrong):
    with pytest.raises(ValueError, match="ratings"):
        label_use(wrong, labels=("s", "c"), graders=["a", "b"])


def test_kappa_of_the_table_is_the_published_one():
    ratings = ratings_of(TABLE)
    assert cohen_kappa(ratings[:, 0], ratings[:, 1], labels=GROUNDING_LABELS).value == pytest.approx(
        0.643826, abs=1e-6
    )
