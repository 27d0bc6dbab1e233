"""Files through the browser: upload an eval set, add responses to it, take a version away."""

from functools import wraps

from django.conf import settings
from django.contrib import messages
from django.http import StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_http_methods, require_safe

from annotate.access import labels_of
from calibration import exchange
from calibration.native_file import Export
from calibration.sightings import note_sightings
from calibration.uploads import is_plain_native, receive, start
from evalsets.access import version_of
from evalsets.api.bodies import ROOM_FOR_THE_FORM, says_it_is_larger
from evalsets.forms import FileForm, UploadForm
from evalsets.importing import ImportRefused
from evalsets.importing.reading import MEGABYTE


def within_the_limit(view):
    """Answers a body above the limit before it is parsed; the form's token is checked after that."""
    protected = csrf_protect(view)

    @csrf_exempt
    @wraps(view)
    def guarded(request, *args, **kwargs):
        if says_it_is_larger(request, settings.IMPORT_MAX_BYTES + ROOM_FOR_THE_FORM):
            _read_away(request)
            return render(request, "calibration/upload_too_large.html", _limit(), status=413)
        return protected(request, *args, **kwargs)

    return guarded


def _read_away(request) -> None:
    """A browser that still sends does not see an answer; up to twice the limit is taken off its hands."""
    left = 2 * settings.IMPORT_MAX_BYTES
    while left > 0 and (chunk := request.read(MEGABYTE)):
        left -= len(chunk)


def _limit() -> dict:
    return {"max_bytes": settings.IMPORT_MAX_BYTES, "max_megabytes": settings.IMPORT_MAX_BYTES // MEGABYTE}


@within_the_limit
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request):
    form = UploadForm(
        request.POST or None, request.FILES or None, initial={"name": request.GET.get("name", "")}
    )
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            if not is_plain_native(given["file"], given["file"].name):
                return _kept(request, given, name=given["name"])
            told = exchange.import_evalset(
                stream=given["file"].file,
                filename=given["file"].name,
                name=given["name"],
                person=request.user,
                with_labels=given["with_labels"],
            )
        except ImportRefused as refused:
            return _refused(request, "calibration/upload.html", {"form": form}, refused)
        messages.success(request, _counted(told["counts"]))
        return redirect("evalsets:version", told["evalset"], told["version"])
    return _form(request, "calibration/upload.html", {"form": form})


@within_the_limit
@require_http_methods(["GET", "HEAD", "POST"])
def upload_responses(request, slug, number):
    version = version_of(request.user, slug, number)
    form = FileForm(request.POST or None, request.FILES or None)
    context = {"version": version, "form": form}
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            if version.is_frozen and not is_plain_native(given["file"], given["file"].name):
                return _kept(request, given, into=version)
            told = exchange.import_responses(
                stream=given["file"].file,
                filename=given["file"].name,
                version=version,
                with_labels=given["with_labels"],
            )
        except ImportRefused as refused:
            return _refused(request, "calibration/upload_responses.html", context, refused)
        messages.success(request, _counted(told["counts"]))
        return redirect("evalsets:version", slug, number)
    return _form(request, "calibration/upload_responses.html", context)


def _kept(request, given, **destination):
    """Another tool's file waits for its columns; a large one for a worker. Both have a page of their own."""
    upload = receive(
        person=request.user,
        file=given["file"],
        filename=given["file"].name,
        with_labels=given["with_labels"],
        **destination,
    )
    if upload.state == upload.State.QUEUED:
        start(upload=upload)
    return redirect("calibration:upload_page", upload.pk)


def _form(request, template: str, context: dict):
    status = 422 if context["form"].is_bound else 200
    return render(request, template, {**context, **_limit()}, status=status)


def _refused(request, template: str, context: dict, refused: ImportRefused):
    context = {**context, **_limit(), "problems": refused.problems, "left_out": refused.left_out}
    return render(request, template, context, status=422)


def _counted(counts: dict[str, int]) -> str:
    counted = _(
        "Imported %(items)d items, %(responses)d responses, %(passages)d passages, %(claims)d claims."
    )
    labelled = _("%(annotations)d labels and %(verdicts)d verdicts.")
    told = counted % counts
    return f"{told} {labelled % counts}" if counts["annotations"] or counts["verdicts"] else told


@require_safe
def export_version(request, slug, number):
    """The native file. It may hold labels under `original`, hence the door for labels."""
    version = labels_of(request.user, slug, number)
    return native_file(version=version, person=request.user, with_labels=request.GET.get("labels") == "1")


def native_file(*, version, person, with_labels: bool) -> StreamingHttpResponse:
    """The file as it is read from the database. Labels hold verdicts, so who takes them has seen those."""
    if with_labels:
        note_sightings(version=version, person=person)
    export = Export(version, with_labels=with_labels)
    answer = StreamingHttpResponse(export.lines(), content_type="application/x-ndjson")
    answer["Content-Disposition"] = f'attachment; filename="{version.evalset.slug}-v{version.number}.jsonl"'
    return answer
