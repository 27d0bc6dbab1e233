"""Does a trusted judge still read the same? Sentinel runs, fresh labels, and who is told.

Every look at a later run is a finding, written once. An alarm in one ends the trust in the report, and stays:
only a new judge run and its own report bring trust back.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from annotate.models import Assignment, Round
from calibration import findings, sentinels, stats
from calibration.alerts import Words, raise_alert
from calibration.design import design_in_force, of_calibration, parts_of_items
from calibration.evidence import gate_evidence, overlap_of
from calibration.gate import NOT_TRUSTED, TRUSTED, decide
from calibration.models import Alert, CalibrationReport, DriftFinding, JudgeRun, SentinelPlan, Verdict
from calibration.pairing import judge_column, table_of
from calibration.reports import Standing, age_change, standing_of
from calibration.sentinels import latest_report_of
from calibration.stats.arrays import encode_clusters
from calibration.stats.drift import DRIFT_ALPHA
from calibration.stats.intervals import share_of_runs
from calibration.stats.repeated import UnitMeans
from calibration.table import Column, Mask, Table, reason_counts
from calibration.thresholds import policy_in_force
from evalsets.labels import LABELS

FRESH_LEAST = 30
FLAGS = {"grounding": tuple(stats.BAD_LABELS), "abstention": ("REFUSED",)}

Figures = dict[str, Any]


# The clock


def watch() -> None:
    """Start what is due, look at what has come in, and tell whose trust has ended. Twice is once."""
    sentinels.start_due()
    settle_sentinel_runs()
    look_at_fresh_labels()
    tell_of_stopped_runs()
    tell_of_lost_trust()


def settle_sentinel_runs() -> int:
    """A finding for each complete sentinel run and dimension that has none yet."""
    settled = DriftFinding.objects.filter(observed=OuterRef("pk"))
    runs = JudgeRun.objects.filter(sentinel_plan__isnull=False, state=JudgeRun.State.COMPLETE)
    waiting = runs.filter(~Exists(settled)).select_related("sentinel_plan__judge_run__version", "judge")
    return sum(_settle(run) for run in waiting.order_by("pk"))


@transaction.atomic
def _settle(run: JudgeRun) -> int:
    assert run.sentinel_plan is not None
    found = [latest_report_of(run.sentinel_plan.judge_run, dimension) for dimension in run.dimensions]
    return sum(_noted(report, run, report.round, sentinel_figures(report, run)) for report in found if report)


def _noted(report: CalibrationReport, observed: JudgeRun, round: Round, figures: Figures) -> bool:
    _finding, made = DriftFinding.objects.get_or_create(
        judge_run=report.judge_run,
        observed=observed,
        round=round,
        dimension=report.dimension,
        defaults={"alarms": figures.pop("alarms"), "payload": figures},
    )
    return made


# The same targets, again


def sentinel_figures(report: CalibrationReport, run: JudgeRun) -> Figures:
    """A sentinel run beside the run that was calibrated, on the plan's targets."""
    plan, dimension = run.sentinel_plan, report.dimension
    assert plan is not None
    table = _planned(report, plan)
    assert table.judge is not None
    now = judge_column(targets=table.targets, judge_run=run)
    labels, gold = table.targets.labels, table.blind_gold()
    drift = stats.sentinel_drift(
        gold.words(labels),
        table.judge.words(labels),
        now.words(labels),
        clusters=table.targets.item.tolist(),
        unit=table.targets.unit,
    )
    charts = charts_of(report, plan, up_to=run)
    shares = {name: points[-1].as_dict() for name, points in charts.items() if points}
    valid = {"valid": int(now.has.sum()), "n": len(table)}
    alarms = [
        name for name in (findings.FLAGGED, findings.UNVERIFIABLE) if shares.get(name, {}).get("outside")
    ]
    if drift.test.p < DRIFT_ALPHA:
        alarms.insert(0, findings.CORRECTNESS)
    if valid["valid"] < policy_in_force(run.version).min_valid_rate * valid["n"]:
        alarms.append(findings.VALID)
    return {
        "alarms": alarms,
        "dimension": dimension,
        "sentinel": drift.as_dict(),
        "shares": shares,
        "valid": valid,
        "not_valid": now.missing(),
    }


