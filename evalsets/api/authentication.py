"""Who asks, and what they may ask for: a token with scopes, or the session of a browser."""

from django.utils.translation import gettext as _
from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission

from evalsets.api.problems import Refusal
from evalsets.models import ApiToken


class Token(TokenAuthentication):
    """`Authorization: Bearer ...`, or `Token ...`."""

    def authenticate(self, request):
        scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() not in ("bearer", "token"):
            return None
        if not token.strip().isascii():
            raise AuthenticationFailed(_("Invalid token."))
        return self.authenticate_credentials(token.strip().encode())


class HasScope(BasePermission):
    """A session may do whatever its person may; a token that, within its scopes."""

    def has_permission(self, request, view):
        if not (request.user and request.user.is_authenticated):
            return False
        needed = view.scope_for(request.method)
        if not isinstance(request.auth, ApiToken) or needed is None or needed in request.auth.scopes:
            return True
        words = _("This needs a token with the scope {needed}; this one has: {has}.")
        raise Refusal(
            403, "scope", words.format(needed=needed, has=", ".join(request.auth.scopes) or _("none"))
        )
