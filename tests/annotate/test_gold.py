"""What becomes gold: agreement, decisions, splits, work handed over, imported labels."""

import pytest
from django.db import DatabaseError, transaction

from annotate import services
from annotate.models import Adjudication, Annotation, AnnotationEvent, Assignment, GoldLabel, Round
from tests.annotate.worlds import (
    decide,
    gold_of,
    grader_of,
    make_round,
    make_version,
    response_of,
    say,
)

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
