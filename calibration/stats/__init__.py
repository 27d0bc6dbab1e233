"""Agreement, rates, corrections and power for labelled evaluation sets.

Every public name can be imported from here; a module is loaded when one of its names is first asked for, so
importing the package costs next to nothing.
"""

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing alone would be most of the import time
    from typing import Any

_HOMES = {
    "abstention": ("AbstentionRates", "ReasonRow", "abstention_rates", "question_class"),
    "agreement": ("KappaResult", "cohen_kappa", "percent_agreement"),
    "bias": ("LabelDifference", "MarginalHomogeneity", "TestResult", "marginal_homogeneity"),
    "chance": ("gwet_ac1", "pabak"),
    "citations": ("CitationScores", "CitedResponse", "Statement", "citation_scores"),
    "companions": (
        "ExtractionError",
        "ResponseLengths",
        "RunControl",
        "answer_rate",
        "extraction_error",
        "lengths_in_words",
        "response_lengths",
        "run_control",
    ),
    "comparison": (
        "Comparison",
        "EqualErrorTest",
        "compare_rates",
        "corrected_difference",
        "equal_error_test",
    ),
    "consistency": ("RunVariance", "SelfConsistency", "run_variance", "self_consistency"),
    "correction": ("CorrectedShare", "correct_bad_share", "rogan_gladen"),
    "drift": (
        "ChartedShare",
        "SentinelDrift",
        "SeriesPoint",
        "ShareChange",
        "agreement_drift",
        "control_chart",
        "run_chart",
        "sentinel_drift",
        "step_test",
    ),
    "intervals": ("clustered_rate", "intraclass_correlation", "kish_design_effect", "wilson"),
    "inversion": ("MulticlassCorrection", "invert_confusion"),
    "judging": ("JudgeVsGold", "LabelScores", "judge_vs_gold", "sensitivity_and_specificity"),
    "labels": (
        "ABSTENTION_LABELS",
        "BAD_LABELS",
        "GROUNDING_LABELS",
        "QUESTION_CLASSES",
        "UNANSWERABLE_REASONS",
    ),
    "label_pairs": ("LabelPairCost", "label_pair_costs"),
    "mappings": (
        "MageshRates",
        "SpanLabel",
        "magesh_rates",
        "ragtruth_claim_labels",
        "ragtruth_response",
        "ragtruth_span",
    ),
    "per_label": ("ConfusionTable", "LabelAgreement", "confusion_table", "per_label_agreement"),
    "planner": ("GatePower", "OverlapPlan", "gate_power", "kappa_power", "plan_overlap"),
    "power": (
        "calibration_half_width",
        "differential_error_bias",
        "kappa_half_width",
        "kappa_n_for_half_width",
        "kappa_sample_size",
        "minimum_detectable_difference",
        "n_per_system",
        "paired_minimum_detectable_difference",
    ),
    "ppi": ("ppi_mean", "ppi_ratio"),
    "proportions": ("McNemar", "mcnemar", "newcombe_difference", "two_proportion_test"),
    "rates": ("HallucinationRates", "hallucination_rates"),
    "reliability": ("fleiss_kappa", "krippendorff_alpha"),
    "replacement": ("AltTest", "alt_test"),
    "resampling": ("Jackknife", "cluster_bootstrap", "jackknife"),
    "results": ("FLAGS", "UNDEFINED_REASONS", "Number", "undefined_number"),
    "retrieval": ("RetrievalMeans", "RetrievalScore", "retrieval_means", "retrieval_score", "who_owes"),
    "shares": ("LabelShare", "label_shares"),
    "stratified": ("StratifiedRate", "stratified_rate"),
    "usage": ("LabelUse", "label_use"),
    "verdicts": ("PairVerdict", "family_of", "pair_verdict"),
}

_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> "Any":
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
