"""Optional dimensions from first label to gold: asked on a condition, withdrawn with it, settled with it."""

import pytest

from annotate import services
from annotate.models import Annotation, AnnotationEvent, Assignment, GoldLabel
from tests.annotate.rich import open_rich, tell, tell_all
from tests.annotate.worlds import grader_of, make_version, response_of


@pytest.fixture
def rich(evalset, grader_a, grader_b):
    """A round whose rubric asks of claims, citations, responses and passages."""
    return open_rich(make_version(evalset), grader_a, grader_b)


def state_of(round, person, position=6):
    return Assignment.objects.get(
        round=round, grader=grader_of(round, person), response=response_of(round, position)
    ).state


def gold_of(round):
    return {
        (gold.dimension, gold.passage.rank if gold.passage else None): (gold.label, gold.source)
        for gold in GoldLabel.objects.filter(round=round).select_related("passage")
    }


def decide(round, person, dimension, label, *, claim=1, passage=None):
    response = response_of(round, 6)
    return services.adjudicate(
        round=round,
        response=response,
        claim=response.claims.get(position=claim, parent=None) if claim else None,
        passage=response.passages.get(rank=passage) if passage else None,
        dimension=dimension,
        label=label,
        reason="other",
        person=person,
    )


# Labelling


def test_annotate_takes_labels_of_every_kind_of_target(rich, grader_a):
    tell_all(rich, grader_a, "contradicted", "subtle conflict")
    said = Annotation.objects.filter(grader=grader_of(rich, grader_a))
    claim = response_of(rich, 6).claims.get().pk
    assert set(said.values_list("dimension", "claim_id", "passage__rank", "label")) == {
        ("grounding", claim, None, "contradicted"),
        ("hallucination_type", claim, None, "subtle conflict"),
        ("citation_support", claim, 2, "full support"),
        ("abstention", None, None, "ANSWERED"),
        ("context_relevance", None, 1, "irrelevant"),
        ("context_relevance", None, 2, "irrelevant"),
    }


def test_annotate_refuses_what_the_own_label_does_not_lead_to(rich, grader_a):
    with pytest.raises(services.Conflict, match="not asked of you"):
        tell(rich, grader_a, "hallucination_type", "evident conflict")
    tell(rich, grader_a, "grounding", "supported")
    with pytest.raises(services.Conflict, match="not asked of you"):
        tell(rich, grader_a, "hallucination_type", "evident conflict")


def test_annotate_refuses_a_label_of_another_dimension(rich, grader_a):
    with pytest.raises(services.Refused, match="not a label of"):
        tell(rich, grader_a, "context_relevance", "supported", claim=None, passage=1)


def test_annotate_refuses_a_passage_that_the_claim_does_not_cite(rich, grader_a):
    with pytest.raises(services.Conflict, match="not asked of you"):
        tell(rich, grader_a, "citation_support", "no support", passage=1)


def test_annotate_refuses_a_target_of_the_wrong_kind(rich, grader_a):
    with pytest.raises(services.Refused, match="not asked of this target"):
        tell(rich, grader_a, "context_relevance", "relevant", claim=1)


def test_a_response_is_done_when_everything_asked_is_labelled(rich, grader_a):
    tell_all(rich, grader_a, "supported", whole="REFUSED")
    assert state_of(rich, grader_a) == "pending"
    tell(rich, grader_a, "refusal_informativeness", "informative", claim=None)
    assert state_of(rich, grader_a) == "done"


def test_a_changed_label_withdraws_what_hung_on_it_and_history_keeps_it(rich, grader_a):
    tell_all(rich, grader_a, "contradicted", "evident conflict")
    assert state_of(rich, grader_a) == "done"
    tell(rich, grader_a, "grounding", "supported")
    assert not Annotation.objects.filter(dimension="hallucination_type").exists()
    events = AnnotationEvent.objects.filter(dimension="hallucination_type")
    assert [event.action for event in events] == ["labelled", "taken_back"]
    assert state_of(rich, grader_a) == "done"
    tell(rich, grader_a, "grounding", "unsupported")
    assert state_of(rich, grader_a) == "pending"


def test_a_label_changed_to_another_that_leads_there_keeps_what_hung_on_it(rich, grader_a):
    tell(rich, grader_a, "grounding", "contradicted")
    tell(rich, grader_a, "hallucination_type", "subtle conflict")
    tell(rich, grader_a, "grounding", "unsupported")
    assert Annotation.objects.get(dimension="hallucination_type").label == "subtle conflict"


