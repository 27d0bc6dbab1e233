"""Was what was needed served? Retrieval scores, never mixed with the rates of the responses."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arrays import check_level, check_same_length, encode_clusters
from .intervals import clustered_mean
from .results import Number


@dataclass(frozen=True)
class RetrievalScore:
    """Retrieval of one item.

    Attributes
    ----------
    precision, recall, ndcg : float or None
        At k; None where no expectation is recorded.
    document_recall : float or None
        Expected documents among the documents of the served passages; None where none is expected.
    k : int
        Depth.
    hits : int
        Relevant passages among the first k.
    relevant : int
        Relevant passages in all, as far as they are known.
    missing_passages : tuple
        Expected passages that were not served at all.
    """

    precision: float | None
    recall: float | None
    ndcg: float | None
    document_recall: float | None
    k: int
    hits: int
    relevant: int
    missing_passages: tuple[Hashable, ...] = ()

    @property
    def undefined(self) -> str | None:
        return "no_expectation" if self.recall is None else None

    def as_dict(self) -> dict[str, Any]:
        score: dict[str, Any] = {
            "precision": self.precision,
            "recall": self.recall,
            "ndcg": self.ndcg,
            "document_recall": self.document_recall,
            "k": self.k,
            "hits": self.hits,
            "relevant": self.relevant,
            "missing_passages": list(self.missing_passages),
        }
        return score if self.undefined is None else {**score, "undefined": self.undefined}

    def explain(self) -> str:
        """The score in one plain sentence."""
        if self.recall is None:
            return "No expected passage or document is recorded, so nothing can be scored."
        return f"{self.hits} of {self.relevant} relevant passages are among the first {self.k}."


def retrieval_score(
    served: Sequence[Hashable],
    *,
    documents: Sequence[Hashable] | None = None,
    expected_passages: Iterable[Hashable] = (),
    expected_documents: Iterable[Hashable] = (),
    k: int = 5,
) -> RetrievalScore:
    r"""Precision, recall and nDCG at k, and expected-document recall, of one item.

    The served list is first deduplicated by id, each passage at its best rank. A passage is relevant when its
    id is expected or its document is.

    .. math:: precision@k = \frac{hits@k}{k}, \quad recall@k = \frac{hits@k}{relevant}, \quad
              nDCG@k = \frac{\sum_{i \le k} rel_i/\log_2(i+1)}{\sum_{i \le \min(k, relevant)} 1/\log_2(i+1)}

    Parameters
    ----------
    served : sequence
        Ids of the served passages, best first.
    documents : sequence, optional
        Document of each served passage.
    expected_passages, expected_documents : iterable
        What the item's author expects.
    k : int
        Depth, at least 1. Precision divides by k, not by the number returned.

    Returns
    -------
    RetrievalScore
        Scores in [0, 1]; None where no expectation is recorded (a miss is then no evidence of anything);
        0 where something is expected and nothing was served. The number of relevant passages is that of the
        expected ones and of the served ones from expected documents; where only documents are expected, each
        document of which nothing was served counts as one that is missing.

    References
    ----------
    Jarvelin, K. and Kekalainen, J. (2002). Cumulated gain-based evaluation of IR techniques. ACM TOIS 20.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}")
    check_same_length(served=served, documents=documents)
    document_of: dict[Hashable, Hashable] = {}
    for rank, passage in enumerate(served):
        document_of.setdefault(passage, documents[rank] if documents is not None else None)
    wanted, wanted_documents = dict.fromkeys(expected_passages), dict.fromkeys(expected_documents)
    served_documents = {documents[rank] for rank in range(len(served))} if documents is not None else set()
    document_recall = None
    if wanted_documents:
        document_recall = sum(document in served_documents for document in wanted_documents) / len(
            wanted_documents
        )
    ranked = list(document_of)
    is_relevant = [passage in wanted or document_of[passage] in wanted_documents for passage in ranked]
    through_document = sum(
        hit and passage not in wanted for passage, hit in zip(ranked, is_relevant, strict=True)
    )
    relevant = len(wanted) + through_document
    if not wanted:
        relevant += sum(document not in served_documents for document in wanted_documents)
    missing = tuple(passage for passage in wanted if passage not in document_of)
    if not wanted and not wanted_documents:
        return RetrievalScore(None, None, None, None, k, 0, 0)
    hits = sum(is_relevant[:k])
    gain = sum(hit / math.log2(rank + 2) for rank, hit in enumerate(is_relevant[:k]))
    ideal = sum(1 / math.log2(rank + 2) for rank in range(min(k, relevant)))
    return RetrievalScore(
        hits / k, hits / relevant, gain / ideal, document_recall, k, hits, relevant, missing
    )


@dataclass(frozen=True)
class RetrievalMeans:
    """Retrieval over items.

    Attributes
    ----------
    precision, recall, ndcg, document_recall : Number
        Means over the items with an expectation.
    """

    precision: Number
    recall: Number
    ndcg: Number
    document_recall: Number

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name).as_dict() for name in self.__dataclass_fields__}

    def explain(self) -> str:
        """Recall in one plain sentence."""
        return self.recall.explain()


def retrieval_means(
    scores: Sequence[RetrievalScore], *, clusters: Any = None, level: float = 0.95
) -> RetrievalMeans:
    """Means of retrieval scores with t intervals by item.

    Parameters
    ----------
    scores : sequence of RetrievalScore
        One per response, all at the same k.
    clusters : sequence, optional
        Item of each.
    level : float
        Confidence level.

    Returns
    -------
    RetrievalMeans
        Undefined (``no_expectation``) where no item has an expectation; the others are excluded and counted.

    References
    ----------
    See `retrieval_score`.
    """
    check_level(level)
    check_same_length(scores=scores, clusters=clusters)
    if len({score.k for score in scores}) > 1:
        raise ValueError("scores must all be at the same k")
    items = list(clusters) if clusters is not None else list(range(len(scores)))
    k = scores[0].k if scores else 0

    def mean(name: str, label: str) -> Number:
        rows = [row for row, score in enumerate(scores) if getattr(score, name) is not None]
        codes, number = encode_clusters([items[row] for row in rows], len(rows))
        return clustered_mean(
            np.array([getattr(scores[row], name) for row in rows], dtype=float),
            codes,
            number,
            level=level,
            label=label,
            unit="item",
            definition=f"retrieval-means-{name}",
            excluded={"no_expectation": len(scores) - len(rows)},
            undefined="no_expectation",
        )

    return RetrievalMeans(
        mean("precision", f"Precision@{k}"),
        mean("recall", f"Recall@{k}"),
        mean("ndcg", f"nDCG@{k}"),
        mean("document_recall", "Expected-document recall"),
    )


def who_owes(expected_served: bool | None, claim_is_bad: bool) -> str | None:
    """Whom a wrong answer points to.

    Parameters
    ----------
    expected_served : bool or None
        Whether the expected passage (or document) was served; None where none is recorded.
    claim_is_bad : bool
        Whether the claim is contradicted or unsupported.

    Returns
    -------
    str or None
        "retriever owes a passage" when what was expected was not served, "generator strayed" when it was and
        the claim is bad, None otherwise.
    """
    if expected_served is None:
        return None
    if not expected_served:
        return "retriever owes a passage"
    return "generator strayed" if claim_is_bad else None
