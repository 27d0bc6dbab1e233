"""Judges, their runs, the verdicts and the calls behind them."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from annotate.models import RubricVersion, one_per_target, passage_of_target
from evalsets.labels import ABSTENTION, GROUNDING
from evalsets.models import Claim, EvalSet, EvalSetVersion, Response, SystemRun


class Judge(models.Model):
    """Immutable: another model, address, prompt or parameter is another judge."""

    class Kind(models.TextChoices):
        OPENAI = "openai", _("LLM behind an OpenAI-compatible address")
        LEXICAL = "lexical-baseline", _("lexical baseline")
        PHRASES = "phrase-matcher", _("phrase matcher")
        TRAINED = "trained-baseline", _("trained baseline")
        MAJORITY = "majority-label", _("majority label")
        PANEL = "panel", _("panel of judges")
        IMPORTED = "imported", _("imported verdicts")

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="judges")
    name = models.CharField(max_length=200)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    model = models.CharField(max_length=300, blank=True)
    provider = models.CharField(max_length=300, blank=True)
    family = models.CharField(max_length=300, blank=True)
    base_url = models.CharField(max_length=500, blank=True)
    api_key_variable = models.CharField(max_length=100, blank=True)  # the name of an environment variable
    prompt_version = models.CharField(max_length=50, blank=True)
    parameters = models.JSONField(default=dict, blank=True)
    # {prompt, cached, completion, currency}, for a million tokens; cached may be missing. A price may change:
    # no part of what the judge is.
    prices = models.JSONField(default=dict, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ["evalset", "pk"]
        constraints = [models.UniqueConstraint(fields=["evalset", "name"], name="judge_name_once")]

    def __str__(self):
        return self.name


class Endpoint(models.Model):
    """An address that judges call, and what all workers together may ask of it; null: no limit."""

    base_url = models.CharField(max_length=500, unique=True)
    concurrency = models.PositiveIntegerField(null=True, blank=True)
    tokens_per_minute = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["base_url"]

    def __str__(self):
        return self.base_url


class Worded(models.Model):
    """A wording of a prompt. Never changed: another wording is another row."""

    number = models.PositiveIntegerField()  # 1 is the built-in wording, which has no row
    system = models.TextField()
    closing = models.TextField()
    note = models.TextField(blank=True)  # what changed, and why
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        abstract = True

    def __str__(self):
        return str(self.number)


class ExtractionPromptVersion(Worded):
    """How a model is asked to take a response apart into claims."""

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="extraction_prompts")

    class Meta:
        ordering = ["evalset", "number"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "number"], name="extraction_prompt_number_once"),
            models.CheckConstraint(
                condition=Q(number__gte=2), name="extraction_prompt_number_after_built_in"
            ),
        ]


class PromptVersion(Worded):
    """How a judge is asked, beside the rubric's own words."""

    evalset = models.ForeignKey(EvalSet, on_delete=models.PROTECT, related_name="prompt_versions")
    methods = models.JSONField()  # what holds for each kind of target, by its name

    class Meta:
        ordering = ["evalset", "number"]
        constraints = [
            models.UniqueConstraint(fields=["evalset", "number"], name="prompt_number_once"),
            models.CheckConstraint(condition=Q(number__gte=2), name="prompt_number_after_built_in"),
        ]


class Budgeted(models.Model):
    """What may be spent at most; null: no limit."""

    budget_calls = models.PositiveBigIntegerField(null=True, blank=True)
    budget_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    budget_money = models.DecimalField(max_digits=14, decimal_places=6, null=True, blank=True)

    class Meta:
        abstract = True

    def limits_in_words(self, currency: str) -> str:
        words = []
        if self.budget_calls is not None:
            words.append(_("%(n)s calls") % {"n": self.budget_calls})
        if self.budget_tokens is not None:
            words.append(_("%(n)s tokens") % {"n": self.budget_tokens})
        if self.budget_money is not None:
            words.append(f"{self.budget_money.normalize():f} {currency}")
        return "; ".join(str(word) for word in words)


class JudgeRunQuerySet(models.QuerySet):
    def whole(self) -> "JudgeRunQuerySet":
        """Runs over all that they were asked about; a sentinel run asks again about a chosen few."""
        return self.filter(sentinel_plan__isnull=True)


