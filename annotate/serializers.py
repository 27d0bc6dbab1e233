"""Rounds, decisions and own labels as the API takes and gives them."""

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotate.disagreement_kinds import Status
from annotate.forms import MAX_TEXT, SecondLookForm
from annotate.models import Adjudication, Annotation, Assignment, ClaimSplit, Round
from annotate.rubric_queries import WarmUpResult
from evalsets.fields import Choice, Flag, Number, Text, Whole
from evalsets.labels import LABELS

LARGEST = 2**31 - 1
REASONS = [pair for pair in Adjudication.Reason.choices if pair[0] not in Adjudication.GIVEN_BY_AN_ACTION]


def whole(**options):
    return Whole(**{"required": False, "min_value": 1, "max_value": LARGEST, **options})


# Rounds


class RoundRow(serializers.ModelSerializer):
    round = serializers.IntegerField(source="number")
    rubric_version = serializers.CharField()
    second_look_of = serializers.IntegerField(source="second_look_of.number", allow_null=True, default=None)

    class Meta:
        model = Round
        fields = [
            "round",
            "kind",
            "state",
            "rubric_version",
            "second_look_of",
            "overlap_kind",
            "overlap",
            "seed",
            "created_at",
            "closed_at",
        ]
        read_only_fields = fields


class NewRound(serializers.Serializer):
    graders = serializers.ListField(child=Text(max_length=150), help_text="User names.")
    system_runs = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST), required=False, help_text="Numbers; without any: all."
    )
    rubric_version = whole(help_text="Its number; without one: the latest.")
    warm_up = Flag(required=False, default=False)
    overlap = Choice(Round.Overlap.choices, required=False, default=Round.Overlap.ALL)
    count = whole(min_value=0, help_text="Of responses that several graders label: with first and random.")
    share = Number(required=False, min_value=0.1, max_value=100, help_text="In percent: with share.")
    stratum = Text(required=False, max_length=200, help_text="With share.")
    graders_each = whole(min_value=2, max_value=1000)
    seed = whole(min_value=0)


class GraderProgressRow(serializers.Serializer):
    grader = serializers.CharField(source="grader.name")
    done = serializers.IntegerField()
    total = serializers.IntegerField()
    skipped = serializers.IntegerField()
    keeps_waiting = serializers.IntegerField()
    labels = serializers.IntegerField()
    rushed = serializers.IntegerField()
    notes = serializers.IntegerField()
    flags = serializers.IntegerField()
    labels_an_hour = serializers.FloatField(source="pace", allow_null=True)
    hours_left = serializers.FloatField(allow_null=True)


class RoundProgressRow(serializers.Serializer):
    responses = serializers.IntegerField()
    untouched = serializers.IntegerField()
    waiting = serializers.IntegerField()
    complete = serializers.IntegerField()
    skipped = serializers.IntegerField()
    to_decide = serializers.IntegerField()
    agreed = serializers.IntegerField()
    adjudicated = serializers.IntegerField()
    single = serializers.IntegerField()


class RoundWhole(RoundRow):
    progress = RoundProgressRow()
    graders = GraderProgressRow(many=True)
    left_out = serializers.IntegerField(help_text="Responses in which there is nothing to label.")

    class Meta(RoundRow.Meta):
        fields = [*RoundRow.Meta.fields, "progress", "graders", "left_out"]
        read_only_fields = fields


class NewSecondLook(serializers.Serializer):
    n = whole(default=SecondLookForm.USUAL, max_value=100_000, help_text="Targets to draw.")
    dimension = Text(required=False, max_length=30, help_text="Without one: all.")
    of = Text(required=False, max_length=200, help_text="Only what this grader labelled.")
    graders = serializers.ListField(
        child=Text(max_length=150), min_length=1, help_text="User names of who looks again."
    )
    seed = whole(min_value=0, help_text="Without one: a new one.")


class Reassigning(serializers.Serializer):
    """Who is not named is everybody else in the round, evenly; at least one is."""

    grader = Text(required=False, max_length=200, help_text="Whose unfinished responses.")
    to = Text(required=False, max_length=150, help_text="User name of who takes over.")
    at_most = whole(help_text="Without it: all of them, or an even share.")


class Reassigned(serializers.Serializer):
    moved = serializers.IntegerField()
    left = serializers.IntegerField(help_text="With whoever was named.")


class WarmUpGrader(serializers.Serializer):
    grader = serializers.CharField()
    right = serializers.IntegerField()
    answered = serializers.IntegerField()


class WarmUpSaid(serializers.Serializer):
    grader = serializers.CharField()
    label = serializers.CharField(allow_null=True, help_text="Null: not answered yet.")


class WarmUpCaseRow(serializers.Serializer):
    """A known case of the rubric, and what was said of it."""

    case = serializers.IntegerField()
    dimension = serializers.CharField()
    known_label = serializers.CharField()
    answers = WarmUpSaid(many=True)


