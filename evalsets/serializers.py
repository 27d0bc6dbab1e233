"""Eval sets as the API takes and gives them."""

from rest_framework import serializers

from evalsets.fields import Choice, Flag, Text, Whole
from evalsets.labels import UNANSWERABLE_REASONS
from evalsets.models import (
    Claim,
    EvalSet,
    EvalSetVersion,
    Item,
    Membership,
    Passage,
    Response,
    State,
    System,
    SystemRun,
)
from evalsets.services import LONGEST_NAME


class EvalSetRow(serializers.ModelSerializer):
    roles = serializers.ListField(child=serializers.ChoiceField(Membership.Role.choices))

    class Meta:
        model = EvalSet
        fields = ["slug", "name", "created_at", "roles"]
        read_only_fields = fields


class EvalSetWhole(EvalSetRow):
    class Meta(EvalSetRow.Meta):
        fields = [*EvalSetRow.Meta.fields, "description"]
        read_only_fields = fields


class NewEvalSet(serializers.Serializer):
    name = Text(max_length=LONGEST_NAME)
    description = Text(required=False, allow_blank=True, default="", max_length=10_000)


class MemberRow(serializers.ModelSerializer):
    """One role of one person; who is lead and grader has two."""

    id = serializers.IntegerField(source="pk")
    username = serializers.CharField(source="person.username")
    is_active = serializers.BooleanField(source="person.is_active")

    class Meta:
        model = Membership
        fields = ["id", "username", "role", "is_active", "created_at"]
        read_only_fields = fields


class NewMember(serializers.Serializer):
    username = Text(max_length=150, help_text="Of an account that is there.")
    role = Choice(Membership.Role.choices)


class VersionRow(serializers.ModelSerializer):
    evalset = serializers.CharField(source="evalset.slug")
    version = serializers.IntegerField(source="number")
    created_by = serializers.CharField(allow_null=True)
    frozen_by = serializers.CharField(allow_null=True)
    notices = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = EvalSetVersion
        fields = [
            "evalset",
            "version",
            "state",
            "primary_unit",
            "content_hash",
            "source_name",
            "notices",
            "created_at",
            "created_by",
            "frozen_at",
            "frozen_by",
        ]
        read_only_fields = fields


class Counts(serializers.Serializer):
    items = serializers.IntegerField()
    responses = serializers.IntegerField()
    passages = serializers.IntegerField()
    claims = serializers.IntegerField()


class VersionWhole(VersionRow):
    counts = Counts()

    class Meta(VersionRow.Meta):
        fields = [*VersionRow.Meta.fields, "counts"]
        read_only_fields = fields


class Freezing(serializers.Serializer):
    primary_unit = Choice(
        EvalSetVersion.Unit.choices,
        required=False,
        help_text="What the headline counts; the version's own when it is not named.",
    )


class ShareRow(serializers.Serializer):
    name = serializers.CharField()
    n = serializers.IntegerField()
    of = serializers.IntegerField()


class CompositionWhole(serializers.Serializer):
    items = serializers.IntegerField()
    answerable = ShareRow(many=True)
    reasons = ShareRow(many=True)
    strata = serializers.DictField(child=ShareRow(many=True))
    without_strata = serializers.IntegerField()
    without_response = serializers.IntegerField()
    counts = Counts()
    warnings = serializers.ListField(child=serializers.CharField())


class ItemRow(serializers.ModelSerializer):
    strata = serializers.DictField(child=serializers.CharField(allow_blank=True))
    expected_documents = serializers.ListField(child=serializers.CharField(allow_blank=True), allow_null=True)
    expected_passages = serializers.ListField(child=serializers.CharField(allow_blank=True), allow_null=True)

    class Meta:
        model = Item
        fields = [
            "position",
            "item_id",
            "question",
            "strata",
            "answerable",
            "unanswerable_reason",
            "reference_answer",
            "expected_documents",
            "expected_passages",
            "variant_of",
        ]
        read_only_fields = fields


