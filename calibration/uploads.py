"""Uploaded files: kept until their columns are known, imported at once or, where they are large, by a worker.

The row says how far a file is. A message to a worker is a doorbell: lost, doubled or late it changes nothing,
since only the latest attempt may store, and it says so in the transaction that stores.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from kombu.exceptions import OperationalError as BrokerError

from calibration import exchange
from calibration.models import Upload
from evalsets.importing import ColumnMap, Findings, ImportRefused, read_records
from evalsets.importing.mapped import AUTO, NATIVE, Plan, plan_of
from evalsets.importing.mapping import mapping_of
from evalsets.importing.records import LineRecord
from evalsets.importing.tables import CSV, JSONL
from evalsets.models import EvalSetVersion
from evalsets.services import limits

log = logging.getLogger(__name__)
State = Upload.State
ATTEMPTS = 3
FIRST_LOOK = 1000  # records, to know a shape and its columns
SILENT_FOR = timedelta(minutes=10)  # a worker that said nothing for so long is gone
KEPT_FOR = timedelta(days=7)


class Overtaken(Exception):
    """Another attempt took the upload over: nothing of this one is stored."""


def receive(
    *,
    person,
    file: File,
    filename: str,
    name: str = "",
    into: EvalSetVersion | None = None,
    with_labels: bool,
) -> Upload:
    """Keep an uploaded file. Another tool's waits for its columns, a native one can be imported as it is."""
    plan = plan_of(cast(BinaryIO, file.file), filename, most=FIRST_LOOK, limits=limits())
    file.seek(0)
    mapping = plan.mapping().as_json() if plan.shape != NATIVE else None
    if mapping is None and plan.kind not in (JSONL, CSV):
        mapping = ColumnMap(NATIVE).as_json()
    needs_mapping = plan.shape != NATIVE and not plan.findings.refused
    return Upload.objects.create(
        person=person,
        into=into,
        name=name,
        file=File(file.file, name=uuid4().hex),
        filename=filename[-255:],
        size=file.size,
        with_labels=with_labels,
        mapping=mapping,
        state=State.MAPPING if needs_mapping else State.QUEUED,
    )


def is_plain_native(file: File, filename: str) -> bool:
    """Whether a file needs neither a mapping nor patience: small, and in this product's own form.

    A small file of another form that cannot be read is refused here, with all that is wrong with it.
    """
    if file.size > settings.IMPORT_INLINE_BYTES:
        return False
    stream = cast(BinaryIO, file.file)
    plan = plan_of(stream, filename, most=1, limits=limits())
    is_native = plan.shape == NATIVE and plan.kind in (JSONL, CSV)
    if plan.findings.refused and not is_native:
        plan_of(stream, filename, limits=limits()).findings.raise_if_refused()
    file.seek(0)
    return is_native


def plan_of_upload(upload: Upload, mapping: ColumnMap | None = None) -> Plan:
    """What the file holds, as the mapping so far (or the file alone) has it."""
    shape = mapping.shape if mapping and mapping.shape else AUTO
    with opened(upload) as stream:
        return plan_of(stream, upload.filename, shape=shape, mapping=mapping, limits=limits())


@dataclass(frozen=True)
class Sample:
    """The first records as they would be imported, and what stands in the way of them."""

    records: list[LineRecord]
    findings: Findings


def sample_of(upload: Upload, mapping: ColumnMap, records: int = 3) -> Sample:
    findings = Findings()
    with opened(upload) as stream:
        found = read_records(stream, upload.filename, findings, limits=limits(), mapping=mapping)
        sample = [record for record, _is_new in islice(found, records)]
    return Sample(sample, findings)


@contextmanager
def opened(upload: Upload) -> Iterator[BinaryIO]:
    with upload.file.open("rb") as file:
        yield cast(BinaryIO, file)


@transaction.atomic
def queue(*, upload: Upload, mapping: ColumnMap | None = None, with_labels: bool | None = None) -> Upload:
    """Have a file imported; asked for twice, it is imported once."""
    locked = Upload.objects.select_for_update().get(pk=upload.pk)
    if locked.state in (State.MAPPING, State.REFUSED, State.FAILED):
        if mapping is not None:
            locked.mapping = mapping.as_json()
        if with_labels is not None:
            locked.with_labels = with_labels
        locked.state, locked.changed_at, locked.attempt = State.QUEUED, timezone.now(), 0
        locked.problems, locked.problems_left_out = [], 0
        locked.save()
    return locked


def start(*, upload: Upload) -> Upload:
    """Import a small file now; ring for a worker for a large one."""
    if upload.size <= settings.IMPORT_INLINE_BYTES:
        import_upload(upload_id=upload.pk)
    else:
        ring(upload)
    upload.refresh_from_db()
    return upload


def ring(upload: Upload) -> None:
    """Tell a worker. With the broker down, the sweep rings again later."""
    try:
        current_app.send_task("calibration.tasks.import_upload", args=[upload.pk], retry=False)
    except (BrokerError, OSError) as error:
        log.warning("could not ring for upload %s: %s", upload.pk, error)


