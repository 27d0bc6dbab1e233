from django.shortcuts import render
from django.views.decorators.http import require_safe

from calibration.method import method_html


@require_safe
def method(request):
    return render(request, "calibration/method.html", {"text": method_html()})
