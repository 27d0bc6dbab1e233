"""The method page: every definition of this package, written from its docstrings.

``python -m calibration.stats.method_page`` writes the page, ``--check`` only says whether it is up to date.
The headings are made so that their usual Markdown anchors are the `definition` of each figure.
"""

import argparse
import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from .results import FLAGS, UNDEFINED_REASONS, Number

PAGE = Path(__file__).resolve().parents[2] / "docs" / "method.md"

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("Agreement of two", "agreement", ("cohen_kappa", "percent_agreement")),
    ("Agreement label by label", "per_label", ("confusion_table", "per_label_agreement")),
    ("Other models of chance", "chance", ("gwet_ac1", "pabak")),
    ("Agreement of many graders", "reliability", ("krippendorff_alpha", "fleiss_kappa")),
    ("What two labels cost", "label_pairs", ("label_pair_costs",)),
    ("Grader bias", "bias", ("marginal_homogeneity",)),
    ("Use of labels", "usage", ("label_use",)),
    ("The judge against gold", "judging", ("judge_vs_gold", "sensitivity_and_specificity")),
    ("The judge in place of a grader", "replacement", ("alt_test",)),
    ("Intervals", "intervals", ("wilson", "clustered_rate", "intraclass_correlation", "kish_design_effect")),
    ("Resampling", "resampling", ("jackknife", "cluster_bootstrap")),
    ("Rates of claims", "rates", ("hallucination_rates",)),
    ("Abstention", "abstention", ("question_class", "abstention_rates")),
    ("Strata", "stratified", ("stratified_rate",)),
    ("Correcting for the judge's errors", "correction", ("rogan_gladen", "correct_bad_share")),
    ("Correcting all labels at once", "inversion", ("invert_confusion",)),
    ("A random labelled sample beside the judge", "ppi", ("ppi_mean", "ppi_ratio")),
    (
        "Power and sample size",
        "power",
        (
            "minimum_detectable_difference",
            "n_per_system",
            "paired_minimum_detectable_difference",
            "calibration_half_width",
            "differential_error_bias",
            "kappa_half_width",
            "kappa_n_for_half_width",
            "kappa_sample_size",
        ),
    ),
    ("Planning", "planner", ("plan_overlap", "kappa_power", "gate_power")),
    (
        "Comparing systems",
        "comparison",
        ("compare_rates", "corrected_difference", "equal_error_test"),
    ),
    ("The verdict on a change", "verdicts", ("pair_verdict", "family_of")),
    ("Two proportions", "proportions", ("mcnemar", "two_proportion_test", "newcombe_difference")),
    ("Repeated runs", "consistency", ("self_consistency", "run_variance")),
    ("Drift", "drift", ("sentinel_drift", "run_chart", "agreement_drift", "step_test", "control_chart")),
    (
        "Companions",
        "companions",
        ("answer_rate", "response_lengths", "lengths_in_words", "extraction_error", "run_control"),
    ),
    ("Retrieval", "retrieval", ("retrieval_score", "retrieval_means", "who_owes")),
    ("Citations", "citations", ("citation_scores",)),
    ("Labels without a rate of their own", "shares", ("label_shares",)),
    (
        "Other label schemes",
        "mappings",
        ("ragtruth_span", "ragtruth_claim_labels", "ragtruth_response", "magesh_rates"),
    ),
)

INTRODUCTION = """\
# Method

How every figure is computed. This page is written from the docstrings of `calibration.stats`
(`python -m calibration.stats.method_page`); the names in code are the functions to call from Python.

Every figure is shown as value, interval, numerator and denominator where it is a share, number of units,
number of items, and what was left out. An interval's clusters are the items: several systems or samples of
one input are not independent. A figure that cannot be computed has no value but a reason; it is never 0, 1
or NaN in its place.
"""

