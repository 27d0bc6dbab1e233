"""What people say about the targets: a claim (its grounding) or a whole response (its abstention)."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from evalsets.labels import ABSTENTION, GROUNDING
from evalsets.models import Claim, EvalSet, EvalSetVersion, Passage, Response, SystemRun

LABEL_FITS_DIMENSION = (
    Q(dimension="grounding", claim__isnull=False, passage__isnull=True, label__in=GROUNDING)
    | Q(dimension="abstention", claim__isnull=True, passage__isnull=True, label__in=ABSTENTION)
    # The labels of an optional dimension are data of its rubric version.
    | (~Q(dimension__in=["grounding", "abstention"]) & ~Q(label=""))
)


def one_per_target(name, *fields):
    """A unique constraint over a target; NULLs are not equal to each other, hence four partial ones."""
    kinds = {
        "claim": (["claim"], Q(claim__isnull=False, passage__isnull=True)),
        "response": (["response"], Q(claim__isnull=True, passage__isnull=True)),
        "passage": (["passage"], Q(claim__isnull=True, passage__isnull=False)),
        "citation": (["claim", "passage"], Q(claim__isnull=False, passage__isnull=False)),
    }
    return [
        models.UniqueConstraint(fields=[*fields, *more], condition=condition, name=f"{name}_once_per_{kind}")
        for kind, (more, condition) in kinds.items()
    ]


def passage_of_target():
    return models.ForeignKey(Passage, on_delete=models.PROTECT, null=True, blank=True, related_name="+")


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
            models.Index(fields=["round", "dimension", "response"], name="annotation_by_target"),
            models.Index(fields=["round", "grader", "-updated_at", "-id"], name="annotation_latest"),
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


class Unblinding(models.Model):
    """From here on this lead may have seen everybody's labels of the round: their own are final."""

    round = models.ForeignKey(Round, on_delete=models.PROTECT, related_name="unblindings")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["round", "person"], name="unblinding_once")]

    def __str__(self):
        return f"{self.person}: {self.round}"


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
        REVOKED = "revoked", _("taken back")

    GIVEN_BY_AN_ACTION = (Reason.SPLIT, Reason.REVOKED)  # nobody chooses these

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
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="audits")
    mark = models.CharField(max_length=16, choices=Mark.choices)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["audited", "claim"], name="claim_audit_once")]

    def __str__(self):
        return self.mark


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
