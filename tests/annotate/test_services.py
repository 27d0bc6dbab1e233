"""Rules of grading, without pages."""

import threading
import uuid

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from annotate import services
from annotate.models import Adjudication, Annotation, AnnotationEvent, Assignment, GoldLabel, Round
from evalsets.labels import ABSTENTION, GROUNDING
from evalsets.models import Claim
from tests.annotate.worlds import RESPONSES, grader_of, make_round, make_version, response_of, say


def gold_of(round):
    return {
        (g.dimension, g.response.position, g.claim.claim_id if g.claim else None): (g.label, g.source)
        for g in GoldLabel.objects.filter(round=round).select_related("response", "claim")
    }


def queue_of(round, person):
    return list(
        Assignment.objects.filter(round=round, grader=grader_of(round, person), state="pending")
        .order_by("skips", "order")
        .values_list("response__position", flat=True)
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


# Gold


def test_gold_is_agreed_single_or_none(version, grader_a, grader_b):
    round = make_round(version, grader_a, grader_b)
    say(round, grader_a, 1, "supported", "supported", "ANSWERED")
    assert gold_of(round) == {}
    say(round, grader_b, 1, "supported", "contradicted", "ANSWERED")
    assert gold_of(round) == {
        ("grounding", 1, "c1"): ("supported", "agreed"),
        ("abstention", 1, None): ("ANSWERED", "agreed"),
    }
    alone = make_round(version, grader_a)
    say(alone, grader_a, 2, "REFUSED")
    assert gold_of(alone) == {("abstention", 2, None): ("REFUSED", "single")}


# Adjudication


def decide(round, person, position, label, claim="c1", **more):
    response = response_of(round, position)
    return services.adjudicate(
        round=round,
        response=response,
        claim=response.claims.get(claim_id=claim) if claim else None,
        dimension="grounding" if claim else "abstention",
        label=label,
        reason=more.pop("reason", "edge_case"),
        person=person,
        **more,
    )


def test_adjudicate_needs_both_labels(round, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    with pytest.raises(services.Conflict, match="still missing"):
        decide(round, lead, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    decide(round, lead, 6, "contradicted", note="see passage 2")
    assert gold_of(round) == {("grounding", 6, "c1"): ("contradicted", "adjudicated")}


def test_adjudicate_again_appends_and_the_latest_holds(round, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    decide(round, lead, 6, "contradicted")
    decide(round, lead, 6, "unverifiable")
    assert list(Adjudication.objects.values_list("label", flat=True)) == ["contradicted", "unverifiable"]
    assert gold_of(round) == {("grounding", 6, "c1"): ("unverifiable", "adjudicated")}
    with pytest.raises(DatabaseError), transaction.atomic():
        Adjudication.objects.first().delete()


def test_labels_are_final_once_adjudicated(round, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    decide(round, lead, 6, "contradicted")
    with pytest.raises(services.Conflict, match="already decided"):
        say(round, grader_a, 6, "contradicted")
    with pytest.raises(services.Conflict, match="already decided"):
        services.take_back(round=round, grader=grader_of(round, grader_a))
    say(round, grader_a, 6, None, "ANSWERED")  # the rest of the response can still be finished


def test_adjudicate_works_in_a_closed_round(round, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    services.close_round(round=round)
    decide(round, lead, 6, "supported")
    assert gold_of(round) == {("grounding", 6, "c1"): ("supported", "adjudicated")}


# Splits


def propose(round, person, parts=("Dogs are allowed on deck.", "Dogs must be on a lead.")):
    claim = response_of(round, 4).claims.get(parent=None)
    return services.propose_split(round=round, grader=grader_of(round, person), claim=claim, parts=parts)


def test_propose_split_again_replaces_the_proposal(round, grader_a):
    first = propose(round, grader_a)
    assert propose(round, grader_a, ["a", "b", "c"]).pk == first.pk
    first.refresh_from_db()
    assert first.parts == ["a", "b", "c"]


@pytest.mark.parametrize("parts", [[], ["one"], ["same", " same "], ["one", "  "]])
def test_propose_split_refuses_less_than_two_parts(round, grader_a, parts):
    with pytest.raises(services.Refused):
        propose(round, grader_a, parts)


def test_accept_split_makes_parts_with_gold_and_keeps_the_annotations(round, lead, grader_a, grader_b):
    split = propose(round, grader_a)
    say(round, grader_a, 4, "unsupported")
    with pytest.raises(services.Conflict, match="still missing"):
        services.accept_split(split=split, parts=[("x", "supported"), ("y", "unsupported")], person=lead)
    say(round, grader_b, 4, "unsupported")
    assert gold_of(round) == {("grounding", 4, "c1"): ("unsupported", "agreed")}
    parts = list(zip(split.parts, ["supported", "unsupported"], strict=True))
    services.accept_split(split=split, parts=parts, person=lead)
    assert gold_of(round) == {
        ("grounding", 4, "c1.1"): ("supported", "adjudicated"),
        ("grounding", 4, "c1.2"): ("unsupported", "adjudicated"),
    }
    assert Annotation.objects.filter(claim__claim_id="c1").count() == 2
    with pytest.raises(services.Conflict, match="decide its parts"):
        decide(round, lead, 4, "supported")
    decide(round, lead, 4, "contradicted", claim="c1.2")
    assert gold_of(round)["grounding", 4, "c1.2"] == ("contradicted", "adjudicated")
    with pytest.raises(services.Conflict):
        services.accept_split(split=split, parts=parts, person=lead)


def test_parts_of_a_split_are_not_graded_and_do_not_reopen_work(round, lead, grader_a, grader_b):
    split = propose(round, grader_a)
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "unsupported")
    services.accept_split(split=split, parts=[("x", "supported"), ("y", "unsupported")], person=lead)
    say(round, grader_a, 4, None, "ANSWERED")
    assert Assignment.objects.get(grader=grader_of(round, grader_a), response__position=4).state == "done"


def test_decline_split_keeps_its_row(round, lead, grader_a):
    split = services.decline_split(split=propose(round, grader_a), person=lead)
    assert (split.state, split.decided_by) == ("declined", lead)
    with pytest.raises(services.Conflict):
        propose(round, grader_a)


# Handing over


def test_reassign_keeps_the_work_as_history_and_does_not_count_it(round, grader_a, grader_b, member):
    third = member("third", "grader")
    to = services.ensure_grader(evalset=round.version.evalset, name="third", person=third)
    say(round, grader_a, 1, "supported")
    say(round, grader_b, 1, "supported", "supported", "ANSWERED")
    slot = Assignment.objects.get(grader=grader_of(round, grader_a), response__position=1)
    services.reassign(assignment=slot, to=to)
    assert not Annotation.objects.filter(grader=grader_of(round, grader_a)).exists()
    assert AnnotationEvent.objects.filter(action="reassigned", label="supported").exists()
    with pytest.raises(services.NotAssigned):
        say(round, grader_a, 1, "supported")
    say(round, third, 1, "supported")
    assert gold_of(round) == {("grounding", 1, "c1"): ("supported", "agreed")}


def test_reassign_takes_down_gold_that_rested_on_the_work_handed_over(round, grader_a, grader_b, member):
    third = member("third", "grader")
    to = services.ensure_grader(evalset=round.version.evalset, name="third", person=third)
    say(round, grader_a, 1, "supported", "contradicted", "ANSWERED")
    say(round, grader_b, 1, "supported")
    assert gold_of(round) == {("grounding", 1, "c1"): ("supported", "agreed")}
    slot = Assignment.objects.get(grader=grader_of(round, grader_b), response__position=1)
    services.reassign(assignment=slot, to=to)
    services.close_round(round=round)
    assert gold_of(round) == {}


def test_reassign_leaves_a_decision_standing(round, lead, grader_a, grader_b, member):
    third = member("third", "grader")
    to = services.ensure_grader(evalset=round.version.evalset, name="third", person=third)
    say(round, grader_a, 1, "supported")
    say(round, grader_b, 1, "unsupported")
    decide(round, lead, 1, "contradicted")
    slot = Assignment.objects.get(grader=grader_of(round, grader_b), response__position=1)
    services.reassign(assignment=slot, to=to)
    say(round, third, 1, "supported")
    assert gold_of(round) == {("grounding", 1, "c1"): ("contradicted", "adjudicated")}


def test_a_late_label_of_a_split_claim_makes_no_gold_beside_its_parts(
    round, lead, grader_a, grader_b, member
):
    third = member("third", "grader")
    to = services.ensure_grader(evalset=round.version.evalset, name="third", person=third)
    split = propose(round, grader_a)
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "unsupported")
    services.accept_split(split=split, parts=[("x", "supported"), ("y", "unsupported")], person=lead)
    slot = Assignment.objects.get(grader=grader_of(round, grader_b), response__position=4)
    services.reassign(assignment=slot, to=to)
    say(round, third, 4, "unsupported", "ANSWERED")
    assert gold_of(round) == {
        ("grounding", 4, "c1.1"): ("supported", "adjudicated"),
        ("grounding", 4, "c1.2"): ("unsupported", "adjudicated"),
    }


def test_reassign_refuses_finished_work_and_doubles(round, grader_a, grader_b):
    say(round, grader_a, 2, "REFUSED")
    finished = Assignment.objects.get(grader=grader_of(round, grader_a), response__position=2)
    with pytest.raises(services.Conflict, match="already graded"):
        services.reassign(assignment=finished, to=grader_of(round, grader_b))
    waiting = Assignment.objects.get(grader=grader_of(round, grader_a), response__position=5)
    with pytest.raises(services.Refused, match="grades this response already"):
        services.reassign(assignment=waiting, to=grader_of(round, grader_b))


# Imported labels


def test_imported_labels_settle_gold(version):
    runs = list(version.runs.all())
    response = version.responses.get(position=1)
    one, two = response.claims.all()
    labels = [
        ("ann", response.pk, one.pk, "grounding", "supported"),
        ("ben", response.pk, one.pk, "grounding", "supported"),
        ("ann", response.pk, two.pk, "grounding", "supported"),
        ("ben", response.pk, two.pk, "grounding", "contradicted"),
        ("ann", response.pk, None, "abstention", "ANSWERED"),
    ]
    round = services.record_imported_labels(version=version, runs=runs, labels=iter(labels))
    assert (round.kind, round.state, str(round.rubric_version)) == ("imported", "closed", "imported")
    assert gold_of(round) == {
        ("grounding", 1, "c1"): ("supported", "agreed"),
        ("abstention", 1, None): ("ANSWERED", "single"),
    }
    more = [*labels, ("cy", response.pk, one.pk, "grounding", "unsupported")]
    assert services.record_imported_labels(version=version, runs=runs, labels=more) == round
    assert Annotation.objects.count() == AnnotationEvent.objects.count() == 6
    assert gold_of(round) == {("abstention", 1, None): ("ANSWERED", "single")}


def test_imported_labels_can_be_adjudicated(version, lead):
    response = version.responses.get(position=6)
    claim = response.claims.get()
    labels = [("ann", response.pk, claim.pk, "grounding", name) for name in ["supported"]]
    labels.append(("ben", response.pk, claim.pk, "grounding", "unsupported"))
    round = services.record_imported_labels(version=version, runs=version.runs.all(), labels=labels)
    decide(round, lead, 6, "unsupported")
    assert gold_of(round) == {("grounding", 6, "c1"): ("unsupported", "adjudicated")}


@pytest.mark.parametrize(
    ("labels", "gold"),
    [
        (("supported", "supported"), ("supported", "agreed")),
        (("supported",), ("supported", "single")),
        (("supported", "unsupported"), None),
    ],
)
def test_revoke_restores_what_imported_labels_say(version, lead, labels, gold):
    response = version.responses.get(position=6)
    claim = response.claims.get()
    given = [
        (name, response.pk, claim.pk, "grounding", label)
        for name, label in zip(("ann", "ben"), labels, strict=False)
    ]
    round = services.record_imported_labels(version=version, runs=version.runs.all(), labels=given)
    before = gold_of(round)
    decision = decide(round, lead, 6, "contradicted")
    services.revoke(adjudication=decision, person=lead)
    assert gold_of(round) == before == ({("grounding", 6, "c1"): gold} if gold else {})


def test_imported_label_that_contradicts_itself_stores_nothing(version):
    response = version.responses.get(position=2)
    labels = [("ann", response.pk, None, "abstention", name) for name in ["REFUSED", "CLARIFY"]]
    with pytest.raises(services.Refused, match="two labels"):
        services.record_imported_labels(version=version, runs=version.runs.all(), labels=labels)
    assert Annotation.objects.count() == Round.objects.count() == 0


def test_imported_labels_are_written_in_bulk(evalset, django_assert_max_num_queries):
    version = make_version(evalset, responses=[("x", [f"claim {n}" for n in range(1000)])], freeze=False)
    response = version.responses.get()
    labels = [
        (name, response.pk, claim, "grounding", "supported")
        for claim in response.claims.values_list("pk", flat=True)
        for name in ["ann", "ben"]
    ]
    with django_assert_max_num_queries(150):
        services.record_imported_labels(version=version, runs=version.runs.all(), labels=labels)
    assert GoldLabel.objects.filter(source="agreed").count() == 1000


# At the same time


def at_once(*calls):
    """Run the calls in threads that start together; what each returned or raised."""
    outcomes = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index, call):
        barrier.wait()
        try:
            outcomes[index] = call()
        except Exception as error:
            outcomes[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_the_same_submit_is_stored_once(self, round, grader_a):
        key = uuid.uuid4()
        same = [lambda: say(round, grader_a, 6, "supported", key=key)] * 4
        rows = at_once(*same)
        assert {row.pk for row in rows} == {Annotation.objects.get().pk}
        assert AnnotationEvent.objects.count() == 1

    def test_the_same_submit_without_key_is_stored_once(self, round, grader_a):
        rows = at_once(*[lambda: say(round, grader_a, 6, "supported")] * 4)
        assert {row.pk for row in rows} == {Annotation.objects.get().pk}

    def test_two_graders_on_one_target_settle_gold(self, round, grader_a, grader_b):
        for position, label in [(2, "REFUSED"), (5, "CLARIFY"), (6, None)]:
            labels = [label] if label else ["supported"]
            at_once(
                lambda p=position, x=labels: say(round, grader_a, p, *x),
                lambda p=position, x=labels: say(round, grader_b, p, *x),
            )
        assert set(gold_of(round).values()) == {
            ("REFUSED", "agreed"),
            ("CLARIFY", "agreed"),
            ("supported", "agreed"),
        }

    def test_no_label_lands_after_the_round_is_closed(self, round, grader_a):
        outcomes = at_once(
            lambda: services.close_round(round=round), lambda: say(round, grader_a, 2, "REFUSED")
        )
        closed_at = outcomes[0].closed_at
        for event in AnnotationEvent.objects.all():
            assert event.at <= closed_at

    def test_adjudication_and_change_do_not_cross(self, round, lead, grader_a, grader_b):
        say(round, grader_a, 2, "REFUSED")
        say(round, grader_b, 2, "ANSWERED")
        at_once(
            lambda: decide(round, lead, 2, "ANSWERED", claim=None),
            lambda: services.take_back(round=round, grader=grader_of(round, grader_a)),
        )
        both = Annotation.objects.filter(response__position=2).count() == 2
        assert both == Adjudication.objects.exists() == bool(gold_of(round))

    def test_two_take_backs_withdraw_two_labels(self, round, grader_a):
        say(round, grader_a, 1, "supported", "supported", "ANSWERED")
        grader = grader_of(round, grader_a)
        taken = at_once(*[lambda: services.take_back(round=round, grader=grader)] * 2)
        assert Annotation.objects.count() == 1
        assert {event.label for event in taken} == {"ANSWERED", "supported"}

    def test_ensure_grader_makes_one(self, evalset, grader_a):
        made = at_once(*[lambda: services.ensure_grader(evalset=evalset, name="x", person=grader_a)] * 3)
        assert len({grader.pk for grader in made}) == 1
