"""Many responses are scored at once as each would be by the definition, one after the other."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibration.stats import retrieval_means, retrieval_score
from calibration.stats.retrieval import retrieval_scores


def by_definition(served, documents, wanted, wanted_documents, k):
    """Precision, recall, nDCG, document recall, hits, relevant and what is missing, of one response."""
    document_of = {}
    for passage, document in zip(served, documents, strict=True):
        document_of.setdefault(passage, document)
    wanted, wanted_documents = list(dict.fromkeys(wanted)), list(dict.fromkeys(wanted_documents))
    missing = [passage for passage in wanted if passage not in document_of]
    found = [document for document in wanted_documents if document in document_of.values()]
    recall_of_documents = len(found) / len(wanted_documents) if wanted_documents else None
    if not wanted and not wanted_documents:
        return None, None, None, None, 0, 0, []
    relevant = [passage in wanted or document_of[passage] in wanted_documents for passage in document_of]
    by_document = [passage not in wanted for passage, hit in zip(document_of, relevant, strict=True) if hit]
    number = len(wanted) + sum(by_document)
    if not wanted:
        number += len(wanted_documents) - len(found)
    hits = sum(relevant[:k])
    gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(relevant[:k]))
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, number)))
    return hits / k, hits / number, gain / ideal, recall_of_documents, hits, number, missing


def drawn(seed):
    """What is expected, and which responses it is expected of, with what they were served."""
    chance = random.Random(seed)
    names, documents = range(6), range(3)
    expected = [
        (chance.choices(names, k=chance.randint(0, 3)), chance.choices(documents, k=chance.randint(0, 2)))
        for _ in range(chance.randint(1, 4))
    ]
    responses = []
    for _ in range(chance.randint(0, 8)):
        served = chance.choices(names, k=chance.randint(0, 6))
        responses.append((chance.randrange(len(expected)), served, [chance.randint(-1, 2) for _ in served]))
    return expected, responses


def columns(lists):
    """Which list, and what it holds."""
    pairs = [(place, value) for place, values in enumerate(lists) for value in values]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**9), k=st.integers(1, 7))
def test_columns_are_scored_as_one_response_after_the_other(seed, k):
    expected, responses = drawn(seed)
    row, passage = columns([served for _of, served, _documents in responses])
    _row, document = columns([documents for _of, _served, documents in responses])
    found = retrieval_scores(
        np.array([of for of, _served, _documents in responses], dtype=np.int64),
        served=(row, passage, document),
        expected_passages=columns([passages for passages, _documents in expected]),
        expected_documents=columns([documents for _passages, documents in expected]),
        k=k,
    )
    assert len(found) == len(responses)
    single = []
    for place, (of, served, documents) in enumerate(responses):
        *scores, hits, relevant, missing = by_definition(served, documents, *expected[of], k)
        in_columns = (found.precision, found.recall, found.ndcg, found.document_recall)
        for column, score in zip(in_columns, scores, strict=True):
            assert (
                math.isnan(column[place])
                if score is None
                else column[place] == pytest.approx(score, abs=1e-15)
            )
        assert (found.hits[place], found.relevant[place]) == (hits, relevant)
        rows, passages = found.missing
        assert passages[rows == place].tolist() == missing
        everything = scores[1] is not None and not missing and scores[3] in (None, 1)
        assert found.had_everything[place] == everything
        single.append(
            retrieval_score(
                served,
                documents=documents,
                expected_passages=expected[of][0],
                expected_documents=expected[of][1],
                k=k,
            )
        )
        assert single[-1].missing_passages == tuple(missing)
        assert (single[-1].recall, single[-1].relevant) == (
            pytest.approx(scores[1], abs=1e-15) if scores[1] is not None else None,
            relevant,
        )
    items = np.array([of for of, _served, _documents in responses], dtype=np.int64)
    if responses:
        assert retrieval_means(found, clusters=items) == retrieval_means(single, clusters=items)
        kept = np.arange(len(responses)) % 2 == 0
        some = [score for score, keep in zip(single, kept, strict=True) if keep]
        assert retrieval_means(found.select(kept), clusters=items[kept]) == retrieval_means(
            some, clusters=items[kept]
        )
        rows, passages = found.select(kept).missing
        assert [tuple(passages[rows == place].tolist()) for place in range(len(some))] == [
            score.missing_passages for score in some
        ]
