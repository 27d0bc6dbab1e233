"""Watches over production, as the API takes and gives them."""

from rest_framework import serializers

from calibration.models import Watch, WatchBatch, WatchMark
from calibration.serializers import Figures
from calibration.watch_facts import judging_facts
from evalsets.fields import Day, Number, Shaped, Text
from evalsets.serializers import Counts


class WatchRow(serializers.ModelSerializer):
    judge = serializers.CharField(allow_null=True, source="judge.name", default=None)
    created_by = serializers.CharField(allow_null=True)

    class Meta:
        model = Watch
        fields = ["name", "judge", "minimum", "created_at", "created_by"]
        read_only_fields = fields


class NewWatch(serializers.Serializer):
    name = Shaped("^[-a-z0-9_]{1,60}$", help_text="The daily import calls it so.")
    judge = Text(required=False, max_length=200, help_text="Without one: only the phrase matcher.")
    minimum = Number(
        required=False,
        default=0.05,
        min_value=0.001,
        max_value=0.99,
        help_text="The smallest change of a share that is worth an alert.",
    )


class WatchWhole(WatchRow):
    """A watch with how many days it has, from when to when, and how many days between them have none."""

    batches = serializers.IntegerField(source="n_batches")
    first_date = serializers.DateField(allow_null=True)
    last_date = serializers.DateField(allow_null=True)
    days_without_batch = serializers.IntegerField()

    class Meta(WatchRow.Meta):
        fields = [*WatchRow.Meta.fields, "batches", "first_date", "last_date", "days_without_batch"]
        read_only_fields = fields


class JudgingRow(serializers.Serializer):
    """Who was asked about a day; `reason` says why somebody was not."""

    judge = serializers.CharField()
    dimension = serializers.CharField()
    gate = serializers.CharField()
    run = serializers.IntegerField(allow_null=True)
    run_state = serializers.CharField(allow_null=True)
    reason = serializers.CharField(allow_blank=True)

    def to_representation(self, judging):
        return judging_facts(judging)


class BatchRow(serializers.ModelSerializer):
    responses = serializers.IntegerField(source="n_responses")
    content_hash = serializers.CharField(source="material.content_hash")
    judged = JudgingRow(source="judgings", many=True)

    class Meta:
        model = WatchBatch
        fields = ["date", "responses", "content_hash", "file_sha256", "created_at", "judged"]
        read_only_fields = fields


class BatchFile(serializers.Serializer):
    """The day's responses (JSON Lines or CSV, plain or gzipped); labels in it are not read."""

    file = serializers.FileField(allow_empty_file=True)


class ImportedBatch(BatchRow):
    """With 200: the very file was this day's batch already, and nothing was done."""

    counts = Counts(allow_null=True)
    notices = serializers.ListField(child=serializers.CharField())

    class Meta(BatchRow.Meta):
        fields = [*BatchRow.Meta.fields, "counts", "notices"]
        read_only_fields = fields


class JudgedAgain(serializers.Serializer):
    asked = serializers.IntegerField()
    not_asked = serializers.IntegerField(help_text="The judge is not trusted, or was not able to start.")


class MarkRow(serializers.ModelSerializer):
    id = serializers.IntegerField(source="pk")

    class Meta:
        model = WatchMark
        fields = ["id", "date", "text"]
        read_only_fields = fields


class NewMark(serializers.Serializer):
    """What happened on a day and may explain a step: a deploy, another index, an outage."""

    date = Day()
    text = Text(max_length=200)


class MarkOfSeries(serializers.Serializer):
    date = serializers.DateField()
    text = serializers.CharField()


class WithheldSeries(serializers.Serializer):
    judge = serializers.CharField()
    dimension = serializers.CharField()
    state = serializers.CharField()


class SeriesWhole(serializers.Serializer):
    """What the command `watch_series` prints: each share by day, pooled points with limits, the step test."""

    watch = serializers.CharField()
    version = serializers.CharField()
    minimum = serializers.FloatField()
    marks = MarkOfSeries(many=True)
    series = serializers.ListField(child=Figures())
    withheld = WithheldSeries(many=True)
