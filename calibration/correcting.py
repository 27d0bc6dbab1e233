"""A judge's bad share, corrected for its errors by the method that the sampling of the gold items allows."""

from collections.abc import Iterable

import numpy as np

from calibration import stats
from calibration.evidence import overlap_of
from calibration.measures import Figures
from calibration.table import Table


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
    if sampling is None:
        figures["why"] = ["Nobody has recorded how the items with gold were drawn, so nothing is corrected."]
    elif not complete:
        figures["why"] = ["Not every claim labelled twice is settled, and what is settled is no fair sample."]
    return figures


def _strata(table: Table, stratum: str) -> list[str]:
    return [strata.get(stratum, "") for strata in table.targets.fact("strata")]
