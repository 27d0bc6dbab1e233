"""Cleaning of what a lead says about judges and their runs."""

from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.utils.translation import gettext_lazy as _

from annotate.splits import leaves
from calibration.estimates import Estimate, estimate
from calibration.extraction_prompts import extraction_wordings_of
from calibration.extraction_runs import MOST_TOKENS
from calibration.judge_warm_up import needs_warm_up, warm_up_of
from calibration.judges import prompts
from calibration.judges.prompts import Wording
from calibration.leases import DEFAULT_CONCURRENCY
from calibration.models import Judge, PromptVersion, Verdict
from calibration.prompt_versions import METHODS
from calibration.queries import kin_of
from calibration.services import BUILT_IN, KEY_VARIABLE, dimensions_of, rubric_in_force
from calibration.spending import Budget
from calibration.targets import targets_of
from evalsets.forms import PlainForm
from evalsets.labels import LABELS
from evalsets.models import Response, State, System, SystemRun

CHOSEN_PARAMETERS = ("only_cited", "reasoning", "reasoning_effort")


def clean_base_url(url: str) -> str:
    """Only http and https, and no password in it: the address is stored and shown."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise forms.ValidationError(_("The address must look like https://api.example.org/v1."))
    if parts.username or parts.password or parts.query or parts.fragment:
        raise forms.ValidationError(_("The address must have no user name, password, query or fragment."))
    return url.rstrip("/")


def _price(label: Any, help_text: Any = "") -> forms.DecimalField:
    return forms.DecimalField(
        label=label, required=False, min_value=0, max_digits=12, decimal_places=6, help_text=help_text
    )


class PricesForm(PlainForm):
    price_prompt = _price(
        _("Price of a million tokens in"),
        _("With both prices the pages tell what a run will cost and what it has cost."),
    )
    price_cached = _price(
        _("Price of a million tokens in from the server's cache"),
        _("Empty: they cost as much as the other tokens in."),
    )
    price_completion = _price(_("Price of a million tokens out"))
    currency = forms.RegexField(r"^[A-Z]{3}$", label=_("Currency"), required=False, initial="USD")

    def clean(self):
        super().clean()
        given = [self.cleaned_data.get(name) is not None for name in ("price_prompt", "price_completion")]
        if any(given) and not all(given):
            self.add_error("price_completion", _("Give both prices, or neither."))
        elif self.cleaned_data.get("price_cached") is not None and not all(given):
            self.add_error("price_cached", _("It needs the prices of the other tokens."))

    @property
    def prices(self) -> dict[str, str]:
        """As a judge keeps them; empty where there are none."""
        if self.cleaned_data["price_prompt"] is None:
            return {}
        cached = self.cleaned_data["price_cached"]
        return {
            "prompt": str(self.cleaned_data["price_prompt"]),
            **({} if cached is None else {"cached": str(cached)}),
            "completion": str(self.cleaned_data["price_completion"]),
            "currency": self.cleaned_data["currency"] or "USD",
        }


class BudgetForm(PlainForm):
    """What a run may take at most. It is stopped cleanly; calls under way end and count."""

    budget_calls = forms.IntegerField(label=_("At most so many calls"), required=False, min_value=1)
    budget_tokens = forms.IntegerField(label=_("At most so many tokens"), required=False, min_value=1)
    budget_money = forms.DecimalField(
        label=_("At most so much money"),
        required=False,
        min_value=0,
        max_digits=14,
        decimal_places=6,
        help_text=_("In the currency of the judge's prices. Calls under way at the limit end and count."),
    )

    @property
    def limits(self) -> list[tuple[str, object]]:
        """What was named of the budget, by its label."""
        named = ((self.fields[name].label, self.cleaned_data[name]) for name in BudgetForm.base_fields)
        return [(str(label), limit) for label, limit in named if limit is not None]

    @property
    def budget(self) -> Budget:
        return Budget(
            calls=self.cleaned_data["budget_calls"],
            tokens=self.cleaned_data["budget_tokens"],
            money=self.cleaned_data["budget_money"],
        )


class JudgeForm(PricesForm):
    name = forms.CharField(label=_("Name"), max_length=200)
    model = forms.CharField(
        label=_("Model"),
        max_length=300,
        help_text=_("As the server names it. A dated name stays the same model; an alias may move."),
    )
    base_url = forms.CharField(
        label=_("Base URL"),
        max_length=500,
        required=False,
        help_text=_(
            "Of the OpenAI-compatible server, such as http://localhost:11434/v1. Empty: JUDGE_BASE_URL."
        ),
    )
    provider = forms.CharField(label=_("Provider"), max_length=300, required=False)
    family = forms.CharField(
        label=_("Model family"),
        max_length=300,
        required=False,
        help_text=_("Such as llama or gpt. A judge of the same family as a system tends to favour it."),
    )
    api_key_variable = forms.CharField(
        label=_("Variable of the API key"),
        max_length=100,
        required=False,
        help_text=_(
            "The name of a variable in the worker's environment; the key itself is never stored. "
            "Empty: JUDGE_API_KEY."
        ),
    )
    prompt_version = forms.ChoiceField(label=_("Prompt version"), initial=prompts.BUILT_IN)
    only_cited = forms.BooleanField(
        label=_("Show only the passages that a claim cites"),
        required=False,
        help_text=_("Otherwise every passage that the system was served."),
    )
    reasoning = forms.BooleanField(
        label=_("A reasoning model"),
        required=False,
        help_text=_("No temperature is sent, and the limit of the answer as max_completion_tokens."),
    )
    reasoning_effort = forms.ChoiceField(
        label=_("Reasoning effort"),
        required=False,
        choices=[("", _("not sent")), *((name, name) for name in ("minimal", "low", "medium", "high"))],
    )
    temperature = forms.FloatField(
        label=_("Temperature"),
        required=False,
        min_value=0,
        max_value=2,
        initial=0,
        help_text=_(
            "Empty: not sent. Some reasoning models reject it; then it is left out and the run says so."
        ),
    )
    max_tokens = forms.IntegerField(
        label=_("Most tokens of an answer"),
        required=False,
        min_value=16,
        max_value=1_000_000,
        initial=2048,
        help_text=_("Thinking counts too. An answer that is cut off is a failure, not a label."),
    )
    concurrency = forms.IntegerField(
        label=_("Calls at the same time"),
        required=False,
        min_value=1,
        max_value=64,
        initial=DEFAULT_CONCURRENCY,
    )

    def __init__(self, *args, evalset, **options):
        super().__init__(*args, **options)
        self.order_fields([name for name in self.fields if name not in PricesForm.base_fields])
        self.evalset = evalset
        numbers = PromptVersion.objects.filter(evalset=evalset).values_list("number", flat=True)
        versions = [prompts.BUILT_IN, *(str(number) for number in numbers)]
        self.offer("prompt_version", [(version, version) for version in versions])

    def clean_name(self):
        name = self.cleaned_data["name"]
        if name in BUILT_IN or Judge.objects.filter(evalset=self.evalset, name=name).exists():
            raise forms.ValidationError(
                _("There is a judge of this name already. A changed judge needs another name.")
            )
        return name

    def clean_base_url(self):
        return clean_base_url(self.cleaned_data["base_url"])

    def clean_api_key_variable(self):
        name = self.cleaned_data["api_key_variable"]
        if name and not KEY_VARIABLE.fullmatch(name):
            raise forms.ValidationError(
                _("Capitals, digits and underscores, with API_KEY in it, such as OPENAI_API_KEY.")
            )
        return name

    @property
    def judge(self) -> dict:
        """The arguments of `add_judge`."""
        numbers, choices = ("temperature", "max_tokens", "concurrency"), CHOSEN_PARAMETERS
        apart = {*numbers, *choices, *PricesForm.base_fields}
        plain = {name: value for name, value in self.cleaned_data.items() if name not in apart}
        given = {name: self.cleaned_data[name] for name in numbers if self.cleaned_data[name] is not None}
        given |= {name: self.cleaned_data[name] for name in choices if self.cleaned_data[name]}
        return {**plain, "parameters": given, "prices": self.prices}

    @property
    def warnings(self) -> list[str]:
        kin = kin_of(self.cleaned_data["family"], System.objects.filter(evalset=self.evalset))
        if not kin:
            return []
        return [_("The judge is of the same model family as {systems}.").format(systems=", ".join(kin))]


class StartForm(BudgetForm):
    """Which judge, about what, over which system runs."""

    field_order = [
        "judge",
        "dimensions",
        "system_runs",
        "repeats",
        "warm_up",
        "use_cache",
    ]  # the budget comes last
    judge = forms.ChoiceField(label=_("Judge"))
    dimensions = forms.MultipleChoiceField(
        label=_("Dimensions"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen: everything the judge can be asked."),
    )
    system_runs = forms.MultipleChoiceField(
        label=_("System runs"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: all."),
    )
    repeats = forms.IntegerField(
        label=_("Calls per target"),
        initial=1,
        min_value=1,
        max_value=20,
        help_text=_("More than one shows how far the judge agrees with itself."),
    )
    warm_up = forms.BooleanField(
        label=_("Known cases first"),
        required=False,
        initial=True,
        help_text=_("A new LLM judge is asked about the rubric's known cases before anything else is spent."),
    )
    use_cache = forms.BooleanField(
        label=_("Take over answers to the very same request"),
        required=False,
        initial=True,
        help_text=_("Marked as such. Switch off to see whether the judge still answers alike."),
    )

    def __init__(self, *args, version, **options):
        super().__init__(*args, **options)
        self.version = version
        judges = Judge.objects.filter(evalset=version.evalset, is_active=True).exclude(
            kind=Judge.Kind.IMPORTED
        )
        self.judges = {judge.name: judge for judge in judges}
        self.runs = {str(run.number): run for run in version.runs.select_related("system")}
        names = [*self.judges, *(name for name in BUILT_IN if name not in self.judges)]
        self.rubric_version = rubric_in_force(version)
        asked = self.rubric_version.dimensions.values_list("name", flat=True)
        self.offer("dimensions", [(name, name) for name in dict.fromkeys([*LABELS, *asked])])
        self.offer("judge", [(name, self._described(name)) for name in names])
        self.offer("system_runs", [(number, str(run)) for number, run in self.runs.items()])

    def _described(self, name):
        judge = self.judges.get(name)
        return f"{name} ({judge.model})" if judge and judge.model else name

    def clean(self):
        super().clean()
        judge = self.cleaned_data.get("judge", "")
        able = self._able(judge)
        if any(name not in able for name in self.cleaned_data.get("dimensions", [])):
            self.add_error(
                "dimensions",
                _("{judge} can only be asked about {dimensions}.").format(
                    judge=judge, dimensions=", ".join(able)
                ),
            )
        chosen = self.judges.get(judge)
        if self.cleaned_data.get("budget_money") is not None and not (chosen and chosen.prices):
            self.add_error("budget_money", _("A budget of money needs the judge's prices: set them first."))

    def _able(self, name: str) -> tuple[str, ...]:
        judge = self.judges.get(name)
        return dimensions_of(judge, self.rubric_version) if judge else BUILT_IN.get(name, tuple(LABELS))

    @property
    def asked(self) -> list[str]:
        return self.cleaned_data["dimensions"] or list(self._able(self.cleaned_data["judge"]))

    @property
    def chosen_runs(self) -> list:
        return [self.runs[number] for number in self.cleaned_data["system_runs"] or self.runs]

    @property
    def calls(self) -> int:
        targets = targets_of(
            system_runs=self.chosen_runs, dimensions=self.asked, rubric_version=self.rubric_version
        )
        return len(targets) * self.cleaned_data["repeats"]

    @property
    def estimate(self) -> Estimate | None:
        """Of a judge that calls somebody; the others cost nothing."""
        judge = self.judges.get(self.cleaned_data["judge"])
        if judge is None or judge.kind != Judge.Kind.OPENAI:
            return None
        return estimate(
            judge=judge,
            rubric_version=self.rubric_version,
            system_runs=self.chosen_runs,
            dimensions=self.asked,
            repeats=self.cleaned_data["repeats"],
            use_cache=self.cleaned_data["use_cache"],
        )

    @property
    def warms_up(self) -> bool:
        """Whether the known cases come first: asked for, and the judge is new."""
        judge = self.judges.get(self.cleaned_data["judge"])
        return bool(judge and self.cleaned_data["warm_up"] and needs_warm_up(judge, self.rubric_version))

    @property
    def warm_up_calls(self) -> int:
        return warm_up_of(self.judges[self.cleaned_data["judge"]], self.rubric_version).calls_at_most

    @property
    def kin(self) -> list[str]:
        """Judged systems of the judge's own family."""
        judge = self.judges.get(self.cleaned_data["judge"])
        return kin_of(judge.family, [run.system for run in self.chosen_runs]) if judge else []


