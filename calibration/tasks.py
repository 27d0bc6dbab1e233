"""Doorbells: ids in, one service call. A lost, doubled or late message changes nothing (see work)."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from celery.signals import worker_shutting_down
from django.db import connections

from calibration import drift, judge_warm_up, telling, uploads, watches, work

_ending = threading.Event()


@worker_shutting_down.connect
def _note_ending(**_details: object) -> None:
    """Ctrl-C waits for the calls in flight, not for the rest of the turn."""
    _ending.set()


@contextmanager
def _at_work() -> Iterator[None]:
    """Note that a worker lives, and leave no connection behind in a thread of the pool."""
    try:
        work.note_worker(name=socket.gethostname())
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()


@shared_task(name="calibration.tasks.judge_verdicts")
def judge_verdicts(run_id: int) -> None:
    with _at_work():
        work.answer_bell(run_id=run_id, ending=_ending.is_set)


@shared_task(name="calibration.tasks.import_upload")
def import_upload(upload_id: int) -> None:
    with _at_work():
        uploads.import_upload(upload_id=upload_id)


@shared_task(name="calibration.tasks.sweep")
def sweep() -> None:
    with _at_work():
        work.sweep()
        uploads.sweep()
        watches.check_watches()


@shared_task(name="calibration.tasks.warm_up_judges")
def warm_up_judges() -> None:
    with _at_work():
        judge_warm_up.ask_waiting()


@shared_task(name="calibration.tasks.watch_judges")
def watch_judges() -> None:
    with _at_work():
        drift.watch()
        judge_warm_up.ask_waiting()


@shared_task(name="calibration.tasks.tell")
def tell() -> None:
    with _at_work():
        telling.tell()
