"""What is asked of the gold set and of the native file."""

from rest_framework import serializers

from annotate.forms import MAX_TEXT
from annotate.models import GoldLabel
from calibration.partition import PARTS
from calibration.serializers import LARGEST, Figures, whole
from evalsets.api.schema import ProblemError
from evalsets.fields import Choice, Flag, Text, Whole


class RoundQuery(serializers.Serializer):
    round = whole(help_text="Without one: the round that holds.")


def _several(help_text: str, child: serializers.Field | None = None):
    return serializers.ListField(
        child=child or Text(max_length=500), required=False, max_length=100, help_text=help_text
    )


class GoldQuery(RoundQuery):
    """Which records are written out whole; each name may stand several times, and none leaves nothing out."""

    dimensions = _several("Of the rubric.", Text(max_length=30))
    sources = _several("How gold came about.", Choice(GoldLabel.Source.choices))
    strata = _several("NAME=VALUE; of each name one of the values.")
    parts = _several("Of the calibration design.", Choice([(part, part) for part in PARTS]))
    notes = Flag(required=False, help_text="With what graders noted: free text that may name people.")


class ExportQuery(serializers.Serializer):
    labels = Flag(required=False, help_text="With everybody's labels and verdicts.")


class _TakingOver(serializers.Serializer):
    round = whole(help_text="To compare with; without one: the round that the file is from.")
    take_over = Flag(required=False, help_text="Make decisions of the changes; else they are only told.")
    lines = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST),
        required=False,
        max_length=10_000,
        help_text="With `take_over`: only the changes on these lines; without any: all that can be.",
    )
    judge_seen = Flag(
        required=False,
        help_text="Needed with `take_over`: had those who edited it seen verdicts of a judge on the targets? "
        "True where that is not known: such gold counts for no judge.",
    )
    note = Text(required=False, allow_blank=True, max_length=MAX_TEXT, help_text="For the log of decisions.")

    def validate(self, given):
        if given.get("take_over") and "judge_seen" not in given:
            raise serializers.ValidationError(
                {"judge_seen": [self.fields["judge_seen"].error_messages["required"]]}
            )
        return given


class EditedGold(_TakingOver):
    """The zip archive of the export, or gold.jsonl or gold.csv alone, gzipped or not."""

    file = serializers.FileField(allow_empty_file=True)


class EditedGoldQuery(_TakingOver):
    """With a bare file as the body, the choices stand here."""


class GoldMove(serializers.Serializer):
    dimension = serializers.CharField()
    to = serializers.CharField()
    n = serializers.IntegerField()

    def get_fields(self):
        return super().get_fields() | {"from": serializers.CharField(allow_null=True)}


class SaidOfTarget(serializers.Serializer):
    grader = serializers.CharField()
    label = serializers.CharField()


class GoldTarget(serializers.Serializer):
    dimension = serializers.CharField()
    target = serializers.CharField()
    response_id = serializers.CharField()
    claim_id = serializers.CharField(allow_null=True)
    passage = Figures(allow_null=True)
    question = serializers.CharField(allow_null=True, allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    source = serializers.CharField(allow_null=True)
    settled_at = serializers.DateTimeField(allow_null=True)
    decided_by = serializers.CharField(allow_null=True)
    decided_for = serializers.CharField(allow_null=True)
    labels = SaidOfTarget(many=True)


class GoldChange(GoldTarget):
    """`from` is null where the target has no gold; `why_no_gold` says why."""

    line = serializers.IntegerField()
    to = serializers.CharField()
    why_no_gold = serializers.CharField(allow_null=True)
    can_be_taken = serializers.BooleanField()

    def get_fields(self):
        return super().get_fields() | {"from": serializers.CharField(allow_null=True)}


class MissingGold(GoldTarget):
    label = serializers.CharField()


class EditedGoldCounts(serializers.Serializer):
    rows = serializers.IntegerField()
    same = serializers.IntegerField()
    changed = serializers.IntegerField()
    new = serializers.IntegerField()
    missing = serializers.IntegerField()
    left_out = serializers.IntegerField(help_text="By the choice of the export.")
    unusable = serializers.IntegerField()


class GivenFile(serializers.Serializer):
    name = serializers.CharField()
    sha256 = serializers.CharField()
    edited = serializers.BooleanField(allow_null=True, help_text="Null: no manifest came along.")


class ComparedGold(serializers.Serializer):
    """What the command `import_gold` prints: an edited gold set against what holds here."""

    evalset = serializers.CharField()
    version = serializers.IntegerField()
    content_hash = serializers.CharField()
    round = serializers.IntegerField()
    file = GivenFile()
    counts = EditedGoldCounts()
    moves = GoldMove(many=True)
    changed = GoldChange(many=True)
    new = GoldChange(many=True)
    missing = MissingGold(many=True)
    unusable = ProblemError(many=True)
    not_listed = serializers.DictField(child=serializers.IntegerField())
    differing = serializers.DictField(
        child=serializers.IntegerField(), help_text="Other fields that differ; they are not taken over."
    )
    notices = serializers.ListField(child=serializers.CharField())
    taken = serializers.IntegerField()
