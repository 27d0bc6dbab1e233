"""A watch over production: a day's responses come in, a trusted judge is asked, a step in a rate is told.

No labels are needed, so there is nothing to compare with: what a judge says counts only while its gate, on
the version it was calibrated on, is passed. The phrase matcher runs beside it, a baseline that is called one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date as Date
from typing import BinaryIO

from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from calibration.alerts import Words, raise_alert
from calibration.leases import concurrency_of
from calibration.models import Judge, JudgeRun, Watch, WatchBatch, WatchJudging, WatchMark
from calibration.reports import dimensions_judged, standing
from calibration.services import Refused, judge_named, run_inline, start_run
from calibration.watch_series import Series, name_of_series, onset_of, series_of
from evalsets.importing import ImportRefused, Problem
from evalsets.models import EvalSet, EvalSetVersion
from evalsets.services import check_evalset, freeze_runs, freeze_version, store_evalset
from evalsets.storing import Checked, Imported

BASELINE = Judge.Kind.PHRASES.value
EARLIEST = Date(2000, 1, 1)  # a series has a place for every day from the first to the last
FAR_AHEAD_DAYS = 1  # of the server's date: a day that has not been cannot have been recorded


class WatchRefused(Exception):
    """The message is a sentence for the person who asked."""


# The watch


@transaction.atomic
def open_watch(
    *, version: EvalSetVersion, name: str, judge: Judge | None = None, minimum: float = 0.05, person=None
) -> Watch:
    """A watch under a name of its own; `judge` is one of the eval set, its gate is asked with every batch."""
    if judge is not None and judge.evalset_id != version.evalset_id:
        raise WatchRefused(_("{judge} belongs to another eval set.").format(judge=judge))
    if not 0 < minimum < 1:
        raise WatchRefused(_("The smallest change worth an alert lies between 0 and 1."))
    if Watch.objects.filter(name=name).exists():
        raise WatchRefused(_("There is a watch named {name} already.").format(name=name))
    material, made = EvalSet.objects.get_or_create(slug=f"watch-{name}", defaults={"name": f"watch-{name}"})
    if not made:
        raise WatchRefused(_("The name {name} is taken by an eval set.").format(name=material.slug))
    return Watch.objects.create(
        version=version, name=name, material=material, judge=judge, minimum=minimum, created_by=person
    )


def add_mark(*, watch: Watch, date: Date, text: str, person=None) -> WatchMark:
    """A deploy, another index, an outage: drawn into the series. The same twice is one."""
    mark, _made = WatchMark.objects.get_or_create(
        watch=watch, date=date, text=text.strip(), defaults={"by": person}
    )
    return mark


def remove_mark(*, mark: WatchMark) -> None:
    mark.delete()


# A day


def import_batch(
    *, watch: Watch, stream: BinaryIO, filename: str, date: Date, person=None
) -> tuple[WatchBatch, Imported | None]:
    """Store a day's responses and ask the judges about them. The same file again is the same batch.

    Raises ImportRefused with every problem of the file; nothing of it is then stored.
    """
    checked = check_batch(watch=watch, stream=stream, filename=filename, date=date)
    return store_batch(watch=watch, batch=checked, date=date, person=person)


@dataclass(frozen=True)
class CheckedBatch:
    """A day's file; `rows` is None where it is the day's batch already."""

    digest: str
    rows: Checked | None


def check_batch(*, watch: Watch, stream: BinaryIO, filename: str, date: Date) -> CheckedBatch:
    """The first half of `import_batch`: the whole file is read, unless it is the day's batch already."""
    _refuse_date(date)
    digest = _digest(stream)
    if _stored(watch, date, digest):
        return CheckedBatch(digest, None)
    return CheckedBatch(digest, check_evalset(stream=stream, filename=filename, name=watch.material.name))


def store_batch(
    *, watch: Watch, batch: CheckedBatch, date: Date, person=None
) -> tuple[WatchBatch, Imported | None]:
    """The second half: what was checked is stored."""
    digest = batch.digest
    if found := _stored(watch, date, digest):
        return found, None
    assert batch.rows is not None  # a day's batch stays
    try:
        with transaction.atomic():
            imported = store_evalset(checked=batch.rows, name=watch.material.slug)
            if not imported.counts["responses"]:
                raise ImportRefused([Problem(None, "response", _("no line holds a response"))])
            material = freeze_version(version=imported.version, person=person)
            freeze_runs(version=material)
            stored = WatchBatch.objects.create(
                watch=watch, date=date, material=material, file_sha256=digest, created_by=person
            )
    except IntegrityError:
        if found := _stored(watch, date, digest):  # somebody else was faster
            return found, None
        raise
    judge_batch(batch=stored)
    return stored, imported


def _refuse_date(date: Date) -> None:
    if (date - timezone.now().date()).days > FAR_AHEAD_DAYS:
        raise ImportRefused([Problem(None, "date", _("this day has not been yet"), date.isoformat())])
    if date < EARLIEST:
        message = _("a day from {year} on is expected").format(year=EARLIEST.year)
        raise ImportRefused([Problem(None, "date", message, date.isoformat())])


def _digest(stream: BinaryIO) -> str:
    stream.seek(0)
    digest = hashlib.sha256()
    while chunk := stream.read(1 << 20):
        digest.update(chunk)
    stream.seek(0)
    return digest.hexdigest()


