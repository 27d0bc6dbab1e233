"""Cleaning of what the lead's pages of disagreements send."""

from django import forms
from django.utils.translation import gettext_lazy as _

from annotate.disagreement_kinds import Status, Wanted
from annotate.forms import MAX_TEXT
from annotate.models import Adjudication
from evalsets.forms import PlainForm
from evalsets.labels import LABELS


class AdjudicationForm(PlainForm):
    label = forms.ChoiceField(widget=forms.RadioSelect, label=_("Decision"))
    reason = forms.ChoiceField(
        choices=[
            (value, name)
            for value, name in Adjudication.Reason.choices
            if value not in Adjudication.GIVEN_BY_AN_ACTION
        ],
        widget=forms.RadioSelect,
        label=_("Why did they differ?"),
    )
    note = forms.CharField(
        max_length=MAX_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 2}), label=_("Note")
    )
    for_rubric = forms.BooleanField(
        required=False,
        widget=forms.CheckboxInput(attrs={"data-action": "for-rubric"}),
        label=_("The rubric should say this"),
    )
    seen = forms.CharField(max_length=200, required=False, widget=forms.HiddenInput)

    def __init__(self, *args, dimension, **kwargs):
        super().__init__(*args, **kwargs)
        self.offer("label", [(label, label) for label in dimension.label_names])


class SplitDecisionForm(PlainForm):
    """One text and one label for every proposed part."""

    note = forms.CharField(
        max_length=MAX_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 2}), label=_("Note")
    )

    def __init__(self, *args, split, **kwargs):
        super().__init__(*args, prefix=f"split-{split.pk}", **kwargs)
        self.count = len(split.parts)
        labels = [("", "—"), *((label, label) for label in LABELS["grounding"])]
        for number, text in enumerate(split.parts, start=1):
            self.fields[f"text-{number}"] = forms.CharField(
                max_length=MAX_TEXT,
                initial=text,
                widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"}),
                label=_("Part %(n)s") % {"n": number},
            )
            self.fields[f"label-{number}"] = forms.ChoiceField(
                choices=labels, label=_("Label of part %(n)s") % {"n": number}
            )
        self.order_fields([*(name for name in self.fields if name != "note"), "note"])

    @property
    def parts(self) -> list[tuple[str, str]]:
        data = self.cleaned_data
        return [(data[f"text-{n}"], data[f"label-{n}"]) for n in range(1, self.count + 1)]


class OwnSplitForm(PlainForm):
    """The lead's own split: up to `MOST` parts, each with a label; rows left empty are not parts."""

    MOST = 4

    def __init__(self, *args, **kwargs):
        super().__init__(*args, prefix="own-split", **kwargs)
        labels = [("", "—"), *((label, label) for label in LABELS["grounding"])]
        for number in range(1, self.MOST + 1):
            self.fields[f"text-{number}"] = forms.CharField(
                max_length=MAX_TEXT,
                required=False,
                widget=forms.Textarea(attrs={"rows": 1, "dir": "auto"}),
                label=_("Part %(n)s") % {"n": number},
            )
            self.fields[f"label-{number}"] = forms.ChoiceField(
                choices=labels, required=False, label=_("Label of part %(n)s") % {"n": number}
            )
        self.fields["note"] = forms.CharField(
            max_length=MAX_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 1}), label=_("Note")
        )

    def clean(self):
        data = super().clean()
        for number in range(1, self.MOST + 1):
            text, label = data.get(f"text-{number}"), data.get(f"label-{number}")
            if text and not label:
                self.add_error(f"label-{number}", _("Choose a label for every part."))
            if label and not text:
                self.add_error(f"text-{number}", _("Write what this part says."))
        return data

    @property
    def parts(self) -> list[tuple[str, str]]:
        data = self.cleaned_data
        rows = [(data[f"text-{n}"], data[f"label-{n}"]) for n in range(1, self.MOST + 1)]
        return [(text, label) for text, label in rows if text]


class DisagreementsForm(PlainForm):
    """What the list of disagreements is narrowed to. A value that is no choice narrows nothing."""

    ALL = "all"

    status = forms.ChoiceField(label=_("Show"), required=False)
    dimension = forms.ChoiceField(label=_("Dimension"), required=False)
    pair = forms.ChoiceField(label=_("Labels"), required=False)
    run = forms.TypedChoiceField(label=_("System"), required=False, coerce=int, empty_value=None)
    stratum = forms.ChoiceField(label=_("Stratum"), required=False)

    def __init__(self, data, *, pairs, dimensions, runs, strata):
        super().__init__(data)
        everything = [("", _("all"))]
        self.offer("status", [*Status.choices, (self.ALL, _("all"))])
        self.offer("dimension", everything + [(name, name) for name in dimensions])
        self.offer("pair", everything + [(pair.key, str(pair)) for pair in pairs])
        self.offer("run", everything + [(run.number, str(run.system)) for run in runs])
        self.pairs = {pair.key: pair for pair in pairs}
        self.strata = {f"{name}:{value}": (name, value) for name, value in strata}
        self.offer(
            "stratum", everything + [(key, ": ".join(stratum)) for key, stratum in self.strata.items()]
        )

    @property
    def wanted(self) -> Wanted:
        self.is_valid()
        given = self.cleaned_data
        status = given.get("status") or Status.PENDING
        return Wanted(
            status="" if status == self.ALL else status,
            dimension=given.get("dimension", ""),
            run=given.get("run"),
            stratum=self.strata.get(given.get("stratum", "")),
            pair=self.pairs.get(given.get("pair", "")),
        )

    @property
    def query(self) -> dict[str, str]:
        """The filter in an address, as far as it narrows anything."""
        self.is_valid()
        return {name: str(value) for name, value in self.cleaned_data.items() if value not in ("", None)}


# The claim audit
