"""Who labels what."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from annotate.models.rubrics import Grader, RubricVersion
from annotate.models.targets import one_per_target, passage_of_target
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun


class Round(models.Model):
    class Kind(models.TextChoices):
        FIRST = "first", _("first grading")
        SECOND_LOOK = "second_look", _("second look")
        IMPORTED = "imported", _("imported labels")

    class State(models.TextChoices):
        OPEN = "open", _("open")
        PAUSED = "paused", _("paused")
        CLOSED = "closed", _("closed")

    class Overlap(models.TextChoices):
        ALL = "all", _("every response")
        FIRST = "first", _("the first responses of the set")
        RANDOM = "random", _("responses drawn at random")
        SHARE = "share", _("a share of every stratum, drawn at random")

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="rounds")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.FIRST)
    state = models.CharField(max_length=8, choices=State.choices, default=State.OPEN)
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="rounds")
    runs = models.ManyToManyField(SystemRun, related_name="rounds")
    overlap = models.PositiveIntegerField(null=True)  # how many responses are graded twice; null: all
    overlap_kind = models.CharField(max_length=6, choices=Overlap.choices, default=Overlap.ALL)
    overlap_share = models.FloatField(null=True, blank=True)  # asked for of every stratum; 0 to 1
    stratum = models.CharField(max_length=200, blank=True)  # the stratum that a share was drawn by
    graders_each = models.PositiveSmallIntegerField(
        null=True, blank=True
    )  # of an overlapping response; null: all
    warm_up = models.BooleanField(default=False)
    second_look_of = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="second_looks"
    )
    seed = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["version", "number"]
        constraints = [
            models.UniqueConstraint(fields=["version", "number"], name="round_number_once"),
            models.CheckConstraint(
                condition=Q(overlap_kind="all", overlap__isnull=True)
                | (~Q(overlap_kind="all") & Q(overlap__isnull=False)),
                name="round_overlap_counted",
            ),
            models.CheckConstraint(
                condition=Q(
                    overlap_kind="share",
                    overlap_share__isnull=False,
                    overlap_share__gt=0,
                    overlap_share__lte=1,
                )
                | (~Q(overlap_kind="share") & Q(overlap_share__isnull=True, stratum="")),
                name="round_share_of_a_stratum",
            ),
            models.CheckConstraint(
                condition=Q(kind="second_look", second_look_of__isnull=False)
                | (~Q(kind="second_look") & Q(second_look_of__isnull=True)),
                name="round_second_look_of_a_round",
            ),
        ]

    def __str__(self):
        return f"{self.version} round {self.number}"

    @property
    def share_percent(self):
        return None if self.overlap_share is None else f"{100 * self.overlap_share:g}"


class SecondLookTarget(models.Model):
    """A target drawn for a second look; the rest of its response is not asked again."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="drawn")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="+")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)

    class Meta:
        constraints = one_per_target("drawn", "round", "dimension")

    def __str__(self):
        return self.dimension


class Assignment(models.Model):
    """One grader's slot for one response. Created when the round opens; never a lock."""

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        DONE = "done", _("done")

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="assignments")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="assignments")
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="assignments")
    slot = models.PositiveSmallIntegerField()
    order = models.PositiveIntegerField()
    skips = models.PositiveIntegerField(default=0)  # rank behind the unskipped in the grader's own queue
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["round", "grader", "order"]
        indexes = [
            models.Index(fields=["round", "grader", "state", "skips", "order"], name="assignment_in_queue")
        ]
        constraints = [
            models.UniqueConstraint(fields=["round", "response", "grader"], name="assignment_once"),
            models.UniqueConstraint(fields=["round", "response", "slot"], name="assignment_slot_once"),
        ]

    def __str__(self):
        return f"{self.grader}: {self.response}"


class Tally(models.Model):
    """How many responses a grader holds in a round, and how many are done.

    Triggers keep it with every write of an assignment: a label must not count the grader's whole queue.
    """

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="tallies")
    grader = models.ForeignKey(Grader, on_delete=models.PROTECT, related_name="tallies")
    total = models.IntegerField()
    done = models.IntegerField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "grader"], name="tally_once")]

    def __str__(self):
        return f"{self.done}/{self.total}"


class Unblinding(models.Model):
    """From here on this lead may have seen everybody's labels of the round: their own are final."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="unblindings")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "person"], name="unblinding_once")]

    def __str__(self):
        return f"{self.person}: {self.round}"
