"""What the comparison and the retrieval page are asked for."""

import shlex

from django import forms
from django.utils.translation import gettext_lazy as _

from annotate.access import labels_of
from annotate.models import Grader, Round
from calibration.comparing import Side, comparison
from calibration.measures import Figures
from calibration.models import Judge
from calibration.pairing import chosen_round
from calibration.rates import grader_names
from calibration.retrieving import DEPTH
from calibration.scope import ScopeForm
from evalsets.forms import PlainForm
from evalsets.models import EvalSetVersion, SystemRun


class RetrievalForm(ScopeForm):
    """`?k=&source=&round=` of the retrieval page. Single cases are listed, so a judge is no source here."""

    k = forms.IntegerField(label=_("Depth k"), required=False, min_value=1, max_value=100)

    def __init__(self, data, *, version):
        super().__init__(data, version=version)
        self.fields["source"] = forms.ChoiceField(
            label=_("By"), required=False, choices=[("", ""), *self.sources()]
        )

    def sources(self):
        names = sorted({name for round in self.rounds for name in grader_names(round)})
        graders = [(f"grader:{name}", _("grader {name}").format(name=name)) for name in names]
        return [("gold", _("gold labels")), *graders]

    @property
    def source(self) -> str:
        return self.cleaned_data["source"] or "gold"

    def command(self, name: str) -> str:
        parts = [name, str(self.version), "--source", shlex.quote(self.source), "--k", str(self.depth)]
        if self.chosen_round:
            parts += ["--round", str(self.chosen_round.number)]
        return " ".join([*parts, "--json"])

    @property
    def depth(self) -> int:
        return self.cleaned_data["k"] or DEPTH


COMPARED_BY = [
    *(f"{name}{side}" for side in ("before", "after") for name in ("", "source_", "unit_", "round_")),
    "family",
]


class CompareForm(PlainForm):
    """Two system runs, what each is judged by and in which unit; the second like the first unless said.

    Runs and rounds of every version of the eval set may be named, so that it can be said why they must not be
    compared.
    """

    family = forms.IntegerField(
        label=_("Comparisons made together"), required=False, min_value=1, max_value=999
    )

    def __init__(self, data, *, version):
        super().__init__(data)
        self.version = version
        self.runs = {
            f"{run.version.number}:{run.number}": run
            for run in SystemRun.objects.filter(version__evalset=version.evalset)
            .select_related("system", "version__evalset")
            .order_by("-version__number", "number")
        }
        self.rounds = {
            f"{round.version.number}:{round.number}": round
            for round in Round.objects.filter(version__evalset=version.evalset)
            .select_related("version", "rubric_version__rubric")
            .order_by("-version__number", "number")
        }
        runs = [(key, f"v{run.version.number} · {run}") for key, run in self.runs.items()]
        rounds = [
            (key, f"v{round.version.number} · {_('round')} {round.number}, {round.rubric_version}")
            for key, round in self.rounds.items()
        ]
        as_before = ("", _("as before"))
        for side, first in (("before", True), ("after", False)):
            self.fields[f"{side}"] = forms.ChoiceField(label=_("System run"), choices=runs)
            self.fields[f"source_{side}"] = forms.ChoiceField(
                label=_("By"),
                required=False,
                choices=[*([] if first else [as_before]), *self._sources()],
            )
            self.fields[f"unit_{side}"] = forms.ChoiceField(
                label=_("Unit"),
                required=False,
                choices=[
                    *([("", _("of the version"))] if first else [as_before]),
                    *EvalSetVersion.Unit.choices,
                ],
            )
            self.fields[f"round_{side}"] = forms.ChoiceField(
                label=_("Round"), required=False, choices=[("", _("latest of the version")), *rounds]
            )
        self.initial = self._first_guess()
        self.order_fields(COMPARED_BY)

    def _sources(self):
        graders = Grader.objects.filter(evalset=self.version.evalset).values_list("name", flat=True)
        judges = Judge.objects.filter(evalset=self.version.evalset, runs__isnull=False)
        return [
            ("gold", _("gold labels")),
            *((f"grader:{name}", _("grader {name}").format(name=name)) for name in graders.order_by("name")),
            *(
                (f"judge:{name}", _("judge {name}").format(name=name))
                for name in judges.distinct().order_by("name").values_list("name", flat=True)
            ),
        ]

    def _first_guess(self):
        """The last two runs of this version."""
        own = [key for key, run in self.runs.items() if run.version_id == self.version.pk]
        return {"before": own[-2], "after": own[-1]} if len(own) > 1 else {}

    def open_to(self, person) -> None:
        """The labels of each version that is read are open to this person, or the comparison is not."""
        for side in self.sides():
            labels_of(person, side.version.evalset.slug, side.version.number)

    def compared(self) -> Figures:
        before, after = self.sides()
        return comparison(before=before, after=after, family=self.cleaned_data["family"] or 1)

    def sides(self) -> tuple[Side, Side]:
        return self._side("before"), self._side("after")

    def _side(self, side: str) -> Side:
        data = self.cleaned_data
        run = self.runs[data[side]]
        source = data[f"source_{side}"] or data["source_before"] or "gold"
        unit = data[f"unit_{side}"] or data["unit_before"] or run.version.primary_unit
        key = data[f"round_{side}"]
        round = self.rounds[key] if key else chosen_round(version=run.version)
        return Side(run, source, unit, round)

    def query(self) -> dict[str, str | int]:
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}

    def command(self) -> str:
        parts = ["compare", str(self.version)]
        for name, value in self.query().items():
            parts += [f"--{name.replace('_', '-')}", shlex.quote(str(value))]
        return " ".join([*parts, "--json"])
