"""Calibration reports: built once, frozen, and asked later whether they still hold.

A judge's rates come out of `judge_rates` and of a trusted report only: whatever shows them gets the reason
instead while the gate is not passed.
"""

import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import Round
from calibration import evidence as sample
from calibration.baselines import baselines_of
from calibration.computed import members_of
from calibration.correcting import corrected_share
from calibration.design import (
    SAMPLING,
    design_facts,
    design_in_force,
    of_calibration,
    parts_of_items,
    tried_on,
)
from calibration.extraction import extraction_of, runs_graded, with_extraction
from calibration.findings import alarms_about
from calibration.gate import STALE, TRUSTED, UNCALIBRATED, GateDecision, decide, decide_by_system
from calibration.measures import (
    Figures,
    gold_is_settled,
    judge_agreement_of,
    kappa_of,
    pair_figures,
    with_incomplete_gold,
)
from calibration.models import CalibrationReport, CalibrationSplit, GoldDoubt, Judge, JudgeRun, Verdict
from calibration.pairing import run_names, table_of
from calibration.queries import kin_of, models_in
from calibration.rate_measures import HEADLINES, merged
from calibration.rates import Answers, human_rates
from calibration.services import fingerprint_of, requested_of
from calibration.table import Group, Table
from calibration.thresholds import (
    differences,
    in_words,
    policy_in_force,
    server_policy,
    thresholds_of_run,
)
from calibration.withholding import answers_of, gates_of_runs, hidden, open_rates, open_systems
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion, SystemRun

PAYLOAD_VERSION = 2
GRADERS_APART = 2  # with more graders, systems and strata are shown against gold only


class NotReportable(Exception):
    """A report cannot be built; the message is a sentence for the person who asked."""


# Building


@transaction.atomic
def build_report(*, judge_run: JudgeRun, round: Round, dimension: str, person=None) -> CalibrationReport:
    """Assess a judge run against the labels of a round. The same labels and verdicts give the same report."""
    _refuse(judge_run, round, dimension)
    JudgeRun.objects.select_for_update().get(pk=judge_run.pk)
    payload = payload_of(judge_run=judge_run, round=round, dimension=dimension)
    reports = CalibrationReport.objects.filter(judge_run=judge_run)
    latest = reports.filter(round=round, dimension=dimension).order_by("-number").first()
    if latest and _same(latest.payload, payload):
        return latest
    return CalibrationReport.objects.create(
        judge_run=judge_run,
        round=round,
        dimension=dimension,
        number=(reports.aggregate(last=Max("number"))["last"] or 0) + 1,
        gate_state=payload["gate"]["state"],
        payload=payload,
        created_by=person,
    )


def _refuse(judge_run: JudgeRun, round: Round, dimension: str) -> None:
    if judge_run.sentinel_plan_id is not None:
        raise NotReportable(_("A sentinel run looks at a chosen few targets: it calibrates nothing."))
    if judge_run.version_id != round.version_id:
        raise NotReportable(_("The judge run and the round belong to different versions."))
    if dimension not in judge_run.dimensions:
        raise NotReportable(
            _("Run {number} of {judge} was not asked about {dimension}.").format(
                number=judge_run.number, judge=judge_run.judge, dimension=dimension
            )
        )


def _same(stored: Figures, made: Figures) -> bool:
    return json.dumps(stored, sort_keys=True) == json.dumps(made, sort_keys=True)


