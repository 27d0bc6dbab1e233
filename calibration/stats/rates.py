"""Hallucination rates: four labels, three units, and nothing left out in silence."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .abstention import ANSWERED, VERDICTS, verdict_codes
from .arrays import MISSING, check_level, encode_clusters
from .intervals import clustered_mean, had_all_been, share_number, share_of_runs
from .labels import EMPTY, GROUNDING_LABELS
from .repeated import UnitMeans, encode_runs
from .results import Number, plural, whole_or_float

UNITS = ("claim", "response", "decision")
MOSTLY_UNVERIFIABLE = 0.20
SUPPORTED, CONTRADICTED, UNSUPPORTED, UNVERIFIABLE = LABELLED = range(4)
CHECKABLE = (SUPPORTED, CONTRADICTED, UNSUPPORTED)


@dataclass(frozen=True)
class HallucinationRates:
    """Hallucination rates of one set of responses in one unit.

    Attributes
    ----------
    unit : str
        claim (pooled over claims), decision (pooled over decision-critical claims) or response (share of
        responses with at least one such claim). Figures in different units are never compared.
    hallucination : Number
        Claims: (contradicted + unsupported) / (supported + contradicted + unsupported). Responses: with at
        least one contradicted or unsupported claim.
    contradicted : Number
        Same denominator, contradicted only.
    faithfulness : Number
        1 - hallucination, same denominator.
    unverifiable_share : Number
        Unverifiable claims among all labelled claims (responses: with at least one unverifiable claim).
    supported_share : Number
        Supported among all labelled claims; not faithfulness.
    mean_share : Number
        Mean over responses of bad / checkable claims; a response without claims scores 0.
    mean_faithfulness : Number
        1 - mean share: a response without claims scores 1 by definition, one whose claims are all
        unverifiable or that is empty has none and is left out with a count.
    mean_faithfulness_without_gaps : Number
        The same without the extraction gaps, and without the responses that nobody tells from them.
    responses : int
        Responses in all.
    zero_claim : int
        Responses with text and no claim.
    all_unverifiable : int
        Responses whose claims are all unverifiable.
    empty : int
        Responses without text.
    extraction_gaps : tuple
        Responses without a claim whose verdict is ANSWERED: the decomposition found nothing in a text that
        asserts something.
    zero_claim_without_verdict : int
        Responses without a claim of which nobody says whether they are answers: they may be gaps.
    review_queue : tuple
        Extraction gaps and empty responses: somebody should look at them.
    counts : mapping of str to float
        Labelled claims per label (in the decision unit, decision-critical ones); of a claim with several runs
        the share of them that gave the label.
    missing : mapping of str to int
        Claims without a label, by reason.
    """

    unit: str
    hallucination: Number
    contradicted: Number
    faithfulness: Number
    unverifiable_share: Number
    supported_share: Number
    mean_share: Number
    mean_faithfulness: Number
    mean_faithfulness_without_gaps: Number
    responses: int
    zero_claim: int
    all_unverifiable: int
    empty: int
    extraction_gaps: tuple[Hashable, ...]
    zero_claim_without_verdict: int
    review_queue: tuple[Hashable, ...]
    counts: Mapping[str, float]
    missing: Mapping[str, int]

    def as_dict(self) -> dict[str, Any]:
        return {
            "unit": self.unit,
            "hallucination": self.hallucination.as_dict(),
            "contradicted": self.contradicted.as_dict(),
            "unverifiable_share": self.unverifiable_share.as_dict(),
            "faithfulness": self.faithfulness.as_dict(),
            "supported_share_of_all_claims": self.supported_share.as_dict(),
            "mean_share": self.mean_share.as_dict(),
            "mean_faithfulness": self.mean_faithfulness.as_dict(),
            "mean_faithfulness_without_gaps": self.mean_faithfulness_without_gaps.as_dict(),
            "responses": self.responses,
            "zero_claim_responses": self.zero_claim,
            "all_unverifiable_responses": self.all_unverifiable,
            "empty_responses": self.empty,
            "extraction_gaps": len(self.extraction_gaps),
            "zero_claim_without_verdict": self.zero_claim_without_verdict,
            "review_queue": list(self.review_queue),
            "counts": dict(self.counts),
            "missing": dict(self.missing),
        }

    def explain(self) -> str:
        """The headline in one plain sentence."""
        sentence = self.hallucination.explain()
        missing = sum(self.missing.values())
        if missing and self.hallucination.worst_case:
            low, high = self.hallucination.worst_case
            sentence += (
                f" Without a label: {missing} {plural(missing, 'claim')}; "
                f"had they all been good or all bad, the rate would be {low:.1%} or {high:.1%}."
            )
        return sentence


@dataclass(frozen=True)
class _ClaimTable:
    """The claims with their labels, claims x runs, and the responses that they belong to."""

    ids: Sequence[Hashable] | NDArray[np.integer]
    codes: NDArray[np.integer]
    positions: NDArray[np.int64]
    items: NDArray[np.integer]
    n_items: int
    empty: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    without_verdict: NDArray[np.bool_]
    missing: Mapping[str, int]
    unflagged: int

    @property
    def runs(self) -> int:
        return self.codes.shape[1]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        return self.codes >= 0

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Labelled claims, responses x runs x labels."""
        cells = (self.positions[:, None] * self.runs + np.arange(self.runs)) * 4 + self.codes
        flat = np.bincount(cells[self.known], minlength=len(self.ids) * self.runs * 4)
        return flat.reshape(-1, self.runs, 4)

    @cached_property
    def unlabelled(self) -> NDArray[np.int64]:
        """Claims without a label, responses x runs."""
        claims = np.bincount(self.positions, minlength=len(self.ids))
        return claims[:, None] - self.counts.sum(axis=2)

    @cached_property
    def label_counts(self) -> list[float]:
        """Claims of each label; over several runs the sum of what each claim is of it."""
        if self.runs == 1:
            return self.counts.sum(axis=(0, 1)).tolist()
        shares = [UnitMeans.over(self.codes == label, self.known, self.known) for label in range(4)]
        return [whole_or_float(float(share.numerator.sum())) for share in shares]

    def named(self, chosen: NDArray[np.bool_]) -> tuple[Hashable, ...]:
        """The chosen responses."""
        if isinstance(self.ids, np.ndarray):
            return tuple(self.ids[chosen].tolist())
        return tuple(self.ids[position] for position in np.flatnonzero(chosen).tolist())

    @cached_property
    def of_items(self) -> NDArray[np.float64]:
        """Labelled claims of a single run, labels x items."""
        return np.array(
            [
                np.bincount(self.items, weights=self.counts[:, 0, label], minlength=self.n_items)
                for label in range(4)
            ]
        )

    def share(self, hit: Sequence[int], within: Sequence[int], **described: Any) -> Number:
        """Share of the claims with a label of ``hit`` in those with one ``within``, run by run."""
        if self.runs == 1:
            y, m = (self.of_items[list(labels)].sum(axis=0) for labels in (hit, within))
            number = share_number(y, m, **described)
            return had_all_been(number, float(y.sum()), float(m.sum()), lost=float(self.unlabelled.sum()))
        return share_of_runs(
            UnitMeans.over(np.isin(self.codes, hit), np.isin(self.codes, within), self.known),
            self.items[self.positions],
            self.n_items,
            owed=np.ones(len(self.codes), dtype=bool),
            **described,
        )


