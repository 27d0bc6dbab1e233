"""Agreement of two: Cohen's kappa and the numbers that stand beside it."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import (
    Codes,
    check_labels,
    check_level,
    check_same_length,
    encode_clusters,
    encode_labels,
    kept_entries,
)
from .intervals import FEW_CLUSTERS, share_number
from .quantiles import exact_lower_bound_of_all, z_quantile
from .resampling import jackknife
from .results import FLAGS, NO_EXCLUSIONS, UNDEFINED_REASONS, Number, counted, plural

DENSE_CELLS, DENSE_CELLS_PER_PAIR = 4096, 2
DOMINANT_SHARE = 0.80
KAPPA_AC1_GAP = 0.20

Table = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Pairs:
    """Two label columns of the same targets, cleaned: codes, clusters, and what was left out."""

    rows: Codes
    cols: Codes
    labels: tuple[Hashable, ...]
    clusters: Codes
    n_clusters: int
    excluded: Mapping[str, int]

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def one_per_cluster(self) -> bool:
        return self.n == self.n_clusters

    @cached_property
    def counts(self) -> "ClusterCounts":
        return count_by_cluster(self)

    def table(self) -> NDArray[np.int64]:
        return self.counts.table

    def one_versus_rest(self, position: int) -> "Pairs":
        return Pairs(
            (self.rows != position).astype(np.int64),
            (self.cols != position).astype(np.int64),
            (self.labels[position], "rest"),
            self.clusters,
            self.n_clusters,
            self.excluded,
        )


def pair_up(
    rows: Any, cols: Any, labels: Any, clusters: Any, rows_name: str = "a", cols_name: str = "b"
) -> Pairs:
    """Validate two label columns once and drop, with a count, the targets that miss one of them."""
    fixed = check_labels(labels)
    row_codes = encode_labels(rows, fixed, rows_name)
    col_codes = encode_labels(cols, fixed, cols_name)
    n = check_same_length(**{rows_name: row_codes, cols_name: col_codes})
    if clusters is not None and len(clusters) != n:
        raise ValueError(f"clusters must have one entry per target: {n} targets, {len(clusters)} entries")
    no_row, no_col = row_codes < 0, col_codes < 0
    missing = no_row | no_col
    excluded: Mapping[str, int] = NO_EXCLUSIONS
    if missing.any():
        excluded = counted(
            {
                f"missing_{rows_name}": int((no_row & ~no_col).sum()),
                f"missing_{cols_name}": int((no_col & ~no_row).sum()),
                "missing_both": int((no_row & no_col).sum()),
            }
        )
        kept = ~missing
        row_codes, col_codes = row_codes[kept], col_codes[kept]
        if clusters is not None:
            clusters = kept_entries(clusters, kept)
    codes, number = encode_clusters(clusters, len(row_codes))
    return Pairs(row_codes, col_codes, fixed, codes, number, excluded)


@dataclass(frozen=True)
class KappaResult:
    """Cohen's kappa with its intervals and everything it was computed from.

    Attributes
    ----------
    value : float or None
        Kappa in [-1, 1]; None when undefined.
    low, high : float or None
        The interval to show.
    method : str
        How the shown interval was made.
    jackknife_se, jackknife_low, jackknife_high : float or None
        Leave-one-cluster-out jackknife with t quantile.
    fce_se, fce_low, fce_high : float or None
        Asymptotic standard error and unclipped interval after Fleiss, Cohen and Everitt (cross-check).
    se_null : float or None
        Asymptotic standard error under kappa = 0.
    po, pe : float or None
        Observed and chance agreement.
    max_kappa : float or None
        The largest kappa that these margins allow.
    ac1 : float or None
        Gwet's AC1, for the prevalence flag.
    table : tuple of tuple of int
        Confusion table, rows = first, columns = second, in the order of `labels`.
    agreement : Number
        Percent agreement with a Wilson interval on the effective number of pairs.
    """

    value: float | None
    low: float | None
    high: float | None
    level: float
    method: str
    jackknife_se: float | None
    jackknife_low: float | None
    jackknife_high: float | None
    fce_se: float | None
    fce_low: float | None
    fce_high: float | None
    se_null: float | None
    po: float | None
    pe: float | None
    max_kappa: float | None
    ac1: float | None
    table: Table
    labels: tuple[Hashable, ...]
    n: int
    clusters: int
    excluded: Mapping[str, int]
    flags: tuple[str, ...]
    undefined: str | None
    agreement: Number
    unit: str = "claim"
    between: str = "the two graders"
    definition: str = "cohen-kappa"

    def as_number(self) -> Number:
        """Kappa as the number object."""
        return Number(
            value=self.value,
            low=self.low,
            high=self.high,
            level=self.level,
            method=self.method,
            n=self.n,
            clusters=self.clusters,
            excluded=self.excluded,
            flags=self.flags,
            definition=self.definition,
            undefined=self.undefined,
            label="Cohen's kappa",
            unit=self.unit,
            percentage=False,
        )

    def as_dict(self) -> dict[str, Any]:
        """Kappa, percent agreement, table and cross-checks, ready for JSON."""
        return {
            "kappa": self.as_number().as_dict(),
            "agreement": self.agreement.as_dict(),
            "po": self.po,
            "pe": self.pe,
            "max_kappa": self.max_kappa,
            "fce": {"se": self.fce_se, "low": self.fce_low, "high": self.fce_high},
            "jackknife": {
                "se": self.jackknife_se,
                "low": self.jackknife_low,
                "high": self.jackknife_high,
            },
            "confusion": {"labels": list(self.labels), "table": [list(row) for row in self.table]},
        }

    def explain(self) -> str:
        """The agreement in one plain sentence."""
        who = self.between[0].upper() + self.between[1:]
        if self.n == 0:
            return f"{who} have no {self.unit} in common, so kappa is undefined."
        agreed = sum(self.table[i][i] for i in range(len(self.labels)))
        start = f"{who} agree on {agreed} of {self.n} {plural(self.n, self.unit)}"
        if self.value is None:
            return f"{start}; kappa is undefined: {UNDEFINED_REASONS[self.undefined or '']}."
        if self.low is None or self.high is None:
            return f"{start}; kappa {self.value:.2f}, without an interval{self._notes()}."
        interval = f"[{self.low:.2f}, {self.high:.2f}]"
        return f"{start}; kappa {self.value:.2f} {interval}{self._too_small()}{self._notes()}."

    def _too_small(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return ""
        below = math.floor(self.value * 10 + 1e-9) / 10
        above = round(below + 0.1, 1)
        if self.low <= below and above <= self.high:
            return f"; the set is too small to tell {below:.1f} from {above:.1f}"
        return ""

    def _notes(self) -> str:
        return "".join(f"; {FLAGS[flag]}" for flag in self.flags)


def kappa_values(
    n: NDArray[Any] | int, agree: NDArray[Any] | int, rows: NDArray[Any], cols: NDArray[Any]
) -> NDArray[np.float64]:
    """Kappa from counts, over any leading axes; NaN where chance agreement is complete or n is 0."""
    return _kappa(n, agree, (rows * cols).sum(axis=-1))


def _kappa(n: Any, agree: Any, chance: NDArray[Any]) -> NDArray[np.float64]:
    possible = n * n - chance
    defined = possible > 0
    return np.where(defined, (n * agree - chance) / np.where(defined, possible, 1), np.nan)


@dataclass(frozen=True)
class ClusterCounts:
    """What the clustered figures need of each cluster; the labels of each axis come first.

    Label pairs are counted once, in one pass over the data, and everything else is sums of these counts.
    """

    table: NDArray[np.int64]
    agree: NDArray[np.int64]
    rows: NDArray[np.int64]
    cols: NDArray[np.int64]
    size: NDArray[np.int64]


def count_by_cluster(pairs: Pairs) -> ClusterCounts:
    """Agreements and margins per cluster, in memory linear in the number of pairs."""
    q, clusters = len(pairs.labels), pairs.n_clusters
    if q * q * clusters > DENSE_CELLS_PER_PAIR * pairs.n + DENSE_CELLS:
        return _count_margins(pairs)
    codes = pairs.rows * q
    codes += pairs.cols
    codes *= clusters
    codes += pairs.clusters
    cells = np.bincount(codes, minlength=q * q * clusters).reshape(q, q, clusters)
    rows = cells.sum(axis=1)
    return ClusterCounts(
        table=cells.sum(axis=2),
        agree=sum((cells[k, k] for k in range(1, q)), start=cells[0, 0]),
        rows=rows,
        cols=cells.sum(axis=0),
        size=rows.sum(axis=0),
    )


def _count_margins(pairs: Pairs) -> ClusterCounts:
    """The same where a table of clusters x label pairs would be mostly empty."""
    q, clusters = len(pairs.labels), pairs.n_clusters

    def margin(codes: Codes) -> NDArray[np.int64]:
        return np.bincount(codes * clusters + pairs.clusters, minlength=q * clusters).reshape(q, clusters)

    return ClusterCounts(
        table=np.bincount(pairs.rows * q + pairs.cols, minlength=q * q).reshape(q, q),
        agree=np.bincount(pairs.clusters[pairs.rows == pairs.cols], minlength=clusters),
        rows=margin(pairs.rows),
        cols=margin(pairs.cols),
        size=np.bincount(pairs.clusters, minlength=clusters),
    )


def leave_one_out_kappas(pairs: Pairs) -> NDArray[np.float64]:
    """Kappa without each cluster in turn."""
    counts = pairs.counts
    agree, n = int(counts.agree.sum()) - counts.agree, pairs.n - counts.size
    chance = np.zeros(pairs.n_clusters, dtype=np.int64)
    for row, col in zip(counts.rows, counts.cols, strict=True):
        chance += (int(row.sum()) - row) * (int(col.sum()) - col)
    return _kappa(n, agree, chance)


def fce_standard_errors(table: NDArray[np.number]) -> tuple[float, float]:
    """Asymptotic standard errors of kappa: as estimated, and under kappa = 0."""
    n = float(table.sum())
    p = table / n
    row, col = p.sum(axis=1), p.sum(axis=0)
    pe = float(row @ col)
    kappa = (float(np.trace(p)) - pe) / (1 - pe)
    diagonal = np.diag(p)
    first = float((diagonal * (1 - (row + col) * (1 - kappa)) ** 2).sum())
    crossed = p * (col[:, None] + row[None, :]) ** 2
    second = (1 - kappa) ** 2 * float(crossed.sum() - np.trace(crossed))
    third = (kappa - pe * (1 - kappa)) ** 2
    variance = max(0.0, first + second - third) / (n * (1 - pe) ** 2)
    null = max(0.0, pe + pe**2 - float((row * col * (row + col)).sum())) / (n * (1 - pe) ** 2)
    return math.sqrt(variance), math.sqrt(null)


def cohen_kappa(
    a: Any,
    b: Any,
    *,
    labels: Any,
    clusters: Any = None,
    interval: str = "auto",
    level: float = 0.95,
    unit: str = "claim",
    between: str = "the two graders",
) -> KappaResult:
    r"""Cohen's unweighted kappa of two label columns, with an interval clustered by item.

    .. math:: \kappa = \frac{p_o - p_e}{1 - p_e}, \quad p_o = \sum_i p_{ii}, \quad
              p_e = \sum_i p_{i.} p_{.i}

    The interval shown is the leave-one-cluster-out jackknife
    :math:`\kappa \pm t_{R-1}\sqrt{v}`, :math:`v = \frac{R-1}{R}\sum_r(\kappa_{(-r)} - \bar\kappa)^2`,
    clipped to [-1, 1]. Where every cluster holds one pair (one response per item) it is the asymptotic one of
    Fleiss, Cohen and Everitt. At perfect agreement it is [bound, 1], where the bound replaces :math:`p_o` by
    its exact lower limit over R clusters.

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets in the same order; None is a missing label (the pair is left out and
        counted). A NumPy integer array holds positions into `labels`, -1 being missing.
    labels : sequence
        Every label that could be given, in the order of the table.
    clusters : sequence, shape (n,), optional
        Item of each target. Without it every pair is independent.
    interval : {"auto", "jackknife", "asymptotic"}
        Which interval to show; "auto" follows the rule above.
    level : float
        Confidence level.
    unit : str
        What a pair is: claim or response.
    between : str
        Who is compared, for `explain`.

    Returns
    -------
    KappaResult
        ``value`` is None with ``empty_overlap`` when no target has both labels and with ``one_label_only``
        when both used one and the same label; percent agreement is still there. Disjoint label sets give 0,
        as does one constant rater (without an interval: it could not have been anything else).

    References
    ----------
    Cohen, J. (1960). A coefficient of agreement for nominal scales. Educ. Psychol. Meas. 20, 37-46.
    Fleiss, J. L., Cohen, J. and Everitt, B. S. (1969). Large sample standard errors of kappa and weighted
    kappa. Psychol. Bull. 72, 323-327.

    Examples
    --------
    >>> result = cohen_kappa(["yes", "yes", "no", "no"], ["yes", "no", "no", "no"], labels=["yes", "no"])
    >>> result.value
    0.5
    """
    check_level(level)
    if interval not in ("auto", "jackknife", "asymptotic"):
        raise ValueError(f"interval must be 'auto', 'jackknife' or 'asymptotic', got {interval!r}")
    pairs = pair_up(a, b, labels, clusters)
    return kappa_of_pairs(pairs, interval=interval, level=level, unit=unit, between=between)


def kappa_of_pairs(
    pairs: Pairs,
    *,
    interval: str = "auto",
    level: float = 0.95,
    unit: str = "claim",
    between: str = "the two graders",
    definition: str = "cohen-kappa",
) -> KappaResult:
    """`cohen_kappa` for columns that are already validated."""
    table = pairs.table()
    common: dict[str, Any] = {
        "level": level,
        "table": tuple(tuple(row) for row in table.tolist()),
        "labels": pairs.labels,
        "n": pairs.n,
        "clusters": pairs.n_clusters,
        "excluded": pairs.excluded,
        "agreement": agreement_of_pairs(pairs, level=level, unit=unit),
        "unit": unit,
        "between": between,
        "definition": definition,
    }
    n, row, col = pairs.n, table.sum(axis=1), table.sum(axis=0)
    chance = int(row @ col)
    if n == 0 or chance == n * n:
        return _undefined_kappa("empty_overlap" if n == 0 else "one_label_only", n, common)
    value = float(kappa_values(n, np.trace(table), row, col))
    pe = chance / (n * n)
    fce_se, se_null = fce_standard_errors(table)
    z = z_quantile(level)
    spread = jackknife(leave_one_out_kappas(pairs))
    by_jackknife = spread.interval(value, level)
    shown, method, flags = _shown_interval(
        pairs, table, value, pe, fce_se, spread, by_jackknife, interval, level
    )
    ac1 = gwet_value(table)
    if _prevalence(table, value, ac1):
        flags.append("prevalence")
    low, high = shown if shown else (None, None)
    return KappaResult(
        value=value,
        low=low,
        high=high,
        method=method,
        jackknife_se=spread.se,
        jackknife_low=by_jackknife[0] if by_jackknife else None,
        jackknife_high=by_jackknife[1] if by_jackknife else None,
        fce_se=fce_se,
        fce_low=value - z * fce_se,
        fce_high=value + z * fce_se,
        se_null=se_null,
        po=float(np.trace(table)) / n,
        pe=pe,
        max_kappa=float(kappa_values(n, np.minimum(row, col).sum(), row, col)),
        ac1=ac1,
        flags=tuple(flags),
        undefined=None,
        **common,
    )


def _undefined_kappa(reason: str, n: int, common: dict[str, Any]) -> KappaResult:
    nothing: dict[str, Any] = dict.fromkeys(
        ("value", "low", "high", "jackknife_se", "jackknife_low", "jackknife_high", "fce_se", "fce_low")
        + ("fce_high", "se_null", "max_kappa", "ac1")
    )
    same = 1.0 if n else None
    return KappaResult(**nothing, po=same, pe=same, method="", flags=(), undefined=reason, **common)


def _shown_interval(
    pairs: Pairs,
    table: NDArray[np.int64],
    value: float,
    pe: float,
    fce_se: float,
    spread: Any,
    by_jackknife: tuple[float, float] | None,
    interval: str,
    level: float,
) -> tuple[tuple[float, float] | None, str, list[str]]:
    flags = ["too_few_clusters"] if pairs.n_clusters < FEW_CLUSTERS else []
    if pairs.n_clusters < 2:
        return None, "none: fewer than two items", flags
    if np.trace(table) == pairs.n:
        po_low = exact_lower_bound_of_all(pairs.n_clusters, level)
        return (max(-1.0, (po_low - pe) / (1 - pe)), 1.0), "exact bound at perfect agreement", flags
    if _one_side_constant(table):
        return None, "none: one side used a single label", [*flags, "one_grader_constant"]
    if interval == "asymptotic" or (interval == "auto" and pairs.one_per_cluster):
        if fce_se < 1e-12:
            return None, "none: no variation", [*flags, "no_variation"]
        half = z_quantile(level) * fce_se
        return clipped(value - half, value + half), "asymptotic (Fleiss-Cohen-Everitt)", flags
    if spread.se is None:
        return None, "none: undefined without one of the items", list({*flags, "too_few_clusters"})
    if by_jackknife is None:
        return None, "none: no variation", [*flags, "no_variation"]
    return clipped(*by_jackknife), "jackknife over items, t", flags


def clipped(low: float, high: float) -> tuple[float, float]:
    return max(-1.0, low), min(1.0, high)


def _one_side_constant(table: NDArray[np.int64]) -> bool:
    return bool((table.sum(axis=1) > 0).sum() == 1 or (table.sum(axis=0) > 0).sum() == 1)


def _prevalence(table: NDArray[np.int64], kappa: float, ac1: float | None) -> bool:
    share = (table.sum(axis=0) + table.sum(axis=1)) / (2 * table.sum())
    return bool(share.max() > DOMINANT_SHARE) or (ac1 is not None and abs(kappa - ac1) > KAPPA_AC1_GAP)


def agreement_of_pairs(
    pairs: Pairs, *, level: float = 0.95, unit: str = "claim", definition: str = "percent-agreement"
) -> Number:
    return share_number(
        pairs.counts.agree.astype(float),
        pairs.counts.size.astype(float),
        level=level,
        label="Percent agreement",
        unit=unit,
        definition=definition,
        excluded=pairs.excluded,
        undefined="empty_overlap",
    )


def percent_agreement(
    a: Any, b: Any, *, labels: Any, clusters: Any = None, level: float = 0.95, unit: str = "claim"
) -> Number:
    r"""Share of targets that both gave the same label.

    .. math:: p_o = \sum_i n_{ii} / n

    Parameters
    ----------
    a, b : sequence, shape (n,)
        Labels of the same targets; None is missing and left out with a count.
    labels : sequence
        The label set.
    clusters : sequence, shape (n,), optional
        Item of each target.
    level : float
        Confidence level.
    unit : str
        What a pair is.

    Returns
    -------
    Number
        Value in [0, 1] with the interval of `clustered_rate`; undefined (``empty_overlap``) without a pair.
        It does not correct for chance: two graders who both always say "supported" agree on everything.

    References
    ----------
    Wilson, E. B. (1927). JASA 22, 209-212.
    """
    check_level(level)
    return agreement_of_pairs(pair_up(a, b, labels, clusters), level=level, unit=unit)


def gwet_value(table: NDArray[np.number]) -> float | None:
    """AC1 of a table; None with a single defined label or no pair."""
    q, n = len(table), float(table.sum())
    if q < 2 or n == 0:
        return None
    mean_share = (table.sum(axis=0) + table.sum(axis=1)) / (2 * n)
    pe = float((mean_share * (1 - mean_share)).sum()) / (q - 1)
    return (float(np.trace(table)) / n - pe) / (1 - pe)
