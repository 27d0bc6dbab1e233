"""What graders say."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotate.models.rounds import Round
from annotate.models.rubrics import Grader
from annotate.models.targets import LABEL_FITS_DIMENSION, one_per_target, passage_of_target
from evalsets.models import Claim, Response


class Annotation(models.Model):
    """The current label of one grader for one target; AnnotationEvent keeps how it came to be."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="annotations")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="annotations")
    claim = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="annotations"
    )
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="annotations")
    label = models.CharField(max_length=30)
    note = models.TextField(blank=True)
    evidence = models.JSONField(default=list, blank=True)  # ranks of the passages that decided it
    milliseconds = models.PositiveIntegerField(null=True, blank=True)  # time on this target before the key
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            # With all that tells where graders differ: the queue reads a million labels in this order.
            models.Index(
                fields=["round", "dimension", "response", "claim", "passage", "label"],
                name="annotation_by_target",
            ),
            models.Index(fields=["round", "grader", "-updated_at", "-id"], name="annotation_latest"),
            # A note stands beside few labels, and a round's page lists them all.
            models.Index(fields=["round"], condition=~Q(note=""), name="annotation_noted"),
        ]
        constraints = [
            *one_per_target("annotation", "round", "dimension", "grader"),
            models.CheckConstraint(condition=LABEL_FITS_DIMENSION, name="annotation_label_fits"),
        ]

    def __str__(self):
        return f"{self.dimension}: {self.label}"


class AnnotationEvent(models.Model):
    """Append-only. `key` makes a repeated submit the same submit."""

    class Action(models.TextChoices):
        LABELLED = "labelled", _("labelled")
        CHANGED = "changed", _("changed")
        TAKEN_BACK = "taken_back", _("taken back")
        IMPORTED = "imported", _("imported")
        REASSIGNED = "reassigned", _("handed to another grader")

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="events")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="+")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="events")
    action = models.CharField(max_length=12, choices=Action.choices)
    label = models.CharField(max_length=30)
    note = models.TextField(blank=True)
    evidence = models.JSONField(default=list, blank=True)
    milliseconds = models.PositiveIntegerField(null=True, blank=True)
    key = models.UUIDField(null=True, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["round", "grader", "-id"], name="event_latest_of_grader")]
        constraints = [
            models.UniqueConstraint(
                fields=["grader", "key"], condition=Q(key__isnull=False), name="event_key_once"
            )
        ]

    def __str__(self):
        return f"{self.action} {self.label}"


class Flag(models.Model):
    """A grader's "look at this", seen by its author and the lead only."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="flags")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="flags")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="flags")
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="flags")
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["round", "grader", "claim"],
                condition=Q(claim__isnull=False),
                name="flag_once_per_claim",
            ),
            models.UniqueConstraint(
                fields=["round", "grader", "response"],
                condition=Q(claim__isnull=True),
                name="flag_once_per_response",
            ),
        ]

    def __str__(self):
        return self.note


class ClaimSplit(models.Model):
    """A proposal to judge a half-supported claim part by part. Accepting it adds child claims."""

    class State(models.TextChoices):
        PROPOSED = "proposed", _("proposed")
        ACCEPTED = "accepted", _("accepted")
        DECLINED = "declined", _("declined")
        TAKEN_BACK = "taken_back", _("taken back")

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="splits")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="splits")
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, null=True, blank=True, related_name="splits")
    parts = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.PROPOSED)
    created_at = models.DateTimeField(auto_now_add=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "claim", "grader"], name="split_once_per_grader"),
            models.UniqueConstraint(
                fields=["claim"], condition=Q(state="accepted"), name="split_accepted_once"
            ),
        ]

    def __str__(self):
        return f"{self.claim}: {len(self.parts)}"


class WithdrawnPart(models.Model):
    """A part of a split that was taken back. The log of decisions keeps it; it counts nowhere."""

    claim = models.OneToOneField(Claim, on_delete=models.PROTECT, related_name="withdrawal")
    split = models.ForeignKey(ClaimSplit, on_delete=models.PROTECT, related_name="withdrawn")

    def __str__(self):
        return str(self.claim)
