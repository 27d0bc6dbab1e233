"""Who may open an eval set. Not there and not yours are the same answer: 404."""

from django.http import Http404

from evalsets.models import EvalSet, EvalSetVersion, Membership

LEAD, GRADER = Membership.Role.LEAD, Membership.Role.GRADER


def has_role(person, evalset, *roles) -> bool:
    return roles_of(person, *roles).filter(evalset=evalset).exists()


def roles_of(person, *roles):
    """Where the person holds one of the roles (default: any); nowhere once deactivated."""
    held = Membership.objects.filter(person=person, role__in=roles or (LEAD, GRADER))
    return held if person.is_active else held.none()


def evalset_of(person, slug, *roles) -> EvalSet:
    evalset = EvalSet.objects.filter(slug=slug).first()
    if evalset is None or not has_role(person, evalset, *roles):
        raise Http404
    return evalset


def version_of(person, slug, number, *roles) -> EvalSetVersion:
    """The version, for somebody who holds one of the roles (default: lead)."""
    evalset = evalset_of(person, slug, *(roles or (LEAD,)))
    version = EvalSetVersion.objects.select_related("evalset").filter(evalset=evalset, number=number).first()
    if version is None:
        raise Http404
    return version