def hallucination_rates(
    labels: Any,
    response: Any,
    *,
    responses: Any = None,
    items: Any = None,
    verdicts: Any = None,
    empty: Any = None,
    decision: Any = None,
    missing_reason: Any = None,
    unit: str = "claim",
    level: float = 0.95,
) -> HallucinationRates:
    r"""Hallucination, contradicted, faithfulness and unverifiable share, from one row per claim.

    .. math:: H = \frac{c + u}{s + c + u}, \quad F = 1 - H, \quad \text{unverifiable} = \frac{v}{s+c+u+v}

    Parameters
    ----------
    labels : sequence, shape (claims,), or array of positions, shape (claims, runs)
        supported, contradicted, unsupported or unverifiable; None where the claim has no valid label. Labels
        of several runs count as their mean: a claim (in the response unit a response) by the share of the
        runs in which it has a label.
    response : sequence, shape (claims,)
        Identifier of each claim's response.
    responses : sequence, shape (R,), optional
        Every response, those without a claim included. Default: those that have claims.
    items : sequence, shape (R,), optional
        Item of each response, the cluster of every interval. Default: the response itself.
    verdicts : sequence, shape (R,), optional
        REFUSED, ANSWERED, CLARIFY, EMPTY or None, or a NumPy array of positions as in `abstention_rates`;
        with it, answers without a claim are found.
    empty : sequence of bool, shape (R,), optional
        Responses without text. Default: those whose verdict is EMPTY.
    decision : sequence of bool, shape (claims,), optional
        Decision-critical claims; required for the decision unit.
    missing_reason : sequence of str, shape (claims,), optional
        Why a claim has no label (failed, pending, disputed ...); "unlabelled" where it is not given.
    unit : {"claim", "response", "decision"}
        The unit of the four headline rates.
    level : float
        Confidence level.

    Returns
    -------
    HallucinationRates
        Rates in [0, 1]; undefined (``zero_denominator``) where there is nothing checkable. Claims without a
        label never enter a rate: they are counted, and each rate carries its range had all of them been good
        or bad. In the response unit a response with an unlabelled claim is left out, whatever its other
        claims say: keeping only those that are settled would select on the outcome.

    Notes
    -----
    Over several runs, claim i counts with the means :math:`\bar y_i` and :math:`\bar m_i` of the runs that
    labelled it, and the interval is that of `clustered_rate` with

    .. math:: n_{eff} = \frac{p(1-p)}{\max\left(v, \; \sum_i (\bar y_i - p \bar m_i)^2 / M^2, \;
              p(1-p)/N\right)} \left(\frac{t_{M-1}}{t_{R-1}}\right)^2

    over M claims and N labels: v is clustered by item as ever, so that runs are no further items, and is
    never below the variance that the claims, and the single labels, would have were they independent. Where
    every run says the same, it is the interval of one run.

    References
    ----------
    Min, S. et al. (2023). FActScore. EMNLP. Korn and Graubard (1998), see `clustered_rate`.
    """
    check_level(level)
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {UNITS}, got {unit!r}")
    if unit == "decision" and decision is None:
        raise ValueError("decision must be given for the decision unit")
    everything = _claim_table(labels, response, responses, items, verdicts, empty, None, missing_reason)
    table = everything
    if unit == "decision":
        table = _claim_table(labels, response, responses, items, verdicts, empty, decision, missing_reason)
    zero_claim = _zero_claim(everything) & ~everything.empty
    gaps, perhaps = zero_claim & everything.answered, zero_claim & everything.without_verdict
    headline = _response_rates(table, level) if unit == "response" else _pooled_rates(table, unit, level)
    return HallucinationRates(
        unit=unit,
        supported_share=_supported_share(table, unit, level),
        mean_share=_mean(everything, level, share=True),
        mean_faithfulness=_mean(everything, level),
        mean_faithfulness_without_gaps=_mean(everything, level, without=(gaps, perhaps)),
        responses=len(everything.ids),
        zero_claim=int(zero_claim.sum()),
        all_unverifiable=int(_all_unverifiable(everything).sum()),
        empty=int(everything.empty.sum()),
        extraction_gaps=everything.named(gaps),
        zero_claim_without_verdict=int(perhaps.sum()),
        review_queue=everything.named(gaps | everything.empty),
        counts=dict(zip(GROUNDING_LABELS, table.label_counts, strict=True)),
        missing=table.missing,
        **headline,
    )


