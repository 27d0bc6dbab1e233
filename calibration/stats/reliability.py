"""Agreement of many graders: Krippendorff's alpha and Fleiss' kappa."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import check_labels, check_level, encode_clusters, encode_labels, kept_entries
from .intervals import FEW_CLUSTERS
from .quantiles import exact_lower_bound_of_all
from .resampling import jackknife
from .results import Number, undefined_number


def label_counts(ratings: Any, labels: Any, name: str = "ratings") -> NDArray[np.int64]:
    """How often each unit got each label, shape (units, labels); missing ratings count nowhere."""
    fixed = check_labels(labels)
    if isinstance(ratings, np.ndarray) and ratings.dtype.kind in "iu":
        if ratings.ndim != 2:
            raise ValueError(f"{name} must have one row per unit and one column per grader")
        codes, unit_of = ratings.ravel(), np.repeat(np.arange(len(ratings)), ratings.shape[1])
        codes = encode_labels(codes, fixed, name)
        units = len(ratings)
    else:
        rows = [row.tolist() if isinstance(row, np.ndarray) else row for row in ratings]
        for position, row in enumerate(rows):
            if isinstance(row, (str, bytes)) or not hasattr(row, "__iter__"):
                raise ValueError(
                    f"{name} must hold one sequence of labels per unit, got {row!r} at {position}"
                )
        rows = [list(row) for row in rows]
        codes = encode_labels([label for row in rows for label in row], fixed, name)
        unit_of = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        units = len(rows)
    given = codes >= 0
    q = len(fixed)
    return np.bincount(unit_of[given] * q + codes[given], minlength=units * q).reshape(units, q)


def alpha_values(
    values: NDArray[Any], disagreement: NDArray[Any], totals: NDArray[Any]
) -> NDArray[np.float64]:
    expected = values**2 - (totals**2).sum(axis=-1)
    defined = expected > 0
    return np.where(defined, 1 - (values - 1) * disagreement / np.where(defined, expected, 1), np.nan)


def krippendorff_alpha(
    ratings: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> Number:
    r"""Krippendorff's alpha for nominal labels: any number of graders, gaps allowed.

    Units with at least two labels are pairable. With :math:`n_{uk}` labels k on unit u, :math:`m_u` labels on
    it, and :math:`n_k`, n their sums over pairable units,

    .. math:: \alpha = 1 - (n-1)\,\frac{\sum_u (m_u^2 - \sum_k n_{uk}^2)/(m_u - 1)}{n^2 - \sum_k n_k^2}

    Parameters
    ----------
    ratings : sequence of sequences, or integer array of shape (units, graders)
        Labels of each unit, None (-1 in an integer array) where a grader gave none. Rows may differ in
        length.
    labels : sequence
        The label set.
    clusters : sequence, shape (units,), optional
        Item of each unit; the interval is a leave-one-item-out jackknife with a t quantile.
    level : float
        Confidence level.
    unit : str
        What is labelled.

    Returns
    -------
    Number
        Value at most 1; undefined with ``empty_overlap`` when no unit has two labels and with
        ``one_label_only`` when all pairable labels are the same. Units with fewer than two labels are
        excluded and counted. One disagreement among very many like labels gives a value near 0: read the raw
        agreement beside it.

    References
    ----------
    Krippendorff, K. (2011). Computing Krippendorff's alpha-reliability. University of Pennsylvania.
    Hayes, A. F. and Krippendorff, K. (2007). Communication Methods and Measures 1, 77-89.
    """
    check_level(level)
    counts = label_counts(ratings, labels)
    per_unit = counts.sum(axis=1)
    pairable = per_unit >= 2
    if clusters is not None:
        if len(clusters) != len(counts):
            raise ValueError(
                f"clusters must have one entry per unit: {len(counts)} units, {len(clusters)} entries"
            )
        clusters = kept_entries(clusters, pairable)
    excluded = {
        "unlabelled": int((per_unit == 0).sum()),
        "labelled_once": int((per_unit == 1).sum()),
    }
    counts, per_unit = counts[pairable], per_unit[pairable]
    codes, number = encode_clusters(clusters, len(counts))
    common: dict[str, Any] = {
        "level": level,
        "n": len(counts),
        "clusters": number,
        "excluded": excluded,
        "definition": "krippendorff-alpha",
        "label": "Krippendorff's alpha",
        "unit": unit,
        "percentage": False,
    }
    if len(counts) == 0:
        return undefined_number("empty_overlap", **common)
    disagreement = (per_unit**2 - (counts**2).sum(axis=1)) / (per_unit - 1)
    by_cluster = np.column_stack(
        [np.bincount(codes, weights=of_label, minlength=number) for of_label in counts.T]
    ).astype(np.int64)
    disagreed = np.bincount(codes, weights=disagreement, minlength=number)
    totals = by_cluster.sum(axis=0)
    value = float(alpha_values(totals.sum(), disagreed.sum(), totals))
    if np.isnan(value):
        return undefined_number("one_label_only", **common)
    flags = ("too_few_clusters",) if number < FEW_CLUSTERS else ()
    if number < 2:
        return Number(value=value, flags=flags, method="none: fewer than two items", **common)
    if disagreed.sum() == 0:
        expected = 1 - float((totals**2).sum()) / float(totals.sum()) ** 2
        low = max(-1.0, 1 - (1 - exact_lower_bound_of_all(number, level)) / expected)
        return Number(
            value=1.0, low=low, high=1.0, flags=flags, method="exact bound at perfect agreement", **common
        )
    left = totals - by_cluster
    spread = jackknife(alpha_values(left.sum(axis=1), disagreed.sum() - disagreed, left))
    interval = spread.interval(value, level)
    if interval is None:
        reason = "too_few_clusters" if spread.se is None else "no_variation"
        return Number(value=value, flags=(*flags, reason), method="none", **common)
    return Number(
        value=value,
        low=max(-1.0, interval[0]),
        high=min(1.0, interval[1]),
        flags=flags,
        method="jackknife over items, t",
        **common,
    )


def fleiss_kappa(counts: Any, *, level: float = 0.95, unit: str = "claim") -> Number:
    r"""Fleiss' kappa: chance-corrected agreement of a constant number of graders per unit.

    .. math:: \kappa = \frac{\bar P - \bar P_e}{1 - \bar P_e}, \quad
              P_u = \frac{\sum_k n_{uk}^2 - m}{m(m-1)}, \quad \bar P_e = \sum_k p_k^2

    It is given without an interval, since its published variance is one under the hypothesis of no agreement.
    With gaps use `krippendorff_alpha`.

    Parameters
    ----------
    counts : array_like of int, shape (units, labels)
        How many graders gave each label to each unit; every row has the same sum m.
    level : float
        Confidence level, carried along.
    unit : str
        What is labelled.

    Returns
    -------
    Number
        Value at most 1; undefined with ``empty_overlap`` without a unit or with fewer than two graders,
        ``one_label_only`` when one label was used throughout, ``method_not_valid_for_design`` when the number
        of graders varies.

    References
    ----------
    Fleiss, J. L. (1971). Measuring nominal scale agreement among many raters. Psychol. Bull. 76, 378-382.
    Gwet, K. L. (2021). Large-sample variance of Fleiss generalized kappa. Educ. Psychol. Meas. 81, 781-790.
    """
    check_level(level)
    table = _check_count_table(counts)
    common: dict[str, Any] = {
        "level": level,
        "n": len(table),
        "clusters": len(table),
        "definition": "fleiss-kappa",
        "label": "Fleiss' kappa",
        "unit": unit,
        "percentage": False,
        "method": "none",
    }
    per_unit = table.sum(axis=1)
    if len(table) == 0 or per_unit.max() < 2:
        return undefined_number("empty_overlap", **common)
    if (per_unit != per_unit[0]).any():
        return undefined_number("method_not_valid_for_design", **common)
    m = int(per_unit[0])
    observed = float(((table**2).sum(axis=1) - m).mean()) / (m * (m - 1))
    totals = table.sum(axis=0)
    if (totals > 0).sum() < 2:
        return undefined_number("one_label_only", **common)
    chance = float((totals**2).sum()) / float(totals.sum()) ** 2
    return Number(value=(observed - chance) / (1 - chance), **common)


def _check_count_table(counts: Any) -> NDArray[np.int64]:
    try:
        table = np.asarray(counts)
        whole = table.astype(np.int64)
    except (TypeError, ValueError):
        raise ValueError("counts must be a table of whole numbers, one row per unit") from None
    if table.size and table.ndim != 2:
        raise ValueError(
            f"counts must have one row per unit and one column per label, got shape {table.shape}"
        )
    if (whole != table).any() or (whole < 0).any():
        raise ValueError("counts must be whole numbers of 0 or more")
    return whole
