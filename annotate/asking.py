"""What is asked of one response, in order. Pure: the rubric, the response and the labels given so far decide.

Claim by claim: the dimensions of the claim, each in the order of the rubric, then those of its citations. The
whole response follows, and its passages at the end. A dimension with a condition is asked once the dimension
it names has one of the labels it names.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

CLAIM, RESPONSE, PASSAGE, CITATION = "claim", "response", "passage", "citation"
# What a condition may rest on: for a citation also its claim, for a passage also the response.
CONDITION_ON = {
    CLAIM: (CLAIM,),
    CITATION: (CITATION, CLAIM),
    RESPONSE: (RESPONSE,),
    PASSAGE: (PASSAGE, RESPONSE),
}


@dataclass(frozen=True)
class Question:
    """A dimension, as far as it decides what is asked: after which dimension, of what, with which labels."""

    dimension: str
    target: str
    after: str = ""
    after_target: str = ""
    when: frozenset[str] = frozenset()


class Place(NamedTuple):
    """Where a label belongs within its response."""

    dimension: str
    claim: int | None = None
    passage: int | None = None


@dataclass(frozen=True)
class Material:
    """The response as ids: its claims with the passages they cite, and its passages, in order."""

    claims: Mapping[int, Sequence[int]]
    passages: Sequence[int]
    is_empty: bool


def places(questions: Sequence[Question], material: Material) -> list[tuple[Question, Place]]:
    """Every place that may be asked of the response, conditions left aside."""

    of: defaultdict[str, list[Question]] = defaultdict(list)
    for question in questions:
        of[question.target].append(question)
    made = []
    for claim, cites in material.claims.items():
        made += [(question, Place(question.dimension, claim)) for question in of[CLAIM]]
        made += [(q, Place(q.dimension, claim, passage)) for passage in cites for q in of[CITATION]]
    if not material.is_empty:
        made += [(question, Place(question.dimension)) for question in of[RESPONSE]]
    made += [(q, Place(q.dimension, None, passage)) for passage in material.passages for q in of[PASSAGE]]
    return made


def condition_of(question: Question, place: Place) -> Place | None:
    """Where the label stands that decides whether this place is asked."""
    if not question.after:
        return None
    return Place(
        question.after,
        place.claim if question.after_target in (CLAIM, CITATION) else None,
        place.passage if question.after_target in (PASSAGE, CITATION) else None,
    )


def is_asked(question: Question, place: Place, labels: Mapping[Place, str]) -> bool:
    condition = condition_of(question, place)
    return condition is None or labels.get(condition) in question.when


def asked(
    questions: Sequence[Question],
    material: Material,
    labels: Mapping[Place, str],
    drawn: Collection[Place] | None = None,
) -> list[Place]:
    """The places that are asked, given the labels so far; of a second look only those that were drawn."""
    return [
        place
        for question, place in places(questions, material)
        if (drawn is None or place in drawn) and (drawn is not None or is_asked(question, place, labels))
    ]


def is_finished(
    questions: Sequence[Question],
    material: Material,
    labels: Mapping[Place, str],
    drawn: Collection[Place] | None = None,
) -> bool:
    return all(place in labels for place in asked(questions, material, labels, drawn))


def finishing(
    questions: Sequence[Question],
    material: Material,
    labels: Mapping[Place, str],
    place: Place,
    choices: Iterable[str],
    drawn: Collection[Place] | None = None,
) -> frozenset[str]:
    """The labels of a place after which nothing of the response is left."""
    conditions = [question.when for question in questions if question.after == place.dimension]
    alike: defaultdict[tuple[bool, ...], list[str]] = defaultdict(list)  # they lead to the same questions
    for choice in choices:
        alike[tuple(choice in when for when in conditions)].append(choice)
    return frozenset(
        choice
        for group in alike.values()
        if is_finished(questions, material, {**labels, place: group[0]}, drawn)
        for choice in group
    )


def no_longer_asked(
    questions: Sequence[Question], material: Material, labels: Mapping[Place, str]
) -> list[Place]:
    """Labels whose question is no longer asked, because the label it depends on has changed."""
    left = dict(labels)
    gone: list[Place] = []
    while True:  # a condition may rest on a label that has just gone
        more = [
            place
            for question, place in places(questions, material)
            if place in left and not is_asked(question, place, left)
        ]
        if not more:
            return gone
        for place in more:
            del left[place]
        gone += more