def payload_of(*, judge_run: JudgeRun, round: Round, dimension: str) -> Figures:
    """Everything a report says. The judge's rates are part of it only where the gate is passed."""
    version = judge_run.version
    whole = table_of(version=version, round=round, dimension=dimension, judge_run=judge_run)
    system_runs = list(judge_run.system_runs.values_list("pk", flat=True))
    split = design_in_force(round)
    parts = parts_of_items(split, version)
    table = whole.select(of_calibration(parts, whole.targets.item))
    found = sample.gate_evidence(
        table,
        system_runs=system_runs,
        fingerprint_matches=is_same_instrument(judge_run, round),
        age_days=age_in_days(judge_run),
    )
    policy = policy_in_force(version)
    decision = decide(found, policy)
    apart = decide_by_system(found, policy) if found else {}
    payload = {
        "payload_version": PAYLOAD_VERSION,
        "app_version": settings.APP_VERSION,
        "version": str(version),
        "content_hash": version.content_hash,
        "dimension": dimension,
        "unit": table.targets.unit,
        "round": round_facts(round),
        "judge": judge_facts(judge_run),
        "gate": decision.as_dict() | {"sentence": decision.explain()},
        "thresholds": thresholds_of_run(judge_run),
        "evidence": sample.evidence_counts(table, system_runs) | {"sha256": sample.labels_hash(whole)},
        "design": design_facts(split, parts) | {"tried": tried_on(version)},
        "verdicts": _verdict_counts(judge_run, dimension),
        "agreement": judge_agreement_of(table),
        "revised": _revised(table, judge_run, round, dimension),
        "baselines": baselines_of(table, judge_run=judge_run, dimension=dimension),
        "per_system": _system_figures(table, apart),
        "per_stratum": [_group_figures(table, group, None) for group in table.by_stratum()],
        "gold_rates": _gold_headlines(version, round, dimension),
    }
    if dimension in LABELS and decision.trusted and judge_run.state == JudgeRun.State.COMPLETE:
        payload["rates"] = _rates_behind(payload, judge_run, dimension, version.primary_unit)
        if dimension == "grounding":
            payload["corrected"] = _corrected(payload, table, judge_run, split)
    return payload


def _revised(table: Table, judge_run: JudgeRun, round: Round, dimension: str) -> Figures:
    """Kappa with gold as it was decided anew with verdicts in view: beside the judge's number only."""
    leaves = table.leaves()
    assert leaves.gold is not None and leaves.judge is not None
    before = leaves.blind_gold()
    changed = leaves.gold.has & before.has & (leaves.gold.codes != before.codes)
    doubts = GoldDoubt.objects.filter(run=judge_run, round=round, dimension=dimension)
    figures: Figures = {"doubts": doubts.count(), "changed": int(changed.sum())}
    if changed.any() or (leaves.gold.has & ~before.has).any():
        figures["cohen_kappa"] = kappa_of(leaves.targets, leaves.gold, leaves.judge).as_number().as_dict()
    return figures


def _corrected(
    payload: Figures, table: Table, judge_run: JudgeRun, split: CalibrationSplit | None
) -> Figures:
    opened = open_systems(gates_behind(payload, judge_run))
    runs = judge_run.system_runs.filter(number__in=opened).values_list("pk", flat=True)
    sampling = SAMPLING[CalibrationSplit.Design(split.design)] if split else None
    stratum = split.stratum if split else ""
    return corrected_share(table, runs=runs, sampling=sampling, stratum=stratum)


def _rates_behind(
    payload: Figures, judge_run: JudgeRun, dimension: str, unit: str, answers: Answers | None = None
) -> Figures:
    """The rates that a passed gate opens, system by system."""
    gates = gates_behind(payload, judge_run)
    rates = open_rates(judge_run=judge_run, dimension=dimension, unit=unit, gates=gates, answers=answers)
    return with_extraction(rates, judge_run.system_runs.select_related("system").order_by("number"))


def gates_behind(payload: Figures, judge_run: JudgeRun) -> dict[int, Figures]:
    return gates_of_runs(judge_run, payload["per_system"], decide(None, server_policy()).as_dict())


def opened_by(report: CalibrationReport) -> frozenset[int]:
    """The numbers of the system runs whose verdicts a passed gate lets count."""
    return open_systems(gates_behind(report.payload, report.judge_run))


def closed_systems(report: CalibrationReport) -> dict[str, Figures]:
    """The systems whose rates stay withheld although the gate over all is passed, with their gates."""
    gates = gates_behind(report.payload, report.judge_run)
    opened = opened_by(report)
    names = run_names(report.judge_run.system_runs.select_related("system").order_by("number"))
    runs = report.judge_run.system_runs.order_by("number")
    return {names[run.pk]: gates[run.number] for run in runs if run.number not in opened}


def systems_shown_apart(report: CalibrationReport) -> set[str]:
    """The systems of which the judge's rates are shown by themselves, where the gate over all is passed."""
    gates = gates_behind(report.payload, report.judge_run)
    names = run_names(report.judge_run.system_runs.select_related("system").order_by("number"))
    runs = report.judge_run.system_runs.order_by("number")
    return {names[run.pk] for run in runs if gates[run.number]["state"] == TRUSTED}


def round_facts(round: Round) -> Figures:
    return {
        "number": round.number,
        "kind": round.kind,
        "state": round.state,
        "seed": round.seed,
        "rubric_version": str(round.rubric_version),
        "rubric_sha256": round.rubric_version.sha256,
    }


