"""Two system runs on the same items: what may be compared, and what the paired differences say.

A comparison that would mislead is refused with the reason: across units, versions, rubrics or ways of
judging. A judge's labels count only for systems on which it is trusted by itself, and only where no
difference of its errors on the two was found.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from annotate.models import Round
from calibration import stats
from calibration.design import design_in_force, of_calibration, parts_of_items
from calibration.extraction import runs_graded
from calibration.judge_figures import standings_of
from calibration.measures import Figures
from calibration.models import Judge, JudgeRun
from calibration.optional import Said, of_runs
from calibration.pairing import run_names, table_of, targets_of
from calibration.rate_measures import question_classes, repeats_behind, verdict_words
from calibration.rates import said_by_judge, said_by_people
from calibration.reports import Standing, gates_behind
from calibration.stats.arrays import encode_clusters
from calibration.stats.intervals import share_of_runs
from calibration.stats.repeated import UnitMeans
from calibration.stats.results import whole_or_float
from calibration.table import Column, Ints, Mask, Targets
from calibration.withholding import open_systems
from evalsets.labels import GROUNDING, LABELS
from evalsets.models import EvalSetVersion, SystemRun

GRAPHED = (30, 50, 100, 200, 300, 500, 1000, 2000, 5000)  # items of the picture of what a set could show


@dataclass(frozen=True)
class Side:
    """One of the two: a system run, who says what it did, and in which unit."""

    run: SystemRun
    source: str  # gold, grader:NAME or judge:NAME
    unit: str
    round: Round | None

    @property
    def version(self) -> EvalSetVersion:
        return self.run.version

    @property
    def by_judge(self) -> bool:
        return self.source.startswith("judge:")

    @property
    def judge(self) -> Judge:
        return Judge.objects.get(evalset=self.version.evalset_id, name=self.source.removeprefix("judge:"))


# What may be compared


def reasons_against(before: Side, after: Side) -> list[str]:
    """Why the two must not be compared, in sentences; none: they may."""
    reasons = []
    if before.run == after.run:
        reasons.append(_("Both sides are the same system run."))
    if before.version != after.version:
        reasons.append(
            _("They answered different versions of the eval set: {before} and {after}.").format(
                before=before.version, after=after.version
            )
        )
    if before.unit != after.unit:
        reasons.append(
            _("Their rates are in different units: per {before} and per {after}.").format(
                before=before.unit, after=after.unit
            )
        )
    if before.source != after.source:
        reasons.append(
            _("They were judged differently: by {before} and by {after}.").format(
                before=before.source, after=after.source
            )
        )
    elif not before.by_judge:
        reasons += _reasons_of_people(before, after)
    return reasons


def _reasons_of_people(before: Side, after: Side) -> list[str]:
    rubrics = [side.round.rubric_version if side.round else None for side in (before, after)]
    reasons = []
    if rubrics[0] != rubrics[1]:
        reasons.append(
            _("They were labelled under different rubric versions: {before} and {after}.").format(
                before=rubrics[0] or _("none"), after=rubrics[1] or _("none")
            )
        )
    reasons += [
        _("Round {number} did not grade {run}.").format(number=side.round.number, run=side.run)
        for side in (before, after)
        if side.round and side.run not in runs_graded(side.version, side.round)
    ]
    return reasons


# The comparison


def comparison(*, before: Side, after: Side, family: int = 1) -> Figures:
    """After minus before, rate by rate, with the verdict on the pair; or why there is none."""
    if reasons := reasons_against(before, after):
        return {"refused": reasons}
    names = run_names(before.version.runs.select_related("system").order_by("number"))
    facts: Figures = {
        "version": str(before.version),
        "source": before.source,
        "unit": before.unit,
        "before": names[before.run.pk],
        "after": names[after.run.pk],
    }
    if before.by_judge:
        return facts | _by_judge(before, after, family, names)
    facts |= {
        "rounds": sorted({side.round.number for side in (before, after) if side.round}),
        "rubric_version": str(before.round.rubric_version) if before.round else None,
    }
    said = {
        round: said_by_people(
            version=before.version, round=round, source=before.source, dimensions=tuple(LABELS)
        )
        for round in {before.round, after.round}
    }
    sides = [of_runs(said[side.round], [side.run.pk]) for side in (before, after)]
    old, new = (
        _Labels(names[side.run.pk], labels, labels["abstention"][0])
        for side, labels in zip((before, after), sides, strict=True)
    )
    return facts | _with_verdict(_differences(old, new, before.unit, family))


def _by_judge(before: Side, after: Side, family: int, names: Mapping[int, str]) -> Figures:
    """Of the dimensions in which the judge is trusted on both systems; the reason for the others."""
    judge, version = before.judge, before.version
    said: dict[int, dict[str, tuple[Targets, Column]]] = {before.run.pk: {}, after.run.pk: {}}
    youden: dict[str, float] = {}
    refused, withheld, errors = [], {}, {}
    repeats: Figures = {}
    standings = standings_of(judge=judge, version=version)
    for dimension in LABELS:
        found = standings.get(dimension)
        if found is None:
            continue
        closed = _closed_for(found, (before.run, after.run))
        if closed is not None:
            withheld[dimension] = closed
            continue
        assert found.report
        judge_run = found.report.judge_run
        error = _errors(judge_run, found.report.round, dimension, (before.run, after.run))
        if error["equal"] is False:
            refused.append(f"{dimension}: {error['sentence']}")
            continue
        of_first_calls = found.report.payload["agreement"]["judge_vs_gold"]["youden"]["value"]
        j = error.get("youden", of_first_calls)
        if j is None or j <= 0:
            sentence = _("{dimension}: by gold, the judge's labels tell nothing.")
            refused.append(sentence.format(dimension=dimension))
            continue
        errors[dimension], youden[dimension] = error, j
        for run in (before.run, after.run):
            said[run.pk][dimension] = said_by_judge(judge_run=judge_run, dimension=dimension, runs=[run])
        columns = [of_run[dimension][1] for of_run in said.values()]
        repeats |= repeats_behind(dimension, *columns).get("repeats", {})
    facts: Figures = {"judge": judge.name, "withheld": withheld}
    if repeats:
        facts["repeats"] = repeats
    if refused:
        return facts | {"refused": refused}
    if not youden:
        return facts | {"nothing": True}
    old, new = (
        _Labels(names[run.pk], said[run.pk], targets_of(runs=[run], dimension="abstention"))
        for run in (before.run, after.run)
    )
    found_rates = _differences(old, new, before.unit, family, youden)
    return facts | {"youden": youden, "errors": errors} | _with_verdict(found_rates)


def _closed_for(found: Standing, runs: Iterable[SystemRun]) -> Figures | None:
    """Why a dimension of the judge is closed for one of the runs; None where both are open by themselves."""
    if not found.trusted or not found.report:
        return found.withheld()["withheld"]
    gates = gates_behind(found.report.payload, found.report.judge_run)
    opened = open_systems(gates)
    for run in runs:
        if run.number not in gates:
            sentence = _("Run {number} of the judge, behind its latest report, did not judge {run}.")
            message = sentence.format(number=found.report.judge_run.number, run=run)
            return {"state": "UNCALIBRATED", "conditions": [{"passed": False, "message": message}]}
        if run.number not in opened or gates[run.number]["state"] != "TRUSTED":
            return {"state": gates[run.number]["state"], "conditions": gates[run.number]["conditions"]}
    return None


def _errors(judge_run: JudgeRun, round: Round, dimension: str, runs: Iterable[SystemRun]) -> Figures:
    """Whether the judge errs alike on both systems, by the gold of each, without the items of its prompt.

    Of a judge that was asked repeatedly as the rates count its labels, and so is Youden's J.
    """
    version = judge_run.version
    whole = table_of(version=version, round=round, dimension=dimension, judge_run=judge_run).leaves()
    parts = parts_of_items(design_in_force(round), version)
    table = whole.select(of_calibration(parts, whole.targets.item))
    assert table.judge is not None
    gold, judge, targets = table.blind_gold().codes, table.judge, table.targets

    def shares(mask: Mask) -> tuple[stats.Number, stats.Number]:
        return stats.sensitivity_and_specificity(
            gold[mask],
            judge.runs[mask],
            labels=targets.labels,
            clusters=targets.item[mask],
            positive=stats.BAD_LABELS if dimension == "grounding" else {"REFUSED"},
            unit=targets.unit,
        )

    first, second = (shares(targets.run == run.pk) for run in runs)
    test = stats.equal_error_test(*first, *second)
    found = test.as_dict() | {"sentence": test.explain()}
    if judge.repeats is None:
        return found
    sensitivity, specificity = (share.value for share in shares(np.ones(len(table), dtype=bool)))
    defined = sensitivity is not None and specificity is not None
    return found | {"youden": sensitivity + specificity - 1 if defined else None}


@dataclass(frozen=True)
class _Rows:
    """Of one system: what each claim or response adds, its item, and which should have a label each time."""

    units: UnitMeans
    items: Ints
    owed: Mask
    of_responses: bool = False

    @property
    def missing(self) -> int:
        return int((self.owed & (self.units.times == 0)).sum())

    @property
    def failed(self) -> float:
        """The same with the part of their labels that others lack, where they were asked repeatedly."""
        return whole_or_float(float((1 - self.units.times / self.units.runs)[self.owed].sum()))

    @property
    def left_out(self) -> dict[str, float]:
        """What is not counted, by reason; a claim that was labelled and does not count cannot be checked."""
        reasons: dict[str, float] = {"no_valid_verdict": self.missing}
        if self.of_responses:
            return reasons
        labelled = self.owed & (self.units.times > 0)
        reasons["not_decision_critical"] = int((~self.owed).sum())
        reasons["unverifiable"] = whole_or_float(float((1 - self.units.denominator)[labelled].sum()))
        return reasons

    def counted(self) -> tuple[Any, Any, Ints]:
        """Numerator, denominator and item of each claim, or of each response that counts: where each item has
        one of these, the exact paired test applies.
        """
        has = self.units.times > 0 if self.of_responses else np.ones(len(self.items), dtype=bool)
        return self.units.numerator[has], self.units.denominator[has], self.items[has]


@dataclass(frozen=True)
class _Labels:
    """What one source says of one system, and all its responses, those without a claim included."""

    name: str
    said: Said
    responses: Targets


def _differences(
    before: _Labels, after: _Labels, unit: str, family: int, youden: Mapping[str, float] | None = None
) -> Figures:
    """Every rate that both have: each side's own, and after minus before on the items they share.

    A rate for which one of the two has nothing to count is named with the reason.

    `youden` is that of the judge behind the labels, by dimension; None where people gave them.
    """
    rates: list[Figures] = []
    undefined: list[Figures] = []
    compared: dict[str, stats.Comparison] = {}
    for name, dimension, words in _rates(unit):
        if dimension not in before.said or dimension not in after.said:
            continue
        sides = [_rows(name, labels, unit) for labels in (before, after)]
        if any(not side.units.denominator.sum() for side in sides):
            undefined.append({"name": name, "label": words, "undefined": "zero_denominator"})
            continue
        old, new = sides
        (bad_old, den_old, items_old), (bad_new, den_new, items_new) = old.counted(), new.counted()
        compared[name] = stats.compare_rates(
            bad_new,
            den_new,
            bad_old,
            den_old,
            items_a=items_new,
            items_b=items_old,
            failed_a=new.failed if youden else 0,
            failed_b=old.failed if youden else 0,
            asked_a=float(new.owed.sum()),
            asked_b=float(old.owed.sum()),
            family=family,
            youden=(youden or {}).get(dimension, 1.0),
            names=(after.name, before.name),
            label=words,
            unit=unit if dimension == "grounding" else "response",
        )
        rates.append(
            {
                "name": name,
                "label": words,
                "unit": unit if dimension == "grounding" else "response",
                "before": _side_number(old, words, unit, name),
                "after": _side_number(new, words, unit, name),
                **compared[name].as_dict(),
                "in_common": _in_common(compared[name]),
                "sentence": compared[name].explain(),
                "curve": _curve(compared[name]),
            }
        )
    return {"rates": rates, "undefined": undefined, "compared": compared, "family": family}


def _in_common(compared: stats.Comparison) -> Figures | None:
    """The two rates that the difference is the difference of; each side's own counts its other items, too."""
    if compared.in_common is None:
        return None
    after, before = compared.in_common
    return {"before": before, "after": after}