GREEK = {
    "kappa": "κ", "alpha": "α", "theta": "θ", "lambda": "λ", "pi": "π", "sigma": "σ", "delta": "δ",
    "Delta": "Δ", "rho": "ρ", "epsilon": "ε",
    "sum": "Σ", "pm": "±", "le": "≤", "ge": "≥", "cdot": "·", "mid": "|", "lor": "or",
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One heading of the page with the Markdown below it."""

    level: int
    title: str
    body: str

    @property
    def anchor(self) -> str:
        return anchor_of(self.title)


def anchor_of(title: str) -> str:
    """The anchor that Markdown renderers give a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def plain_formula(latex: str) -> str:
    """A formula readable as text: fractions as quotients, Greek letters as letters."""
    text = " ".join(latex.split())
    text = _replace_groups(text, r"\frac", 2, lambda top, bottom: f"({top}) / ({bottom})")
    text = _replace_groups(text, r"\sqrt", 1, lambda inside: f"√({inside})")
    for command, mark in (("bar", "mean"), ("overline", "mean")):
        text = _replace_groups(text, rf"\{command}", 1, lambda inside, mark=mark: f"{mark}({inside})")
    text = re.sub(r"\\bar\s*(\\[A-Za-z]+|\w)", r"mean(\1)", text)
    text = _replace_groups(text, r"\text", 1, lambda inside: inside)
    text = re.sub(r"\\(left|right)\s*", "", text)
    text = re.sub(r"\\(lceil|rceil|quad|;|,)", lambda m: {"lceil": "⌈", "rceil": "⌉"}.get(m[1], " "), text)
    text = re.sub(r"\\(max|min)", r"\1", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: GREEK.get(m[1], m[1]), text)
    text = re.sub(
        r"([_^])\{([^{}]*)\}",
        lambda m: m[1] + (m[2] if re.fullmatch(r"[\w.*]+", m[2]) else f"({m[2]})"),
        text,
    )
    text = text.replace("^2", "²").replace("\\", "")
    text = text.replace("^*", "*").replace("_((-r))", "_(-r)")
    text = re.sub(r"(?<![\w²)])\((\w[\w.]*)\) /", r"\1 /", text)
    text = re.sub(r"/ \((\w+)\)", r"/ \1", text)
    text = re.sub(r"/ (\w+)Σ", r"/ \1 Σ", text)
    return re.sub(r" +", " ", text).replace(" ,", ",").strip()


def _replace_groups(text: str, command: str, count: int, render: Callable[..., str]) -> str:
    """Replace ``command{..}`` with so many brace groups, the innermost first."""
    while (start := text.rfind(command + "{")) >= 0:
        position, groups = start + len(command), []
        for _ in range(count):
            position += len(text[position:]) - len(text[position:].lstrip())
            depth, begin = 0, position
            while True:
                depth += {"{": 1, "}": -1}.get(text[position], 0)
                position += 1
                if depth == 0:
                    break
            groups.append(text[begin + 1 : position - 1])
        text = text[:start] + render(*groups) + text[position:]
    return text


def _parts(docstring: str) -> dict[str, str]:
    """The sections of a numpydoc docstring by name; the text before them is under the empty name."""
    lines = inspect.cleandoc(docstring).splitlines()
    parts: dict[str, list[str]] = {"": []}
    current, position = "", 0
    while position < len(lines):
        if position + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[position + 1]):
            current = lines[position].strip()
            parts[current] = []
            position += 2
            continue
        parts[current].append(lines[position])
        position += 1
    return {name: "\n".join(body).strip() for name, body in parts.items()}


def _fields(section: str) -> Iterator[tuple[str, str, str]]:
    """Name, type and description of each entry of a Parameters, Attributes or Returns section."""
    for block in re.split(r"\n(?=\S)", section):
        head, *description = block.splitlines()
        name, _, kind = head.partition(" : ")
        yield name.strip(), kind.strip(), " ".join(line.strip() for line in description)


def _prose(text: str, public: frozenset[str]) -> str:
    """Docstring text as Markdown: formulas as code, names of other entries as links."""

    def block(match: re.Match[str]) -> str:
        return f"\n    {plain_formula(match[1])}\n"

    text = re.sub(r"\.\. math::((?:[^\n]*)(?:\n[ \t]+[^\n]*|\n(?=\n[ \t]))*)", block, text)
    text = re.sub(r":math:`([^`]*)`", lambda m: f"``{plain_formula(m[1])}``", text)
    text = re.sub(r"(?<!`)`(\w+)`(?!`)", lambda m: _reference(m[1], public), text)
    text = text.replace("``", "`")
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _reference(name: str, public: frozenset[str]) -> str:
    if name in public:
        return f"[{name}](#{anchor_of(_title(name))})"
    return f"``{name}``"


SPELLINGS = {
    "cohen_kappa": "Cohen kappa", "gwet_ac1": "Gwet AC1", "pabak": "PABAK", "rogan_gladen": "Rogan-Gladen",
    "ppi_mean": "PPI mean", "ppi_ratio": "PPI ratio", "mcnemar": "McNemar", "ragtruth_span": "RAGTruth span",
    "ragtruth_claim_labels": "RAGTruth claim labels", "ragtruth_response": "RAGTruth response",
}  # fmt: skip


def _title(name: str) -> str:
    if name in SPELLINGS:
        return SPELLINGS[name]
    words = name.replace("_", " ")
    return words[0].upper() + words[1:]


