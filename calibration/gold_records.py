"""The records of a gold set, as they stand in the database: every target of a round with what was said of it.

Graders appear by number only.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from django.db.models import F

from annotate.asking import CITATION, CLAIM, PASSAGE
from annotate.models import Adjudication, Annotation, Assignment, Flag, GoldLabel, Grader, Round
from annotate.services.targets import Target
from calibration.design import design_in_force, part_of_item
from calibration.gold_lines import Row, Shared
from calibration.measures import Figures
from calibration.pairing import dimensions_of, table_of
from calibration.sightings import FirstSeen, first_seen, had_seen
from calibration.table import REASON_CODE, REASONS, Table
from evalsets.labels import LABELS
from evalsets.models import Claim, EvalSetVersion, Passage, Response, SystemRun

AT_ONCE = 200  # responses in memory at a time


class People:
    """Pseudonyms: graders by their number in the eval set, deciders by the order of their accounts."""

    def __init__(self, round: Round):
        graders = list(Grader.objects.filter(evalset=round.version.evalset))
        self.by_pk = {grader.pk: grader.pseudonym for grader in graders}
        self.by_name = {grader.name: grader.pseudonym for grader in graders}
        leads = set(Adjudication.objects.filter(round=round).values_list("by_id", flat=True))
        self.leads: dict[int | None, str] = {
            pk: f"lead {number}" for number, pk in enumerate(sorted(leads), 1)
        }


class _ResponseRow(NamedTuple):
    pk: int
    run: int
    response_id: str
    sample: int
    text: str
    item_id: str
    question: str | None
    strata: dict[str, str]
    answerable: bool | None
    unanswerable_reason: str


class _PassageRow(NamedTuple):
    response: int
    pk: int
    passage_id: str
    title: str | None
    document: str | None
    text: str
    rank: int


class _ClaimRow(NamedTuple):
    response: int
    pk: int
    claim_id: str
    text: str
    decision: bool | None
    parent: int | None


_OF_RESPONSE = (
    "pk",
    "run_id",
    "response_id",
    "sample",
    "text",
    "item__item_id",
    "item__question",
    "item__strata",
    "item__answerable",
    "item__unanswerable_reason",
)
_OF_PASSAGE = ("response_id", "pk", "passage_id", "title", "document", "text", "rank")
_OF_CLAIM = ("response_id", "pk", "claim_id", "text", "decision", "parent_id")


class _Material:
    """The texts of some responses, by key."""

    def __init__(self, responses: list[int]):
        found = Response.objects.filter(pk__in=responses).order_by().values_list(*_OF_RESPONSE)
        self.responses = {row[0]: _ResponseRow._make(row) for row in found}
        self.passages: dict[int, dict[int, _PassageRow]] = {pk: {} for pk in responses}
        of = {"response__in": responses}
        for row in Passage.objects.filter(**of).order_by("rank").values_list(*_OF_PASSAGE):
            self.passages[row[0]][row[1]] = _PassageRow._make(row)
        self.claims: dict[int, dict[int, _ClaimRow]] = {pk: {} for pk in responses}
        for row in Claim.objects.filter(**of).order_by().values_list(*_OF_CLAIM):
            self.claims[row[0]][row[1]] = _ClaimRow._make(row)


class Records:
    """One record for every target of the round, in the order of the files: what it shares, what is its own.

    A few responses are in memory at a time.
    """

    def __init__(
        self,
        version: EvalSetVersion,
        round: Round,
        tables: dict[str, Table],
        graded: list[str],
        people: People,
        *,
        notes: bool,
    ):
        self.version, self.round, self.tables, self.people = version, round, tables, people
        self.graded = graded
        self.notes, self.split = notes, design_in_force(round)
        self.seen, self.rubric_version = first_seen(version.pk), str(round.rubric_version)
        self.facts = {name: _Facts(table, name in graded, people) for name, table in tables.items()}
        self.responses = list(dict.fromkeys(tables["abstention"].targets.response.tolist()))
        self.runs = {
            run.pk: (run.number, run.content_hash, system_facts(run))
            for run in round.runs.select_related("system")
        }

    def __iter__(self) -> Iterator[tuple[Shared, Row]]:
        for start in range(0, len(self.responses), AT_ONCE):
            chunk = self.responses[start : start + AT_ONCE]
            for _target, shared, own in self.of(chunk):
                if "reason" not in own:
                    own["target_sha256"] = shared.target_hash(own["claim"], own["passage"])
                yield shared, own

    def of(self, responses: list[int]) -> Iterator[tuple[Target, Shared, Row]]:
        """The records of some responses with all their texts, those of unresolved targets too."""
        said = _Said(self.round, responses, self.tables, self.people, self.seen, notes=self.notes)
        material = _Material(responses)
        for pk in responses:
            shared = Shared(self._shared(material.responses[pk], material.passages[pk].values(), said))
            for target, own in self._targets(pk, material, said):
                yield target, shared, own

    def _targets(self, pk: int, material: _Material, said: "_Said") -> Iterator[tuple[Target, Row]]:
        """Each target of a response with what its record has for itself."""
        passages, claims = material.passages[pk], material.claims[pk]
        for dimension, facts in self.facts.items():
            kind = self.tables[dimension].targets.unit
            for key, fact in facts.of(pk):
                about = _About(key, kind, claims, passages)
                target = Target(
                    dimension,
                    pk,
                    about.claim.pk if about.claim else None,
                    about.passage.pk if about.passage else None,
                )
                yield target, self._own(about, (dimension, key), fact, said)

    def _shared(self, response: _ResponseRow, passages: Iterable[_PassageRow], said: "_Said") -> Row:
        """What all records of a response have in common."""
        number, run_hash, system = self.runs[response.run]
        return {
            "evalset": self.version.evalset.slug,
            "version": self.version.number,
            "content_hash": self.version.content_hash,
            "round": self.round.number,
            "system_run": number,
            "system_run_hash": run_hash,
            "sample": response.sample,
            "item_id": response.item_id,
            "response_id": response.response_id,
            "rubric_version": self.rubric_version,
            "strata": response.strata,
            "answerable": response.answerable,
            "unanswerable_reason": response.unanswerable_reason or None,
            "system": system,
            "question": response.question,
            "response": response.text,
            "context": [_passage(passage) for passage in passages],
            "assigned": said.assigned(response.pk),
            "calibration_split": part_of_item(self.split, response.item_id) if self.split else None,
        }

    def _own(self, about: "_About", key: tuple[str, Any], fact: "_Fact", said: "_Said") -> Row:
        """What one record has for itself."""
        gold = None if fact.reason else said.gold.get(key)
        claim, passage = about.claim, about.passage
        own = {
            "split": {"of": about.parent.claim_id} if about.parent else None,
            "flag": said.flags.get(key, []),
            "claim_id": claim.claim_id if claim else None,
            "passage": {"id": passage.passage_id, "rank": passage.rank} if passage else None,
            "dimension": key[0],
            "label": gold.label if gold else None,
            "source": gold.source if gold else None,
            "annotations": said.annotations.get(key, []),
            "adjudication": said.adjudication(gold),
            "claim": claim.text if claim else None,
            "not_asked": fact.not_asked,
            "decision": claim.decision if claim else None,
        }
        return own | {"reason": fact.reason, "empty": fact.is_empty} if fact.reason else own


def records_of(*, version: EvalSetVersion, round: Round, notes: bool = False) -> Records:
    graded = dimensions_of(round)
    names = dict.fromkeys((*LABELS, *graded))  # a fixed dimension that nobody graded is listed as such
    tables = {name: table_of(version=version, round=round, dimension=name) for name in names}
    return Records(version, round, tables, graded, People(round), notes=notes)


class _About:
    """The claim and the passage that a target names, by what its dimension is asked of."""

    def __init__(self, key: Any, kind: str, claims: dict[int, _ClaimRow], passages: dict[int, _PassageRow]):
        claim_id, passage_id = key if kind == CITATION else (key, key)
        self.claim = claims[claim_id] if kind in (CLAIM, CITATION) else None
        self.passage = passages[passage_id] if kind in (PASSAGE, CITATION) else None
        self.parent = claims.get(self.claim.parent) if self.claim and self.claim.parent else None


class _Fact(NamedTuple):
    """What the table knows of a target that its rows do not tell."""

    reason: str  # why it has no gold; "" where it has
    not_asked: list[str]  # whom it was not put to: a condition was not met, or it was not drawn
    is_empty: bool


class _Facts:
    """The facts of one table, by response."""

    def __init__(self, table: Table, is_graded: bool, people: People):
        assert table.gold is not None
        targets = table.targets
        self._order = np.argsort(targets.response, kind="stable")
        self._responses = targets.response[self._order]
        self._keys, self._empty = targets.keys(), targets.empty
        self._why, self._is_graded = table.gold.why, is_graded
        self._not_asked: dict[int, list[str]] = {}
        for column in table.graders:
            for row in np.flatnonzero(column.why == REASON_CODE["not_asked"]).tolist():
                self._not_asked.setdefault(row, []).append(people.by_name[column.name])

    def of(self, response: int) -> Iterator[tuple[Any, _Fact]]:
        first, end = np.searchsorted(self._responses, [response, response + 1])
        for row in self._order[first:end].tolist():
            reason = REASONS[self._why[row]]
            if reason == "not_labelled" and not self._is_graded:
                reason = "not_graded"
            yield self._keys[row], _Fact(reason, self._not_asked.get(row, []), bool(self._empty[row]))


_OF_TARGET = ("dimension", "response_id", "claim_id", "passage_id")


class _Gold(NamedTuple):
    label: str
    source: str
    adjudication: int | None
    by: int | None
    reason: str
    note: str
    at: datetime
    judge_seen: bool


_OF_GOLD = (
    "label",
    "source",
    "adjudication_id",
    *(f"adjudication__{name}" for name in ("by_id", "reason", "note", "at", "judge_seen")),
)


class _Said:
    """What people said about some responses, by dimension and target."""

    def __init__(
        self,
        round: Round,
        responses: list[int],
        dimensions: Iterable[str],
        people: People,
        seen: FirstSeen,
        *,
        notes: bool,
    ):
        self.people, self.seen = people, seen
        self.imported = round.kind == Round.Kind.IMPORTED
        about: Any = {"round": round, "response__in": responses}
        # SQLite would look through all gold of the round each time: it may find it by the responses only.
        gold = GoldLabel.objects.alias(of=F("round_id") + 0).filter(of=round.pk, response__in=responses)
        self.gold = {
            _key(dimension, response, claim, passage): _Gold._make(rest)
            for dimension, response, claim, passage, *rest in gold.order_by().values_list(
                *_OF_TARGET, *_OF_GOLD
            )
        }
        self.annotations: dict[tuple[str, Any], list[Figures]] = {}
        # The dimensions lead to an index, or all labels of the round were looked through.
        given = Annotation.objects.filter(**about, dimension__in=dimensions).order_by("grader__number")
        for dimension, response, claim, passage, grader, label, note, at in given.values_list(
            *_OF_TARGET, "grader_id", "label", "note", "updated_at"
        ):
            self.annotations.setdefault(_key(dimension, response, claim, passage), []).append(
                {
                    "grader": people.by_pk[grader],
                    "label": label,
                    "note": note if notes else None,
                    "at": utc(at),
                }
            )
        self.flags: dict[tuple[str, Any], list[Figures]] = {}
        for flag in Flag.objects.filter(**about).order_by("pk"):
            key = ("grounding", flag.claim_id) if flag.claim_id else ("abstention", flag.response_id)
            self.flags.setdefault(key, []).append(
                {
                    "grader": people.by_pk[flag.grader_id],
                    "note": flag.note if notes else None,
                    "at": utc(flag.created_at),
                }
            )
        self._assigned: dict[int, list[str]] = {}
        for response, grader in (
            Assignment.objects.filter(**about).order_by("slot").values_list("response_id", "grader_id")
        ):
            self._assigned.setdefault(response, []).append(people.by_pk[grader])

    def assigned(self, response: int) -> list[str] | None:
        return None if self.imported else self._assigned.get(response, [])

    def adjudication(self, gold: _Gold | None) -> Figures | None:
        if gold is None or gold.adjudication is None:
            return None
        return {
            "by": self.people.leads[gold.by],
            "reason": gold.reason,
            "note": gold.note,
            "at": utc(gold.at),
            "judge_seen": gold.judge_seen or had_seen(self.seen, gold.by, gold.at),
        }


def _key(dimension: str, response: int, claim: int | None, passage: int | None) -> tuple[str, Any]:
    if claim and passage:
        return dimension, (claim, passage)
    return dimension, claim or passage or response


def _passage(passage: _PassageRow) -> Figures:
    whole = {
        "id": passage.passage_id,
        "title": passage.title,
        "document": passage.document,
        "text": passage.text,
    }
    return {name: value for name, value in whole.items() if value is not None}


def system_facts(run: SystemRun) -> Figures:
    system = run.system
    return {
        "name": system.name,
        "model": system.model,
        "provider": system.provider,
        "family": system.family,
        "date": system.date,
        "settings": system.settings,
    }


@lru_cache(maxsize=1000)
def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
