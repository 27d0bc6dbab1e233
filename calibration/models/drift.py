"""A judge asked again, what that says, and the known cases it saw before."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from annotate.models import Round, WarmUpCase
from calibration.models.judging import Budgeted, Judge, JudgeRun, Verdict


class SentinelPlan(Budgeted):
    """When and about what a trusted judge is asked again. Never changed: another choice is another plan."""

    judge_run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="sentinel_plans")
    verdicts = models.JSONField()  # ids of the run's verdicts whose targets are asked about again
    seed = models.BigIntegerField()  # they were drawn with
    every_days = models.PositiveSmallIntegerField()
    is_active = models.BooleanField(default=True)
    next_at = models.DateTimeField()
    problem = models.TextField(blank=True)  # why the latest one that was due could not be started
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["judge_run"], condition=Q(is_active=True), name="sentinel_one_plan_holds"
            ),
            models.CheckConstraint(condition=Q(every_days__gte=1), name="sentinel_every_day_at_most"),
        ]

    def __str__(self):
        return f"{self.judge_run}: {self.every_days}"

    @property
    def budget_in_words(self) -> str:
        return self.limits_in_words(self.judge_run.judge.prices.get("currency", ""))


class DriftFinding(models.Model):
    """What a later run says about the judge that a report trusts. Append-only: an alarm stays."""

    judge_run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="findings")
    observed = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="+")  # the later run
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="+")  # whose gold it met
    dimension = models.CharField(max_length=30)
    alarms = models.JSONField(default=list)  # what sounded; empty: nothing
    payload = models.JSONField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["judge_run", "observed", "round", "dimension"], name="drift_finding_once"
            )
        ]

    def __str__(self):
        return f"{self.dimension}: {', '.join(self.alarms) or '-'}"

    @property
    def is_sentinel(self) -> bool:
        return self.observed.sentinel_plan_id is not None


class WarmUpVerdict(models.Model):
    """What a judge said of a known case before it cost money on the real set. No number looks at it."""

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="warm_up_verdicts")
    case = models.ForeignKey(WarmUpCase, on_delete=models.PROTECT, related_name="+")
    fingerprint = models.CharField(max_length=64)  # of the request, as of a judge run
    state = models.CharField(max_length=8, choices=Verdict.State.choices, default=Verdict.State.PENDING)
    label = models.CharField(max_length=30, blank=True)
    failure = models.CharField(max_length=16, choices=Verdict.Failure.choices, blank=True)
    detail = models.TextField(blank=True)
    raw_output = models.TextField(blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    completion_tokens = models.PositiveIntegerField(null=True)
    claim_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    asked_at = models.DateTimeField(auto_now_add=True)
    asked_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["case__position"]
        constraints = [
            models.UniqueConstraint(fields=["judge", "case", "fingerprint"], name="warm_up_verdict_once"),
            models.CheckConstraint(
                condition=(Q(state="valid", failure="") & ~Q(label=""))
                | (Q(state="failed", label="") & ~Q(failure=""))
                | Q(state__in=["pending", "claimed"], label="", failure=""),
                name="warm_up_verdict_label_or_failure",
            ),
        ]

    def __str__(self):
        return f"{self.case}: {self.label or self.failure or self.state}"

    @property
    def is_right(self) -> bool:
        return self.label == self.case.label
