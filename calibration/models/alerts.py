"""What leads are told, and the messages that tell them."""

from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evalsets.models import EvalSet, EvalSetVersion


class Alert(models.Model):
    """Something a lead has to know. What it says never changes; whether somebody has taken note may."""

    class Kind(models.TextChoices):
        STALE = "stale", _("a judge is no longer trusted")
        SENTINEL = "sentinel", _("a sentinel run has to be looked at")
        WATCH = "watch", _("a watched rate has changed")

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="alerts")
    version = models.ForeignKey(
        EvalSetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="alerts"
    )
    kind = models.CharField(max_length=20, choices=Kind.choices)
    key = models.CharField(max_length=200)  # names the occurrence, which is told once
    title = models.CharField(max_length=300)  # in the server's language, as messages have it
    text = models.TextField(blank=True)
    translations = models.JSONField(default=dict, blank=True)  # language: {title, text}, of the others
    link = models.CharField(max_length=500, blank=True)  # a path of this server
    created_at = models.DateTimeField(auto_now_add=True)
    acknowledged_at = models.DateTimeField(null=True, blank=True)
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "key"], name="alert_told_once"),
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True, acknowledged_by__isnull=True)
                | Q(acknowledged_at__isnull=False, acknowledged_by__isnull=False),
                name="alert_acknowledged_by_somebody",
            ),
        ]

    def __str__(self):
        return self.title

    @property
    def title_here(self) -> str:
        """In the language of whoever reads; an alert from before translations were kept has one only."""
        return self.translations.get(get_language(), {}).get("title", self.title)

    @property
    def text_here(self) -> str:
        return self.translations.get(get_language(), {}).get("text", self.text)

    @property
    def was_given_up(self) -> bool:
        return any(delivery.state == AlertDelivery.State.FAILED for delivery in self.deliveries.all())


class AlertDelivery(models.Model):
    """The outbox: one row for each message that is to leave the server. The rows are the truth."""

    class Channel(models.TextChoices):
        WEBHOOK = "webhook", _("webhook")
        EMAIL = "email", _("e-mail")

    class State(models.TextChoices):
        PENDING = "pending", _("waiting")
        CLAIMED = "claimed", _("under way")
        SENT = "sent", _("sent")
        FAILED = "failed", _("given up")

    alert = models.ForeignKey(Alert, on_delete=models.PROTECT, related_name="deliveries")
    channel = models.CharField(max_length=10, choices=Channel.choices)
    person = models.ForeignKey(  # who gets the e-mail; a webhook has none
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    message_id = models.UUIDField(default=uuid4, unique=True)  # the same however often it is tried
    attempts = models.PositiveSmallIntegerField(default=0)
    not_before = models.DateTimeField(null=True, blank=True)
    claim_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    detail = models.TextField(blank=True)  # what went wrong the last time
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["state", "not_before"], name="delivery_due")]
        constraints = [
            models.UniqueConstraint(
                fields=["alert"], condition=Q(channel="webhook"), name="delivery_one_webhook"
            ),
            models.UniqueConstraint(
                fields=["alert", "person"], condition=Q(channel="email"), name="delivery_one_email_each"
            ),
            models.CheckConstraint(
                condition=Q(channel="webhook", person__isnull=True)
                | Q(channel="email", person__isnull=False),
                name="delivery_has_its_addressee",
            ),
        ]

    def __str__(self):
        return f"{self.get_channel_display()}: {self.get_state_display()}"
