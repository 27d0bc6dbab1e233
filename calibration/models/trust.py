"""What trust in a judge rests on: reports, who looked, thresholds, the split, and doubts about gold."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotate.models import Round, one_per_target, passage_of_target
from calibration.models.judging import JudgeRun
from evalsets.models import Claim, EvalSetVersion, Response


class CalibrationReport(models.Model):
    """A frozen record of one judge run against one round. Append-only."""

    judge_run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="reports")
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="reports")
    dimension = models.CharField(max_length=30)
    number = models.PositiveIntegerField()
    gate_state = models.CharField(max_length=20)
    payload = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["judge_run", "number"]
        constraints = [models.UniqueConstraint(fields=["judge_run", "number"], name="report_number_once")]

    def __str__(self):
        return f"{self.judge_run} report {self.number}"


class Summary(models.Model):
    """The one page about a version that is passed on: frozen with a number. Append-only."""

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="summaries")
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="summaries")
    number = models.PositiveIntegerField()
    payload = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["version", "number"]
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="summary_number_once")]

    def __str__(self):
        return f"{self.version} one-page report {self.number}"


class VerdictSighting(models.Model):
    """From here on this person has seen single verdicts: their later decisions count for no judge."""

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="sightings")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["run", "person"], name="sighting_once")]

    def __str__(self):
        return f"{self.person}: {self.run}"


class GoldDoubt(models.Model):
    """Somebody who read a verdict beside the gold label thought that gold was wrong. Append-only."""

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="doubts")
    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="doubts")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="+")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    gold = models.CharField(max_length=30)
    verdict = models.CharField(max_length=30)
    note = models.TextField(blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = one_per_target("doubt", "run", "round", "dimension")

    def __str__(self):
        return f"{self.dimension}: {self.gold}?"


class GateThresholds(models.Model):
    """Thresholds of one version where they differ from the server's. Append-only; the latest holds."""

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="thresholds")
    thresholds = models.JSONField(default=dict)
    reason = models.TextField()
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self):
        return f"{self.version}: {self.thresholds}"


class CalibrationSplit(models.Model):
    """How the items with gold were drawn, and which may tune a prompt. Append-only; the latest holds."""

    class Design(models.TextChoices):
        RANDOM = "random", _("a random share of the judged pool")
        STRATIFIED = "stratified", _("a random share within each stratum")
        ENRICHED = "enriched", _("enriched: rare cases were sought")
        IMPORTED = "imported", _("imported with the data")

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="calibration_splits")
    design = models.CharField(max_length=12, choices=Design.choices)
    stratum = models.CharField(max_length=200, blank=True)  # drawn within the values of this one
    tuning_share = models.FloatField(default=0.0)
    seed = models.BigIntegerField()
    few_shot = models.JSONField(default=list, blank=True)  # ids of items whose text stands in a prompt
    note = models.TextField(blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(tuning_share__gte=0, tuning_share__lt=1), name="tuning_share_leaves_calibration"
            ),
            models.CheckConstraint(
                condition=(Q(design="stratified") & ~Q(stratum="")) | ~Q(design="stratified"),
                name="stratified_names_its_stratum",
            ),
        ]

    def __str__(self):
        return f"{self.round}: {self.design}"