def test_take_back_goes_back_in_the_order_of_the_labels(rich, grader_a):
    tell_all(rich, grader_a, "contradicted", "evident conflict")
    grader = grader_of(rich, grader_a)
    taken = [services.take_back(round=rich, grader=grader) for _ in range(6)]
    assert [(event.dimension, event.passage and event.passage.rank) for event in taken] == [
        ("context_relevance", 2),
        ("context_relevance", 1),
        ("abstention", None),
        ("citation_support", 2),
        ("hallucination_type", None),
        ("grounding", None),
    ]
    assert services.take_back(round=rich, grader=grader) is None
    assert Annotation.objects.count() == 0


def test_take_back_of_a_parent_withdraws_what_hung_on_it(rich, grader_a):
    tell(rich, grader_a, "grounding", "contradicted")
    tell(rich, grader_a, "hallucination_type", "evident conflict")
    tell(rich, grader_a, "grounding", "unsupported")
    services.take_back(round=rich, grader=grader_of(rich, grader_a))  # the latest label is the grounding
    assert Annotation.objects.count() == 0


def test_the_same_key_twice_is_one_label_of_a_passage(rich, grader_a):
    for _ in range(2):
        tell(rich, grader_a, "context_relevance", "relevant", claim=None, passage=1)
    assert Annotation.objects.count() == AnnotationEvent.objects.count() == 1


# Gold


def test_gold_of_every_kind_of_target_when_both_agree(rich, grader_a, grader_b):
    for person in (grader_a, grader_b):
        tell_all(rich, person, "contradicted", "subtle conflict")
    assert gold_of(rich) == {
        ("grounding", None): ("contradicted", "agreed"),
        ("hallucination_type", None): ("subtle conflict", "agreed"),
        ("citation_support", 2): ("full support", "agreed"),
        ("abstention", None): ("ANSWERED", "agreed"),
        ("context_relevance", 1): ("irrelevant", "agreed"),
        ("context_relevance", 2): ("irrelevant", "agreed"),
    }


def test_no_gold_while_the_parent_is_in_dispute(rich, grader_a, grader_b):
    tell_all(rich, grader_a, "contradicted", "evident conflict")
    tell_all(rich, grader_b, "supported")
    assert "hallucination_type" not in {dimension for dimension, _rank in gold_of(rich)}


def test_gold_is_single_where_only_one_was_asked_and_the_lead_agrees(rich, grader_a, grader_b, lead):
    tell_all(rich, grader_a, "contradicted", "evident conflict")
    tell_all(rich, grader_b, "supported")
    decide(rich, lead, "grounding", "contradicted")
    assert gold_of(rich)["hallucination_type", None] == ("evident conflict", "single")


def test_gold_goes_when_the_parent_is_decided_otherwise(rich, grader_a, grader_b, lead):
    for person in (grader_a, grader_b):
        tell_all(rich, person, "contradicted", "evident conflict")
    assert ("hallucination_type", None) in gold_of(rich)
    decide(rich, lead, "grounding", "supported")
    assert ("hallucination_type", None) not in gold_of(rich)
    decide(rich, lead, "grounding", "unsupported")
    assert gold_of(rich)["hallucination_type", None] == ("evident conflict", "agreed")


def test_a_decision_holds_again_once_the_parent_leads_to_it_again(rich, grader_a, grader_b, lead):
    for person, kind in ((grader_a, "evident conflict"), (grader_b, "subtle conflict")):
        tell_all(rich, person, "contradicted", kind)
    decide(rich, lead, "hallucination_type", "evident baseless info")
    services.close_round(round=rich)
    otherwise = decide(rich, lead, "grounding", "supported")
    assert ("hallucination_type", None) not in gold_of(rich)
    services.revoke(adjudication=otherwise, person=lead)
    assert gold_of(rich)["grounding", None] == ("contradicted", "agreed")
    assert gold_of(rich)["hallucination_type", None] == ("evident baseless info", "adjudicated")


def test_a_decision_that_was_taken_back_meanwhile_does_not_return(rich, grader_a, grader_b, lead):
    for person in (grader_a, grader_b):
        tell_all(rich, person, "contradicted", "subtle conflict")
    of_type = decide(rich, lead, "hallucination_type", "evident baseless info")
    otherwise = decide(rich, lead, "grounding", "supported")
    services.revoke(adjudication=of_type, person=lead)
    services.revoke(adjudication=otherwise, person=lead)
    assert gold_of(rich)["hallucination_type", None] == ("subtle conflict", "agreed")


