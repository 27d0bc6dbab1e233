"""Judges, their runs, and what is told of them, as the API takes and gives it."""

from decimal import Decimal

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from calibration.checking import LIMITED
from calibration.judges import panel
from calibration.judges.prompts import BUILT_IN
from calibration.leases import DEFAULT_CONCURRENCY
from calibration.models import CalibrationReport, Judge, JudgeRun, Verdict
from calibration.spending import Budget
from evalsets.fields import Choice, Flag, Number, Shaped, Text, Whole
from evalsets.models import EvalSetVersion

LARGEST = 2**31 - 1
URL = r"https?://[A-Za-z0-9.\-]+(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~\-/]*)?"


def whole(**options):
    return Whole(**{"required": False, "min_value": 1, "max_value": LARGEST, **options})


class JudgeRow(serializers.ModelSerializer):
    parameters = serializers.DictField()
    prices = serializers.DictField()

    class Meta:
        model = Judge
        fields = [
            "name",
            "kind",
            "model",
            "provider",
            "family",
            "base_url",
            "api_key_variable",
            "prompt_version",
            "parameters",
            "prices",
            "is_active",
            "created_at",
        ]
        read_only_fields = fields


class NewJudge(serializers.Serializer):
    """An LLM behind an OpenAI-compatible address. It is never changed: another setting is another judge."""

    name = Text(max_length=200)
    model = Text(max_length=300, help_text="As the server names it.")
    base_url = Shaped(f"^{URL}$", max_length=500, required=False, help_text="Without one: JUDGE_BASE_URL.")
    provider = Text(required=False, allow_blank=True, max_length=300)
    family = Text(required=False, allow_blank=True, max_length=300)
    api_key_variable = Text(
        required=False,
        allow_blank=True,
        max_length=100,
        help_text="The name of a variable in the worker's environment; the key itself is never sent here.",
    )
    prompt_version = Text(required=False, max_length=50, default=BUILT_IN)
    only_cited = Flag(required=False)
    reasoning = Flag(required=False)
    reasoning_effort = Choice([(name, name) for name in ("minimal", "low", "medium", "high")], required=False)
    temperature = Number(required=False, min_value=0, max_value=2)
    max_tokens = whole(min_value=16, max_value=1_000_000)
    concurrency = whole(max_value=64, default=DEFAULT_CONCURRENCY)
    price_prompt = Number(required=False, min_value=0, max_value=99_999)
    price_cached = Number(
        required=False, min_value=0, max_value=99_999, help_text="Of tokens in from the server's cache."
    )
    price_completion = Number(required=False, min_value=0, max_value=99_999)
    currency = Shaped("^[A-Z]{3}$", required=False)


class NewPanel(serializers.Serializer):
    name = Text(max_length=200)
    members = serializers.ListField(child=Text(max_length=200), min_length=1, help_text="Names of judges.")
    rule = Choice([(rule, rule) for rule in (panel.MAJORITY, panel.MEAN)])


class StartedBaseline(serializers.Serializer):
    judge = serializers.CharField()
    run = serializers.IntegerField()


class StartedBaselines(serializers.Serializer):
    """None where every baseline has run already; `refused` says why one could not be started."""

    started = StartedBaseline(many=True)
    refused = serializers.ListField(child=serializers.CharField())


class JudgeRunRow(serializers.ModelSerializer):
    run = serializers.IntegerField(source="number")
    judge = serializers.CharField(source="judge.name")
    rubric_version = serializers.CharField(allow_null=True)
    dimensions = serializers.ListField(child=serializers.CharField())
    counts = serializers.SerializerMethodField()

    class Meta:
        model = JudgeRun
        fields = [
            "run",
            "judge",
            "origin",
            "state",
            "dimensions",
            "rubric_version",
            "repeats",
            "counts",
            "created_at",
            "finished_at",
        ]
        read_only_fields = fields

    def get_counts(self, run) -> dict[str, int]:
        return {"valid": run.valid, "failed": run.failed, "pending": run.total - run.valid - run.failed}


class JudgeRunQuery(serializers.Serializer):
    judge = Text(required=False, max_length=200)
    state = Choice(JudgeRun.State.choices, required=False)


class RunCounts(serializers.Serializer):
    valid = serializers.IntegerField()
    failed = serializers.IntegerField()
    pending = serializers.IntegerField()


