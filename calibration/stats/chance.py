"""Agreement corrected by other models of chance: Gwet's AC1 and PABAK."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .agreement import Pairs, agreement_of_pairs, clipped, gwet_value, pair_up
from .arrays import check_level
from .intervals import FEW_CLUSTERS
from .quantiles import t_quantile
from .results import Number, undefined_number


def gwet_ac1(
    a: Any, b: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> Number:
    r"""Gwet's AC1, a companion of kappa that prevalence does not pull down. Never a criterion of the gate.

    .. math:: AC_1 = \frac{p_o - p_e}{1 - p_e}, \quad p_e = \frac{1}{q-1}\sum_k \pi_k(1-\pi_k), \quad
              \pi_k = \frac{p_{k.} + p_{.k}}{2}

    q is the number of *defined* labels. The standard error is Gwet's linearised one, its residuals summed
    within clusters, with a t quantile.

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets; None is missing and left out with a count.
    labels : sequence
        The label set, at least two.
    clusters : sequence, shape (n,), optional
        Item of each target.
    level : float
        Confidence level.
    unit : str
        What a pair is.

    Returns
    -------
    Number
        Value in [-1, 1]; undefined (``empty_overlap``) without a pair, (``one_label_only``) when only one
        label is defined.

    References
    ----------
    Gwet, K. L. (2008). Computing inter-rater reliability and its variance in the presence of high agreement.
    Br. J. Math. Stat. Psychol. 61, 29-48.
    """
    check_level(level)
    pairs = pair_up(a, b, labels, clusters)
    table = pairs.table()
    value = gwet_value(table)
    common = _companion(pairs, level, unit, "Gwet's AC1", "gwet-ac1")
    if value is None:
        return undefined_number("empty_overlap" if pairs.n == 0 else "one_label_only", **common)
    q = len(pairs.labels)
    mean_share = (table.sum(axis=0) + table.sum(axis=1)) / (2 * pairs.n)
    pe = float((mean_share * (1 - mean_share)).sum()) / (q - 1)
    agree = (pairs.rows == pairs.cols).astype(float)
    chance = (2 - mean_share[pairs.rows] - mean_share[pairs.cols]) / (2 * (q - 1))
    influence = (agree - pe) / (1 - pe) - 2 * (1 - value) * (chance - pe) / (1 - pe) - value
    return _linearised(value, influence, pairs, common, level)


def pabak(
    a: Any, b: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> Number:
    r"""Prevalence- and bias-adjusted kappa (Brennan-Prediger): chance agreement fixed at 1/q.

    .. math:: \frac{p_o - 1/q}{1 - 1/q}

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets; None is missing and left out with a count.
    labels : sequence
        The label set, at least two; q is its size.
    clusters : sequence, shape (n,), optional
        Item of each target.
    level : float
        Confidence level.
    unit : str
        What a pair is.

    Returns
    -------
    Number
        Value in [-1/(q-1), 1], its interval that of percent agreement put on this scale; undefined
        (``empty_overlap``) without a pair, (``one_label_only``) when only one label is defined.

    References
    ----------
    Brennan, R. L. and Prediger, D. J. (1981). Educ. Psychol. Meas. 41, 687-699.
    Byrt, T., Bishop, J. and Carlin, J. B. (1993). Bias, prevalence and kappa. J. Clin. Epidemiol. 46,
    423-429.
    """
    check_level(level)
    pairs = pair_up(a, b, labels, clusters)
    common = _companion(pairs, level, unit, "PABAK", "pabak")
    q = len(pairs.labels)
    if pairs.n == 0 or q < 2:
        return undefined_number("empty_overlap" if pairs.n == 0 else "one_label_only", **common)
    agreement = agreement_of_pairs(pairs, level=level, unit=unit)

    def scaled(share: float | None) -> float | None:
        return None if share is None else (share - 1 / q) / (1 - 1 / q)

    return Number(
        value=scaled(agreement.value),
        low=scaled(agreement.low),
        high=scaled(agreement.high),
        method=agreement.method,
        flags=agreement.flags,
        **common,
    )


def _companion(pairs: Pairs, level: float, unit: str, label: str, definition: str) -> dict[str, Any]:
    return {
        "level": level,
        "n": pairs.n,
        "clusters": pairs.n_clusters,
        "excluded": pairs.excluded,
        "definition": definition,
        "label": label,
        "unit": unit,
        "percentage": False,
    }


def _linearised(
    value: float, influence: NDArray[np.float64], pairs: Pairs, common: dict[str, Any], level: float
) -> Number:
    clusters = pairs.n_clusters
    flags = ("too_few_clusters",) if clusters < FEW_CLUSTERS else ()
    if clusters < 2:
        return Number(value=value, flags=flags, method="none: fewer than two items", **common)
    sums = np.bincount(pairs.clusters, weights=influence, minlength=clusters)
    # Independent pairs: the variance of the contingency table, as for kappa's asymptotic one.
    inflation = 1.0 if pairs.one_per_cluster else clusters / (clusters - 1)
    se = math.sqrt(inflation * float(np.square(sums).sum())) / pairs.n
    if se < 1e-12:
        return Number(value=value, flags=(*flags, "no_variation"), method="none: no variation", **common)
    low, high = clipped(
        value - t_quantile(clusters - 1, level) * se, value + t_quantile(clusters - 1, level) * se
    )
    return Number(value=value, low=low, high=high, flags=flags, method="linearised over items, t", **common)
