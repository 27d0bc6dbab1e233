"""How many items, and how many of them graded twice, a question needs. No database and no framework."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import stats

SIZES = (100, 200, 300, 500, 1000, 2000, 5000, 10000)
TWICE = (100, 200, 300, 500)
# Label shares of a worked set, for a version in which nobody has labelled anything yet.
USUAL_SHARES = (0.60, 0.12, 0.19, 0.09)
SEED, DRAWS = 20240607, 400


@dataclass(frozen=True)
class Question:
    """To see a drop of `difference` from `base` with labels of this sensitivity and specificity."""

    base: float
    difference: float
    sensitivity: float
    specificity: float
    design_effect: float
    human_kappa: float
    judge_kappa: float
    bar: float
    margins: Sequence[float]
    minutes: float  # of one grader for one unit
    hourly: float | None  # what an hour costs
    labelled: int = 0  # gold labels behind the margins; 0: they are the usual ones


def plan_of(question: Question) -> dict[str, Any]:
    """Sizes, the smallest difference each would show, the overlap for the gate, and what grading takes."""
    instrument = {
        "sensitivity": question.sensitivity,
        "specificity": question.specificity,
        "design_effect": question.design_effect,
    }
    needed = stats.n_per_system(question.base, question.base - question.difference, **instrument)
    twice = None
    if question.human_kappa > question.bar:
        twice = stats.kappa_sample_size(
            question.human_kappa, question.bar, question.margins, design_effect=question.design_effect
        )
    return {
        "needed": needed,
        "cost": cost_of(needed, question),
        "twice": twice,
        "cost_twice": cost_of(2 * twice, question) if twice else None,
        "curve": [
            {
                "n": n,
                "mdd": stats.minimum_detectable_difference(question.base, n, **instrument),
                "by_people": stats.minimum_detectable_difference(
                    question.base, n, design_effect=question.design_effect
                ),
                "cost": cost_of(n, question),
            }
            for n in SIZES
        ],
        "gate": [_gate(n, question) for n in TWICE],
    }


def cost_of(units: int, question: Question) -> dict[str, Any]:
    hours = units * question.minutes / 60
    return {"hours": hours, "money": None if question.hourly is None else hours * question.hourly}


def _gate(n: int, question: Question) -> dict[str, Any]:
    power = stats.gate_power(
        n,
        question.margins,
        human_kappa=question.human_kappa,
        judge_kappa=question.judge_kappa,
        bar=question.bar,
        design_effect=question.design_effect,
        draws=DRAWS,
        rng=np.random.default_rng(SEED),
    )
    return power.as_dict() | {"cost": cost_of(2 * n, question)}