class Tokens(serializers.Serializer):
    prompt = serializers.IntegerField()
    cached = serializers.IntegerField(help_text="Those of the prompt that the server had in its cache.")
    completion = serializers.IntegerField()


class Money(serializers.Serializer):
    amount = serializers.CharField()
    currency = serializers.CharField(allow_blank=True)


class Stopped(serializers.Serializer):
    reason = serializers.CharField()
    detail = serializers.CharField(allow_blank=True)


class JudgeRunWhole(serializers.Serializer):
    run = serializers.IntegerField()
    judge = serializers.CharField()
    dimensions = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(JudgeRun.State.choices)
    counts = RunCounts()
    failures = serializers.DictField(child=serializers.IntegerField())
    resolved_models = serializers.ListField(child=serializers.CharField())
    from_cache = serializers.IntegerField()
    tokens = Tokens()
    calls = serializers.IntegerField()
    calls_without_tokens = serializers.IntegerField()
    cost = Money(allow_null=True)
    stopped = Stopped(allow_null=True)


class DryRun(serializers.Serializer):
    """What a run would take. Only `judge`, `targets` and `calls` where the judge calls nobody."""

    dry_run = serializers.BooleanField()
    judge = serializers.CharField()
    targets = serializers.IntegerField()
    calls = serializers.IntegerField()
    conditional_at_most = serializers.IntegerField(required=False)
    from_cache = serializers.IntegerField(required=False)
    tokens = Tokens(required=False)
    cost = Money(required=False, allow_null=True)
    seconds = serializers.FloatField(required=False, allow_null=True)
    measured_calls = serializers.IntegerField(required=False)


class BudgetLimits(serializers.Serializer):
    """What a run may take at most. Calls under way at the limit end and count."""

    budget_calls = whole()
    budget_tokens = whole()
    budget_money = Number(required=False, min_value=0.000001, max_value=99_999_999)

    @staticmethod
    def budget_in(given: dict) -> Budget:
        money = given.get("budget_money")
        return Budget(
            calls=given.get("budget_calls"),
            tokens=given.get("budget_tokens"),
            money=None if money is None else Decimal(str(money)),
        )

    @classmethod
    def new_budget_in(cls, given: dict) -> Budget | None:
        """Of a run that goes on: None leaves it the one that it has."""
        budget = cls.budget_in(given)
        return budget if any(limit is not None for limit in budget.fields.values()) else None


class NewJudgeRun(BudgetLimits):
    judge = Text(max_length=200)
    dimensions = serializers.ListField(
        child=Text(max_length=30), required=False, help_text="Without any: all that the judge can be asked."
    )
    system_runs = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST), required=False, help_text="Numbers; without any: all."
    )
    repeats = whole(max_value=20, default=1)
    use_cache = Flag(required=False, default=True)
    dry_run = Flag(required=False, default=False, help_text="Only say what it would take.")


class Resuming(BudgetLimits):
    retry_failed = Flag(required=False, default=False, help_text="Ask again where a call failed.")


class VerdictRow(serializers.ModelSerializer):
    id = serializers.IntegerField(source="pk")
    failure = serializers.CharField(allow_blank=True)
    response_id = serializers.CharField(source="response.response_id")
    claim_id = serializers.CharField(source="claim.claim_id", allow_null=True, default=None)
    passage_id = serializers.CharField(source="passage.passage_id", allow_null=True, default=None)

    class Meta:
        model = Verdict
        fields = [
            "id",
            "dimension",
            "response_id",
            "claim_id",
            "passage_id",
            "run_index",
            "state",
            "label",
            "failure",
            "detail",
            "raw_output",
            "resolved_model",
            "from_cache",
            "prompt_tokens",
            "cached_tokens",
            "completion_tokens",
            "milliseconds",
            "attempts",
            "updated_at",
        ]
        read_only_fields = fields


class VerdictQuery(serializers.Serializer):
    dimension = Text(required=False, max_length=30)
    state = Choice(Verdict.State.choices, required=False)
    failure = Choice(Verdict.Failure.choices, required=False)


# Reports, agreement, rates


class ReportRow(serializers.ModelSerializer):
    report = serializers.IntegerField(source="number")
    judge_run = serializers.IntegerField(source="judge_run.number")
    round = serializers.IntegerField(source="round.number")

    class Meta:
        model = CalibrationReport
        fields = ["report", "judge_run", "round", "dimension", "gate_state", "created_at"]
        read_only_fields = fields


