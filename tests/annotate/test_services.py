"""Rules of grading, without pages: rounds, labels, taking back, skipping."""

import uuid

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from annotate import services
from annotate.models import Annotation, AnnotationEvent, Assignment
from evalsets.labels import ABSTENTION, GROUNDING
from evalsets.models import Claim
from tests.annotate.worlds import (
    RESPONSES,
    gold_of,
    grader_of,
    make_round,
    make_version,
    queue_of,
    response_of,
    say,
)

# Graders and rubrics


def test_ensure_grader_is_the_same_for_the_same_person(evalset, grader_a):
    first = services.ensure_grader(evalset=evalset, name="grader_a", person=grader_a)
    assert services.ensure_grader(evalset=evalset, name="another name", person=grader_a) == first
    assert first.pseudonym == "grader 1"


def test_ensure_grader_does_not_take_an_imported_name_for_the_person(evalset, grader_a):
    imported = services.ensure_grader(evalset=evalset, name="grader_a")
    person = services.ensure_grader(evalset=evalset, name="grader_a", person=grader_a)
    assert (imported.name, person.name, person.number) == ("grader_a", "grader_a (2)", 2)


def test_rubric_has_every_label_with_two_examples(evalset):
    rubric = services.rubric_v1(evalset=evalset)
    assert services.rubric_v1(evalset=evalset) == rubric
    named = {d.name: [label["name"] for label in d.labels] for d in rubric.dimensions.all()}
    assert named == {"grounding": list(GROUNDING), "abstention": list(ABSTENTION)}
    for dimension in rubric.dimensions.all():
        for label in dimension.labels:
            assert label["definition"]
            assert len(label["examples"]) == 2


# Opening a round


def test_open_round_creates_all_assignments_and_leaves_out_the_empty_response(round, grader_a, grader_b):
    assert sorted(queue_of(round, grader_a)) == sorted(queue_of(round, grader_b)) == [1, 2, 4, 5, 6]
    assert RESPONSES[2][0] == ""


def test_open_round_leaves_out_a_response_that_nobody_could_see(evalset, grader_a, grader_b):
    version = make_version(evalset, responses=[("\u200b\u2060", []), ("The ferry leaves at nine.", [])])
    round = make_round(version, grader_a, grader_b)
    assert queue_of(round, grader_a) == queue_of(round, grader_b) == [2]


def test_open_round_with_overlap_of_two(version, grader_a, grader_b):
    round = make_round(version, grader_a, grader_b, overlap=2)
    mine, theirs = queue_of(round, grader_a), queue_of(round, grader_b)
    assert len(set(mine) & set(theirs)) == 2
    assert sorted(set(mine) | set(theirs)) == [1, 2, 4, 5, 6]


def test_open_round_refuses_a_draft(evalset, grader_a):
    draft = make_version(evalset, freeze=False)
    with pytest.raises(services.Refused, match="Freeze the version"):
        make_round(draft, grader_a)


def test_open_round_refuses_more_overlap_than_there_is(version, grader_a, grader_b):
    with pytest.raises(services.Refused, match="between 0 and 5"):
        make_round(version, grader_a, grader_b, overlap=6)


# Labels


def test_annotate_stores_one_row_and_its_history(round, grader_a):
    say(round, grader_a, 6, "supported", milliseconds=1500)
    say(round, grader_a, 6, "unsupported")
    row = Annotation.objects.get()
    assert row.label == "unsupported"
    assert list(AnnotationEvent.objects.values_list("action", "label")) == [
        ("labelled", "supported"),
        ("changed", "unsupported"),
    ]


def test_annotate_same_key_twice_is_one_submit(round, grader_a):
    key = uuid.uuid4()
    first = say(round, grader_a, 6, "supported", key=key)
    assert say(round, grader_a, 6, "supported", key=key) == first
    assert AnnotationEvent.objects.count() == 1


def test_annotate_same_key_after_take_back_does_not_label_again(round, grader_a):
    key = uuid.uuid4()
    say(round, grader_a, 6, "supported", key=key)
    services.take_back(round=round, grader=grader_of(round, grader_a))
    assert say(round, grader_a, 6, "supported", key=key).pk is None
    assert Annotation.objects.count() == 0


def test_annotate_same_key_for_another_label_is_refused(round, grader_a):
    key = uuid.uuid4()
    say(round, grader_a, 6, "supported", key=key)
    with pytest.raises(services.Conflict, match="another label"):
        say(round, grader_a, 6, "contradicted", key=key)


def test_annotate_without_assignment_is_refused(version, grader_a, grader_b, member):
    round = make_round(version, grader_a, grader_b)
    third = member("third", "grader")
    services.ensure_grader(evalset=version.evalset, name="third", person=third)
    with pytest.raises(services.NotAssigned):
        say(round, third, 6, "supported")
    assert Annotation.objects.count() == 0


@pytest.mark.parametrize("change", [services.pause_round, services.close_round])
def test_annotate_is_refused_when_the_round_is_not_open(round, grader_a, change):
    say(round, grader_a, 6, "supported")
    change(round=round)
    with pytest.raises(services.Conflict):
        say(round, grader_a, 6, "unsupported")
    with pytest.raises(services.Conflict):
        services.take_back(round=round, grader=grader_of(round, grader_a))
    assert Annotation.objects.get().label == "supported"