class JudgingRuns(models.Manager.from_queryset(JudgeRunQuerySet)):  # type: ignore[misc]
    """Without the runs that extract claims: nobody who counts labels may meet those."""

    def get_queryset(self):
        return super().get_queryset().filter(purpose=JudgeRun.Purpose.JUDGING)


class JudgeRun(Budgeted):
    """What a judge was asked to do, at one time: to label targets, or to extract claims from responses."""

    class Purpose(models.TextChoices):
        JUDGING = "judging", _("judging")
        EXTRACTION = "extraction", _("extracting claims")

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        STOPPED = "stopped", _("stopped")
        COMPLETE = "complete", _("complete")

    class Origin(models.TextChoices):
        RUN = "run", _("run here")
        IMPORTED = "imported", _("imported")

    class StopReason(models.TextChoices):
        ASKED = "asked", _("somebody stopped it")
        BREAKER = "breaker", _("its calls all failed alike")
        BUDGET = "budget", _("its budget is used up")

    judge = models.ForeignKey(Judge, on_delete=models.PROTECT, related_name="runs")
    version = models.ForeignKey(EvalSetVersion, on_delete=models.PROTECT, related_name="judge_runs")
    purpose = models.CharField(max_length=10, choices=Purpose.choices, default=Purpose.JUDGING)
    number = models.PositiveIntegerField()
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.RUN)
    state = models.CharField(max_length=10, choices=State.choices, default=State.RUNNING)
    system_runs = models.ManyToManyField(SystemRun, related_name="judge_runs")
    rubric_version = models.ForeignKey(
        RubricVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="judge_runs"
    )
    dimensions = models.JSONField(default=list)
    repeats = models.PositiveSmallIntegerField(default=1)
    # Asked for: provider, base URL, model, prompt hash, rubric version, label set, parameters, parser.
    requested = models.JSONField(default=dict)
    requested_fingerprint = models.CharField(max_length=64, blank=True)
    use_cache = models.BooleanField(default=True)
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    prices = models.JSONField(default=dict, blank=True)  # those of the judge when the run was started
    stop_reason = models.CharField(max_length=10, choices=StopReason.choices, blank=True)
    stop_detail = models.TextField(blank=True)
    resumed_at = models.DateTimeField(default=timezone.now)  # its latest start
    policy = models.JSONField(default=dict)  # the gate's thresholds when the run was started
    sentinel_plan = models.ForeignKey(
        "SentinelPlan", on_delete=models.PROTECT, null=True, blank=True, related_name="runs"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    finished_at = models.DateTimeField(null=True, blank=True)

    every = models.Manager()  # also those that extract claims: workers serve both
    objects = JudgingRuns()

    class Meta:
        ordering = ["version", "number"]
        default_manager_name = "objects"  # a version's judge runs, a judge's runs: those that judge
        constraints = [
            models.UniqueConstraint(fields=["version", "purpose", "number"], name="judge_run_number_once"),
            models.CheckConstraint(
                condition=Q(origin="imported", requested_fingerprint="")
                | (Q(origin="run") & ~Q(requested_fingerprint="")),
                name="judge_run_has_fingerprint_unless_imported",
            ),
        ]

    def __str__(self):
        return f"{self.judge} run {self.number}"

    @property
    def extracts(self) -> bool:
        return self.purpose == self.Purpose.EXTRACTION

    @property
    def budget_in_words(self) -> str:
        return self.limits_in_words(self.prices.get("currency", ""))


VERDICT_LABEL_FITS = (
    Q(dimension="grounding", claim__isnull=False, passage__isnull=True, label__in=("", *GROUNDING))
    | Q(dimension="abstention", claim__isnull=True, passage__isnull=True, label__in=("", *ABSTENTION))
    | ~Q(dimension__in=["grounding", "abstention"])
)


class Verdict(models.Model):
    """One call's outcome. It has a label or a failure kind, never both: unscored is not wrong.

    Of an extraction it is about a response, and its label tells whether that makes claims.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        CLAIMED = "claimed", _("under way")
        VALID = "valid", _("valid")
        FAILED = "failed", _("failed")

    class Failure(models.TextChoices):
        TRANSPORT = "transport", _("no connection, or a fault of the server (5xx)")
        RATE_LIMITED = "rate_limited", _("rate limited (429)")
        TIMEOUT = "timeout", _("no answer in time")
        AUTH = "auth", _("key missing or refused")
        TOO_LONG = "too_long", _("too long for the model")
        BUDGET = "budget", _("the account's credit is used up")
        REJECTED = "rejected", _("request rejected (another 4xx)")
        TRUNCATED = "truncated", _("answer cut short")
        REFUSED_TO_JUDGE = "refused_to_judge", _("the judge refused")
        UNPARSEABLE = "unparseable", _("not the JSON asked for, or nothing")
        AMBIGUOUS = "ambiguous", _("more than one answer")
        OFF_MENU = "off_menu", _("a label that was not offered")
        NO_MAJORITY = "no_majority", _("the panel has no majority")
        NO_QUORUM = "no_quorum", _("too few of the panel have a label")
        OVERTAKEN = "overtaken", _("its claims were settled otherwise meanwhile")
        WITHDRAWN = "withdrawn", _("its split was taken back before it was asked")
        CANCELLED = "cancelled", _("cancelled before it was asked")
        INTERNAL = "internal", _("internal error")

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="verdicts")
    response = models.ForeignKey(Response, on_delete=models.PROTECT, related_name="verdicts")
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, null=True, blank=True, related_name="verdicts")
    passage = passage_of_target()
    dimension = models.CharField(max_length=30)
    run_index = models.PositiveSmallIntegerField(default=1)
    state = models.CharField(max_length=8, choices=State.choices, default=State.PENDING)
    label = models.CharField(max_length=30, blank=True)
    failure = models.CharField(max_length=16, choices=Failure.choices, blank=True)
    detail = models.TextField(blank=True)
    raw_output = models.TextField(blank=True)
    resolved_model = models.CharField(max_length=300, blank=True)
    effective_parameters = models.JSONField(default=dict)
    input_sha256 = models.CharField(max_length=64, blank=True)
    from_cache = models.BooleanField(default=False)
    prompt_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)  # of the prompt, from the server's own cache
    completion_tokens = models.PositiveIntegerField(null=True)
    milliseconds = models.PositiveIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    claim_token = models.UUIDField(
        null=True
    )  # who holds the lease; a late answer with another token is dropped
    lease_until = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)  # back-off after a retryable failure
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [
            models.Index(fields=["run", "state"], name="verdict_by_state"),
            models.Index(fields=["state", "lease_until"], name="verdict_sweep"),
            models.Index(fields=["input_sha256"], name="verdict_cache"),
            models.Index(
                fields=["run", "resolved_model"], condition=~Q(resolved_model=""), name="verdict_by_model"
            ),
        ]
        constraints = [
            *one_per_target("verdict", "run", "dimension", "run_index"),
            models.CheckConstraint(condition=VERDICT_LABEL_FITS, name="verdict_label_fits"),
            models.CheckConstraint(
                condition=(Q(state="valid", failure="") & ~Q(label=""))
                | (Q(state="failed", label="") & ~Q(failure=""))
                | Q(state__in=["pending", "claimed"], label="", failure=""),
                name="verdict_label_or_failure",
            ),
        ]

    def __str__(self):
        return f"{self.dimension}: {self.label or self.failure or self.state}"


class Call(models.Model):
    """One request to an endpoint, with what came of it. Request and reply may be pruned; the counts stay."""

    run = models.ForeignKey(JudgeRun, on_delete=models.PROTECT, related_name="calls")
    verdict = models.ForeignKey(Verdict, on_delete=models.PROTECT, related_name="calls")
    at = models.DateTimeField()
    failure = models.CharField(max_length=16, choices=Verdict.Failure.choices, blank=True)
    finish_reason = models.CharField(max_length=50, blank=True)
    request = models.TextField(blank=True)
    reply = models.TextField(blank=True)
    prompt_tokens = models.PositiveIntegerField(null=True)
    cached_tokens = models.PositiveIntegerField(null=True)  # part of the prompt's
    completion_tokens = models.PositiveIntegerField(null=True)  # thinking included
    reasoning_tokens = models.PositiveIntegerField(null=True)
    milliseconds = models.PositiveIntegerField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["run", "at"], name="call_of_run"),
            models.Index(fields=["at"], name="call_by_time"),
        ]

    def __str__(self):
        return self.failure or self.finish_reason


class WorkerSighting(models.Model):
    """When a worker last did anything, so that a page can say that none is running."""

    name = models.CharField(max_length=200, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self):
        return self.name
