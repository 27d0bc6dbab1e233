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

from annotate.disagreements import target_in_address
from annotate.models import Adjudication, Annotation, GoldLabel
from calibration.models import CalibrationReport, GoldDoubt, Verdict
from calibration.pairing import table_of
from calibration.sightings import note_sighting
from calibration.table import Group, Mask
from evalsets.labels import LABELS
from evalsets.models import Claim, Response

REASON_CHARACTERS = 2000


class NoDoubt(Exception):
    """Gold cannot be doubted there; the message is a sentence for the person who asked."""


class CellForm(forms.Form):
    """`?row=&column=&group=`: a gold label, a label of the judge, a system or stratum; all optional."""

    row = forms.ChoiceField(label=gettext_lazy("Gold"), required=False)
    column = forms.ChoiceField(label=gettext_lazy("Judge"), required=False)
    group = forms.CharField(label=gettext_lazy("Group"), required=False, max_length=500)

    def __init__(self, data, *, dimension):
        super().__init__(data, label_suffix="")
        labels = [(label, label) for label in LABELS[dimension]]
        for name in ("row", "column"):
            choices = forms.ChoiceField(choices=[("", _("any")), *labels], required=False)
            choices.label = self.fields[name].label
            self.fields[name] = choices


class DoubtForm(forms.Form):
    target = forms.IntegerField(label=gettext_lazy("Target"), min_value=1)
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
    gold: str
    verdict: str
    reason: str = ""
    said: list[Annotation] = field(default_factory=list)
    decisions: list[Adjudication] = field(default_factory=list)
    gold_now: str = ""
    doubt: GoldDoubt | None = None

    @property
    def target(self) -> int:
        return self.claim.pk if self.claim else self.response.pk

    @property
    def text(self) -> str:
        return self.claim.text if self.claim else self.response.text

    @property
    def address(self) -> str:
        return target_in_address(self.response.pk, self.claim.pk if self.claim else None, None)


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
        self.labels = LABELS[report.dimension]
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
        targets = self.table.targets.target[rows].tolist()
        is_claim = self.table.targets.unit == "claim"
        said = _Said(self.report, targets, is_claim)
        found: dict[int, Any]
        if is_claim:
            found = Claim.objects.select_related("response__item").in_bulk(targets)
        else:
            found = Response.objects.select_related("item").in_bulk(targets)
        return [
            said.complete(
                Case(
                    response=found[target].response if is_claim else found[target],
                    claim=found[target] if is_claim else None,
                    gold=self.labels[self.gold.codes[row]],
                    verdict=self.labels[self.judge.codes[row]],
                )
            )
            for row, target in zip(rows, targets, strict=True)
        ]


class _Said:
    """What people and the judge said about some targets, by target."""

    def __init__(self, report: CalibrationReport, targets: list[int], is_claim: bool) -> None:
        place: dict[str, Any] = {"dimension": report.dimension}
        place |= {"claim__in": targets} if is_claim else {"response__in": targets, "claim": None}
        of_round = place | {"round": report.round}
        self.field = "claim_id" if is_claim else "response_id"
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

    def _by_target(self, rows: Iterable[Any]) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        for row in rows:
            found.setdefault(getattr(row, self.field), []).append(row)
        return found

    def complete(self, case: Case) -> Case:
        target = case.target
        case.said = self.annotations.get(target, [])
        case.decisions = self.decisions.get(target, [])
        case.gold_now = next((gold.label for gold in self.gold.get(target, ())), "")
        case.doubt = next(iter(self.doubts.get(target, ())), None)
        case.reason = next((reason_of(verdict) for verdict in self.verdicts.get(target, ())), "")
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
def doubt_gold(*, report: CalibrationReport, target: int, note: str, person) -> GoldDoubt:
    """Log that gold seems wrong in the light of a verdict. It changes nothing: the lead decides anew.

    A decision that follows does not count for the judge (see `sightings`); what held before it does. Twice is
    once.
    """
    differences = Differences(report)
    rows = np.flatnonzero((differences.table.targets.target == target) & differences.differ)
    if not len(rows):
        raise NoDoubt(_("Gold and the judge do not differ there (any more)."))
    if not note.strip():
        raise NoDoubt(_("Say why gold is wrong: it stands in the log."))
    row = int(rows[0])
    is_claim = differences.table.targets.unit == "claim"
    note_sighting(run=report.judge_run, person=person)
    doubt, _made = GoldDoubt.objects.get_or_create(
        run=report.judge_run,
        round=report.round,
        dimension=report.dimension,
        response_id=int(differences.table.targets.response[row]),
        claim_id=target if is_claim else None,
        passage=None,
        defaults={
            "gold": differences.labels[differences.gold.codes[row]],
            "verdict": differences.labels[differences.judge.codes[row]],
            "note": note.strip(),
            "by": person,
        },
    )
    return doubt
