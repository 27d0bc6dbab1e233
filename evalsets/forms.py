"""Cleaning of what the eval set pages send."""

from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.utils.translation import gettext_lazy as _

from evalsets.models import ApiToken, EvalSetVersion, Membership
from evalsets.services import LONGEST_NAME


class PlainForm(forms.Form):
    """Labels stand above their fields, so they end without a colon."""

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **{"label_suffix": "", **options})

    def offer(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices


class FileForm(PlainForm):
    """A file of responses. What is in it is checked while it is read, not here."""

    file = forms.FileField(
        label=_("File"),
        help_text=_(
            "JSON Lines or CSV in UTF-8, plain or gzipped. Files of other tools, JSON, Parquet and workbooks "
            "too: the next page asks what their columns are."
        ),
        allow_empty_file=True,  # an empty file is told like every other problem of a file
        widget=forms.FileInput(attrs={"accept": ".jsonl,.ndjson,.json,.csv,.tsv,.gz,.parquet,.xlsx"}),
    )
    with_labels = forms.BooleanField(
        label=_("Import labels too"),
        help_text=_(
            "Labels of graders become an imported round, labels of judges become imported verdicts. Without "
            "this, they are checked and left out."
        ),
        required=False,
    )


class UploadForm(FileForm):
    name = forms.CharField(
        label=_("Name of the eval set"),
        help_text=_("The name of an eval set that you lead makes its next version."),
        max_length=LONGEST_NAME,
    )
    field_order = ["name", "file", "with_labels"]


class FreezeForm(PlainForm):
    primary_unit = forms.ChoiceField(
        label=_("What the headline counts"),
        choices=EvalSetVersion.Unit.choices,
        widget=forms.RadioSelect,
        help_text=_("Printed beside every rate; rates of different units are never compared."),
    )


class MemberForm(PlainForm):
    username = forms.CharField(
        label=_("User name"), max_length=150, widget=forms.TextInput({"autocomplete": "off"})
    )
    role = forms.ChoiceField(label=_("Role"), choices=Membership.Role.choices, initial=Membership.Role.GRADER)

    def clean_username(self):
        person = (
            get_user_model()
            .objects.filter(username=self.cleaned_data["username"].strip(), is_active=True)
            .first()
        )
        if person is None:
            raise forms.ValidationError(_("There is no active account of this name."))
        return person


class TokenForm(PlainForm):
    DAYS = [(7, _("a week")), (30, _("30 days")), (90, _("90 days")), (365, _("a year"))]

    name = forms.CharField(
        label=_("Name"), max_length=100, help_text=_("Where it will be used, such as: nightly CI job.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("What it may do"), choices=ApiToken.Scope.choices, widget=forms.CheckboxSelectMultiple
    )
    days = forms.TypedChoiceField(label=_("Valid for"), choices=DAYS, coerce=int, initial=90)