def judge_facts(judge_run: JudgeRun) -> Figures:
    """Which instrument this was: what was asked for, and what answered."""
    judge = judge_run.judge
    systems = [run.system for run in judge_run.system_runs.select_related("system")]
    families = {judge.family, *(member.family for member in members_of(judge))}
    kin = sorted({name for family in families for name in kin_of(family, systems)})
    return {
        "name": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "provider": judge.provider,
        "family": judge.family,
        "same_family_as_a_system": bool(kin),
        "systems_of_its_family": kin,
        "run": judge_run.number,
        "run_state": judge_run.state,
        "origin": judge_run.origin,
        "rubric_version": str(judge_run.rubric_version) if judge_run.rubric_version else None,
        "requested": judge_run.requested,
        "requested_fingerprint": judge_run.requested_fingerprint,
        "resolved_models": resolved_models(judge_run),
        "repeats": judge_run.repeats,
        "run_index_paired": 1,
        **({"runs_in_rates": judge_run.repeats} if judge_run.repeats > 1 else {}),
    }


def resolved_models(judge_run: JudgeRun) -> list[str]:
    return models_in(JudgeRun.every.filter(pk=judge_run.pk), state=Verdict.State.VALID)


def _verdict_counts(judge_run: JudgeRun, dimension: str) -> Figures:
    verdicts = judge_run.verdicts.filter(dimension=dimension).values_list("state", "failure", "run_index")
    first = _state_counts([(state, failure) for state, failure, index in verdicts if index == 1])
    if judge_run.repeats == 1:
        return first
    return first | {"every_run": _state_counts([(state, failure) for state, failure, _index in verdicts])}


def _state_counts(verdicts: list[tuple[str, str]]) -> Figures:
    states = Counter(state for state, _failure in verdicts)
    return {
        "total": len(verdicts),
        "valid": states[Verdict.State.VALID],
        "failed": states[Verdict.State.FAILED],
        "pending": states[Verdict.State.PENDING] + states[Verdict.State.CLAIMED],
        "failures": dict(sorted(Counter(failure for _state, failure in verdicts if failure).items())),
    }


def _gold_headlines(version: EvalSetVersion, round: Round, dimension: str) -> Figures:
    """What people say, for the place where the judge's own rate is withheld; no rate has other dimensions."""
    if dimension not in LABELS:
        return {}
    rates = human_rates(
        version=version,
        round=round,
        source="gold",
        unit=version.primary_unit,
        dimensions=(dimension,),
        strata=False,
    )
    if dimension == "grounding":
        extraction = extraction_of(runs_graded(version, round))
        return {name: rates[name] for name in HEADLINES} | {"extraction": extraction}
    return {name: rates["abstention"][name] for name in ("over_answering", "over_refusal")}


def _system_figures(table: Table, decisions: dict[Any, GateDecision]) -> list[Figures]:
    numbers = SystemRun.objects.in_bulk(list(table.targets.run_names))
    return [
        {"system_run": numbers[run].number} | _group_figures(table, group, decisions)
        for run, group in zip(table.targets.run_names, table.by_system(), strict=True)
    ]


def _group_figures(table: Table, group: Group, decisions: dict[Any, GateDecision] | None) -> Figures:
    part = table.select(group.mask).leaves()
    assert part.judge is not None
    gold, targets = part.blind_gold(), part.targets
    kappa = kappa_of(targets, gold, part.judge)
    graders = part.graders if len(part.graders) <= GRADERS_APART else ()
    figures: Figures = {
        "name": group.name,
        "value": group.value,
        "n_targets": len(part),
        "n_judged": int(part.judge.has.sum()),
        "not_judged": part.judge.missing(),
        "n": kappa.n,
        "cohen_kappa": kappa.as_number().as_dict(),
        "observed_agreement": kappa.agreement.as_dict(),
        "pairs": [pair_figures(targets, column, part.judge) for column in graders],
    }
    if not gold_is_settled(part, gold):
        settled_only = ("cohen_kappa", "observed_agreement")
        figures |= {name: with_incomplete_gold(figures[name]) for name in settled_only}
    if decisions is not None:
        decision = decisions.get(group.value) or decide(None, server_policy())
        figures["gate"] = decision.as_dict()
    return figures


# The instrument


