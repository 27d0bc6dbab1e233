"""What the lead decides, and what holds."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotate.models.rounds import Round
from annotate.models.rubrics import Rubric, RubricVersion
from annotate.models.targets import LABEL_FITS_DIMENSION, one_per_target, passage_of_target
from evalsets.models import Claim, Response


class Adjudication(models.Model):
    """The lead's decision. Append-only: of a target's rows the latest that is not revoked holds.

    A row that revokes another one decides nothing itself; it repeats the label that it takes back.
    """

    class Reason(models.TextChoices):
        AMBIGUOUS_TEXT = "ambiguous_text", _("the text is ambiguous")
        GUIDELINE_GAP = "guideline_gap", _("the rubric has a gap")
        ANNOTATOR_ERROR = "annotator_error", _("a grader slipped")
        EDGE_CASE = "edge_case", _("an edge case")
        SUBJECTIVE = "subjective_disagreement", _("a matter of judgement")
        SPLIT = "split", _("half supported: split")
        OTHER = "other", _("other")
        REIMPORTED = "reimported", _("re-imported gold")
        REVOKED = "revoked", _("taken back")

    GIVEN_BY_AN_ACTION = (Reason.SPLIT, Reason.REIMPORTED, Reason.REVOKED)  # nobody chooses these

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="adjudications")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="adjudications")
    claim = models.ForeignKey(
        Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="adjudications"
    )
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    label = models.CharField(max_length=30)
    reason = models.CharField(max_length=24, choices=Reason.choices)
    note = models.TextField(blank=True)
    judge_seen = models.BooleanField(
        default=False
    )  # gold decided with a verdict in view does not count for it
    revokes = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="revoked_by"
    )
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["round", "dimension", "response"], name="adjudication_by_target")]
        constraints = [
            models.CheckConstraint(condition=LABEL_FITS_DIMENSION, name="adjudication_label_fits"),
            models.CheckConstraint(
                condition=Q(reason="revoked", revokes__isnull=False)
                | (~Q(reason="revoked") & Q(revokes__isnull=True)),
                name="adjudication_revoked_names_one",
            ),
        ]

    def __str__(self):
        return f"{self.dimension}: {self.label}"


class Opening(models.Model):
    """The lead has opened this response for adjudication: from here on its labels are final."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="openings")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="+")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "response"], name="opening_once")]

    def __str__(self):
        return f"{self.response}: {self.by}"


class RubricTask(models.Model):
    """Something the rubric should say, noted while adjudicating; settled by a later rubric version."""

    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="tasks")
    adjudication = models.OneToOneField(
        Adjudication, on_delete=models.PROTECT, null=True, blank=True, related_name="rubric_task"
    )
    text = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    settled_in = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="settled_tasks"
    )
    dismissed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self):
        return self.text[:80]


class GoldLabel(models.Model):
    """What holds after agreement or adjudication; written in the transaction that settles the target."""

    class Source(models.TextChoices):
        AGREED = "agreed", _("agreed")
        ADJUDICATED = "adjudicated", _("adjudicated")
        SINGLE = "single", _("single")

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="gold")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="gold")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="gold")
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    label = models.CharField(max_length=30)
    source = models.CharField(max_length=12, choices=Source.choices)
    adjudication = models.ForeignKey(
        Adjudication, on_delete=models.PROTECT, null=True, blank=True, related_name="gold"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            *one_per_target("gold", "round", "dimension"),
            models.CheckConstraint(condition=LABEL_FITS_DIMENSION, name="gold_label_fits"),
            models.CheckConstraint(
                condition=Q(source="adjudicated", adjudication__isnull=False)
                | (~Q(source="adjudicated") & Q(adjudication__isnull=True)),
                name="gold_adjudicated_has_adjudication",
            ),
        ]

    def __str__(self):
        return f"{self.dimension}: {self.label} ({self.source})"
