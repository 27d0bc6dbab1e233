"""Codes of the figures in words, for pages. The codes themselves stay in JSON, files and tests."""

from django.utils.translation import gettext_lazy as _

LEFT_OUT = {
    "empty_response": _("the response is empty"),
    "not_assigned": _("not assigned to both"),
    "no_label": _("no label in the file"),
    "not_labelled": _("not labelled yet"),
    "labelled_once": _("labelled by one person only"),
    "unresolved": _("the graders differ and nobody has decided yet"),
    "gold_saw_judge": _("decided with a verdict in view"),
    "not_judged": _("not part of the judge run"),
    "verdict_failed": _("the verdict failed"),
    "verdict_pending": _("the verdict is still awaited"),
    "split": _("split into parts, which count instead"),
    "not_asked": _("not asked, by the rubric's own condition"),
    "not_graded": _("this dimension was not graded"),
    "no_groundedness": _("correct, but nobody said whether it is grounded"),
    "no_relevance": _("nobody said whether a decision rests on it"),
    "no_statement": _("responses without a claim"),
    "no_citation": _("responses without a citation"),
    "not_answered": _("responses that do not answer"),
    "no_expectation": _("no expected passage or document is recorded"),
    "only_a": _("with a label after only"),
    "only_b": _("with a label before only"),
    "unverifiable": _("unverifiable"),
    "unlabelled": _("no label"),
    "unlabelled_claims": _("responses with claims that have no label"),
    "part_of_split": _("a part of a split claim, which the lead decided"),
    "not_decision_critical": _("not marked as decision-critical"),
    "no_valid_verdict": _("no valid label"),
    "empty": _("empty responses"),
    "all_unverifiable": _("responses whose claims are all unverifiable"),
    "extraction_gap": _("answers in which no claim was found"),
    "not_audited": _("claims of drawn responses that nobody has finished yet"),
    "missing_gold": _("no gold label"),
    "missing_judge": _("no valid verdict"),
    "missing_both": _("neither label"),
    "missing_a": _("no label by the first"),
    "missing_b": _("no label by the second"),
}

UNDEFINED = {
    "empty_overlap": _("undefined: nothing was labelled by both"),
    "one_label_only": _("undefined: both used one and the same label, so agreement by chance is complete"),
    "zero_denominator": _("undefined: there is nothing to divide by"),
    "too_few_clusters": _("undefined: fewer than two items"),
    "singular_confusion": _("undefined: the confusion matrix cannot be inverted reliably"),
    "judge_not_better_than_chance": _("undefined: the judge cannot be told from chance"),
    "single_class_gold": _("undefined: the gold labels hold only one class"),
    "method_not_valid_for_design": _("undefined: the sampling design does not allow this method"),
    "no_expectation": _("undefined: no expected passage or document is recorded"),
    "empty_stratum": _("undefined: a stratum with weight has no observation"),
    "not_audited": _("not audited: nobody has checked how the claims were extracted"),
}

UNDEFINED_BRIEFLY = {
    "empty_overlap": _("undefined: no overlap"),
    "one_label_only": _("undefined: one label only"),
    "zero_denominator": _("undefined: nothing counted"),
    "too_few_clusters": _("undefined: fewer than two items"),
    "single_class_gold": _("undefined: gold has one class"),
    "not_audited": _("not audited"),
}

SHORT_LABELS = {
    "supported": _("supp."),
    "contradicted": _("contr."),
    "unsupported": _("unsup."),
    "unverifiable": _("unver."),
}

