"""Which round and dimension a page or command is about, from what was asked for."""

import shlex

from django import forms
from django.utils.translation import gettext_lazy as _

from annotate.models import GoldLabel, Round
from calibration.gold_export import Choice
from calibration.models import Judge
from calibration.pairing import chosen_round, dimensions_of
from calibration.partition import CALIBRATION, FEW_SHOT, TUNING
from calibration.rates import grader_names
from evalsets.forms import PlainForm
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion
from evalsets.queries import strata_of


class ScopeForm(PlainForm):
    """`?round=&dimension=` of a version's pages; both optional."""

    dimension = forms.ChoiceField(
        label=_("Dimension"), required=False, choices=[("", ""), *((name, name) for name in LABELS)]
    )
    report = forms.IntegerField(label=_("Report"), required=False, min_value=1)

    def __init__(self, data, *, version):
        super().__init__(data)
        self.version = version
        self.rounds = list(
            Round.objects.filter(version=version).select_related("rubric_version__rubric").order_by("number")
        )
        numbers = [(round.number, str(round.number)) for round in self.rounds]
        self.fields["round"] = forms.TypedChoiceField(
            label=_("Round"), required=False, coerce=int, empty_value=None, choices=[("", ""), *numbers]
        )

    @property
    def chosen_round(self) -> Round | None:
        return chosen_round(version=self.version, number=self.cleaned_data["round"])

    def chosen_dimension(self, round: Round | None) -> str:
        asked = self.cleaned_data["dimension"]
        return asked or (dimensions_of(round) or list(LABELS))[0]


class AgreementForm(ScopeForm):
    """`?round=&dimension=&pair=` of the agreement page: any dimension that a round of the version asks about.

    `pair` names two labels, `one:other`, whose disagreements are to be seen.
    """

    pair = forms.CharField(required=False, max_length=100)

    def __init__(self, data, *, version):
        super().__init__(data, version=version)
        asked = dict.fromkeys(name for round in self.rounds for name in dimensions_of(round))
        names = dict.fromkeys([*LABELS, *asked])
        self.fields["dimension"] = forms.ChoiceField(
            label=_("Dimension"), required=False, choices=[("", ""), *((name, name) for name in names)]
        )

    def clean(self):
        data = super().clean() or {}
        dimension, round = data.get("dimension"), self.chosen_round if "round" in data else None
        if dimension and dimension not in {*dimensions_of(round), *LABELS}:
            words = _("This round does not ask about {dimension}.")
            self.add_error("dimension", words.format(dimension=dimension))
        return data


class RatesForm(ScopeForm):
    """`?source=&unit=&round=` of the rates page; the version's own unit unless another is asked for."""

    def __init__(self, data, *, version):
        super().__init__(data, version=version)
        units = EvalSetVersion.Unit.choices
        self.fields["unit"] = forms.ChoiceField(label=_("Unit"), required=False, choices=[("", ""), *units])
        self.fields["source"] = forms.ChoiceField(
            label=_("By"), required=False, choices=[("", ""), *self.sources()]
        )

    def sources(self):
        names = sorted({name for round in self.rounds for name in grader_names(round)})
        judges = Judge.objects.filter(runs__version=self.version).distinct().values_list("name", flat=True)
        return [
            ("gold", _("gold labels")),
            *((f"grader:{name}", _("grader {name}").format(name=name)) for name in names),
            *((f"judge:{name}", _("judge {name}").format(name=name)) for name in judges),
        ]

    @property
    def unit(self) -> str:
        return self.cleaned_data["unit"] or self.version.primary_unit

    @property
    def source(self) -> str:
        return self.cleaned_data["source"] or "gold"

    @property
    def by_judge(self) -> bool:
        return self.source.startswith("judge:")

    def query(self) -> dict[str, str | int]:
        """What was asked for, to be asked for again by a picture."""
        round = self.chosen_round
        asked: dict[str, str | int] = {"source": self.source, "unit": self.unit}
        return asked | {"round": round.number} if round else asked

    def command(self, name: str) -> str:
        """The management command that gives the same figures."""
        parts = [name, str(self.version), "--source", shlex.quote(self.source), "--unit", self.unit]
        if not self.by_judge and self.chosen_round:
            parts += ["--round", str(self.chosen_round.number)]
        return " ".join([*parts, "--json"])


class GoldForm(ScopeForm):
    """Which records of a round's gold set are downloaded: nothing chosen leaves nothing out."""

    def __init__(self, data, *, version, round=None):
        super().__init__(data, version=version)
        dimensions = dimensions_of(round) if round else list(LABELS)
        strata = strata_of(version)
        self.fields["dimensions"] = _chosen(_("Dimensions"), [(name, name) for name in dimensions])
        self.fields["sources"] = _chosen(_("Sources"), GoldLabel.Source.choices)
        self.fields["strata"] = _chosen(
            _("Strata"), [(f"{name}={value}", f"{name}: {value}") for name, value in strata]
        )
        parts = {
            CALIBRATION: _("for calibration"),
            TUNING: _("for tuning prompts"),
            FEW_SHOT: _("examples in a prompt"),
        }
        self.fields["parts"] = _chosen(_("Parts of the design"), list(parts.items()))
        self.fields["notes"] = forms.BooleanField(
            label=_("Include what graders noted"),
            help_text=_("Notes are free text and may name people."),
            required=False,
        )

    @property
    def choice(self) -> Choice:
        given = self.cleaned_data
        pairs = [part.partition("=") for part in given["strata"]]
        return Choice(
            dimensions=tuple(given["dimensions"]),
            sources=tuple(given["sources"]),
            strata=tuple((name, value) for name, _equals, value in pairs),
            parts=tuple(given["parts"]),
            grader_notes=given["notes"],
        )

    @property
    def filters(self):
        """The groups of boxes that have anything to choose from."""
        names = ("dimensions", "sources", "strata", "parts")
        return [field for name in names if len(field := self[name]) > 1]


def _chosen(label, choices) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, choices=choices, required=False, widget=forms.CheckboxSelectMultiple
    )
