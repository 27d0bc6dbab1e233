"""The one shape in which every figure leaves this package."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

UNDEFINED_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "empty_overlap": "nothing was labelled by both",
        "one_label_only": "both used one and the same label, so chance agreement is already complete",
        "zero_denominator": "there is nothing to divide by",
        "too_few_clusters": "fewer than two items",
        "singular_confusion": "the confusion matrix cannot be inverted reliably",
        "judge_not_better_than_chance": "the judge cannot be told from chance",
        "single_class_gold": "the gold labels hold only one class",
        "method_not_valid_for_design": "the sampling design does not allow this method",
        "no_expectation": "no expected passage or document is recorded",
        "empty_stratum": "a stratum with weight has no observation",
        "not_audited": "nobody has checked how the claims were extracted",
    }
)

FLAGS: Mapping[str, str] = MappingProxyType(
    {
        "clipped": "the estimate left its possible range and was set to the border",
        "too_few_clusters": "fewer than ten items: the interval is rough",
        "prevalence": "prevalence effect: one label dominates or kappa and AC1 disagree",
        "gold_incomplete": "not every overlap target is resolved, so the graders stand in for gold",
        "one_grader_constant": "one side used a single label, so no interval can be given",
        "no_variation": "leaving out any one item changes nothing, so no interval can be given",
        "mostly_unverifiable": "more than 20 % of the claims are unverifiable: "
        "the rate covers only the checkable part",
        "on_simplex": "the unconstrained solution had a negative share; the nearest valid one is shown",
        "equal_error_assumed": "assumes that the judge errs equally on both systems",
        "not_resolvable": "smaller than what this set and judge can resolve reliably",
        "nothing_resolvable": "so few items show no difference reliably, however large",
        "small_sample": "fewer than 20: read the counts, not the percentage",
        "strata_overlap": "items occur in several strata, which are treated as independent",
    }
)

ROUNDING = 1e-12
PLURALS: Mapping[str, str] = MappingProxyType({"query": "queries", "series": "series", "reply": "replies"})

NO_EXCLUSIONS: Mapping[str, Any] = MappingProxyType({})


def finite_or_none(value: float | None) -> float | None:
    """A float for JSON: None stays None, NaN and infinity are refused."""
    if value is None:
        return None
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"a result must be finite, got {value!r}")
    return number


def whole_or_float(value: float) -> int | float:
    """A count for JSON; a sum of thirds that is a whole number but for rounding is one."""
    number = float(value)
    nearest = round(number)
    return nearest if abs(number - nearest) <= ROUNDING * max(1.0, abs(number)) else number


def written_count(count: float) -> str:
    """A count as it is read: whole, or, where units are means over repeated runs, with two digits."""
    whole = whole_or_float(count)
    return f"{whole}" if isinstance(whole, int) else f"{whole:.2f}"


def beside(value: float, bar: float, *, digits: int = 3) -> str:
    """A value with as many digits as it takes to see on which side of a bar it lies."""
    for places in range(digits, 12):
        written = f"{value:.{places}f}"
        if (float(written) >= bar) == (value >= bar):
            return written
    return repr(value)


def written_bar(bar: float) -> str:
    """A bar with two digits, or with all that it has."""
    written = f"{bar:.2f}"
    return written if float(written) == bar else f"{bar:g}"


def counted(excluded: Mapping[str, float] | None) -> Mapping[str, Any]:
    """A read-only copy without the reasons that excluded nothing."""
    if not excluded:
        return NO_EXCLUSIONS
    return MappingProxyType({reason: whole_or_float(count) for reason, count in excluded.items() if count})


def plural(count: float, unit: str) -> str:
    return unit if count == 1 else PLURALS.get(unit, unit + "s")


@dataclass(frozen=True)
class Number:
    """One figure with everything that is needed to read it.

    Attributes
    ----------
    value : float or None
        The estimate; None when it is undefined, and then `undefined` holds the reason code.
    low, high : float or None
        Limits of the confidence interval; None when no honest interval exists.
    level : float
        Confidence level of the interval.
    method : str
        How the interval was made.
    numerator, denominator : float or None
        What was divided by what, where the figure is a share.
    n : int
        Number of units (claims, responses, pairs) behind the figure.
    clusters : int
        Number of independent items behind the figure.
    excluded : mapping of str to float
        What was left out, by reason; whole but where units are means over repeated runs.
    flags : tuple of str
        Warnings to show beside the figure (keys of `FLAGS`).
    definition : str
        Anchor of the figure's entry on the method page.
    undefined : str or None
        Reason code when `value` is None.
    label : str
        The figure's name in words; the unit is part of it.
    unit : str
        What is counted: claim, response, decision, pair, item.
    worst_case : tuple of float, or None
        Range of the figure if everything that failed or is pending had come out one way or the other.
    percentage : bool
        Whether the figure reads as a percentage.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    method: str = ""
    numerator: float | None = None
    denominator: float | None = None
    n: int = 0
    clusters: int = 0
    excluded: Mapping[str, float] = field(default_factory=lambda: NO_EXCLUSIONS)
    flags: tuple[str, ...] = ()
    definition: str = ""
    undefined: str | None = None
    label: str = ""
    unit: str = "claim"
    worst_case: tuple[float, float] | None = None
    percentage: bool = True

    def __post_init__(self) -> None:
        for name in ("value", "low", "high", "numerator", "denominator"):
            object.__setattr__(self, name, finite_or_none(getattr(self, name)))
        if (self.value is None) == (self.undefined is None):
            raise ValueError(f"value and undefined: exactly one of them must be given ({self.label!r})")
        if self.undefined is not None and self.undefined not in UNDEFINED_REASONS:
            raise ValueError(f"undefined must be a known reason code, got {self.undefined!r}")
        unknown = set(self.flags) - set(FLAGS)
        if unknown:
            raise ValueError(f"flags holds the unknown {sorted(unknown)}")
        if (self.low is None) != (self.high is None):
            raise ValueError("low and high must be given together")
        object.__setattr__(self, "excluded", counted(self.excluded))
        object.__setattr__(self, "flags", tuple(dict.fromkeys(self.flags)))

    def with_flags(self, *flags: str) -> "Number":
        """The same figure with further flags."""
        return replace(self, flags=(*self.flags, *flags))

    def as_dict(self) -> dict[str, Any]:
        """The number object of the commands, the API and the exports: JSON without NaN or infinity."""
        number: dict[str, Any] = {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "level": self.level,
            "method": self.method,
        }
        for key in ("numerator", "denominator"):
            part = getattr(self, key)
            if part is not None:
                number[key] = whole_or_float(part)
        number |= {
            "n": int(self.n),
            "clusters": int(self.clusters),
            "excluded": dict(self.excluded),
            "flags": list(self.flags),
            "definition": self.definition,
        }
        if self.label:
            number["label"] = self.label
        number["unit"] = self.unit
        if self.worst_case is not None:
            number["worst_case"] = {"low": float(self.worst_case[0]), "high": float(self.worst_case[1])}
        if self.undefined is not None:
            number["undefined"] = self.undefined
        return number

    def explain(self, write: Callable[[float], str] | None = None) -> str:
        """The figure in one plain sentence; `write` for a value that is no share or score."""
        write = write or self._written
        name = self.label or self.definition or "The value"
        left_out = _left_out(self.excluded)
        if self.value is None:
            return f"{name} is undefined: {UNDEFINED_REASONS[self.undefined or '']} (n = {self.n}){left_out}."
        parts = f"{name}: {write(self.value)}"
        if self.numerator is not None and self.denominator is not None:
            unit = plural(self.denominator, self.unit)
            numerator, denominator = written_count(self.numerator), written_count(self.denominator)
            parts = f"{name}: {numerator} of {denominator} {unit}, {write(self.value)}"
        if self.low is None or self.high is None:
            parts += ", no interval"
        else:
            parts += f" [{write(self.low)}, {write(self.high)}]"
        notes = "".join(f"; {FLAGS[flag]}" for flag in self.flags)
        return f"{parts}{left_out}{notes}."

    def _written(self, value: float) -> str:
        return f"{100 * value:.1f}%" if self.percentage else f"{value:.2f}"


def _left_out(excluded: Mapping[str, float]) -> str:
    if not excluded:
        return ""
    listed = ", ".join(
        f"{written_count(count)} {reason.replace('_', ' ')}" for reason, count in excluded.items()
    )
    return f" (left out: {listed})"


def undefined_number(reason: str, **fields: Any) -> Number:
    """A figure that has no value, with the reason code."""
    return Number(value=None, undefined=reason, **fields)
