"""Other schemes, retrieval and citations against worked examples."""

import pytest
from statsmodels.stats.proportion import proportion_confint

from calibration.stats import (
    CitedResponse,
    Statement,
    citation_scores,
    label_shares,
    magesh_rates,
    ragtruth_claim_labels,
    ragtruth_response,
    ragtruth_span,
    retrieval_means,
    retrieval_score,
    who_owes,
)


@pytest.mark.parametrize(
    ("name", "label", "subtle"),
    [
        ("Evident Conflict", "contradicted", False),
        ("Subtle Conflict", "contradicted", True),
        ("Evident Baseless Info", "unsupported", False),
        ("subtle baseless information", "unsupported", True),
    ],
)
def test_ragtruth_types(name, label, subtle):
    span = ragtruth_span(name)
    assert (span.label, span.subtle) == (label, subtle)


def test_true_in_the_world_is_still_unsupported():
    span = ragtruth_span("Evident Baseless Info", implicit_true=True)
    assert span.label == "unsupported" and span.true_outside_source


def test_unknown_ragtruth_words_are_refused():
    with pytest.raises(ValueError, match="label_type"):
        ragtruth_span("Typo")
    with pytest.raises(ValueError, match="quality"):
        ragtruth_response("meh")


def test_ragtruth_responses():
    assert ragtruth_response("incorrect_refusal") == ("REFUSED", None)
    assert ragtruth_response("truncated") == (None, "truncated")
    assert ragtruth_response("good") == (None, None)


def test_a_claim_is_bad_where_it_overlaps_a_bad_span():
    spans = [(12, 20, ragtruth_span("Evident Baseless Info")), (18, 25, ragtruth_span("Subtle Conflict"))]
    labels = ragtruth_claim_labels([(0, 12), (10, 14), (15, 22), (25, 30)], spans)
    assert labels == ["supported", "unsupported", "contradicted", "supported"]


def test_correctness_by_groundedness():
    rates = magesh_rates(
        ["correct", "correct", "correct", "incorrect", "incorrect", "refusal", None, "correct"],
        ["grounded", "misgrounded", "ungrounded", "grounded", "misgrounded", None, None, None],
    )
    counts = {name: number.numerator for name, number in vars(rates).items()}
    assert counts == {
        "hallucinated": 3,
        "accurate": 1,
        "wrong": 2,
        "misgrounded": 1,
        "ungrounded": 1,
        "declined": 1,
        "neither": 0,
    }
    assert rates.wrong.denominator == 6
    assert dict(rates.wrong.excluded) == {"unlabelled": 1, "no_groundedness": 1}


def test_a_response_that_asks_back_is_in_every_denominator_and_in_no_other_bucket():
    rates = magesh_rates(["correct", "neither", "incorrect"], ["grounded", None, None])
    assert {number.denominator for number in vars(rates).values()} == {3}
    assert (rates.neither.numerator, rates.declined.numerator, rates.hallucinated.numerator) == (1, 0, 1)


def test_shares_of_labels_have_the_interval_of_their_items_and_count_what_has_none():
    """6 of 8 and 2 of 8 in as many items: Wilson, as statsmodels' proportion_confint(6, 8) gives it."""
    given = ["relevant"] * 6 + ["irrelevant"] * 2 + [None]
    shares = label_shares(
        given, labels=("relevant", "irrelevant"), excluded={"unresolved": 1}, owed=[True] * 9
    )
    relevant = shares[0].share
    low, high = proportion_confint(6, 8, method="wilson")
    assert (relevant.numerator, relevant.denominator) == (6, 8)
    assert (relevant.low, relevant.high) == pytest.approx((low, high), abs=1e-9)
    assert relevant.worst_case == pytest.approx((6 / 9, 7 / 9))
    assert dict(relevant.excluded) == {"unresolved": 1}
    assert sum(entry.share.value for entry in shares) == 1
    assert label_shares([], labels=("a", "b"))[0].share.undefined == "zero_denominator"


def test_unknown_correctness_is_refused():
    with pytest.raises(ValueError, match="correctness"):
        magesh_rates(["maybe"], ["grounded"])


ONE = Statement((1,), True)
TWO = Statement((1, 2), True, {1: True, 2: False}, {1: False, 2: True})
JOINT = Statement((2, 3), True, {2: False, 3: False}, {2: False, 3: False})
WRONG = Statement((3,), False)
BARE = Statement()