def test_paused_round_resumes_and_closed_does_not(round, grader_a):
    services.pause_round(round=round)
    services.resume_round(round=round)
    say(round, grader_a, 6, "supported")
    services.close_round(round=round)
    with pytest.raises(services.Conflict):
        services.resume_round(round=round)


@pytest.mark.parametrize(
    ("position", "claim", "dimension", "label"),
    [
        (6, None, "grounding", "supported"),
        (6, "c1", "abstention", "REFUSED"),
        (6, "c1", "grounding", "REFUSED"),
        (6, "c1", "grounding", "SUPPORTED"),
        (6, "c1", "correctness", "supported"),
        (3, None, "abstention", "REFUSED"),
    ],
)
def test_annotate_refuses_what_does_not_fit(round, grader_a, position, claim, dimension, label):
    response = response_of(round, position)
    with pytest.raises(services.Refused):
        services.annotate(
            round=round,
            grader=grader_of(round, grader_a),
            response=response,
            claim=response.claims.get(claim_id=claim) if claim else None,
            dimension=dimension,
            label=label,
        )
    assert AnnotationEvent.objects.count() == 0


def test_annotate_refuses_a_claim_of_another_response(round, grader_a):
    with pytest.raises(services.Refused, match="another response"):
        services.annotate(
            round=round,
            grader=grader_of(round, grader_a),
            response=response_of(round, 6),
            claim=Claim.objects.get(response__position=4),
            dimension="grounding",
            label="supported",
        )


def test_assignment_is_done_when_every_target_has_a_label(round, grader_a):
    say(round, grader_a, 1, "supported", "supported")
    own = Assignment.objects.get(round=round, grader=grader_of(round, grader_a), response__position=1)
    assert own.state == "pending"
    say(round, grader_a, 1, None, None, "ANSWERED")
    own.refresh_from_db()
    assert own.state == "done"
    assert own.done_at


def test_history_cannot_be_rewritten(round, grader_a):
    say(round, grader_a, 6, "supported")
    with pytest.raises(DatabaseError), transaction.atomic():
        AnnotationEvent.objects.update(label="contradicted")
    with pytest.raises(DatabaseError), transaction.atomic():
        AnnotationEvent.objects.all().delete()


def test_a_second_current_label_is_refused_by_the_database(round, grader_a):
    row = say(round, grader_a, 2, "REFUSED")
    row.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        row.save(force_insert=True)


# Taking back


def test_take_back_withdraws_the_latest_and_goes_further_each_time(round, grader_a, grader_b):
    grader = grader_of(round, grader_a)
    say(round, grader_a, 2, "REFUSED")
    say(round, grader_a, 6, "supported", "ANSWERED")
    say(round, grader_b, 6, "supported")
    taken = [services.take_back(round=round, grader=grader) for _ in range(4)]
    assert [event and event.label for event in taken] == ["ANSWERED", "supported", "REFUSED", None]
    assert set(Annotation.objects.values_list("grader", flat=True)) == {grader_of(round, grader_b).pk}
    assert AnnotationEvent.objects.filter(grader=grader).count() == 6


def test_take_back_reopens_the_assignment(round, grader_a):
    first = queue_of(round, grader_a)[0]
    say(round, grader_a, 2, "REFUSED")
    services.take_back(round=round, grader=grader_of(round, grader_a))
    own = Assignment.objects.get(grader=grader_of(round, grader_a), response__position=2)
    assert (own.state, own.done_at) == ("pending", None)
    assert queue_of(round, grader_a)[0] == first


def test_take_back_follows_a_change(round, grader_a):
    """The label changed last is the latest one, not the one given last."""
    say(round, grader_a, 2, "REFUSED")
    say(round, grader_a, 5, "CLARIFY")
    say(round, grader_a, 2, "ANSWERED")
    event = services.take_back(round=round, grader=grader_of(round, grader_a))
    assert (event.response.position, event.label) == (2, "ANSWERED")


def test_take_back_twice_with_one_key_is_one_take_back(round, grader_a):
    key, grader = uuid.uuid4(), grader_of(round, grader_a)
    say(round, grader_a, 1, "supported", "unsupported")
    assert services.take_back(round=round, grader=grader, key=key) == services.take_back(
        round=round, grader=grader, key=key
    )
    assert Annotation.objects.count() == 1


def test_take_back_removes_agreed_gold(round, grader_a, grader_b):
    say(round, grader_a, 2, "REFUSED")
    say(round, grader_b, 2, "REFUSED")
    assert gold_of(round)
    services.take_back(round=round, grader=grader_of(round, grader_a))
    assert gold_of(round) == {}


# Skipping


def test_skip_moves_to_the_end_of_the_own_queue_only(round, grader_a, grader_b):
    mine, theirs = queue_of(round, grader_a), queue_of(round, grader_b)
    for _ in range(len(mine) + 2):
        head = queue_of(round, grader_a)[0]
        services.skip(round=round, grader=grader_of(round, grader_a), response=response_of(round, head))
        mine = [*mine[1:], mine[0]]
        assert queue_of(round, grader_a) == mine
    assert queue_of(round, grader_b) == theirs


def test_skip_goes_to_the_very_end_also_from_an_older_tab(round, grader_a):
    mine = queue_of(round, grader_a)
    for position in (mine[-1], mine[0]):
        services.skip(round=round, grader=grader_of(round, grader_a), response=response_of(round, position))
    assert queue_of(round, grader_a) == [*mine[1:], mine[0]]