def _stored(watch: Watch, date: Date, digest: str) -> WatchBatch | None:
    found = watch.batches.filter(date=date).first()
    if found and found.file_sha256 != digest:
        message = _("this day has a batch already, from another file; a batch is never changed")
        raise ImportRefused([Problem(None, "date", message, date.isoformat())])
    return found


# Judging


@transaction.atomic
def judge_batch(*, batch: WatchBatch) -> list[WatchJudging]:
    """Ask the watch's judge in every dimension in which it is trusted now, and the baseline; once each.

    Where the judge is not trusted it is not asked, and the reason is kept. Called again later, it is asked
    what it has not been asked yet.
    """
    WatchBatch.objects.select_for_update().get(pk=batch.pk)
    asked = set(batch.judgings.filter(judge_run__isnull=False).values_list("judge", "dimension"))
    watch, made = batch.watch, []
    baseline = judge_named(evalset=watch.version.evalset, name=BASELINE)
    if (baseline.pk, "abstention") not in asked:
        made.append(_ask(batch, baseline, "abstention", is_baseline=True))
    if watch.judge is not None and watch.judge != baseline:
        for dimension in dimensions_judged(judge=watch.judge, version=watch.version) or ["abstention"]:
            if (watch.judge.pk, dimension) not in asked:
                made.append(_ask(batch, watch.judge, dimension))
    WatchBatch.objects.filter(pk=batch.pk).update(checked_at=None)
    return made


def judge_batches(*, watch: Watch) -> tuple[int, int]:
    """The days for which the judge was not trusted, or failed to start, once more: asked, and not asked."""
    made = [judging for batch in watch.batches.all() for judging in judge_batch(batch=batch)]
    asked = sum(judging.judge_run_id is not None for judging in made)
    return asked, len(made) - asked


def _ask(batch: WatchBatch, judge: Judge, dimension: str, *, is_baseline: bool = False) -> WatchJudging:
    watch = batch.watch
    now = standing(judge=judge, version=watch.version, dimension=dimension)
    facts = {
        "batch": batch,
        "judge": judge,
        "dimension": dimension,
        "gate_state": now.state,
        "report": now.report,
    }
    if not (now.trusted or is_baseline):
        why = "; ".join(now.changes) or _("the judge is {state} on {version}").format(
            state=now.state, version=watch.version
        )
        return WatchJudging.objects.create(reason=why, **facts)
    rubric = now.report.judge_run.rubric_version if now.report else None
    try:
        with transaction.atomic():
            run = start_run(
                judge=judge, version=batch.material, dimensions=[dimension], rubric_version=rubric
            )
    except Refused as error:
        return WatchJudging.objects.create(reason=str(error), **facts)
    return WatchJudging.objects.create(judge_run=run, **facts)


def judge_here(*, batch: WatchBatch) -> None:
    """Work through what was asked about the batch in this process, for a server without a worker."""
    waiting = JudgeRun.objects.filter(watch_judgings__batch=batch, state=JudgeRun.State.RUNNING)
    for run in waiting.select_related("judge", "endpoint"):
        run_inline(run=run, calls=concurrency_of(run))


# Telling


def check_watches() -> int:
    """Look for steps in the watches whose batches have been judged since they were last looked at."""
    waiting = WatchBatch.objects.filter(checked_at__isnull=True).exclude(
        judgings__judge_run__state=JudgeRun.State.RUNNING
    )
    watches = Watch.objects.filter(batches__in=waiting).distinct().select_related("version__evalset", "judge")
    return sum(_check(watch) for watch in list(watches))


def _check(watch: Watch) -> int:
    done = list(
        watch.batches.filter(checked_at__isnull=True)
        .exclude(judgings__judge_run__state=JudgeRun.State.RUNNING)
        .values_list("pk", flat=True)
    )
    found = [series for series in series_of(watch) if series.step.alert]
    for series in found:
        _tell(watch, series)
    WatchBatch.objects.filter(pk__in=done).update(checked_at=timezone.now())
    return len(found)


def _tell(watch: Watch, series: Series) -> None:
    """Once for each step: its key is the first day on which the test found it."""
    change = series.step.difference.value or 0.0
    way = "up" if change > 0 else "down"
    raise_alert(
        kind="watch",
        evalset=watch.version.evalset,
        version=watch.version,
        key=f"watch {watch.pk} {series.key} {way} {onset_of(series, minimum=watch.minimum)}",
        words=lambda: _words_of_step(watch, series),
        link=reverse(
            "calibration:watch", args=[watch.version.evalset.slug, watch.version.number, watch.name]
        ),
    )


def _words_of_step(watch: Watch, series: Series) -> Words:
    change, p = series.step.difference, series.step.p
    assert change.value is not None and change.low is not None and change.high is not None
    title = _("{watch}: {series} has changed by {points:+.1f} points")
    text = _(
        "The last 7 days against the days before: {points:+.1f} points, {level:.0%} interval {low:+.1f} to "
        "{high:+.1f} (p {p:.4f})."
    )
    figures = {"points": 100 * change.value, "low": 100 * change.low, "high": 100 * change.high}
    series_here = name_of_series(series.rate, series.judge)
    return Words(
        title.format(watch=watch.name, series=series_here, **figures),
        text.format(level=change.level, p=p, **figures),
    )


def dates_without_batch(batches: Sequence[WatchBatch]) -> int:
    """How many days between the first and the last have none."""
    return (batches[-1].date - batches[0].date).days + 1 - len(batches) if batches else 0
