"""Agreement, rates, corrections and power for labelled evaluation sets.

Every public name can be imported from here; a module is loaded when one of its names is first asked for, so
importing the package costs next to nothing.
"""

from importlib import import_module
from typing import Any

_HOMES: dict[str, tuple[str, ...]] = {
    "abstention": ("AbstentionRates", "ReasonRow", "abstention_rates", "question_class"),
    "agreement": (
        "ConfusionTable",
        "KappaResult",
        "LabelAgreement",
        "cohen_kappa",
        "confusion_table",
        "gwet_ac1",
        "pabak",
        "per_label_agreement",
        "percent_agreement",
    ),
    "bias": ("LabelDifference", "MarginalHomogeneity", "TestResult", "marginal_homogeneity"),
    "intervals": ("clustered_rate", "wilson"),
    "judging": ("JudgeVsGold", "LabelScores", "judge_vs_gold"),
    "labels": (
        "ABSTENTION_LABELS",
        "BAD_LABELS",
        "GROUNDING_LABELS",
        "QUESTION_CLASSES",
        "UNANSWERABLE_REASONS",
    ),
    "power": ("kappa_half_width", "kappa_n_for_half_width", "kappa_sample_size"),
    "rates": ("HallucinationRates", "hallucination_rates"),
    "reliability": ("fleiss_kappa", "krippendorff_alpha"),
    "resampling": ("Jackknife", "cluster_bootstrap", "jackknife"),
    "results": ("FLAGS", "UNDEFINED_REASONS", "Number", "undefined_number"),
}

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
