"""Validation at the edge: labels and clusters become integers once; errors name the argument."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = Sequence[Hashable]
Codes = NDArray[np.integer]

MISSING = -1


def check_level(level: float) -> None:
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")


def check_labels(labels: Iterable[Hashable], name: str = "labels") -> tuple[Hashable, ...]:
    """Return the label set as a tuple: at least one label, none repeated, none ``None``."""
    if isinstance(labels, (str, bytes)):
        raise ValueError(f"{name} must be a sequence of labels, not one string {labels!r}")
    fixed = tuple(labels)
    if not fixed:
        raise ValueError(f"{name} must hold at least one label")
    if any(label is None for label in fixed):
        raise ValueError(f"{name} must not hold None: a missing label is not a category")
    if len(set(fixed)) != len(fixed):
        raise ValueError(f"{name} holds the same label twice: {fixed!r}")
    return fixed


def encode_labels(values: Any, labels: tuple[Hashable, ...], name: str) -> Codes:
    """Positions in ``labels``, -1 where the label is missing.

    A NumPy integer array is taken as positions already (-1 is missing); anything else holds the labels
    themselves, ``None`` being missing.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu":
        if labels != tuple(range(len(labels))) and any(type(label) is int for label in labels):
            raise ValueError(
                f"{name} is an integer array while labels are integers: pass the labels as a list"
            )
        if values.ndim != 1:
            raise ValueError(f"{name} must have one dimension, got shape {values.shape}")
        if values.size and (values.min() < MISSING or values.max() >= len(labels)):
            position = int(np.flatnonzero((values < MISSING) | (values >= len(labels)))[0])
            raise ValueError(
                f"{name} holds the position {int(values[position])} at index {position}, "
                f"outside the {len(labels)} labels"
            )
        return values
    if isinstance(values, (str, bytes)):
        raise ValueError(f"{name} must be a sequence of labels, not one string {values!r}")
    index: dict[Hashable, int] = {label: position for position, label in enumerate(labels)}
    index[None] = MISSING
    try:
        items = values.tolist() if isinstance(values, np.ndarray) else list(values)
        codes = [index[value] for value in items]
    except (KeyError, TypeError):
        raise ValueError(_unknown_label(values, index, labels, name)) from None
    return np.array(codes, dtype=np.int64)


def _unknown_label(values: Any, index: dict[Hashable, int], labels: tuple[Hashable, ...], name: str) -> str:
    try:
        for position, value in enumerate(values):
            if not isinstance(value, Hashable) or value not in index:
                return f"{name} holds {value!r} at index {position}, which is not one of {labels!r}"
    except TypeError:
        pass
    return f"{name} must be a sequence of labels, got {type(values).__name__}"


def check_same_length(**arrays: Any) -> int:
    """Length shared by all the arrays that are given; an error names the two that differ."""
    (first_name, first), *others = ((name, array) for name, array in arrays.items() if array is not None)
    for name, array in others:
        if len(array) != len(first):
            raise ValueError(
                f"{first_name} and {name} must have the same length, got {len(first)} and {len(array)}"
            )
    return len(first)


def encode_clusters(clusters: Any, n: int, name: str = "clusters") -> tuple[Codes, int]:
    """Cluster numbers 0..R-1, every one of them in use, and R. Without clusters each unit is its own."""
    if clusters is None:
        return np.arange(n), n
    if len(clusters) != n:
        raise ValueError(f"{name} must have one entry per unit: {n} units, {len(clusters)} entries")
    if n == 0:
        return np.zeros(0, dtype=np.int64), 0
    if isinstance(clusters, np.ndarray) and clusters.dtype.kind in "iu":
        return _compress_integers(clusters)
    numbers: dict[Hashable, int] = {}
    items = clusters.tolist() if isinstance(clusters, np.ndarray) else clusters
    try:
        codes = [numbers.setdefault(value, len(numbers)) for value in items]
    except TypeError:
        raise ValueError(f"{name} must hold hashable identifiers") from None
    for value, number in numbers.items():
        if value is None or value != value:
            raise ValueError(f"{name} holds a missing identifier at index {codes.index(number)}")
    return np.array(codes, dtype=np.int64), len(numbers)


def _compress_integers(clusters: Codes) -> tuple[Codes, int]:
    smallest, largest = int(clusters.min()), int(clusters.max())
    if smallest < 0 or largest > 4 * len(clusters) + 1024:
        distinct, codes = np.unique(clusters, return_inverse=True)
        return codes, len(distinct)
    used = np.zeros(largest + 1, dtype=bool)
    used[clusters] = True
    if used.all():
        return clusters, largest + 1
    return (np.cumsum(used) - 1)[clusters], int(used.sum())


def kept_entries(values: Any, kept: NDArray[np.bool_]) -> Any:
    if isinstance(values, np.ndarray):
        return values[kept]
    return [value for value, keep in zip(values, kept.tolist(), strict=True) if keep]


def check_counts(values: Any, name: str) -> NDArray[np.float64]:
    """One-dimensional, finite, non-negative numbers."""
    try:
        counts = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers") from None
    if counts.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {counts.shape}")
    wrong = ~np.isfinite(counts) | (counts < 0)
    if wrong.any():
        position = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} holds {counts[position]} at index {position}: a count is 0 or more")
    return counts


def check_share(value: float, name: str) -> float:
    """A number between 0 and 1."""
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)
