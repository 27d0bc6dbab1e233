"""A person's own tokens for the API."""

from django.conf import settings
from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from evalsets.forms import TokenForm
from evalsets.tokens import make_token, revoke_token, tokens_of


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def tokens(request):
    """A new token stands in the answer to the form, once; it is never shown again."""
    form = TokenForm(request.POST or None)
    made, secret = None, ""
    if request.method == "POST" and form.is_valid():
        made, secret = make_token(person=request.user, **form.cleaned_data)
        form = TokenForm()
    context = {
        "form": form,
        "made": made,
        "secret": secret,
        "tokens": tokens_of(request.user),
        "example": f"{settings.PUBLIC_URL or request.build_absolute_uri('/')[:-1]}{reverse('api')}",
    }
    return render(request, "tokens/tokens.html", context, status=422 if form.errors else 200)


@require_POST
def revoke(request, token):
    revoked = revoke_token(person=request.user, token_key=token)
    if revoked is None:
        raise Http404
    messages.success(request, _("The token %(name)s opens nothing any more.") % {"name": revoked})
    return redirect("evalsets:tokens")