class WarmUpResults(serializers.Serializer):
    graders = WarmUpGrader(many=True)
    cases = WarmUpCaseRow(many=True)

    def to_representation(self, found: WarmUpResult) -> dict:
        return {
            "graders": [
                {"grader": grader.name, "right": right, "answered": answered}
                for grader, right, answered in found.right
            ],
            "cases": [
                {
                    "case": case.position,
                    "dimension": case.dimension,
                    "known_label": case.label,
                    "answers": [
                        {"grader": grader.name, "label": answer.label if answer else None}
                        for grader, answer in answers
                    ],
                }
                for case, answers in found.rows
            ],
        }


# Disagreements and decisions


class DisagreementQuery(serializers.Serializer):
    round = whole(help_text="Without one: the latest.")
    status = Choice([*Status.choices, ("all", "all")], required=False, default=Status.PENDING.value)
    dimension = Text(required=False, max_length=30)
    run = whole(help_text="Number of a system run.")


class DisagreementRow(serializers.Serializer):
    """`labels` counts graders by label; empty while somebody has yet to label it."""

    dimension = serializers.CharField()
    target = serializers.CharField()
    status = serializers.ChoiceField(Status.choices)
    labels = serializers.SerializerMethodField()
    split_proposed = serializers.BooleanField(source="proposed")
    noted = serializers.BooleanField()
    flagged = serializers.BooleanField()
    rushed = serializers.BooleanField()
    text = serializers.CharField(allow_blank=True)

    def get_labels(self, found) -> dict[str, int]:
        return {} if found.status == Status.WAITING else found.counts


class VoiceRow(serializers.Serializer):
    grader = serializers.IntegerField(source="number", help_text="Grader 1 is another one at each target.")
    label = serializers.CharField(source="annotation.label")
    note = serializers.CharField(source="annotation.note", allow_blank=True)
    evidence = serializers.ListField(source="annotation.evidence", child=serializers.IntegerField())
    seconds = serializers.FloatField(allow_null=True)
    flag = serializers.CharField(source="flag.note", allow_null=True, allow_blank=True, default=None)


class DecisionRow(serializers.ModelSerializer):
    by = serializers.CharField()
    revokes = serializers.SerializerMethodField()

    class Meta:
        model = Adjudication
        fields = ["label", "reason", "note", "judge_seen", "by", "at", "revokes"]
        read_only_fields = fields

    def get_revokes(self, decision) -> bool:
        return decision.revokes_id is not None


class CaseWhole(serializers.Serializer):
    round = serializers.IntegerField(source="round.number")
    dimension = serializers.CharField(source="dimension.name")
    target = serializers.CharField(source="address")
    response_id = serializers.CharField(source="response.response_id")
    question = serializers.CharField(source="response.item.question", allow_null=True, allow_blank=True)
    response = serializers.CharField(source="response.text", allow_blank=True)
    claim = serializers.CharField(source="claim.text", allow_null=True, default=None)
    label_names = serializers.ListField(source="dimension.label_names", child=serializers.CharField())
    voices = VoiceRow(many=True)
    decisions = DecisionRow(source="log", many=True)
    seen = serializers.CharField(source="fingerprint", help_text="To be sent with the decision.")


class Deciding(serializers.Serializer):
    label = Text(max_length=30)
    reason = Choice(REASONS)
    note = Text(required=False, allow_blank=True, default="", max_length=MAX_TEXT)
    for_rubric = Flag(required=False, default=False, help_text="The rubric should say this.")
    seen = Text(max_length=200, help_text="As the case told it: the decision is about what was seen.")


class SplitRow(serializers.ModelSerializer):
    """A proposal to judge a claim part by part."""

    id = serializers.IntegerField(source="pk")
    target = serializers.CharField(source="claim_id", help_text="Of grounding.")
    response_id = serializers.CharField(source="claim.response.response_id")
    claim_id = serializers.CharField(source="claim.claim_id")
    claim = serializers.CharField(source="claim.text")
    parts = serializers.ListField(child=serializers.CharField(allow_blank=True))
    decided_by = serializers.CharField(allow_null=True)

    class Meta:
        model = ClaimSplit
        fields = [
            "id",
            "target",
            "response_id",
            "claim_id",
            "claim",
            "parts",
            "state",
            "created_at",
            "decided_at",
            "decided_by",
        ]
        read_only_fields = fields


class SplitQuery(serializers.Serializer):
    state = Choice(ClaimSplit.State.choices, required=False)


class SplitPart(serializers.Serializer):
    text = Text(max_length=MAX_TEXT)
    label = Choice([(label, label) for label in LABELS["grounding"]])


class AcceptingSplit(serializers.Serializer):
    parts = SplitPart(many=True, help_text="At least two, each with a text of its own.")
    note = Text(required=False, allow_blank=True, default="", max_length=MAX_TEXT)


class SplittingClaim(AcceptingSplit):
    target = whole(required=True, help_text="The claim, as disagreements of grounding name it.")


class AcceptedSplit(serializers.Serializer):
    decisions = DecisionRow(
        many=True, help_text="One for each part, or for each decision on one that is taken back."
    )