def _planned(report: CalibrationReport, plan: SentinelPlan) -> Table:
    run = report.judge_run
    table = table_of(version=run.version, round=report.round, dimension=report.dimension, judge_run=run)
    asked = Verdict.objects.filter(pk__in=plan.verdicts, dimension=report.dimension)
    field = "claim_id" if table.targets.unit == "claim" else "response_id"
    return table.select(np.isin(table.targets.target, list(asked.values_list(field, flat=True))))


def charts_of(
    report: CalibrationReport, plan: SentinelPlan, *, up_to: JudgeRun | None = None
) -> dict[str, Sequence[stats.ChartedShare]]:
    """The control charts of a plan: the calibrated run first, then each complete sentinel run."""
    table = _planned(report, plan)
    assert table.judge is not None
    columns = [
        table.judge,
        *(judge_column(targets=table.targets, judge_run=run) for run in runs_of(plan, up_to)),
    ]
    gold = table.blind_gold()
    wanted = {findings.FLAGGED: FLAGS[report.dimension]}
    if report.dimension == "grounding":
        wanted[findings.UNVERIFIABLE] = ("unverifiable",)
    charts = {
        name: stats.run_chart(
            [_share(table, column, _with_labels(column, table, hits), str(words)) for column in columns]
        )
        for name, hits in wanted.items()
        for words in (findings.share_words(name, report.dimension),)
    }
    settled = table.select(gold.has)
    same = gold.codes[gold.has][:, None]
    charts["agreement"] = stats.run_chart(
        [
            _share(settled, column, column.runs == same, _("agreement with gold"))
            for column in (column.select(gold.has) for column in columns)
        ]
    )
    return charts


def _share(table: Table, column: Column, hits: Mask, label: str) -> stats.Number:
    """Of targets x runs: the share of the targets with a label, each by the mean over its runs."""
    labelled = column.runs >= 0
    return share_of_runs(
        UnitMeans.over(hits, labelled, labelled),
        *encode_clusters(table.targets.item, len(table)),
        label=label,
        unit=table.targets.unit,
        excluded=reason_counts(column.why[column.never_said()]),
        definition="run-chart",
    )


@dataclass(frozen=True)
class ShownChart:
    """One of the control charts, with the run behind each of its points."""

    dimension: str
    name: str
    runs: Sequence[JudgeRun]
    points: Sequence[stats.ChartedShare]


def charts_shown(report: CalibrationReport, plan: SentinelPlan) -> list[ShownChart]:
    """Those of the plan's dimensions; before the first sentinel run there is nothing to see."""
    runs = runs_of(plan)
    if not runs or report.dimension not in runs[0].dimensions:
        return []
    return [
        ShownChart(report.dimension, name, [plan.judge_run, *runs], points)
        for name, points in charts_of(report, plan).items()
    ]


def runs_of(plan: SentinelPlan, up_to: JudgeRun | None = None) -> list[JudgeRun]:
    """The complete sentinel runs of a plan, oldest first."""
    runs = plan.runs.filter(state=JudgeRun.State.COMPLETE).select_related("judge").order_by("pk")
    return list(runs.filter(pk__lte=up_to.pk) if up_to else runs)


def _with_labels(column: Column, table: Table, labels: Sequence[str]) -> Mask:
    codes = [code for code, label in enumerate(table.targets.labels) if label in labels]
    return np.isin(column.runs, codes)


# Other targets, labelled by people since


def look_at_fresh_labels() -> int:
    """A finding for each later round that two people have finished and that the same judge has judged."""
    return sum(
        _noted(report, run, round, fresh_figures(report, run, round))
        for report in trusted_once()
        for round, run in fresh_rounds(report)
        if is_ready(report, run, round)
    )


