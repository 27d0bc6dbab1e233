"""Who grades what. Pure: the same responses, graders and seed give the same plan on every machine.

Nobody can tell from the order which of their responses somebody else grades too, and so grades those no more
carefully than the rest: where a response stands in a grader's queue does not depend on the overlap.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import floor
from random import Random
from typing import Generic, TypeVar

R = TypeVar("R", bound=Hashable)
G = TypeVar("G", bound=Hashable)

ALL, FIRST, RANDOM, SHARE = "all", "first", "random", "share"


@dataclass(frozen=True)
class Overlap:
    """Which responses several graders label: `count` of them, or a `share` of every value of `stratum`."""

    kind: str = ALL
    count: int | None = None
    share: float | None = None  # above 0, at most 1
    stratum: str = ""
    graders_each: int | None = None  # None: everybody labels each of them

    def __post_init__(self) -> None:
        if self.kind not in (ALL, FIRST, RANDOM, SHARE):
            raise ValueError(f"there is no overlap of the kind {self.kind!r}")
        if self.kind in (FIRST, RANDOM) and (self.count is None or self.count < 0):
            raise ValueError("the overlap cannot be negative, and has to be given")
        if self.kind == SHARE and (self.share is None or not 0 < self.share <= 1):
            raise ValueError("the share must be above 0 and at most 1")
        if self.graders_each is not None and self.graders_each < 2:
            raise ValueError("an overlapping response needs at least two graders")


EVERYTHING = Overlap()


def overlapping(
    *, responses: Sequence[R], overlap: Overlap, seed: int, stratum_of: Mapping[R, str] | None = None
) -> frozenset[R]:
    """The responses that several graders label; `responses` in the order of the set."""
    if overlap.kind == ALL:
        return frozenset(responses)
    if overlap.kind == SHARE:
        drawn: list[R] = []
        for value, members in sorted(by_stratum(responses, stratum_of or {}).items()):
            drawn += Random(f"{seed}:overlap {value}").sample(members, share_of(len(members), overlap.share))
        return frozenset(drawn)
    assert overlap.count is not None
    if overlap.count > len(responses):
        raise ValueError(f"the overlap is {overlap.count}, of {len(responses)} responses")
    if overlap.kind == FIRST:
        return frozenset(responses[: overlap.count])
    return frozenset(Random(f"{seed}:overlap").sample(list(responses), overlap.count))


def by_stratum(responses: Iterable[R], stratum_of: Mapping[R, str]) -> dict[str, list[R]]:
    """A response without a value belongs to the stratum ""."""
    strata: dict[str, list[R]] = {}
    for response in responses:
        strata.setdefault(stratum_of.get(response, ""), []).append(response)
    return strata


def share_of(n: int, share: float | None) -> int:
    """Half up, and of a stratum that has a response at least one."""
    assert share is not None
    return min(n, max(1, floor(n * share + 0.5))) if n else 0


@dataclass(frozen=True)
class Slot(Generic[R, G]):
    response: R
    grader: G
    slot: int  # 1..number of graders of this response
    order: int  # 1..number of responses of this grader


def plan(
    *,
    responses: Sequence[R],
    graders: Sequence[G],
    overlapping: Collection[R],
    seed: int,
    graders_each: int | None = None,
) -> list[Slot[R, G]]:
    """Overlapping responses go to `graders_each` graders (None: to all), each of the rest to one.

    Nobody gets two responses more than anybody else, and all pairs of graders meet about equally often.
    """
    _check(responses, graders, graders_each)
    shuffled = list(responses)
    Random(f"{seed}:responses").shuffle(shuffled)
    shared = [response for response in shuffled if response in overlapping]
    rest = [response for response in shuffled if response not in overlapping]

    rota = _Rota(len(graders), Random(f"{seed}:teams"))
    slots_of: list[dict[R, int]] = [{} for _ in graders]
    for index, response in enumerate(shared):
        for slot, place in enumerate(_turned(rota.team(graders_each or len(graders)), index), start=1):
            slots_of[place][response] = slot
    for response in rest:
        [place] = rota.team(1)
        slots_of[place][response] = 1

    made: list[Slot[R, G]] = []
    for position, grader in enumerate(graders):
        queue = list(responses)
        Random(f"{seed}:grader {position}").shuffle(queue)
        own = [response for response in queue if response in slots_of[position]]
        made += [Slot(r, grader, slots_of[position][r], order) for order, r in enumerate(own, start=1)]
    return made


def to_take(left: Mapping[G, int], own: int) -> dict[G, int]:
    """How many each gives up, so that a newcomer who has `own` has as much left as they."""
    left, taken = dict(left), dict.fromkeys(left, 0)
    while left and max(left.values()) > own + 1:
        giver = max(left, key=lambda grader: left[grader])
        left[giver] -= 1
        taken[giver] += 1
        own += 1
    return taken


def _check(responses: Sequence, graders: Sequence, graders_each: int | None) -> None:
    if not graders:
        raise ValueError("a plan needs at least one grader")
    if len(set(graders)) != len(graders):
        raise ValueError("the same grader is named twice")
    if len(set(responses)) != len(responses):
        raise ValueError("the same response is named twice")
    if graders_each is not None and not 1 <= graders_each <= len(graders):
        raise ValueError(f"{graders_each} graders each, of {len(graders)}")


def _turned(team: list[int], index: int) -> list[int]:
    """So that no grader always has the first slot."""
    start = index % len(team)
    return team[start:] + team[:start]


class _Rota:
    """Picks teams: first those who have least to do, then those who have met the others least."""

    def __init__(self, size: int, rng: Random) -> None:
        self.loads = [0] * size
        self.met = [[0] * size for _ in range(size)]
        self.rng = rng

    def team(self, size: int) -> list[int]:
        least = min(self.loads)
        team = [grader for grader, load in enumerate(self.loads) if load == least]
        candidates = [grader for grader, load in enumerate(self.loads) if load != least]
        if len(team) > size:
            team, candidates = [], team
        self.rng.shuffle(candidates)  # equals would otherwise fall into a round that leaves some pairs out
        while len(team) < size:
            if team:
                chosen = min(candidates, key=lambda grader: sum(self.met[grader][mate] for mate in team))
            else:
                chosen = max(candidates, key=lambda grader: self._unevenness(grader, candidates))
            candidates.remove(chosen)
            team.append(chosen)
        for grader in team:
            self.loads[grader] += 1
            for mate in team:
                self.met[grader][mate] += grader != mate
        return team

    def _unevenness(self, grader: int, mates: list[int]) -> int:
        times = [self.met[grader][mate] for mate in mates if mate != grader]
        return max(times, default=0) - min(times, default=0)