FLAGS = {
    "clipped": _("the estimate left its possible range and was set to the border"),
    "too_few_clusters": _("fewer than ten items: the interval is rough"),
    "prevalence": _("prevalence effect: one label dominates, which pulls kappa down; read AC1 and PABAK too"),
    "gold_incomplete": _("gold is not complete, so the graders stand in for it"),
    "one_grader_constant": _("one side used a single label, so there is no interval"),
    "no_variation": _("leaving out any one item changes nothing, so there is no interval"),
    "mostly_unverifiable": _("more than 20 % of the claims are unverifiable: this covers the checkable part"),
    "on_simplex": _("the solution had a share below zero: the nearest possible one is shown"),
    "strata_overlap": _("items occur in several strata, which are treated as independent"),
    "equal_error_assumed": _("assumes that the judge errs equally on both systems"),
    "not_resolvable": _("smaller than what this set and judge can show reliably"),
    "nothing_resolvable": _("so few items show no difference reliably, however large"),
    "small_sample": _("fewer than 20: read the counts, not the percentage"),
}

GATE_STATES = {
    "UNCALIBRATED": _("Uncalibrated: nobody knows yet how far it can be trusted"),
    "STALE": _("Stale: this is no longer the judge that was calibrated"),
    "INSUFFICIENT": _("Insufficient: too little to tell"),
    "RUBRIC_NOT_READY": _("Rubric not ready: the graders do not agree with each other"),
    "NOT_TRUSTED": _("Not trusted"),
    "TRUSTED": _("Trusted"),
}

GATE_NEXT = {
    "UNCALIBRATED": _(
        "Let two people label the same responses, blind to each other, and settle where they differ. "
        "Then build a report."
    ),
    "STALE": _("Run the judge again as it is now and build a new report."),
    "INSUFFICIENT": _("Label or judge what is missing below, then build a new report."),
    "RUBRIC_NOT_READY": _(
        "Rewrite the rubric where the graders differ most, add examples, and grade a new round. "
        "The judge is not assessed before the people agree."
    ),
    "NOT_TRUSTED": _(
        "Read where judge and people differ, change the prompt or the model (that makes another judge) or "
        "label more, and build a new report."
    ),
    "TRUSTED": _("Its rates may be shown, with this report beside them."),
}

CONDITIONS = {
    "fingerprint": _("Same instrument as calibrated"),
    "calibration_age": _("Calibration is recent"),
    "valid_verdicts": _("Valid verdicts"),
    "targets": _("Enough targets labelled twice and judged"),
    "responses": _("Enough responses behind them"),
    "gold_positive grounding": _("Enough bad claims: contradicted or unsupported"),
    "gold_negative grounding": _("Enough other claims"),
    "gold_positive abstention": _("Enough responses that are REFUSED"),
    "gold_negative abstention": _("Enough responses that are ANSWERED"),
    "gold_positive of any other": _("Enough of the bad label"),
    "gold_negative of any other": _("Enough of the other labels"),
    "human_agreement": _("Graders agree with each other"),
    "judge_agreement": _("Judge agrees with people, lower limit"),
    "non_inferiority": _("Not worse than a second person, lower limit"),
    "youden": _("Tells the two classes apart (Se + Sp − 1), lower limit"),
}

QUESTIONS = {
    "answerable": _("answerable"),
    "unanswerable": _("unanswerable"),
    "underspecified": _("underspecified"),
}

UNANSWERABLE = {
    "out_of_scope": _("out of scope"),
    "in_domain_absent": _("in the domain, but absent"),
    "false_premise": _("false premise"),
    "time_shifted": _("time-shifted"),
    "permission_shifted": _("permission-shifted"),
    "underspecified": _("underspecified"),
}

SOURCES = {
    "agreed": _("both graders agreed"),
    "adjudicated": _("decided by the lead"),
    "single": _("one grader only"),
}

RATES = {
    "hallucination": _("Hallucination rate"),
    "contradicted": _("Contradicted rate"),
    "unverifiable_share": _("Unverifiable share"),
    "faithfulness": _("Faithfulness"),
    "over_answering": _("Over-answering"),
    "over_refusal": _("Over-refusal"),
    "clarification": _("Asks back where it should"),
    "needless_clarification": _("Asks back needlessly"),
    "informativeness": _("Informative refusals"),
}

