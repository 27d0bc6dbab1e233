"""The outbox of alerts: what is to leave the server by webhook or e-mail, sent once and lost never.

A row is claimed under a lease by one conditional update, so that two workers do not both send it. Whoever
dies between sending and writing so down leaves the lease to expire, and the message is sent again under the
same id: a receiver that keeps the ids sees each once.
"""

import logging
from datetime import timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.access import unfinished_anywhere
from calibration.models import Alert, AlertDelivery
from calibration.webhook import post_json

log = logging.getLogger(__name__)

LEASE_SECONDS = 120
FIRST_WAIT_SECONDS = 30  # doubled with every attempt
LONGEST_WAIT_SECONDS = 6 * 3600
ATTEMPTS = 12  # the last one comes some 15 hours after the first

State = AlertDelivery.State


def tell() -> int:
    """Send everything that is due; how many were sent. Any number of workers may do this at once."""
    give_back_expired()
    return sum(_deliver(pk) for pk in list(_due().values_list("pk", flat=True)))


def give_back_expired() -> None:
    """A worker that died while sending: nobody knows whether it arrived, so it is sent again."""
    lost = AlertDelivery.objects.filter(state=State.CLAIMED, lease_until__lte=timezone.now())
    lost.update(state=State.PENDING, claim_token=None, lease_until=None)


def tell_again(*, alert: Alert) -> int:
    """Try once more what was given up; how many messages that is."""
    given_up = alert.deliveries.filter(state=State.FAILED)
    return given_up.update(state=State.PENDING, attempts=0, not_before=None)


def _due():
    now = timezone.now()
    waiting = AlertDelivery.objects.filter(state=State.PENDING)
    return waiting.filter(Q(not_before__isnull=True) | Q(not_before__lte=now)).order_by("pk")


def _deliver(pk: int) -> bool:
    token = uuid4()
    taken = _due().filter(pk=pk).order_by()
    until = timezone.now() + timedelta(seconds=LEASE_SECONDS)
    if not taken.update(
        state=State.CLAIMED, claim_token=token, lease_until=until, attempts=F("attempts") + 1
    ):
        return False
    delivery = AlertDelivery.objects.select_related("alert__evalset", "alert__version", "person").get(pk=pk)
    try:
        if delivery.channel == AlertDelivery.Channel.WEBHOOK:
            post_json(message_id=delivery.message_id, payload=payload_of(delivery.alert))
        else:
            _send_mail(delivery)
    except Exception as error:  # whatever it is, the others are to be sent, and this one again
        _note_failure(delivery, token, f"{type(error).__name__}: {error}")
        return False
    sent = {"state": State.SENT, "sent_at": timezone.now(), "detail": ""}
    return _settle(delivery, token, sent)


def _note_failure(delivery: AlertDelivery, token: UUID, detail: str) -> None:
    log.warning("alert %s was not delivered by %s: %s", delivery.alert_id, delivery.channel, detail)
    wait = min(FIRST_WAIT_SECONDS * 2 ** (delivery.attempts - 1), LONGEST_WAIT_SECONDS)
    again = timezone.now() + timedelta(seconds=wait)
    state = State.FAILED if delivery.attempts >= ATTEMPTS else State.PENDING
    _settle(delivery, token, {"state": state, "not_before": again, "detail": detail[:2000]})


def _settle(delivery: AlertDelivery, token: UUID, changes: dict) -> bool:
    held = AlertDelivery.objects.filter(pk=delivery.pk, claim_token=token, state=State.CLAIMED)
    return bool(held.update(claim_token=None, lease_until=None, **changes))


def payload_of(alert: Alert) -> dict[str, object]:
    """What a webhook gets."""
    return {
        "type": f"alert.{alert.kind}",
        "timestamp": alert.created_at.isoformat(),
        "data": {
            "alert": alert.pk,
            "evalset": alert.evalset.slug,
            "version": alert.version.number if alert.version else None,
            "title": alert.title,
            "text": alert.text,
            "link": settings.PUBLIC_URL + alert.link if alert.link else None,
        },
    }


def _send_mail(delivery: AlertDelivery) -> None:
    alert, person = delivery.alert, delivery.person
    assert person is not None
    title, text = _words_for(alert, person)
    link = settings.PUBLIC_URL + alert.link if alert.link else ""
    message = EmailMessage(
        subject=" ".join(f"[Touchstone] {alert.evalset.name}: {title}".split()),
        body="\n\n".join(part for part in (title, text, link) if part) + "\n",
        to=[person.email],
        headers={"Message-ID": f"<{delivery.message_id}@touchstone>"},
    )
    message.send()


def _words_for(alert: Alert, person) -> tuple[str, str]:
    """Somebody who still grades there is told that there is something, not what of which judge."""
    if not unfinished_anywhere(person, alert.evalset).exists():
        return alert.title, alert.text
    return alert.get_kind_display(), _("The rest is closed to you until your own grading is done.")
