"""Who has looked at single verdicts of a version, and since when.

What somebody decides after that says nothing about a judge: they may have followed it. The times of both are
compared whenever gold is read, so no page of adjudication has to remember to say so.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db.models import Min

from calibration.models import JudgeRun, VerdictSighting
from evalsets.models import EvalSetVersion

FirstSeen = Mapping[int, datetime]  # person -> when they first saw a verdict of the version


def note_sighting(*, run: JudgeRun, person) -> None:
    """From here on what this person decides about the version is not counted for any judge."""
    VerdictSighting.objects.get_or_create(run=run, person=person)


def note_sightings(*, version: EvalSetVersion, person) -> None:
    """The same for every judge run of a version: a file with all verdicts was handed out."""
    for run in version.judge_runs.all():
        note_sighting(run=run, person=person)


def first_seen(version_id: int) -> dict[int, datetime]:
    seen = VerdictSighting.objects.filter(run__version=version_id)
    return dict(seen.values_list("person").annotate(first=Min("at")).order_by())


def had_seen(seen: FirstSeen, person_id: int | None, at: datetime | None) -> bool:
    """Whether somebody had seen a verdict when they decided."""
    first = seen.get(person_id) if person_id is not None else None
    return first is not None and at is not None and at > first
