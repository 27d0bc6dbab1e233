from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from annotate.access import labels_of
from calibration import figures
from calibration.comparing import release_note
from calibration.rates_scope import CompareForm

KINDS = ("svg", "png", "csv")


@require_safe
def compare(request, slug, number):
    version = labels_of(request.user, slug, number)
    form = CompareForm(request.GET or None, version=version)
    context = {"version": version, "form": form, "kinds": KINDS}
    if form.is_valid():
        form.open_to(request.user)
        found = form.compared()
        context |= {
            "found": found,
            "command": form.command(),
            "query": urlencode(form.query()),
            "note": release_note(found) if found.get("rates") else "",
            "pictures": [_drawn(rate) for rate in found.get("rates", ()) if rate["curve"]],
        }
    status = 400 if form.is_bound and form.errors else 200
    return render(request, "calibration/compare.html", context, status=status)


def _drawn(rate) -> dict:
    spec = figures.power_curve(rate)
    return rate | {"svg": figures.inline_svg(spec, figures.power_described(rate))}


@require_safe
def compare_chart(request, slug, number, picture, kind):
    """What the set could show of one rate, as a file."""
    version = labels_of(request.user, slug, number)
    form = CompareForm(request.GET, version=version)
    if not form.is_valid():
        raise Http404
    form.open_to(request.user)
    rates = {rate["name"]: rate for rate in form.compared().get("rates", ()) if rate["curve"]}
    if picture not in rates:
        raise Http404
    content, mime = figures.as_file(
        figures.power_curve(rates[picture]), figures.power_csv(rates[picture]), kind
    )
    name = f"detectable-{picture}-{slug}-{number}.{kind}"
    return HttpResponse(
        content, content_type=mime, headers={"Content-Disposition": f'attachment; filename="{name}"'}
    )
