"""One-page reports, alerts and what trust rests on, as the API takes and gives them."""

from rest_framework import serializers

from calibration.drift_serializers import StandingWhole
from calibration.models import Alert, CalibrationSplit, GateThresholds, Summary
from calibration.serializers import Figures, whole
from calibration.thresholds import NAMES
from calibration.trust_forms import LARGEST_SEED
from evalsets.fields import Choice, Number, Text, Whole


class SummaryRow(serializers.ModelSerializer):
    report = serializers.IntegerField(source="number")
    round = serializers.IntegerField(source="round.number")
    created_by = serializers.CharField(allow_null=True)

    class Meta:
        model = Summary
        fields = ["report", "round", "created_at", "created_by"]
        read_only_fields = fields


class NewSummary(serializers.Serializer):
    round = whole(help_text="Without one: the round that holds.")


class SummaryWhole(serializers.Serializer):
    """All that the page says, frozen; but the rates of a judge whose gate has closed since are withheld."""

    report = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    superseded_by = serializers.IntegerField(allow_null=True)
    changed_since = serializers.BooleanField(help_text="Labels, gold or a gate are not what they were.")
    limits = serializers.ListField(child=serializers.CharField(), help_text="What the numbers do not say.")
    commands = serializers.DictField(child=serializers.CharField())
    version = Figures()
    round = Figures()
    systems = serializers.ListField(child=Figures())
    measured = Figures()
    graded = serializers.ListField(child=serializers.CharField())
    counts = Figures()
    agreement = Figures()
    rates = Figures()
    bar = serializers.FloatField()
    extraction = Figures()
    composition = Figures()
    judges = serializers.ListField(child=Figures())


# Alerts


class DeliveryRow(serializers.Serializer):
    channel = serializers.CharField()
    state = serializers.CharField()
    attempts = serializers.IntegerField()
    sent_at = serializers.DateTimeField(allow_null=True)


class AlertRow(serializers.ModelSerializer):
    id = serializers.IntegerField(source="pk")
    version = serializers.IntegerField(source="version.number", allow_null=True, default=None)
    title = serializers.CharField(source="title_here")
    text = serializers.CharField(source="text_here")
    acknowledged_by = serializers.CharField(allow_null=True)
    messages = DeliveryRow(source="deliveries", many=True)

    class Meta:
        model = Alert
        fields = [
            "id",
            "kind",
            "version",
            "title",
            "text",
            "link",
            "created_at",
            "acknowledged_at",
            "acknowledged_by",
            "messages",
        ]
        read_only_fields = fields


class SentAgain(serializers.Serializer):
    messages = serializers.IntegerField(help_text="How many were given up, and are tried again.")


# What trust rests on


class ThresholdChange(serializers.ModelSerializer):
    thresholds = serializers.DictField(help_text="Those that are not the server's.")
    by = serializers.CharField(allow_null=True)

    class Meta:
        model = GateThresholds
        fields = ["at", "by", "reason", "thresholds"]
        read_only_fields = fields


class DesignRow(serializers.ModelSerializer):
    round = serializers.IntegerField(source="round.number")
    few_shot = serializers.ListField(child=serializers.CharField())
    by = serializers.CharField(allow_null=True)

    class Meta:
        model = CalibrationSplit
        fields = ["round", "design", "stratum", "tuning_share", "seed", "few_shot", "note", "at", "by"]
        read_only_fields = fields


class StandingOfJudge(StandingWhole):
    judge = serializers.CharField()


class TrustWhole(serializers.Serializer):
    """The thresholds in force with every change of them, and where each judge stands in each dimension."""

    thresholds = serializers.DictField()
    changes = ThresholdChange(many=True)
    standings = StandingOfJudge(many=True)


def _threshold() -> Number:
    return Number(required=False, min_value=-1, max_value=1_000_000)


class NewThresholds(serializers.Serializer):
    """Those that are named are set; the others stay."""

    reason = Text(max_length=2000, help_text="It stands in every report from now on.")

    def get_fields(self):
        return super().get_fields() | {name: _threshold() for name in NAMES}


class NewDesign(serializers.Serializer):
    """How the items with gold were drawn, and which of them may tune a prompt."""

    round = whole(required=True)
    design = Choice(CalibrationSplit.Design.choices)
    stratum = Text(required=False, max_length=200, help_text="For a stratified draw.")
    tuning_share = Number(required=False, default=0, min_value=0, max_value=0.9)
    seed = Whole(min_value=0, max_value=LARGEST_SEED)
    few_shot = serializers.ListField(
        child=Text(max_length=500), required=False, default=list, help_text="Ids of items in a prompt."
    )
    note = Text(required=False, allow_blank=True, default="", max_length=2000)
