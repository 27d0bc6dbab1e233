"""How a number object looks on a page: value, interval, what it rests on, and the way to its definition."""

from django import template
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calibration import words
from calibration.findings import sentence_of
from calibration.stats.results import beside

register = template.Library()
MINUS = "\u2212"
UNKNOWN = "\u2013"


def _signed(text: str) -> str:
    return text.replace("-", MINUS)


@register.filter
def coefficient(value) -> str:
    """0.4701 as 0.47, and -0.004 as 0.00."""
    return UNKNOWN if value is None else _signed(f"{round(value, 2) or 0.0:.2f}")


@register.filter
def share(value) -> str:
    """0.7055 as 70.6 %."""
    return UNKNOWN if value is None else _signed(f"{100 * value:.1f}\u202f%")


@register.filter
def amount(count):
    """A count as it is; 12.3333, of units that are means over several runs, as 12.33."""
    return f"{count:.2f}" if isinstance(count, float) else count


@register.filter
def word_count(value) -> str:
    """41.27 as 41.3."""
    return UNKNOWN if value is None else f"{value:.1f}"


@register.filter
def points(value) -> str:
    """-0.0412 as -4.1 points of a percentage, with its sign."""
    return UNKNOWN if value is None else _signed(f"{100 * value:+.1f}")


@register.filter
def points_wide(value) -> str:
    """0.0412 as 4.1: a width in points, without a sign."""
    return UNKNOWN if value is None else f"{100 * value:.1f}"


@register.filter
def cause_words(cause: str):
    return words.CAUSES.get(cause, cause)


@register.filter
def verdict_words(verdict: str):
    return words.CHANGE_VERDICTS[verdict][0]


@register.filter
def verdict_sentence(verdict: str):
    return words.CHANGE_VERDICTS[verdict][1]


WRITTEN = {"share": share, "coefficient": coefficient, "words": word_count, "points": points}


@register.filter
def signed(count: int) -> str:
    return _signed(f"{count:+d}") if count else "0"


@register.filter
def p_value(value) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


@register.filter
def reason_words(code: str):
    return words.LEFT_OUT.get(code, code)


@register.filter
def undefined_words(code: str):
    return words.UNDEFINED.get(code, code)


@register.filter
def undefined_briefly(code: str):
    return words.UNDEFINED_BRIEFLY.get(code) or words.UNDEFINED.get(code, code)


@register.filter
def short_label(label: str):
    return words.SHORT_LABELS.get(label, label)


@register.filter
def largest(groups, count: int, size: str = "n"):
    """The groups with the most targets, in the order given."""
    if len(groups) <= count + 2:
        return groups
    kept = {id(group) for group in sorted(groups, key=lambda group: -group[size])[:count]}
    return [group for group in groups if id(group) in kept]


@register.filter
def smallest(groups, count: int, size: str = "n"):
    """The groups that `largest` leaves out."""
    shown = {id(group) for group in largest(groups, count, size)}
    return [group for group in groups if id(group) not in shown]


@register.filter
def flag_words(code: str):
    return words.FLAGS.get(code, code)


@register.filter
def condition_words(name: str, dimension: str):
    said = words.CONDITIONS.get(name) or words.CONDITIONS.get(f"{name} {dimension}")
    return said or words.CONDITIONS.get(f"{name} of any other", name)


@register.filter
def measured(condition) -> str:
    """A condition's measured value as it is read: a share, a count, days or a coefficient."""
    if condition["name"] == "fingerprint":
        return {True: _("match"), False: _("changed"), None: _("unknown")}[condition["passed"]]
    name, value, threshold = condition["name"], condition["value"], condition["threshold"]
    written = _written(name, value)
    if value is None or threshold is None or written != _written(name, threshold) or value == threshold:
        return written
    if name == "valid_verdicts":
        return _signed(f"{beside(100 * value, 100 * threshold, digits=1)}\u202f%")
    return _signed(beside(value, threshold, digits=2))


@register.filter
def told_from(value, bar) -> str:
    """More digits of a value that reads like the bar although it is another; else nothing."""
    if value is None or value == bar or coefficient(value) != coefficient(bar):
        return ""
    return f"({_signed(beside(value, bar, digits=4))})"


@register.filter
def bar(condition) -> str:
    name, threshold = condition["name"], condition["threshold"]
    if name == "fingerprint":
        return _("match")
    if threshold is None:
        return UNKNOWN
    return f"{'≤' if name == 'calibration_age' else '≥'} {_written(name, threshold)}"