def _rates(unit: str) -> list[tuple[str, str, str]]:
    of = {"claim": _("claims"), "response": _("responses"), "decision": _("decision-critical claims")}[unit]
    return [
        ("hallucination", "grounding", _("Hallucination rate of {unit}").format(unit=of)),
        ("contradicted", "grounding", _("Contradicted rate of {unit}").format(unit=of)),
        ("over_answering", "abstention", _("Over-answering")),
        ("over_refusal", "abstention", _("Over-refusal")),
        ("answer_rate", "abstention", _("Answer rate")),
    ]


def _rows(name: str, labels: _Labels, unit: str) -> _Rows:
    if name in ("hallucination", "contradicted"):
        return _claim_rows(name, *labels.said["grounding"], labels.responses, unit)
    return _response_rows(name, *labels.said["abstention"])


def _claim_rows(name: str, claims: Targets, column: Column, responses: Targets, unit: str) -> _Rows:
    chosen: Mask = claims.decision if unit == "decision" else np.ones(len(claims), dtype=bool)
    codes = np.where(chosen[:, None], column.runs, -1)
    bad_codes = [GROUNDING.index("contradicted")]
    if name == "hallucination":
        bad_codes.append(GROUNDING.index("unsupported"))
    bad, known = np.isin(codes, bad_codes), codes >= 0
    if unit != "response":
        checkable = codes != GROUNDING.index("unverifiable")
        return _Rows(UnitMeans.over(bad, checkable, known), claims.item, chosen)
    names, first = np.unique(responses.response, return_index=True)
    place = np.searchsorted(names, claims.response)
    open_claims, hits = (
        np.column_stack([np.bincount(place, weights=each, minlength=len(names)) for each in of_claims.T])
        for of_claims in (~known, bad)
    )
    settled = open_claims == 0
    means = UnitMeans.over(hits > 0, settled, settled)
    return _Rows(means, responses.item[first], np.ones(len(names), dtype=bool), of_responses=True)


