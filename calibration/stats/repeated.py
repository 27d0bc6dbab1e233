"""Labels of repeated runs: a unit (a claim, a response) counts once, with the mean over its runs.

Labels come as one per unit, or as a table of units x runs; with one run everything is as it is without runs.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Codes, encode_labels

Flags = NDArray[np.bool_]


def encode_runs(values: Any, labels: tuple[Hashable, ...], name: str) -> Codes:
    """Positions in ``labels``, shape (units, runs), -1 where a run has none; see `encode_labels`."""
    if not (isinstance(values, np.ndarray) and values.ndim == 2):
        return encode_labels(values, labels, name)[:, None]
    if values.shape[1] == 0:
        raise ValueError(f"{name} must have at least one run")
    return encode_labels(values.ravel(), labels, name).reshape(values.shape)


@dataclass(frozen=True)
class UnitMeans:
    """What each unit adds to a share, as the mean over the runs that gave it a label.

    Attributes
    ----------
    numerator, denominator : ndarray, shape (n,)
        Between 0 and 1; 0 where no run gave the unit a label.
    times : ndarray, shape (n,)
        Runs that gave the unit a label.
    runs : int
        Runs in all.
    """

    numerator: NDArray[np.float64]
    denominator: NDArray[np.float64]
    times: NDArray[np.integer]
    runs: int

    @classmethod
    def over(cls, hit: Flags, within: Flags, known: Flags) -> "UnitMeans":
        """Of units x runs: what counts in the numerator, what in the denominator, and what has a label."""
        counted = within & known
        if known.shape[1] == 1:
            once = (hit & counted)[:, 0].astype(float), counted[:, 0].astype(float)
            return cls(*once, known[:, 0].astype(np.int64), 1)
        times = known.sum(axis=1)
        divisor = np.maximum(times, 1)
        return cls(
            (hit & counted).sum(axis=1) / divisor, counted.sum(axis=1) / divisor, times, known.shape[1]
        )

    @property
    def whole(self) -> bool:
        """Whether every unit came out alike in all its runs: then there is no more than one label each."""
        return bool(np.isin(self.numerator, (0, 1)).all() and np.isin(self.denominator, (0, 1)).all())

    def least_variance(self, share: float) -> float:
        """Variance of the share were the units independent, and never below that of as many single labels."""
        total = float(self.denominator.sum())
        apart = float(np.square(self.numerator - share * self.denominator).sum()) / total**2
        return max(apart, share * (1 - share) / float(self.denominator @ self.times))