def _claim_table(
    labels: Any,
    response: Any,
    responses: Any,
    items: Any,
    verdicts: Any,
    empty: Any,
    decision: Any,
    missing_reason: Any,
) -> _ClaimTable:
    codes = encode_runs(labels, GROUNDING_LABELS, "labels")
    claims = len(codes)
    for name, values in (("response", response), ("decision", decision), ("missing_reason", missing_reason)):
        if values is not None and len(values) != claims:
            raise ValueError(f"{name} must have one entry per claim: {claims} claims, {len(values)} entries")
    ids, positions = _response_positions(response, responses)
    for name, values in (("items", items), ("verdicts", verdicts), ("empty", empty)):
        if values is not None and responses is None:
            raise ValueError(f"{name} is given per response, so responses must be given as well")
        if values is not None and len(values) != len(ids):
            raise ValueError(
                f"{name} must have one entry per response: {len(ids)} responses, {len(values)} entries"
            )
    kept = np.ones(claims, dtype=bool) if decision is None else _flags(decision)
    absent = kept & (codes < 0).all(axis=1)
    item_codes, n_items = encode_clusters(items, len(ids), "items")
    verdict = np.full(len(ids), MISSING) if verdicts is None else verdict_codes(verdicts, "verdicts")[:, 0]
    return _ClaimTable(
        ids=ids,
        codes=codes[kept],
        positions=positions[kept],
        items=item_codes,
        n_items=n_items,
        empty=verdict == VERDICTS.index(EMPTY) if empty is None else _flags(empty),
        answered=verdict == ANSWERED,
        without_verdict=verdict == MISSING,
        missing=_reason_counts(missing_reason, absent),
        unflagged=int((~kept).sum()),
    )


