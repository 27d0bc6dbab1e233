"""Sentinel runs, what was found in them, and known cases, as the API takes and gives them."""

from rest_framework import serializers

from calibration.drift_forms import MOST, USUAL
from calibration.findings import sentence_of
from calibration.models import DriftFinding
from calibration.sentinels import LEAST
from calibration.serializers import BudgetLimits, Condition, Figures, Money, Tokens
from calibration.trust_forms import LARGEST_SEED
from evalsets.fields import Choice, Flag, Text, Whole
from evalsets.labels import LABELS


class StandingWhole(serializers.Serializer):
    """Where a judge stands in one dimension: `changes` say why a gate that was passed has closed (STALE)."""

    dimension = serializers.CharField(allow_null=True)
    state = serializers.CharField()
    judge_run = serializers.IntegerField(allow_null=True)
    report = serializers.IntegerField(allow_null=True)
    conditions = Condition(many=True)
    changes = serializers.ListField(child=serializers.CharField())


class SentinelPlanWhole(serializers.Serializer):
    """What is asked again, and when next. `problem`: why the latest run that was due could not be started."""

    targets = serializers.IntegerField()
    seed = serializers.IntegerField()
    every_days = serializers.IntegerField()
    next_at = serializers.DateTimeField()
    problem = serializers.CharField(allow_blank=True)
    budget_calls = serializers.IntegerField(allow_null=True)
    budget_tokens = serializers.IntegerField(allow_null=True)
    budget_money = serializers.FloatField(allow_null=True)
    created_at = serializers.DateTimeField()


class AskableAgain(serializers.Serializer):
    dimension = serializers.CharField()
    targets = serializers.IntegerField()
    least = serializers.IntegerField()


class ChartPoint(serializers.Serializer):
    """A share in one run, with the limits that the runs before it set."""

    judge_run = serializers.IntegerField()
    finished_at = serializers.DateTimeField(allow_null=True)
    share = Figures()
    centre = serializers.FloatField(allow_null=True)
    lower = serializers.FloatField(allow_null=True)
    upper = serializers.FloatField(allow_null=True)
    outside = serializers.BooleanField()


class ControlChart(serializers.Serializer):
    dimension = serializers.CharField()
    chart = serializers.CharField()
    points = ChartPoint(many=True)


class FreshRoundRow(serializers.Serializer):
    """A later round beside what it still lacks before the judge is compared with it."""

    dimension = serializers.CharField()
    version = serializers.IntegerField()
    round = serializers.IntegerField()
    judge_run = serializers.IntegerField()
    targets = serializers.IntegerField()
    least = serializers.IntegerField()
    unsettled = serializers.IntegerField()
    ungraded = serializers.IntegerField()


class DriftWhole(serializers.Serializer):
    judge = serializers.CharField()
    judge_run = serializers.IntegerField()
    standings = StandingWhole(many=True)
    plan = SentinelPlanWhole(allow_null=True)
    can_be_asked_again = AskableAgain(many=True)
    charts = ControlChart(many=True)
    fresh_rounds = FreshRoundRow(many=True)


class NewSentinelPlan(BudgetLimits):
    """What a trusted judge is asked again, and how often. It takes the place of the run's earlier plan."""

    dimensions = serializers.ListField(
        child=Choice([(name, name) for name in LABELS]),
        required=False,
        help_text="Without any: all in which it is trusted.",
    )
    targets = Whole(required=False, default=USUAL, min_value=LEAST, max_value=MOST, help_text="Of each.")
    every_days = Whole(required=False, default=7, min_value=1, max_value=90)
    seed = Whole(required=False, default=1, min_value=0, max_value=LARGEST_SEED)
    dry_run = Flag(required=False, default=False, help_text="Only say what one run would take.")


class DrySentinelPlan(serializers.Serializer):
    """What one sentinel run would take."""

    dry_run = serializers.BooleanField()
    targets = serializers.IntegerField()
    from_cache = serializers.IntegerField()
    calls = serializers.IntegerField()
    tokens = Tokens()
    cost = Money(allow_null=True)
    seconds = serializers.FloatField(allow_null=True)
    measured_calls = serializers.IntegerField()


class EndedPlan(serializers.Serializer):
    ended = serializers.BooleanField(help_text="False where there was no plan.")


class FindingRow(serializers.ModelSerializer):
    """What a later run says about the judge. Without an alarm: that nothing has changed."""

    id = serializers.IntegerField(source="pk")
    observed_version = serializers.IntegerField(source="round.version.number")
    observed_run = serializers.IntegerField(source="observed.number")
    round = serializers.IntegerField(source="round.number")
    is_sentinel = serializers.BooleanField()
    alarms = serializers.ListField(child=serializers.CharField())
    sentence = serializers.SerializerMethodField()
    figures = Figures(source="payload")

    class Meta:
        model = DriftFinding
        fields = [
            "id",
            "dimension",
            "observed_version",
            "observed_run",
            "round",
            "is_sentinel",
            "alarms",
            "sentence",
            "figures",
            "at",
        ]
        read_only_fields = fields

    def get_sentence(self, finding) -> str:
        return sentence_of(finding)


# Known cases


class JudgeQuery(serializers.Serializer):
    judge = Text(max_length=200)


class NewJudgeWarmUp(serializers.Serializer):
    judge = Text(max_length=200)
    again = Flag(required=False, default=False, help_text="Ask again where a call failed.")


class WarmUpAnswer(serializers.Serializer):
    """One known case: the label that is known, and what the judge said."""

    case = serializers.IntegerField(source="case.position")
    dimension = serializers.CharField(source="case.dimension")
    known_label = serializers.CharField(source="case.label")
    state = serializers.CharField()
    label = serializers.CharField(allow_blank=True)
    is_right = serializers.BooleanField()
    failure = serializers.CharField(allow_blank=True)
    detail = serializers.CharField(allow_blank=True)


class JudgeWarmUpWhole(serializers.Serializer):
    """The known cases of the rubric in force, as the judge would be asked today. They count for no number."""

    judge = serializers.CharField(source="judge.name")
    cases = serializers.SerializerMethodField()
    waiting = serializers.IntegerField()
    failed = serializers.IntegerField()
    right = serializers.IntegerField()
    is_done = serializers.BooleanField()
    answers = WarmUpAnswer(source="verdicts", many=True)

    def get_cases(self, found) -> int:
        return len(found.cases)


class StartedWarmUp(serializers.Serializer):
    asked = serializers.IntegerField(help_text="How many cases are asked about now.")
