"""Rubrics and notes for them, as the API takes and gives them."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE
from annotate.material import content_of
from annotate.models import RubricVersion
from annotate.rubric_rules import MAX_LABELS, MAX_NAME, MAX_TEXT, Content
from annotate.serializers import LARGEST, whole
from evalsets.fields import Choice, Flag, Text, Whole

TARGETS = [(kind, kind) for kind in (CLAIM, RESPONSE, CITATION, PASSAGE)]


def _text(**options) -> Text:
    return Text(**{"allow_blank": True, "max_length": MAX_TEXT, **options})


class RubricLabel(serializers.Serializer):
    name = _text(max_length=MAX_NAME)
    key = _text(max_length=1, help_text="Of the keyboard.")
    definition = _text()
    examples = serializers.ListField(child=_text(), max_length=100)


class AskedWhen(serializers.Serializer):
    dimension = _text(max_length=MAX_NAME, help_text="An earlier one.")
    labels = serializers.ListField(child=_text(max_length=MAX_NAME), max_length=MAX_LABELS)


class RubricDimension(serializers.Serializer):
    name = _text(max_length=MAX_NAME)
    target = Choice(TARGETS)
    question = _text()
    asked_when = AskedWhen(allow_null=True, help_text="Null: always.")
    labels = RubricLabel(many=True)


class KnownCase(serializers.Serializer):
    """A case whose label is known: graders and judges are tried on it."""

    dimension = _text(max_length=MAX_NAME)
    question = _text()
    passages = serializers.ListField(child=_text(), max_length=100)
    response = _text()
    claim = _text(help_text="Empty where the whole response is labelled.")
    label = _text(max_length=MAX_NAME)
    explanation = _text()


class RubricContent(serializers.Serializer):
    decisions = _text()
    reference_based = Flag(help_text="Graders see the reference answer.")
    dimensions = RubricDimension(many=True)
    warm_up_cases = KnownCase(many=True)


class NewRubricVersion(RubricContent):
    """A whole rubric, as `rubric/versions/N/` tells one."""

    settles = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST),
        required=False,
        max_length=1000,
        help_text="Ids of the notes that this version settles.",
    )


class RubricRow(serializers.ModelSerializer):
    version = serializers.IntegerField(source="number")
    name = serializers.CharField(source="rubric.name")
    created_by = serializers.CharField(allow_null=True)
    rounds = serializers.SerializerMethodField(help_text="That use it, as SLUG@VERSION:ROUND.")

    class Meta:
        model = RubricVersion
        fields = ["version", "name", "sha256", "created_at", "created_by", "rounds"]
        read_only_fields = fields

    def get_rounds(self, found) -> list[str]:
        return [f"{round.version}:{round.number}" for round in found.rounds.all()]


class RubricWhole(RubricRow):
    content = serializers.SerializerMethodField()

    class Meta(RubricRow.Meta):
        fields = [*RubricRow.Meta.fields, "content"]
        read_only_fields = fields

    @extend_schema_field(RubricContent)
    def get_content(self, found) -> Content:
        return content_of(found)


class RubricChangesQuery(serializers.Serializer):
    earlier = whole(required=True)
    later = whole(required=True)


class Piece(serializers.Serializer):
    kind = serializers.ChoiceField(["same", "added", "removed", "left_out"])
    text = serializers.CharField(allow_blank=True, help_text="Of what is left out: how many lines.")

    def to_representation(self, piece):
        return {"kind": piece[0], "text": piece[1]}


class RubricChange(serializers.Serializer):
    where = serializers.ListField(child=serializers.CharField(), help_text="From the outside in.")
    kind = serializers.ChoiceField(["added", "removed", "changed", "moved"])
    pieces = Piece(many=True)


class RubricChanges(serializers.Serializer):
    earlier = serializers.IntegerField()
    later = serializers.IntegerField()
    changes = RubricChange(many=True)


class NoteRow(serializers.Serializer):
    """What the rubric should say, noted with a decision; `labels` counts what graders said there."""

    id = serializers.IntegerField(source="task.pk")
    note = serializers.CharField(source="task.text", allow_blank=True)
    noted_by = serializers.CharField(source="task.created_by")
    noted_at = serializers.DateTimeField(source="task.created_at")
    is_dismissed = serializers.SerializerMethodField()
    dimension = serializers.CharField(source="task.adjudication.dimension", allow_null=True, default=None)
    target = serializers.CharField(source="address", allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    labels = serializers.DictField(child=serializers.IntegerField())

    def get_is_dismissed(self, shown) -> bool:
        return shown.task.dismissed_at is not None


class MovedNote(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    is_dismissed = serializers.SerializerMethodField()

    def get_is_dismissed(self, task) -> bool:
        return task.dismissed_at is not None
