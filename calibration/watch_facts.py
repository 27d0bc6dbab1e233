"""A watch, its days and its series, each as a JSON object."""

from django.db.models import Count, Prefetch, QuerySet

from calibration.measures import Figures
from calibration.models import Watch, WatchBatch, WatchJudging
from calibration.watch_series import asked_of, series_of


def series_facts(watch: Watch) -> Figures:
    """Every series that may be shown, with the step test over it; the reason for the others."""
    asked = asked_of(watch)
    return {
        "watch": watch.name,
        "version": str(watch.version),
        "minimum": watch.minimum,
        "marks": [{"date": mark.date.isoformat(), "text": mark.text} for mark in watch.marks.all()],
        "series": [series.as_dict() for series in series_of(watch, asked)],
        "withheld": [
            {"judge": one.judge.name, "dimension": one.dimension, "state": one.now.state}
            for one in asked
            if one.withheld
        ],
    }


def days_of(watch: Watch) -> QuerySet[WatchBatch]:
    """The batches, each with how many responses it holds, and who was asked about it or why not."""
    asked = Prefetch("judgings", WatchJudging.objects.select_related("judge", "judge_run"))
    counted = watch.batches.annotate(n_responses=Count("material__responses"))
    return counted.select_related("material").prefetch_related(asked).order_by("pk")


def judging_facts(judging: WatchJudging) -> Figures:
    run = judging.judge_run
    return {
        "judge": judging.judge.name,
        "dimension": judging.dimension,
        "gate": judging.gate_state,
        "run": run.number if run else None,
        "run_state": run.state if run else None,
        "reason": judging.reason,
    }
