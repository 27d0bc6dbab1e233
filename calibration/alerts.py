"""What leads are told, and why: notices on a page, and in the outbox what leaves the server (see `telling`).

`raise_alert` is for everything that finds something: a judge whose trust has ended, a watched rate that
moved.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import override

from calibration.models import Alert, AlertDelivery
from evalsets.access import LEAD
from evalsets.models import EvalSet, EvalSetVersion, Membership

Channel = AlertDelivery.Channel
TITLE_CHARACTERS = 300


@dataclass(frozen=True)
class Words:
    title: str
    text: str = ""


@transaction.atomic
def raise_alert(
    *,
    kind: str,
    evalset: EvalSet,
    key: str,
    words: Callable[[], Words],
    link: str = "",
    version: EvalSetVersion | None = None,
) -> Alert:
    """Tell the leads of an eval set, once for each `key`: the name of the occurrence, unique in the eval set.

    `words` makes the sentences in the language that is active, and is asked once for each of the server's: a
    worker does not know who will read them. `link` is a path of this server (`reverse(...)`).

    Raised again under the same key it stays as it is, so a caller may run as often as it likes. Inside a
    transaction of the caller it is told only if that one holds.
    """
    told = Alert.objects.filter(evalset=evalset, key=key).first()
    if told:
        return told
    said = _in_all_languages(words)
    own = said.pop(settings.LANGUAGE_CODE)
    alert, made = Alert.objects.get_or_create(
        evalset=evalset,
        key=key,
        defaults={
            "kind": Alert.Kind(kind),
            "version": version,
            "link": link,
            "translations": said,
            **own,
        },
    )
    if made:
        AlertDelivery.objects.bulk_create(_deliveries_of(alert))
    return alert


def _in_all_languages(words: Callable[[], Words]) -> dict[str, dict[str, str]]:
    said = {}
    for language, _name in settings.LANGUAGES:
        with override(language):
            found = asdict(words())
        said[language] = found | {"title": found["title"][:TITLE_CHARACTERS]}
    return said


def _deliveries_of(alert: Alert) -> list[AlertDelivery]:
    made = []
    if settings.ALERT_WEBHOOK_URL:
        made.append(AlertDelivery(alert=alert, channel=Channel.WEBHOOK))
    if settings.EMAIL_HOST:
        leads = Membership.objects.filter(evalset=alert.evalset, role=LEAD, person__is_active=True)
        reachable = leads.exclude(person__email="").select_related("person").order_by("pk")
        made += [AlertDelivery(alert=alert, channel=Channel.EMAIL, person=m.person) for m in reachable]
    return made


def acknowledge(*, alert: Alert, person) -> bool:
    """The first who takes note stays; True for them."""
    unread = Alert.objects.filter(pk=alert.pk, acknowledged_at__isnull=True)
    return bool(unread.update(acknowledged_at=timezone.now(), acknowledged_by=person))


def take_back_acknowledgement(*, alert: Alert) -> bool:
    read = Alert.objects.filter(pk=alert.pk, acknowledged_at__isnull=False)
    return bool(read.update(acknowledged_at=None, acknowledged_by=None))


def alerts_of(evalset: EvalSet) -> QuerySet[Alert]:
    """Newest first, with what became of their messages."""
    return (
        Alert.objects.filter(evalset=evalset)
        .select_related("version__evalset", "acknowledged_by")
        .prefetch_related("deliveries__person")
        .order_by("-pk")
    )


def open_alerts(evalset: EvalSet) -> QuerySet[Alert]:
    return Alert.objects.filter(evalset=evalset, acknowledged_at__isnull=True)
