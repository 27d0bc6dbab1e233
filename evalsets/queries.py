"""Shared reads."""

from evalsets.models import EvalSet


def evalsets_of(person):
    """The eval sets a person belongs to, each with the roles held as `roles`."""
    evalsets = EvalSet.objects.filter(memberships__person=person).distinct().prefetch_related("versions")
    roles: dict[int, list[str]] = {}
    for membership in person.memberships.all():
        roles.setdefault(membership.evalset_id, []).append(membership.role)
    for evalset in evalsets:
        evalset.roles = sorted(roles[evalset.pk])
    return list(evalsets)