def test_citations_of_one_response():
    scores = citation_scores([CitedResponse((ONE, TWO, JOINT, WRONG, BARE), 3)])
    assert scores.recall.value == pytest.approx(0.6)
    assert scores.precision.value == pytest.approx(4 / 6)
    assert (scores.alce_recall, scores.alce_precision) == pytest.approx((0.6, 4 / 6))


def test_citation_beyond_the_served_passages_counts_against_precision():
    scores = citation_scores([CitedResponse((ONE, Statement((8,), True)), 3)])
    assert (scores.alce_recall, scores.alce_precision) == (0.5, 1.0)
    assert (scores.recall.value, scores.precision.value) == (0.5, 0.5)


def test_response_without_citations_has_no_precision():
    scores = citation_scores([CitedResponse((BARE, BARE), 3)])
    assert (scores.alce_recall, scores.alce_precision) == (0.0, 0.0)
    assert scores.recall.value == 0.0
    assert scores.precision.value is None and scores.precision.excluded["no_citation"] == 1


def test_empty_answer_is_excluded_and_counted():
    full = CitedResponse((ONE, BARE), 3)
    alone, with_empty = citation_scores([full]), citation_scores([full, CitedResponse((), 3)])
    assert with_empty.recall.value == alone.recall.value
    assert with_empty.recall.excluded["no_statement"] == 1


def test_missing_entailment_is_refused():
    with pytest.raises(ValueError, match="responses lacks"):
        citation_scores([CitedResponse((Statement((1, 2), True),), 3)])


def test_duplicates_are_credited_once_at_their_best_rank():
    score = retrieval_score(["d1", "d2", "d1", "d3"], expected_passages=["d1", "d3"], k=5)
    assert (score.precision, score.recall) == (0.4, 1.0)
    assert score.ndcg == pytest.approx(0.919721, abs=5.1e-7)


def test_precision_divides_by_k():
    score = retrieval_score(["a", "b", "c"], expected_passages=["a", "b", "c"], k=5)
    assert (score.precision, score.recall, score.ndcg) == (0.6, 1.0, 1.0)


def test_nothing_served_scores_zero():
    score = retrieval_score([], expected_passages=["d9"], k=5)
    assert (score.precision, score.recall, score.ndcg) == (0, 0, 0)
    assert score.missing_passages == ("d9",)


def test_without_expectation_there_is_no_score():
    score = retrieval_score(["a"], k=5)
    assert score.recall is None and score.undefined == "no_expectation"


def test_expected_documents():
    score = retrieval_score(["p1", "p2", "p3"], documents=["x", "x", "y"], expected_documents=["x", "z"], k=3)
    assert score.document_recall == 0.5
    assert (score.hits, score.relevant) == (2, 3)
    assert score.ndcg <= 1


def test_means_leave_out_items_without_expectation():
    scores = [
        retrieval_score(["a"], expected_passages=["a"], k=1),
        retrieval_score(["b"], expected_passages=["a"], k=1),
        retrieval_score(["b"], k=1),
    ]
    means = retrieval_means(scores)
    assert means.recall.value == 0.5 and dict(means.recall.excluded) == {"no_expectation": 1}
    assert means.document_recall.undefined == "no_expectation"


def test_an_item_counts_once_however_often_it_was_run():
    hit, miss = (retrieval_score([served], expected_passages=["a"], k=1) for served in "ab")
    nothing = retrieval_score(["b"], k=1)
    recall = retrieval_means(
        [hit, miss, miss, miss, nothing, nothing], clusters=["i", "j", "j", "j", "k", "k"]
    ).recall
    assert (recall.value, recall.n, recall.unit) == (0.5, 2, "item")
    assert dict(recall.excluded) == {"no_expectation": 1}


def test_scores_at_different_depths_are_not_averaged():
    with pytest.raises(ValueError, match="k"):
        retrieval_means([retrieval_score(["a"], k=1), retrieval_score(["a"], k=2)])


@pytest.mark.parametrize(
    ("served", "bad", "verdict"),
    [
        (False, True, "retriever owes a passage"),
        (True, True, "generator strayed"),
        (True, False, None),
        (None, True, None),
    ],
)
def test_wrong_answers_are_sorted(served, bad, verdict):
    assert who_owes(served, bad) == verdict
