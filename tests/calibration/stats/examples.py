"""Worked examples of the field, as label columns."""

import os
from pathlib import Path

import numpy as np
import pytest

GROUNDING = ("supported", "contradicted", "unsupported", "unverifiable")

K1 = [[52, 1, 5, 2], [1, 9, 2, 0], [4, 2, 12, 1], [1, 0, 2, 6]]
K2 = [[18, 2, 1], [3, 30, 0], [1, 1, 4]]
K3 = [[20, 5], [10, 15]]
K4 = [[130, 56], [9, 5]]
K5 = [[118, 5], [2, 0]]

CL1_DENOMINATORS = [8, 6, 10, 5, 7, 9, 4, 12, 6, 8, 5, 7]
CL1_BAD = [0, 0, 5, 0, 1, 0, 4, 0, 2, 0, 3, 0]

K6 = ["SS SS SU", "SS CC", "UU US UU SS", "SS SS", "VV UV SS", "CC CU SS SS"]


def columns(table):
    """Rows and columns of a contingency table as two arrays of positions."""
    table = np.asarray(table)
    rows, cols = np.indices(table.shape)
    return np.repeat(rows.ravel(), table.ravel()), np.repeat(cols.ravel(), table.ravel())


def words(table, labels):
    """The same as two lists of labels."""
    rows, cols = columns(table)
    return [labels[i] for i in rows], [labels[j] for j in cols]


def letters(size):
    return tuple("abcdefghijklmnopqrstuvwxyz"[:size])


def k6():
    first = [pair[0] for response in K6 for pair in response.split()]
    second = [pair[1] for response in K6 for pair in response.split()]
    item = [number for number, response in enumerate(K6) for _ in response.split()]
    return first, second, item


def shared(name):
    """A file of the shared data folder beside the checkout; the test is skipped where it is absent."""
    root = Path(os.environ.get("TOUCHSTONE_SHARED") or Path(__file__).resolve().parents[4] / "shared")
    path = root / "data" / name
    if not path.exists():
        pytest.skip(f"the shared data folder is not here ({name})")
    return path
