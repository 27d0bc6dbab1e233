"""A checked file on its way into the tables.

A record becomes rows that lack nothing but their keys; those wait on disk until the whole file is known to
hold no problem, and what was checked is what is stored.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from django.db.models import Max

from evalsets.bulk import Bulk, new_keys
from evalsets.importing.records import ClaimRecord, ItemRecord, LineRecord, ResponseRecord, SystemRecord
from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Passage, Response, System, SystemRun
from evalsets.spool import Spool

Progress = Callable[[int], None]

_ITEMS = Bulk(
    Item,
    "id",
    "version",
    "position",
    "item_id",
    "question",
    "strata",
    "answerable",
    "unanswerable_reason",
    "reference_answer",
    "expected_documents",
    "expected_passages",
    "variant_of",
    "extra",
)
_RESPONSES = Bulk(
    Response,
    "id",
    "version",
    "run",
    "item",
    "position",
    "response_id",
    "sample",
    "text",
    "retrieval_query",
    "extra",
)
_PASSAGES = Bulk(Passage, "response", "rank", "passage_id", "title", "document", "text", "extra")
_CLAIMS = Bulk(Claim, "id", "response", "position", "claim_id", "text", "source_ids", "decision", "extra")
GRADER, JUDGE = "grader", "judge"


class Row(NamedTuple):
    """One line. `item` is None where an earlier line brought it, the rest where there is no response."""

    line: int
    item_id: str
    item: tuple | None
    response: tuple | None
    system: int
    passages: list[tuple]
    claims: list[tuple]
    labels: list[tuple]  # kind, name, index of the claim or None, dimension, label


@dataclass
class Checked:
    """A file that may be stored; `newest` is the last response of the version that it was held against."""

    filename: str
    notices: list[str] = field(default_factory=list)
    newest: int = 0
    systems: dict[tuple[str, int], tuple[int, SystemRecord]] = field(default_factory=dict)
    rows: Spool = field(default_factory=Spool)

    def add(self, record: LineRecord, *, brings_item: bool) -> None:
        item, response = record.item, record.response
        item_row = _item_row(item) if brings_item else None
        row: tuple
        if response is None:
            row = (record.line, item.item_id, item_row, None, 0, [], [], [])
        else:
            row = (
                record.line,
                item.item_id,
                item_row,
                _response_row(response),
                self.systems.setdefault(response.system.key, (len(self.systems), response.system))[0],
                [
                    (p.passage_id, p.title, p.document, p.text, _json(p.extra) if p.extra else "{}")
                    for p in response.passages
                ],
                [
                    (
                        c.claim_id,
                        c.text,
                        _json_of_texts(tuple(c.source_ids)),
                        c.decision,
                        _json(c.extra) if c.extra else "{}",
                    )
                    for c in response.claims
                ],
                _labels(response),
            )
        self.rows.append(row, record.size)

    def lines(self) -> Iterator[list[Row]]:
        for batch in self.rows.batches():
            yield list(map(Row._make, batch))


def _json(value: dict) -> str:
    return json.dumps(value) if value else "{}"


# The same passages are cited, and the same strata named, again and again.


@lru_cache(maxsize=10_000)
def _json_of_texts(texts: tuple[str, ...]) -> str:
    return json.dumps(texts)


@lru_cache(maxsize=10_000)
def _json_of_strata(strata: tuple[tuple[str, str], ...]) -> str:
    return json.dumps(dict(strata))


def _texts_or_null(texts: list[str] | None) -> str | None:
    return None if texts is None else _json_of_texts(tuple(texts))


def _item_row(item: ItemRecord) -> tuple:
    return (
        item.item_id,
        item.question,
        _json_of_strata(tuple(item.strata.items())),
        item.answerable,
        item.unanswerable_reason,
        item.reference_answer,
        _texts_or_null(item.expected_documents),
        _texts_or_null(item.expected_passages),
        item.variant_of,
        _json(item.extra),
    )


def _response_row(response: ResponseRecord) -> tuple:
    return (
        response.response_id,
        response.sample,
        response.text,
        response.retrieval_query,
        _json(response.extra),
    )


def _labels(response: ResponseRecord) -> list[tuple]:
    labels = list(_said(response, None, "abstention"))
    for index, claim in enumerate(response.claims):
        if claim.human_labels or claim.judge_labels:
            labels += _said(claim, index, "grounding")
    return labels


def _said(target: ResponseRecord | ClaimRecord, index: int | None, dimension: str) -> Iterator[tuple]:
    for name, label in target.human_labels.items():
        yield GRADER, name, index, dimension, label
    for name, label in target.judge_labels.items():
        yield JUDGE, name, index, dimension, label


@dataclass
class Imported:
    """What an import stored. `labels` holds (name, response, claim or None, dimension, label) by kind."""

    version: EvalSetVersion
    runs: list[SystemRun]
    counts: dict[str, int]
    notices: list[str]
    labels: dict[str, Spool]


class Writer:
    """Gives the rows of a checked file their keys and stores them, a batch at a time."""

    def __init__(self, version: EvalSetVersion, checked: Checked):
        self.version, self.checked = version, checked
        self.systems = [system for _index, system in checked.systems.values()]
        self.runs: dict[int, SystemRun] = {}
        self.item_keys: dict[str, int] = dict(version.items.values_list("item_id", "pk").iterator())
        self.position = (version.responses.aggregate(last=Max("position"))["last"] or 0) + 1
        self.last_run = version.runs.aggregate(last=Max("number"))["last"] or 0
        self.labels = {GRADER: Spool(), JUDGE: Spool()}
        self.counts = {"items": 0, "responses": 0, "passages": 0, "claims": 0}

    def write(self, on_progress: Progress | None) -> Imported:
        for lines in self.checked.lines():
            self._items([line.item for line in lines if line.item is not None])
            self._responses([line for line in lines if line.response is not None])
            if on_progress:
                on_progress(lines[-1].line)
        return Imported(
            self.version, list(self.runs.values()), self.counts, self.checked.notices, self.labels
        )

    def _items(self, rows: list[tuple]) -> None:
        keys, first = new_keys(Item, len(rows)), len(self.item_keys) + 1
        version = self.version.pk
        _ITEMS.insert(
            [
                (key, version, position, *row)
                for position, (key, row) in enumerate(zip(keys, rows, strict=True), first)
            ]
        )
        self.item_keys.update(zip((row[0] for row in rows), keys, strict=True))
        self.counts["items"] += len(rows)

    def _responses(self, lines: list[Row]) -> None:
        keys = new_keys(Response, len(lines))
        version = self.version.pk
        rows = []
        for position, (key, line) in enumerate(zip(keys, lines, strict=True), self.position):
            run, item = self._run_of(line.system).pk, self.item_keys[line.item_id]
            rows.append((key, version, run, item, position, *line.response))  # type: ignore[misc]
        _RESPONSES.insert(rows)
        self.position += len(rows)
        passages = [
            (key, rank, *passage)
            for key, line in zip(keys, lines, strict=True)
            for rank, passage in enumerate(line.passages, 1)
        ]
        _PASSAGES.insert(passages)
        self.counts["responses"] += len(rows)
        self.counts["passages"] += len(passages)
        self._claims(keys, lines)

    def _claims(self, responses: Iterable[int], lines: list[Row]) -> None:
        keys = iter(new_keys(Claim, sum(len(line.claims) for line in lines)))
        rows = []
        for response, line in zip(responses, lines, strict=True):
            own = [(next(keys), response, position, *claim) for position, claim in enumerate(line.claims, 1)]
            rows += own
            for kind, name, index, dimension, label in line.labels:
                claim = None if index is None else own[index][0]
                self.labels[kind].append((name, response, claim, dimension, label))
        _CLAIMS.insert(rows)
        self.counts["claims"] += len(rows)

    def _run_of(self, system: int) -> SystemRun:
        if system not in self.runs:
            self.last_run += 1
            self.runs[system] = SystemRun.objects.create(
                version=self.version,
                system=_system_row(self.version.evalset, self.systems[system]),
                number=self.last_run,
                source_name=self.checked.filename[-255:],
            )
        return self.runs[system]


def _system_row(evalset: EvalSet, system: SystemRecord) -> System:
    given = system.given
    row, _made = System.objects.get_or_create(
        evalset=evalset,
        fingerprint=system.fingerprint,
        defaults={
            "name": given.get("name") or "",
            "model": given.get("model"),
            "provider": given.get("provider") or "",
            "family": given.get("family") or "",
            "date": given.get("date") or "",
            "settings": given.get("settings") or {},
            "given": given,
        },
    )
    return row
