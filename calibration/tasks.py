"""Doorbells: ids in, one service call. A lost, doubled or late message changes nothing (see services)."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from celery import shared_task
from django.db import connections

from calibration import services


@contextmanager
def _at_work() -> Iterator[None]:
    """Note that a worker lives, and leave no connection behind in a thread of the pool."""
    try:
        services.note_worker(name=socket.gethostname())
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close()


@shared_task(name="calibration.tasks.judge_verdicts")
def judge_verdicts(run_id: int) -> None:
    with _at_work():
        services.answer_bell(run_id=run_id)


@shared_task(name="calibration.tasks.sweep")
def sweep() -> None:
    with _at_work():
        services.sweep()