class ExtractionForm(BudgetForm):
    """Which model takes the responses of which draft runs apart."""

    # The budget comes last.
    field_order = ["judge", "prompt_version", "system_runs", "again", "max_tokens", "use_cache"]
    judge = forms.ChoiceField(
        label=_("Model"),
        help_text=_("One of the LLM judges of this eval set; its prompt is another one here."),
    )
    prompt_version = forms.ChoiceField(
        label=_("Prompt version"), required=False, help_text=_("The newest one where none is chosen.")
    )
    system_runs = forms.MultipleChoiceField(
        label=_("System runs"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("None chosen: every draft."),
    )
    again = forms.BooleanField(
        label=_("Also responses that were extracted before"),
        required=False,
        help_text=_("Their claims are replaced, with what was corrected by hand and marked in an audit."),
    )
    max_tokens = forms.IntegerField(
        label=_("Most tokens of an answer"),
        min_value=64,
        max_value=1_000_000,
        initial=MOST_TOKENS,
        help_text=_("A long response makes many claims. An answer that is cut off is a failure."),
    )
    use_cache = forms.BooleanField(
        label=_("Take over answers to the very same request"), required=False, initial=True
    )
    response = forms.IntegerField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args, version, **options):
        super().__init__(*args, **options)
        self.version = version
        judges = Judge.objects.filter(evalset=version.evalset, is_active=True, kind=Judge.Kind.OPENAI)
        self.judges = {judge.name: judge for judge in judges}
        drafts = version.runs.select_related("system").exclude(state=State.FROZEN)
        self.runs = {str(run.number): run for run in drafts}
        self.offer("judge", [(name, f"{name} ({judge.model})") for name, judge in self.judges.items()])
        self.offer("system_runs", [(number, str(run)) for number, run in self.runs.items()])
        versions = [wording.version for wording in extraction_wordings_of(version.evalset)]
        self.offer("prompt_version", [(name, name) for name in versions])
        self.newest = self.fields["prompt_version"].initial = versions[-1]

    def clean_prompt_version(self):
        return self.cleaned_data["prompt_version"] or self.newest

    def clean(self):
        cleaned = super().clean()
        if pk := cleaned.get("response"):
            found = Response.objects.filter(pk=pk, version=self.version).select_related("run").first()
            if found is None or str(found.run.number) not in self.runs:
                raise forms.ValidationError(_("This response is not one of a draft run."))
            cleaned |= {"system_runs": [str(found.run.number)], "again": True}
        return cleaned

    @property
    def chosen_judge(self) -> Judge:
        return self.judges[self.cleaned_data["judge"]]

    @property
    def chosen_runs(self) -> list[SystemRun]:
        return [self.runs[number] for number in self.cleaned_data["system_runs"] or self.runs]

    @property
    def chosen_responses(self) -> list[int] | None:
        return [self.cleaned_data["response"]] if self.cleaned_data["response"] else None

    @property
    def asked(self) -> dict[str, Any]:
        """What `refuse_extraction` and `start_extraction` have in common."""
        return {
            "judge": self.chosen_judge,
            "version": self.version,
            "system_runs": self.chosen_runs,
            "again": self.cleaned_data["again"],
            "responses": self.chosen_responses,
            "budget": self.budget,
        }


