"""The label sets, in the one order in which every table is written."""

GROUNDING_LABELS: tuple[str, ...] = ("supported", "contradicted", "unsupported", "unverifiable")
BAD_LABELS: frozenset[str] = frozenset({"contradicted", "unsupported"})

ABSTENTION_LABELS: tuple[str, ...] = ("REFUSED", "ANSWERED", "CLARIFY")
EMPTY = "EMPTY"

QUESTION_CLASSES: tuple[str, ...] = ("answerable", "unanswerable", "underspecified")
UNANSWERABLE_REASONS: tuple[str, ...] = (
    "out_of_scope",
    "in_domain_absent",
    "false_premise",
    "time_shifted",
    "permission_shifted",
    "underspecified",
)
BAD_SHARE = "Bad share of all claims"
