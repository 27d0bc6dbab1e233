"""Files that came through the browser."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from evalsets.models import EvalSetVersion


class Upload(models.Model):
    """A file that somebody sent, until it is imported, refused or thrown away; the row is the truth."""

    class State(models.TextChoices):
        MAPPING = "mapping", _("waits for its columns")
        QUEUED = "queued", _("waits for a worker")
        RUNNING = "running", _("being imported")
        DONE = "done", _("imported")
        REFUSED = "refused", _("refused")
        FAILED = "failed", _("failed")

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="uploads")
    # Where the responses go; null: the file is an eval set, and `name` says which.
    into = models.ForeignKey(
        EvalSetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="uploads"
    )
    name = models.CharField(max_length=200, blank=True)
    file = models.FileField(upload_to="uploads")
    filename = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    with_labels = models.BooleanField(default=False)
    mapping = models.JSONField(null=True, blank=True)  # null: a native file
    state = models.CharField(max_length=10, choices=State.choices)
    attempt = models.PositiveIntegerField(default=0)  # only the latest one may store
    problems = models.JSONField(default=list, blank=True)
    problems_left_out = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, blank=True)
    result = models.ForeignKey(
        EvalSetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="made_by_uploads"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(state="done", result__isnull=False) | ~Q(state="done"),
                name="upload_done_names_its_version",
            )
        ]

    def __str__(self):
        return self.filename

    @property
    def is_native(self) -> bool:
        return self.mapping is None or self.mapping.get("format") == "native"
