import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.models import Round
from calibration.pairing import chosen_round, dimensions_of, table_of
from calibration.sightings import note_sighting
from calibration.table import left_out
from calibration.targets import targets_of
from evalsets.models import Claim
from tests.calibration.labelled import an_adjudicator, judged, labelled_set

pytestmark = pytest.mark.django_db


def table(labelled, dimension="grounding", judge_run=None):
    return table_of(version=labelled.version, round=labelled.round, dimension=dimension, judge_run=judge_run)


def test_labels_meet_by_target_whatever_the_order_of_the_rows():
    labelled = labelled_set()
    response = labelled.response("r1")
    claims = [labelled.claim(response) for _ in range(3)]
    for claim, first, second in (
        (claims[2], "supported", "contradicted"),
        (claims[0], "unsupported", "unsupported"),
        (claims[1], None, "unverifiable"),
    ):
        labelled.label(response, claim, "grounding", (first, second))

    made = table(labelled)

    assert made.targets.target.tolist() == [claim.pk for claim in claims]
    assert made.graders[0].codes.tolist() == [2, -1, 0]
    assert made.graders[1].codes.tolist() == [2, 3, 1]
    assert made.gold.codes.tolist() == [2, -1, -1]


def test_every_target_without_a_label_keeps_its_reason():
    labelled = labelled_set()
    graded = labelled.response("graded")
    labelled.claim(graded, "supported", "supported")
    labelled.claim(graded, "supported", "contradicted")
    labelled.claim(graded, "supported", None)
    labelled.claim(labelled.response("not given out", assigned=False))

    made = table(labelled)

    assert left_out(*made.graders) == {"not_assigned": 1, "not_labelled": 1}
    assert left_out(*made.graders[::-1]) == left_out(*made.graders)
    assert made.gold.missing() == {"not_labelled": 2, "unresolved": 1}


def test_failed_pending_and_missing_verdicts_are_counted_apart():
    labelled = labelled_set()
    response = labelled.response("r1")
    claims = [labelled.claim(response, "supported", "supported") for _ in range(4)]
    run = judged(labelled, [(response, claims[0], "supported"), (response, claims[1], "truncated")])
    run.verdicts.create(response=response, claim=claims[2], dimension="grounding")

    made = table(labelled, judge_run=run)

    assert made.judge.codes.tolist() == [0, -1, -1, -1]
    assert made.judge.missing() == {"not_judged": 1, "verdict_failed": 1, "verdict_pending": 1}


def test_agreement_takes_the_first_of_several_verdicts_on_a_target_and_rates_all():
    labelled = labelled_set()
    response = labelled.response("r1")
    claims = [labelled.claim(response, "supported", "supported") for _number in range(2)]
    said = (("supported", "unsupported", "unparseable"), ("timeout", "supported", "supported"))
    verdicts = [(response, claim, labels) for claim, labels in zip(claims, said, strict=True)]
    judge = table(labelled, judge_run=judged(labelled, verdicts, repeats=3)).judge

    assert judge.codes.tolist() == [0, -1]
    assert judge.missing() == {"verdict_failed": 1}
    assert judge.runs.tolist() == [[0, 2, -1], [-1, 0, 0]]
    assert not judge.never_said().any()


def test_a_split_claim_counts_for_the_graders_and_its_parts_for_gold_and_judge():
    labelled = labelled_set()
    response = labelled.response("r1")
    parent = labelled.claim(response, "supported", "unsupported")
    parts = [labelled.claim(response, parent=parent) for _ in range(2)]
    for part, label in zip(parts, ("supported", "unsupported"), strict=True):
        labelled.label(response, part, "grounding", (), gold=label)
    run = judged(labelled, [(response, part, "supported") for part in parts])

    made = table(labelled, judge_run=run)

    assert made.originals().targets.target.tolist() == [parent.pk]
    assert made.leaves().targets.target.tolist() == [part.pk for part in parts]
    assert made.leaves().gold.codes.tolist() == [0, 2]
    assert made.leaves().judge.codes.tolist() == [0, 0]


def test_the_parts_of_a_split_that_was_taken_back_count_nowhere():
    labelled = labelled_set()
    response = labelled.response("r1")
    claim = labelled.claim(response, "supported", "unsupported", gold="supported")
    part = labelled.claim(response, parent=claim)
    split = labelled.round.splits.create(claim=claim, parts=["one"], state="taken_back")
    split.withdrawn.create(claim=part)
    run = judged(labelled, [(response, part, "unsupported"), (response, claim, "supported")])

    made = table(labelled, judge_run=run)

    for counting in (made.originals(), made.leaves()):
        assert counting.targets.target.tolist() == [claim.pk]
        assert counting.judge.codes.tolist() == [0]
    assert made.leaves().gold.codes.tolist() == [0]
    asked = targets_of(system_runs=labelled.runs, dimensions=["grounding"])
    assert [target.claim_id for target in asked] == [claim.pk]


