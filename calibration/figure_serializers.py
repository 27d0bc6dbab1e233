"""Comparison, retrieval, pairs, planning and second looks, as the API takes and gives them."""

from rest_framework import serializers

from calibration.serializers import Figures, RoundFacts, whole
from evalsets.fields import Choice, Number, Shaped, Text
from evalsets.models import EvalSetVersion

PLACE = r"^[1-9][0-9]{0,8}:[1-9][0-9]{0,8}$"  # version and number


def place(help_text: str, **options) -> Shaped:
    return Shaped(PLACE, help_text=help_text, **options)


class CompareQuery(serializers.Serializer):
    """Two system runs; the second is judged like the first unless something else is said."""

    before = place("VERSION:RUN.")
    after = place("VERSION:RUN.")
    source_before = Text(required=False, max_length=250, help_text="gold, grader:NAME or judge:NAME.")
    source_after = Text(required=False, max_length=250)
    unit_before = Choice(EvalSetVersion.Unit.choices, required=False)
    unit_after = Choice(EvalSetVersion.Unit.choices, required=False)
    round_before = place("VERSION:ROUND; without one: that which holds.", required=False)
    round_after = place("VERSION:ROUND.", required=False)
    family = whole(max_value=999, help_text="How many comparisons are made together.")


class ComparisonWhole(serializers.Serializer):
    """What the command `compare` prints. `refused` says why the two must not be compared, if so.

    Each rate has the number of either side, the difference with its interval, the smallest that this set
    could show, and a sentence. Where a judge is not trusted on both systems, `withheld` has the reason.
    """

    version = serializers.CharField(required=False)
    source = serializers.CharField(required=False)
    unit = serializers.CharField(required=False)
    before = serializers.CharField(required=False)
    after = serializers.CharField(required=False)
    refused = serializers.ListField(child=serializers.CharField(), required=False)
    withheld = Figures(required=False)
    rates = serializers.ListField(child=Figures(), required=False)
    undefined = serializers.ListField(child=Figures(), required=False)
    nothing = serializers.BooleanField(required=False, help_text="A judge that is not trusted on both.")
    verdict = Figures(required=False)
    release_note = serializers.CharField(required=False)


class RetrievalQuery(serializers.Serializer):
    k = whole(max_value=100, help_text="Depth.")
    source = Text(required=False, max_length=250, help_text="Who says what is wrong: gold or grader:NAME.")
    round = whole(help_text="Without one: the round that holds.")


class WrongAnswers(serializers.Serializer):
    wrong = serializers.IntegerField()
    by_cause = serializers.DictField(child=serializers.IntegerField())
    per_system = serializers.ListField(child=Figures())


class RetrievalWhole(serializers.Serializer):
    """What the command `retrieval` prints, without the single cases."""

    version = serializers.CharField()
    source = serializers.CharField()
    round = RoundFacts(allow_null=True)
    retrieval = Figures()
    wrong_answers = WrongAnswers()
    optional = serializers.ListField(child=Figures())


class WrongAnswerRow(serializers.Serializer):
    response = serializers.CharField(help_text="Its id.")
    cause = serializers.CharField()
    missing = serializers.ListField(child=serializers.CharField(), help_text="Expected passages not served.")


class PairOfSystem(serializers.Serializer):
    system = serializers.CharField()
    settings = serializers.DictField()
    over_answering = Figures(allow_null=True, help_text="Null where a judge was not asked about responses.")
    over_refusal = Figures(allow_null=True)


class SweepStep(serializers.Serializer):
    system = serializers.CharField()
    setting = serializers.CharField(allow_blank=True)


class SweepRow(serializers.Serializer):
    lever = serializers.CharField()
    steps = SweepStep(many=True)


class PairsQuery(serializers.Serializer):
    source = Text(required=False, max_length=250, help_text="gold, grader:NAME or judge:NAME.")
    round = whole(help_text="Without one: the round that holds.")


class PairsWhole(serializers.Serializer):
    """The points of the pair plot: both rates of every system, and what was swept between them."""

    version = serializers.CharField()
    source = serializers.CharField()
    round = RoundFacts(allow_null=True, required=False)
    withheld = Figures(required=False)
    systems = PairOfSystem(many=True)
    sweeps = SweepRow(many=True)


class ClaimAuditWhole(serializers.Serializer):
    """The share of extracted claims with a fault, by kind, and the claims that were missed, among others."""

    version = serializers.CharField()
    error = Figures()
    by_fault = Figures()
    missed_per_response = Figures()
    responses = serializers.IntegerField()
    responses_audited = serializers.IntegerField()
    responses_waiting = serializers.IntegerField()
    sentence = serializers.CharField()
    per_system = serializers.ListField(child=Figures())
    per_stratum = serializers.ListField(child=Figures())


class PlanQuery(serializers.Serializer):
    """A question to the planner; what is not said is what its page starts with."""

    judge = Text(required=False, max_length=200, help_text="Counted by; without one: people.")
    base = Number(required=False, min_value=0.5, max_value=99, help_text="The rate today, in percent.")
    difference = Number(
        required=False, min_value=0.1, max_value=99, help_text="The drop to be seen, in points."
    )
    design_effect = Number(required=False, min_value=1, max_value=20)
    human_kappa = Number(required=False, min_value=0.05, max_value=0.98)
    judge_kappa = Number(required=False, min_value=0, max_value=0.98)
    minutes = Number(required=False, min_value=0.05, max_value=240, help_text="Of one grader for one claim.")
    hourly = Number(required=False, min_value=0, max_value=10_000, help_text="What an hour costs.")


class PlanWhole(serializers.Serializer):
    """`needed`: units per system; `twice`: targets graded twice for the gate, if it can be passed so."""

    question = Figures()
    needed = serializers.IntegerField()
    cost = Figures()
    twice = serializers.IntegerField(allow_null=True)
    cost_twice = Figures(allow_null=True)
    curve = serializers.ListField(child=Figures())
    gate = serializers.ListField(child=Figures())


class SecondLookWhole(serializers.Serializer):
    """A grading looked at again, dimension by dimension."""

    version = serializers.CharField()
    round = RoundFacts()
    first_round = serializers.IntegerField(allow_null=True)
    unfinished = serializers.IntegerField(help_text="Assignments, one for each response and grader.")
    dimensions = serializers.ListField(child=Figures())
