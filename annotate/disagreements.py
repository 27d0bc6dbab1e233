"""The queue of disagreements, sorted by what a decision teaches, in SQL: a round may have 100,000 targets.

To decide comes first, then what waits for a grader, then what is decided. Within each:

1. the pair of labels that stands against each other on the most targets of the list, then the next pair: one
   sentence of the rubric settles many of them;
2. where a grader has left a note, a flag or a proposed split: they say why;
3. where nobody was faster than two seconds: a slip teaches nothing;
4. the fewest equal labels (with more than two graders), and then the order of the file.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import Any

from django.db.models.functions import Left

from annotate.disagreement_kinds import (
    STATUS_OF,
    Alike,
    Disagreement,
    Pair,
    Place,
    Status,
    Wanted,
    labels_in_order,
    pairs_of,
)
from annotate.disagreement_sql import ALIKE, IS_TARGET, SHOWN, QueueSql
from annotate.models import Round
from annotate.queries import hue_of
from evalsets.models import Claim, Passage, Response

BEGINNING = 300  # characters of a response or passage in a list
BITS = 62  # of an integer in which a count for every label is packed


class DisagreementQueue:
    """The targets whose graders differ, or that were decided, or whose split is proposed.

    Behaves like a list for a paginator: it knows its length and can be sliced.
    """

    def __init__(self, round: Round, wanted: Wanted | None = None) -> None:
        self.round, self.wanted = round, wanted or Wanted()
        self.dimensions = list(round.rubric_version.dimensions.all())
        self.labels = {dimension.name: labels_in_order(dimension) for dimension in self.dimensions}
        self.hues = {
            d.name: {label: hue_of(d, label) for label in self.labels[d.name]} for d in self.dimensions
        }
        longest = max((len(labels) for labels in self.labels.values()), default=1)
        self.width = BITS // max(longest, 1)
        self.sql = QueueSql(round, self.wanted, self.dimensions, self.labels, self.width)
        self._ahead: tuple[int, int] | None = None
        self._part: tuple[int, int, list[Disagreement]] | None = None  # from where to where, and the rows
        self._alike: list[Alike] | None = None

    def read_ahead(self, page: object, per_page: int) -> None:
        """The rows of this page come with the first question that is asked."""
        number = int(page) if isinstance(page, str) and page.isdecimal() and len(page) < 10 else 1
        start = max(number - 1, 0) * per_page
        self._ahead = start, start + per_page

    @property
    def _summary(self) -> list[Alike]:
        if self._alike is None:
            if self._ahead:
                self._read(*self._ahead)
            else:
                rows = self.sql.run("SELECT dimension, status, packed, size FROM alike")
                self._alike = [self._kind(*row) for row in rows]
        assert self._alike is not None
        return self._alike

    def _read(self, start: int, stop: int) -> None:
        """A part of the queue, and with it what the whole is made of: both need every target."""
        found = self.sql.run(
            f"SELECT {SHOWN}, place FROM placed WHERE place > %s AND place <= %s "
            "UNION ALL SELECT dimension, size, 0, 0, status, packed, 0, 0, 0, 0, 0 FROM alike",
            [start, stop],
            in_order=("k.ends > %s AND k.begins <= %s", [start, stop]),
        )
        rows = sorted((row for row in found if row[-1]), key=itemgetter(-1))
        self._part = start, stop, [self._row(row) for row in rows]
        self._alike = [self._kind(row[0], row[4], row[5], row[1]) for row in found if not row[-1]]

    def _kind(self, dimension: str, status: int, packed: int, size: int) -> Alike:
        return Alike(dimension, STATUS_OF[status], self._unpacked(dimension, packed), int(size))

    def _unpacked(self, dimension: str, packed: int) -> tuple[int, ...]:
        places = range(len(self.labels[dimension]))
        return tuple((packed >> (self.width * place)) & self.sql.mask for place in places)

    @cached_property
    def pairs(self) -> list[tuple[Pair, int]]:
        """Each pair of labels with the number of its targets, the most frequent first.

        What waits for a grader is left out: its labels are not shown yet.
        """
        found: Counter[Pair] = Counter()
        for dimension, status, counts, n in self._summary:
            if status != Status.WAITING:
                for pair in self._pairs_in(dimension, counts):
                    found[pair] += n
        order = {pair: number for number, pair in enumerate(pairs_of(self.dimensions))}
        return sorted(found.items(), key=lambda entry: (-entry[1], order[entry[0]]))

    def _pairs_in(self, dimension: str, counts: Sequence[int]) -> list[Pair]:
        given = [label for label, count in zip(self.labels[dimension], counts, strict=True) if count]
        return [Pair(dimension, one, other) for one, other in combinations(given, 2)]

    @cached_property
    def counts(self) -> dict[Status, int]:
        """How many targets have which status, whichever of them is wanted."""
        found = dict.fromkeys(Status, 0)
        for dimension, status, counts, n in self._summary:
            if self.wanted.pair is None or self.wanted.pair in self._pairs_in(dimension, counts):
                found[status] += n
        return found

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def __len__(self) -> int:
        return self.counts[Status(self.wanted.status)] if self.wanted.status else self.total

    def __iter__(self) -> Iterator[Disagreement]:
        return iter(self[: len(self)])

    def __getitem__(self, part: slice) -> list[Disagreement]:
        start, stop = part.start or 0, part.stop if part.stop is not None else len(self)
        if not (self._part and self._part[0] <= start and min(stop, len(self)) <= self._part[1]):
            self._read(start, stop)
        assert self._part is not None
        before, _stop, rows = self._part
        return with_texts(rows[start - before : max(stop - before, 0)])

    def first(self) -> Disagreement | None:
        return next(iter(self[:1]), None)

    def around(self, dimension: str, response: int, claim: int | None, passage: int | None) -> Place:
        """The neighbours of a target; of one that is not in this part of the queue, the first comes after."""
        target = [dimension, response, claim or 0, passage or 0]
        mine = (
            f"FROM ranked m JOIN listed ON {ALIKE.format('m', 'listed')} WHERE {IS_TARGET.format('listed')}"
        )
        at = f"(SELECT place FROM placed WHERE {IS_TARGET.format('placed')})"
        rows = self.sql.run(
            "SELECT placed.*, (SELECT MAX(ends) FROM ranked) FROM placed "
            f"WHERE place BETWEEN {at} - 1 AND {at} + 1",
            [*target, *target],
            in_order=(
                f"k.ends >= (SELECT m.begins - 1 {mine}) AND k.begins <= (SELECT m.ends + 1 {mine})",
                [*target, *target],
            ),
        )
        if not rows:
            first = self.first()
            return Place(None, len(self), None, first)
        number = next(row[-2] for row in rows if list(row[:4]) == target)
        near = {row[-2] - number: self._row(row) for row in rows}
        return Place(number, rows[0][-1], near.get(-1), near.get(1))

    def _row(self, row: Sequence[Any]) -> Disagreement:
        dimension, response, claim, passage, status, packed, proposed, noted, flagged, rushed = row[:10]
        counts = zip(self.labels[dimension], self._unpacked(dimension, packed), strict=True)
        return Disagreement(
            dimension=dimension,
            response_id=response,
            claim_id=claim or None,
            passage_id=passage or None,
            status=STATUS_OF[status],
            counts={label: count for label, count in counts if count},
            proposed=bool(proposed),
            noted=bool(noted),
            flagged=bool(flagged),
            rushed=bool(rushed),
            hues=self.hues[dimension],
        )


def with_texts(found: list[Disagreement]) -> list[Disagreement]:
    """What stands on the page: the claim, the question with its response, or the passage."""
    claims = dict(Claim.objects.filter(pk__in=[d.claim_id for d in found]).values_list("pk", "text"))
    responses = {
        pk: (question or "", beginning)
        for pk, question, beginning in Response.objects.filter(
            pk__in=[d.response_id for d in found if d.claim_id is None]
        ).values_list("pk", "item__question", Left("text", BEGINNING))
    }
    passages = dict(
        Passage.objects.filter(pk__in=[d.passage_id for d in found]).values_list(
            "pk", Left("text", BEGINNING)
        )
    )
    made = []
    for d in found:
        text, more = (claims[d.claim_id], "") if d.claim_id else responses[d.response_id]
        made.append(replace(d, text=text, more=passages[d.passage_id] if d.passage_id else more))
    return made
