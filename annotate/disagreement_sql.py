"""The statement behind the queue of disagreements: a round may have 100,000 targets."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, models
from django.db.models import QuerySet

from annotate.asking import Question
from annotate.disagreement_kinds import NUMBER_OF, Pair, Status, Wanted, pairs_of
from annotate.material import as_questions
from annotate.models import Dimension, Round
from annotate.queries import RUSHED
from evalsets.models import Response


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


@dataclass
class QueueSql:
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
