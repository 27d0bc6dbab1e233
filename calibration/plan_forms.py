"""Cleaning of what a lead asks the planner."""

import math
import shlex

from django import forms
from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from annotate.models import GoldLabel
from annotate.splits import leaves
from calibration.models import CalibrationReport
from calibration.pairing import chosen_round
from calibration.plans import USUAL_SHARES, Question
from calibration.thresholds import policy_in_force
from evalsets.forms import PlainForm
from evalsets.labels import GROUNDING
from evalsets.models import Claim


def instruments_of(version) -> dict[str, tuple[float, float]]:
    """Judges with a report on this version: how much of the bad they find, and leave of the rest alone."""
    found = {}
    reports = CalibrationReport.objects.filter(judge_run__version=version, dimension="grounding")
    for report in reports.select_related("judge_run__judge").order_by("pk"):
        scores = report.payload["agreement"]["judge_vs_gold"]
        pair = scores["sensitivity"]["value"], scores["specificity"]["value"]
        if None not in pair and sum(pair) > 1:
            found[report.judge_run.judge.name] = pair
    return found


def margins_of(version) -> tuple[tuple[float, ...], int]:
    """Shares of the labels of claims in gold, and of how many; the usual ones until gold has two labels."""
    gold = GoldLabel.objects.filter(
        round=chosen_round(version=version), dimension="grounding", claim__in=leaves(Claim.objects.all())
    )
    counts = dict(gold.order_by().values_list("label").annotate(n=Count("pk")))
    total = sum(counts.values())
    if len(counts) < 2:
        return USUAL_SHARES, 0
    return tuple(counts.get(label, 0) / total for label in GROUNDING), total


class PlanForm(PlainForm):
    judge = forms.ChoiceField(label=_("Counted by"), required=False)
    base = forms.FloatField(label=_("Rate today, %"), initial=10, min_value=0.5, max_value=99)
    difference = forms.FloatField(label=_("Drop to be seen, points"), initial=3, min_value=0.1, max_value=99)
    design_effect = forms.FloatField(
        label=_("Design effect"),
        initial=1.5,
        min_value=1,
        max_value=20,
        help_text=_("Claims of one response resemble each other; 1 where each unit stands alone."),
    )
    human_kappa = forms.FloatField(
        label=_("Kappa hoped for, graders"), initial=0.75, min_value=0.05, max_value=0.98
    )
    judge_kappa = forms.FloatField(
        label=_("Kappa hoped for, judge"), initial=0.75, min_value=0, max_value=0.98
    )
    minutes = forms.FloatField(label=_("Minutes a claim"), initial=1, min_value=0.05, max_value=240)
    hourly = forms.FloatField(label=_("Cost of an hour"), required=False, min_value=0, max_value=10000)

    def __init__(self, data, *, version):
        self.instruments = instruments_of(version)
        self.margins, self.labelled = margins_of(version)
        self.bar = policy_in_force(version).min_human_agreement
        initial = {
            name: field.initial for name, field in self.base_fields.items() if field.initial is not None
        }
        super().__init__(initial | dict(data.items()))
        self.version = version
        names = [(name, name) for name in self.instruments]
        self.offer("judge", [("", str(_("people, or a judge without errors"))), *names])

    def clean(self):
        data = super().clean() or {}
        if data.get("difference", 0) >= data.get("base", 100):
            self.add_error("difference", _("A rate cannot drop by more than it is."))
        if data.get("judge_kappa", 0) > math.sqrt(data.get("human_kappa", 1)):
            self.add_error("judge_kappa", _("A judge cannot agree so well with graders who agree so little."))
        return data

    @property
    def command(self) -> str:
        parts = ["plan", str(self.version)]
        for name, value in self.cleaned_data.items():
            if value not in ("", None):
                said = f"{value:g}" if isinstance(value, float) else value
                parts += [f"--{name.replace('_', '-')}", shlex.quote(said)]
        return " ".join([*parts, "--json"])

    @property
    def question(self) -> Question:
        given = self.cleaned_data
        sensitivity, specificity = self.instruments.get(given["judge"], (1.0, 1.0))
        return Question(
            base=given["base"] / 100,
            difference=given["difference"] / 100,
            sensitivity=sensitivity,
            specificity=specificity,
            design_effect=given["design_effect"],
            human_kappa=given["human_kappa"],
            judge_kappa=given["judge_kappa"],
            bar=self.bar,
            margins=self.margins,
            labelled=self.labelled,
            minutes=given["minutes"],
            hourly=given["hourly"],
        )
