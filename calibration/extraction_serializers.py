"""Extractions of claims as the API takes and gives them."""

from rest_framework import serializers

from calibration.judges.extracting import ExtractionWording
from calibration.models import ExtractionPromptVersion, Verdict
from calibration.prompt_serializers import VERSION, PromptMessage, authorship_of, wording_text
from calibration.serializers import BudgetLimits, DryRun, JudgeRunRow, JudgeRunWhole, whole
from evalsets.fields import Choice, Flag, Shaped, Text, Whole


class NewExtraction(BudgetLimits):
    """Which model takes the responses of which draft runs apart."""

    judge = Text(max_length=200, help_text="An LLM judge of the eval set; its prompt is another one here.")
    prompt_version = Shaped(VERSION, required=False, help_text="Of the prompts here; without one the newest.")
    system_runs = serializers.ListField(
        child=Whole(min_value=1, max_value=2**31 - 1),
        required=False,
        help_text="Numbers; without any: all drafts.",
    )
    response = Text(required=False, max_length=500, help_text="Only this one (by its id), asked about again.")
    again = Flag(required=False, default=False, help_text="Replace what was extracted before, too.")
    max_tokens = whole(min_value=64, max_value=1_000_000, help_text="Of an answer.")
    use_cache = Flag(required=False, default=True)
    dry_run = Flag(required=False, default=False, help_text="Only say what it would take.")


class ExtractionRow(JudgeRunRow):
    prompt_version = serializers.CharField(source="requested.prompt_version")

    class Meta(JudgeRunRow.Meta):
        fields = ["run", "judge", "prompt_version", "state", "counts", "created_at", "finished_at"]
        read_only_fields = fields

    dimensions = rubric_version = None


class ResponsesLeft(serializers.Serializer):
    """The responses of the runs by what an extraction does with them."""

    without_claims = serializers.IntegerField()
    looked_at_and_none = serializers.IntegerField()
    extracted = serializers.IntegerField()
    came_with_claims = serializers.IntegerField()
    labelled = serializers.IntegerField()
    empty = serializers.IntegerField()


class DryExtraction(DryRun):
    """What an extraction would take."""

    prompt_version = serializers.CharField()
    responses = ResponsesLeft()


class ResponsesTakenApart(serializers.Serializer):
    with_claims = serializers.IntegerField()
    without = serializers.IntegerField()


class ExtractionWhole(JudgeRunWhole):
    """What the command `extract_claims` prints."""

    dimensions = None
    prompt_version = serializers.CharField()
    responses = ResponsesTakenApart()


class CancelledExtraction(ExtractionWhole):
    not_asked_about = serializers.IntegerField()


class AnswerRow(serializers.ModelSerializer):
    """One answer of the model; the claims themselves stand with the response."""

    id = serializers.IntegerField(source="pk")
    response_id = serializers.CharField(source="response.response_id")
    failure = serializers.CharField(allow_blank=True)
    found = serializers.CharField(source="label", allow_blank=True, help_text="claims or no_claims.")

    class Meta:
        model = Verdict
        fields = [
            "id",
            "response_id",
            "state",
            "found",
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


class AnswerQuery(serializers.Serializer):
    state = Choice(Verdict.State.choices, required=False)
    failure = Choice(Verdict.Failure.choices, required=False)


class NewExtractionPrompt(serializers.Serializer):
    """A whole wording, as `extractions/prompts/N/` tells one; fences and form of the answer are fixed."""

    system = wording_text('{nonce} is filled in. It names the keys of the answer: "claims", "quote", "text".')
    closing = wording_text()
    note = Text(required=False, allow_blank=True, max_length=5000, help_text="What changed, and why.")


class ExtractionPromptRow(serializers.Serializer):
    """`note`, author and time are null of the built-in one, version 1."""

    version = serializers.CharField()
    sha256 = serializers.CharField(help_text="As every claim that it made keeps it.")
    system = serializers.CharField()
    closing = serializers.CharField()
    note = serializers.CharField(allow_null=True, allow_blank=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, given: tuple[ExtractionWording, ExtractionPromptVersion | None]) -> dict:
        wording, row = given
        texts = {name: getattr(wording, name) for name in ("version", "sha256", "system", "closing")}
        return super().to_representation(texts | authorship_of(row))


class ExtractionTrialQuery(serializers.Serializer):
    item = Text(max_length=300, help_text="The id of a response.")


class ExtractionTrial(serializers.Serializer):
    """What a model would be sent about a response, word for word. Nothing is sent."""

    version = serializers.CharField()
    messages = PromptMessage(many=True)
