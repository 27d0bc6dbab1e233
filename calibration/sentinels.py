"""Sentinel runs: a trusted judge is asked again about targets whose gold is settled, on a schedule.

They cost no person's time and show whether the instrument still reads the same. They bypass the cache, have a
budget of their own, and count for no rate.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.services.targets import Target
from calibration.columns import int_columns
from calibration.design import design_in_force, of_calibration, parts_of_items
from calibration.models import CalibrationReport, Judge, JudgeRun, SentinelPlan, Verdict
from calibration.pairing import table_of
from calibration.reports import opened_by, standing_of
from calibration.services import Refused, start_sentinel_run
from calibration.spending import Budget
from evalsets.labels import LABELS

LEAST = 30  # targets of a plan in each dimension
WAIT_AFTER_PROBLEM = timedelta(hours=1)


@dataclass(frozen=True)
class Candidates:
    """What a judge may be asked again in one dimension: the targets with gold behind a trusted report."""

    report: CalibrationReport
    verdicts: Sequence[int]  # ids, in the order of the targets

    @property
    def dimension(self) -> str:
        return self.report.dimension


def candidates_of(judge_run: JudgeRun) -> list[Candidates]:
    """Dimension by dimension, of those in which the run's latest report is trusted now."""
    if judge_run.judge.kind != Judge.Kind.OPENAI or judge_run.sentinel_plan_id is not None:
        return []
    found = []
    for dimension in LABELS:
        report = latest_report_of(judge_run, dimension)
        if report and standing_of(report).trusted:
            found.append(Candidates(report, _with_gold(report)))
    return found


def latest_report_of(judge_run: JudgeRun, dimension: str) -> CalibrationReport | None:
    reports = judge_run.reports.filter(dimension=dimension).select_related(
        "judge_run__judge", "judge_run__version", "round__rubric_version__rubric", "round__version"
    )
    return reports.order_by("-number").first()


def _with_gold(report: CalibrationReport) -> list[int]:
    """Verdicts on targets with gold that no verdict influenced, of open systems, and of no prompt's items."""
    run, round = report.judge_run, report.round
    table = table_of(version=run.version, round=round, dimension=report.dimension, judge_run=run).leaves()
    assert table.judge is not None
    parts = parts_of_items(design_in_force(round), run.version)
    counts = of_calibration(parts, table.targets.item)
    opened = run.system_runs.filter(number__in=opened_by(report)).values_list("pk", flat=True)
    kept = table.blind_gold().has & table.judge.has & counts & np.isin(table.targets.run, list(opened))
    field = "claim_id" if table.targets.unit == "claim" else "response_id"
    verdicts = run.verdicts.filter(dimension=report.dimension, run_index=1, state=Verdict.State.VALID)
    of_verdict, target = int_columns(verdicts.order_by("pk"), "pk", field)
    return of_verdict[np.isin(target, table.targets.target[kept])].tolist()


@transaction.atomic
def plan_sentinels(
    *,
    judge_run: JudgeRun,
    dimensions: Sequence[str],
    targets: int,
    seed: int,
    every_days: int,
    budget: Budget,
    person=None,
) -> SentinelPlan:
    """Choose what is asked again and how often. It takes the place of the run's earlier plan."""
    JudgeRun.objects.select_for_update().get(pk=judge_run.pk)
    offered = {found.dimension: found for found in candidates_of(judge_run)}
    refused = [name for name in dimensions if name not in offered]
    if refused or not dimensions:
        raise Refused(_("Only dimensions in which the judge is trusted can be watched."))
    drawn = _drawn(offered.values(), dimensions, targets, seed)
    if budget.money is not None and not judge_run.judge.prices:
        raise Refused(_("A budget of money needs the judge's prices: set them first."))
    now = timezone.now()
    judge_run.sentinel_plans.filter(is_active=True).update(is_active=False)
    return SentinelPlan.objects.create(
        judge_run=judge_run,
        verdicts=drawn,
        seed=seed,
        every_days=every_days,
        next_at=now + timedelta(days=every_days),
        created_by=person,
        **budget.fields,
    )


def _drawn(offered: Iterable[Candidates], dimensions: Sequence[str], wanted: int, seed: int) -> list[int]:
    """Ids of verdicts; the same seed draws the same ones."""
    drawn: list[int] = []
    for found in offered:
        if found.dimension not in dimensions:
            continue
        size = min(wanted, len(found.verdicts))
        if size < LEAST:
            raise Refused(
                _("{dimension}: at least {least} targets with gold are needed, there are {n}.").format(
                    dimension=found.dimension, least=LEAST, n=size
                )
            )
        places = np.random.default_rng(seed).choice(len(found.verdicts), size=size, replace=False)
        drawn += [found.verdicts[place] for place in sorted(places.tolist())]
    return drawn


def drawn_targets(
    offered: Iterable[Candidates], dimensions: Sequence[str], wanted: int, seed: int
) -> list[Target]:
    return _targets_of(_drawn(offered, dimensions, wanted, seed))


def end_plan(*, judge_run: JudgeRun) -> bool:
    return bool(judge_run.sentinel_plans.filter(is_active=True).update(is_active=False))


def active_plan(judge_run: JudgeRun) -> SentinelPlan | None:
    return judge_run.sentinel_plans.filter(is_active=True).select_related("judge_run__version").first()


def targets_of_plan(plan: SentinelPlan) -> list[Target]:
    return _targets_of(plan.verdicts)


def _targets_of(verdicts: Sequence[int]) -> list[Target]:
    rows = Verdict.objects.filter(pk__in=verdicts, claim__withdrawal__isnull=True).order_by("pk")
    return [Target(*row) for row in rows.values_list("dimension", "response_id", "claim_id", "passage_id")]


@transaction.atomic
def start_sentinel(*, plan: SentinelPlan, due_at: datetime | None = None, person=None) -> JudgeRun | None:
    """Start the next one. With `due_at` only if that one is still due: of two workers one starts it."""
    locked = (
        SentinelPlan.objects.select_for_update().filter(pk=plan.pk, is_active=True).order_by("pk").first()
    )
    if locked is None or (due_at is not None and locked.next_at != due_at):
        return None
    if not any(standing_of(found).trusted for found in _reports_of(locked.judge_run)):
        raise Refused(_("The judge is not trusted any more: calibrate it again before more is spent on it."))
    run = start_sentinel_run(plan=locked, targets=targets_of_plan(locked), person=person)
    locked.next_at, locked.problem = timezone.now() + timedelta(days=locked.every_days), ""
    locked.save(update_fields=["next_at", "problem"])
    return run


def _reports_of(judge_run: JudgeRun) -> list[CalibrationReport]:
    found = (latest_report_of(judge_run, dimension) for dimension in LABELS)
    return [report for report in found if report]


def start_due() -> int:
    """Start every sentinel run that is due; one that cannot start says why and is tried again in an hour."""
    started = 0
    for plan in SentinelPlan.objects.filter(is_active=True, next_at__lte=timezone.now()).order_by("pk"):
        try:
            started += start_sentinel(plan=plan, due_at=plan.next_at) is not None
        except Refused as refused:
            waiting = SentinelPlan.objects.filter(pk=plan.pk, next_at=plan.next_at)
            waiting.update(problem=str(refused), next_at=timezone.now() + WAIT_AFTER_PROBLEM)
    return started
