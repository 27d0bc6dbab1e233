"""Cleaning of what the grading and the lead's pages send."""

from django import forms
from django.utils.translation import gettext_lazy as _

MAX_TEXT = 10_000


class TargetForm(forms.Form):
    """What every form of the grading screen carries: the target it shows, so that none labels another one."""

    assignment = forms.IntegerField(min_value=1)
    claim = forms.IntegerField(min_value=1, required=False)


class LabelForm(TargetForm):
    label = forms.CharField(max_length=30)
    milliseconds = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)
    key = forms.UUIDField(required=False)


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
