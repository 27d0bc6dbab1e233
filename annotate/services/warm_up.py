"""The warm-up: known cases before a round counts."""

from django.db import transaction
from django.utils.translation import gettext as _

from annotate.models import Dimension, Grader, Round, WarmUpAnswer, WarmUpCase
from annotate.services.targets import Conflict, checked_label


@transaction.atomic
def answer_warm_up(
    *, case: WarmUpCase, grader: Grader, label: str, milliseconds: int | None = None
) -> WarmUpAnswer:
    """What the grader says of a known case; the first answer stays, whatever is sent after it."""
    asked_of = Dimension.objects.get(rubric_version=case.rubric_version_id, name=case.dimension)
    checked_label(asked_of, label)
    answer, _made = WarmUpAnswer.objects.get_or_create(
        case=case, grader=grader, defaults={"label": label, "milliseconds": milliseconds}
    )
    return answer


def is_warming_up(round: Round, grader: Grader) -> bool:
    """Whether known cases of the round's rubric still wait for this grader."""
    if not round.warm_up:
        return False
    cases = WarmUpCase.objects.filter(rubric_version=round.rubric_version_id)
    return cases.exclude(answers__grader=grader).exists()


def check_warmed_up(round: Round, grader: Grader) -> None:
    if is_warming_up(round, grader):
        raise Conflict(_("The warm-up comes first: your labels count once you have been through it."))
