"""What a lead decides about asking a trusted judge again."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from calibration.estimates import Estimate, estimate_of
from calibration.forms import BudgetForm
from calibration.models import JudgeRun
from calibration.sentinels import LEAST, Candidates, drawn_targets
from calibration.trust_forms import LARGEST_SEED

MOST = 2000
USUAL = 200


class SentinelForm(BudgetForm):
    """Which targets, how many and how often."""

    field_order = ["dimensions", "targets", "every_days", "seed"]
    dimensions = forms.MultipleChoiceField(label=_("Dimensions"), widget=forms.CheckboxSelectMultiple)
    targets = forms.IntegerField(
        label=_("Targets of each dimension"),
        min_value=LEAST,
        max_value=MOST,
        initial=USUAL,
        help_text=_("Drawn once from those with gold; every run asks about the same ones."),
    )
    every_days = forms.IntegerField(label=_("Every so many days"), min_value=1, max_value=90, initial=7)
    seed = forms.IntegerField(label=_("Seed"), min_value=0, max_value=LARGEST_SEED, initial=1)

    def __init__(self, data=None, *, judge_run: JudgeRun, candidates: Sequence[Candidates]):
        self.judge_run, self.candidates = judge_run, candidates
        self.offered = {found.dimension: len(found.verdicts) for found in candidates}
        super().__init__(data, initial={"dimensions": list(self.offered), "budget_calls": None})
        field = self.fields["dimensions"]
        assert isinstance(field, forms.MultipleChoiceField)
        field.choices = [
            (name, _("{dimension}: {n} targets with gold").format(dimension=name, n=n))
            for name, n in self.offered.items()
        ]

    def clean(self):
        super().clean()
        few = [name for name in self.cleaned_data.get("dimensions", []) if self.offered[name] < LEAST]
        if few:
            self.add_error(
                "dimensions",
                _("At least {least} targets with gold are needed: {names}.").format(
                    least=LEAST, names=", ".join(few)
                ),
            )
        if self.cleaned_data.get("budget_money") is not None and not self.judge_run.judge.prices:
            self.add_error("budget_money", _("A budget of money needs the judge's prices: set them first."))

    @property
    def estimate(self) -> Estimate:
        """Of one sentinel run; the targets are those that the seed draws."""
        assert self.judge_run.rubric_version is not None
        return estimate_of(
            judge=self.judge_run.judge,
            rubric_version=self.judge_run.rubric_version,
            targets=drawn_targets(
                self.candidates,
                self.cleaned_data["dimensions"],
                self.cleaned_data["targets"],
                self.cleaned_data["seed"],
            ),
        )

    @property
    def limits(self) -> list[tuple[str, object]]:
        """What was named of the budget, by its label."""
        named = ((self.fields[name].label, self.cleaned_data[name]) for name in BudgetForm.base_fields)
        return [(str(label), limit) for label, limit in named if limit is not None]

    @property
    def plan(self) -> dict[str, Any]:
        """The arguments of `plan_sentinels`."""
        names = ("dimensions", "targets", "every_days", "seed")
        return {name: self.cleaned_data[name] for name in names} | {"budget": self.budget}
