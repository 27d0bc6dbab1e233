"""Was what was needed served? Retrieval scores, never mixed with the rates of the responses."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import MISSING, Codes, check_level, check_same_length, encode_clusters
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
    check_same_length(served=served, documents=documents)
    wanted, wanted_documents = list(expected_passages), list(expected_documents)
    passage_code = {name: code for code, name in enumerate(dict.fromkeys([*served, *wanted]))}
    document_code = {name: code for code, name in enumerate(dict.fromkeys(wanted_documents))}

    found = retrieval_scores(
        np.zeros(1, dtype=np.int64),
        served=(
            np.zeros(len(served), dtype=np.int64),
            _codes(served, passage_code),
            _codes(documents if documents is not None else [None] * len(served), document_code),
        ),
        expected_passages=(np.zeros(len(wanted), dtype=np.int64), _codes(wanted, passage_code)),
        expected_documents=(
            np.zeros(len(wanted_documents), dtype=np.int64),
            _codes(wanted_documents, document_code),
        ),
        k=k,
    )
    names = list(passage_code)
    _row, missing = found.missing

    def score(values: NDArray[np.float64]) -> float | None:
        return None if np.isnan(values[0]) else float(values[0])

    return RetrievalScore(
        precision=score(found.precision),
        recall=score(found.recall),
        ndcg=score(found.ndcg),
        document_recall=score(found.document_recall),
        k=k,
        hits=int(found.hits[0]),
        relevant=int(found.relevant[0]),
        missing_passages=tuple(names[code] for code in missing.tolist()),
    )


def _codes(names: Sequence[Hashable], code_of: dict[Hashable, int]) -> Codes:
    return np.array([code_of.get(name, MISSING) for name in names], dtype=np.int64)


@dataclass(frozen=True)
class RetrievalScores:
    """Retrieval of many responses, a row each.

    Attributes
    ----------
    precision, recall, ndcg, document_recall : ndarray, shape (n,)
        As in `RetrievalScore`; NaN where it is None there.
    hits, relevant : ndarray, shape (n,)
        As in `RetrievalScore`.
    missing : pair of ndarray
        The expected passages that were not served: the row of the response, and the passage.
    k : int
        Depth.
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    ndcg: NDArray[np.float64]
    document_recall: NDArray[np.float64]
    hits: Codes
    relevant: Codes
    missing: tuple[Codes, Codes]
    k: int

    def __len__(self) -> int:
        return len(self.recall)

    def select(self, mask: NDArray[np.bool_]) -> "RetrievalScores":
        """The same of some of the rows."""
        row, passage = self.missing
        kept = mask[row]
        columns = {
            field.name: getattr(self, field.name)[mask]
            for field in fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return replace(self, **columns, missing=((np.cumsum(mask) - 1)[row[kept]], passage[kept]))

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Rows for which something is expected."""
        return ~np.isnan(self.recall)

    @property
    def had_everything(self) -> NDArray[np.bool_]:
        """Rows that were served all that is expected, passages and documents; False where nothing is."""
        missing = np.zeros(len(self), dtype=bool)
        missing[self.missing[0]] = True
        complete = np.isnan(self.document_recall) | (self.document_recall == 1)
        return self.scored & ~missing & complete


def retrieval_scores(
    expectation: Codes,
    *,
    served: tuple[Codes, Codes, Codes],
    expected_passages: tuple[Codes, Codes],
    expected_documents: tuple[Codes, Codes],
    k: int = 5,
) -> RetrievalScores:
    """`retrieval_score` of many responses at once.

    Parameters
    ----------
    expectation : integer array, shape (n,)
        Of each response the number, from 0, of what is expected of it; several responses may share one.
    served : three integer arrays of the same length
        Of each served passage the row of its response, its own number and that of its document (-1 where it
        has none). In the order of the rows, and of one response best first.
    expected_passages, expected_documents : pairs of integer arrays
        Number of the expectation, and the passage or the document that it names.
    k : int
        Depth, at least 1.

    Returns
    -------
    RetrievalScores
        A row for each response, in their order.

    References
    ----------
    See `retrieval_score`.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k!r}")
    response, passage, document = served
    check_same_length(response=response, passage=passage, document=document)
    n, groups = len(expectation), int(expectation.max(initial=-1)) + 1
    wanted = _Expected.of(*expected_passages, groups)
    wanted_documents = _Expected.of(*expected_documents, groups)
    response, passage, first = _distinct(response, passage)
    document, of_response = document[first], expectation[response]
    is_wanted = wanted.names(of_response, passage)
    in_wanted_document = wanted_documents.names(of_response, document)
    relevant_here = is_wanted | in_wanted_document
    documents_served = np.bincount(
        _distinct(response[in_wanted_document], document[in_wanted_document])[0], minlength=n
    )
    n_wanted, n_documents = wanted.number[expectation], wanted_documents.number[expectation]
    rank = np.arange(len(response)) - np.searchsorted(response, response)
    relevant = n_wanted + np.bincount(response[relevant_here & ~is_wanted], minlength=n)
    relevant += np.where(n_wanted == 0, n_documents - documents_served, 0)

    hit = relevant_here & (rank < k)
    hits = np.bincount(response[hit], minlength=n)
    depth = min(k, max(int(relevant.max(initial=0)), int(rank.max(initial=0)) + 1))
    discount = np.array([1 / math.log2(place + 2) for place in range(depth)])
    gain = np.bincount(response[hit], weights=discount[rank[hit]], minlength=n)
    ideal = np.concatenate([[0.0], np.cumsum(discount)])[np.minimum(depth, relevant)]
    expects = (n_wanted > 0) | (n_documents > 0)
    return RetrievalScores(
        precision=np.where(expects, hits / k, np.nan),
        recall=_share(hits, relevant, expects),
        ndcg=_share(gain, ideal, expects),
        document_recall=_share(documents_served, n_documents, n_documents > 0),
        hits=np.where(expects, hits, 0),
        relevant=np.where(expects, relevant, 0),
        missing=wanted.without(expectation, response[is_wanted], passage[is_wanted]),
        k=k,
    )


