"""What a rubric version must hold to be one, and when two of them say the same. No database.

A rubric's content is plain data: {decisions, reference_based, dimensions, warm_up_cases}; the dimensions are
as in `presets.OPTIONAL_DIMENSIONS`, the cases as in `rubric_text.WARM_UP_CASES`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from annotate.asking import CONDITION_ON
from annotate.keys import ADJUDICATING, GRADING, REASONS
from evalsets.hashing import fingerprint
from evalsets.labels import LABELS, TARGET_OF

Content = dict[str, Any]
Path = tuple[str | int, ...]

MAX_NAME, MAX_TEXT = 30, 10_000
MAX_LABELS, MAX_DIMENSIONS, MAX_CASES = 9, 20, 40
# Keys that do something else on the screens where labels are given or decided.
TAKEN_KEYS = {
    key.lower() for table in (GRADING, ADJUDICATING) for bound in table for key in bound.keys
} | set(REASONS.values())


class Problem(NamedTuple):
    """What is wrong, and where: a path into the content, such as ("dimensions", 0, "labels", 2, "key")."""

    where: Path
    message: str


def digest(content: Content) -> str:
    """Over everything that a grader reads."""
    return fingerprint(content)


def problems(content: Content) -> list[Problem]:
    return [
        *_core_problems(content["dimensions"]),
        *_text_problems(content),
        *_dimension_problems(content["dimensions"]),
        *_case_problems(content["warm_up_cases"], content["dimensions"]),
    ]


def _core_problems(dimensions: Sequence[Content]) -> Iterator[Problem]:
    for name, labels in LABELS.items():
        at, found = next(((i, d) for i, d in enumerate(dimensions) if d["name"] == name), (0, None))
        if found is None:
            yield Problem(("dimensions",), _("Every rubric asks for %(name)s.") % {"name": name})
            continue
        if tuple(label["name"] for label in found["labels"]) != labels:
            yield Problem(
                ("dimensions", at),
                _("The labels of %(name)s are fixed: %(labels)s.")
                % {"name": name, "labels": ", ".join(labels)},
            )
        if found["target"] != TARGET_OF[name] or found["asked_when"]:
            yield Problem(
                ("dimensions", at),
                _("%(name)s is always asked, and of every %(target)s.")
                % {"name": name, "target": TARGET_OF[name]},
            )


def _text_problems(content: Content) -> Iterator[Problem]:
    for where, text in _texts(content, ()):
        if len(text) > MAX_TEXT:
            yield Problem(
                where,
                _("At most %(most)s characters; these are %(n)s.") % {"most": MAX_TEXT, "n": len(text)},
            )
        if "\0" in text:
            yield Problem(where, _("The text holds a character that cannot be stored (NUL)."))


def _texts(part: Any, where: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(part, str):
        yield where, part
    elif isinstance(part, dict):
        for name, value in part.items():
            yield from _texts(value, (*where, name))
    elif isinstance(part, list):
        for index, value in enumerate(part):
            yield from _texts(value, (*where, index))


def _dimension_problems(dimensions: Sequence[Content]) -> Iterator[Problem]:
    if len(dimensions) > MAX_DIMENSIONS:
        yield Problem(("dimensions",), _("At most %(most)s dimensions.") % {"most": MAX_DIMENSIONS})
    names = [dimension["name"].casefold() for dimension in dimensions]
    for at, dimension in enumerate(dimensions):
        where: Path = ("dimensions", at)
        if names.count(names[at]) > 1 and names[at]:
            yield Problem((*where, "name"), _("Another dimension has this name."))
        yield from _name_problems(dimension["name"], (*where, "name"))
        if not all(letter.isalnum() or letter in "_-" for letter in dimension["name"]):
            yield Problem((*where, "name"), _("Letters, digits, - and _ only: the name stands in addresses."))
        if not dimension["question"].strip():
            yield Problem((*where, "question"), _("Say what is asked."))
        if dimension["target"] not in CONDITION_ON:
            yield Problem((*where, "target"), _("Choose what it is asked of."))
        yield from _label_problems(dimension["labels"], where)
        yield from _condition_problems(dimensions, at)


def _name_problems(name: str, where: Path) -> Iterator[Problem]:
    if not name.strip():
        yield Problem(where, _("Give it a name."))
    elif len(name) > MAX_NAME:
        yield Problem(
            where, _("At most %(most)s characters; these are %(n)s.") % {"most": MAX_NAME, "n": len(name)}
        )
    elif not name.isprintable() or name != name.strip():
        yield Problem(where, _("No line breaks, and no spaces at the ends."))


def _label_problems(labels: Sequence[Content], dimension: Path) -> Iterator[Problem]:
    if not 2 <= len(labels) <= MAX_LABELS:
        yield Problem(
            (*dimension, "labels"),
            _("Between 2 and %(most)s labels; these are %(n)s.") % {"most": MAX_LABELS, "n": len(labels)},
        )
    names = [label["name"].casefold() for label in labels]
    keys = [label["key"].lower() for label in labels]
    for at, label in enumerate(labels):
        where = (*dimension, "labels", at)
        yield from _name_problems(label["name"], (*where, "name"))
        if names.count(names[at]) > 1 and names[at]:
            yield Problem((*where, "name"), _("Another label of this dimension has this name."))
        if not label["definition"].strip():
            yield Problem((*where, "definition"), _("Say when this label is right."))
        if said := _what_is_wrong_with(keys[at], keys):
            yield Problem((*where, "key"), said)


def _what_is_wrong_with(key: str, keys: Sequence[str]) -> str:
    if len(key) != 1 or not key.isprintable() or key.isspace():
        return _("One character, such as 1.")
    if key in TAKEN_KEYS:
        return _("%(key)s already does something else on the screen.") % {"key": key}
    if keys.count(key) > 1:
        return _("Another label of this dimension has the key %(key)s.") % {"key": key}
    return ""


def _condition_problems(dimensions: Sequence[Content], at: int) -> Iterator[Problem]:
    """An earlier dimension only, so that no two can wait for each other."""
    dimension, when = dimensions[at], dimensions[at]["asked_when"]
    if not when:
        return
    where: Path = ("dimensions", at, "asked_when")
    parent = next((d for d in dimensions[:at] if d["name"] == when["dimension"]), None)
    if parent is None:
        yield Problem(
            where, _("%(name)s must come before this dimension.") % {"name": when["dimension"] or "?"}
        )
        return
    if parent["target"] not in CONDITION_ON.get(dimension["target"], ()):
        yield Problem(
            where,
            _("What is asked of a %(target)s cannot depend on %(name)s, which is asked of a %(other)s.")
            % {"target": dimension["target"], "name": parent["name"], "other": parent["target"]},
        )
    unknown = set(when["labels"]) - {label["name"] for label in parent["labels"]}
    if unknown or not when["labels"]:
        yield Problem(
            where,
            _("%(name)s has no label %(label)s.")
            % {"name": parent["name"], "label": ", ".join(sorted(unknown)) or "?"},
        )


def _case_problems(cases: Sequence[Content], dimensions: Sequence[Content]) -> Iterator[Problem]:
    if len(cases) > MAX_CASES:
        yield Problem(("warm_up_cases",), _("At most %(most)s cases.") % {"most": MAX_CASES})
    by_name = {dimension["name"]: dimension for dimension in dimensions}
    for at, case in enumerate(cases):
        where: Path = ("warm_up_cases", at)
        dimension = by_name.get(case["dimension"])
        if dimension is None or dimension["target"] not in ("claim", "response"):
            yield Problem(
                (*where, "dimension"), _("Choose a dimension that is asked of a claim or of a response.")
            )
            continue
        if case["label"] not in {label["name"] for label in dimension["labels"]}:
            yield Problem((*where, "label"), _("Choose a label of %(name)s.") % {"name": dimension["name"]})
        if bool(case["claim"].strip()) != (dimension["target"] == "claim"):
            yield Problem(
                (*where, "claim"),
                _("Write the claim that is labelled.")
                if dimension["target"] == "claim"
                else _("Leave the claim empty: this is asked of the whole response."),
            )
        for name in ("response", "explanation"):
            if not case[name].strip():
                yield Problem((*where, name), _("This must not be empty."))
