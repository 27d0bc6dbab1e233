"""A judge's rates, corrected for its errors by the method that the sampling of the gold items allows."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from calibration import stats
from calibration.evidence import overlap_of
from calibration.measures import Figures
from calibration.stats.results import whole_or_float
from calibration.table import Ints, Table

SEED = 9  # of the bootstrap: the same labels give the same interval
BY_INVERSION = "invert-confusion-hallucination"


def corrected_share(table: Table, *, runs: Iterable[int], sampling: str | None, stratum: str = "") -> Figures:
    """The bad share of the judged claims without gold, corrected by those with it.

    Gold counts where two people labelled the claim. Where some of these are not settled, what is settled is
    chosen by its outcome, and nothing can be corrected; nor without a recorded design (`sampling` None).
    """
    runs = list(runs)
    leaves = table.select(np.isin(table.targets.run, runs)).leaves()
    assert leaves.judge is not None
    doubly = overlap_of(leaves, runs)
    gold = leaves.blind_gold()
    complete = bool(gold.has[doubly].all())
    with_gold, rest = leaves.select(doubly), leaves.select(~doubly)
    assert with_gold.judge is not None and rest.judge is not None
    labels = leaves.targets.labels
    found = stats.correct_bad_share(
        with_gold.blind_gold().words(labels),
        with_gold.judge.runs,
        rest.judge.runs,
        design=sampling if sampling and complete else "outcome",
        labels=labels,
        clusters=with_gold.targets.item.tolist(),
        clusters_without_gold=rest.targets.item.tolist(),
        strata=_strata(with_gold, stratum),
        strata_without_gold=_strata(rest, stratum),
    )
    figures = found.as_dict() | {"n_without_gold": len(rest), "sampling": sampling}
    figures["hallucination"] = _hallucination(found, with_gold, rest).as_dict()
    if sampling is None:
        figures["why"] = ["Nobody has recorded how the items with gold were drawn, so nothing is corrected."]
    elif not complete:
        figures["why"] = ["Not every claim labelled twice is settled, and what is settled is no fair sample."]
    return figures


def _hallucination(found: stats.CorrectedShare, with_gold: Table, rest: Table) -> stats.Number:
    """A share of the checkable claims, which needs every cell of the judge's confusion."""
    if found.method == "none":
        return replace(found.number, label="Hallucination rate, corrected", definition=BY_INVERSION)
    assert with_gold.judge is not None and rest.judge is not None
    labels, calls = with_gold.targets.labels, with_gold.judge.runs.shape[1]
    gold = np.repeat(np.array(with_gold.blind_gold().words(labels), dtype=object), calls)
    inverted = stats.invert_confusion(
        gold.tolist(),
        _words(with_gold.judge.runs, labels),
        _words(rest.judge.runs, labels),
        labels=labels,
        clusters=np.repeat(with_gold.targets.item, calls).tolist(),
        clusters_without_gold=np.repeat(rest.targets.item, calls).tolist(),
        rng=np.random.default_rng(SEED),
    )
    number = inverted.hallucination
    assert number is not None
    left_out = {reason: whole_or_float(count / calls) for reason, count in number.excluded.items()}
    return replace(number, n=math.ceil(number.n / calls), excluded=left_out)


def _words(runs: Ints, labels: Sequence[str]) -> list[str | None]:
    """Call by call: so a repeated judge counts as in its rates, by the mean over its calls."""
    names = np.array([*labels, None], dtype=object)
    return names[runs.ravel()].tolist()


def _strata(table: Table, stratum: str) -> list[str]:
    return [strata.get(stratum, "") for strata in table.targets.fact("strata")]
