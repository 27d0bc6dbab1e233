"""What the rubric should say: noted while adjudicating, settled by a later version."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import Adjudication, Rubric, RubricTask
from annotate.services.rubrics import rubric_v1
from annotate.services.targets import Conflict, Refused


@transaction.atomic
def note_for_rubric(
    *, rubric: Rubric, adjudication: Adjudication | None = None, text: str, person
) -> RubricTask:
    """A task for the next version; of one decision there is one task, whose text the latest call sets.

    Imported rules cannot be rewritten here: what they leave open goes to the eval set's own rubric.
    """
    if adjudication is None and not text.strip():
        raise Refused(_("Say what the rubric should make clear."))
    if rubric.is_imported:
        rubric = rubric_v1(evalset=rubric.evalset, person=person).rubric
    noted = {"rubric": rubric, "text": text.strip(), "created_by": person}
    if adjudication is None:
        return RubricTask.objects.create(**noted)
    task, _made = RubricTask.objects.update_or_create(
        adjudication=adjudication, defaults={"text": text.strip()}, create_defaults=noted
    )
    return task


@transaction.atomic
def dismiss_rubric_task(*, task: RubricTask) -> RubricTask:
    task = RubricTask.objects.select_for_update().get(pk=task.pk)
    if task.settled_in_id is not None:
        raise Conflict(_("This was settled by a later version of the rubric already."))
    if task.dismissed_at is None:
        task.dismissed_at = timezone.now()
        task.save(update_fields=["dismissed_at"])
    return task


@transaction.atomic
def restore_rubric_task(*, task: RubricTask) -> RubricTask:
    task = RubricTask.objects.select_for_update().get(pk=task.pk)
    task.dismissed_at = None
    task.save(update_fields=["dismissed_at"])
    return task
