"""What is asked of the gold set and of the native file."""

from rest_framework import serializers

from annotate.models import GoldLabel
from calibration.partition import PARTS
from calibration.serializers import whole
from evalsets.fields import Choice, Flag, Text


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
