"""What a label may be about, as the constraints of the database say it."""

from django.db import models
from django.db.models import Q

from evalsets.labels import ABSTENTION, GROUNDING
from evalsets.models import Passage

LABEL_FITS_DIMENSION = (
    Q(dimension="grounding", claim__isnull=False, passage__isnull=True, label__in=GROUNDING)
    | Q(dimension="abstention", claim__isnull=True, passage__isnull=True, label__in=ABSTENTION)
    # The labels of an optional dimension are data of its rubric version.
    | (~Q(dimension__in=["grounding", "abstention"]) & ~Q(label=""))
)


def one_per_target(name, *fields):
    """A unique constraint over a target; NULLs are not equal to each other, hence four partial ones."""
    kinds = {
        "claim": (["claim"], Q(claim__isnull=False, passage__isnull=True)),
        "response": (["response"], Q(claim__isnull=True, passage__isnull=True)),
        "passage": (["passage"], Q(claim__isnull=True, passage__isnull=False)),
        "citation": (["claim", "passage"], Q(claim__isnull=False, passage__isnull=False)),
    }
    return [
        models.UniqueConstraint(fields=[*fields, *more], condition=condition, name=f"{name}_once_per_{kind}")
        for kind, (more, condition) in kinds.items()
    ]


def passage_of_target():
    return models.ForeignKey(Passage, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