@pytest.mark.parametrize(
    ("text", "empty"), [("", True), (" \n\t", True), ("\u00a0" * 60, True), (" " * 60 + "word", False)]
)
def test_an_empty_response_is_told_from_one_that_begins_with_blanks(text, empty):
    labelled = labelled_set()
    labelled.response("r1", text=text)

    made = table(labelled, "abstention")

    assert made.targets.empty.tolist() == [empty]
    assert (left_out(*made.graders) == {"empty_response": 1}) is empty


def decided(labelled, claim, label, by=None, **fields):
    """The lead decides: the latest decision holds."""
    target = {"round": labelled.round, "response": claim.response, "dimension": "grounding"}
    made = claim.adjudications.create(
        label=label, reason="other", by=by or an_adjudicator(), **target, **fields
    )
    values = {"label": label, "source": "adjudicated", "adjudication": made}
    claim.gold.update_or_create(**target, defaults=values)


def test_gold_that_a_verdict_influenced_is_kept_apart():
    labelled = labelled_set()
    response = labelled.response("r1")
    claim = labelled.claim(response, "supported", "unsupported")
    labelled.claim(response, "supported", "supported")
    decided(labelled, claim, "unsupported", judge_seen=True)

    made = table(labelled)

    assert made.gold.codes.tolist() == [2, 0]
    assert made.blind_gold().codes.tolist() == [-1, 0]
    assert made.blind_gold().missing() == {"gold_saw_judge": 1}


def test_what_held_before_a_verdict_was_seen_counts_and_the_decision_after_it_does_not():
    labelled = labelled_set()
    response = labelled.response("r1")
    agreed = labelled.claim(response, "supported", "supported")
    decided_before = labelled.claim(response, "supported", "unsupported", gold="unsupported")
    never_before = labelled.claim(response, "supported", "unsupported")
    by_another = labelled.claim(response, "supported", "unsupported")
    run = judged(labelled, [(response, agreed, "contradicted")])
    for _twice in range(2):
        note_sighting(run=run, person=an_adjudicator())
    for claim in (agreed, decided_before, never_before):
        decided(labelled, claim, "contradicted")
    decided(labelled, by_another, "contradicted", by=get_user_model().objects.create_user("another"))

    made = table(labelled)

    assert made.gold.codes.tolist() == [1, 1, 1, 1]
    assert made.gold_saw_judge.tolist() == [True, True, True, False]
    assert made.blind_gold().codes.tolist() == [0, 2, -1, 1]
    assert made.blind_gold().missing() == {"gold_saw_judge": 1}


def test_a_decision_of_before_the_first_look_counts():
    labelled = labelled_set()
    response = labelled.response("r1")
    claim = labelled.claim(response, "supported", "unsupported", gold="unsupported")
    note_sighting(run=judged(labelled, [(response, claim, "supported")]), person=an_adjudicator())
    assert table(labelled).blind_gold().codes.tolist() == [2]


def test_targets_of_a_run_outside_the_round_are_not_in_the_table():
    labelled = labelled_set()
    labelled.claim(labelled.response("r1"), "supported", "supported")
    other = labelled.run("another system")
    labelled.round.runs.remove(other)
    labelled.claim(labelled.response("r2", run=other), "supported", "supported")

    assert len(table(labelled)) == 1


def test_the_latest_first_grading_with_labels_is_chosen():
    labelled = labelled_set(kind=Round.Kind.IMPORTED)
    rubric_version = labelled.round.rubric_version
    assert chosen_round(version=labelled.version) == labelled.round

    first = Round.objects.create(version=labelled.version, number=2, rubric_version=rubric_version)
    assert chosen_round(version=labelled.version) == labelled.round, "nobody has labelled in it yet"

    labelled.round = first
    labelled.claim(labelled.response("r1"), "supported", "supported")
    assert chosen_round(version=labelled.version) == first
    assert chosen_round(version=labelled.version, number=1).number == 1
    assert chosen_round(version=labelled.version, number=9) is None


def test_a_version_without_a_round_has_a_table_without_raters():
    labelled = labelled_set()
    labelled.claim(labelled.response("r1"))

    made = table_of(version=labelled.version, round=None, dimension="grounding")

    assert len(made) == 1
    assert made.graders == ()
    assert dimensions_of(None) == ["grounding", "abstention"]


def test_the_number_of_queries_does_not_grow_with_the_set():
    labelled = labelled_set()
    for number in range(3):
        labelled.claim(labelled.response(f"r{number}"), "supported", "supported")
    table(labelled)  # the round remembers its rubric from here on
    with CaptureQueriesContext(connection) as few:
        table(labelled)
    for number in range(3, 20):
        labelled.claim(labelled.response(f"r{number}"), "supported", "contradicted")
    with CaptureQueriesContext(connection) as many:
        table(labelled)

    assert Claim.objects.count() == 20
    assert len(many) == len(few)
    assert not any('"evalsets_claim"."text"' in query["sql"] for query in many)
