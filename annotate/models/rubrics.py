"""Who labels, by which rules."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evalsets.models import EvalSet


class Grader(models.Model):
    """A person who labels. Imported graders have a name and no log-in."""

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="graders")
    name = models.CharField(max_length=200)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="graders"
    )
    number = models.PositiveIntegerField()  # the pseudonym in exports: "grader 3"
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["evalset", "number"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "name"], name="grader_name_once"),
            models.UniqueConstraint(fields=["evalset", "number"], name="grader_number_once"),
            models.UniqueConstraint(
                fields=["evalset", "person"], condition=Q(person__isnull=False), name="grader_person_once"
            ),
        ]

    def __str__(self):
        return self.name

    @property
    def pseudonym(self):
        return f"grader {self.number}"


class Rubric(models.Model):
    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="rubrics")
    name = models.CharField(max_length=200)
    is_imported = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evalset", "name"], name="rubric_name_once")]

    def __str__(self):
        return self.name


class RubricVersion(models.Model):
    rubric = models.ForeignKey(Rubric, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    decisions = models.TextField(blank=True)  # written once, such as: literal text or implied reading
    reference_based = models.BooleanField(default=False)
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["rubric", "number"]
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubric_number_once")]

    def __str__(self):
        return "imported" if self.rubric.is_imported else f"{self.rubric} {self.number}"


class Dimension(models.Model):
    """One question asked of a target. `labels`, in order: {name, key, definition, examples: [text, text]}.

    `asked_when` names an earlier dimension of the same claim or response and the labels after which this one
    is asked: {dimension, labels}. Null: it is always asked.
    """

    class Target(models.TextChoices):
        CLAIM = "claim", _("claim")
        RESPONSE = "response", _("response")
        PASSAGE = "passage", _("passage")
        CITATION = "citation", _("citation")  # a claim with one of the passages it cites

    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="dimensions")
    name = models.CharField(max_length=30)
    target = models.CharField(max_length=10, choices=Target.choices)
    question = models.TextField()
    labels = models.JSONField()
    asked_when = models.JSONField(null=True, blank=True)
    position = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["rubric_version", "position"]
        constraints = [models.UniqueConstraint(fields=["rubric_version", "name"], name="dimension_once")]

    def __str__(self):
        return self.name

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(label["name"] for label in self.labels)


class WarmUpCase(models.Model):
    """A known case that a grader labels, and sees explained, before a round with this rubric counts."""

    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="warm_up_cases")
    position = models.PositiveIntegerField()
    dimension = models.CharField(max_length=30)
    question = models.TextField(blank=True)
    passages = models.JSONField(default=list)  # texts, in rank order
    response = models.TextField()
    claim = models.TextField(blank=True)  # empty where the dimension asks of the response
    label = models.CharField(max_length=30)
    explanation = models.TextField()

    class Meta:
        ordering = ["rubric_version", "position"]
        constraints = [
            models.UniqueConstraint(fields=["rubric_version", "position"], name="warm_up_position_once")
        ]

    def __str__(self):
        return f"{self.dimension}: {self.label}"


class WarmUpAnswer(models.Model):
    """What a grader said of a case, once; the explanation is shown after it."""

    case = models.ForeignKey(WarmUpCase, on_delete=models.PROTECT, related_name="answers")
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="warm_up_answers")
    label = models.CharField(max_length=30)
    milliseconds = models.PositiveIntegerField(null=True, blank=True)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["case", "grader"], name="warm_up_answer_once")]

    def __str__(self):
        return self.label
