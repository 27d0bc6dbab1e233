"""Samples of the claim audit, as the API takes and gives them."""

from rest_framework import serializers

from annotate.auditing import SampleProgress
from annotate.forms import MAX_TEXT
from annotate.models import AuditedResponse, ClaimAudit
from annotate.serializers import LARGEST, whole
from evalsets.fields import Choice, Text, Whole


class NewAuditSample(serializers.Serializer):
    system_runs = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST), required=False, help_text="Numbers; without any: all."
    )
    size = whole(default=30, max_value=10_000, help_text="Responses to look at.")
    seed = whole(min_value=0, help_text="Without one: a new one. A sample that has it is told.")


class AuditSampleRow(serializers.Serializer):
    """`closed`: not looked at, and closed to you until you have graded the response."""

    sample = serializers.IntegerField()
    seed = serializers.IntegerField()
    system_runs = serializers.ListField(child=serializers.IntegerField())
    responses = serializers.IntegerField()
    done = serializers.IntegerField()
    closed = serializers.IntegerField()
    next_position = serializers.IntegerField(allow_null=True, help_text="Where you go on.")
    created_by = serializers.CharField()
    created_at = serializers.DateTimeField()

    def to_representation(self, found: SampleProgress) -> dict:
        sample = found.sample
        return super().to_representation(
            {
                "sample": sample.number,
                "seed": sample.seed,
                "system_runs": [run.number for run in found.runs],
                "responses": found.total,
                "done": found.done,
                "closed": found.closed,
                "next_position": found.next_position,
                "created_by": sample.created_by,
                "created_at": sample.created_at,
            }
        )


class AuditedRow(serializers.ModelSerializer):
    response_id = serializers.CharField(source="response.response_id")
    is_done = serializers.SerializerMethodField()

    class Meta:
        model = AuditedResponse
        fields = ["position", "response_id", "is_done"]
        read_only_fields = fields

    def get_is_done(self, audited) -> bool:
        return audited.done_at is not None


class MarkedClaimRow(serializers.Serializer):
    """`mark` is empty while nobody has marked the claim; `text` is the claim as it was marked."""

    id = serializers.IntegerField(source="claim.pk")
    claim_id = serializers.CharField(source="claim.claim_id")
    text = serializers.CharField()
    mark = serializers.ChoiceField([("", "not marked"), *ClaimAudit.Mark.choices], allow_blank=True)
    was_corrected = serializers.BooleanField()


class RemovedClaimRow(serializers.Serializer):
    text = serializers.CharField()
    mark = serializers.ChoiceField(ClaimAudit.Mark.choices)


class AuditedWhole(serializers.Serializer):
    sample = serializers.IntegerField(source="audited.sample.number")
    position = serializers.IntegerField(source="audited.position")
    response_id = serializers.CharField(source="audited.response.response_id")
    question = serializers.CharField(
        source="audited.response.item.question", allow_null=True, allow_blank=True
    )
    response = serializers.CharField(source="audited.response.text", allow_blank=True)
    claims = MarkedClaimRow(many=True)
    removed = RemovedClaimRow(many=True, help_text="Marked, and removed by hand since.")
    missing = serializers.IntegerField(
        source="audited.missing", allow_null=True, help_text="Statements that no claim holds."
    )
    note = serializers.CharField(source="audited.note", allow_blank=True)
    done_at = serializers.DateTimeField(source="audited.done_at", allow_null=True)


class Marking(serializers.Serializer):
    claim = whole(required=True, help_text="Its id.")
    mark = Choice(ClaimAudit.Mark.choices)


class Finishing(serializers.Serializer):
    missing = whole(
        required=True,
        min_value=0,
        max_value=1000,
        help_text="Statements of the response that no claim holds.",
    )
    note = Text(required=False, allow_blank=True, default="", max_length=MAX_TEXT)
