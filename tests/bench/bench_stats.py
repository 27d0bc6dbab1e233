"""Speed of the statistics beside scikit-learn's bare kappa, on the same data in the same run.

Run with ``./run bench stats`` or ``python -m tests.bench.bench_stats``; it exits 1 when the goal is missed.
"""

import argparse
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
from sklearn.metrics import cohen_kappa_score

from calibration.stats import cluster_bootstrap, cohen_kappa
from calibration.stats.agreement import kappa_values

SHARES = np.array([0.60, 0.12, 0.19, 0.09])
LABELS = ("supported", "contradicted", "unsupported", "unverifiable")


def label_pairs(
    pairs: int, responses: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two graders and the response of each claim, as integer arrays."""
    truth = rng.choice(4, size=pairs, p=SHARES)
    first = np.where(rng.random(pairs) < 0.9, truth, rng.choice(4, size=pairs, p=SHARES))
    second = np.where(rng.random(pairs) < 0.9, truth, rng.choice(4, size=pairs, p=SHARES))
    response = np.concatenate([np.arange(responses), rng.integers(0, responses, pairs - responses)])
    return first, second, response


def best_times(*actions: Callable[[], object], repeats: int = 7) -> list[float]:
    """Least seconds of each action; they take turns, so that a busy moment hits all of them."""
    times = [[] for _ in actions]
    for _ in range(repeats):
        for action, seconds in zip(actions, times, strict=True):
            start = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - start)
    return [min(seconds) for seconds in times]


def kappas(sums: np.ndarray) -> np.ndarray:
    tables = sums.reshape(-1, 4, 4)
    rows, cols = tables.sum(axis=2), tables.sum(axis=1)
    return kappa_values(rows.sum(axis=1), np.trace(tables, axis1=1, axis2=2), rows, cols)


def resampled(
    first: np.ndarray, second: np.ndarray, response: np.ndarray, responses: int, draws: int
) -> None:
    table = np.bincount(response * 16 + first * 4 + second, minlength=responses * 16).reshape(responses, 16)
    cluster_bootstrap(table, kappas, draws=draws, rng=np.random.default_rng(1))


def peak_memory(pairs: int, responses: int) -> int:
    """Peak bytes that one clustered kappa allocates beyond its input."""
    first, second, response = label_pairs(pairs, responses, np.random.default_rng(2))
    tracemalloc.start()
    cohen_kappa(first, second, labels=LABELS, clusters=response)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--responses", type=int, default=50_000)
    parser.add_argument("--draws", type=int, default=2_000)
    options = parser.parse_args(arguments)
    first, second, response = label_pairs(options.pairs, options.responses, np.random.default_rng(0))
    ours = cohen_kappa(first, second, labels=LABELS, clusters=response)
    theirs = cohen_kappa_score(first, second)
    if abs((ours.value or 0.0) - theirs) > 1e-12:
        print(f"The two kappas differ: {ours.value} and {theirs}.")
        return 1
    bare, clustered = best_times(
        lambda: cohen_kappa_score(first, second),
        lambda: cohen_kappa(first, second, labels=LABELS, clusters=response),
    )
    (bootstrap,) = best_times(
        lambda: resampled(first, second, response, options.responses, options.draws), repeats=2
    )
    small, large = (
        peak_memory(options.pairs // 4, options.responses // 4),
        peak_memory(options.pairs, options.responses),
    )
    rows = [
        ("scikit-learn's kappa, no interval", f"{1000 * bare:9.1f} ms"),
        (
            "kappa with jackknife over the responses",
            f"{1000 * clustered:9.1f} ms   {bare / clustered:.1f} times as fast",
        ),
        (f"{options.draws:,} cluster resamples of the claims", f"{1000 * bootstrap:9.1f} ms"),
        ("peak memory, a quarter of the data", f"{small / 1e6:9.1f} MB"),
        ("peak memory, all of the data", f"{large / 1e6:9.1f} MB   {large / small:.2f} times as much"),
    ]
    print(f"{options.pairs:,} label pairs of {options.responses:,} responses, kappa {theirs:.6f}")
    for name, figure in rows:
        print(f"{name:<42}{figure}")
    quicker, linear = clustered < bare, large < 4.5 * small
    print(
        "Goal: quicker than the bare kappa, memory linear: "
        + ("reached." if quicker and linear else "MISSED.")
    )
    return 0 if quicker and linear else 1


if __name__ == "__main__":
    sys.exit(main())
