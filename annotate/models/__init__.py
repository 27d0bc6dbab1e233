"""What people say about the targets: a claim, a whole response, a passage, or a citation."""

from annotate.models.audits import AuditedResponse, AuditSample, ClaimAudit
from annotate.models.decisions import Adjudication, GoldLabel, Opening, RubricTask
from annotate.models.labels import Annotation, AnnotationEvent, ClaimSplit, Flag, WithdrawnPart
from annotate.models.rounds import Assignment, Round, SecondLookTarget, Tally, Unblinding
from annotate.models.rubrics import Dimension, Grader, Rubric, RubricVersion, WarmUpAnswer, WarmUpCase
from annotate.models.targets import one_per_target, passage_of_target

__all__ = [
    "Adjudication",
    "Annotation",
    "AnnotationEvent",
    "Assignment",
    "AuditSample",
    "AuditedResponse",
    "ClaimAudit",
    "ClaimSplit",
    "Dimension",
    "Flag",
    "GoldLabel",
    "Grader",
    "Opening",
    "Round",
    "Rubric",
    "RubricTask",
    "RubricVersion",
    "SecondLookTarget",
    "Tally",
    "Unblinding",
    "WarmUpAnswer",
    "WarmUpCase",
    "WithdrawnPart",
    "one_per_target",
    "passage_of_target",
]
