"""Doorbells: one service call each."""

from celery import shared_task

from evalsets.idempotency import prune_answers


@shared_task(name="evalsets.tasks.prune")
def prune() -> None:
    prune_answers()