class ItemQuery(serializers.Serializer):
    search = Text(required=False, max_length=200, help_text="In the item's id and its question.")
    answerable = Flag(required=False)
    unanswerable_reason = Choice([(reason, reason) for reason in UNANSWERABLE_REASONS], required=False)


class SystemRow(serializers.ModelSerializer):
    settings = serializers.DictField()

    class Meta:
        model = System
        fields = ["name", "model", "provider", "family", "date", "settings", "fingerprint"]
        read_only_fields = fields


class RunRow(serializers.ModelSerializer):
    run = serializers.IntegerField(source="number")
    system = SystemRow()
    notices = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = SystemRun
        fields = [
            "run",
            "system",
            "state",
            "content_hash",
            "source_name",
            "notices",
            "created_at",
            "frozen_at",
        ]
        read_only_fields = fields


class RunWhole(RunRow):
    responses = serializers.IntegerField(source="n_responses")
    empty_responses = serializers.IntegerField(source="n_empty")
    claims = serializers.IntegerField(source="n_claims")

    class Meta(RunRow.Meta):
        fields = [*RunRow.Meta.fields, "responses", "empty_responses", "claims"]
        read_only_fields = fields


class RunQuery(serializers.Serializer):
    state = Choice(State.choices, required=False)


class PassageRow(serializers.ModelSerializer):
    id = serializers.CharField(source="passage_id")

    class Meta:
        model = Passage
        fields = ["rank", "id", "title", "document", "text"]
        read_only_fields = fields


class ClaimRow(serializers.ModelSerializer):
    id = serializers.CharField(source="claim_id")
    source_ids = serializers.ListField(child=serializers.CharField(allow_blank=True))

    class Meta:
        model = Claim
        fields = ["id", "text", "source_ids", "decision"]
        read_only_fields = fields


class ResponseRow(serializers.ModelSerializer):
    id = serializers.CharField(source="response_id")
    item_id = serializers.CharField(source="item.item_id")
    run = serializers.IntegerField(source="run.number")
    response = serializers.CharField(source="text")
    context = PassageRow(source="served", many=True)
    claims = ClaimRow(source="whole_claims", many=True)

    class Meta:
        model = Response
        fields = ["id", "item_id", "run", "sample", "response", "retrieval_query", "context", "claims"]
        read_only_fields = fields


class ResponseQuery(serializers.Serializer):
    run = Whole(min_value=1, max_value=2**31 - 1, required=False, help_text="Of this system run only.")


# Files in


class FileToImport(serializers.Serializer):
    """A file of the native format (JSON Lines or CSV, plain or gzipped)."""

    file = serializers.FileField(allow_empty_file=True)
    with_labels = Flag(required=False, default=False, help_text="Labels of graders and judges, too.")
    freeze = Flag(required=False, default=False, help_text="Freeze what was imported at once.")
    dry_run = Flag(required=False, default=False, help_text="Check everything, store nothing.")


class NamedFileToImport(FileToImport):
    name = Text(max_length=LONGEST_NAME, help_text="A name that exists makes the next version.")


class FileQuery(serializers.Serializer):
    """With a bare file as the body, the choices stand here."""

    with_labels = Flag(required=False)
    freeze = Flag(required=False)
    dry_run = Flag(required=False)


class ImportedRun(serializers.Serializer):
    run = serializers.IntegerField()
    system = serializers.CharField()
    state = serializers.CharField()
    content_hash = serializers.CharField(allow_blank=True)


class ImportedCounts(Counts):
    annotations = serializers.IntegerField()
    verdicts = serializers.IntegerField()


class ImportedFile(serializers.Serializer):
    """What the command prints, too."""

    evalset = serializers.CharField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    content_hash = serializers.CharField(allow_blank=True)
    counts = ImportedCounts()
    runs = ImportedRun(many=True)
    notices = serializers.ListField(child=serializers.CharField())
    problems = serializers.ListField(child=serializers.DictField())
    dry_run = serializers.BooleanField()


class ImportedResponses(ImportedFile):
    run = serializers.IntegerField()
    system = serializers.CharField()
