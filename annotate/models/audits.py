"""How well claims were extracted."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evalsets.models import Claim, EvalSetVersion, Response, SystemRun


class AuditSample(models.Model):
    """Responses drawn to check how their claims were extracted."""

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="audit_samples")
    number = models.PositiveIntegerField()
    runs = models.ManyToManyField(SystemRun, related_name="audit_samples")
    seed = models.BigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["version", "number"]
        constraints = [models.UniqueConstraint(fields=["version", "number"], name="audit_sample_once")]

    def __str__(self):
        return f"{self.version} audit {self.number}"


class AuditedResponse(models.Model):
    """One response of the sample: `missing` counts what its claims leave out; null until it was looked at."""

    sample = models.ForeignKey(AuditSample, on_delete=models.PROTECT, related_name="responses")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="audits")
    position = models.PositiveIntegerField()
    missing = models.PositiveIntegerField(null=True, blank=True)
    note = models.TextField(blank=True)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["sample", "position"]
        constraints = [
            models.UniqueConstraint(fields=["sample", "response"], name="audited_response_once"),
            models.CheckConstraint(
                condition=Q(done_at__isnull=True, missing__isnull=True)
                | Q(done_at__isnull=False, missing__isnull=False),
                name="audited_response_done_has_count",
            ),
        ]

    def __str__(self):
        return f"{self.sample}: {self.response}"


class ClaimAudit(models.Model):
    """How well one claim was extracted from its response."""

    class Mark(models.TextChoices):
        WELL_SPLIT = "well_split", _("well split")
        BADLY_SPLIT = "badly_split", _("badly split")
        NOT_IN_RESPONSE = "not_in_response", _("not in the response")

    audited = models.ForeignKey(AuditedResponse, on_delete=models.PROTECT, related_name="claims")
    # A draft's claim may be corrected or removed later: the mark stays, and so does what was marked.
    claim = models.ForeignKey(Claim, on_delete=models.SET_NULL, null=True, blank=True, related_name="audits")
    text = models.TextField()
    mark = models.CharField(max_length=16, choices=Mark.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["audited", "claim"], name="claim_audit_once")]

    def __str__(self):
        return self.mark