def is_same_instrument(judge_run: JudgeRun, round: Round) -> bool | None:
    """Whether the judge as it is now is the one that gave these verdicts, under the rubric of the graders.

    None where nobody can know: verdicts that were imported, also those of a judge in a panel. Labels imported
    with a data set came without the text of their rubric: there the judge's own has to be unchanged.
    """
    if (
        judge_run.origin == JudgeRun.Origin.IMPORTED
        or None in judge_run.requested.get("members", {}).values()
    ):
        return None
    return not instrument_changes(judge_run, round)


def instrument_changes(judge_run: JudgeRun, round: Round) -> list[str]:
    """In words, what differs between the instrument of this run and the judge of today; empty: nothing."""
    if judge_run.origin == JudgeRun.Origin.IMPORTED or judge_run.rubric_version is None:
        return []
    changes = []
    if round.kind != Round.Kind.IMPORTED and judge_run.rubric_version_id != round.rubric_version_id:
        changes.append(
            _("the judge was given the rubric {judge}, the graders {graders}").format(
                judge=judge_run.rubric_version, graders=round.rubric_version
            )
        )
    now = requested_of(judge_run.judge, judge_run.rubric_version)
    if fingerprint_of(now) != judge_run.requested_fingerprint:
        parts = sorted(key for key in now if now[key] != judge_run.requested.get(key))
        changes.append(_("the request changed: {parts}").format(parts=", ".join(parts)))
    changes += _changes_of_members(judge_run)
    answered = resolved_models(judge_run)
    if len(answered) > 1:
        changes.append(_("several models answered: {models}").format(models=", ".join(answered)))
    newer = sorted(_models_since(judge_run) - set(answered))
    if answered and newer:
        changes.append(_("another model answers now: {models}").format(models=", ".join(newer)))
    return changes


def _changes_of_members(judge_run: JudgeRun) -> list[str]:
    """A panel is as old as the runs of its judges: what has changed in one of them since, changes it."""
    return [
        _("{judge} in the panel: another model answers now: {models}").format(
            judge=member.judge, models=", ".join(newer)
        )
        for member in runs_of_members(judge_run)
        if (newer := sorted(_models_since(member) - set(resolved_models(member))))
    ]


def runs_of_members(judge_run: JudgeRun) -> list[JudgeRun]:
    """The runs that a panel took its votes from."""
    numbers = judge_run.requested.get("member_runs", ())
    if not numbers:
        return []
    members = JudgeRun.objects.filter(version=judge_run.version, number__in=numbers)
    return list(members.select_related("judge", "version"))


def _models_since(judge_run: JudgeRun) -> set[str]:
    return set(models_in(judge_run.judge.runs.filter(pk__gt=judge_run.pk), state=Verdict.State.VALID))


def age_in_days(judge_run: JudgeRun) -> int:
    return (timezone.now() - (judge_run.finished_at or judge_run.created_at)).days


# Asking later


@dataclass(frozen=True)
class Standing:
    """Whether a judge may be trusted now: its latest report, and what has changed since."""

    state: str
    dimension: str | None
    run: int | None
    report: CalibrationReport | None
    conditions: list[Figures]
    changes: list[str]
    superseded: bool = False  # the report is not the judge's latest

    @property
    def trusted(self) -> bool:
        return self.state == TRUSTED and not self.superseded

    def withheld(self) -> Figures:
        """What stands in the place of a rate."""
        reasons: Figures = {
            "state": self.state,
            "conditions": self.conditions,
            "dimension": self.dimension,
            "run": self.run,
        }
        if self.changes:
            reasons["changes"] = self.changes
        if self.report:
            reasons["report"] = self.report.number
        return {"withheld": reasons}


def latest_report(*, judge: Judge, version: EvalSetVersion, dimension: str) -> CalibrationReport | None:
    return (
        CalibrationReport.objects.filter(
            judge_run__judge=judge, judge_run__version=version, dimension=dimension
        )
        .select_related(
            "judge_run__judge",
            "judge_run__version",
            "judge_run__rubric_version__rubric",
            "round__rubric_version__rubric",
        )
        .order_by("-pk")
        .first()
    )


def standing_of(report: CalibrationReport) -> Standing:
    """The state of a report as of now: a passed gate closes again when the judge changes or time is up.

    Of an earlier report it is where the judge stands by the latest one. The rates of the earlier one are not
    shown beside: it may open other systems, and the difference would tell the rate of one that is withheld.
    """
    run = report.judge_run
    latest = latest_report(judge=run.judge, version=run.version, dimension=report.dimension)
    if latest is None or latest.pk == report.pk:
        return _standing(report)
    now = _standing(latest)
    words = _("a later report has been built: number {number} of judge run {run}")
    words = words.format(number=latest.number, run=latest.judge_run.number)
    return replace(now, report=report, run=run.number, changes=[words, *now.changes], superseded=True)


