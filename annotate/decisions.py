"""The log of decisions of a version: append-only, and the one place where graders stand with their names."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from annotate.models import Adjudication, Annotation
from evalsets.inert import inert
from evalsets.models import EvalSetVersion

AT_ONCE = 500
FIELDS = (
    "number",
    "at",
    "by",
    "round",
    "rubric_version",
    "dimension",
    "item_id",
    "response_id",
    "claim_id",
    "passage_id",
    "text",
    "labels",
    "decision",
    "reason",
    "note",
    "revokes",
    "judge_seen",
)


@dataclass(frozen=True)
class LoggedDecision:
    number: int  # in the order of the log; an entry keeps its number
    entry: Adjudication
    said: list[tuple[str, str]]  # what each grader said, with the name
    revokes: int | None  # number of the entry that it takes back
    revoked_by: int | None

    @property
    def text(self) -> str:
        entry = self.entry
        return entry.claim.text if entry.claim else entry.response.item.question or ""


class DecisionLog:
    """Every entry of a version, in order; for a paginator it is a list."""

    def __init__(self, version: EvalSetVersion) -> None:
        self.entries: QuerySet[Adjudication] = Adjudication.objects.filter(round__version=version).order_by(
            "pk"
        )
        self.number_of = {
            pk: number for number, pk in enumerate(self.entries.values_list("pk", flat=True), 1)
        }

    def __len__(self) -> int:
        return len(self.number_of)

    def __getitem__(self, part: slice) -> list[LoggedDecision]:
        wanted = list(self.number_of)[part]  # an OFFSET would join every entry before this part
        entries = list(
            self.entries.filter(pk__in=wanted).select_related(
                "by",
                "round__rubric_version__rubric",
                "response__item",
                "claim__parent",
                "passage",
                "revoked_by",
            )
        )
        said = _said(entries)
        return [
            LoggedDecision(
                number=self.number_of[entry.pk],
                entry=entry,
                said=said.get(_key(entry), []),
                revokes=self.number_of[entry.revokes_id] if entry.revokes_id else None,
                revoked_by=self.number_of[entry.revoked_by.pk] if hasattr(entry, "revoked_by") else None,
            )
            for entry in entries
        ]

    def __iter__(self) -> Iterator[LoggedDecision]:
        for start in range(0, len(self), AT_ONCE):
            yield from self[start : start + AT_ONCE]


def _key(entry: Adjudication) -> tuple:
    """A part of a split claim was never labelled itself: what counts is what was said of the claim."""
    claim = entry.claim.parent_id or entry.claim_id if entry.claim else None
    return entry.round_id, entry.dimension, entry.response_id, claim, entry.passage_id


def _said(entries: Sequence[Adjudication]) -> dict[tuple, list[tuple[str, str]]]:
    rows = Annotation.objects.filter(
        round__in={entry.round_id for entry in entries},
        response__in={entry.response_id for entry in entries},
        dimension__in={entry.dimension for entry in entries},
    )
    said: dict[tuple, list[tuple[str, str]]] = {}
    for *key, name, label in rows.order_by("grader__number").values_list(
        "round_id", "dimension", "response_id", "claim_id", "passage_id", "grader__name", "label"
    ):
        said.setdefault(tuple(key), []).append((name, label))
    return said


def as_rows(log: Iterable[LoggedDecision]) -> Iterator[list]:
    """For a spreadsheet: times in UTC, and nothing that it would compute."""
    yield list(FIELDS)
    for logged in log:
        entry = logged.entry
        row = [
            logged.number,
            entry.at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            entry.by.get_username(),
            entry.round.number,
            str(entry.round.rubric_version),
            entry.dimension,
            entry.response.item.item_id,
            entry.response.response_id,
            entry.claim.claim_id if entry.claim else "",
            entry.passage.passage_id if entry.passage else "",
            logged.text,
            "; ".join(f"{name}: {label}" for name, label in logged.said),
            "" if logged.revokes else entry.label,
            entry.reason,
            entry.note,
            logged.revokes or "",
            "yes" if entry.judge_seen else "no",
        ]
        yield [inert(cell) if isinstance(cell, str) else cell for cell in row]
