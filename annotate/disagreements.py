"""The queue of disagreements, sorted by what a decision teaches, in SQL: a round may have 100,000 targets.

To decide comes first, then what waits for a grader, then what is decided. Within each:

1. the pair of labels that stands against each other on the most targets of the list, then the next pair: one
   sentence of the rubric settles many of them;
2. where a grader has left a note, a flag or a proposed split: they say why;
3. where nobody was faster than two seconds: a slip teaches nothing;
4. the fewest equal labels (with more than two graders), and then the order of the file.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from operator import itemgetter
from typing import Any, NamedTuple

from django.db import connection, models
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from annotate.asking import Question
from annotate.material import as_questions
from annotate.models import Dimension, Round
from annotate.queries import RUSHED, hue_of
from evalsets.labels import LABELS
from evalsets.models import Claim, Passage, Response

BEGINNING = 300  # characters of a response or passage in a list
BITS = 62  # of an integer in which a count for every label is packed


class Status(models.TextChoices):
    PENDING = "pending", _("to decide")
    WAITING = "waiting", _("waiting")
    DONE = "done", _("decided")


NUMBER_OF = {Status.PENDING: 0, Status.WAITING: 1, Status.DONE: 2}
STATUS_OF = {number: status for status, number in NUMBER_OF.items()}


class StratumOf(models.Func):
    """The value of one stratum. A path into JSON cannot say every name: digits mean a place in a list."""

    output_field = models.TextField()
    template = "(%(expressions)s)"
    arg_joiner = " ->> "

    def as_sqlite(self, compiler, connection, **context):
        return self.as_sql(
            compiler,
            connection,
            template="(SELECT value FROM json_each(%(expressions)s)",
            arg_joiner=") WHERE key = ",
            **context,
        )


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
        self.sql = _Sql(round, self.wanted, self.dimensions, self.labels, self.width)
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


TARGET = "dimension, response_id, claim, passage"
SHOWN = f"{TARGET}, status, packed, proposed, noted, flagged, rushed"
IS_TARGET = "{0}.dimension = %s AND {0}.response_id = %s AND {0}.claim = %s AND {0}.passage = %s"
ALIKE = "{0}.dimension = {1}.dimension AND {0}.status = {1}.status AND {0}.packed = {1}.packed"
STANDS = "pair.dimension = alike.dimension AND (packed & one) <> 0 AND (packed & other) <> 0"
NO_PAIR = "SELECT 0, '', 0, 0 WHERE 1 = 0)"
# Whether a target has a claim and a passage, and how to find its labels then.
KINDS = (
    ("=", "=", "a.claim_id IS NULL AND a.passage_id IS NULL"),
    ("<>", "=", "a.claim_id = {0}.claim AND a.passage_id IS NULL"),
    ("=", "<>", "a.claim_id IS NULL AND a.passage_id = {0}.passage"),
    ("<>", "<>", "a.claim_id = {0}.claim AND a.passage_id = {0}.passage"),
)


def pairs_of(dimensions: Iterable[Dimension]) -> Iterator[Pair]:
    """Every pair of labels that can stand against each other, in the order of the rubric."""
    for dimension in dimensions:
        for one, other in combinations(labels_in_order(dimension), 2):
            yield Pair(dimension.name, one, other)


def labels_in_order(dimension: Dimension) -> tuple[str, ...]:
    return LABELS.get(dimension.name) or dimension.label_names


@dataclass
class _Sql:
    """The common part of every question to the queue: `listed`, one row for each target that is in it.

    Missing ids are 0, so that targets can be compared by equality. Written out, because the same targets are
    grouped, joined with what was decided of them, ranked and counted, and no row must be fetched for it.
    Where graders differ is read from an index alone; notes and times are looked up for what is to be sorted.
    """

    round: Round
    wanted: Wanted
    dimensions: list[Dimension]
    labels: dict[str, tuple[str, ...]]
    width: int
    values: list[Any] = field(default_factory=list)

    def run(
        self, query: str, values: Sequence[Any] = (), *, in_order: tuple[str, list[Any]] | None = None
    ) -> list[tuple]:
        """`in_order`: what is to be sorted, by the places that all of its kind take: `begins` to `ends`."""
        self.values = []
        tables = [*self._tables(), *(self._sorting(*in_order) if in_order else ())]
        with connection.cursor() as cursor:
            cursor.execute(f"WITH {', '.join(tables)} {query}", [*self.values, *values])
            return cursor.fetchall()

    def _tables(self) -> Iterator[str]:
        yield self._apart()
        yield self._decided()
        yield self._proposed()
        yield self._found()
        yield self._counted()
        yield self._assigned()
        yield self._flagged()
        if conditional := [q for q in as_questions(self.dimensions) if q.after]:
            yield self._led(conditional)
            yield self._settled(conditional)
        yield self._listed(bool(conditional))
        yield "alike AS (SELECT dimension, status, packed, COUNT(*) AS size FROM listed GROUP BY 1, 2, 3)"

    def _apart(self) -> str:
        self.values.append(self.round.pk)
        return (
            f"apart AS {self._once}(SELECT a.dimension, a.response_id, COALESCE(a.claim_id, 0) AS claim, "
            "COALESCE(a.passage_id, 0) AS passage, COUNT(*) AS n, MIN(a.label) AS low, MAX(a.label) AS high "
            f"FROM annotate_annotation a WHERE a.round_id = %s{self._narrowed('a')} "
            "GROUP BY a.dimension, a.response_id, a.claim_id, a.passage_id "
            "HAVING MIN(a.label) <> MAX(a.label))"
        )

    def _found(self) -> str:
        """Where graders differ, and what was decided or is to be split though they say the same."""
        return (
            f"found AS (SELECT {TARGET}, MAX(n) AS n, MAX(low) AS low, MAX(high) AS high, "
            "MAX(decided) AS decided, MAX(proposed) AS proposed FROM "
            f"(SELECT {TARGET}, n, low, high, 0 AS decided, 0 AS proposed FROM apart UNION ALL "
            f"SELECT {TARGET}, 0, NULL, NULL, 1, 0 FROM decided UNION ALL "
            "SELECT 'grounding', c.response_id, p.claim, 0, 0, NULL, NULL, 0, 1 "
            f"FROM proposed p JOIN evalsets_claim c ON c.id = p.claim) AS each GROUP BY {TARGET})"
        )

    def _counted(self) -> str:
        """Where two graders differ both labels are known; the others are looked up."""
        n = self._over_labels(lambda: "COUNT(*)", "o")
        both = f"{self._unit('o.dimension', 'o.low')} + {self._unit('o.dimension', 'o.high')}"
        packed = self._over_labels(self._packed, "o")
        return (
            f"counted AS {self._once}(SELECT {TARGET}, decided, proposed, "
            f"CASE WHEN n > 0 THEN n ELSE {n} END AS n, "
            f"CASE WHEN n = 2 THEN {both} ELSE {packed} END AS packed "
            f"FROM found o WHERE n > 0 OR (1 = 1{self._narrowed('o')}))"
        )

    def _packed(self) -> str:
        """How many graders gave each label, as one number."""
        return f"CAST(SUM({self._unit('a.dimension', 'a.label')}) AS BIGINT)"

    def _unit(self, dimension: str, label: str) -> str:
        """What one label adds to it."""
        of_dimensions = []
        for name, labels in self.labels.items():
            units = (f"WHEN %s THEN {1 << (self.width * place)}" for place in range(len(labels)))
            of_dimensions.append(f"WHEN %s THEN CASE {label} {' '.join(units)} ELSE 0 END" if labels else "")
            self.values += [name, *labels] if labels else []
        known = " ".join(filter(None, of_dimensions))
        return f"CASE {dimension} {known} ELSE 0 END" if known else "0"

    def _marks(self) -> str:
        """2 where somebody left a note, and 1 more where somebody was too fast."""
        self.values.append(RUSHED)
        return (
            "MAX(CASE WHEN a.note <> '' THEN 2 ELSE 0 END) "
            "+ MAX(CASE WHEN a.milliseconds < %s THEN 1 ELSE 0 END)"
        )

    def _over_labels(self, figure: Callable[[], str], target: str) -> str:
        """A figure over what was said about one target; by an equality that an index can look up."""
        cases = []
        for claim, passage, ids in KINDS:
            text = figure()
            self.values.append(self.round.pk)
            cases.append(
                f"WHEN {target}.claim {claim} 0 AND {target}.passage {passage} 0 THEN "
                f"(SELECT {text} FROM annotate_annotation a WHERE a.round_id = %s AND "
                f"a.dimension = {target}.dimension AND a.response_id = {target}.response_id AND "
                f"{ids.format(target)})"
            )
        return f"CASE {' '.join(cases)} END"

    def _narrowed(self, table: str) -> str:
        terms = ""
        if self.wanted.dimension:
            terms += f" AND {table}.dimension = %s"
            self.values.append(self.wanted.dimension)
        if (responses := self._responses()) is not None:
            text, values = responses.query.sql_with_params()
            terms += f" AND {table}.response_id IN ({text})"
            self.values += values
        return terms

    def _responses(self) -> QuerySet | None:
        """What the list is narrowed to; None: every response."""
        if self.wanted.run is None and self.wanted.stratum is None:
            return None
        responses = Response.objects.order_by()
        if self.wanted.run is not None:
            responses = responses.filter(run__version=self.round.version_id, run__number=self.wanted.run)
        if self.wanted.stratum is not None:
            name, value = self.wanted.stratum
            responses = responses.alias(stratum=StratumOf("item__strata", models.Value(name))).filter(
                stratum=value
            )
        return responses.values("pk")

    def _assigned(self) -> str:
        self.values.append(self.round.pk)
        return (
            "assigned AS (SELECT response_id, COUNT(*) AS n FROM annotate_assignment WHERE round_id = %s "
            "GROUP BY response_id)"
        )

    def _decided(self) -> str:
        """A decision about a part of a split claim is one about the claim."""
        self.values.append(self.round.pk)
        return (
            "decided AS (SELECT d.dimension, d.response_id, "
            "COALESCE(c.parent_id, d.claim_id, 0) AS claim, COALESCE(d.passage_id, 0) AS passage "
            "FROM annotate_adjudication d LEFT JOIN (SELECT id, parent_id FROM evalsets_claim "
            "WHERE parent_id IS NOT NULL) c ON c.id = d.claim_id "
            "WHERE d.round_id = %s AND d.revokes_id IS NULL AND NOT EXISTS "
            "(SELECT 1 FROM annotate_adjudication r WHERE r.revokes_id = d.id))"
        )

    def _proposed(self) -> str:
        self.values.append(self.round.pk)
        return (
            "proposed AS (SELECT DISTINCT claim_id AS claim FROM annotate_claimsplit "
            "WHERE round_id = %s AND state = 'proposed')"
        )

    def _flagged(self) -> str:
        self.values.append(self.round.pk)
        return (
            "flagged AS (SELECT DISTINCT response_id, COALESCE(claim_id, 0) AS claim FROM annotate_flag "
            "WHERE round_id = %s)"
        )

    def _led(self, conditional: Sequence[Question]) -> str:
        """How many graders gave a label that leads to a conditional question, target by target."""
        parts = []
        for question in conditional:
            parts.append(
                "SELECT %s AS dimension, response_id, COALESCE(claim_id, 0) AS claim, "
                "COALESCE(passage_id, 0) AS passage, COUNT(*) AS n FROM annotate_annotation "
                f"WHERE round_id = %s AND dimension = %s AND label IN ({_places(question.when)}) "
                "GROUP BY response_id, claim_id, passage_id"
            )
            self.values += [question.dimension, self.round.pk, question.after, *sorted(question.when)]
        return f"led AS ({' UNION ALL '.join(parts)})"

    def _settled(self, conditional: Sequence[Question]) -> str:
        """Where the label that a conditional question rests on is settled, and whether it leads there."""
        parts = []
        for question in conditional:
            parts.append(
                "SELECT %s AS dimension, response_id, COALESCE(claim_id, 0) AS claim, "
                "COALESCE(passage_id, 0) AS passage, "
                f"CASE WHEN label IN ({_places(question.when)}) THEN 1 ELSE 0 END AS leads "
                "FROM annotate_goldlabel WHERE round_id = %s AND dimension = %s"
            )
            self.values += [question.dimension, *sorted(question.when), self.round.pk, question.after]
        return f"settled AS ({' UNION ALL '.join(parts)})"

    def _listed(self, has_conditions: bool) -> str:
        """A conditional question whose condition does not hold in the end is nobody's to decide."""
        missing = "s.n < COALESCE(b.n, 0)"
        joins, where = "", ""
        if has_conditions:
            names = [question.dimension for question in as_questions(self.dimensions) if question.after]
            conditional = f"s.dimension IN ({_places(names)})"
            on = (
                "{0}.dimension = s.dimension AND {0}.response_id = s.response_id AND {0}.claim = s.claim "
                "AND {0}.passage IN (0, s.passage)"
            )
            joins = f"LEFT JOIN led ON {on.format('led')} LEFT JOIN settled ON {on.format('settled')} "
            missing = (
                f"(NOT {conditional} AND {missing}) OR "
                f"({conditional} AND (settled.leads IS NULL OR s.n < COALESCE(led.n, 0)))"
            )
            where = f" AND (settled.leads IS NULL OR settled.leads = 1 OR NOT {conditional})"
            self.values += [*names, *names, *names]
        return (
            f"listed AS {self._once}(SELECT s.dimension, s.response_id, s.claim, s.passage, s.n, s.packed, "
            "s.proposed, CASE WHEN f.claim IS NULL THEN 0 ELSE 1 END AS flagged, "
            f"CASE WHEN {missing} THEN 1 WHEN s.decided = 1 AND s.proposed = 0 THEN 2 ELSE 0 END AS status "
            "FROM counted s LEFT JOIN assigned b ON b.response_id = s.response_id "
            "LEFT JOIN flagged f ON f.response_id = s.response_id AND f.claim = s.claim "
            f"{joins}WHERE s.n > 0{where})"
        )

    def _sorting(self, needed: str, values: Sequence[Any]) -> Iterator[str]:
        """`placed`: a part of what is wanted, each with its place in the whole of it.

        Status and pair come first in the order, and what is alike has both in common: so many targets as are
        alike take a row of places together, and only those who meet the part are looked at one by one.
        """
        yield self._pairs()
        yield (
            "often AS (SELECT number, ROW_NUMBER() OVER (ORDER BY SUM(size) DESC, number) AS rank FROM alike "
            f"JOIN pair ON {STANDS} WHERE status <> {NUMBER_OF[Status.WAITING]} GROUP BY number)"
        )
        yield (
            "paired AS (SELECT alike.dimension, alike.status, alike.packed, alike.size, COALESCE(MIN(rank), "
            f"(SELECT COUNT(*) + 1 FROM often)) AS by_pair FROM alike LEFT JOIN pair ON {STANDS} "
            f"LEFT JOIN often ON often.number = pair.number{self._wanted()} GROUP BY 1, 2, 3, 4)"
        )
        ends = "CAST(SUM(size) OVER (ORDER BY status, by_pair) AS BIGINT)"
        many = "CAST(SUM(size) OVER (PARTITION BY status, by_pair) AS BIGINT)"
        yield (f"ranked AS (SELECT paired.*, {ends} AS ends, {ends} - {many} + 1 AS begins FROM paired)")
        marks = self._over_labels(self._marks, "l")
        self.values += values
        yield (
            f"marked AS {self._once}(SELECT l.*, k.by_pair, k.begins, {marks} AS marks "
            f"FROM listed l JOIN ranked k ON {ALIKE.format('k', 'l')} WHERE {needed})"
        )
        yield (
            f"shown AS (SELECT {TARGET}, n, packed, proposed, flagged, status, by_pair, begins, "
            "CASE WHEN marks > 1 THEN 1 ELSE 0 END AS noted, marks %% 2 AS rushed, "
            "CASE WHEN marks > 1 OR flagged = 1 OR proposed = 1 THEN 0 ELSE 1 END AS unexplained FROM marked)"
        )
        yield (
            f"placed AS {self._once}(SELECT {SHOWN}, begins - 1 + ROW_NUMBER() OVER (PARTITION BY status, "
            f"by_pair ORDER BY unexplained, rushed, ({self._equal_labels()}) * 1.0 / (n * n), response_id, "
            "claim, passage, dimension) AS place FROM shown)"
        )

    def _pairs(self) -> str:
        """Each pair of labels that can stand against each other, as the parts of `packed` that say so."""
        pairs = enumerate(pairs_of(self.dimensions))
        rows = [(number, pair.dimension, *self._masks(pair)) for number, pair in pairs]
        self.values += [value for row in rows for value in row]
        values = ", ".join(f"({_places(row)})" for row in rows)
        return "pair (number, dimension, one, other) AS (" + (f"VALUES {values})" if rows else NO_PAIR)

    def _masks(self, pair: Pair) -> list[int]:
        labels = self.labels[pair.dimension]
        return [self.mask << (self.width * labels.index(label)) for label in (pair.one, pair.other)]

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def _wanted(self) -> str:
        terms = []
        if self.wanted.status:
            terms.append("alike.status = %s")
            self.values.append(NUMBER_OF[Status(self.wanted.status)])
        if pair := self.wanted.pair:
            terms.append("alike.dimension = %s AND (packed & %s) <> 0 AND (packed & %s) <> 0")
            self.values += [pair.dimension, *self._masks(pair)]
        return f" WHERE {' AND '.join(terms)}" if terms else ""

    def _equal_labels(self) -> str:
        longest = max(map(len, self.labels.values()), default=1)
        counts = [f"((packed >> {self.width * place}) & {self.mask})" for place in range(longest)]
        return " + ".join(f"{count} * {count}" for count in counts) or "0"

    @property
    def _once(self) -> str:
        """PostgreSQL computes a column anew wherever it is used, unless it is told not to."""
        return "MATERIALIZED " if connection.vendor == "postgresql" else ""


def _places(values) -> str:
    return ", ".join(["%s"] * len(values))


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