def _standing(report: CalibrationReport) -> Standing:
    changes = instrument_changes(report.judge_run, report.round)
    policy = policy_in_force(report.judge_run.version)
    changed = differences(report.payload["gate"]["policy"], policy.as_dict())
    if changed:
        changes.append(_("the thresholds changed: {changes}").format(changes=in_words(changed)))
    if age := age_change(report):
        changes.append(age)
    if report.judge_run.state != JudgeRun.State.COMPLETE:
        changes.append(_("the judge run is not complete"))
    changes += alarms_about([report.judge_run, *runs_of_members(report.judge_run)], report.dimension)
    design = design_in_force(report.round)
    if report.payload.get("design", {}).get("recorded") != (design.pk if design else None):
        changes.append(_("how the items with gold were drawn has been recorded anew"))
    if report.payload["payload_version"] != PAYLOAD_VERSION or _counts_one_run_of_several(report):
        changes.append(_("the report was built by an earlier version of the app"))
    return Standing(
        state=STALE if changes and report.gate_state != UNCALIBRATED else report.gate_state,
        dimension=report.dimension,
        run=report.judge_run.number,
        report=report,
        conditions=report.payload["gate"]["conditions"],
        changes=changes,
    )


def _counts_one_run_of_several(report: CalibrationReport) -> bool:
    """A report from before rates became the mean over repeated runs: its corrected share is of the first."""
    return report.judge_run.repeats > 1 and "runs_in_rates" not in report.payload["judge"]


def age_change(report: CalibrationReport) -> str:
    """That the calibration is too old, or nothing."""
    age, limit = age_in_days(report.judge_run), policy_in_force(report.judge_run.version).max_age_days
    if age <= limit:
        return ""
    return _("the calibration is {age} days old, more than {limit}").format(age=age, limit=limit)


def uncalibrated(*, dimension: str | None = None, run: int | None = None) -> Standing:
    """Where a judge stands of which nobody has built a report."""
    nothing = decide(None, server_policy()).as_dict()["conditions"]
    return Standing(UNCALIBRATED, dimension, run, None, nothing, [])


def standing(*, judge: Judge, version: EvalSetVersion, dimension: str) -> Standing:
    report = latest_report(judge=judge, version=version, dimension=dimension)
    if report:
        return _standing(report)
    runs = judge.runs.whole().filter(version=version).order_by("-number")
    asked = [run.number for run in runs if dimension in run.dimensions]
    return uncalibrated(dimension=dimension, run=next(iter(asked), None))


def labels_have_changed(report: CalibrationReport) -> bool:
    """Whether labels, gold or verdicts are no longer those that the report describes."""
    table = table_of(
        version=report.judge_run.version,
        round=report.round,
        dimension=report.dimension,
        judge_run=report.judge_run,
    )
    return sample.labels_hash(table) != report.payload["evidence"]["sha256"]


# A judge's rates


def judge_rates(*, judge: Judge, version: EvalSetVersion, unit: str) -> Figures:
    """A judge's rates, each dimension only behind its own passed gate; else the reason in their place."""
    asked = dimensions_judged(judge=judge, version=version)
    standings = {name: standing(judge=judge, version=version, dimension=name) for name in asked}
    if not any(found.trusted for found in standings.values()):
        return next(iter(standings.values()), uncalibrated()).withheld()
    answers = _answers_behind(standings.get("abstention"))
    figures: Figures = {}
    for dimension, found in standings.items():
        if found.report and found.trusted:
            report = found.report
            rates = _rates_behind(report.payload, report.judge_run, dimension, unit, answers)
            figures = merged(figures, rates)
        else:
            figures |= hidden(dimension, found.withheld())
    return figures


def _answers_behind(found: "Standing | None") -> Answers | None:
    if found is None or not (found.report and found.trusted):
        return None
    return answers_of(found.report.judge_run, gates_behind(found.report.payload, found.report.judge_run))


def dimensions_judged(*, judge: Judge, version: EvalSetVersion) -> list[str]:
    asked = {name for run in judge.runs.whole().filter(version=version) for name in run.dimensions}
    return [dimension for dimension in LABELS if dimension in asked]
