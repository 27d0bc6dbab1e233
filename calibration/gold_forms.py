"""Cleaning of what a lead says about an edited gold set."""

from typing import Any

from django import forms
from django.core import signing
from django.utils.translation import gettext_lazy as _

from annotate.forms import MAX_TEXT
from annotate.models import Round
from annotate.services.targets import Target
from calibration.gold_compare import Change, Comparison, compare_gold
from calibration.gold_given import gold_in_file
from calibration.gold_reimport import MOST_LISTED
from evalsets.forms import PlainForm
from evalsets.models import EvalSetVersion
from evalsets.services import limits

SALT = "gold"


class GoldFileForm(PlainForm):
    file = forms.FileField(
        label=_("Edited gold set"),
        help_text=_("The zip archive of the export, or gold.jsonl or gold.csv alone, gzipped or not."),
        allow_empty_file=True,  # told like every other problem of a file
        widget=forms.FileInput(attrs={"accept": ".zip,.jsonl,.ndjson,.csv,.gz"}),
    )
    round = forms.TypedChoiceField(
        label=_("Compare with"),
        required=False,
        coerce=int,
        empty_value=None,
        help_text=_("A copy from elsewhere numbers its rounds in its own way."),
    )

    def __init__(self, *args: Any, version: EvalSetVersion, **options: Any):
        super().__init__(*args, **options)
        self.version = version
        rounds = version.rounds.exclude(kind=Round.Kind.SECOND_LOOK).order_by("-number")
        choices = [(str(round.number), f"{round.number} · {round.get_kind_display()}") for round in rounds]
        self.offer("round", [("", str(_("the round that the file is from"))), *choices])

    def compared(self) -> Comparison:
        """Raises ImportRefused where the file is no gold of this version."""
        file = self.cleaned_data["file"]
        with gold_in_file(file.file, file.name, limits()) as given:
            return compare_gold(given=given, version=self.version, round_number=self.cleaned_data["round"])


class TakeOverForm(PlainForm):
    """Which of the changes that were shown become decisions; they come back signed, as they went out."""

    shown = forms.CharField(widget=forms.HiddenInput)
    take = forms.TypedMultipleChoiceField(
        label=_("Take over"),
        coerce=int,
        error_messages={"required": _("Choose at least one change.")},
    )
    judge_seen = forms.TypedChoiceField(
        label=_("Had those who edited the labels seen verdicts of a judge on them?"),
        choices=[("no", _("no")), ("yes", _("yes, or that is not known"))],
        coerce=lambda word: word == "yes",
        widget=forms.RadioSelect,
        help_text=_("Gold that was decided with a verdict in view does not count for a judge."),
    )
    note = forms.CharField(
        label=_("Note"), required=False, max_length=MAX_TEXT, widget=forms.Textarea(attrs={"rows": 2})
    )

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        try:
            token = self.data.get("shown") or self.initial.get("shown", "")
            self.facts: dict[str, Any] | None = signing.loads(token, salt=SALT)
        except signing.BadSignature:
            self.facts = None
        self.offer("take", [(str(change.line), str(change.line)) for change in self.changes])

    def clean_shown(self) -> str:
        if self.facts is None:
            raise forms.ValidationError(_("This was not shown by this server: compare the file again."))
        return self.cleaned_data["shown"]

    @property
    def changes(self) -> list[Change]:
        """What was shown."""
        rows = self.facts["changes"] if self.facts else []
        return [Change(line, Target(*place), *rest) for line, place, *rest in rows]

    @property
    def ticked(self) -> set[int]:
        """At first everything; then what was left ticked."""
        given = self["take"].value() if self.is_bound else None
        return {change.line for change in self.changes if given is None or str(change.line) in given}

    @property
    def chosen(self) -> list[Change]:
        wanted = set(self.cleaned_data["take"])
        return [change for change in self.changes if change.line in wanted]


def shown_of(comparison: Comparison) -> str:
    """The changes that can be chosen on a page, for the form that takes them over."""
    facts = {
        "round": comparison.round.pk,
        "origin": comparison.origin,
        "changes": comparison.to_take[:MOST_LISTED],
    }
    return signing.dumps(facts, salt=SALT, compress=True)