class Revoking(serializers.Serializer):
    note = Text(required=False, allow_blank=True, default="", max_length=MAX_TEXT)


class SaidRow(serializers.Serializer):
    grader = serializers.CharField()
    label = serializers.CharField()


class LoggedRow(serializers.Serializer):
    number = serializers.IntegerField()
    at = serializers.DateTimeField(source="entry.at")
    by = serializers.CharField(source="entry.by")
    round = serializers.IntegerField(source="entry.round.number")
    dimension = serializers.CharField(source="entry.dimension")
    response_id = serializers.CharField(source="entry.response.response_id")
    claim_id = serializers.CharField(source="entry.claim.claim_id", allow_null=True, default=None)
    text = serializers.CharField(allow_blank=True)
    labels = serializers.SerializerMethodField()
    decision = serializers.CharField(source="entry.label")
    reason = serializers.CharField(source="entry.reason")
    note = serializers.CharField(source="entry.note", allow_blank=True)
    revokes = serializers.IntegerField(allow_null=True)
    revoked_by = serializers.IntegerField(allow_null=True)

    @extend_schema_field(SaidRow(many=True))
    def get_labels(self, logged):
        return [{"grader": name, "label": label} for name, label in logged.said]


# A grader's own work


class OwnRound(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    evalset = serializers.CharField(source="version.evalset.name")
    version = serializers.IntegerField(source="version.number")
    round = serializers.IntegerField(source="number")
    kind = serializers.CharField()
    state = serializers.CharField()
    done = serializers.IntegerField()
    total = serializers.IntegerField()


class OwnAssignment(serializers.ModelSerializer):
    id = serializers.IntegerField(source="pk")

    class Meta:
        model = Assignment
        fields = ["id", "order", "state", "skips"]
        read_only_fields = fields


class OwnQuery(serializers.Serializer):
    state = Choice(Assignment.State.choices, required=False)


class OwnPassage(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    rank = serializers.IntegerField()
    title = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True)


class OwnClaim(serializers.Serializer):
    id = serializers.IntegerField(source="pk")
    text = serializers.CharField()
    cites = serializers.ListField(child=serializers.IntegerField(), help_text="Ranks of passages.")

    def to_representation(self, claim):
        return {"id": claim.pk, "text": claim.text, "cites": sorted(claim.cites)}


class OwnTarget(serializers.Serializer):
    dimension = serializers.CharField(source="dimension.name")
    question = serializers.CharField(source="dimension.question")
    label_names = serializers.ListField(source="dimension.label_names", child=serializers.CharField())
    claim = serializers.IntegerField(source="claim.pk", allow_null=True, default=None)
    passage = serializers.IntegerField(source="passage.pk", allow_null=True, default=None)
    label = serializers.CharField(allow_blank=True)
    note = serializers.CharField(source="given.note", allow_blank=True)
    evidence = serializers.ListField(source="given.evidence", child=serializers.IntegerField())


class OwnScreen(serializers.Serializer):
    """What the grader's screen shows: the texts, what is asked, and what oneself has said so far."""

    id = serializers.IntegerField(source="assignment.pk")
    state = serializers.CharField(source="assignment.state")
    question = serializers.CharField(source="response.question", allow_null=True, allow_blank=True)
    response = serializers.CharField(source="response.text", allow_blank=True)
    reference_answer = serializers.CharField(
        source="response.reference_answer", allow_null=True, allow_blank=True
    )
    claims = OwnClaim(source="response.claims", many=True)
    passages = OwnPassage(source="response.passages", many=True)
    targets = OwnTarget(many=True)


class NewLabel(serializers.Serializer):
    dimension = Text(max_length=30)
    claim = whole(help_text="The claim's id, where the dimension asks of claims.")
    passage = whole(help_text="The passage's id, where the dimension asks of passages.")
    label = Text(max_length=30)
    note = Text(required=False, allow_blank=True, default="", max_length=MAX_TEXT)
    evidence = serializers.ListField(
        child=Whole(min_value=1, max_value=LARGEST), required=False, default=list, help_text="Ranks."
    )
    milliseconds = whole(min_value=0)


class OwnLabel(serializers.ModelSerializer):
    assignment = serializers.IntegerField(source="assignment_id")
    claim = serializers.IntegerField(source="claim_id", allow_null=True)
    passage = serializers.IntegerField(source="passage_id", allow_null=True)
    evidence = serializers.ListField(child=serializers.IntegerField())

    class Meta:
        model = Annotation
        fields = ["assignment", "dimension", "claim", "passage", "label", "note", "evidence", "updated_at"]
        read_only_fields = fields


class KeptLabel(serializers.Serializer):
    label = serializers.CharField()
    assignment_state = serializers.ChoiceField(Assignment.State.choices)


class TakenBack(serializers.Serializer):
    """All null where nothing is left to take back."""

    dimension = serializers.CharField(allow_null=True)
    label = serializers.CharField(allow_null=True)
    claim = serializers.IntegerField(allow_null=True)
    passage = serializers.IntegerField(allow_null=True)
