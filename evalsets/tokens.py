"""Tokens of the API: made once, shown once, taken back."""

from collections.abc import Sequence
from datetime import timedelta

from evalsets.models import ApiToken


def make_token(*, person, name: str, scopes: Sequence[str], days: int) -> tuple[ApiToken, str]:
    """The token's row, and the token itself, which is stored nowhere."""
    return ApiToken.objects.create(
        user=person,
        name=name,
        scopes=[scope for scope in ApiToken.Scope.values if scope in scopes],
        expiry=timedelta(days=days),
    )


def tokens_of(person):
    return ApiToken.objects.filter(user=person)


def revoke_token(*, person, token_key: str) -> ApiToken | None:
    """The token that is no more; None where the person has no such token."""
    token = tokens_of(person).filter(token_key=token_key).first()
    if token is not None:
        token.delete()
    return token
