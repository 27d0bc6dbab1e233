"""What the parts of a rubric, and the presets for it, are called on the pages."""

from django.utils.translation import gettext_lazy as _

BUNDLE_NAMES = {
    "rag_harness": _("A RAG harness: faithfulness with refusals kept apart"),
    "abstention_matrix": _("An abstention matrix: does it know when to refuse?"),
    "hallucination_rate": _("A hallucination rate by claim, response and decision"),
    "document_qa": _("Document Q&A: types of hallucination, citations, correctness"),
    "refusal_checker": _("A refusal checker: refusals and wrong answers"),
}
PARTS = {
    "decisions": _("Written decisions"),
    "reference_based": _("With the reference answer"),
    "dimensions": _("Dimensions"),
    "warm_up_cases": _("Warm-up cases"),
    "target": _("asked of"),
    "question": _("question"),
    "asked_when": _("asked when"),
    "labels": _("labels"),
    "key": _("key"),
    "definition": _("definition"),
    "example": _("example"),
    "label": _("label"),
    "explanation": _("explanation"),
    "passages": _("passages"),
}
