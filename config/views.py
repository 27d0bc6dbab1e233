"""The pages that belong to no app: home, health, and what to do when a form token is missing."""

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import JsonResponse
from django.shortcuts import render

from annotate.queries import work_of
from evalsets.queries import evalsets_of


def home(request):
    return render(
        request, "home.html", {"work": work_of(request.user), "evalsets": evalsets_of(request.user)}
    )


@login_not_required
def healthz(request):
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return JsonResponse({"status": "ok", "version": settings.APP_VERSION})


@login_not_required
def csrf_failure(request, reason=""):
    context = {
        "reason": reason,
        "public_url": settings.PUBLIC_URL,
        "origin": request.headers.get("Origin", ""),
    }
    return render(request, "csrf_failure.html", context, status=403)
