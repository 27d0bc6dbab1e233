"""Cleaning of what the grading and the lead's pages send."""

from collections import Counter
from decimal import Decimal

from django import forms
from django.contrib.auth import get_user_model
from django.utils.translation import gettext_lazy as _

from annotate import services
from annotate.models import ClaimAudit, Grader, Round, RubricVersion
from annotate.planning import Overlap
from evalsets.forms import PlainForm
from evalsets.models import Membership, SystemRun

MAX_TEXT = 10_000


class Ticked(forms.TextInput):
    """Several boxes of one name, or one text with commas, as one text with commas."""

    def value_from_datadict(self, data, files, name):
        return ",".join(data.getlist(name)) if hasattr(data, "getlist") else data.get(name)


class TargetForm(forms.Form):
    """What every form of the grading screen carries: the target it shows, so that none labels another one."""

    assignment = forms.IntegerField(min_value=1)
    dimension = forms.CharField(max_length=30, required=False)
    claim = forms.IntegerField(min_value=1, required=False)
    passage = forms.IntegerField(min_value=1, required=False)


class LabelForm(TargetForm):
    label = forms.CharField(max_length=30)
    note = forms.CharField(max_length=MAX_TEXT, required=False, strip=False)
    evidence = forms.CharField(max_length=2000, required=False, widget=Ticked)  # ranks of passages
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


class AdvanceForm(TargetForm):
    on = forms.BooleanField(required=False)


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


def graders_among_members(evalset):
    """The people who may grade in this eval set."""
    return (
        get_user_model()
        .objects.filter(
            is_active=True, memberships__evalset=evalset, memberships__role=Membership.Role.GRADER
        )
        .order_by("username")
    )


class OpenRoundForm(PlainForm):
    """Which frozen runs, whom of the graders, under which rubric, and what several of them label."""

    runs = forms.ModelMultipleChoiceField(
        SystemRun.objects.none(), widget=forms.CheckboxSelectMultiple, label=_("Frozen runs")
    )
    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.none(), widget=forms.CheckboxSelectMultiple, label=_("Graders")
    )
    rubric_version = forms.ModelChoiceField(
        RubricVersion.objects.none(), label=_("Rubric version"), empty_label=None
    )
    warm_up = forms.BooleanField(
        required=False,
        label=_("Warm-up first"),
        help_text=_(
            "Each grader labels the known cases of the rubric, and sees them explained, before labels count."
        ),
    )
    overlap = forms.ChoiceField(
        choices=[
            (Round.Overlap.ALL, _("Every response")),
            (Round.Overlap.FIRST, _("The first responses of the set")),
            (Round.Overlap.RANDOM, _("Responses drawn at random")),
            (Round.Overlap.SHARE, _("A share of every stratum, drawn at random")),
        ],
        widget=forms.RadioSelect,
        initial=Round.Overlap.ALL,
        label=_("Which responses do several graders label?"),
    )
    count = forms.IntegerField(
        min_value=0,
        max_value=2**31 - 1,
        required=False,
        label=_("How many responses"),
        help_text=_("Agreement can be measured on these only; 100 claims are a good start."),
    )
    share = forms.DecimalField(
        min_value=Decimal("0.1"),
        max_value=100,
        decimal_places=1,
        required=False,
        label=_("Share of every stratum, in percent"),
        help_text=_("Rounded, and at least one response of every stratum that has any."),
    )
    stratum = forms.ChoiceField(required=False, label=_("Stratum"))
    graders_each = forms.IntegerField(
        min_value=2,
        max_value=1000,
        required=False,
        label=_("Graders of each of these responses (empty: all)"),
        help_text=_("With fewer than all, they take turns, so that all pairs meet about equally often."),
    )
    pace = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        initial=200,
        required=False,
        label=_("Pace to reckon with, in labels an hour"),
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, *args, version, strata, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["runs"].queryset = version.runs.filter(state="frozen").select_related("system")
        self.fields["people"].queryset = graders_among_members(version.evalset)
        self.fields["rubric_version"].queryset = (
            RubricVersion.objects.filter(rubric__evalset=version.evalset, rubric__is_imported=False)
            .select_related("rubric")
            .order_by("-pk")
        )
        self.offer("stratum", [(name, name) for name in strata])

    def clean(self):
        data = super().clean()
        kind = data.get("overlap")
        if kind in (Round.Overlap.FIRST, Round.Overlap.RANDOM):
            self._require("count", _("Say how many responses several graders label."))
        elif kind == Round.Overlap.SHARE:
            self._require("share", _("Say which share of every stratum several graders label."))
            self._require("stratum", _("No item of this version has a stratum."))
        chosen, each = len(data.get("people", ())), data.get("graders_each")
        if each and chosen and each > chosen:
            self.add_error("graders_each", _("Only %(n)s graders are chosen.") % {"n": chosen})
        return data

    def _require(self, name, message):
        if self.cleaned_data.get(name) in (None, "") and name not in self.errors:
            self.add_error(name, message)

    @property
    def plan(self) -> Overlap:
        data, kind = self.cleaned_data, self.cleaned_data["overlap"]
        is_share = kind == Round.Overlap.SHARE
        return Overlap(
            kind=kind,
            count=data["count"] if kind in (Round.Overlap.FIRST, Round.Overlap.RANDOM) else None,
            share=float(data["share"]) / 100 if is_share else None,
            stratum=data["stratum"] if is_share else "",
            graders_each=data["graders_each"],
        )

    @property
    def round(self) -> dict:
        """The arguments of `open_round_with`, beside the people."""
        data = self.cleaned_data
        return {
            "runs": list(data["runs"]),
            "rubric_version": data["rubric_version"],
            "overlap": self.plan,
            "warm_up": data["warm_up"],
            "seed": data["seed"],
        }

    @property
    def labels_an_hour(self) -> int:
        return self.cleaned_data["pace"] or self.fields["pace"].initial


