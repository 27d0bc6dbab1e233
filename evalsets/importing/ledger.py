"""What must hold between the lines of a file.

Nothing here keeps a text: between lines only ids, digests and line numbers are remembered.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, cast

from evalsets.hashing import canonical_json
from evalsets.importing.findings import Findings, shown
from evalsets.importing.jsonl import Row
from evalsets.importing.records import (
    ITEM_FIELDS,
    ClaimRecord,
    LineRecord,
    ResponseRecord,
)
from evalsets.importing.validate import record_of

_DIGESTED = (*ITEM_FIELDS, "extra")
_PACKED = struct.Struct(f"{len(_DIGESTED)}q")


def digest_of(item: Any) -> bytes:
    """What an item says (a record's, or a row's of the database), a digest of 8 bytes for each field.

    It holds within this process only.
    """
    return _PACKED.pack(*[hash(value) if type(value) is str else _digest(value) for value in _digested(item)])


_digested = attrgetter(*_DIGESTED)


def _digest(value: Any) -> int:
    # Python hashes texts with a secret of the process. What stands for another value begins with NUL, which
    # no text of an item does, so the two never meet.
    if value is None:
        return _OF_NULL
    if value is True or value is False:
        return _OF_TRUTH[value]
    if type(value) is dict and all(type(part) is str for part in value.values()):
        return hash(("\0", *sorted(value.items())))
    return hash(f"\0{canonical_json(value)}")


_OF_NULL, _OF_TRUTH = hash("\0null"), (hash("\0false"), hash("\0true"))


def _differing(left: bytes, right: bytes, names: Iterable[str]) -> list[str]:
    return [
        name
        for index, name in enumerate(_DIGESTED)
        if name in names and left[index * 8 : index * 8 + 8] != right[index * 8 : index * 8 + 8]
    ]


@dataclass
class Frozen:
    """What a frozen version holds already: the items (packed digests by id) and the response ids."""

    items: Mapping[str, bytes]
    response_ids: set[str]


@dataclass
class Ledger:
    """What must hold between lines: ids once, an item said in one way, a sample of a system run once."""

    findings: Findings
    frozen: Frozen | None = None
    _lines: dict[str, int] = field(default_factory=dict)
    _items: dict[str, tuple[int, bytes, bool]] = field(default_factory=dict)
    _samples: dict[tuple, int] = field(default_factory=dict)
    _names: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    _known: dict[str, set[str]] = field(default_factory=lambda: {"grader": set(), "judge": set()})
    _variants: dict[str, int] = field(default_factory=dict)
    without_response: int = 0

    def check(self, record: LineRecord) -> tuple[LineRecord, bool] | None:
        """The record and whether its item is new; None when the line is refused."""
        before = self.findings.count
        identifier = record.response.response_id if record.response else record.item.item_id
        self._once(record.line, identifier)
        is_new = self._known_item(record, self.frozen) if self.frozen else self._same_item(record)
        if record.response:
            if self.findings.count == before:
                self._sample_once(record.line, record.item.item_id, record.response)
            self._names_of(record.line, record.response)
        elif is_new:
            self.without_response += 1
        if record.item.variant_of:
            self._variants.setdefault(record.item.variant_of, record.line)
            if record.item.variant_of == record.item.item_id:
                self.findings.problem(
                    record.line, "variant_of", "an item cannot be a variant of itself", record.item.variant_of
                )
        if self.findings.count > before:
            return None
        return record, is_new

    def note_refused(self, row: Row) -> None:
        """The id of a line that is refused for other reasons still counts as seen."""
        identifier = row.fields.get("id")
        if isinstance(identifier, str) and identifier:
            self._once(row.line, identifier)

    def close(self) -> None:
        """What can be said only after the last line."""
        known = self._items if self.frozen is None else self.frozen.items
        for item_id, line in self._variants.items():
            if item_id not in known:
                self.findings.notice(f'"variant_of" names "{shown(item_id)}", which is no item here.', line)
        if self.without_response:
            self.findings.notice(
                f"{self.without_response} items have no response yet; what their lines say beyond the item "
                "(context, system, source, meta) is kept with the item and exported again."
            )
        if not self._lines and not self.findings.refused:
            self.findings.problem(None, "", "no rows: the file holds no responses and no items")

    def _once(self, line: int, identifier: str) -> None:
        first = self._lines.setdefault(identifier, line)
        if first != line:
            message = f"the id {shown(identifier)!r} stands on line {first} and again on line {line}"
            self.findings.problem(line, "id", message, identifier)
        elif self.frozen and identifier in self.frozen.response_ids:
            refuse_taken_id(self.findings, line, identifier)

    def _known_item(self, record: LineRecord, frozen: Frozen) -> bool:
        held = frozen.items.get(record.item.item_id)
        if held is None:
            self.findings.problem(
                record.line,
                "item_id",
                f"the version has no item {shown(record.item.item_id)!r}",
                record.item.item_id,
            )
            return False
        for name in _differing(held, digest_of(record.item), record.item.stated):
            self.findings.problem(
                record.line,
                name,
                f"contradicts the frozen item {shown(record.item.item_id)!r}",
                getattr(record.item, name),
            )
        return False

    def _same_item(self, record: LineRecord) -> bool:
        item_id, item_only = record.item.item_id, record.response is None
        digests = digest_of(record.item)
        if item_id not in self._items:
            self._items[item_id] = record.line, digests, item_only
            return True
        line, held, held_by_item_only = self._items[item_id]
        if item_only:
            message = f"missing, but line {line} already speaks of the item {shown(item_id)!r}"
            self.findings.problem(record.line, "response", message, item_id)
            return False
        names = set(_DIGESTED)
        if held_by_item_only and "extra" not in record.item.stated:
            names.discard("extra")
        for name in _differing(held, digests, names):
            shown_name = "item_extra" if name == "extra" else name
            self.findings.problem(
                record.line,
                shown_name,
                f"differs from line {line}, which is about the same item {shown(item_id)!r}",
                getattr(record.item, name),
            )
        return False

    def _sample_once(self, line: int, item_id: str, response: ResponseRecord) -> None:
        key = (*response.system.key, item_id, response.sample)
        first = self._samples.setdefault(key, line)
        if first != line:
            self.findings.problem(
                line,
                "sample",
                f"line {first} is the same sample of the same system for the item {shown(item_id)!r}; "
                "give repeated runs different sample numbers",
                response.sample,
            )

    def _names_of(self, line: int, response: ResponseRecord) -> None:
        said: list[ResponseRecord | ClaimRecord] = [response, *response.claims]
        for kind, maps in (
            ("grader", [target.human_labels for target in said if target.human_labels]),
            ("judge", [target.judge_labels for target in said if target.judge_labels]),
        ):
            known = self._known[kind]
            for labels in maps:
                if not known.issuperset(labels):
                    for name in labels:
                        if note_name(self.findings, self._names, kind, name, line):
                            known.add(name)


def refuse_taken_id(findings: Findings, line: int, identifier: str) -> None:
    message = f"the version already has a response with the id {shown(identifier)!r}"
    findings.problem(line, "id", message, identifier)


def note_name(
    findings: Findings, names: dict[tuple[str, str], tuple[str, int]], kind: str, name: str, line: int
) -> bool:
    """Two names that differ in case only are one person mistyped, more often than not: never guess."""
    held, first = names.setdefault((kind, name.casefold()), (name, line))
    if held == name:
        return True
    message = f"the {kind} {shown(name)!r} differs only in case from {shown(held)!r} (line {first})"
    findings.problem(line, kind, message, name)
    return False


def checked(
    rows: Iterable[Row | LineRecord], findings: Findings, frozen: Frozen | None = None
) -> Iterator[tuple[LineRecord, bool]]:
    """The good lines of a file, one at a time, with whether the line brings a new item.

    Parameters
    ----------
    rows : iterable of Row or LineRecord
        As the reader of the format yields them; a record is in order by itself.
    findings : Findings
        Gets all problems and notices; after the last line the caller asks it whether the file is refused.
    frozen : Frozen, optional
        Given when responses are added to a frozen version.
    """
    ledger = Ledger(findings, frozen)
    for row in rows:
        record = (
            row if isinstance(row, LineRecord) else record_of(row, findings, items_known=frozen is not None)
        )
        if record is None:
            ledger.note_refused(cast(Row, row))
            continue
        found = ledger.check(record)
        if found is not None:
            yield found
    ledger.close()
