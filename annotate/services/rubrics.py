"""Graders and rubrics."""

import hashlib
import json

from django.db import transaction
from django.db.models import Max

from annotate import rubric_text
from annotate.models import (
    Dimension,
    Grader,
    Rubric,
    RubricVersion,
)
from evalsets.labels import LABELS, TARGET_OF
from evalsets.models import EvalSet


@transaction.atomic
def ensure_grader(*, evalset: EvalSet, name: str, person=None) -> Grader:
    """The grader of this person, or of this name where there is no person; made on first use."""
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    graders = Grader.objects.filter(evalset=evalset)
    found = graders.filter(person=person).first() if person else graders.filter(name=name).first()
    if found:
        return found
    # An imported grader of the same name is somebody else as far as anybody can prove.
    taken = set(graders.values_list("name", flat=True))
    free, suffix = name, 2
    while free in taken:
        free, suffix = f"{name} ({suffix})", suffix + 1
    number = (graders.aggregate(last=Max("number"))["last"] or 0) + 1
    return Grader.objects.create(evalset=evalset, name=free, person=person, number=number)


def rubric_v1(*, evalset: EvalSet, person=None) -> RubricVersion:
    return _rubric(
        evalset=evalset,
        person=person,
        name=rubric_text.NAME,
        is_imported=False,
        decisions=rubric_text.DECISIONS,
        dimensions=rubric_text.DIMENSIONS,
    )


def imported_rubric(*, evalset: EvalSet) -> RubricVersion:
    """Imported labels were given under rules that we do not hold: names only, and never pooled with ours."""
    dimensions = [
        {
            "name": name,
            "target": TARGET_OF[name],
            "question": "",
            "labels": [
                {"name": label, "key": str(key), "definition": "", "examples": []}
                for key, label in enumerate(labels, start=1)
            ],
        }
        for name, labels in LABELS.items()
    ]
    return _rubric(
        evalset=evalset, person=None, name="imported", is_imported=True, decisions="", dimensions=dimensions
    )


@transaction.atomic
def _rubric(*, evalset, person, name, is_imported, decisions, dimensions) -> RubricVersion:
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    rubric, _made = Rubric.objects.get_or_create(
        evalset=evalset, name=name, defaults={"is_imported": is_imported}
    )
    version = rubric.versions.filter(number=1).first()
    if version:
        return version
    text = json.dumps([decisions, dimensions], ensure_ascii=False, sort_keys=True)
    version = RubricVersion.objects.create(
        rubric=rubric,
        number=1,
        decisions=decisions,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        created_by=person,
    )
    Dimension.objects.bulk_create(
        Dimension(rubric_version=version, position=position, **dimension)
        for position, dimension in enumerate(dimensions, start=1)
    )
    return version
