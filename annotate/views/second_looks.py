"""The lead draws a second look at what was graded; what comes of it is shown beside the agreement."""

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from annotate import services
from annotate.access import labels_of
from annotate.forms import SecondLookForm
from annotate.models import Round


@require_http_methods(["GET", "HEAD", "POST"])
def draw_second_look(request, slug, number, round_number):
    version = labels_of(request.user, slug, number)
    round = get_object_or_404(
        Round.objects.exclude(kind=Round.Kind.SECOND_LOOK), version=version, number=round_number
    )
    pool = services.drawable(round=round)
    form = SecondLookForm(request.POST or None, round=round, pool=pool, initial={"seed": services.new_seed()})
    if form.is_valid():
        try:
            second = form.draw(person=request.user)
            messages.success(request, _("Round %(number)s is open.") % {"number": second.number})
            return redirect("annotate:round", slug, number, second.number)
        except services.Refused as refused:
            form.add_error(None, str(refused))
    context = {
        "version": version,
        "round": round,
        "form": form,
        "pool": pool,
        "rubric": services.second_look_rubric(round),
    }
    return render(request, "annotate/draw_second_look.html", context, status=400 if form.errors else 200)
