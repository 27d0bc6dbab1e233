"""Who grades what. Pure: the same responses, graders and seed give the same plan on every machine.

Responses that everybody grades are not put first: nobody can tell from the order which of their responses
somebody else grades too, and so grades those no more carefully than the rest.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

R = TypeVar("R", bound=Hashable)
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class Slot(Generic[R, G]):
    response: R
    grader: G
    slot: int  # 1..number of graders of this response
    order: int  # 1..number of responses of this grader


def plan(*, responses: Sequence[R], graders: Sequence[G], overlap: int | None, seed: int) -> list[Slot[R, G]]:
    """`overlap` responses (None: all) go to every grader, the rest in turn; each grader has an own order."""
    if not graders:
        raise ValueError("a plan needs at least one grader")
    if len(set(graders)) != len(graders):
        raise ValueError("the same grader is named twice")
    if len(set(responses)) != len(responses):
        raise ValueError("the same response is named twice")
    if overlap is not None and overlap < 0:
        raise ValueError("the overlap cannot be negative")
    shuffled = list(responses)
    Random(f"{seed}:responses").shuffle(shuffled)
    shared = shuffled if overlap is None else shuffled[:overlap]
    dealt = shuffled[len(shared) :]

    slot_of: dict[G, list[tuple[R, int]]] = {grader: [] for grader in graders}
    for index, response in enumerate(shared):
        # Slots rotate, so that no grader is always first.
        for slot in range(len(graders)):
            slot_of[graders[(index + slot) % len(graders)]].append((response, slot + 1))
    for index, response in enumerate(dealt):
        slot_of[graders[index % len(graders)]].append((response, 1))

    made: list[Slot[R, G]] = []
    for position, grader in enumerate(graders):
        own = slot_of[grader]
        Random(f"{seed}:grader {position}").shuffle(own)
        made += [Slot(response, grader, slot, order) for order, (response, slot) in enumerate(own, start=1)]
    return made
