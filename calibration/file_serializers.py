"""Label files and traffic logs as the API takes them, and what it answers."""

from rest_framework import serializers

from calibration.sample_forms import LARGEST
from calibration.serializers import LARGEST as LARGEST_WHOLE
from calibration.serializers import Figures
from evalsets.fields import Choice, Flag, Text, Whole
from evalsets.labels import LABELS
from evalsets.serializers import ImportedCounts
from evalsets.services import LONGEST_NAME

DIMENSIONS = [(name, name) for name in LABELS]


class LabelFile(serializers.Serializer):
    """Labels (JSON Lines or CSV, plain or gzipped): item or response, claim, grader, label."""

    file = serializers.FileField(allow_empty_file=True)
    dimension = Choice(
        DIMENSIONS, required=False, help_text="What all labels are about, if lines do not say."
    )
    dry_run = Flag(required=False, default=False, help_text="Check everything, store nothing.")


class LabelFileQuery(serializers.Serializer):
    """With a bare file as the body, the choices stand here."""

    dimension = Choice(DIMENSIONS, required=False)
    dry_run = Flag(required=False)


class ImportedLabels(serializers.Serializer):
    """What the command `import_labels` prints: what the version holds now, and what came with the file."""

    evalset = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    content_hash = serializers.CharField(allow_blank=True)
    counts = ImportedCounts()
    notices = serializers.ListField(child=serializers.CharField())
    problems = serializers.ListField(child=serializers.DictField())
    dry_run = serializers.BooleanField()


class LogToSample(serializers.Serializer):
    """A traffic log (JSON Lines or CSV); only the lines that are drawn are stored."""

    file = serializers.FileField(allow_empty_file=True)
    name = Text(max_length=LONGEST_NAME, help_text="A name that exists makes the next version.")
    size = Whole(required=False, default=250, min_value=1, max_value=LARGEST)
    seed = Whole(
        required=False,
        min_value=0,
        max_value=LARGEST_WHOLE,
        help_text="The same log, columns, size and seed give the same draw. Without one: a new one.",
    )
    question = Text(required=False, allow_blank=True, max_length=200, help_text="The column of the question.")
    strata = serializers.ListField(
        child=Text(max_length=200),
        required=False,
        max_length=50,
        help_text="Columns to balance over; a key inside an object is outer.inner.",
    )
    dry_run = Flag(required=False, default=False, help_text="Only say what would be drawn.")


class LogCounts(serializers.Serializer):
    lines = serializers.IntegerField()
    blank = serializers.IntegerField()
    unreadable = serializers.IntegerField()
    without_question = serializers.IntegerField()
    repeated = serializers.IntegerField()


class DrawnSample(serializers.Serializer):
    """What the command `sample_log` prints. `evalset` and `version` are null where nothing was stored."""

    evalset = serializers.CharField(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    n = serializers.IntegerField()
    seed = serializers.IntegerField()
    question = serializers.CharField(allow_null=True)
    counts = LogCounts()
    strata = serializers.ListField(child=Figures())
    notices = serializers.ListField(child=serializers.CharField())
    dry_run = serializers.BooleanField()
