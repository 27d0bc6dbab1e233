"""Everything that a trusted judge's verdicts give: its rates, the correction, and the optional dimensions.

A figure of several dimensions is shown only where each of them may be shown, and for the same systems.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _

from calibration.figures import rate_of
from calibration.gate import INSUFFICIENT, TRUSTED
from calibration.measures import Figures
from calibration.models import Judge, JudgeRun
from calibration.optional import TOGETHER
from calibration.rates import Scope, optional_rates, said_by_judge, sources_of
from calibration.reports import Standing, gates_behind, judge_rates, standing
from calibration.withholding import open_systems, strata_of_one_run
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion, SystemRun


def judge_figures(*, judge: Judge, version: EvalSetVersion, unit: str) -> Figures:
    """The judge's rates and optional figures, each behind the gates of the dimensions that it needs."""
    figures = judge_rates(judge=judge, version=version, unit=unit)
    standings = standings_of(judge=judge, version=version)
    grounding = standings.get("grounding")
    if grounding and grounding.trusted and grounding.report and "corrected" in grounding.report.payload:
        figures["corrected"] = grounding.report.payload["corrected"]
    if set(standings) <= set(LABELS):
        return figures
    return figures | {"optional": _optional(standings, version)}


def standings_of(*, judge: Judge, version: EvalSetVersion) -> dict[str, Standing]:
    """Where the judge stands in each dimension that it was asked about here."""
    asked = {name for run in judge.runs.filter(version=version) for name in run.dimensions}
    order = [name for name in LABELS if name in asked] + sorted(asked - set(LABELS))
    return {name: standing(judge=judge, version=version, dimension=name) for name in order}


@dataclass(frozen=True)
class _Open:
    """What one passed gate opens: the runs that may be counted, and those that may be shown apart."""

    judge_run: JudgeRun
    counted: frozenset[int]
    shown: frozenset[int]


def _optional(standings: Mapping[str, Standing], version: EvalSetVersion) -> list[Figures]:
    opened = {name: _opened(found) for name, found in standings.items() if found.trusted}
    runs = {run.pk: run for run in version.runs.select_related("system").order_by("number")}
    said = {
        name: said_by_judge(
            judge_run=one.judge_run,
            dimension=name,
            runs=[run for pk, run in runs.items() if pk in one.counted],
        )
        for name, one in opened.items()
    }
    entries = optional_rates(
        said, sources_of(said, version, runs.values()), lambda needs: _scope([opened[n] for n in needs], runs)
    )
    return [*(_or_withheld(entry, standings) for entry in entries), *_closed(standings)]


def _opened(found: Standing) -> _Open:
    assert found.report
    judge_run = found.report.judge_run
    gates = gates_behind(found.report.payload, judge_run)
    pk_of = dict(judge_run.system_runs.values_list("number", "pk"))
    counted = open_systems(gates)
    return _Open(
        judge_run,
        frozenset(pk_of[number] for number in counted),
        frozenset(pk_of[number] for number in counted if gates[number]["state"] == TRUSTED),
    )


def _scope(opened: Iterable[_Open], runs: Mapping[int, SystemRun]) -> Scope:
    """The runs that every dimension opens; none where a whole that holds only together would be cut apart."""
    opened = list(opened)
    counted = frozenset.intersection(*(one.counted for one in opened))
    shown = frozenset.intersection(*(one.shown for one in opened))
    if any(not one.shown and one.counted != counted for one in opened):
        counted = shown = frozenset()
    telling = strata_of_one_run([runs[pk] for pk in counted]) if counted and not shown else []
    return Scope(counted, shown, telling)


def _or_withheld(entry: Figures, standings: Mapping[str, Standing]) -> Figures:
    """The reason in the place of a figure that no system is open for."""
    if entry["per_system"]:
        return entry
    return _withheld(entry["name"], entry["dimensions"], standings)


def _closed(standings: Mapping[str, Standing]) -> list[Figures]:
    """The figures that a closed gate keeps back: of its own dimension, and those it has a part in."""
    closed = [name for name, found in standings.items() if not found.trusted]
    own = [(name, (name,)) for name in closed if name not in LABELS]
    together = [
        (figure.name, figure.needs)
        for figure in TOGETHER
        if set(figure.needs) <= set(standings) and set(figure.needs) & set(closed)
    ]
    return [_withheld(name, needs, standings) for name, needs in (*own, *together)]


def _withheld(name: str, needs: Iterable[str], standings: Mapping[str, Standing]) -> Figures:
    needs = list(needs)
    blocking = [standings[need] for need in needs if not standings[need].trusted]
    if blocking:
        return {"name": name, "dimensions": needs, **blocking[0].withheld()}
    words = _("{dimensions} are not open for the same systems.").format(dimensions=", ".join(needs))
    conditions = [{"passed": False, "message": words}]
    return {
        "name": name,
        "dimensions": needs,
        "withheld": {"state": INSUFFICIENT, "conditions": conditions},
    }


RATES_BESIDE = ("hallucination", "over_answering", "over_refusal")


def beside_people(figures: Figures, people: Figures) -> dict[str, list[Figures]]:
    """Rate by rate, of each system that is shown: what the judge says, and what people's gold says."""
    of_people = {entry["system"]: entry for entry in people["per_system"]}
    found: dict[str, list[Figures]] = {}
    for rate in RATES_BESIDE:
        for entry in figures.get("per_system", ()):
            by_judge, by_people = (rate_of(of, rate) for of in (entry, of_people.get(entry["system"], {})))
            if by_judge and by_people and None not in (by_judge["value"], by_people["value"]):
                row = {"system": entry["system"], "judge": by_judge, "people": by_people}
                found.setdefault(rate, []).append(row)
    return found
