"""Do the cited passages support what cites them? Citation recall and precision after ALCE."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arrays import check_level, check_same_length, encode_clusters
from .intervals import clustered_mean
from .results import Number


@dataclass(frozen=True)
class Statement:
    """A sentence of a response with its citations and what they entail.

    Attributes
    ----------
    cited : tuple of int
        Numbers of the cited passages, from 1; numbers beyond the served passages are out of range.
    joint : bool
        Whether the cited passages together entail the statement.
    alone : mapping of int to bool
        Whether each cited passage entails it by itself (needed for several citations).
    rest : mapping of int to bool
        Whether the others entail it without that passage (needed for several citations).
    """

    cited: tuple[int, ...] = ()
    joint: bool = False
    alone: Mapping[int, bool] = field(default_factory=dict)
    rest: Mapping[int, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class CitedResponse:
    """The statements of one response and how many passages it was served."""

    statements: tuple[Statement, ...]
    passages: int


@dataclass(frozen=True)
class CitationScores:
    """Citation recall and precision over responses.

    Attributes
    ----------
    recall : Number
        Mean over responses of the share of statements that their citations entail.
    precision : Number
        Mean over responses of the share of citations that are needed and right.
    alce_recall, alce_precision : float or None
        The same as the published script computes them.
    """

    recall: Number
    precision: Number
    alce_recall: float | None
    alce_precision: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "recall": self.recall.as_dict(),
            "precision": self.precision.as_dict(),
            "alce": {"recall": self.alce_recall, "precision": self.alce_precision},
        }

    def explain(self) -> str:
        return f"{self.recall.explain()} {self.precision.explain()}"


def citation_scores(
    responses: Sequence[CitedResponse], *, clusters: Any = None, repeats_of: Any = None, level: float = 0.95
) -> CitationScores:
    """Citation recall and precision per response, then their unweighted means.

    A statement is recalled when it has at least one citation, all in range, and the cited passages jointly
    entail it. A citation is precise when its statement is recalled and it is the only one, or entails the
    statement alone, or the others do not entail it without this one.

    Parameters
    ----------
    responses : sequence of CitedResponse
        One per response; a response without statements is left out and counted.
    clusters : sequence, optional
        Item of each response.
    repeats_of : sequence, optional
        What identifies each response where it was labelled in several runs, one entry of `responses` a run:
        its scores are the means over these.
    level : float
        Confidence level.

    Returns
    -------
    CitationScores
        Means in [0, 1] with t intervals by item. Unlike the published script, citations beyond the served
        passages count against precision, and a response without any citation has no precision (it is left
        out of that mean, with a count) instead of 0.

    References
    ----------
    Gao, T. et al. (2023). Enabling large language models to generate text with citations. EMNLP.
    """
    check_level(level)
    n = check_same_length(responses=responses, clusters=clusters, repeats_of=repeats_of)
    items = list(clusters) if clusters is not None else list(range(n))
    names = list(repeats_of) if repeats_of is not None else list(range(n))
    scored = [(row, _score(response, row)) for row, response in enumerate(responses) if response.statements]
    cited = [(row, score) for row, score in scored if score.citations]

    def mean(rows: list[tuple[int, "_Score"]], name: str, excluded: dict[str, int]) -> Number:
        scores: dict[Any, list[float]] = {}
        for row, score in rows:
            scores.setdefault((names[row], items[row]), []).append(getattr(score, name))
        codes, number = encode_clusters([item for _name, item in scores], len(scores))
        return clustered_mean(
            np.array([sum(found) / len(found) for found in scores.values()], dtype=float),
            codes,
            number,
            level=level,
            label=f"Citation {name}",
            unit="response",
            definition=f"citation-scores-{name}",
            excluded=excluded,
        )

    def responses_of(rows: list[tuple[int, "_Score"]]) -> int:
        return len({names[row] for row, _score in rows})

    empty = {"no_statement": len(set(names)) - responses_of(scored)}
    return CitationScores(
        mean(scored, "recall", empty),
        mean(cited, "precision", {**empty, "no_citation": responses_of(scored) - responses_of(cited)}),
        float(np.mean([score.recall for _, score in scored])) if scored else None,
        float(np.mean([score.alce_precision for _, score in scored])) if scored else None,
    )


@dataclass(frozen=True)
class _Score:
    recall: float
    precise: int
    citations: int
    citations_in_range: int

    @property
    def precision(self) -> float:
        return self.precise / self.citations

    @property
    def alce_precision(self) -> float:
        return self.precise / self.citations_in_range if self.citations_in_range else 0.0


def _score(response: CitedResponse, row: int) -> _Score:
    if response.passages < 0:
        raise ValueError(f"responses holds a negative number of passages at index {row}")
    recalled = precise = citations = in_range = 0
    for statement in response.statements:
        if any(number < 1 for number in statement.cited):
            raise ValueError(
                f"responses holds a citation below 1 at index {row}: passages are numbered from 1"
            )
        cited = tuple(dict.fromkeys(statement.cited))
        citations += len(cited)
        if not cited or max(cited) > response.passages:
            continue
        in_range += len(cited)
        if statement.joint:
            recalled += 1
            precise += sum(_is_precise(statement, number, cited, row) for number in cited)
    return _Score(recalled / len(response.statements), precise, citations, in_range)


def _is_precise(statement: Statement, number: int, cited: tuple[int, ...], row: int) -> bool:
    if len(cited) == 1:
        return True
    if number not in statement.alone or (not statement.alone[number] and number not in statement.rest):
        raise ValueError(
            f"responses lacks the entailment of passage {number} alone or without it, at index {row}"
        )
    return statement.alone[number] or not statement.rest[number]
