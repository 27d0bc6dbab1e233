"""The words of the gate: its states and policy, the evidence, a condition and a decision."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from calibration.stats.arrays import encode_labels
from calibration.stats.labels import ABSTENTION_LABELS, BAD_LABELS, GROUNDING_LABELS

UNCALIBRATED = "UNCALIBRATED"
STALE = "STALE"
INSUFFICIENT = "INSUFFICIENT"
RUBRIC_NOT_READY = "RUBRIC_NOT_READY"
NOT_TRUSTED = "NOT_TRUSTED"
TRUSTED = "TRUSTED"
STATES = (UNCALIBRATED, STALE, INSUFFICIENT, RUBRIC_NOT_READY, NOT_TRUSTED, TRUSTED)


@dataclass(frozen=True)
class GatePolicy:
    """Every threshold of the gate; stored with each decision.

    Attributes
    ----------
    min_valid_rate : float
        Valid verdicts among the calibration targets.
    min_targets, min_targets_per_system : int
        Claims (or responses) with two graders and a verdict.
    min_responses : int
        Responses that these claims come from (not asked for on responses themselves).
    min_positive, min_negative : int
        Gold bad and gold not-bad claims (REFUSED and ANSWERED responses).
    min_human_agreement : float
        Human-human kappa (alpha with more than two graders).
    min_judge_agreement : float
        Lower limit of judge-gold kappa.
    non_inferiority_margin : float
        How far the judge may fall behind a second human.
    min_youden : float
        Lower limit of sensitivity + specificity - 1.
    max_age_days : int
        Age at which a calibration goes stale.
    level : float
        Confidence level of the limits.
    """

    min_valid_rate: float = 0.98
    min_targets: int = 100
    min_targets_per_system: int = 50
    min_responses: int = 30
    min_positive: int = 20
    min_negative: int = 20
    min_human_agreement: float = 0.60
    min_judge_agreement: float = 0.60
    non_inferiority_margin: float = 0.10
    min_youden: float = 0.50
    max_age_days: int = 90
    level: float = 0.95

    def __post_init__(self) -> None:
        for name in ("min_valid_rate", "non_inferiority_margin"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)!r}")
        for name in ("min_human_agreement", "min_judge_agreement", "min_youden"):
            if not -1 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must lie between -1 and 1, got {getattr(self, name)!r}")
        for name in (
            "min_targets",
            "min_targets_per_system",
            "min_responses",
            "min_positive",
            "min_negative",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, got {getattr(self, name)!r}")
        if self.max_age_days < 1:
            raise ValueError(f"max_age_days must be at least 1, got {self.max_age_days!r}")
        if not 0.5 < self.level < 1:
            raise ValueError(f"level must lie between 0.5 and 1, got {self.level!r}")

    def per_system(self) -> "GatePolicy":
        """The same thresholds with the smaller number of targets that one system must have."""
        return replace(self, min_targets=self.min_targets_per_system)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class DimensionRules:
    """What the gate needs to know of a dimension."""

    labels: tuple[str, ...]
    positive: frozenset[str]
    negative: frozenset[str]
    positive_name: str
    negative_name: str
    unit: str


DIMENSIONS: Mapping[str, DimensionRules] = {
    "grounding": DimensionRules(
        GROUNDING_LABELS,
        BAD_LABELS,
        frozenset(GROUNDING_LABELS) - BAD_LABELS,
        "bad",
        "not-bad",
        "claim",
    ),
    "abstention": DimensionRules(
        ABSTENTION_LABELS,
        frozenset({"REFUSED"}),
        frozenset({"ANSWERED"}),
        "REFUSED",
        "ANSWERED",
        "response",
    ),
}


def rules_without_classes(labels: Sequence[str], unit: str) -> DimensionRules:
    """Of a dimension whose labels are data: none of them is known to be the bad one."""
    return DimensionRules(tuple(labels), frozenset(), frozenset(), "", "", unit)


@dataclass(frozen=True)
class GateEvidence:
    """The calibration sample of one judge on one dimension: one row per overlap target.

    Attributes
    ----------
    dimension : str
        grounding or abstention; any other one with `own_rules`.
    graders : mapping of str to sequence
        Each grader's labels, shape (n,), before adjudication; None where a grader gave none.
    judge : sequence, shape (n,)
        The judge's labels; None where it has no valid verdict.
    clusters : sequence, shape (n,)
        Item of each target.
    gold : sequence, shape (n,), or None
        Gold labels that the judge did not influence; None where a target is not resolved.
    gold_complete : bool
        Whether every overlap target of the calibration sample is resolved. Until then, and wherever `gold`
        has a hole on such a target, the graders stand in.
    responses : sequence, shape (n,), or None
        Response of each target; by default the item.
    systems : sequence, shape (n,), or None
        System of each target, for `decide_by_system`.
    fingerprint_matches : bool or None
        Whether the judge is still the one that was calibrated; None where that cannot be known (imported).
    asked : sequence of bool, shape (n,), or None
        Whether the judge was asked about the target; by default about every one. A target it was not asked
        about counts for the agreement of the graders and is no missing verdict.
    age_days : float or None
        Age of the calibration.
    own_rules : DimensionRules or None
        Labels and unit of an optional dimension.
    """

    dimension: str
    graders: Mapping[str, Sequence[Hashable]]
    judge: Sequence[Hashable]
    clusters: Sequence[Hashable]
    gold: Sequence[Hashable] | None = None
    gold_complete: bool = False
    responses: Sequence[Hashable] | None = None
    systems: Sequence[Hashable] | None = None
    fingerprint_matches: bool | None = True
    asked: Sequence[bool] | None = None
    age_days: float | None = None
    own_rules: DimensionRules | None = None

    def __post_init__(self) -> None:
        if self.dimension not in DIMENSIONS and self.own_rules is None:
            raise ValueError(f"dimension must be one of {tuple(DIMENSIONS)}, got {self.dimension!r}")
        n = len(self.judge)
        columns: dict[str, Any] = {f"graders[{name!r}]": column for name, column in self.graders.items()}
        columns |= {"clusters": self.clusters, "gold": self.gold}
        columns |= {"responses": self.responses, "systems": self.systems, "asked": self.asked}
        for name, column in columns.items():
            if column is not None and len(column) != n:
                raise ValueError(f"{name} and judge must have the same length, got {len(column)} and {n}")
        if self.gold_complete and self.gold is None:
            raise ValueError("gold must be given when gold_complete is true")

    @property
    def rules(self) -> DimensionRules:
        return self.own_rules or DIMENSIONS[self.dimension]

    def valid_and_total(self) -> tuple[int, int]:
        """Valid verdicts among the targets that the judge was asked about, and how many those are."""
        valid = encode_labels(self.judge, self.rules.labels, "judge") >= 0
        asked = np.ones_like(valid) if self.asked is None else np.asarray(self.asked, dtype=bool)
        return int((valid & asked).sum()), int(asked.sum())

    def restricted_to(self, rows: Sequence[int]) -> "GateEvidence":
        """The evidence of some rows only."""

        def pick(column: Any) -> Any:
            if column is None or isinstance(column, np.ndarray):
                return column if column is None else column[list(rows)]
            return [column[row] for row in rows]

        return replace(
            self,
            graders={name: pick(column) for name, column in self.graders.items()},
            judge=pick(self.judge),
            clusters=pick(self.clusters),
            gold=pick(self.gold),
            responses=pick(self.responses),
            systems=pick(self.systems),
            asked=pick(self.asked),
        )


@dataclass(frozen=True)
class Condition:
    """One condition of the gate.

    Attributes
    ----------
    passed : bool or None
        None where it was not evaluated or cannot be known.
    value, threshold : float or None
        The number that is compared, and its bar.
    estimate : float or None
        The point estimate, where `value` is a limit of its interval.
    missing : int or None
        How many more are needed, roughly where the message says so.
    """

    name: str
    passed: bool | None
    value: float | None
    threshold: float | None
    message: str
    estimate: float | None = None
    missing: int | None = None

    def as_dict(self) -> dict[str, Any]:
        condition = {
            "name": self.name,
            "passed": self.passed,
            "value": self.value,
            "threshold": self.threshold,
            "message": self.message,
        }
        for key in ("estimate", "missing"):
            if getattr(self, key) is not None:
                condition[key] = getattr(self, key)
        return condition


@dataclass(frozen=True)
class GateDecision:
    """The gate's state with every condition, the policy it was judged by, and what stood in for gold."""

    state: str
    conditions: tuple[Condition, ...]
    policy: GatePolicy
    flags: tuple[str, ...] = ()

    @property
    def trusted(self) -> bool:
        return self.state == TRUSTED

    @property
    def failing(self) -> tuple[Condition, ...]:
        return tuple(condition for condition in self.conditions if condition.passed is False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "conditions": [condition.as_dict() for condition in self.conditions],
            "policy": self.policy.as_dict(),
            "flags": list(self.flags),
        }

    def explain(self) -> str:
        """The decision in one plain sentence."""
        if self.state == TRUSTED:
            return "The judge may be trusted on this dimension: every condition holds."
        reasons = [condition.message for condition in self.conditions if condition.passed is False]
        if self.state == NOT_TRUSTED and not reasons:
            reasons = [condition.message for condition in self.conditions if condition.passed is None]
        return f"{self.state}: " + " ".join(reasons or ["nothing was calibrated yet."])


CONDITION_TITLES: Mapping[str, str] = {
    "fingerprint": "The judge is the one that was calibrated",
    "calibration_age": "The calibration is recent",
    "valid_verdicts": "Enough verdicts are valid",
    "targets": "Enough targets",
    "responses": "Enough responses",
    "gold_positive": "Enough positive targets",
    "gold_negative": "Enough negative targets",
    "human_agreement": "People agree with each other",
    "judge_agreement": "The judge agrees with gold",
    "non_inferiority": "The judge is no worse than a second person",
    "youden": "The judge separates positive from negative",
}
CONDITION_ORDER = tuple(CONDITION_TITLES)
