"""Graders and rubrics."""

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from annotate import rubric_text
from annotate.material import content_of
from annotate.models import (
    Dimension,
    Grader,
    Rubric,
    RubricTask,
    RubricVersion,
    WarmUpCase,
)
from annotate.rubric_rules import Content, digest, problems
from annotate.services.targets import Refused
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
    content = {
        "decisions": rubric_text.DECISIONS,
        "reference_based": False,
        "dimensions": [dimension | {"asked_when": None} for dimension in rubric_text.DIMENSIONS],
        "warm_up_cases": rubric_text.WARM_UP_CASES,
    }
    return _first_version(
        evalset=evalset, person=person, name=rubric_text.NAME, is_imported=False, content=content
    )


def latest_rubric(*, evalset: EvalSet, person=None) -> RubricVersion:
    """The newest version of the eval set's own rubric; the built-in first one where there is none yet."""
    first = rubric_v1(evalset=evalset, person=person)
    return first.rubric.versions.order_by("-number")[0]


@transaction.atomic
def write_rubric_version(
    *, rubric: Rubric, content: Content, settles: Iterable[RubricTask] = (), person=None
) -> tuple[RubricVersion, bool]:
    """A new version with this content, and whether it is new: what a version says already is not doubled.

    The tasks that it settles leave the to-do list of the rubric.
    """
    if rubric.is_imported:
        raise Refused(_("The rules of imported labels are not ours to rewrite."))
    if wrong := problems(content):
        raise Refused(" ".join(dict.fromkeys(problem.message for problem in wrong)))
    EvalSet.objects.select_for_update().get(pk=rubric.evalset_id)
    versions = list(rubric.versions.prefetch_related("dimensions", "warm_up_cases").order_by("-number"))
    same = next((version for version in versions if content_of(version) == content), None)
    version = same or _store(rubric, versions[0].number + 1 if versions else 1, content, person)
    RubricTask.objects.filter(
        pk__in=[task.pk for task in settles], rubric=rubric, settled_in=None, dismissed_at=None
    ).update(settled_in=version)
    return version, same is None


def imported_rubric(*, evalset: EvalSet) -> RubricVersion:
    """Imported labels were given under rules that we do not hold: names only, and never pooled with ours."""
    dimensions = [
        {
            "name": name,
            "target": TARGET_OF[name],
            "question": "",
            "asked_when": None,
            "labels": [
                {"name": label, "key": str(key), "definition": "", "examples": []}
                for key, label in enumerate(labels, start=1)
            ],
        }
        for name, labels in LABELS.items()
    ]
    content = {"decisions": "", "reference_based": False, "dimensions": dimensions, "warm_up_cases": []}
    return _first_version(evalset=evalset, person=None, name="imported", is_imported=True, content=content)


@transaction.atomic
def _first_version(*, evalset: EvalSet, person, name: str, is_imported: bool, content: Content):
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    rubric, _made = Rubric.objects.get_or_create(
        evalset=evalset, name=name, defaults={"is_imported": is_imported}
    )
    return rubric.versions.filter(number=1).first() or _store(rubric, 1, content, person)


def _store(rubric: Rubric, number: int, content: Content, person) -> RubricVersion:
    version = RubricVersion.objects.create(
        rubric=rubric,
        number=number,
        decisions=content["decisions"],
        reference_based=content["reference_based"],
        sha256=digest(content),
        created_by=person,
    )
    Dimension.objects.bulk_create(
        Dimension(rubric_version=version, position=position, **dimension)
        for position, dimension in enumerate(content["dimensions"], start=1)
    )
    WarmUpCase.objects.bulk_create(
        WarmUpCase(rubric_version=version, position=position, **case)
        for position, case in enumerate(content["warm_up_cases"], start=1)
    )
    return version
