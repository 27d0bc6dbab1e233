"""Production batches that a judge is asked about, without gold."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from calibration.models.judging import Judge, JudgeRun
from calibration.models.trust import CalibrationReport
from evalsets.models import EvalSet, EvalSetVersion


class Watch(models.Model):
    """Responses of production, day by day, without labels; a judge calibrated on `version` says what it can.

    Each batch is a frozen version of `material`, an eval set without members that no page opens.
    """

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="watches")
    name = models.SlugField(max_length=60, unique=True)
    material = models.OneToOneField(EvalSet, on_delete=models.PROTECT, related_name="watch")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, null=True, blank=True, related_name="watches")
    minimum = models.FloatField(default=0.05)  # the smallest change of a share that is worth an alert
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(condition=Q(minimum__gt=0, minimum__lt=1), name="watch_minimum_is_share")
        ]

    def __str__(self):
        return self.name


class WatchBatch(models.Model):
    """The responses of one day."""

    watch = models.ForeignKey(Watch, on_delete=models.PROTECT, related_name="batches")
    date = models.DateField()
    material = models.OneToOneField(EvalSetVersion, on_delete=models.PROTECT, related_name="watch_batch")
    file_sha256 = models.CharField(max_length=64)
    checked_at = models.DateTimeField(null=True, blank=True)  # when its rates were last looked at for a step
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["watch", "date"]
        constraints = [models.UniqueConstraint(fields=["watch", "date"], name="watch_one_batch_a_day")]

    def __str__(self):
        return f"{self.watch} {self.date}"


class WatchJudging(models.Model):
    """A judge asked, or not asked, about a batch: where it stood at its gate at that moment. Append-only."""

    batch = models.ForeignKey(WatchBatch, on_delete=models.PROTECT, related_name="judgings")
    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="+")
    dimension = models.CharField(max_length=30)
    gate_state = models.CharField(max_length=20)
    report = models.ForeignKey(
        CalibrationReport, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.TextField(blank=True)  # why it was not asked
    judge_run = models.ForeignKey(
        JudgeRun, on_delete=models.PROTECT, null=True, blank=True, related_name="watch_judgings"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(judge_run__isnull=False, reason="") | (Q(judge_run__isnull=True) & ~Q(reason="")),
                name="watch_judged_or_says_why",
            )
        ]

    def __str__(self):
        return f"{self.batch}: {self.judge} {self.gate_state}"


class WatchMark(models.Model):
    """Something that happened on a day and may explain a step: a deploy, another index, an outage."""

    watch = models.ForeignKey(Watch, on_delete=models.CASCADE, related_name="marks")
    date = models.DateField()
    text = models.CharField(max_length=200)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["date", "pk"]
        constraints = [models.UniqueConstraint(fields=["watch", "date", "text"], name="watch_mark_once")]

    def __str__(self):
        return f"{self.date}: {self.text}"
