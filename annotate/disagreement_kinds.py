"""What a disagreement is, where it stands, and which part of the queue is wanted."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _

from annotate.models import Dimension
from evalsets.labels import LABELS


class Status(models.TextChoices):
    PENDING = "pending", _("to decide")
    WAITING = "waiting", _("waiting")
    DONE = "done", _("decided")


NUMBER_OF = {Status.PENDING: 0, Status.WAITING: 1, Status.DONE: 2}
STATUS_OF = {number: status for status, number in NUMBER_OF.items()}


class Pair(NamedTuple):
    """Two labels of a dimension that stand against each other."""

    dimension: str
    one: str
    other: str

    @property
    def key(self) -> str:
        return f"{self.dimension}:{self.one}:{self.other}"

    def __str__(self) -> str:
        return f"{self.one} / {self.other}"


@dataclass(frozen=True)
class Wanted:
    """Which part of the queue: the status, and what it is narrowed to."""

    status: str = Status.PENDING  # "" for all
    dimension: str = ""
    run: int | None = None  # number of a system run
    stratum: tuple[str, str] | None = None
    pair: Pair | None = None


@dataclass(frozen=True)
class Disagreement:
    dimension: str
    response_id: int
    claim_id: int | None
    passage_id: int | None
    status: Status
    counts: dict[str, int]  # label -> how many graders
    proposed: bool  # a split waits for a decision
    noted: bool
    flagged: bool
    rushed: bool
    hues: dict[str, str] = field(default_factory=dict)  # label -> the class that colours it
    text: str = ""  # the claim, the question or the passage
    more: str = ""  # the beginning of the response, or of the passage that is cited

    @property
    def target(self) -> str:
        return target_in_address(self.response_id, self.claim_id, self.passage_id)

    @property
    def said(self) -> list[tuple[str, int, str]]:
        """Label, how many graders, and its colour."""
        return [(label, n, self.hues.get(label, "")) for label, n in self.counts.items()]


def target_in_address(response_id: int, claim_id: int | None, passage_id: int | None) -> str:
    """How an address names a target, its dimension given: `12`, or `12-34` for a claim with a passage."""
    return "-".join(str(pk) for pk in (claim_id, passage_id) if pk) or str(response_id)


class Alike(NamedTuple):
    """How many targets have this status and these labels."""

    dimension: str
    status: Status
    counts: tuple[int, ...]  # graders, by label
    size: int


@dataclass(frozen=True)
class Place:
    """Where a target stands in the queue; the neighbours are None at its ends."""

    number: int | None
    total: int
    before: Disagreement | None
    after: Disagreement | None


def pairs_of(dimensions: Iterable[Dimension]) -> Iterator[Pair]:
    """Every pair of labels that can stand against each other, in the order of the rubric."""
    for dimension in dimensions:
        for one, other in combinations(labels_in_order(dimension), 2):
            yield Pair(dimension.name, one, other)


def labels_in_order(dimension: Dimension) -> tuple[str, ...]:
    return LABELS.get(dimension.name) or dimension.label_names
