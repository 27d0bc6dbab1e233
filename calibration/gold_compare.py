"""An edited gold set against what holds here, target by target. Nothing is stored.

The records of the file are compared with those that the export would write now, so that both say the same
thing in the same way. Texts must be those of this version: a label belongs to the text it was given for.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from annotate.models import GoldLabel, Round
from annotate.services.targets import Target
from calibration import goldfile
from calibration.gold_given import GivenGold, GivenRow
from calibration.gold_lines import Row, Shared
from calibration.gold_records import records_of
from calibration.pairing import chosen_round
from evalsets.importing import Findings, ImportRefused
from evalsets.importing.findings import UnreadableFile
from evalsets.importing.validate import fold_label
from evalsets.models import EvalSetVersion, Response

AT_ONCE = 1000  # rows in memory at a time
NEEDED = ("content_hash", "response_id", "claim_id", "dimension", "label", "target_sha256")
TEXTS = ("question", "response", "claim", "context")
# What an edit of the file cannot move: facts of the frozen version, and how gold came about.
FACTS = ("source", "item_id", "sample", "strata", "answerable", "unanswerable_reason", "decision")
OF_THIS_ROUND = ("adjudication",)
# Why a target without gold cannot get it from a file.
NOT_READY = frozenset({"split", "empty_response", "not_labelled", "not_graded"})


class Change(NamedTuple):
    """A record whose label is not the one that holds here; `before` is None where none does."""

    line: int
    place: Target
    before: str | None
    after: str
    why: str = ""  # there is no gold

    @property
    def can_be_taken(self) -> bool:
        return self.why not in NOT_READY


@dataclass
class Comparison:
    """What a file says against what holds. `unusable` are rows that name nothing here, or no label."""

    version: EvalSetVersion
    round: Round
    given: GivenGold
    rows: int = 0
    same: int = 0
    changed: list[Change] = field(default_factory=list)
    new: list[Change] = field(default_factory=list)
    missing: list[Target] = field(default_factory=list)
    left_out: int = 0
    unusable: Findings = field(default_factory=Findings)
    differing: Counter[str] = field(default_factory=Counter)  # other fields, which are not taken over
    notices: list[str] = field(default_factory=list)

    @property
    def changes(self) -> list[Change]:
        """In the order of the file."""
        return sorted([*self.changed, *self.new])

    @property
    def to_take(self) -> list[Change]:
        return [change for change in self.changes if change.can_be_taken]

    @property
    def origin(self) -> str:
        """What the log says about where a label came from."""
        return f"{self.given.name} (SHA-256 {self.given.sha256})"

    @property
    def counts(self) -> dict[str, int]:
        return {
            "rows": self.rows,
            "same": self.same,
            "changed": len(self.changed),
            "new": len(self.new),
            "missing": len(self.missing),
            "left_out": self.left_out,
            "unusable": self.unusable.count,
        }

    @property
    def moves(self) -> list[tuple[str, str | None, str, int]]:
        """(dimension, from, to, how many), the most frequent first."""
        found = Counter((change.place.dimension, change.before, change.after) for change in self.changes)
        return [(*move, n) for move, n in found.most_common()]


def compare_gold(*, given: GivenGold, version: EvalSetVersion, round_number: int | None = None) -> Comparison:
    """Nothing is stored.

    Raises
    ------
    ImportRefused
        The file cannot be read, or it is about other texts than those of the version.
    """
    findings = Findings()
    try:
        rows = given.rows(findings)
        first = next(rows, None)
        if first is None:
            findings.problem(None, "", _("no records: the file holds no gold"))
            raise ImportRefused(findings.problems, findings.left_out)
        round = _round_meant(version, round_number, first)
        comparing = _Comparing(Comparison(version, round, given), findings, is_own=_is_own(first, round))
        comparing.take([first, *islice(rows, AT_ONCE - 1)])
        while chunk := list(islice(rows, AT_ONCE)):
            comparing.take(chunk)
    except UnreadableFile as error:
        findings.add(error.problem)
    findings.raise_if_refused()
    return comparing.done()


def _round_meant(version: EvalSetVersion, number: int | None, row: GivenRow) -> Round:
    """The round asked for; else the one that the file was exported from; of a copy the one that holds."""
    findings = Findings()
    if not version.is_frozen:
        findings.problem(None, "", _("the version is a draft: gold names a frozen one"))
        findings.raise_if_refused()
    said = row.value("round")
    if number is None and _is_of(row, version) and isinstance(said, int):
        number = said
    round = chosen_round(version=version, number=number)
    if round is None or round.kind == Round.Kind.SECOND_LOOK:
        findings.problem(row.line, "round", _("there is no such round of gold here"), number)
    findings.raise_if_refused()
    assert round is not None
    return round


def _is_of(row: GivenRow, version: EvalSetVersion) -> bool:
    return row.text("evalset") == version.evalset.slug and row.value("version") == version.number


def _is_own(row: GivenRow, round: Round) -> bool:
    """Exported from here, and not from a copy: pseudonyms and times mean the same."""
    return _is_of(row, round.version) and row.value("round") == round.number


class _Comparing:
    """Goes through the file a thousand rows at a time, each against the record of its target."""

    def __init__(self, comparison: Comparison, findings: Findings, *, is_own: bool):
        self.found, self.findings = comparison, findings
        self.records = records_of(version=comparison.version, round=comparison.round)
        self.in_round = set(self.records.responses)
        self.is_own, self.compared = is_own, FACTS + (OF_THIS_ROUND if is_own else ())
        self.labels = {name: table.targets.labels for name, table in self.records.tables.items()}
        self.lines: dict[Target, int] = {}
        self.is_of_another_version = False

    def take(self, rows: Sequence[GivenRow]) -> None:
        self.found.rows += len(rows)
        names = {row.text("response_id") for row in rows}
        responses = Response.objects.filter(version=self.found.version, response_id__in=names)
        known = dict(responses.values_list("response_id", "pk"))
        records = dict(self._records_of([pk for pk in known.values() if pk in self.in_round]))
        for row in rows:
            if not self._is_whole(row):
                continue
            key = (row.text("response_id"), row.text("claim_id"), row.rank, row.text("dimension"))
            if key in records:
                self._compare(row, *records[key])
            else:
                name = self._unknown_in(row, known)
                words = _("the round has no such target")
                self.found.unusable.problem(row.line, name, words, row.text(name))

    def _records_of(self, responses: list[int]) -> Iterator[tuple[goldfile.Key, tuple[Target, Row, Shared]]]:
        for place, shared, own in self.records.of(responses):
            row = shared.row | own
            yield goldfile.key_of(row), (place, row, shared)

    def _is_whole(self, row: GivenRow) -> bool:
        """Whether it says what it is about, and that is this version."""
        missing = [name for name in NEEDED if name not in row]
        for name in missing:
            self.findings.problem(row.line, name, _("missing; an export has it"))
        if missing or row.text("content_hash") == self.found.version.content_hash:
            return not missing
        if not self.is_of_another_version:  # told once: every line of such a file has it
            self.is_of_another_version = True
            words = _("this is gold of other items: the content hash of this version is {hash}")
            message = words.format(hash=self.found.version.content_hash)
            self.findings.problem(row.line, "content_hash", message, row.text("content_hash"))
        return False

    def _unknown_in(self, row: GivenRow, known: dict[str, int]) -> str:
        if known.get(row.text("response_id")) not in self.in_round:
            return "response_id"
        if row.text("dimension") not in self.labels:
            return "dimension"
        return "claim_id" if row.text("claim_id") else "passage" if "passage" in row else "dimension"

    def _compare(self, row: GivenRow, place: Target, record: Row, shared: Shared) -> None:
        if self._is_other_text(row, record, shared):
            return
        unusable = self.found.unusable
        if (first := self.lines.setdefault(place, row.line)) != row.line:
            words = _("this target stands on line {line} already").format(line=first)
            unusable.problem(row.line, "response_id", words, row.text("response_id"))
            return
        labels = self.labels[place.dimension]
        label = fold_label(row.text("label"), labels)
        if label is None:
            words = _("one of {labels} is expected").format(labels=", ".join(labels))
            unusable.problem(row.line, "label", words, row.text("label"))
            return
        self._sort(row, place, record, label)

    def _is_other_text(self, row: GivenRow, record: Row, shared: Shared) -> bool:
        """Refuses the file: what was said of one text is not said of another."""
        before = self.findings.count
        for name in TEXTS:
            if name in row and not row.is_as(name, record[name]):
                words = _("the text was edited: gold holds for the text that it was given for")
                self.findings.problem(row.line, name, words, row.value(name))
        if self.findings.count == before and row.text("target_sha256") != shared.target_hash(
            record["claim"], record["passage"]
        ):
            words = _("this is not the hash of the texts of the target here")
            self.findings.problem(row.line, "target_sha256", words, row.text("target_sha256"))
        if "system_run_hash" in row and row.text("system_run_hash") != record["system_run_hash"]:
            words = _("the system run here has another hash: its responses are others")
            self.findings.problem(row.line, "system_run_hash", words, row.text("system_run_hash"))
        return self.findings.count > before

    def _sort(self, row: GivenRow, place: Target, record: Row, label: str) -> None:
        for name in self.compared:
            if name in row and not row.is_as(name, record[name]):
                self.found.differing[name] += 1
        if (
            self.is_own
            and "annotations" in row
            and _said_in(row.value("annotations")) != _said_in(record["annotations"])
        ):
            self.found.differing["annotations"] += 1
        if label == record["label"]:
            self.found.same += 1
        elif record["label"] is None:
            self.found.new.append(Change(row.line, place, None, label, record["reason"]))
        else:
            self.found.changed.append(Change(row.line, place, record["label"], label))

    def done(self) -> Comparison:
        """With what holds here and does not stand in the file."""
        left_out = self.found.given.left_out
        missing: dict[int, list[Target]] = {}
        for place in self._held():
            if place not in self.lines:
                missing.setdefault(place.response_id, []).append(place)
        for start in range(0, len(responses := list(missing)), AT_ONCE):
            chunk = responses[start : start + AT_ONCE]
            keys = {place: key for key, (place, *_record) in self._records_of(chunk)} if left_out else {}
            for place in (place for response in chunk for place in missing[response]):
                if keys.get(place) in left_out:
                    self.found.left_out += 1
                else:
                    self.found.missing.append(place)
        self.found.notices += self.found.given.notices
        return self.found

    def _held(self) -> Iterator[Target]:
        gold = GoldLabel.objects.filter(round=self.found.round, dimension__in=self.labels)
        columns = ("dimension", "response_id", "claim_id", "passage_id")
        for row in gold.order_by(*columns[1:], "dimension").values_list(*columns):
            yield Target(*row)


def _said_in(annotations: Any) -> Any:
    """Grader and label of each: notes are in some exports only."""
    try:
        return sorted((said["grader"], said["label"]) for said in annotations)
    except (TypeError, KeyError):
        return annotations