def _response_rows(name: str, responses: Targets, column: Column) -> _Rows:
    verdicts = np.array(verdict_words(responses, column), dtype=object)
    verdicts = verdicts if verdicts.ndim == 2 else verdicts[:, None]
    classes = np.array([word or "" for word in question_classes(responses)], dtype=object)
    asked, hit = {
        "over_answering": (classes == "unanswerable", verdicts == "ANSWERED"),
        "over_refusal": (classes == "answerable", verdicts == "REFUSED"),
        "answer_rate": (np.ones(len(responses), dtype=bool), verdicts == "ANSWERED"),
    }[name]
    known = asked[:, None] & (verdicts != None)  # noqa: E711  (one by one, in an array)
    return _Rows(UnitMeans.over(hit, known, known), responses.item, asked, of_responses=True)


def _side_number(rows: _Rows, label: str, unit: str, name: str) -> Figures:
    of_claims = name in ("hallucination", "contradicted")
    definition = {"answer_rate": "answer-rate"}.get(name, f"abstention-rates-{name}")
    return share_of_runs(
        rows.units,
        *encode_clusters(rows.items, len(rows.items)),
        owed=rows.owed,
        label=label,
        unit=unit if of_claims else "response",
        definition=f"hallucination-rates-{name}" if of_claims else definition,
        excluded=rows.left_out,
    ).as_dict()


