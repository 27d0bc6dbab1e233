"""Is a judge trusted, and are its rates within their limits? One answer for a pipeline."""

from collections.abc import Mapping

from calibration.gate import TRUSTED
from calibration.measures import Figures
from calibration.models import Judge
from calibration.rate_measures import HEADLINES
from calibration.reports import closed_systems, dimensions_judged, judge_rates, standing
from evalsets.models import EvalSetVersion

IN_ABSTENTION = (
    "over_answering",
    "over_answering_with_underspecified",
    "over_refusal",
    "needless_clarification",
)
LIMITED = tuple(name for name in HEADLINES if name != "faithfulness") + IN_ABSTENTION


def check_judge(
    *,
    judge: Judge,
    version: EvalSetVersion,
    unit: str,
    limits: Mapping[str, float],
    dimension: str | None = None,
) -> Figures:
    """Every gate and every limit, of all systems together and of each; a withheld rate exceeds its limit."""
    asked = [dimension] if dimension else dimensions_judged(judge=judge, version=version)
    gates = [line for name in asked for line in _gates(judge, version, name)] or [_never_run(judge)]
    figures = judge_rates(judge=judge, version=version, unit=unit) if limits else {}
    scopes = [(None, figures), *((entry["system"], entry) for entry in figures.get("per_system", ()))]
    rates = [_within(name, limit, system, part) for name, limit in limits.items() for system, part in scopes]
    return {
        "passed": all(line["passed"] for line in (*gates, *rates)),
        "gate": gates,
        "rates": rates,
    }


def _gates(judge: Judge, version: EvalSetVersion, dimension: str) -> list[Figures]:
    """The gate of a dimension; where it is passed, that of each system whose rates stay withheld, too."""
    found = standing(judge=judge, version=version, dimension=dimension)
    lines = [_line(judge, dimension, None, found.state, found.conditions, found.changes)]
    if found.report and found.trusted:
        for name, gate in closed_systems(found.report).items():
            lines.append(_line(judge, dimension, name, gate["state"], gate["conditions"], []))
    return lines


def _line(
    judge: Judge,
    dimension: str,
    system: str | None,
    state: str,
    conditions: list[Figures],
    changes: list[str],
) -> Figures:
    why = [condition["message"] for condition in conditions if condition["passed"] is False]
    there = f" on {system}" if system else ""
    return {
        "dimension": dimension,
        "system": system,
        "state": state,
        "passed": state == TRUSTED,
        "conditions": conditions,
        "message": " ".join([f"{dimension}: {judge} is {state}{there}.", *changes, *why]),
    }


def _never_run(judge: Judge) -> Figures:
    message = f"{judge} has not run over this version: UNCALIBRATED."
    return {
        "dimension": None,
        "system": None,
        "state": "UNCALIBRATED",
        "passed": False,
        "conditions": [],
        "message": message,
    }


def _within(name: str, limit: float, system: str | None, figures: Figures) -> Figures:
    rate = figures.get("abstention", {}).get(name) if name in IN_ABSTENTION else figures.get(name)
    if rate is None or "withheld" in rate:
        rate = {"value": None, "low": None, "high": None, "undefined": "withheld"}
    value, of = rate["value"], f" of {system}" if system else ""
    if value is None:
        words = f"{name}{of} cannot be told from its limit {limit:g}: {rate['undefined']}."
    else:
        words = f"{name}{of} is {value:.4f}, limit {limit:g}."
    return {
        "name": name,
        "system": system,
        "limit": limit,
        "value": value,
        "low": rate["low"],
        "high": rate["high"],
        "passed": value is not None and value <= limit,
        "message": words,
    }
