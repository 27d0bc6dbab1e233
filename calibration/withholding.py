"""Which of a judge's rates may be shown: of the systems for which it is trusted, and of no other.

A rate over all systems is a rate over those, too: with one system withheld and the rest shown, the whole
would give the withheld one away, and would carry its errors.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from calibration.gate import INSUFFICIENT, TRUSTED, UNCALIBRATED
from calibration.measures import Figures
from calibration.models import JudgeRun
from calibration.pairing import run_names
from calibration.rate_measures import HEADLINES
from calibration.rates import Answers, rates_of_judge_run
from evalsets.models import Response, SystemRun

Gates = Mapping[int, Figures]  # number of a system run -> the gate's decision there


def open_systems(gates: Gates) -> frozenset[int]:
    """The system runs whose verdicts may be counted, once the gate over all of them is passed.

    Where no system by itself has enough to be told, and none fails, all that were assessed count together.
    """
    trusted = frozenset(number for number, gate in gates.items() if gate["state"] == TRUSTED)
    assessed = {number: gate["state"] for number, gate in gates.items() if gate["state"] != UNCALIBRATED}
    if trusted or any(state != INSUFFICIENT for state in assessed.values()):
        return trusted
    return frozenset(assessed)


def gates_of_runs(judge_run: JudgeRun, per_system: list[Figures], nothing: Figures) -> dict[int, Figures]:
    """The decision for each judged system run; `nothing` for one in which nobody labelled anything twice."""
    found = {entry.get("system_run"): entry["gate"] for entry in per_system}
    numbers = judge_run.system_runs.order_by("number").values_list("number", flat=True)
    return {number: found.get(number, nothing) for number in numbers}


def answers_of(judge_run: JudgeRun, gates: Gates) -> Answers:
    """What a judge that is trusted in abstention may tell of single responses."""
    shown = [number for number in open_systems(gates) if gates[number]["state"] == TRUSTED]
    runs = judge_run.system_runs.filter(number__in=shown).values_list("pk", flat=True)
    return Answers(judge_run, frozenset(runs))


def open_rates(
    *, judge_run: JudgeRun, dimension: str, unit: str, gates: Gates, answers: Answers | None = None
) -> Figures:
    """Rates of a judge that passed its gate; of a system for which it did not, the reason instead."""
    runs = list(judge_run.system_runs.select_related("system").order_by("number"))
    names = run_names(runs)
    opened = open_systems(gates)
    kept = [run for run in runs if run.number in opened]
    shown = {run.number for run in kept if gates[run.number]["state"] == TRUSTED}
    closed = [run for run in runs if run.number not in opened]
    left_out = [{"system": names[run.pk], "state": gates[run.number]["state"]} for run in closed]
    figures: Figures = {"per_system": [], "per_stratum": []}
    if kept:
        figures = rates_of_judge_run(
            judge_run=judge_run, dimension=dimension, unit=unit, runs=kept, answers=answers
        )
    else:
        figures |= hidden(dimension, _reason_of_all(gates, left_out))
    rates = dict(zip([run.number for run in kept], figures["per_system"], strict=True))
    figures["per_system"] = [
        {**rates[run.number], "system": names[run.pk]}
        if run.number in shown
        else {"system": names[run.pk]} | hidden(dimension, reason_of(gates[run.number]))
        for run in runs
    ]
    if "per_sample" in figures:
        figures["per_sample"] = _samples_shown(figures["per_sample"], kept, shown, names)
    telling = strata_of_one_run(kept) if kept and not shown else []
    figures["per_stratum"] = [group for group in figures["per_stratum"] if group["name"] not in telling]
    figures["left_out_strata"] = telling
    figures["judge_run"] = judge_run.number
    figures["systems"] = list(names.values())
    figures["left_out_systems"] = {dimension: left_out} if left_out else {}
    return figures


def _samples_shown(
    samples: list[Figures], kept: Sequence[SystemRun], shown: Set[int], names: Mapping[int, str]
) -> list[Figures]:
    """The repeats of systems that are shown by themselves."""
    of_name = {name: run for run, name in zip(kept, run_names(kept).values(), strict=True)}
    runs = [(entry, of_name[entry["system"]]) for entry in samples]
    return [entry | {"system": names[run.pk]} for entry, run in runs if run.number in shown]


def strata_of_one_run(runs: Sequence[SystemRun]) -> list[str]:
    """Strata with a value that only one of the runs has: their rows would tell the rate of that system."""
    runs_with: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run, strata in Response.objects.filter(run__in=runs).values_list("run_id", "item__strata"):
        for pair in strata.items():
            runs_with[pair].add(run)
    return sorted({name for (name, _value), having in runs_with.items() if len(having) == 1})


def _reason_of_all(gates: Gates, left_out: list[Figures]) -> Figures:
    told = [gate for gate in gates.values() if gate["state"] not in (INSUFFICIENT, UNCALIBRATED)]
    worst = (told or list(gates.values()))[0]
    return {"withheld": reason_of(worst)["withheld"] | {"systems": left_out}}


def reason_of(gate: Figures) -> Figures:
    return {"withheld": {"state": gate["state"], "conditions": gate["conditions"]}}


def hidden(dimension: str, reason: Figures) -> Figures:
    """The reason in the place of every rate of a dimension."""
    return dict.fromkeys(HEADLINES if dimension == "grounding" else ("abstention",), reason)
