"""Cleaning of what somebody says about a draw from a traffic log."""

from django import forms
from django.core import signing
from django.utils.translation import gettext_lazy as _

from annotate import services
from evalsets.forms import PlainForm
from evalsets.services import LONGEST_NAME
from evalsets.traffic import Sample, draw_sample

SALT = "sample"
LARGEST = 2000
LONGEST_CARRIED = 2_000_000  # characters of the drawn lines that a form may carry


class SampleForm(PlainForm):
    name = forms.CharField(label=_("Name of the eval set"), max_length=LONGEST_NAME)
    file = forms.FileField(
        label=_("Traffic log"),
        help_text=_("JSON Lines or CSV. Only the lines that are drawn are stored."),
        widget=forms.FileInput(attrs={"accept": ".jsonl,.ndjson,.json,.csv,.tsv,.gz,.parquet,.xlsx"}),
    )
    question = forms.CharField(
        label=_("Column of the question"),
        max_length=200,
        required=False,
        help_text=_("Empty: question, query, user_input, prompt, input, text or message."),
    )
    strata = forms.CharField(
        label=_("Columns to balance over"),
        max_length=500,
        required=False,
        help_text=_(
            "Separated by commas; a key inside an object is outer.inner. Every combination is a stratum."
        ),
    )
    size = forms.IntegerField(
        label=_("How many items"),
        min_value=1,
        max_value=LARGEST,
        initial=250,
        help_text=_("200 to 300 are usual."),
    )
    seed = forms.IntegerField(
        label=_("Seed"),
        min_value=0,
        max_value=2**31 - 1,
        help_text=_("The same log, columns, size and seed give the same draw."),
    )

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.fields["seed"].initial = services.new_seed()

    def clean_strata(self) -> list[str]:
        return [name.strip() for name in self.cleaned_data["strata"].split(",") if name.strip()]

    def draw(self) -> Sample:
        """What would be stored; raises ImportRefused where the log cannot be read."""
        given = self.cleaned_data
        chosen = {name: given[name] for name in ("size", "seed", "strata")}
        return draw_sample(
            stream=given["file"].file,
            filename=given["file"].name,
            question=given["question"].strip(),
            **chosen,
        )


class StoreForm(PlainForm):
    """The draw comes back as it went out: signed, so that it is the one that was shown."""

    name = forms.CharField(max_length=LONGEST_NAME)
    drawn = forms.CharField(widget=forms.HiddenInput)

    def clean_drawn(self) -> dict[str, str]:
        try:
            return signing.loads(self.cleaned_data["drawn"], salt=SALT)
        except signing.BadSignature as error:
            raise forms.ValidationError(_("This is not a draw of this server: draw again.")) from error


def carried(sample: Sample) -> str:
    """The draw for the second step; empty where it is too long for a form."""
    facts = {"content": sample.content.decode(), "source": sample.source_name}
    signed = signing.dumps(facts, salt=SALT, compress=True)
    return signed if len(signed) <= LONGEST_CARRIED else ""
