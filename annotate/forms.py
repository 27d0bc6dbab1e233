"""Cleaning of what the grading and the lead's pages send."""

from django import forms
from django.contrib.auth import get_user_model
from django.utils.translation import gettext_lazy as _

from annotate.models import Adjudication, ClaimAudit, Grader
from evalsets.labels import LABELS
from evalsets.models import Membership, SystemRun

MAX_TEXT = 10_000


class TargetForm(forms.Form):
    """What every form of the grading screen carries: the target it shows, so that none labels another one."""

    assignment = forms.IntegerField(min_value=1)
    claim = forms.IntegerField(min_value=1, required=False)
    passage = forms.IntegerField(min_value=1, required=False)


class LabelForm(TargetForm):
    dimension = forms.CharField(max_length=30, required=False)
    label = forms.CharField(max_length=30)
    note = forms.CharField(max_length=MAX_TEXT, required=False, strip=False)
    evidence = forms.CharField(max_length=2000, required=False)  # ranks of passages, with commas between
    milliseconds = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    key = forms.UUIDField(required=False)

    def clean(self):
        data = super().clean()
        # A form that names no dimension is about the one that every rubric has.
        data["dimension"] = data.get("dimension") or ("grounding" if data.get("claim") else "abstention")
        return data

    def clean_evidence(self):
        ranks = [rank.strip() for rank in self.cleaned_data["evidence"].split(",") if rank.strip()]
        if not all(rank.isdecimal() and len(rank) < 10 for rank in ranks):
            raise forms.ValidationError(_("Evidence names passages by their number."))
        return [int(rank) for rank in ranks]


class TakeBackForm(forms.Form):
    key = forms.UUIDField(required=False)


class FlagForm(TargetForm):
    note = forms.CharField(max_length=MAX_TEXT, required=False, strip=False)
    remove = forms.BooleanField(required=False)


class SplitForm(TargetForm):
    parts = forms.CharField(
        max_length=MAX_TEXT, error_messages={"required": _("Write at least two parts, one a line.")}
    )

    def clean_parts(self):
        return self.cleaned_data["parts"].splitlines()


class OpenRoundForm(forms.Form):
    """Which frozen runs, whom of the graders, and how many responses everybody gets."""

    ALL, SOME = "all", "some"

    runs = forms.ModelMultipleChoiceField(
        SystemRun.objects.none(), widget=forms.CheckboxSelectMultiple, label=_("Frozen runs")
    )
    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.none(), widget=forms.CheckboxSelectMultiple, label=_("Graders")
    )
    share = forms.ChoiceField(
        choices=[
            (ALL, _("Every grader labels every response")),
            (SOME, _("Every grader labels some, the rest is dealt")),
        ],
        widget=forms.RadioSelect,
        initial=ALL,
        label=_("Overlap"),
    )
    overlap = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        label=_("Responses that everybody labels"),
        help_text=_("Agreement can be measured on these only; 100 claims are a good start."),
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, *args, version, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["runs"].queryset = version.runs.filter(state="frozen").select_related("system")
        self.fields["people"].queryset = (
            get_user_model()
            .objects.filter(
                is_active=True,
                memberships__evalset=version.evalset,
                memberships__role=Membership.Role.GRADER,
            )
            .order_by("username")
        )

    def clean(self):
        data = super().clean()
        if data.get("share") == self.SOME and data.get("overlap") is None and "overlap" not in self.errors:
            self.add_error("overlap", _("Say how many responses everybody labels."))
        if data.get("share") == self.ALL:
            data["overlap"] = None
        return data


class ReassignForm(forms.Form):
    grader = forms.ModelChoiceField(Grader.objects.none(), label=_("Unfinished responses of"))
    to = forms.ModelChoiceField(get_user_model().objects.none(), label=_("Hand over to"))
    at_most = forms.IntegerField(
        min_value=1, max_value=2**31 - 1, required=False, label=_("At most (empty: all of them)")
    )

    def __init__(self, *args, round, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["grader"].queryset = Grader.objects.filter(
            assignments__round=round, assignments__state="pending"
        ).distinct()
        self.fields["to"].queryset = (
            get_user_model()
            .objects.filter(
                is_active=True,
                memberships__evalset=round.version.evalset,
                memberships__role=Membership.Role.GRADER,
            )
            .order_by("username")
        )


class AdjudicationForm(forms.Form):
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
    seen = forms.CharField(max_length=200, required=False, widget=forms.HiddenInput)

    def __init__(self, *args, dimension, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["label"].choices = [(label, label) for label in dimension.label_names]


class SplitDecisionForm(forms.Form):
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


# The claim audit


class DrawAuditForm(forms.Form):
    """Which runs, drafts included: the audit belongs before a run is frozen."""

    runs = forms.ModelMultipleChoiceField(
        SystemRun.objects.none(), widget=forms.CheckboxSelectMultiple, label=_("System runs")
    )
    size = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        initial=30,
        label=_("Responses to look at"),
        help_text=_("Drawn at random from all chosen runs together."),
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, *args, version, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["runs"].queryset = version.runs.select_related("system").order_by("number")


class MarkForm(forms.Form):
    claim = forms.IntegerField(min_value=1)
    mark = forms.ChoiceField(choices=ClaimAudit.Mark.choices)


class FinishAuditedForm(forms.Form):
    missing = forms.IntegerField(
        min_value=0, max_value=1000, label=_("Statements of the response that no claim holds")
    )
    note = forms.CharField(
        max_length=MAX_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 2}), label=_("Note")
    )
