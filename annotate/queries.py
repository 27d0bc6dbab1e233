"""Shared reads."""

from django.db.models import Count, Q

from annotate.models import Assignment, Round


def work_of(person):
    """The rounds a person grades in, with their own done and total counts."""
    return list(
        Round.objects.filter(assignments__grader__person=person)
        .exclude(kind=Round.Kind.IMPORTED)
        .select_related("version__evalset")
        .annotate(
            total=Count("assignments", filter=Q(assignments__grader__person=person)),
            done=Count(
                "assignments",
                filter=Q(assignments__grader__person=person, assignments__state=Assignment.State.DONE),
            ),
        )
        .order_by("-pk")
    )
