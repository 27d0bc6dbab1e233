"""The rubric editor: what it sends as a rubric's content, and back, so that no click loses what was typed.

Without scripts every button sends the whole form. Its value says what to do: `check`, `save`, or a step on
the draft such as `remove-label:2:0`.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _

from annotate.asking import CLAIM, CONDITION_ON, RESPONSE
from annotate.presets import BUNDLES, DIMENSION_OF
from annotate.rubric_rules import (
    MAX_CASES,
    MAX_DIMENSIONS,
    MAX_LABELS,
    Content,
    Problem,
    problems,
)
from annotate.rubric_text import WARM_UP_CASES
from evalsets.forms import PlainForm
from evalsets.labels import LABELS

MOST_ROWS = 200  # of a form that nobody has written by hand


class WarmUpForm(PlainForm):
    label = forms.CharField(max_length=30)
    milliseconds = forms.IntegerField(min_value=0, max_value=2**31 - 1, required=False)

    def __init__(self, *args, rubric_version, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["case"] = forms.ModelChoiceField(rubric_version.warm_up_cases.all())


@dataclass
class RubricEditor:
    """A draft with what is wrong with it; `do` is the button that was pressed."""

    draft: Content
    do: str = ""
    settles: frozenset[int] = frozenset()
    wrong: list[Problem] = field(default_factory=list)
    focus: str = ""  # the id of the field to go on with
    notice: str = ""

    @classmethod
    def starting_from(cls, content: Content) -> "RubricEditor":
        return cls(deepcopy(content))

    @classmethod
    def received(cls, post: QueryDict) -> "RubricEditor":
        settles = frozenset(int(pk) for pk in post.getlist("settles") if pk.isdecimal() and len(pk) < 10)
        editor = cls(_read(post), do=post.get("do", "check"), settles=settles)
        name, *at = editor.do.split(":")
        places = [int(place) for place in at if place.isdecimal() and len(place) < 4]
        if name in ("check", "save"):
            editor.check()
        elif step := STEPS.get(name):
            step(editor, post, places)
        return editor

    @property
    def wants_to_save(self) -> bool:
        return self.do == "save" and not self.wrong

    @property
    def content(self) -> Content:
        """The draft as it would be stored."""
        dimensions = [
            {name: value for name, value in dimension.items() if name != "ticked"}
            for dimension in self.draft["dimensions"]
        ]
        return self.draft | {"dimensions": dimensions}

    def check(self) -> None:
        self.wrong = problems(self.content)
        for at, dimension in enumerate(self.draft["dimensions"]):
            if len({name for name, _label in dimension.get("ticked", ())}) > 1:
                self.wrong.append(
                    Problem(
                        ("dimensions", at, "asked_when"),
                        _("A condition rests on one dimension: untick the labels of the others."),
                    )
                )

    def add_examples(self, dimension: str, label: str, examples: Iterable[str]) -> None:
        """More examples of a label, for the lead to edit."""
        for at, asked_of in enumerate(self.draft["dimensions"]):
            for place, entry in enumerate(asked_of["labels"]):
                if (asked_of["name"], entry["name"]) == (dimension, label):
                    before = len(entry["examples"])
                    entry["examples"] = [*entry["examples"], *(e for e in examples if e)]
                    self.focus = f"d{at}-l{place}-example-{before}"

    # What the page shows: the draft with the names of its fields and what is wrong at each

    @property
    def general_problems(self) -> list[str]:
        return [p.message for p in self.wrong if len(p.where) == 1 and p.where != ("decisions",)]

    @property
    def placed_problems(self) -> list[tuple[str, str, str]]:
        """Each with the id of the part of the page to go to, and the name of that part."""
        found = []
        for problem in self.wrong:
            if len(problem.where) > 1:
                kind, at = problem.where[0], int(problem.where[1])
                if kind == "dimensions":
                    name = self.draft["dimensions"][at]["name"] or _("New dimension")
                    found.append((f"d{at}-title", name, problem.message))
                else:
                    found.append((f"c{at}-title", _("Case %(number)s") % {"number": at + 1}, problem.message))
        return found

    @property
    def dimensions(self) -> list[dict[str, Any]]:
        return [self._shown_dimension(at, d) for at, d in enumerate(self.draft["dimensions"])]

    @property
    def cases(self) -> list[dict[str, Any]]:
        askable = [d for d in self.draft["dimensions"] if d["target"] in (CLAIM, RESPONSE)]
        return [
            {
                "at": at,
                "prefix": f"c{at}-",
                "case": case,
                "wrong": self._wrong_at("warm_up_cases", at),
                "labels": [(d["name"], [label["name"] for label in d["labels"]]) for d in askable],
                "is_known": (case["dimension"], case["label"])
                in {(d["name"], label["name"]) for d in askable for label in d["labels"]},
            }
            for at, case in enumerate(self.draft["warm_up_cases"])
        ]

    @property
    def presets(self) -> list[str]:
        """Optional dimensions that this draft does not have yet."""
        there = {dimension["name"] for dimension in self.draft["dimensions"]}
        return [name for name in DIMENSION_OF if name not in there]

    @property
    def decisions_wrong(self) -> list[str]:
        return [p.message for p in self.wrong if p.where == ("decisions",)]

    def _wrong_at(self, *where: str | int) -> dict[str, list[str]]:
        """Messages by the part right below this place; "" for the place itself and all that is deeper."""
        found: dict[str, list[str]] = {}
        for problem in self.wrong:
            if problem.where[: len(where)] == where:
                rest = problem.where[len(where) :]
                found.setdefault(str(rest[0]) if rest else "whole", []).append(problem.message)
        return found

    def _shown_dimension(self, at: int, dimension: Content) -> dict[str, Any]:
        labels = [
            {
                "at": place,
                "prefix": f"d{at}-l{place}-",
                "label": label,
                "examples": [
                    (text, self.focus == f"d{at}-l{place}-example-{index}")
                    for index, text in enumerate(label["examples"])
                ],
                "wrong": self._wrong_at("dimensions", at, "labels", place),
            }
            for place, label in enumerate(dimension["labels"])
        ]
        wrong = self._wrong_at("dimensions", at)
        wrong["labels"] = [p.message for p in self.wrong if p.where == ("dimensions", at, "labels")]
        return {
            "at": at,
            "prefix": f"d{at}-",
            "dimension": dimension,
            "is_core": dimension["name"] in LABELS,
            "is_first": at == 0,
            "is_last": at == len(self.draft["dimensions"]) - 1,
            "labels": labels,
            "conditions": self._conditions(at),
            "wrong": wrong,
        }

    def _conditions(self, at: int) -> list[dict[str, Any]]:
        """The labels of earlier dimensions after which this one may be asked."""
        dimension = self.draft["dimensions"][at]
        when = dimension["asked_when"] or {"dimension": "", "labels": ()}
        ticked = set(dimension.get("ticked") or ((when["dimension"], label) for label in when["labels"]))
        return [
            {
                "value": f"{place}/{index}",
                "says": f"{earlier['name']}: {label['name']}",
                "ticked": (earlier["name"], label["name"]) in ticked,
            }
            for place, earlier in enumerate(self.draft["dimensions"][:at])
            if earlier["target"] in CONDITION_ON.get(dimension["target"], ())
            for index, label in enumerate(earlier["labels"])
            if label["name"]
        ]

    # Steps on the draft

    def add_dimension(self, post: QueryDict, at: Sequence[int]) -> None:
        self._append_dimension(
            {
                "name": "",
                "target": CLAIM,
                "question": "",
                "asked_when": None,
                "labels": [_new_label("1"), _new_label("2")],
            }
        )

    def add_preset(self, post: QueryDict, at: Sequence[int]) -> None:
        self._append_presets([post.get("preset", "")])

    def add_bundle(self, post: QueryDict, at: Sequence[int]) -> None:
        self._append_presets(BUNDLES.get(post.get("bundle", ""), ()))

    def _append_presets(self, names: Sequence[str]) -> None:
        fresh = [name for name in names if name in self.presets]
        for name in fresh:
            self._append_dimension(deepcopy(DIMENSION_OF[name]))
        if not fresh:
            self.notice = _("Nothing was added: the rubric has all of these dimensions already.")

    def _append_dimension(self, dimension: Content) -> None:
        if len(self.draft["dimensions"]) >= MAX_DIMENSIONS:
            self.notice = _("At most %(most)s dimensions.") % {"most": MAX_DIMENSIONS}
            return
        self.focus = f"d{len(self.draft['dimensions'])}-name"
        self.draft["dimensions"].append(dimension)

    def remove_dimension(self, post: QueryDict, at: Sequence[int]) -> None:
        if (dimension := _at(self.draft["dimensions"], at)) is None:
            return
        if dimension["name"] in LABELS:
            self.notice = _("Every rubric asks for %(name)s.") % {"name": dimension["name"]}
        else:
            self.draft["dimensions"].remove(dimension)

    def move_up(self, post: QueryDict, at: Sequence[int]) -> None:
        self._move(at, -1)

    def move_down(self, post: QueryDict, at: Sequence[int]) -> None:
        self._move(at, 1)

    def _move(self, at: Sequence[int], by: int) -> None:
        dimensions = self.draft["dimensions"]
        if at and 0 <= at[0] < len(dimensions) and 0 <= at[0] + by < len(dimensions):
            dimensions.insert(at[0] + by, dimensions.pop(at[0]))
            self.focus = f"d{at[0] + by}-{'up' if by < 0 else 'down'}"

    def add_label(self, post: QueryDict, at: Sequence[int]) -> None:
        if (dimension := _at(self.draft["dimensions"], at)) is None:
            return
        labels = dimension["labels"]
        if len(labels) >= MAX_LABELS:
            self.notice = _("At most %(most)s labels.") % {"most": MAX_LABELS}
            return
        keys = {label["key"] for label in labels}
        free = next((str(digit) for digit in range(1, 10) if str(digit) not in keys), "")
        self.focus = f"d{at[0]}-l{len(labels)}-name"
        labels.append(_new_label(free))

    def remove_label(self, post: QueryDict, at: Sequence[int]) -> None:
        dimension = _at(self.draft["dimensions"], at)
        if dimension is not None and (label := _at(dimension["labels"], at[1:])) is not None:
            dimension["labels"].remove(label)

    def add_case(self, post: QueryDict, at: Sequence[int]) -> None:
        self._append_cases(
            [
                {
                    "dimension": "grounding",
                    "question": "",
                    "passages": [],
                    "response": "",
                    "claim": "",
                    "label": "supported",
                    "explanation": "",
                }
            ]
        )

    def add_built_in_cases(self, post: QueryDict, at: Sequence[int]) -> None:
        there = [(case["response"], case["claim"]) for case in self.draft["warm_up_cases"]]
        fresh = [case for case in WARM_UP_CASES if (case["response"], case["claim"]) not in there]
        self._append_cases(deepcopy(fresh))
        if not fresh:
            self.notice = _("Nothing was added: the built-in cases are all there.")

    def _append_cases(self, cases: list[Content]) -> None:
        if len(self.draft["warm_up_cases"]) + len(cases) > MAX_CASES:
            self.notice = _("At most %(most)s cases.") % {"most": MAX_CASES}
            return
        self.focus = f"c{len(self.draft['warm_up_cases'])}-question"
        self.draft["warm_up_cases"] += cases

    def remove_case(self, post: QueryDict, at: Sequence[int]) -> None:
        if (case := _at(self.draft["warm_up_cases"], at)) is not None:
            self.draft["warm_up_cases"].remove(case)


STEPS: dict[str, Callable[[RubricEditor, QueryDict, Sequence[int]], None]] = {
    "add-dimension": RubricEditor.add_dimension,
    "add-preset": RubricEditor.add_preset,
    "add-bundle": RubricEditor.add_bundle,
    "remove-dimension": RubricEditor.remove_dimension,
    "up": RubricEditor.move_up,
    "down": RubricEditor.move_down,
    "add-label": RubricEditor.add_label,
    "remove-label": RubricEditor.remove_label,
    "add-case": RubricEditor.add_case,
    "add-built-in-cases": RubricEditor.add_built_in_cases,
    "remove-case": RubricEditor.remove_case,
}


def _new_label(key: str) -> Content:
    return {"name": "", "key": key, "definition": "", "examples": []}


def _at(rows: list[Content], at: Sequence[int]) -> Content | None:
    return rows[at[0]] if at and at[0] < len(rows) else None


# Reading


def _read(post: QueryDict) -> Content:
    dimensions = [_read_dimension(post, f"d{at}-") for at in range(_count(post, "dimensions"))]
    for dimension in dimensions:
        _resolve(dimension, dimensions)
    return {
        "decisions": _text(post, "decisions"),
        "reference_based": post.get("reference_based") == "1",
        "dimensions": dimensions,
        "warm_up_cases": [_read_case(post, f"c{at}-") for at in range(_count(post, "cases"))],
    }


def _count(post: QueryDict, name: str) -> int:
    sent = post.get(name, "0")
    return min(int(sent), MOST_ROWS) if sent.isdecimal() and len(sent) < 6 else 0


def _text(post: QueryDict, name: str) -> str:
    """As it was typed, with the line breaks that everybody else uses."""
    return post.get(name, "").replace("\r\n", "\n").strip("\n")


def _texts(post: QueryDict, name: str) -> list[str]:
    return [text for sent in post.getlist(name) if (text := sent.replace("\r\n", "\n").strip("\n")).strip()]


def _read_dimension(post: QueryDict, prefix: str) -> Content:
    return {
        "name": _text(post, f"{prefix}name").strip(),
        "target": _text(post, f"{prefix}target"),
        "question": _text(post, f"{prefix}question"),
        "asked_when": None,
        "labels": [
            {
                "name": _text(post, f"{prefix}l{at}-name").strip(),
                "key": _text(post, f"{prefix}l{at}-key").strip().lower(),
                "definition": _text(post, f"{prefix}l{at}-definition"),
                "examples": _texts(post, f"{prefix}l{at}-example"),
            }
            for at in range(_count(post, f"{prefix}labels"))
        ],
        "ticked": post.getlist(f"{prefix}after"),
    }


def _resolve(dimension: Content, dimensions: Sequence[Content]) -> None:
    """Ticked places (2/0) become names, so that renaming or moving what they rest on takes them along."""
    named = []
    for tick in dimension["ticked"]:
        places = [int(place) for place in tick.split("/") if place.isdecimal() and len(place) < 4]
        parent = _at(list(dimensions), places)
        label = _at(parent["labels"], places[1:]) if parent else None
        if parent is not None and label is not None:
            named.append((parent["name"], label["name"]))
    dimension["ticked"] = named
    if named:
        first = named[0][0]
        labels = [label for name, label in named if name == first]
        dimension["asked_when"] = {"dimension": first, "labels": labels}


def _read_case(post: QueryDict, prefix: str) -> Content:
    dimension, _slash, label = _text(post, f"{prefix}label").partition("/")
    return {
        "dimension": dimension,
        "question": _text(post, f"{prefix}question"),
        "passages": _texts(post, f"{prefix}passage"),
        "response": _text(post, f"{prefix}response"),
        "claim": _text(post, f"{prefix}claim"),
        "label": label,
        "explanation": _text(post, f"{prefix}explanation"),
    }
