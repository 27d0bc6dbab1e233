"""What is asked of a response, and what a changed label takes back: rules without a database."""

from hypothesis import given
from hypothesis import strategies as st

from annotate.asking import (
    CITATION,
    CLAIM,
    CONDITION_ON,
    PASSAGE,
    RESPONSE,
    Material,
    Place,
    Question,
    asked,
    condition_of,
    finishing,
    is_finished,
    no_longer_asked,
    places,
)

GROUNDING = Question("grounding", CLAIM)
TYPE = Question("type", CLAIM, "grounding", CLAIM, frozenset({"contradicted", "unsupported"}))
SUPPORT = Question("support", CITATION, "grounding", CLAIM, frozenset({"supported"}))
ABSTENTION = Question("abstention", RESPONSE)
INFORMATIVE = Question("informative", RESPONSE, "abstention", RESPONSE, frozenset({"REFUSED"}))
CORRECT = Question("correct", RESPONSE, "abstention", RESPONSE, frozenset({"ANSWERED"}))
GROUNDED = Question("grounded", RESPONSE, "correct", RESPONSE, frozenset({"correct"}))
RELEVANT = Question("relevant", PASSAGE)
ALL = [GROUNDING, TYPE, SUPPORT, ABSTENTION, INFORMATIVE, CORRECT, GROUNDED, RELEVANT]
MATERIAL = Material(claims={1: [11], 2: [11, 12], 3: []}, passages=[11, 12], is_empty=False)


def test_asked_goes_claim_by_claim_then_the_response_then_its_passages():
    assert asked(ALL, MATERIAL, {}) == [
        Place("grounding", 1),
        Place("grounding", 2),
        Place("grounding", 3),
        Place("abstention"),
        Place("relevant", None, 11),
        Place("relevant", None, 12),
    ]


def test_a_met_condition_asks_right_behind_the_label_it_rests_on():
    labels = {Place("grounding", 1): "contradicted", Place("grounding", 2): "supported"}
    assert asked(ALL, MATERIAL, labels)[:5] == [
        Place("grounding", 1),
        Place("type", 1),
        Place("grounding", 2),
        Place("support", 2, 11),
        Place("support", 2, 12),
    ]


def test_an_empty_response_is_not_asked_about_as_a_whole():
    empty = Material(claims={}, passages=[11], is_empty=True)
    assert asked(ALL, empty, {}) == [Place("relevant", None, 11)]


def test_a_second_look_asks_what_was_drawn_and_no_more():
    drawn = {Place("type", 1), Place("abstention")}
    assert asked(ALL, MATERIAL, {}, drawn) == [Place("type", 1), Place("abstention")]


def test_a_changed_label_takes_back_the_whole_chain_behind_it():
    labels = {
        Place("abstention"): "REFUSED",
        Place("correct"): "correct",
        Place("grounded"): "misgrounded",
    }
    assert no_longer_asked(ALL, MATERIAL, labels) == [Place("correct"), Place("grounded")]


def test_condition_of_a_citation_stands_on_its_claim():
    assert condition_of(SUPPORT, Place("support", 2, 12)) == Place("grounding", 2)


# Any rubric that the editor lets through, any response, any labels

LABELS = ("a", "b", "c")
targets = st.sampled_from([CLAIM, RESPONSE, PASSAGE, CITATION])


@st.composite
def rubrics(draw):
    made: list[Question] = []
    for number in range(draw(st.integers(1, 6))):
        target = draw(targets)
        earlier = [question for question in made if question.target in CONDITION_ON[target]]
        parent = draw(st.sampled_from([None, *earlier]))
        made.append(
            Question(f"d{number}", target)
            if parent is None
            else Question(
                f"d{number}",
                target,
                parent.dimension,
                parent.target,
                frozenset(draw(st.sets(st.sampled_from(LABELS), min_size=1))),
            )
        )
    return made


@st.composite
def materials(draw):
    passages = draw(st.lists(st.integers(100, 103), unique=True, max_size=3))
    cites = st.lists(st.sampled_from(passages), unique=True, max_size=2) if passages else st.just([])
    claims = draw(st.dictionaries(st.integers(1, 3), cites, max_size=3))
    return Material(claims=claims, passages=passages, is_empty=draw(st.booleans()))


@st.composite
def situations(draw):
    questions, material = draw(rubrics()), draw(materials())
    every = [place for _question, place in places(questions, material)]
    labels = draw(st.dictionaries(st.sampled_from(every), st.sampled_from(LABELS))) if every else {}
    return questions, material, labels


@given(situations())
def test_every_place_is_there_once(situation):
    questions, material, _labels = situation
    every = [place for _question, place in places(questions, material)]
    assert len(every) == len(set(every))


@given(situations())
def test_what_is_asked_is_a_part_of_what_may_be_and_in_its_order(situation):
    questions, material, labels = situation
    every = [place for _question, place in places(questions, material)]
    wanted = asked(questions, material, labels)
    assert wanted == [place for place in every if place in set(wanted)]


@given(situations())
def test_without_the_labels_that_go_nothing_else_has_to_go(situation):
    questions, material, labels = situation
    gone = no_longer_asked(questions, material, labels)
    left = {place: label for place, label in labels.items() if place not in gone}
    assert no_longer_asked(questions, material, left) == []
    assert set(left) <= set(asked(questions, material, left))


@given(situations(), st.data())
def test_a_label_finishes_where_nothing_is_left_after_it(situation, data):
    questions, material, labels = situation
    if not (wanted := asked(questions, material, labels)):
        return
    place = data.draw(st.sampled_from(wanted))
    drawn = data.draw(st.one_of(st.none(), st.sets(st.sampled_from(wanted))))
    assert finishing(questions, material, labels, place, LABELS, drawn) == {
        label for label in LABELS if is_finished(questions, material, {**labels, place: label}, drawn)
    }


@given(situations())
def test_answering_what_is_asked_comes_to_an_end(situation):
    questions, material, _labels = situation
    given_labels: dict[Place, str] = {}
    for _step in range(len(places(questions, material)) + 1):
        waiting = [p for p in asked(questions, material, given_labels) if p not in given_labels]
        if not waiting:
            break
        given_labels[waiting[0]] = "a"
    assert all(place in given_labels for place in asked(questions, material, given_labels))
    assert no_longer_asked(questions, material, given_labels) == []