def trusted_once() -> list[CalibrationReport]:
    """The latest report of each judge run, round and dimension, where the gate had been passed."""
    later = CalibrationReport.objects.filter(
        judge_run__judge=OuterRef("judge_run__judge"),
        judge_run__version=OuterRef("judge_run__version"),
        dimension=OuterRef("dimension"),
        pk__gt=OuterRef("pk"),
    )
    reports = CalibrationReport.objects.filter(~Exists(later), gate_state=TRUSTED, dimension__in=LABELS)
    return list(
        reports.select_related(
            "judge_run__judge",
            "judge_run__version__evalset",
            "judge_run__rubric_version__rubric",
            "round__rubric_version__rubric",
            "round__version",
        ).order_by("pk")
    )


def fresh_rounds(report: CalibrationReport) -> list[tuple[Round, JudgeRun]]:
    """First rounds opened since, each with the latest run of the same instrument over its version."""
    reference = report.judge_run
    rounds = Round.objects.filter(
        version__evalset=reference.version.evalset_id,
        kind=Round.Kind.FIRST,
        rubric_version=report.round.rubric_version_id,
        created_at__gt=report.round.created_at,
    ).exclude(pk=report.round_id)
    pairs = []
    for round in rounds.select_related("version", "rubric_version__rubric").order_by("pk"):
        run = (
            reference.judge.runs.whole()
            .filter(
                version=round.version_id,
                state=JudgeRun.State.COMPLETE,
                requested_fingerprint=reference.requested_fingerprint,
            )
            .select_related("judge")
            .order_by("-number")
            .first()
        )
        if run and report.dimension in run.dimensions:
            pairs.append((round, run))
    return pairs


def is_ready(report: CalibrationReport, run: JudgeRun, round: Round) -> bool:
    """Graded to the end, all of it settled, enough of it, and not looked at before."""
    known = DriftFinding.objects.filter(
        judge_run=report.judge_run, observed=run, round=round, dimension=report.dimension
    )
    if known.exists() or round.assignments.filter(state=Assignment.State.PENDING).exists():
        return False
    _agreed, n, unsettled = _agreement(_fresh(report, run, round))
    return n >= FRESH_LEAST and not unsettled


def _sample(run: JudgeRun, round: Round, dimension: str) -> Table:
    """What two people labelled of what the judge judged, without the items of its prompt."""
    table = table_of(version=run.version, round=round, dimension=dimension, judge_run=run)
    parts = parts_of_items(design_in_force(round), run.version)
    counts = of_calibration(parts, table.targets.item)
    twice = overlap_of(table, run.system_runs.values_list("pk", flat=True))
    return table.select(counts & twice).leaves()


def _fresh(report: CalibrationReport, run: JudgeRun, round: Round) -> Table:
    """Without what the judge was calibrated on: a sample is compared with another one."""
    sample = _sample(run, round, report.dimension)
    if round.version_id != report.round.version_id:
        return sample
    known = _sample(report.judge_run, report.round, report.dimension).targets.item
    return sample.select(~np.isin(sample.targets.item, known))


def _agreement(sample: Table) -> tuple[int, int, int]:
    """Targets on which judge and gold agree, targets with both, and targets without gold."""
    assert sample.judge is not None
    gold = sample.blind_gold()
    both = gold.has & sample.judge.has
    return int((both & (gold.codes == sample.judge.codes)).sum()), int(both.sum()), int((~gold.has).sum())


def fresh_figures(report: CalibrationReport, run: JudgeRun, round: Round) -> Figures:
    """Agreement with gold on fresh targets against the calibration sample, and the gate on the fresh ones."""
    sample = _fresh(report, run, round)
    before, n_before, _unsettled = _agreement(_sample(report.judge_run, report.round, report.dimension))
    agreed, n, _none = _agreement(sample)
    change = stats.agreement_drift(before, n_before, agreed, n)
    evidence = gate_evidence(
        sample,
        system_runs=run.system_runs.values_list("pk", flat=True),
        fingerprint_matches=True,
        age_days=0,
    )
    gate = decide(evidence, policy_in_force(run.version))
    alarms = [findings.FRESH] if change.alert else []
    if gate.state == NOT_TRUSTED:
        alarms.append(findings.FRESH_GATE)
    counts = {"now": agreed, "n": n, "before": before, "n_before": n_before, "p": change.p}
    return {
        "alarms": alarms,
        "dimension": report.dimension,
        "agreement": counts | {"difference": change.difference.as_dict()},
        "gate": {"state": gate.state, "sentence": gate.explain()},
    }


