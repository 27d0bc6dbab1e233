"""Where a judge and gold differ: how often by label pair, system and stratum, and each target to read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django import forms
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotate.asking import PASSAGE, RESPONSE
from annotate.disagreement_kinds import target_in_address
from annotate.models import Adjudication, Annotation, GoldLabel
from calibration.models import CalibrationReport, GoldDoubt, Verdict
from calibration.pairing import KEY_FIELDS, table_of
from calibration.sightings import note_sighting
from calibration.table import Group, Mask, Targets
from evalsets.forms import PlainForm
from evalsets.models import Claim, Passage, Response

REASON_CHARACTERS = 2000


class NoDoubt(Exception):
    """Gold cannot be doubted there; the message is a sentence for the person who asked."""


class CellForm(PlainForm):
    """`?row=&column=&group=`: a gold label, a label of the judge, a system or stratum; all optional."""

    row = forms.ChoiceField(label=gettext_lazy("Gold"), required=False)
    column = forms.ChoiceField(label=gettext_lazy("Judge"), required=False)
    group = forms.CharField(label=gettext_lazy("Group"), required=False, max_length=500)

    def __init__(self, data, *, labels):
        super().__init__(data)
        labels = [(label, label) for label in labels]
        for name in ("row", "column"):
            choices = forms.ChoiceField(choices=[("", _("any")), *labels], required=False)
            choices.label = self.fields[name].label
            self.fields[name] = choices


class DoubtForm(PlainForm):
    target = forms.RegexField(r"^[0-9]+(-[0-9]+)?$", label=gettext_lazy("Target"), max_length=50)
    note = forms.CharField(label=gettext_lazy("Why"), max_length=5000)


@dataclass(frozen=True)
class Differing:
    """A system or a value of a stratum, with how many of its judged targets differ from gold."""

    key: str
    name: str
    value: str
    differ: int
    n: int


@dataclass
class Case:
    """One target with everything that was said about it."""

    response: Response
    claim: Claim | None
    passage: Passage | None
    gold: str
    verdict: str
    reason: str = ""
    said: list[Annotation] = field(default_factory=list)
    decisions: list[Adjudication] = field(default_factory=list)
    gold_now: str = ""
    doubt: GoldDoubt | None = None

    @property
    def text(self) -> str:
        return (self.claim or self.passage or self.response).text

    @property
    def address(self) -> str:
        claim, passage = (part.pk if part else None for part in (self.claim, self.passage))
        return target_in_address(self.response.pk, claim, passage)


class Differences:
    """The targets of a report whose verdict is not gold's label, or those of one cell of its table."""

    def __init__(
        self, report: CalibrationReport, *, row: str = "", column: str = "", group: str = ""
    ) -> None:
        self.report = report
        self.table = table_of(
            version=report.judge_run.version,
            round=report.round,
            dimension=report.dimension,
            judge_run=report.judge_run,
        ).leaves()
        assert self.table.judge is not None
        self.labels = self.table.targets.labels
        self.gold, self.judge = self.table.blind_gold(), self.table.judge
        self.both: Mask = self.gold.has & self.judge.has
        self.differ: Mask = self.both & (self.gold.codes != self.judge.codes)
        chosen = self.both & (self.gold.codes == self.judge.codes) if row and row == column else self.differ
        if row:
            chosen = chosen & (self.gold.codes == self.labels.index(row))
        if column:
            chosen = chosen & (self.judge.codes == self.labels.index(column))
        if group:
            chosen = chosen & self._mask_of(group)
        self._rows = np.flatnonzero(chosen)

    def _groups(self) -> Iterable[tuple[str, Group]]:
        for part in (self.table.by_system(), self.table.by_stratum()):
            for group in part:
                yield f"{group.name}={group.value}", group

    def _mask_of(self, wanted: str) -> Mask:
        nothing = np.zeros(len(self.table), dtype=bool)
        return next((group.mask for key, group in self._groups() if key == wanted), nothing)

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Every pair of different labels that occurs, the most frequent first."""
        counts = np.zeros((len(self.labels), len(self.labels)), dtype=int)
        np.add.at(counts, (self.gold.codes[self.differ], self.judge.codes[self.differ]), 1)
        found = [
            {"row": self.labels[i], "column": self.labels[j], "n": int(counts[i, j])}
            for i, j in zip(*np.nonzero(counts), strict=True)
        ]
        return sorted(found, key=lambda pair: -pair["n"])

    @property
    def groups(self) -> list[Differing]:
        found = [
            Differing(
                key,
                group.name,
                group.value,
                int((self.differ & group.mask).sum()),
                int((self.both & group.mask).sum()),
            )
            for key, group in self._groups()
        ]
        return sorted((one for one in found if one.n), key=lambda one: -one.differ / one.n)

    @property
    def n_differ(self) -> int:
        return int(self.differ.sum())

    @property
    def n_both(self) -> int:
        return int(self.both.sum())

    # A paginator asks for these two.

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, part: slice) -> list[Case]:
        rows = self._rows[part].tolist()
        targets = self.table.targets.select(np.array(rows, dtype=np.int64))
        said = _Said(self.report, targets)
        responses = Response.objects.select_related("item").in_bulk(targets.response.tolist())
        claims, passages = self._claims_and_passages(targets)
        return [
            said.complete(
                Case(
                    response=responses[int(targets.response[place])],
                    claim=claims[place],
                    passage=passages[place],
                    gold=self.labels[self.gold.codes[row]],
                    verdict=self.labels[self.judge.codes[row]],
                ),
                key,
            )
            for place, (row, key) in enumerate(zip(rows, targets.keys(), strict=True))
        ]

    def _claims_and_passages(self, targets: Targets) -> tuple[list[Claim | None], list[Passage | None]]:
        pks = targets.target.tolist()
        nothing: list[Any] = [None] * len(pks)
        if targets.unit == RESPONSE:
            return nothing, nothing
        if targets.unit == PASSAGE:
            return nothing, _in_order(Passage, pks)
        cited = targets.passage.tolist() if targets.passage is not None else []
        return _in_order(Claim, pks), _in_order(Passage, cited) if cited else nothing

    def row_at(self, address: str) -> int | None:
        """The differing target of this address."""
        targets = self.table.targets
        for row in np.flatnonzero(self.differ).tolist():
            if target_in_address(*where_of(targets, row)) == address:
                return row
        return None


def where_of(targets: Targets, row: int) -> tuple[int, int | None, int | None]:
    """Response, claim and passage of a row."""
    response, target = int(targets.response[row]), int(targets.target[row])
    if targets.unit == RESPONSE:
        return response, None, None
    if targets.unit == PASSAGE:
        return response, None, target
    return response, target, int(targets.passage[row]) if targets.passage is not None else None


def _in_order(model: type[Any], pks: list[int]) -> list[Any]:
    found = model.objects.in_bulk(pks)
    return [found[pk] for pk in pks]


class _Said:
    """What people and the judge said about some targets, by target."""

    def __init__(self, report: CalibrationReport, targets: Targets) -> None:
        place = {"dimension": report.dimension, "response__in": set(targets.response.tolist())}
        of_round = place | {"round": report.round}
        self.fields = KEY_FIELDS[targets.unit]
        self.annotations = self._by_target(
            Annotation.objects.filter(**of_round).select_related("grader").order_by("grader__number")
        )
        self.decisions = self._by_target(
            Adjudication.objects.filter(**of_round).select_related("by").order_by("pk")
        )
        self.gold = self._by_target(GoldLabel.objects.filter(**of_round))
        self.doubts = self._by_target(
            GoldDoubt.objects.filter(**of_round, run=report.judge_run).select_related("by")
        )
        self.verdicts = self._by_target(Verdict.objects.filter(**place, run=report.judge_run, run_index=1))

    def _by_target(self, rows: Iterable[Any]) -> dict[Any, list[Any]]:
        found: dict[Any, list[Any]] = {}
        for row in rows:
            key = tuple(getattr(row, name) for name in self.fields)
            found.setdefault(key[0] if len(key) == 1 else key, []).append(row)
        return found

    def complete(self, case: Case, key: Any) -> Case:
        case.said = self.annotations.get(key, [])
        case.decisions = self.decisions.get(key, [])
        case.gold_now = next((gold.label for gold in self.gold.get(key, ())), "")
        case.doubt = next(iter(self.doubts.get(key, ())), None)
        case.reason = next((reason_of(verdict) for verdict in self.verdicts.get(key, ())), "")
        return case


def reason_of(verdict: Verdict) -> str:
    """The judge's own reason, where its answer has one."""
    try:
        answer = json.loads(verdict.raw_output)
    except ValueError:
        return ""
    reason = answer.get("reason", "") if isinstance(answer, dict) else ""
    return reason[:REASON_CHARACTERS] if isinstance(reason, str) else ""


@transaction.atomic
def doubt_gold(*, report: CalibrationReport, target: str, note: str, person) -> GoldDoubt:
    """Log that gold seems wrong in the light of a verdict. It changes nothing: the lead decides anew.

    `target` is named as in an address. A decision that follows does not count for the judge (see
    `sightings`); what held before it does. Twice is once.
    """
    differences = Differences(report)
    row = differences.row_at(target)
    if row is None:
        raise NoDoubt(_("Gold and the judge do not differ there (any more)."))
    if not note.strip():
        raise NoDoubt(_("Say why gold is wrong: it stands in the log."))
    note_sighting(run=report.judge_run, person=person)
    response, claim, passage = where_of(differences.table.targets, row)
    doubt, _made = GoldDoubt.objects.get_or_create(
        run=report.judge_run,
        round=report.round,
        dimension=report.dimension,
        response_id=response,
        claim_id=claim,
        passage_id=passage,
        defaults={
            "gold": differences.labels[differences.gold.codes[row]],
            "verdict": differences.labels[differences.judge.codes[row]],
            "note": note.strip(),
            "by": person,
        },
    )
    return doubt
