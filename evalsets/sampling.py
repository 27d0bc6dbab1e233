"""A stratified, balanced, seeded draw. Pure: the same candidates, size and seed give the same draw."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

C = TypeVar("C", bound=Hashable)
S = TypeVar("S")


@dataclass(frozen=True)
class Stratum(Generic[S]):
    """How much there was of a stratum, and how much was drawn. `short`: it gave all, and that is too few."""

    key: S
    available: int
    drawn: int
    short: bool


@dataclass(frozen=True)
class Draw(Generic[C, S]):
    drawn: tuple[C, ...]  # in the order of the candidates
    strata: tuple[Stratum[S], ...]
    size: int
    seed: int


def allotted(available: Mapping[S, int], size: int) -> dict[S, int]:
    """As equal a number from every stratum as there is: what a small one lacks is spread over the others.

    What cannot be spread evenly goes one each to the largest strata (those of a size in the order given).
    """
    if size < 0:
        raise ValueError(f"size must be 0 or more, got {size!r}")
    given = dict.fromkeys(available, 0)
    left = min(size, sum(available.values()))
    while left:
        open_strata = [key for key, count in available.items() if given[key] < count]
        share = left // len(open_strata)
        if not share:
            for key in sorted(open_strata, key=lambda key: -available[key])[:left]:
                given[key] += 1
            break
        for key in open_strata:
            more = min(share, available[key] - given[key])
            given[key] += more
            left -= more
    return given


def draw(candidates: Mapping[S, Sequence[C]], *, size: int, seed: int) -> Draw[C, S]:
    """So many candidates, balanced over the strata and at random within each.

    A stratum's own draw depends on its members, its key and the seed only.
    """
    shares = allotted({key: len(members) for key, members in candidates.items()}, size)
    chosen = {
        member
        for key, members in candidates.items()
        for member in Random(f"{seed}:sample {key}").sample(list(members), shares[key])
    }
    wanted = size / len(candidates) if candidates else 0
    strata = tuple(
        Stratum(key, len(members), shares[key], shares[key] < int(wanted))
        for key, members in candidates.items()
    )
    everything = [member for members in candidates.values() for member in members]
    return Draw(tuple(member for member in everything if member in chosen), strata, size, seed)
