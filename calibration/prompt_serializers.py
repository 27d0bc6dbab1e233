"""Prompts, prices and doubts about gold, as the API takes and gives them."""

from typing import Any

from rest_framework import serializers

from calibration.judges.prompts import Wording
from calibration.models import GoldDoubt, PromptVersion, Worded
from calibration.prompt_versions import METHODS, MOST_CHARACTERS
from evalsets.fields import Flag, Number, Shaped, Text

VERSION = r"^[1-9][0-9]{0,8}$"


def wording_text(help_text: str = "") -> Text:
    return Text(max_length=MOST_CHARACTERS, help_text=help_text)


class Methods(serializers.Serializer):
    """How to decide, by what is asked."""

    def get_fields(self):
        return {name: wording_text() for name in METHODS}


class NewPrompt(serializers.Serializer):
    """A whole wording, as `prompts/N/` tells one; the fences around what is judged are no part of it."""

    system = wording_text("Filled in: {nonce}, {question}, {labels}, {decisions}, {method}, {menu}.")
    methods = Methods()
    closing = wording_text("{target} is filled in.")
    note = Text(required=False, allow_blank=True, max_length=5000, help_text="What changed, and why.")


def authorship_of(row: Worded | None) -> dict[str, Any]:
    """What the built-in wording, which has no row, has not."""
    return {name: getattr(row, name, None) for name in ("note", "created_by", "created_at")}


class PromptRow(serializers.Serializer):
    """`note`, author and time are null of the built-in one, version 1."""

    version = serializers.CharField()
    system = serializers.CharField()
    methods = serializers.DictField(child=serializers.CharField())
    closing = serializers.CharField()
    note = serializers.CharField(allow_null=True, allow_blank=True)
    created_by = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)

    def to_representation(self, given: tuple[Wording, PromptVersion | None]) -> dict:
        wording, row = given
        return super().to_representation(
            {
                "version": wording.version,
                "system": wording.system,
                "methods": dict(wording.methods),
                "closing": wording.closing,
                **authorship_of(row),
            }
        )


class PromptChangesQuery(serializers.Serializer):
    earlier = Shaped(VERSION)
    later = Shaped(VERSION)


class ChangedLine(serializers.Serializer):
    kind = serializers.ChoiceField([("same", "same"), ("added", "added"), ("removed", "removed")])
    text = serializers.CharField(allow_blank=True)

    KINDS = {" ": "same", "+": "added", "-": "removed"}

    def to_representation(self, line: tuple[str, str]) -> dict:
        return {"kind": self.KINDS[line[0]], "text": line[1]}


class ChangedPart(serializers.Serializer):
    part = serializers.CharField()
    lines = ChangedLine(many=True)


class PromptChanges(serializers.Serializer):
    earlier = serializers.CharField()
    later = serializers.CharField()
    changes = ChangedPart(many=True)


class TrialQuery(serializers.Serializer):
    item = Text(max_length=300, help_text="The id of a response.")
    claim_id = Text(required=False, allow_blank=True, max_length=300, help_text="Else the first claim.")
    dimension = Text(max_length=30)
    only_cited = Flag(required=False, help_text="Only the cited passages.")


class PromptMessage(serializers.Serializer):
    role = serializers.CharField()
    content = serializers.CharField()

    def to_representation(self, message: tuple[str, str]) -> dict:
        return dict(zip(("role", "content"), message, strict=True))


class PromptTrial(serializers.Serializer):
    """What a judge would be sent about a target, word for word. Nothing is sent."""

    version = serializers.CharField()
    messages = PromptMessage(many=True)
    label_names = serializers.ListField(child=serializers.CharField())


class Prices(serializers.Serializer):
    """Prices in and out, or none: then none are known. They hold for runs that are started from now on."""

    judge = Text(max_length=200, help_text="An LLM judge.")
    price_prompt = Number(required=False, min_value=0, max_value=99_999, help_text="Of a million tokens in.")
    price_cached = Number(
        required=False,
        min_value=0,
        max_value=99_999,
        help_text="Of a million tokens in from the server's cache; without it, that of the others.",
    )
    price_completion = Number(
        required=False, min_value=0, max_value=99_999, help_text="Of a million tokens out."
    )
    currency = Shaped("^[A-Z]{3}$", required=False)


class CaseQuery(serializers.Serializer):
    row = Text(required=False, max_length=30, help_text="The label of gold.")
    column = Text(
        required=False, max_length=30, help_text="The label of the judge; that of gold: where both agree."
    )
    group = Text(required=False, max_length=500, help_text="A system or stratum: NAME=VALUE.")


class CaseVoice(serializers.Serializer):
    grader = serializers.CharField()
    label = serializers.CharField()
    note = serializers.CharField(allow_blank=True)


class DoubtRow(serializers.ModelSerializer):
    by = serializers.CharField()

    class Meta:
        model = GoldDoubt
        fields = ["gold", "verdict", "note", "by", "at"]
        read_only_fields = fields


class CaseRow(serializers.Serializer):
    """A target on which the judge and gold differ. `gold_now` is another where it was decided anew since."""

    target = serializers.CharField(source="address")
    response_id = serializers.CharField(source="response.response_id")
    question = serializers.CharField(source="response.item.question", allow_null=True, allow_blank=True)
    text = serializers.CharField(allow_blank=True)
    gold = serializers.CharField()
    verdict = serializers.CharField()
    reason = serializers.CharField(allow_blank=True, help_text="The judge's own, where its answer has one.")
    gold_now = serializers.CharField(allow_blank=True)
    labels = CaseVoice(source="said", many=True)
    doubt = DoubtRow(allow_null=True)


class NewDoubt(serializers.Serializer):
    target = Shaped(r"^[0-9]{1,18}(-[0-9]{1,18})?$", help_text="As the cases name it.")
    note = Text(max_length=5000, help_text="Why gold is wrong: it stands in the log.")
