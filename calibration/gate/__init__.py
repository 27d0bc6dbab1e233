"""The trust gate: policy and evidence in, one decision with every condition out."""

from collections.abc import Hashable, Mapping

from calibration.gate.conditions import Sample, human_agreement, identity, sufficiency, trust
from calibration.gate.terms import (
    CONDITION_ORDER,
    CONDITION_TITLES,
    INSUFFICIENT,
    NOT_TRUSTED,
    RUBRIC_NOT_READY,
    STALE,
    STATES,
    TRUSTED,
    UNCALIBRATED,
    Condition,
    GateDecision,
    GateEvidence,
    GatePolicy,
    rules_without_classes,
)

__all__ = [
    "CONDITION_ORDER",
    "CONDITION_TITLES",
    "INSUFFICIENT",
    "NOT_TRUSTED",
    "RUBRIC_NOT_READY",
    "STALE",
    "STATES",
    "TRUSTED",
    "UNCALIBRATED",
    "Condition",
    "GateDecision",
    "GateEvidence",
    "GatePolicy",
    "decide",
    "decide_by_system",
    "rules_without_classes",
]


def decide(evidence: GateEvidence | None, policy: GatePolicy | None = None) -> GateDecision:
    """Judge a calibration sample by the policy.

    The state is the first that applies: UNCALIBRATED (no evidence), STALE, INSUFFICIENT, RUBRIC_NOT_READY,
    NOT_TRUSTED, TRUSTED. Conditions of later states are then not evaluated. A judge whose fingerprint cannot
    be known is at most NOT_TRUSTED.

    Parameters
    ----------
    evidence : GateEvidence or None
        The calibration sample; None or one without a target is UNCALIBRATED.
    policy : GatePolicy, optional
        Thresholds; the defaults otherwise.

    Returns
    -------
    GateDecision
        With one condition per name of `CONDITION_ORDER`.
    """
    policy = policy or GatePolicy()
    if evidence is None or len(evidence.judge) == 0 or evidence.valid_and_total()[1] == 0:
        return _decision(UNCALIBRATED, {}, policy, ())
    sample = Sample(evidence, policy)
    flags = () if sample.gold is not None else ("gold_incomplete",)
    conditions: dict[str, Condition] = {}
    for state, evaluate in (
        (STALE, identity),
        (INSUFFICIENT, sufficiency),
        (RUBRIC_NOT_READY, human_agreement),
        (NOT_TRUSTED, trust),
    ):
        conditions |= {condition.name: condition for condition in evaluate(sample)}
        if any(condition.passed is False for condition in conditions.values()):
            return _decision(state, conditions, policy, flags)
    unknown = evidence.fingerprint_matches is None
    return _decision(NOT_TRUSTED if unknown else TRUSTED, conditions, policy, flags)


def decide_by_system(
    evidence: GateEvidence, policy: GatePolicy | None = None
) -> dict[Hashable, GateDecision]:
    """The decision for each system by itself, with the smaller number of targets a system must have."""
    if evidence.systems is None:
        raise ValueError("systems must be given: one system per target")
    rows: dict[Hashable, list[int]] = {}
    for row, system in enumerate(evidence.systems):
        rows.setdefault(system, []).append(row)
    smaller = (policy or GatePolicy()).per_system()
    return {system: decide(evidence.restricted_to(chosen), smaller) for system, chosen in rows.items()}


def _decision(
    state: str, conditions: Mapping[str, Condition], policy: GatePolicy, flags: tuple[str, ...]
) -> GateDecision:
    thresholds = {
        "valid_verdicts": policy.min_valid_rate,
        "calibration_age": policy.max_age_days,
        "targets": policy.min_targets,
        "responses": policy.min_responses,
        "gold_positive": policy.min_positive,
        "gold_negative": policy.min_negative,
        "human_agreement": policy.min_human_agreement,
        "judge_agreement": policy.min_judge_agreement,
        "non_inferiority": -policy.non_inferiority_margin,
        "youden": policy.min_youden,
    }
    listed = tuple(
        conditions.get(name) or Condition(name, None, None, thresholds.get(name), f"{title}: not evaluated.")
        for name, title in CONDITION_TITLES.items()
    )
    return GateDecision(state, listed, policy, flags)