class ClaimForm(PlainForm):
    text = forms.CharField(
        label=_("Claim"), max_length=10_000, widget=forms.Textarea(attrs={"rows": 2, "dir": "auto"})
    )
    was = forms.CharField(widget=forms.HiddenInput, required=False, strip=False)


class VerdictFilter(PlainForm):
    state = forms.ChoiceField(
        label=_("State"), required=False, choices=[("", _("all")), *Verdict.State.choices]
    )
    failure = forms.ChoiceField(
        label=_("Failure"), required=False, choices=[("", _("all")), *Verdict.Failure.choices]
    )


class PromptForm(PlainForm):
    """Another wording of the prompt; the service says what it must contain."""

    system = forms.CharField(
        label=_("System message"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18}),
        help_text=_("Filled in: {nonce}, {question}, {labels}, {decisions}, {method}, {menu}."),
    )
    closing = forms.CharField(label=_("Closing sentence"), help_text=_("{target} is filled in."))
    note = forms.CharField(label=_("What changed, and why"), required=False)

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        for name in METHODS:
            self.fields[f"method_{name}"] = forms.CharField(
                label=_("Method: {name}").format(name=name), widget=forms.Textarea(attrs={"rows": 4})
            )
        self.order_fields(["system", *(f"method_{name}" for name in METHODS), "closing", "note"])

    @staticmethod
    def initial_of(wording: Wording) -> dict[str, str]:
        methods = {f"method_{name}": wording.methods.get(name, "") for name in METHODS}
        return {"system": wording.system, "closing": wording.closing, **methods}

    @property
    def wording(self) -> dict[str, Any]:
        """The arguments of `add_prompt_version`; browsers send line breaks of their own."""
        text = {name: value.replace("\r\n", "\n") for name, value in self.cleaned_data.items()}
        return {
            "system": text["system"],
            "closing": text["closing"],
            "note": text["note"],
            "methods": {name: text[f"method_{name}"] for name in METHODS},
        }


