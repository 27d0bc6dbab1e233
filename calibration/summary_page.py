"""What the one-page report shows of its figures: rows, limits in plain words, the way to get each again."""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calibration.gate import TRUSTED
from calibration.measures import Figures
from calibration.rate_measures import HEADLINES

JUDGES_SHOWN = 8
# Name -> where it stands among the rates, as in the manifest of a gold export.
ALWAYS = {name: (name,) for name in HEADLINES} | {
    name: ("abstention", name) for name in ("over_answering", "over_refusal")
}
WHERE_DEFINED = {
    name: ("abstention", name) for name in ("clarification", "needless_clarification", "informativeness")
}


def page_of(payload: Figures, warnings: list[str]) -> Figures:
    """The context of the page; `warnings` are those of the composition, in the reader's language."""
    trusted = [judge for judge in payload["judges"] if "withheld" not in judge.get("rates", {"withheld": 1})]
    judges = sorted(payload["judges"], key=lambda judge: judge not in trusted)
    return {
        "agreements": [_agreement(payload, name) for name in payload["graded"]],
        "graders": _graders(payload),
        "rates": list(_rates(payload, trusted)),
        "trusted": trusted,
        "gates": [_gate(judge, gate, payload) for judge in judges[:JUDGES_SHOWN] for gate in judge["gates"]],
        "judges_not_shown": max(0, len(judges) - JUDGES_SHOWN),
        "systems": _systems(payload),
        "limits": list(limits(payload, warnings)),
        "commands": commands(payload),
    }


# Rows


def _agreement(payload: Figures, dimension: str) -> Figures:
    found, bar = payload["agreement"][dimension], payload["bar"]
    number = found["headline"]["number"]
    return {
        "dimension": dimension,
        "unit": found["unit"],
        "measure": found["headline"]["measure"],
        "number": number,
        "twice": found["n_labelled_twice"],
        "targets": found["n_targets"],
        "lowest": found["lowest_label"],
        "state": _against(number, bar),
        "path": f"agreement.{dimension}.headline.number",
    }


def _against(number: Figures, bar: float) -> str:
    """Where a kappa stands: clears the bar, cannot be told from it, is below it, or is undefined."""
    if number["value"] is None:
        return "undefined"
    if number["value"] < bar:
        return "below"
    return "clears" if number["low"] is not None and number["low"] >= bar else "open"


def _graders(payload: Figures) -> list[Figures]:
    said: dict[str, Figures] = {}
    for dimension in payload["graded"]:
        for grader in payload["agreement"][dimension]["graders"]:
            said.setdefault(grader["name"], {})[dimension] = grader["n"]
    return [{"name": name, "labels": labels, "n": sum(labels.values())} for name, labels in said.items()]


def _at(figures: Figures, path: tuple[str, ...]) -> Any:
    found: Any = figures
    for name in path:
        if not isinstance(found, dict):
            return None
        if "withheld" in found:
            return found
        found = found.get(name)
    return found


def _rates(payload: Figures, trusted: list[Figures]) -> Iterator[Figures]:
    for name, path in (ALWAYS | WHERE_DEFINED).items():
        gold = _at(payload["rates"], path)
        if gold is None or (name in WHERE_DEFINED and gold["value"] is None):
            continue
        by_judge = [_at(judge["rates"], path) for judge in trusted]
        yield {"name": name, "gold": gold, "judges": by_judge, "path": ".".join(("rates", *path))}


def _gate(judge: Figures, gate: Figures, payload: Figures) -> Figures:
    failing = [condition for condition in gate["conditions"] if condition["passed"] is False]
    return {
        "judge": judge,
        "gate": gate,
        "failing": failing,
        "by_graders": _by_graders(gate),
        "command": _of_judge(payload, judge, gate),
    }


def _by_graders(gate: Figures) -> Figures | None:
    """What the gate went by where gold is incomplete: the judge's mean kappa with the graders."""
    if "gold_incomplete" not in (gate["cohen_kappa"] or {}).get("flags", ()):
        return None
    found = [one for one in gate["conditions"] if one["name"] == "judge_agreement"]
    return found[0] if found and found[0]["passed"] is not None else None


def _systems(payload: Figures) -> list[Figures]:
    rates = {entry["system"]: entry for entry in payload["rates"]["per_system"]}
    return [system | {"rates": rates.get(system["name"], {})} for system in payload["systems"]]


def ladder_rows(payload: Figures) -> list[Figures]:
    """Kappas against the bar: of the graders in each dimension, then of each judge with gold."""
    rows = [
        {"name": _("graders: {dimension}").format(dimension=name), "kind": "people", "kappa": number}
        for name in payload["graded"]
        if (number := payload["agreement"][name]["headline"]["number"])["value"] is not None
    ]
    return rows + [
        {"name": _name_in_ladder(judge, gate), "kind": "judge", "kappa": gate["cohen_kappa"]}
        for judge in payload["judges"][:JUDGES_SHOWN]
        for gate in judge["gates"]
        if gate["cohen_kappa"] and gate["cohen_kappa"]["value"] is not None
    ]


def _name_in_ladder(judge: Figures, gate: Figures) -> str:
    name = f"{judge['name']}: {gate['dimension']}"
    if "gold_incomplete" in gate["cohen_kappa"]["flags"]:
        return _("{name}, settled only").format(name=name)
    return name


# The way back to every figure


def version_name(payload: Figures) -> str:
    return f"{payload['version']['evalset']}@{payload['version']['number']}"


