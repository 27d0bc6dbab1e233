"""Which claims count once some of them were split, and some of the splits taken back."""

from django.db.models import Exists, OuterRef, QuerySet

from evalsets.models import Claim


def parts_that_count() -> QuerySet[Claim]:
    """Parts of claims whose split holds."""
    return Claim.objects.filter(parent__isnull=False, withdrawal__isnull=True)


def leaves(claims: QuerySet[Claim]) -> QuerySet[Claim]:
    """Of these claims those that count: parts in the place of each that is split, whole ones elsewhere."""
    return claims.filter(~Exists(parts_that_count().filter(parent=OuterRef("pk"))), withdrawal__isnull=True)
