"""Cleaning of what a lead says about a watch."""

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from calibration.models import Judge, Watch
from evalsets.forms import PlainForm


class WatchForm(PlainForm):
    name = forms.SlugField(
        label=_("Name"),
        max_length=60,
        help_text=_("Small letters, digits and hyphens; the daily import calls it so."),
    )
    judge = forms.ModelChoiceField(
        label=_("Judge"),
        queryset=Judge.objects.none(),
        required=False,
        empty_label=_("none: only the phrase matcher"),
        help_text=_("Asked about a batch only while it is trusted on this version."),
    )
    points = forms.FloatField(
        label=_("Smallest change worth an alert, in points"), initial=5, min_value=0.1, max_value=99
    )

    def __init__(self, *args, version, **options):
        super().__init__(*args, **options)
        field = self.fields["judge"]
        assert isinstance(field, forms.ModelChoiceField)
        judges = Judge.objects.filter(evalset=version.evalset, is_active=True, runs__version=version)
        field.queryset = judges.distinct()

    def clean_name(self):
        name = self.cleaned_data["name"].lower()
        if Watch.objects.filter(name=name).exists():
            raise forms.ValidationError(_("There is a watch of this name already."))
        return name


class BatchForm(PlainForm):
    date = forms.DateField(label=_("Day"), widget=forms.DateInput(attrs={"type": "date"}))
    file = forms.FileField(
        label=_("File"),
        help_text=_("The day's responses as JSON Lines or CSV, plain or gzipped; labels in it are not read."),
    )

    def clean_date(self):
        date = self.cleaned_data["date"]
        if date > timezone.now().date():
            raise forms.ValidationError(_("This day has not been yet."))
        return date


class MarkForm(PlainForm):
    date = forms.DateField(label=_("Day"), widget=forms.DateInput(attrs={"type": "date"}))
    text = forms.CharField(label=_("What happened"), max_length=200)
