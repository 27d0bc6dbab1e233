"""The queue of disagreements, sorted by what a decision teaches, in SQL: a round may have 100,000 targets.

To decide comes first, then what waits for a grader, then what is decided. Within each:

1. the pair of labels that stands against each other on the most targets of the list, then the next pair: one
   sentence of the rubric settles many of them;
2. where a grader has left a note, a flag or a proposed split: they say why;
3. where nobody was faster than two seconds: a slip teaches nothing;
4. the fewest equal labels (with more than two graders), and then the order of the file.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

from django.db import connection, models
from django.db.models import QuerySet
from django.db.models.functions import Left
from django.utils.translation import gettext_lazy as _

from annotate.asking import Question
from annotate.material import as_questions
from annotate.models import Annotation, Dimension, Round
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

    @cached_property
    def _summary(self) -> list[tuple[str, Status, tuple[int, ...], int]]:
        """Dimension, status, graders per label, and how many targets are like that."""
        rows = self.sql.run("SELECT dimension, status, packed, COUNT(*) FROM listed GROUP BY 1, 2, 3")
        return [
            (dimension, STATUS_OF[status], self._unpacked(dimension, packed), n)
            for dimension, status, packed, n in rows
        ]

    def _unpacked(self, dimension: str, packed: int) -> tuple[int, ...]:
        mask = (1 << self.width) - 1
        return tuple((packed >> (self.width * place)) & mask for place in range(len(self.labels[dimension])))

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
        where, where_values = self._where()
        order, order_values = self._order()
        rows = self.sql.run(
            f"SELECT {SHOWN} FROM listed{where} ORDER BY {order} LIMIT %s OFFSET %s",
            [*where_values, *order_values, max(0, stop - start), start],
        )
        return with_texts([self._row(row) for row in rows])

    def first(self) -> Disagreement | None:
        return next(iter(self[:1]), None)

    def around(self, dimension: str, response: int, claim: int | None, passage: int | None) -> Place:
        """The neighbours of a target; of one that is not in this part of the queue, the first comes after."""
        where, where_values = self._where()
        order, order_values = self._order()
        rows = self.sql.run(
            f", placed AS (SELECT {SHOWN}, ROW_NUMBER() OVER (ORDER BY {order}) AS place "
            f"FROM listed{where}), "
            "me AS (SELECT place FROM placed WHERE dimension = %s AND response_id = %s AND claim = %s "
            "AND passage = %s) "
            "SELECT placed.*, me.place FROM placed, me "
            "WHERE placed.place BETWEEN me.place - 1 AND me.place + 1",
            [*order_values, *where_values, dimension, response, claim or 0, passage or 0],
            follows=True,
        )
        near = {row[-2] - row[-1]: self._row(row) for row in rows}
        if not near:
            return Place(None, len(self), None, self.first())
        return Place(rows[0][-1], len(self), near.get(-1), near.get(1))

    def _where(self) -> tuple[str, list[Any]]:
        terms, values = [], []
        if self.wanted.status:
            terms.append("status = %s")
            values.append(NUMBER_OF[Status(self.wanted.status)])
        if self.wanted.pair:
            term, more = self._stands(self.wanted.pair)
            terms.append(term)
            values += more
        return (f" WHERE {' AND '.join(terms)}" if terms else ""), values

    def _order(self) -> tuple[str, list[Any]]:
        ranks, values = [], []
        for rank, (pair, _n) in enumerate(self.pairs):
            term, more = self._stands(pair)
            ranks.append(f"WHEN {term} THEN {rank}")
            values += more
        by_pair = f"CASE {' '.join(ranks)} ELSE {len(ranks)} END, " if ranks else ""
        alike = " + ".join(
            f"((packed >> {shift}) & {self._mask}) * ((packed >> {shift}) & {self._mask})"
            for shift in range(0, self.width * max(map(len, self.labels.values()), default=1), self.width)
        )
        return (
            f"status, {by_pair}1 - explained, rushed, ({alike}) * 1.0 / (n * n), response_id, claim, "
            "passage, dimension"
        ), values

    @property
    def _mask(self) -> int:
        return (1 << self.width) - 1

    def _stands(self, pair: Pair) -> tuple[str, list[Any]]:
        labels = self.labels[pair.dimension]
        given = " AND ".join(
            f"(packed & {self._mask << (self.width * labels.index(label))}) <> 0"
            for label in (pair.one, pair.other)
        )
        return f"(dimension = %s AND {given})", [pair.dimension]

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


SHOWN = "dimension, response_id, claim, passage, status, packed, proposed, noted, flagged, rushed"


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
    """

    round: Round
    wanted: Wanted
    dimensions: list[Dimension]
    labels: dict[str, tuple[str, ...]]
    width: int
    values: list[Any] = field(default_factory=list)

    def run(self, query: str, values: Sequence[Any] = (), *, follows: bool = False) -> list[tuple]:
        self.values = []
        text = "WITH " + ", ".join(self._tables()) + ("" if follows else " ") + query
        with connection.cursor() as cursor:
            cursor.execute(text, [*self.values, *values])
            return cursor.fetchall()

    def _tables(self) -> Iterator[str]:
        yield self._said()
        yield self._assigned()
        yield self._decided()
        yield self._proposed()
        yield self._flagged()
        if conditional := [q for q in as_questions(self.dimensions) if q.after]:
            yield self._led(conditional)
            yield self._settled(conditional)
        yield self._listed(bool(conditional))

    def _said(self) -> str:
        of_dimensions = []
        for name, labels in self.labels.items():
            units = (f"WHEN %s THEN {1 << (self.width * place)}" for place in range(len(labels)))
            of_dimensions.append(f"WHEN %s THEN CASE a.label {' '.join(units)} ELSE 0 END" if labels else "")
            self.values += [name, *labels] if labels else []
        known = " ".join(filter(None, of_dimensions))
        units_given = f"CASE a.dimension {known} ELSE 0 END" if known else "0"
        within = ["a.round_id = %s"]
        self.values += [RUSHED, self.round.pk]
        if self.wanted.dimension:
            within.append("a.dimension = %s")
            self.values.append(self.wanted.dimension)
        if (responses := self._responses()) is not None:
            text, values = responses.query.sql_with_params()
            within.append(f"a.response_id IN ({text})")
            self.values += values
        return (
            "said AS (SELECT a.dimension, a.response_id, COALESCE(a.claim_id, 0) AS claim, "
            "COALESCE(a.passage_id, 0) AS passage, COUNT(*) AS n, MIN(a.label) AS low, MAX(a.label) AS high, "
            f"CAST(SUM({units_given}) AS BIGINT) AS packed, "
            "MAX(CASE WHEN a.note <> '' THEN 1 ELSE 0 END) AS noted, "
            "MAX(CASE WHEN a.milliseconds < %s THEN 1 ELSE 0 END) AS rushed "
            f"FROM {Annotation._meta.db_table} a WHERE {' AND '.join(within)} "
            "GROUP BY a.dimension, a.response_id, a.claim_id, a.passage_id)"
        )

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
            "decided AS (SELECT DISTINCT d.dimension, d.response_id, "
            "COALESCE(c.parent_id, d.claim_id, 0) AS claim, COALESCE(d.passage_id, 0) AS passage "
            "FROM annotate_adjudication d LEFT JOIN evalsets_claim c ON c.id = d.claim_id "
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
                f"WHERE round_id = %s AND dimension = %s AND label IN ({_marks(question.when)}) "
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
                f"CASE WHEN label IN ({_marks(question.when)}) THEN 1 ELSE 0 END AS leads "
                "FROM annotate_goldlabel WHERE round_id = %s AND dimension = %s"
            )
            self.values += [question.dimension, *sorted(question.when), self.round.pk, question.after]
        return f"settled AS ({' UNION ALL '.join(parts)})"

    def _listed(self, has_conditions: bool) -> str:
        """A conditional question whose condition does not hold in the end is nobody's to decide.

        What decides whether a target is listed is joined first: most targets are out after it.
        """
        missing = "s.n < COALESCE(b.n, 0)"
        joins, where = "", ""
        if has_conditions:
            names = [question.dimension for question in as_questions(self.dimensions) if question.after]
            conditional = f"s.dimension IN ({_marks(names)})"
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
            self.values += [*names, *names]
        self.values += ["grounding", *(names if has_conditions else [])]
        return (
            "listed AS (SELECT s.dimension, s.response_id, s.claim, s.passage, s.n, s.packed, s.noted, "
            "s.rushed, CASE WHEN p.claim IS NULL THEN 0 ELSE 1 END AS proposed, "
            "CASE WHEN f.claim IS NULL THEN 0 ELSE 1 END AS flagged, "
            "CASE WHEN s.noted = 1 OR f.claim IS NOT NULL OR p.claim IS NOT NULL THEN 1 ELSE 0 END "
            f"AS explained, CASE WHEN {missing} THEN 1 WHEN d.claim IS NOT NULL AND p.claim IS NULL THEN 2 "
            "ELSE 0 END AS status FROM said s "
            "LEFT JOIN decided d ON d.dimension = s.dimension AND d.response_id = s.response_id "
            "AND d.claim = s.claim AND d.passage = s.passage "
            "LEFT JOIN proposed p ON p.claim = s.claim AND s.dimension = %s "
            "LEFT JOIN assigned b ON b.response_id = s.response_id "
            "LEFT JOIN flagged f ON f.response_id = s.response_id AND f.claim = s.claim "
            f"{joins}WHERE (s.low <> s.high OR d.claim IS NOT NULL OR p.claim IS NOT NULL){where})"
        )


def _marks(values) -> str:
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
