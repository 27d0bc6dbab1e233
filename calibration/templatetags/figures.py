"""How a number object looks on a page: value, interval, what it rests on, and the way to its definition."""

from django import template

from calibration import words

register = template.Library()
MINUS = "\u2212"
UNKNOWN = "\u2013"


def _signed(text: str) -> str:
    return text.replace("-", MINUS)


@register.filter
def coefficient(value) -> str:
    """0.4701 as 0.47."""
    return UNKNOWN if value is None else _signed(f"{value:.2f}")


@register.filter
def share(value) -> str:
    """0.7055 as 70.6 %."""
    return UNKNOWN if value is None else _signed(f"{100 * value:.1f}\u202f%")


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
def flag_words(code: str):
    return words.FLAGS.get(code, code)


@register.filter
def condition_words(name: str):
    return words.CONDITIONS.get(name, name)


@register.filter
def state_words(state: str):
    return words.GATE_STATES.get(state, state)


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
def total(mapping) -> int:
    return sum(mapping.values()) if mapping else 0


@register.filter
def heat(count: int, whole: int) -> str:
    """The shade of a table's cell by its share of the whole table."""
    if not count or not whole:
        return ""
    part = count / whole
    return "h3" if part >= 0.4 else "h2" if part >= 0.15 else "h1" if part >= 0.04 else "h0"


@register.inclusion_tag("calibration/_number.html")
def number(figure, kind="share"):
    """Value and interval on one line, with a link to the definition. `kind` is share or coefficient."""
    return {"figure": figure, "is_share": kind == "share"}


@register.inclusion_tag("calibration/_basis.html")
def basis(figure):
    """What a number rests on: numerator, denominator, items, what was left out, and warnings."""
    return {"figure": figure}


@register.inclusion_tag("calibration/_tile.html")
def tile(figure, kind="share", note=""):
    return {"figure": figure, "is_share": kind == "share", "note": note}


@register.inclusion_tag("calibration/_confusion.html")
def confusion(figures):
    """A confusion table with its rows and columns named."""
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
        "column_sums": [sum(column) for column in zip(*figures["table"], strict=True)],
    }