class SecondLookForm(PlainForm):
    """How many of the targets with a label are drawn, from whose labels, and who labels them again."""

    USUAL = 48

    n = forms.IntegerField(min_value=1, max_value=100_000, label=_("Targets to draw"))
    dimension = forms.ChoiceField(required=False, label=_("Dimension"))
    of = forms.ModelChoiceField(
        Grader.objects.none(),
        required=False,
        label=_("From the labels of"),
        empty_label=_("everybody"),
        help_text=_("Choose one grader to see how far their own labels are confirmed."),
    )
    people = forms.ModelMultipleChoiceField(
        get_user_model().objects.none(), widget=forms.CheckboxSelectMultiple, label=_("Who looks again")
    )
    seed = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, *args, round, pool, **kwargs):
        super().__init__(*args, **kwargs)
        self.round = round
        there = Counter(target.dimension for target in pool)
        self.fields["n"].initial = min(self.USUAL, len(pool))
        self.fields["n"].help_text = _("Of %(n)s targets that carry a label.") % {"n": len(pool)}
        counted = [(name, f"{name} ({n})") for name, n in there.items()]
        self.offer("dimension", [("", _("all dimensions")), *counted])
        self.fields["of"].queryset = Grader.objects.filter(annotations__round=round).distinct()
        self.fields["people"].queryset = graders_among_members(round.version.evalset)

    def draw(self, *, person) -> Round:
        """Once: the same draw again is the same round."""
        data, evalset = self.cleaned_data, self.round.version.evalset
        graders = [
            services.ensure_grader(evalset=evalset, name=member.get_username(), person=member)
            for member in data["people"]
        ]
        asked = {name: data[name] for name in ("n", "dimension", "of", "seed")}
        return services.draw_second_look(round=self.round, graders=graders, person=person, once=True, **asked)


class ResponsesForm(PlainForm):
    """Which responses of a round: `?state=&grader=`, the grader by number; both optional."""

    state = forms.ChoiceField(
        required=False,
        label=_("Show"),
        choices=[
            ("", _("all")),
            ("untouched", _("finished by nobody")),
            ("waiting", _("waiting for a grader")),
            ("complete", _("finished by everybody")),
            ("skipped", _("skipped for now")),
        ],
    )
    grader = forms.ModelChoiceField(
        Grader.objects.none(),
        required=False,
        label=_("Grader"),
        to_field_name="number",
        empty_label=_("everybody"),
    )

    def __init__(self, *args, round, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["grader"].queryset = Grader.objects.filter(assignments__round=round).distinct()


class ReassignForm(PlainForm):
    """From whom to whom; who is not named is everybody else in the round, evenly."""

    EVENLY = _("everybody else, evenly")

    grader = forms.ModelChoiceField(
        Grader.objects.none(), required=False, empty_label=EVENLY, label=_("Unfinished responses of")
    )
    to = forms.ModelChoiceField(
        get_user_model().objects.none(), required=False, empty_label=EVENLY, label=_("Hand over to")
    )
    at_most = forms.IntegerField(
        min_value=1,
        max_value=2**31 - 1,
        required=False,
        label=_("At most (empty: all of them, or an even share)"),
    )

    def __init__(self, *args, round, **kwargs):
        super().__init__(*args, **kwargs)
        self.round = round
        self.fields["grader"].queryset = Grader.objects.filter(
            assignments__round=round, assignments__state="pending"
        ).distinct()
        self.fields["to"].queryset = graders_among_members(round.version.evalset)

    def clean(self):
        data = super().clean()
        if not self.errors and not data["grader"] and not data["to"]:
            raise forms.ValidationError(_("Name who hands over, who takes over, or both."))
        return data

    def hand_over(self) -> tuple[int, int]:
        """How many moved, and how many whoever was named has left; Refused where nothing can."""
        grader, to, at_most = (self.cleaned_data[name] for name in ("grader", "to", "at_most"))
        if to is None:
            return services.spread(round=self.round, grader=grader, at_most=at_most)
        evalset = self.round.version.evalset
        taker = services.ensure_grader(evalset=evalset, name=to.get_username(), person=to)
        if grader is None:
            return services.share_with(round=self.round, to=taker, at_most=at_most)
        return services.reassign_unfinished(round=self.round, grader=grader, to=taker, at_most=at_most)


class DrawAuditForm(PlainForm):
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
