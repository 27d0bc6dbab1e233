"""A write with an idempotency key happens once, however often it is sent."""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.core.files import File
from django.db import IntegrityError, transaction
from django.utils import timezone

from evalsets.models import KeptAnswer

KEPT_FOR = timedelta(days=2)


class OtherRequest(Exception):
    """The key came before, with another request."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: str  # JSON
    location: str = ""
    repeated: bool = False


def fingerprint(method: str, address: str, body: Any) -> str:
    """Of what was asked for; files count by their content."""
    told = [method, address, _told(body)]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _told(value: Any) -> Any:
    if isinstance(value, File):
        content = hashlib.sha256()
        for chunk in value.chunks():
            content.update(chunk)
        value.seek(0)
        return {"file": content.hexdigest()}
    if isinstance(value, Mapping):
        parts = value.lists() if hasattr(value, "lists") else value.items()
        return {str(name): _told(part) for name, part in parts}
    if isinstance(value, list | tuple):
        return [_told(part) for part in value]
    return value


def answer_once(
    *, person: Any, key: str, fingerprint: str, prepare: Callable[[], Callable[[], Answer]]
) -> Answer:
    """What an act answers, or what it answered when the key came first.

    `prepare` reads and checks what was sent, and gives the act. It runs before the transaction: others may
    write while a large file is read. The answer is stored in the transaction of the act: there is never one
    without the other. A request with the same key that comes meanwhile waits for it. What is refused leaves
    no answer, and may be tried again.
    """
    if kept := KeptAnswer.objects.filter(person=person, key=key).first():
        return _again(kept, fingerprint)
    act = prepare()
    try:
        with transaction.atomic():
            kept = KeptAnswer.objects.create(person=person, key=key, fingerprint=fingerprint)
            answer = act()
            kept.status, kept.body, kept.location = answer.status, answer.body, answer.location
            kept.save(update_fields=["status", "body", "location"])
    except IntegrityError:
        kept = KeptAnswer.objects.filter(person=person, key=key).first()
        if kept is None:  # it was the act that broke a rule of the database
            raise
        return _again(kept, fingerprint)
    return answer


def _again(kept: KeptAnswer, fingerprint: str) -> Answer:
    if kept.fingerprint != fingerprint:
        raise OtherRequest
    assert kept.status is not None
    return Answer(kept.status, kept.body, kept.location, repeated=True)


def prune_answers() -> int:
    """Forget answers that nobody will ask for again."""
    return KeptAnswer.objects.filter(created_at__lt=timezone.now() - KEPT_FOR).delete()[0]
