"""The label sets, in their fixed order. Whatever orders, validates or counts labels reads them here."""

GROUNDING = ("supported", "contradicted", "unsupported", "unverifiable")
ABSTENTION = ("REFUSED", "ANSWERED", "CLARIFY")
LABELS = {"grounding": GROUNDING, "abstention": ABSTENTION}
TARGET_OF = {"grounding": "claim", "abstention": "response"}
LABEL_SET_VERSION = "1"

EMPTY = "EMPTY"  # recorded by the system for an empty response; never a label that somebody gives

UNANSWERABLE_REASONS = (
    "out_of_scope",
    "in_domain_absent",
    "false_premise",
    "time_shifted",
    "permission_shifted",
    "underspecified",
)