def _curve(compared: stats.Comparison) -> list[Figures]:
    """What a set of more or fewer items of this kind could show: it falls with their square root."""
    if compared.minimum_detectable is None or not compared.n_items:
        return []
    here = compared.minimum_detectable * np.sqrt(compared.n_items)
    sizes = sorted({*GRAPHED, compared.n_items})
    return [{"items": n, "difference": min(1.0, float(here / np.sqrt(n)))} for n in sizes]


# The verdict


def _with_verdict(found: Figures) -> Figures:
    """The verdict on the pair, and the sentence that a release note may quote."""
    compared = found.pop("compared")
    if {"over_answering", "over_refusal"} <= set(compared):
        verdict = stats.pair_verdict(compared["over_answering"], compared["over_refusal"])
        found["verdict"] = {"verdict": verdict.verdict, "note": verdict.note, "sentence": verdict.explain()}
    return found


def release_note(found: Figures) -> str:
    """The comparison in words for a release note: what was measured, by whom, and how sure."""
    head = "{after} against {before} on {version}, by {source}".format(**found)
    parts = [f"{head}: {'; '.join(_written(rate) for rate in found['rates'])}."]
    if "verdict" in found:
        parts.append(found["verdict"]["sentence"])
    if found["family"] > 1:
        parts.append(f"Each interval allows for {found['family']} comparisons made together.")
    return " ".join(parts)


def _written(rate: Figures) -> str:
    old, new, difference = rate["before"], rate["after"], rate["difference"]
    words = f"{rate['label']} {old['value']:.1%} to {new['value']:.1%}"
    if rate["blocked"]:
        return f"{words}, not comparable: {rate['blocked']}"
    if difference["value"] is None:
        return f"{words}, no item in common"
    if difference["excluded"]:
        shared = rate["in_common"]
        words += f"; on the {rate['items']} items in common {shared['before']:.1%} to {shared['after']:.1%}"
    words += f" ({100 * difference['value']:+.1f} points"
    if difference["low"] is not None:
        words += f" [{100 * difference['low']:+.1f}, {100 * difference['high']:+.1f}]"
    if rate["p"] is not None:
        words += f", p {rate['p']:.3f}" if rate["p"] >= 0.001 else ", p < 0.001"
    if "not_resolvable" in difference["flags"] and rate["minimum_detectable"] is not None:
        words += f"; not resolvable, this set shows {100 * rate['minimum_detectable']:.1f} points"
    if "nothing_resolvable" in difference["flags"]:
        words += "; so few items show no difference reliably"
    return words + ")"