@dataclass(frozen=True)
class FreshRound:
    """A later round beside what it still lacks before it can be compared."""

    dimension: str
    round: Round
    run: JudgeRun
    n: int
    unsettled: int
    ungraded: int


def fresh_rounds_of(report: CalibrationReport) -> list[FreshRound]:
    """The later rounds of which there is no finding yet."""
    known = set(
        DriftFinding.objects.filter(judge_run=report.judge_run, dimension=report.dimension).values_list(
            "observed", "round"
        )
    )
    waiting = []
    for round, run in fresh_rounds(report):
        if (run.pk, round.pk) in known:
            continue
        _agreed, n, unsettled = _agreement(_fresh(report, run, round))
        ungraded = round.assignments.filter(state=Assignment.State.PENDING).count()
        waiting.append(FreshRound(report.dimension, round, run, n, unsettled, ungraded))
    return waiting


def latest_reports_of(judge_run: JudgeRun) -> list[CalibrationReport]:
    return [report for name in judge_run.dimensions if (report := latest_report_of(judge_run, name))]


def sentinel_runs_of(judge_run: JudgeRun) -> QuerySet[JudgeRun]:
    """Newest first, of whatever plan."""
    return JudgeRun.objects.filter(sentinel_plan__judge_run=judge_run).order_by("-number")


def findings_about(judge_run: JudgeRun) -> QuerySet[DriftFinding]:
    """Newest first, with the run that was looked at and the round whose gold it met."""
    return judge_run.findings.select_related("observed", "round__version").order_by("-pk")


# Who is told


def tell_of_lost_trust() -> None:
    """An alert for every judge whose passed gate has closed, one for each set of reasons."""
    for report in trusted_once():
        holds = standing_of(report)
        if holds.changes:
            _tell(report, holds)


def _tell(report: CalibrationReport, holds: Standing) -> None:
    run, version = report.judge_run, report.judge_run.version
    raise_alert(
        kind=Alert.Kind.STALE,
        evalset=version.evalset,
        version=version,
        key=f"stale:{report.pk}:{_name_of(report, holds)}",
        words=lambda: _words_of_lost_trust(report),
        link=reverse(
            "calibration:report", args=[version.evalset.slug, version.number, run.number, report.dimension]
        ),
    )


def _words_of_lost_trust(report: CalibrationReport) -> Words:
    run = report.judge_run
    title = _("{judge} is no longer trusted for {dimension} on {version}")
    reasons = [change[:1].upper() + change[1:] for change in standing_of(report).changes]
    return Words(
        title.format(judge=run.judge, dimension=report.dimension, version=run.version),
        ". ".join(reasons) + ".",
    )


def _name_of(report: CalibrationReport, holds: Standing) -> str:
    """The reasons as a name; an age that grows by a day is no new reason."""
    age = age_change(report)
    named = ["age" if change == age else change for change in holds.changes]
    return hashlib.sha256("\n".join(named).encode()).hexdigest()[:16]


def tell_of_stopped_runs() -> None:
    """A sentinel run that ended before its end says nothing; somebody has to look."""
    stopped = JudgeRun.objects.filter(sentinel_plan__isnull=False, state=JudgeRun.State.STOPPED)
    for run in stopped.select_related("version__evalset", "judge", "sentinel_plan__judge_run"):
        assert run.sentinel_plan is not None
        version = run.version
        raise_alert(
            kind=Alert.Kind.SENTINEL,
            evalset=version.evalset,
            version=version,
            key=f"stopped:{run.pk}:{run.resumed_at.isoformat()}",
            words=partial(_words_of_stopped_run, run),
            link=reverse("calibration:judge_run", args=[version.evalset.slug, version.number, run.number]),
        )


def _words_of_stopped_run(run: JudgeRun) -> Words:
    title = _("Sentinel run {number} of {judge} stopped before its end")
    return Words(
        title.format(number=run.number, judge=run.judge),
        ". ".join(filter(None, [str(run.get_stop_reason_display()), run.stop_detail])),
    )
