"""What a lead decides before a run is looked at: the gate's thresholds and the calibration design."""

from django import forms
from django.utils.translation import gettext_lazy as _

from annotate.models import Round
from calibration.design import design_in_force
from calibration.judges import panel
from calibration.models import CalibrationSplit, Judge
from calibration.thresholds import NAMES, policy_in_force, server_policy
from calibration.words import THRESHOLDS
from evalsets.forms import PlainForm
from evalsets.models import EvalSet, EvalSetVersion
from evalsets.queries import stratum_names

LARGEST_SEED = 2**53  # so that every JSON reader keeps it


class ThresholdsForm(PlainForm):
    """Every threshold of the gate, and why it is what it is."""

    def __init__(self, data=None, *, version: EvalSetVersion):
        super().__init__(data)
        server = server_policy().as_dict()
        for name, value in policy_in_force(version).as_dict().items():
            kind = forms.IntegerField if isinstance(server[name], int) else forms.FloatField
            usual = _("The server's: {value}").format(value=f"{server[name]:g}")
            self.fields[name] = kind(label=THRESHOLDS[name], initial=value, help_text=usual)
        self.fields["reason"] = forms.CharField(
            label=_("Why"), widget=forms.Textarea(attrs={"rows": 2}), max_length=2000
        )

    @property
    def thresholds(self) -> dict[str, float]:
        return {name: self.cleaned_data[name] for name in NAMES}


class PanelForm(PlainForm):
    """Several judges of an eval set as one."""

    name = forms.CharField(label=_("Name"), max_length=200)
    members = forms.ModelMultipleChoiceField(
        label=_("Judges"),
        queryset=Judge.objects.none(),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("At least two. A panel has one vote of each; make them differ in model and provider."),
    )
    rule = forms.ChoiceField(
        label=_("Rule"),
        choices=[
            (panel.MAJORITY, _("majority: more than half of the votes")),
            (panel.MEAN, _("mean: the largest mean share over all runs of each judge")),
        ],
    )

    def __init__(self, data=None, *, evalset: EvalSet):
        super().__init__(data)
        judges = self.fields["members"]
        assert isinstance(judges, forms.ModelMultipleChoiceField)
        judges.queryset = (
            Judge.objects.filter(evalset=evalset).exclude(kind=Judge.Kind.PANEL).order_by("name")
        )


class DesignForm(PlainForm):
    """How the items with gold were drawn, and which of them may tune a prompt."""

    round = forms.TypedChoiceField(label=_("Grading round"), coerce=int)
    design = forms.ChoiceField(label=_("The items with gold are"), choices=CalibrationSplit.Design.choices)
    stratum = forms.ChoiceField(
        label=_("Stratum"), required=False, help_text=_("Where they were drawn within the values of one.")
    )
    tuning_percent = forms.FloatField(
        label=_("Share of items for tuning prompts, in percent"),
        min_value=0,
        max_value=90,
        help_text=_("These count for no calibration number; which they are follows from the seed."),
    )
    seed = forms.IntegerField(label=_("Seed"), min_value=0, max_value=LARGEST_SEED)
    few_shot = forms.CharField(
        label=_("Items that stand in a prompt as examples"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("One item id a line. They count for no calibration number."),
    )
    note = forms.CharField(label=_("Note"), required=False, max_length=2000)

    def __init__(self, data=None, *, version: EvalSetVersion):
        self.version = version
        rounds = list(Round.objects.filter(version=version).order_by("-number"))
        super().__init__(data, initial=self._initial(rounds[0]) if rounds else {})
        self.offer("round", [(str(r.number), f"{r.number} · {r.get_kind_display()}") for r in rounds])
        self.offer("stratum", [("", "–"), *((name, name) for name in stratum_names(version))])

    @staticmethod
    def _initial(round: Round) -> dict[str, object]:
        now = design_in_force(round)
        if now is None:
            return {"round": round.number, "tuning_percent": 0, "seed": round.seed % LARGEST_SEED}
        return {
            "round": round.number,
            "design": now.design,
            "stratum": now.stratum,
            "tuning_percent": 100 * now.tuning_share,
            "seed": now.seed,
            "few_shot": "\n".join(now.few_shot),
            "note": now.note,
        }

    @property
    def values(self) -> dict[str, object]:
        given = self.cleaned_data
        return {
            "round": Round.objects.get(version=self.version, number=given["round"]),
            "design": given["design"],
            "stratum": given["stratum"],
            "tuning_share": given["tuning_percent"] / 100,
            "seed": given["seed"],
            "few_shot": [line.strip() for line in given["few_shot"].splitlines() if line.strip()],
            "note": given["note"],
        }