def commands(payload: Figures) -> dict[str, str]:
    name, round = version_name(payload), payload["round"]["number"]
    return {
        "agreement": f"agreement {name} --round {round}",
        "rates": f"rates {name} --round {round}",
        "gold": f"export_gold {name} --round {round} --out DIR",
        "recompute": "recompute DIR",
        "version": f"export_version {name} --out FILE",
    }


def _of_judge(payload: Figures, judge: Figures, gate: Figures) -> str:
    run = f" --run {gate['run']}" if gate["run"] else ""
    return (
        f"calibration_report {version_name(payload)} --judge {judge['name']}{run} "
        f"--dimension {gate['dimension']} --round {payload['round']['number']}"
    )


# Limits


def limits(payload: Figures, warnings: list[str]) -> Iterator[str]:
    """What the numbers do not say, the most serious first, one sentence each."""
    yield from _limits_of_gold(payload)
    for dimension in payload["graded"]:
        yield from _limits_of_agreement(payload, dimension)
    yield from _limits_of_claims(payload)
    yield from _limits_of_judges(payload)
    yield from warnings
    yield from _limits_of_scope(payload)


def _limits_of_gold(payload: Figures) -> Iterator[str]:
    missing = payload["rates"].get("missing", {})
    worst = payload["rates"].get("hallucination", {}).get("worst_case")
    if undecided := missing.get("unresolved", 0):
        yield ngettext(
            "On {n} claim the graders differ and nobody has decided: gold holds only the easier rest.",
            "On {n} claims the graders differ and nobody has decided: gold holds only the easier rest.",
            undecided,
        ).format(n=undecided)
    if worst:
        yield _(
            "Claims without gold are in no rate. Had all of them been good, the hallucination rate would be "
            "{low}; had all been bad, {high}."
        ).format(low=_percent(worst["low"]), high=_percent(worst["high"]))
    for dimension in payload["graded"]:
        count = payload["counts"][dimension]
        if count["unresolved"]:
            yield _("{dimension}: {gold} of {all} targets have a gold label.").format(
                dimension=dimension, gold=count["gold"], all=count["targets"]
            )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\u202f%"


def _limits_of_agreement(payload: Figures, dimension: str) -> Iterator[str]:
    found = _agreement(payload, dimension)
    bar = f"{payload['bar']:.2f}"
    if found["state"] == "below":
        yield _(
            "{dimension}: the graders agree less than the bar of {bar} asks for, so its labels are not ready "
            "to be quoted; the rubric comes first."
        ).format(dimension=dimension, bar=bar)
    elif found["state"] == "open":
        yield _(
            "{dimension}: agreement is above the bar of {bar}, but too little was labelled twice to be sure."
        ).format(dimension=dimension, bar=bar)
    elif found["state"] == "undefined":
        yield _("{dimension}: how far the graders agree cannot be said.").format(dimension=dimension)
    if found["twice"] < found["targets"]:
        yield _("{dimension}: {twice} of {all} targets were labelled by two people.").format(
            dimension=dimension, twice=found["twice"], all=found["targets"]
        )


def _limits_of_claims(payload: Figures) -> Iterator[str]:
    hallucination = payload["rates"].get("hallucination", {})
    if "mostly_unverifiable" in hallucination.get("flags", ()):
        yield _(
            "More than 20 % of the claims are unverifiable: the rate covers only what the sources decide."
        )
    if payload["measured"]["claims"] and not payload["extraction"]["responses_audited"]:
        yield _(
            "Nobody has checked how the claims were extracted: missed or badly split ones are in no figure."
        )
    few = [
        entry["label"]
        for entry in (hallucination, *payload["rates"].get("abstention", {}).values())
        if isinstance(entry, dict)
        and entry.get("value") is not None
        and "too_few_clusters" in entry.get("flags", ())
    ]
    if few:
        yield _("Fewer than ten items stand behind: {names}. These intervals are rough.").format(
            names=", ".join(dict.fromkeys(few))
        )


def _limits_of_judges(payload: Figures) -> Iterator[str]:
    gates = [(judge, gate) for judge in payload["judges"] for gate in judge["gates"]]
    if not any("withheld" not in judge.get("rates", {"withheld": 1}) for judge in payload["judges"]):
        yield _("No judge is trusted here: every rate on this page comes from people.")
    for judge in payload["judges"]:
        for dimension, behind in judge.get("rates", {}).get("repeats", {}).items():
            yield _(
                "{dimension} by {judge}: the mean of {runs} runs of each target; its gate and kappa rest on "
                "the first."
            ).format(dimension=dimension, judge=judge["name"], runs=behind["runs"])
    for judge, gate in gates:
        if gate["state"] == TRUSTED and gate["same_family"]:
            yield _(
                "{judge} is of the same model family as {systems}: a judge tends to favour its own kind."
            ).format(judge=judge["name"], systems=", ".join(gate["same_family"]))
        if gate["closed_systems"]:
            yield _("{dimension}: {judge} is not trusted on {systems}; its rates leave them out.").format(
                dimension=gate["dimension"], judge=judge["name"], systems=", ".join(gate["closed_systems"])
            )


def _limits_of_scope(payload: Figures) -> Iterator[str]:
    if len(payload["systems"]) > 1:
        yield _(
            "Rates over all {n} systems answer no question about any of them: read them system by system."
        ).format(n=len(payload["systems"]))
    yield _(
        "The numbers hold for these {n} inputs, this rubric and these systems as they were; they are "
        "compared with no rate of another unit, version or rubric."
    ).format(n=payload["measured"]["items"])
