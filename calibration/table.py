"""Targets x raters as arrays: what every figure is computed from, wherever the labels came from.

No database and no framework here: `pairing` fills a table from the rows, `recompute` from exported files.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalsets.labels import LABELS, TARGET_OF

MISSING = -1
SPARSE = 16  # as many numbers may lie between two ids for a table of all of them to be worth it

# Why a rater has no label for a target. Of a pair, the first of the two in this order is counted.
REASONS = (
    "",
    "empty_response",
    "not_assigned",
    "part_of_split",
    "not_asked",
    "no_label",
    "not_labelled",
    "split",
    "unresolved",
    "gold_saw_judge",
    "not_judged",
    "verdict_failed",
    "verdict_pending",
)
REASON_CODE = {reason: code for code, reason in enumerate(REASONS)}
_REASONS = np.array(REASONS, dtype=object)

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def row_of(known: Ints, wanted: Ints) -> Ints:
    """Where each wanted number stands among the known ones, which differ; -1 where it is not among them."""
    if not len(known):
        return np.full(len(wanted), MISSING, dtype=np.int64)
    first, last = int(known.min()), int(known.max())
    if last - first <= SPARSE * len(known):  # ids that were given one after the other, nearly always
        place = np.full(last - first + 2, MISSING, dtype=np.int64)
        place[known - first] = np.arange(len(known))
        return place[np.where((wanted >= first) & (wanted <= last), wanted - first, last - first + 1)]
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)
    row = order[place]
    return np.where(known[row] == wanted, row, MISSING)


@dataclass(frozen=True)
class Column:
    """What one rater said: positions in the label set (-1: nothing) and, where nothing, why."""

    name: str
    kind: str  # grader, judge or gold
    codes: Ints
    why: NDArray[np.int8]
    # Of a judge that was asked more than once: what it said each time, targets x runs. `codes` is the first.
    repeats: Ints | None = None

    @property
    def has(self) -> Mask:
        return self.codes >= 0

    @property
    def runs(self) -> Ints:
        """Targets x runs: what a rate counts, each target by the mean over its runs."""
        return self.codes[:, None] if self.repeats is None else self.repeats

    def run(self, number: int) -> "Column":
        """What was said in one run, from 0; of somebody who was asked once, that."""
        return self if self.repeats is None else replace(self, codes=self.repeats[:, number], repeats=None)

    def select(self, mask: Mask) -> "Column":
        repeats = None if self.repeats is None else self.repeats[mask]
        return replace(self, codes=self.codes[mask], why=self.why[mask], repeats=repeats)

    def hide(self, mask: Mask, reason: str) -> "Column":
        """The same column without the labels of the masked targets."""
        hidden = mask & self.has
        codes, why = self.codes.copy(), self.why.copy()
        codes[hidden], why[hidden] = MISSING, REASON_CODE[reason]
        return replace(self, codes=codes, why=why)

    def not_asked(self, mask: Mask) -> "Column":
        """The same column, with another reason for the masked targets that have no label."""
        why = np.where(mask & ~self.has, REASON_CODE["not_asked"], self.why)
        return replace(self, why=why.astype(np.int8))

    def words(self, labels: Sequence[str]) -> list[str | None]:
        """The labels themselves, None where there is none."""
        return [labels[code] if code >= 0 else None for code in self.codes.tolist()]

    def reasons(self) -> NDArray[np.object_]:
        """Per target: why there is no label, "" where there is one."""
        return _REASONS[self.why]

    def missing(self) -> dict[str, int]:
        return reason_counts(self.why[~self.has])

    def never_said(self) -> Mask:
        """Targets without a label in any run: those that are in no rate."""
        return np.asarray((self.runs < 0).all(axis=1))


@dataclass(frozen=True)
class Group:
    """A slice of the table that is reported apart: a system run or one value of a stratum."""

    name: str
    value: str
    mask: Mask


@dataclass(frozen=True)
class Targets:
    """Every claim (or response) in scope, whether anybody labelled it or not."""

    dimension: str
    target: Ints
    response: Ints
    item: Ints  # the cluster of every interval
    run: Ints
    decision: Mask
    original: Mask  # as the graders first saw it: not a part of a split
    leaf: Mask  # what holds now: not split into parts
    empty: Mask  # of an empty response
    run_names: Mapping[int, str]
    item_facts: Mapping[int, Mapping[str, Any]]  # strata, answerable, reason
    passage: Ints | None = None  # of a citation, beside its claim
    # Of an optional dimension of the rubric; those of the two that every rubric has are fixed.
    own_labels: tuple[str, ...] = ()
    own_unit: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        return self.own_labels or LABELS[self.dimension]

    @property
    def unit(self) -> str:
        return self.own_unit or TARGET_OF[self.dimension]

    def keys(self) -> list[Any]:
        """What names each target among those of its kind: its id, or claim and passage of a citation."""
        if self.passage is None:
            return self.target.tolist()
        return list(zip(self.target.tolist(), self.passage.tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.target)

    def select(self, mask: Mask) -> "Targets":
        rows = {
            field.name: getattr(self, field.name)[mask]
            for field in fields(self)
            if isinstance(getattr(self, field.name), np.ndarray)
        }
        return replace(self, **rows)

    @cached_property
    def kinds(self) -> tuple[list[Mapping[str, Any]], Ints]:
        """The different facts that items have, and of each target which of them its item has."""
        facts = list(self.item_facts.values())
        one_object = np.fromiter(map(id, facts), dtype=np.int64, count=len(facts))
        _ids, first, kind = np.unique(one_object, return_index=True, return_inverse=True)
        items = np.fromiter(self.item_facts, dtype=np.int64, count=len(self.item_facts))
        rows = row_of(items, self.item)
        if (rows < 0).any():
            raise KeyError(f"nothing is known of item {self.item[rows.argmin()]}")
        return [facts[place] for place in first.tolist()], kind[rows]

    def fact(self, name: str) -> list[Any]:
        kinds, kind = self.kinds
        values = [facts[name] for facts in kinds]
        return [values[place] for place in kind.tolist()]


@dataclass(frozen=True)
class Table:
    """Targets with one column for each grader, and one for gold and for a judge where asked for."""

    targets: Targets
    graders: tuple[Column, ...] = ()
    gold: Column | None = None
    gold_source: NDArray[np.object_] | None = None
    gold_saw_judge: Mask | None = None  # decided with a verdict in view: it says nothing about the judge
    judge: Column | None = None
    gold_unseen: Ints | None = None  # of these, what held before a verdict was in view (-1: nothing did)

    def __len__(self) -> int:
        return len(self.targets)

    def select(self, mask: Mask) -> "Table":
        return Table(
            targets=self.targets.select(mask),
            graders=tuple(column.select(mask) for column in self.graders),
            gold=self.gold.select(mask) if self.gold else None,
            gold_source=self.gold_source[mask] if self.gold_source is not None else None,
            gold_saw_judge=self.gold_saw_judge[mask] if self.gold_saw_judge is not None else None,
            gold_unseen=self.gold_unseen[mask] if self.gold_unseen is not None else None,
            judge=self.judge.select(mask) if self.judge else None,
        )

    def blind_gold(self) -> Column:
        """Gold without what was decided with a verdict in view; what held before that stays."""
        assert self.gold is not None
        assert self.gold_saw_judge is not None
        blind = self.gold.hide(self.gold_saw_judge, "gold_saw_judge")
        if self.gold_unseen is None:
            return blind
        before = self.gold_saw_judge & (self.gold_unseen >= 0)
        return replace(
            blind,
            codes=np.where(before, self.gold_unseen, blind.codes),
            why=np.where(before, 0, blind.why).astype(np.int8),
        )

    def first_labels(self) -> Ints:
        """Of each target the label of the first grader who gave one."""
        codes = np.full(len(self), MISSING, dtype=np.int64)
        for column in reversed(self.graders):
            codes = np.where(column.has, column.codes, codes)
        return codes

    def originals(self) -> "Table":
        return self.select(self.targets.original)

    def leaves(self) -> "Table":
        return self.select(self.targets.leaf)

    def labels_per_target(self) -> Ints:
        return counts_per_label(self.graders, self.targets).sum(axis=1)

    def by_system(self) -> Iterator[Group]:
        """Each system run of the scope, also one without a label."""
        for run, name in self.targets.run_names.items():
            yield Group("system", name, self.targets.run == run)

    def by_stratum(self) -> Iterator[Group]:
        kinds, kind = self.targets.kinds
        for name, value in sorted({stratum for facts in kinds for stratum in facts["strata"].items()}):
            has = np.array([facts["strata"].get(name) == value for facts in kinds], dtype=bool)
            yield Group(name, value, has[kind])


def reasons_without_label(targets: Targets, assigned: Mask | None) -> NDArray[np.int8]:
    """Why a grader has no label, target by target; `assigned` is None where labels were imported."""
    why = np.full(
        len(targets), REASON_CODE["no_label" if assigned is None else "not_labelled"], dtype=np.int8
    )
    if assigned is not None:
        why[~assigned] = REASON_CODE["not_assigned"]
    why[~targets.original] = REASON_CODE["part_of_split"]
    why[targets.empty] = REASON_CODE["empty_response"]
    return why


def grader_column(name: str, codes: Ints, targets: Targets, assigned: Mask | None) -> Column:
    why = reasons_without_label(targets, assigned)
    return Column(name, "grader", codes, np.where(codes >= 0, 0, why).astype(np.int8))


def gold_column(codes: Ints, targets: Targets, graders: Sequence[Column]) -> Column:
    """Gold, which of a split claim its parts have; without it, whether the graders differ or are not done."""
    codes = np.where(targets.leaf, codes, MISSING)
    given = counts_per_label(graders, targets)
    differ = (given > 0).sum(axis=1) > 1
    why = np.where(differ, REASON_CODE["unresolved"], REASON_CODE["not_labelled"])
    why[targets.empty & (given.sum(axis=1) == 0)] = REASON_CODE["empty_response"]
    why[~targets.leaf] = REASON_CODE["split"]
    return Column("gold", "gold", codes, np.where(codes >= 0, 0, why).astype(np.int8))


def nobody(targets: Targets, name: str, kind: str, reason: str) -> Column:
    """The column of somebody who said nothing about these targets."""
    n = len(targets)
    why = np.full(n, REASON_CODE[reason], dtype=np.int8)
    return Column(name, kind, np.full(n, MISSING, dtype=np.int64), why)


def counts_per_label(columns: Sequence[Column], targets: Targets) -> Ints:
    """How many graders gave each label, targets x labels."""
    counts = np.zeros((len(targets), len(targets.labels)), dtype=np.int64)
    for column in columns:
        given = np.flatnonzero(column.has)
        counts[given, column.codes[given]] += 1
    return counts


def reason_counts(why: NDArray[np.int8]) -> dict[str, int]:
    return {REASONS[code]: count for code, count in sorted(Counter(why.tolist()).items()) if code}


def left_out(first: Column, second: Column) -> dict[str, int]:
    """Targets that a pair cannot use, by reason; the same whichever of the two comes first."""
    alone = ~(first.has & second.has)
    a = np.where(first.has, len(REASONS), first.why)[alone]
    b = np.where(second.has, len(REASONS), second.why)[alone]
    return reason_counts(np.minimum(a, b))