class NewReport(serializers.Serializer):
    dimension = Text(max_length=30)
    round = whole(help_text="Without one: the round that holds.")


class RoundFacts(serializers.Serializer):
    number = serializers.IntegerField()
    kind = serializers.CharField()
    state = serializers.CharField()
    rubric_version = serializers.CharField()


@extend_schema_field({"type": "object", "additionalProperties": True})
class Figures(serializers.DictField):
    """Figures by name; each is a number object, or `{"withheld": ...}` in its place."""


class Condition(serializers.Serializer):
    name = serializers.CharField()
    passed = serializers.BooleanField(allow_null=True)
    message = serializers.CharField()


class Gate(serializers.Serializer):
    state = serializers.CharField()
    conditions = Condition(many=True)
    changes = serializers.ListField(child=serializers.CharField())


class ReportWhole(serializers.Serializer):
    """What the command `calibration_report` prints. `rates` is withheld unless the gate is passed."""

    version = serializers.CharField()
    report = serializers.IntegerField()
    round = RoundFacts()
    created_at = serializers.DateTimeField()
    dimension = serializers.CharField()
    unit = serializers.CharField()
    judge = Figures()
    gate = Gate()
    agreement = Figures()
    rates = Figures()
    per_system = serializers.ListField(child=Figures())
    per_stratum = serializers.ListField(child=Figures())


class AgreementQuery(serializers.Serializer):
    round = whole(help_text="Without one: the round that holds.")
    dimension = Text(required=False, max_length=30, help_text="Without one: all of them.")


class AgreementWhole(serializers.Serializer):
    version = serializers.CharField()
    round = RoundFacts(allow_null=True)
    dimensions = serializers.ListField(child=Figures())


class RatesQuery(serializers.Serializer):
    source = Text(required=False, max_length=250, help_text="gold, grader:NAME or judge:NAME.")
    unit = Choice(EvalSetVersion.Unit.choices, required=False, help_text="Without one: the version's own.")
    round = whole(help_text="Without one: the round that holds.")


class RatesWhole(serializers.Serializer):
    """Beside these, the figures by name; `withheld` in their place where the judge is not trusted."""

    version = serializers.CharField()
    source = serializers.CharField()
    unit = serializers.CharField()


class CheckQuery(serializers.Serializer):
    judge = Text(max_length=200)
    unit = Choice(EvalSetVersion.Unit.choices, required=False)
    dimension = Choice([("grounding", "grounding"), ("abstention", "abstention")], required=False)
    max_rate = Shaped(
        rf"^({'|'.join(LIMITED)})=(0(\.[0-9]{{1,9}})?|1(\.0{{1,9}})?)"
        rf"(,({'|'.join(LIMITED)})=(0(\.[0-9]{{1,9}})?|1(\.0{{1,9}})?))*$",
        required=False,
        max_length=500,
        error_messages={"invalid": _("Limits such as hallucination=0.05, with commas between them.")},
        help_text="Such as hallucination=0.05; several with commas between them.",
    )

    @staticmethod
    def limits_in(given: dict) -> dict[str, float]:
        pairs = (part.split("=") for part in given.get("max_rate", "").split(",") if part)
        return {name: float(limit) for name, limit in pairs}


class GateLine(serializers.Serializer):
    dimension = serializers.CharField(allow_null=True)
    system = serializers.CharField(allow_null=True)
    state = serializers.CharField()
    passed = serializers.BooleanField()
    conditions = Condition(many=True)
    message = serializers.CharField()


class RateLine(serializers.Serializer):
    name = serializers.CharField()
    system = serializers.CharField(allow_null=True)
    limit = serializers.FloatField()
    value = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)
    passed = serializers.BooleanField()
    message = serializers.CharField()


class CheckWhole(serializers.Serializer):
    """What the command `check` prints: `passed` is its exit code."""

    version = serializers.CharField()
    judge = serializers.CharField()
    passed = serializers.BooleanField()
    gate = GateLine(many=True)
    rates = RateLine(many=True)


class MethodRow(serializers.Serializer):
    title = serializers.CharField()
    level = serializers.IntegerField()
    anchor = serializers.CharField()
    text = serializers.CharField(source="body", allow_blank=True, help_text="Markdown.")