class ExtractionPromptForm(PlainForm):
    """Another wording that asks for claims; the service says what it must contain."""

    system = forms.CharField(
        label=_("System message"),
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24}),
        help_text=_("{nonce} is filled in. The keys of the answer must be named."),
    )
    closing = forms.CharField(label=_("Closing sentence"))
    note = forms.CharField(label=_("What changed, and why"), required=False)

    @property
    def wording(self) -> dict[str, str]:
        """The arguments of `add_extraction_prompt`; browsers send line breaks of their own."""
        return {name: value.replace("\r\n", "\n") for name, value in self.cleaned_data.items()}


class ExtractionTrialForm(PlainForm):
    """A response of which the messages are shown."""

    item = forms.CharField(label=_("Response"), help_text=_("Its id, as on the overview."))

    def __init__(self, *args, version, **options):
        super().__init__(*args, **options)
        self.version = version

    def clean_item(self) -> Response:
        found = Response.objects.filter(version=self.version, response_id=self.cleaned_data["item"])
        response = found.select_related("item").first()
        if response is None:
            raise forms.ValidationError(_("There is no response of this id here."))
        return response


class TrialForm(PlainForm):
    """A target of which the messages are shown."""

    item = forms.CharField(label=_("Response"), help_text=_("Its id, as on the overview."))
    claim_id = forms.CharField(
        label=_("Claim"), required=False, help_text=_("Its id; empty: the response, or its first claim.")
    )
    dimension = forms.ChoiceField(label=_("Dimension"))
    only_cited = forms.BooleanField(label=_("Only the cited passages"), required=False)

    def __init__(self, *args, version, **options):
        super().__init__(*args, **options)
        self.version = version
        self.rubric_version = rubric_in_force(version)
        self.targets = dict(self.rubric_version.dimensions.values_list("name", "target"))
        self.offer("dimension", [(name, name) for name in self.targets])

    def clean(self):
        cleaned = super().clean()
        found = Response.objects.filter(version=self.version, response_id=cleaned.get("item", ""))
        response = found.select_related("run").first()
        if response is None:
            self.add_error("item", _("There is no response of this id here."))
            return cleaned
        claims = leaves(response.claims.all())
        if cleaned.get("claim_id"):
            claims = claims.filter(claim_id=cleaned["claim_id"])
        of_claims = self.targets.get(cleaned.get("dimension", "")) in ("claim", "citation")
        claim = claims.order_by("position", "pk").first() if of_claims else None
        if of_claims and claim is None:
            self.add_error("claim_id", _("There is no such claim in this response."))
        return {**cleaned, "response": response, "claim": claim}