RATE_MEANINGS = {
    "hallucination": _("contradicted or unsupported, of what the sources can decide"),
    "contradicted": _("the sources say otherwise, of the same"),
    "unverifiable_share": _("the sources cannot decide, of everything labelled"),
    "faithfulness": _("the rest: 1 − hallucination rate"),
    "over_answering": _("answered although the sources hold no answer"),
    "over_refusal": _("refused although the sources hold the answer"),
    "clarification": _("asks back where the question is underspecified"),
    "needless_clarification": _("asks back although the question can be answered"),
    "informativeness": _("of correct refusals, those that say what is missing"),
}

AGAINST_BAR = {
    "clears": _("the lower limit clears the bar"),
    "open": _("above the bar, but not surely"),
    "below": _("below the bar"),
    "undefined": _("undefined"),
}

MEASURES = {"cohen_kappa": _("Cohen's kappa"), "krippendorff_alpha": _("Krippendorff's alpha")}

OPTIONAL = {
    "hallucination_type": _("Kind of hallucination"),
    "hallucination_axes": _("Subtle or evident, conflict or baseless"),
    "decision_relevance": _("Claims that a decision rests on"),
    "decision_hallucination": _("Hallucination where a decision rests on it"),
    "citation_recall": _("Do the cited passages bear the claim out?"),
    "citation_support": _("Support of each citation"),
    "citation_scores": _("Citation recall and precision"),
    "refusal_informativeness": _("Informative refusals"),
    "correctness": _("Correctness of the answers"),
    "groundedness": _("Groundedness of the answers"),
    "correctness_and_groundedness": _("Wrong, misgrounded, declined"),
    "correctness_against_reference": _("The same where a reference answer is recorded"),
    "context_relevance": _("Relevance of the served passages"),
}

CAUSES = {
    "retriever owes a passage": _("the retriever owes a passage"),
    "generator strayed": _("the generator strayed"),
    "no expectation recorded": _("no expectation recorded"),
}

CHANGE_VERDICTS = {
    "improvement": (
        _("Improvement"),
        _("One of over-answering and over-refusal dropped, and the other did not rise."),
    ),
    "regression": (
        _("Regression"),
        _("One of over-answering and over-refusal rose, and the other did not drop."),
    ),
    "trade": (_("A trade"), _("One of over-answering and over-refusal dropped while the other rose.")),
    "not distinguishable": (
        _("Not distinguishable"),
        _("Neither over-answering nor over-refusal changed by more than this set can tell from nothing."),
    ),
}

EXTRACTION_FAULTS = {
    "badly_split": _("badly split"),
    "not_in_response": _("not in the response"),
}

THRESHOLDS = {
    "min_valid_rate": _("Valid verdicts, at least"),
    "min_targets": _("Targets labelled twice and judged, at least"),
    "min_targets_per_system": _("The same for one system"),
    "min_responses": _("Responses behind them, at least"),
    "min_positive": _("Positive targets (bad claims, REFUSED responses), at least"),
    "min_negative": _("Negative targets, at least"),
    "min_human_agreement": _("Agreement of the graders, at least"),
    "min_judge_agreement": _("Agreement of the judge with people, lower limit at least"),
    "non_inferiority_margin": _("How far the judge may fall behind a second person"),
    "min_youden": _("Sensitivity + specificity − 1, lower limit at least"),
    "max_age_days": _("Age of a calibration in days, at most"),
    "level": _("Confidence level of the limits"),
}

DESIGNS = {
    "random": _("a random share of the judged pool"),
    "stratified": _("a random share within each stratum"),
    "enriched": _("enriched: rare cases were sought"),
    "imported": _("imported with the data"),
}

BASELINES = {
    "majority-label": _("always the most frequent label"),
    "lexical-baseline": _("words in common with a passage"),
    "phrase-matcher": _("phrases of refusing"),
    "trained-baseline": _("trained on the labels of other items"),
}