@dataclass(frozen=True)
class _Expected:
    """What each expectation names, once each, in the order in which it does."""

    group: Codes
    name: Codes
    number: Codes  # of the names of each expectation

    @classmethod
    def of(cls, group: Codes, name: Codes, groups: int) -> "_Expected":
        check_same_length(group=group, name=name)
        order = np.argsort(group, kind="stable")
        group, name, _first = _distinct(group[order], name[order])
        return cls(group, name, np.bincount(group, minlength=groups))

    def names(self, group: Codes, name: Codes) -> NDArray[np.bool_]:
        """Which of these are named by their expectation."""
        size = 1 + max(int(name.max(initial=0)), int(self.name.max(initial=0)))
        found = np.isin(group * size + name, self.group * size + self.name)
        return np.asarray(found & (name >= 0))

    def without(self, expectation: Codes, row: Codes, name: Codes) -> tuple[Codes, Codes]:
        """Row and name of all that is expected in each row, but for the rows and names that are given."""
        wanted = self.number[expectation]
        first = np.cumsum(self.number) - self.number
        rows = np.repeat(np.arange(len(expectation)), wanted)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
        names = self.name[first[expectation][rows] + place]
        size = 1 + int(self.name.max(initial=0))
        left = ~np.isin(rows * size + names, row * size + name)
        return rows[left], names[left]


def _distinct(group: Codes, name: Codes) -> tuple[Codes, Codes, Codes]:
    """Each name of a group where it stands first, and its place; groups stand together."""
    size = 1 + int(name.max(initial=0))
    _values, first = np.unique(group * size + name, return_index=True)
    first = np.sort(first)
    return group[first], name[first], first


def _share(part: NDArray[Any], whole: NDArray[Any], defined: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.divide(part, whole, out=np.full(len(whole), np.nan), where=defined)


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
    scores: Sequence[RetrievalScore] | RetrievalScores, *, clusters: Any = None, level: float = 0.95
) -> RetrievalMeans:
    """Means of retrieval scores over items, each by the mean over its responses, with t intervals.

    Parameters
    ----------
    scores : sequence of RetrievalScore, or RetrievalScores
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
    n = check_same_length(scores=scores, clusters=clusters)
    depths = {scores.k} if isinstance(scores, RetrievalScores) else {score.k for score in scores}
    if len(depths) > 1:
        raise ValueError("scores must all be at the same k")
    k = depths.pop() if n else 0
    items, _clusters = encode_clusters(clusters, n)

    def mean(name: str, label: str) -> Number:
        values = _column(scores, name)
        scored = ~np.isnan(values)
        codes, number = encode_clusters(items[scored], int(scored.sum()))
        total = np.bincount(codes, weights=values[scored], minlength=number)
        return clustered_mean(
            total / np.bincount(codes, minlength=number),
            np.arange(number),
            number,
            level=level,
            label=label,
            unit="item",
            definition=f"retrieval-means-{name}",
            excluded={"no_expectation": len(np.unique(items)) - number},
            undefined="no_expectation",
        )

    return RetrievalMeans(
        mean("precision", f"Precision@{k}"),
        mean("recall", f"Recall@{k}"),
        mean("ndcg", f"nDCG@{k}"),
        mean("document_recall", "Expected-document recall"),
    )


def _column(scores: Sequence[RetrievalScore] | RetrievalScores, name: str) -> NDArray[np.float64]:
    if isinstance(scores, RetrievalScores):
        return np.asarray(getattr(scores, name))
    values = [getattr(score, name) for score in scores]
    return np.array([math.nan if value is None else value for value in values], dtype=float)


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
