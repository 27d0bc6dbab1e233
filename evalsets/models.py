"""What is evaluated: frozen items, the systems' responses, the passages they were served and their claims."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.translation import gettext_lazy as _
from knox.models import AbstractAuthToken

from evalsets.labels import UNANSWERABLE_REASONS
from evalsets.prepared import Prepared
from evalsets.text import is_blank


class State(models.TextChoices):
    DRAFT = "draft", _("draft")
    FROZEN = "frozen", _("frozen")


class EvalSet(models.Model):
    slug = models.SlugField(max_length=80, unique=True)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    is_example = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "pk"]

    def __str__(self):
        return self.name


class Membership(models.Model):
    class Role(models.TextChoices):
        LEAD = "lead", _("eval lead")
        GRADER = "grader", _("grader")

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="memberships")
    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["person", "evalset", "role"], name="membership_once"),
            models.CheckConstraint(condition=Q(role__in=["lead", "grader"]), name="membership_role_known"),
        ]

    def __str__(self):
        return f"{self.person} · {self.role} · {self.evalset}"


class EvalSetVersion(models.Model):
    class Unit(models.TextChoices):
        CLAIM = "claim", _("claim")
        RESPONSE = "response", _("response")
        DECISION = "decision", _("decision")

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    primary_unit = models.CharField(max_length=10, choices=Unit.choices, default=Unit.CLAIM)
    content_hash = models.CharField(max_length=64, blank=True)
    source_name = models.CharField(max_length=255, blank=True)
    notices = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    frozen_at = models.DateTimeField(null=True, blank=True)
    frozen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["evalset", "number"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "number"], name="version_number_once"),
            models.CheckConstraint(
                condition=Q(state="draft", content_hash="", frozen_at__isnull=True)
                | (Q(state="frozen", frozen_at__isnull=False) & ~Q(content_hash="")),
                name="version_frozen_has_hash",
            ),
        ]

    def __str__(self):
        return f"{self.evalset.slug}@{self.number}"

    @property
    def is_frozen(self):
        return self.state == State.FROZEN


class Item(models.Model):
    """One input. `extra` keeps what the file said about an item that has no response yet."""

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="items")
    position = models.PositiveIntegerField()
    item_id = models.CharField(max_length=500)
    question = models.TextField(null=True)  # null: the prompt is not known, which is not the same as empty
    strata = models.JSONField(default=dict)
    answerable = models.BooleanField(null=True)
    unanswerable_reason = models.CharField(max_length=30, blank=True)
    reference_answer = models.TextField(null=True)
    expected_documents = models.JSONField(null=True)
    expected_passages = models.JSONField(null=True)
    variant_of = models.CharField(max_length=500, blank=True)
    extra = models.JSONField(default=dict)

    class Meta:
        ordering = ["version", "position"]
        constraints = [
            models.UniqueConstraint(fields=["version", "item_id"], name="item_id_once"),
            models.UniqueConstraint(fields=["version", "position"], name="item_position_once"),
            models.CheckConstraint(
                condition=Q(unanswerable_reason="")
                | Q(answerable=False, unanswerable_reason__in=UNANSWERABLE_REASONS),
                name="item_reason_only_if_unanswerable",
            ),
        ]

    def __str__(self):
        return self.item_id


class System(models.Model):
    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="systems")
    name = models.CharField(max_length=300, blank=True)
    model = models.CharField(max_length=300, null=True)
    provider = models.CharField(max_length=300, blank=True)
    family = models.CharField(max_length=300, blank=True)
    date = models.CharField(max_length=100, blank=True)
    settings = models.JSONField(default=dict)
    given = models.JSONField(default=dict)  # the object as the file had it, for export
    fingerprint = models.CharField(max_length=64)

    class Meta:
        ordering = ["evalset", "pk"]
        constraints = [models.UniqueConstraint(fields=["evalset", "fingerprint"], name="system_once")]

    def __str__(self):
        return self.name or self.model or self.provider or str(_("unnamed system"))


class SystemRun(models.Model):
    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="runs")
    system = models.ForeignKey(System, on_delete=models.PROTECT, related_name="runs")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    content_hash = models.CharField(max_length=64, blank=True)
    source_name = models.CharField(max_length=255, blank=True)
    notices = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    frozen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["version", "number"]
        constraints = [
            models.UniqueConstraint(fields=["version", "number"], name="run_number_once"),
            models.CheckConstraint(
                condition=Q(state="draft", content_hash="", frozen_at__isnull=True)
                | (Q(state="frozen", frozen_at__isnull=False) & ~Q(content_hash="")),
                name="run_frozen_has_hash",
            ),
        ]

    def __str__(self):
        return f"run {self.number}: {self.system}"

    @property
    def is_frozen(self):
        return self.state == State.FROZEN


class Response(models.Model):
    """One output. `version` repeats run.version so that the database keeps response ids unique in it."""

    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="responses")
    run = models.ForeignKey(SystemRun, on_delete=models.PROTECT, related_name="responses")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="responses")
    position = models.PositiveIntegerField()
    response_id = models.CharField(max_length=500)
    sample = models.PositiveIntegerField(default=1)
    text = models.TextField(blank=True)
    retrieval_query = models.TextField(null=True)
    extra = models.JSONField(
        default=dict
    )  # source_dataset, source_ref, original, meta: kept whole, exported again

    class Meta:
        ordering = ["run", "position"]
        constraints = [
            models.UniqueConstraint(fields=["version", "response_id"], name="response_id_once"),
            models.UniqueConstraint(fields=["run", "item", "sample"], name="response_sample_once"),
            models.CheckConstraint(condition=Q(sample__gte=1), name="response_sample_from_one"),
        ]

    def __str__(self):
        return self.response_id

    @property
    def is_empty(self):
        return is_blank(self.text)

    # Read once an instance: what is graded is frozen.

    @cached_property
    def whole_claims(self) -> list["Claim"]:
        """In order, without the parts of split claims."""
        return _whole_claims(response=self.pk)

    @cached_property
    def ranked_passages(self) -> list["Passage"]:
        return _ranked_passages(response=self.pk)


class Passage(models.Model):
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="passages")
    rank = models.PositiveIntegerField()
    passage_id = models.CharField(max_length=500)
    title = models.TextField(null=True)
    document = models.TextField(null=True)
    text = models.TextField(blank=True)
    extra = models.JSONField(default=dict)

    class Meta:
        ordering = ["response", "rank"]
        constraints = [
            models.UniqueConstraint(fields=["response", "passage_id"], name="passage_id_once"),
            models.UniqueConstraint(fields=["response", "rank"], name="passage_rank_once"),
        ]

    def __str__(self):
        return self.passage_id


class Claim(models.Model):
    """One checkable statement. A child of a split has a parent: an overlay that no content hash sees."""

    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="claims")
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="parts", db_index=False
    )
    position = models.PositiveIntegerField()
    claim_id = models.CharField(max_length=500)
    text = models.TextField()
    source_ids = models.JSONField(default=list)
    decision = models.BooleanField(null=True)
    extra = models.JSONField(default=dict)

    class Meta:
        ordering = ["response", "position", "pk"]
        indexes = [
            # Of parts only: SQLite would look for the whole claims of a run among all that have no parent.
            models.Index(fields=["parent"], condition=Q(parent__isnull=False), name="claim_parts"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["response", "claim_id"], name="claim_id_once"),
            models.CheckConstraint(condition=~Q(text=""), name="claim_has_text"),
            models.CheckConstraint(
                condition=Q(parent__isnull=True) | ~Q(parent=F("pk")), name="claim_not_own_parent"
            ),
        ]

    def __str__(self):
        return self.claim_id


_whole_claims = Prepared(
    lambda response: (
        Claim.objects.filter(response=response, parent__isnull=True).order_by("position", "pk").defer("extra")
    ),
    response=int,
)
_ranked_passages = Prepared(
    lambda response: Passage.objects.filter(response=response).order_by("rank").defer("extra"), response=int
)


class ApiToken(AbstractAuthToken):
    """A key for programs: acts as its person, within its scopes. Only a hash of it is kept."""

    class Scope(models.TextChoices):
        READ = "read", _("read: everything its person may see, except gold labels and verdicts")
        IMPORT = "import", _("import: eval sets, responses and labels in, and freezing them")
        JUDGE = "judge", _("judge: judges and their runs, verdicts, calibration reports")
        GOLD = "gold", _("gold: download gold labels")
        ROUNDS = "rounds", _("rounds: move rounds on, see disagreements and decide them")
        GRADE = "grade", _("grade: the person's own work as a grader")
        MEMBERS = "members", _("members: who is lead or grader of an eval set")

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="auth_token_set"
    )
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=list)

    class Meta:
        ordering = ["-created"]

    def __str__(self):
        return self.name

    @property
    def is_expired(self):
        return self.expiry is not None and self.expiry < timezone.now()

    @property
    def scope_names(self):
        return [str(self.Scope(scope).label).partition(":")[0] for scope in self.scopes]


class KeptAnswer(models.Model):
    """What a write with an idempotency key was answered, so that its repetition is the same write."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)  # of method, address and body
    status = models.PositiveSmallIntegerField(null=True)  # null: under way, seen by nobody else
    body = models.TextField(blank=True)
    location = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"], name="kept_answer_by_age")]
        constraints = [models.UniqueConstraint(fields=["person", "key"], name="kept_answer_once")]

    def __str__(self):
        return self.key