def import_upload(*, upload_id: int) -> None:
    """One attempt at an upload that waits; anything else has been seen to already."""
    attempt = _take(upload_id)
    if attempt is None:
        return
    upload = Upload.objects.select_related("person", "into").get(pk=upload_id)
    try:
        _import(upload, attempt)
    except ImportRefused as refused:
        problems = [problem.as_json() for problem in refused.problems]
        _end(upload, attempt, State.REFUSED, problems=problems, problems_left_out=refused.left_out)
    except Overtaken:
        log.info("upload %s was taken over", upload_id)
    except Exception:
        log.exception("upload %s failed", upload_id)
        words = _("The import failed by a fault of this program; nothing was stored. The log says more.")
        problem = {"line": None, "field": "", "message": words, "value": ""}
        _end(upload, attempt, State.FAILED, problems=[problem])


@transaction.atomic
def _take(upload_id: int) -> int | None:
    waiting = Upload.objects.select_for_update().filter(pk=upload_id, state=State.QUEUED).first()
    if waiting is None:
        return None
    waiting.state, waiting.attempt, waiting.changed_at = State.RUNNING, waiting.attempt + 1, timezone.now()
    waiting.save(update_fields=["state", "attempt", "changed_at"])
    return waiting.attempt


def _import(upload: Upload, attempt: int) -> None:
    findings = Findings()
    mapping = None if upload.mapping is None else mapping_of(upload.mapping, findings)
    findings.raise_if_refused()
    progress = _Progress(upload)

    def done(told: dict) -> None:
        version = EvalSetVersion.objects.get(evalset__slug=told["evalset"], number=told["version"])
        if not _mine(upload, attempt).update(
            state=State.DONE, result=version, counts=told["counts"], changed_at=timezone.now()
        ):
            raise Overtaken

    with opened(upload) as stream:
        common: dict[str, Any] = {
            "stream": stream,
            "filename": upload.filename,
            "with_labels": upload.with_labels,
            "mapping": mapping,
            "on_progress": progress.note,
            "on_stored": done,
        }
        if upload.into is not None:
            exchange.import_responses(version=upload.into, **common)
        else:
            exchange.import_evalset(name=upload.name, person=upload.person, **common)
    _forget_file(upload)


def _mine(upload: Upload, attempt: int):
    return Upload.objects.filter(pk=upload.pk, state=State.RUNNING, attempt=attempt)


def _end(upload: Upload, attempt: int, state: str, **fields) -> None:
    _mine(upload, attempt).update(state=state, changed_at=timezone.now(), **fields)


def discard(*, upload: Upload) -> None:
    """Throw a file away that is not being imported; imported ones are history and stay."""
    with transaction.atomic():
        locked = Upload.objects.select_for_update().filter(pk=upload.pk).first()
        if locked is None or locked.state in (State.RUNNING, State.DONE):
            return
        locked.delete()
    _forget_file(upload)


def _forget_file(upload: Upload) -> None:
    upload.file.delete(save=False)
    Upload.objects.filter(pk=upload.pk).update(file="")
    with suppress(OSError):
        _Progress(upload).path.unlink()


def sweep() -> None:
    """Ring for what waits, give back what a lost worker held, and forget what nobody came back for."""
    now = timezone.now()
    for upload in Upload.objects.filter(state=State.RUNNING, changed_at__lt=now - SILENT_FOR):
        if _Progress(upload).said_since(now - SILENT_FOR):
            continue
        words = _("The worker ended before the import did, {n} times.").format(n=ATTEMPTS)
        if upload.attempt < ATTEMPTS:
            _end(upload, upload.attempt, State.QUEUED)
        else:
            problem = {"line": None, "field": "", "message": words, "value": ""}
            _end(upload, upload.attempt, State.FAILED, problems=[problem])
    for upload in Upload.objects.filter(state=State.QUEUED):
        ring(upload)
    old = Upload.objects.exclude(state__in=(State.RUNNING, State.DONE, State.QUEUED))
    for upload in old.filter(changed_at__lt=now - KEPT_FOR):
        discard(upload=upload)


@dataclass(frozen=True)
class Seen:
    """How far an import is: `phase` is checking or storing, `line` the last line that was read."""

    phase: str
    line: int
    lines: int | None


class _Progress:
    """Beside the file, not in the row: while an import stores, no other row can be written on SQLite."""

    def __init__(self, upload: Upload):
        self.path = Path(settings.MEDIA_ROOT) / "uploads" / f"{upload.pk}.progress"
        self.phase, self.line, self.lines = "checking", 0, 0

    def note(self, line: int) -> None:
        if line < self.line:  # the file is read a second time
            self.phase, self.lines = "storing", self.line
        self.line = line
        with suppress(OSError):  # a full disk must not end an import that the database can hold
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps([self.phase, line, self.lines or None]))

    def read(self) -> Seen | None:
        try:
            return Seen(*json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def said_since(self, moment) -> bool:
        try:
            return self.path.stat().st_mtime >= moment.timestamp()
        except OSError:
            return False


def progress_of(upload: Upload) -> Seen | None:
    return _Progress(upload).read()
