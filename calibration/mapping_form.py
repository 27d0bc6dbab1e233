"""Which column is which field, and which label which of ours, as a lead chooses it on a page."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from evalsets.forms import PlainForm
from evalsets.importing import ColumnMap, Findings
from evalsets.importing.mapped import Plan
from evalsets.importing.mapping import (
    GRADER,
    KEEP,
    LABEL,
    LEAVE_OUT,
    NAMED,
    SINGLE,
    SYSTEM,
    LabelRule,
    check_mapping,
)
from evalsets.labels import LABELS

LONGEST_EXAMPLE = 160
_OF_CLAIM = ("claim", "claim_id", "claim.source_ids", "claim.decision", "claims")
_OF_RESPONSE = ("response", "context", "context_ids", "retrieval_query", "sample")
_OF_ITEM = tuple(name for name in SINGLE if name not in (*_OF_CLAIM, *_OF_RESPONSE, *SYSTEM, GRADER))
_IN_WORDS = {
    "id": _("id of the response"),
    "item_id": _("id of the item"),
    "question": _("the question"),
    "reference_answer": _("the right answer, to compare with"),
    "unanswerable_reason": _("why it cannot be answered"),
    "variant_of": _("the item that this one is a variant of"),
    "answerable": _("whether it can be answered"),
    "expected_documents": _("documents that should be found"),
    "expected_passages": _("passages that should be found"),
    "response": _("the response"),
    "context": _("a served passage, or a list of them"),
    "context_ids": _("ids of the passages"),
    "retrieval_query": _("what was searched for"),
    "sample": _("which run of the same question"),
    "system.name": _("name of the system"),
    "system.model": _("its model"),
    "system.provider": _("its provider"),
    "system.family": _("the family of its model"),
    "system.date": _("its date"),
    "claim": _("a claim, one a row"),
    "claim_id": _("id of the claim"),
    "claim.source_ids": _("ids of the passages that the claim cites"),
    "claim.decision": _("whether the claim could change what a user does"),
    "claims": _("a list of claims"),
}


class MappingForm(PlainForm):
    """One choice a column; for every question its dimension and one choice a label."""

    def __init__(self, data=None, *, plan: Plan, mapping: ColumnMap, items_known: bool = False):
        shown: dict[str, Any] | None = None if data is None else dict(data.items())
        super().__init__(shown)
        self.plan, self.items_known = plan, items_known
        self.not_seen = set[int]()  # questions that the page that was sent did not ask
        chosen = mapping.columns if mapping.columns is not None else plan.suggested
        for index, column in enumerate(plan.columns):
            target = chosen.get(column, KEEP)
            self.fields[f"column-{index}"] = forms.ChoiceField(
                label=column, choices=_targets(column, target), initial=target
            )
        for index, question in enumerate(plan.questions.values()):
            rule = (mapping.labels or {}).get(question.name) or self._by_our_names(question)
            asked = self._asked(index, question, rule)
            self.fields |= asked
            if shown is not None and shown.get(f"asked-{index}") != mark_of(question.name):
                self.not_seen.add(index)
                shown |= {name: field.initial for name, field in asked.items()}

    def _by_our_names(self, question) -> LabelRule | None:
        """Labels that are called as ours are, to begin with; such a column has the name of who gave them."""
        values = self._values(question)
        dimension = next((name for name, ours in LABELS.items() if {*values} <= {*ours}), None)
        if not values or dimension is None:
            return None
        name = question.name if question.name in self.plan.columns else ""
        return LabelRule(dimension, {value: value for value in values}, name)

    def _asked(self, index: int, question, rule: LabelRule | None) -> dict[str, forms.Field]:
        dimensions = [("", _("choose")), *((name, name) for name in LABELS)]
        fields: dict[str, forms.Field] = {
            # Another column may be the first of labels by the time this is sent: answers are to a question.
            f"asked-{index}": forms.CharField(
                required=False, widget=forms.HiddenInput, initial=mark_of(question.name)
            ),
            f"question-{index}": forms.ChoiceField(
                label=_("Dimension"),
                required=False,
                choices=[*dimensions, (LEAVE_OUT, _("leave its labels out"))],
                initial=rule.dimension if rule else "",
            ),
            f"name-{index}": forms.CharField(
                label=_("Who gave them"), required=False, max_length=200, initial=rule.name if rule else ""
            ),
        }
        for place, value in enumerate(self._values(question)):
            fields[f"value-{index}-{place}"] = forms.ChoiceField(
                label=value,
                required=False,
                choices=_labels(),
                initial=rule.values.get(value, "") if rule else "",
            )
        return fields

    def _values(self, question) -> list[str]:
        return [] if question.too_many else sorted(question.values)

    # What the page shows

    def columns(self) -> Iterator[dict[str, Any]]:
        for index, seen in enumerate(self.plan.columns.values()):
            examples = [_shown(example) for example in seen.examples]
            yield {"seen": seen, "field": self[f"column-{index}"], "examples": examples}

    def questions(self) -> Iterator[dict[str, Any]]:
        for index, seen in enumerate(self.plan.questions.values()):
            values = [
                {"label": value, "times": seen.values[value], "field": self[f"value-{index}-{place}"]}
                for place, value in enumerate(self._values(seen))
            ]
            yield {
                "seen": seen,
                "asked": self[f"asked-{index}"],
                "dimension": self[f"question-{index}"],
                "name": self[f"name-{index}"],
                "values": values,
                "names": ", ".join(seen.names),
            }

    # What was chosen

    def clean(self):
        data = super().clean() or {}
        mapping = self.mapping
        findings = Findings()
        check_mapping(mapping, findings, items_known=self.items_known)
        for index, question in enumerate(self.plan.questions.values()):
            if not data.get(f"question-{index}"):
                self.add_error(f"question-{index}", _("Say what its labels are here, or leave them out."))
                continue
            if index in self.not_seen:
                self.add_error(f"question-{index}", _("See whether these labels mean here what ours do."))
            rule = (mapping.labels or {})[question.name]
            if rule.dimension == LEAVE_OUT:
                continue
            for place, value in enumerate(self._values(question)):
                if value not in rule.values:
                    self.add_error(
                        f"value-{index}-{place}", _("Say which label this is here, or leave it out.")
                    )
            if question.nameless and not rule.name:
                self.add_error(f"name-{index}", _("The file does not say whose labels these are: name them."))
        for problem in findings.problems:
            self.add_error(None, f"{problem.field}: {problem.message}" if problem.field else problem.message)
        return data

    @property
    def mapping(self) -> ColumnMap:
        given = self.cleaned_data
        columns = {column: given.get(f"column-{i}", KEEP) for i, column in enumerate(self.plan.columns)}
        return ColumnMap(self.plan.shape, columns, self._rules())

    def _rules(self) -> dict[str, LabelRule]:
        given, rules = self.cleaned_data, {}
        for index, question in enumerate(self.plan.questions.values()):
            values = {
                value: ours
                for place, value in enumerate(self._values(question))
                if (ours := given.get(f"value-{index}-{place}"))
            }
            dimension = given.get(f"question-{index}") or LEAVE_OUT
            rules[question.name] = LabelRule(dimension, values, given.get(f"name-{index}") or "")
        return rules

    @property
    def takes_labels(self) -> bool:
        return any(rule.dimension != LEAVE_OUT for rule in self._rules().values())


def mark_of(question: str) -> str:
    """Its name may hold what does not come back from a browser as it was sent."""
    return hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _targets(column: str, target: str) -> list:
    own = [f"{prefix}{column.rpartition('.')[2]}" for prefix in NAMED]
    if target.startswith(NAMED) and target not in own:
        own.append(target)
    return [
        (_("Beside"), [(KEEP, _("keep it beside (meta)")), (LEAVE_OUT, _("leave it out"))]),
        (_("Item"), _offered(_OF_ITEM)),
        (_("Stratum"), _offered(name for name in own if name.startswith("strata."))),
        (_("Response"), _offered(_OF_RESPONSE)),
        (_("System"), _offered(name for name in (*SYSTEM, *own) if name.startswith("system."))),
        (_("Claim"), _offered(_OF_CLAIM)),
        (_("Labels"), [(LABEL, _("labels of a grader")), (GRADER, _("name of the grader"))]),
    ]


def _offered(names: Iterable[str]) -> list:
    """In words, with the name that the file format has for it."""
    return [
        (name, format_lazy("{} ({})", _IN_WORDS[name], name) if name in _IN_WORDS else name) for name in names
    ]


def _labels() -> list:
    ours = [(dimension, [(label, label) for label in labels]) for dimension, labels in LABELS.items()]
    return [("", _("choose")), *ours, (LEAVE_OUT, _("leave it out"))]


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_EXAMPLE else f"{text[:LONGEST_EXAMPLE]}…"