def test_adjudicate_settles_a_conditional_dimension(rich, grader_a, grader_b, lead):
    tell_all(rich, grader_a, "contradicted", "evident conflict")
    tell_all(rich, grader_b, "contradicted", "subtle conflict")
    assert ("hallucination_type", None) not in gold_of(rich)
    decide(rich, lead, "hallucination_type", "subtle conflict")
    assert gold_of(rich)["hallucination_type", None] == ("subtle conflict", "adjudicated")


def test_adjudicate_refuses_a_question_that_gold_does_not_lead_to(rich, grader_a, grader_b, lead):
    for person in (grader_a, grader_b):
        tell_all(rich, person, "supported")
    with pytest.raises(services.Conflict, match="only once grounding is settled"):
        decide(rich, lead, "hallucination_type", "evident conflict")


def test_adjudicate_a_citation_and_a_passage(rich, grader_a, grader_b, lead):
    tell_all(rich, grader_a, "supported", cited="full support")
    tell_all(rich, grader_b, "supported", cited="no support")
    decide(rich, lead, "citation_support", "partial support", passage=2)
    assert gold_of(rich)["citation_support", 2] == ("partial support", "adjudicated")
    decide(rich, lead, "context_relevance", "relevant", claim=None, passage=1)
    assert gold_of(rich)["context_relevance", 1] == ("relevant", "adjudicated")


def test_the_lead_answers_for_the_parts_of_a_split(rich, grader_a, grader_b, lead):
    for person in (grader_a, grader_b):
        tell_all(rich, person, "contradicted", "evident conflict")
    claim = response_of(rich, 6).claims.get()
    split = services.propose_split(
        round=rich, grader=grader_of(rich, grader_a), claim=claim, parts=["Tickets cost.", "Twelve euros."]
    )
    parts = [("Tickets cost.", "supported"), ("Twelve euros.", "unsupported")]
    services.accept_split(split=split, parts=parts, person=lead)
    gold = GoldLabel.objects.filter(round=rich, dimension="hallucination_type")
    assert not gold.exists()
    first, second = claim.parts.order_by("pk")
    where = {"round": rich, "response": claim.response, "reason": "other", "person": lead}
    services.adjudicate(claim=second, dimension="hallucination_type", label="evident baseless info", **where)
    assert gold.get().claim == second
    with pytest.raises(services.Conflict, match="only once grounding"):
        services.adjudicate(claim=first, dimension="hallucination_type", label="evident conflict", **where)
    services.adjudicate(claim=second, dimension="grounding", label="supported", **where)
    assert not gold.exists()
    services.adjudicate(claim=second, dimension="grounding", label="contradicted", **where)
    assert (gold.get().claim, gold.get().label) == (second, "evident baseless info")


def test_reassign_takes_down_what_hung_on_the_work_handed_over_and_keeps_all_of_it_as_history(
    rich, grader_a, grader_b, lead, member
):
    third = member("third", "grader")
    to = services.ensure_grader(evalset=rich.version.evalset, name="third", person=third)
    tell_all(rich, grader_a, "contradicted", "subtle conflict")
    tell(rich, grader_b, "grounding", "contradicted")
    tell(rich, grader_b, "hallucination_type", "evident conflict")
    tell(rich, grader_b, "citation_support", "no support", passage=2)
    decide(rich, lead, "hallucination_type", "evident conflict")
    slot = Assignment.objects.get(round=rich, grader=grader_of(rich, grader_b), response=response_of(rich, 6))
    services.reassign(assignment=slot, to=to)
    assert gold_of(rich) == {}
    handed = AnnotationEvent.objects.filter(action="reassigned")
    assert set(handed.values_list("dimension", "passage__rank", "label")) == {
        ("grounding", None, "contradicted"),
        ("hallucination_type", None, "evident conflict"),
        ("citation_support", 2, "no support"),
    }
    tell(rich, third, "grounding", "contradicted")
    assert gold_of(rich)["hallucination_type", None] == ("evident conflict", "adjudicated")


def test_a_chain_of_conditions_is_settled_and_taken_down_together(evalset, grader_a, grader_b, lead):
    round = open_rich(
        make_version(evalset), grader_a, grader_b, names=("correctness", "refusal_informativeness")
    )
    for person in (grader_a, grader_b):
        tell(round, person, "grounding", "supported")
        tell(round, person, "abstention", "ANSWERED", claim=None)
        tell(round, person, "correctness", "correct", claim=None)
    assert gold_of(round)["correctness", None] == ("correct", "agreed")
    decide(round, lead, "abstention", "REFUSED", claim=None)
    assert ("correctness", None) not in gold_of(round)
    decide(round, lead, "refusal_informativeness", "uninformative", claim=None)
    assert gold_of(round)["refusal_informativeness", None] == ("uninformative", "adjudicated")
