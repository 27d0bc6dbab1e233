"""An uploaded file on its way: its columns, its import, and how far that is."""

from django.http import Http404
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from calibration import uploads
from calibration.mapping_form import MappingForm
from calibration.models import Upload
from calibration.queries import worker_seen
from evalsets.access import version_of
from evalsets.importing import ColumnMap, Findings
from evalsets.importing.mapping import mapping_of

State = Upload.State


def upload_of(person, pk) -> Upload:
    """The upload, for who sent it and may still import it."""
    upload = get_object_or_404(Upload.objects.select_related("into__evalset", "result__evalset"), pk=pk)
    if upload.person_id != person.pk:
        raise Http404
    if upload.into is not None:
        version_of(person, upload.into.evalset.slug, upload.into.number)
    return upload


@require_http_methods(["GET", "HEAD", "POST"])
def upload_page(request, upload):
    upload = upload_of(request.user, upload)
    if upload.state == State.DONE:
        return redirect("evalsets:version", upload.result.evalset.slug, upload.result.number)
    if upload.state in (State.QUEUED, State.RUNNING) or upload.is_native:
        return render(request, "calibration/upload_progress.html", _progress(upload))
    form, ready = _form(request, upload)
    if ready and request.POST.get("act") == "import":
        uploads.queue(upload=upload, mapping=form.mapping, with_labels=form.takes_labels)
        uploads.start(upload=upload)
        return redirect("calibration:upload_page", upload.pk)
    sample = uploads.sample_of(upload, form.mapping) if ready else None
    context = {
        "upload": upload,
        "form": form,
        "plan": form.plan,
        "sample": sample,
        "problems": upload.problems,
    }
    invalid = (form.is_bound and not ready) or (not form.is_bound and upload.state == State.REFUSED)
    return render(request, "calibration/upload_mapping.html", context, status=422 if invalid else 200)


def _form(request, upload) -> tuple[MappingForm, bool]:
    """The form as it was sent, and whether it is complete; columns of labels that are new are asked about."""
    mapping = mapping_of(upload.mapping, Findings())
    known = upload.into is not None
    if request.method != "POST":
        return MappingForm(
            plan=uploads.plan_of_upload(upload, mapping), mapping=mapping, items_known=known
        ), False
    sent = _columns_sent(request, upload, mapping)
    form = MappingForm(
        request.POST, plan=uploads.plan_of_upload(upload, sent), mapping=sent, items_known=known
    )
    return form, form.is_valid()


def _columns_sent(request, upload, mapping: ColumnMap) -> ColumnMap:
    columns = uploads.plan_of_upload(upload, mapping).columns
    sent = {column: request.POST.get(f"column-{index}", "meta") for index, column in enumerate(columns)}
    return ColumnMap(mapping.shape, sent, mapping.labels, mapping.names)


def _progress(upload) -> dict:
    waits = upload.state == State.QUEUED and not worker_seen()
    return {"upload": upload, "progress": uploads.progress_of(upload), "nobody_works": waits}


@require_safe
def upload_progress(request, upload):
    upload = upload_of(request.user, upload)
    return render(request, "calibration/_upload_progress.html", _progress(upload))


@require_POST
def discard_upload(request, upload):
    uploads.discard(upload=upload_of(request.user, upload))
    return redirect("calibration:upload")