def _reason_counts(reasons: Any, absent: NDArray[np.bool_]) -> dict[str, int]:
    if reasons is None:
        given = Counter({None: int(absent.sum())})
    elif isinstance(reasons, np.ndarray):
        given = Counter(reasons[absent].tolist())
    else:
        given = Counter(reasons[position] for position in np.flatnonzero(absent).tolist())
    counts: Counter[str] = Counter()
    for reason, count in given.items():
        if count:
            counts[reason or "unlabelled"] += count
    return dict(counts)


def _flags(values: Any) -> NDArray[np.bool_]:
    if isinstance(values, np.ndarray) and values.dtype.kind == "b":
        return values
    return np.array([bool(flag) for flag in values], dtype=bool)


def _response_positions(
    response: Any, responses: Any
) -> tuple[Sequence[Hashable] | NDArray[np.integer], NDArray[np.int64]]:
    if _are_numbers(response) and _are_numbers(responses):
        return responses, _positions_of_numbers(response, responses)
    given = response.tolist() if isinstance(response, np.ndarray) else list(response)
    if any(identifier is None for identifier in given):
        raise ValueError(
            f"response holds None at index {given.index(None)}: every claim belongs to a response"
        )
    if responses is None:
        numbers: dict[Hashable, int] = {}
        positions = [numbers.setdefault(identifier, len(numbers)) for identifier in given]
        return tuple(numbers), np.array(positions, dtype=np.int64)
    ids = tuple(responses.tolist() if isinstance(responses, np.ndarray) else responses)
    index = {identifier: position for position, identifier in enumerate(ids)}
    if len(index) != len(ids):
        raise ValueError("responses holds the same response twice")
    try:
        return ids, np.array([index[identifier] for identifier in given], dtype=np.int64)
    except KeyError as unknown:
        raise ValueError(f"response holds {unknown.args[0]!r}, which is not one of responses") from None


