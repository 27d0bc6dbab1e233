"""The targets behind one cell of a confusion table, to be read."""

from typing import Any

import numpy as np
from django import forms
from django.utils.translation import gettext_lazy as _

from calibration.models import CalibrationReport
from calibration.pairing import table_of
from evalsets.labels import LABELS
from evalsets.models import Claim, Response

CASES_SHOWN = 50


class CellForm(forms.Form):
    """`?row=&column=`: a gold label and a label of the judge."""

    row = forms.ChoiceField(label=_("Gold"))
    column = forms.ChoiceField(label=_("Judge"))

    def __init__(self, data, *, dimension):
        super().__init__(data)
        for name in self.fields:
            self.fields[name] = forms.ChoiceField(choices=[(label, label) for label in LABELS[dimension]])


def cases_of(*, report: CalibrationReport, row: str, column: str) -> dict[str, Any]:
    """The first targets with this gold label and this verdict, and how many there are."""
    table = table_of(
        version=report.judge_run.version,
        round=report.round,
        dimension=report.dimension,
        judge_run=report.judge_run,
    ).leaves()
    assert table.judge is not None
    labels = LABELS[report.dimension]
    there = (table.blind_gold().codes == labels.index(row)) & (table.judge.codes == labels.index(column))
    wanted = table.targets.target[np.flatnonzero(there)].tolist()
    shown = wanted[:CASES_SHOWN]
    if table.targets.unit == "claim":
        found = Claim.objects.select_related("response__item").in_bulk(shown)
    else:
        found = Response.objects.select_related("item").in_bulk(shown)
    return {"cases": [found[target] for target in shown], "n": len(wanted)}