def _written(name: str, value) -> str:
    if value is None:
        return UNKNOWN
    if name == "valid_verdicts":
        return share(value)
    if name == "calibration_age":
        return ngettext("{n} day", "{n} days", int(value)).format(n=int(value))
    if name in ("targets", "responses", "gold_positive", "gold_negative"):
        return f"{value:.0f}"
    return coefficient(value)


@register.filter
def threshold_words(name: str):
    return words.THRESHOLDS.get(name, name)


@register.filter
def baseline_words(kind: str):
    return words.BASELINES.get(kind, kind)


@register.filter
def design_words(design: str):
    return words.DESIGNS.get(design, design)


@register.filter
def next_step(state: str):
    return words.GATE_NEXT.get(state, "")


@register.filter
def finding_words(finding) -> str:
    return sentence_of(finding)


@register.filter
def tone(state: str) -> str:
    return {"TRUSTED": "good", "NOT_TRUSTED": "bad"}.get(state, "warn")


@register.filter
def state_words(state: str):
    return words.GATE_STATES.get(state, state)


@register.filter
def rate_words(name: str):
    return words.RATES.get(name, name)


@register.filter
def rate_meaning(name: str):
    return words.RATE_MEANINGS.get(name, "")


@register.filter
def against_bar(state: str):
    return words.AGAINST_BAR.get(state, state)


@register.filter
def measure_words(name: str):
    return words.MEASURES.get(name, name)


@register.filter
def as_sentence(text: str) -> str:
    """A code as words: over_answering as over answering."""
    return text.replace("_", " ")


@register.filter
def get(mapping, key):
    return mapping.get(key) if mapping else None


@register.filter
def at(sequence, place: int):
    return sequence[place]


@register.filter
def optional_words(name: str):
    """The name of an optional figure in words; of a lead's own dimension, its name."""
    return words.OPTIONAL.get(name, as_sentence(name))


@register.filter
def total(mapping) -> int:
    return sum(mapping.values()) if mapping else 0


@register.filter
def fault_words(code: str):
    return words.EXTRACTION_FAULTS.get(code, code)


@register.filter
def source_words(source: str):
    return words.SOURCES.get(source, source)


@register.filter
def question_words(question: str):
    return words.QUESTIONS.get(question, question)


@register.filter
def unanswerable_words(reason: str):
    return words.UNANSWERABLE.get(reason, reason)


@register.filter
def wanted_of(question: str) -> str:
    """What a system should do with a question of this class."""
    return {"answerable": "ANSWERED", "unanswerable": "REFUSED", "underspecified": "CLARIFY"}[question]


@register.filter
def nobody_answered(matrix) -> bool:
    """Whether an abstention matrix holds no label at all."""
    return not any(count for row in matrix.values() for name, count in row.items() if name != "missing")


@register.filter
def largest_by_responses(groups, count: int):
    return largest(groups, count, "n_responses")


@register.filter
def smallest_by_responses(groups, count: int):
    return smallest(groups, count, "n_responses")


@register.filter
def heat(count: int, whole) -> str:
    """The shade of a table's cell by its share of the whole table (or of its total)."""
    if isinstance(whole, dict):
        whole = sum(sum(row.values()) for row in whole.values())
    if not count or not whole:
        return ""
    part = count / whole
    return "h3" if part >= 0.4 else "h2" if part >= 0.15 else "h1" if part >= 0.04 else "h0"


@register.inclusion_tag("calibration/_number.html")
def number(figure, kind="share"):
    """Value and interval on one line, with a link to the definition. `kind` is a key of `WRITTEN`."""
    write = WRITTEN[kind]
    shown = {key: write(figure[key]) for key in ("value", "low", "high")} if figure else {}
    return {"figure": figure, "shown": shown, "is_share": kind == "share"}


@register.inclusion_tag("calibration/_basis.html")
def basis(figure):
    """What a number rests on: numerator, denominator, items, what was left out, and warnings."""
    return {"figure": figure}


@register.inclusion_tag("calibration/_tile.html")
def tile(figure, kind="share", note=""):
    return {"figure": figure, "is_share": kind == "share", "note": note}


@register.inclusion_tag("calibration/_confusion.html")
def confusion(figures, column_sums=True):
    """A confusion table with its rows and columns named. A judge's column sums are its rate: left out."""
    rows = [
        {
            "label": label,
            "cells": [{"n": n, "same": i == j} for j, n in enumerate(counts)],
            "sum": sum(counts),
        }
        for i, (label, counts) in enumerate(zip(figures["labels"], figures["table"], strict=True))
    ]
    return {
        "figures": figures,
        "rows": rows,
        "whole": sum(row["sum"] for row in rows),
        "column_sums": [sum(column) for column in zip(*figures["table"], strict=True)] if column_sums else [],
    }