def _are_numbers(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iu"


def _positions_of_numbers(response: NDArray[Any], responses: NDArray[Any]) -> NDArray[np.int64]:
    order = np.argsort(responses, kind="stable")
    ids = responses[order]
    if (ids[1:] == ids[:-1]).any():
        raise ValueError("responses holds the same response twice")
    places = np.searchsorted(ids, response)
    unknown = np.flatnonzero(places == len(ids)) if len(ids) else np.arange(len(response))
    if not len(unknown):
        unknown = np.flatnonzero(ids[places] != response)
    if len(unknown):
        raise ValueError(f"response holds {int(response[unknown[0]])!r}, which is not one of responses")
    return order[places]


def _zero_claim(table: _ClaimTable) -> NDArray[np.bool_]:
    return np.bincount(table.positions, minlength=len(table.ids)) == 0


def _only_unverifiable(table: _ClaimTable) -> NDArray[np.bool_]:
    """Responses x runs: every claim is unverifiable, and there is one."""
    known = table.counts.sum(axis=2)
    return (known > 0) & (table.counts[:, :, UNVERIFIABLE] == known) & (table.unlabelled == 0)


def _all_unverifiable(table: _ClaimTable) -> NDArray[np.bool_]:
    """Responses whose claims are all unverifiable, in every run that labelled all of them."""
    only, unlabelled = _only_unverifiable(table), table.unlabelled > 0
    return np.asarray(only.any(axis=1) & (only | unlabelled).all(axis=1))


def _pooled_rates(table: _ClaimTable, unit: str, level: float) -> dict[str, Number]:
    excluded = {**table.missing, "not_decision_critical": table.unflagged}
    noun = "claims" if unit == "claim" else "decision-critical claims"

    def rate(
        hit: Sequence[int],
        within: Sequence[int],
        label: str,
        key: str,
        left_out: Mapping[str, float],
    ) -> Number:
        return table.share(
            hit,
            within,
            level=level,
            label=label,
            unit=unit,
            definition=f"hallucination-rates-{key}",
            excluded=left_out,
        )

    not_checkable = {**excluded, "unverifiable": table.label_counts[UNVERIFIABLE]}
    share = rate((UNVERIFIABLE,), LABELLED, f"Unverifiable share of {noun}", "unverifiable_share", excluded)
    rates = {
        "hallucination": rate(
            (CONTRADICTED, UNSUPPORTED),
            CHECKABLE,
            f"Hallucination rate of {noun}",
            "hallucination",
            not_checkable,
        ),
        "contradicted": rate(
            (CONTRADICTED,), CHECKABLE, f"Contradicted rate of {noun}", "contradicted", not_checkable
        ),
        "faithfulness": rate(
            (SUPPORTED,), CHECKABLE, f"Faithfulness of {noun}", "faithfulness", not_checkable
        ),
    }
    if share.value is not None and share.value > MOSTLY_UNVERIFIABLE:
        rates = {key: number.with_flags("mostly_unverifiable") for key, number in rates.items()}
    return {**rates, "unverifiable_share": share}


def _response_rates(table: _ClaimTable, level: float) -> dict[str, Number]:
    """Shares of the responses whose claims are all labelled, on one denominator.

    Keeping the half-labelled ones that a bad claim already settles would select on the outcome; they only
    narrow the worst-case range. Of several runs, each that labelled all claims of a response counts for it.
    """
    counts, complete = table.counts, table.unlabelled == 0

    def rate(hit: NDArray[np.bool_], label: str, key: str, *, inverse: bool = False) -> Number:
        chosen = ~hit if inverse else hit
        number = share_of_runs(
            UnitMeans.over(chosen, complete, complete),
            table.items,
            table.n_items,
            level=level,
            label=label,
            unit="response",
            definition=f"hallucination-rates-{key}",
            excluded={"unlabelled_claims": int((~complete.any(axis=1)).sum())},
        )
        if complete.all():
            return number
        fewest, most = int(hit.sum()), int((hit | ~complete).sum())
        if inverse:
            fewest, most = hit.size - most, hit.size - fewest
        return replace(number, worst_case=(fewest / hit.size, most / hit.size))

    bad = counts[:, :, CONTRADICTED] + counts[:, :, UNSUPPORTED] > 0
    rates = {
        "hallucination": rate(bad, "Responses with a bad claim", "hallucination"),
        "contradicted": rate(
            counts[:, :, CONTRADICTED] > 0, "Responses with a contradicted claim", "contradicted"
        ),
        "faithfulness": rate(bad, "Responses without a bad claim", "faithfulness", inverse=True),
    }
    total = sum(table.label_counts)
    if total and table.label_counts[UNVERIFIABLE] / total > MOSTLY_UNVERIFIABLE:
        rates = {key: number.with_flags("mostly_unverifiable") for key, number in rates.items()}
    share = rate(counts[:, :, UNVERIFIABLE] > 0, "Responses with an unverifiable claim", "unverifiable_share")
    return {**rates, "unverifiable_share": share}


def _supported_share(table: _ClaimTable, unit: str, level: float) -> Number:
    return table.share(
        (SUPPORTED,),
        LABELLED,
        level=level,
        label="Supported share of all claims",
        unit="decision" if unit == "decision" else "claim",
        definition="hallucination-rates-supported_share",
        excluded={**table.missing, "not_decision_critical": table.unflagged},
    )


def _mean(
    table: _ClaimTable,
    level: float,
    *,
    share: bool = False,
    without: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None,
) -> Number:
    """Mean of the responses' scores; `without` names the extraction gaps and what may be one."""
    complete = table.unlabelled == 0
    unsettled, unverifiable = ~complete.any(axis=1), _all_unverifiable(table)
    nothing = np.zeros(len(table.ids), dtype=bool)
    gaps, perhaps = (nothing, nothing) if without is None else without
    kept = ~(table.empty | unsettled | unverifiable | gaps | perhaps)
    scored = (complete & ~_only_unverifiable(table))[kept]
    counts = table.counts[kept]
    checkable = counts[:, :, :UNVERIFIABLE].sum(axis=2)
    bad = counts[:, :, CONTRADICTED] + counts[:, :, UNSUPPORTED]
    scores = bad / np.maximum(checkable, 1)
    if not share:
        scores = 1 - scores
    codes, number = encode_clusters(table.items[kept], int(kept.sum()), "items")
    key = (
        "mean_share"
        if share
        else "mean_faithfulness"
        if without is None
        else "mean_faithfulness_without_gaps"
    )
    return clustered_mean(
        np.where(scored, scores, 0.0).sum(axis=1) / scored.sum(axis=1),
        codes,
        number,
        level=level,
        label="Mean share of bad claims per response" if share else "Mean faithfulness per response",
        unit="response",
        definition=f"hallucination-rates-{key}",
        excluded={
            "empty": int(table.empty.sum()),
            "unlabelled_claims": int((unsettled & ~table.empty).sum()),
            "all_unverifiable": int((unverifiable & ~table.empty).sum()),
            "extraction_gap": int(gaps.sum()),
            "no_valid_verdict": int(perhaps.sum()),
        },
    )