def _result_classes(function: Callable[..., Any]) -> list[type]:
    """Result classes of this package that a function returns, and what those hold, outermost first."""
    found: list[type] = []
    queue: list[Any] = [typing.get_type_hints(function).get("return")]
    while queue:
        kind = queue.pop(0)
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            if kind is Number or kind in found or not kind.__module__.startswith(f"{__package__}."):
                continue
            found.append(kind)
            queue.extend(typing.get_type_hints(kind).values())
        else:
            queue.extend(typing.get_args(kind))
    return found


def _homes() -> dict[type, str]:
    """Result class -> the function under which its fields are told: one that is about it, else the first."""
    first: dict[type, str] = {}
    about: dict[type, str] = {}
    for _, module_name, names in SECTIONS:
        module = import_module(f".{module_name}", __package__)
        for name in names:
            for depth, kind in enumerate(_result_classes(getattr(module, name))):
                first.setdefault(kind, name)
                if depth == 0:
                    about.setdefault(kind, name)
    return first | about


def _function_entries(
    module: ModuleType, name: str, public: frozenset[str], homes: Mapping[type, str]
) -> Iterator[Entry]:
    function = getattr(module, name)
    parts = _parts(function.__doc__ or "")
    title = _title(name)
    body = [f"`{name}{_signature(function)}`", _prose(parts[""], public)]
    for heading in ("Parameters", "Returns", "Raises", "Notes", "References"):
        if parts.get(heading):
            body.append(_section(heading, parts[heading], public))
    yield Entry(3, title, "\n\n".join(body))
    seen: set[str] = set()
    for result in _result_classes(function):
        hints = typing.get_type_hints(result)
        others: list[str] = []
        for names, kind, description in _fields(_parts(result.__doc__ or "").get("Attributes", "")):
            plain = []
            for attribute in (part.strip() for part in names.split(",")):
                if Number not in (hints.get(attribute), *typing.get_args(hints.get(attribute))):
                    plain.append(f"`{attribute}`")
                elif attribute not in seen:
                    seen.add(attribute)
                    yield Entry(4, f"{title}: {attribute}", _prose(description, public))
            if plain:
                others.append(f"- {', '.join(plain)} ({kind}): {_prose(description, public)}")
        if others and homes[result] != name:
            told = _reference(homes[result], public)
            yield Entry(0, "", f"The fields of `{result.__name__}` stand under {told}.")
        elif others:
            yield Entry(0, "", f"Further fields of `{result.__name__}`:\n\n" + "\n".join(others))


def _signature(function: Callable[..., Any]) -> str:
    names = []
    keyword_only = False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            names.append("*")
            keyword_only = True
        names.append(parameter.name)
    return f"({', '.join(names)})"


def _section(heading: str, text: str, public: frozenset[str]) -> str:
    if heading in ("References", "Notes"):
        return f"**{heading}.** {_prose(' '.join(text.split()), public)}"
    rows = []
    for name, kind, description in _fields(text):
        # A return value is written as its type alone.
        shown = f"`{name}`" + (f" ({kind})" if kind else "")
        rows.append(f"- {shown}: {_prose(description, public)}" if description else f"- {shown}")
    return f"**{heading}**\n\n" + "\n".join(rows)


def entries() -> list[Entry]:
    """Every entry of the page in order, for whoever renders it elsewhere."""
    public = frozenset(name for _, _, names in SECTIONS for name in names)
    homes = _homes()
    page: list[Entry] = []
    for title, module_name, names in SECTIONS:
        module = import_module(f".{module_name}", __package__)
        page.append(Entry(2, title, inspect.cleandoc(module.__doc__ or "")))
        for name in names:
            page.extend(_function_entries(module, name, public, homes))
    reasons = "\n".join(f"- `{code}`: {sentence}." for code, sentence in UNDEFINED_REASONS.items())
    flags = "\n".join(f"- `{code}`: {sentence}." for code, sentence in FLAGS.items())
    page.append(Entry(2, "Reasons why a figure is undefined", reasons))
    page.append(Entry(2, "Flags beside a figure", flags))
    return page


def render() -> str:
    """The whole page as Markdown."""
    blocks = [INTRODUCTION.strip()]
    for entry in entries():
        if entry.title:
            blocks.append(f"{'#' * entry.level} {entry.title}")
        if entry.body:
            blocks.append(entry.body)
    return "\n\n".join(blocks) + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the method page from the docstrings.")
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    options = parser.parse_args(arguments)
    page = render()
    if options.check:
        same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page
        print("The method page is up to date." if same else "The method page is out of date.")
        return 0 if same else 1
    PAGE.write_text(page, encoding="utf-8")
    print(f"Wrote {PAGE.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
