"""Alerts: told once, on the page and out of the outbox, and taken note of."""

import base64
import hashlib
import hmac
import json
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from django.core import mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import get_language, override

from calibration import tasks, telling
from calibration.alerts import Words, raise_alert
from calibration.models import Alert, AlertDelivery
from evalsets.models import EvalSetVersion, Membership
from tests.calibration.labelled import labelled_set

pytestmark = pytest.mark.django_db

SECRET = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()


class Receiver:
    """A web server that keeps what is posted and answers with the next status."""

    def __init__(self):
        self.got, self.statuses = [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((dict(self.headers.items()), body))
                status = outer.statuses.pop(0) if outer.statuses else 204
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", outer.address + "elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST

            def log_message(self, *arguments):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/hook?key=hidden"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def receiver(settings):
    made = Receiver()
    settings.ALERT_WEBHOOK_URL = made.address
    settings.ALERT_WEBHOOK_SECRET = SECRET
    settings.PUBLIC_URL = "https://touchstone.example.org"
    yield made
    made.server.shutdown()
    made.server.server_close()


def an_alert(
    evalset,
    key="run 3 grounding",
    title="judge-a is not trusted any more",
    text="It changed.",
    **fields,
):
    given = {"kind": "stale", "link": "/x/", "words": lambda: Words(title, text)}
    return raise_alert(evalset=evalset, key=key, **(given | fields))


def later(**fields):
    AlertDelivery.objects.update(**{name: timezone.now() - timedelta(seconds=1) for name in fields})


def words_in_the_language_of_whoever_is_asked():
    return Words({"en": "It ended", "de": "Vorbei"}[get_language()], {"en": "why", "de": ""}[get_language()])


def read_in(language, client, person, evalset):
    client.force_login(person)
    address = reverse("calibration:alerts", args=[evalset.slug])
    with override(None):  # a request leaves its language behind
        return client.get(address, headers={"accept-language": language}).content.decode()


def test_it_is_read_in_the_language_of_the_reader_and_sent_in_that_of_the_server(
    client, lead, evalset, receiver
):
    with override("de"):
        an_alert(evalset, words=words_in_the_language_of_whoever_is_asked)
    read = {language: read_in(language, client, lead, evalset) for language in ("en", "de")}
    assert "It ended" in read["en"] and "Vorbei" not in read["en"]
    assert "Vorbei" in read["de"] and "It ended" not in read["de"] and "why" not in read["de"]
    tasks.tell()
    [(_headers, body)] = receiver.got
    assert json.loads(body)["data"]["title"] == "It ended"


def test_an_alert_from_before_translations_were_kept_is_read_as_it_was(client, lead, evalset):
    alert = an_alert(evalset)
    Alert.objects.filter(pk=alert.pk).update(translations={})
    assert alert.title in read_in("de", client, lead, evalset)


# Once


def test_an_occurrence_is_told_once(evalset, settings):
    settings.ALERT_WEBHOOK_URL = "https://hooks.example.org/"
    first = an_alert(evalset)
    assert an_alert(evalset, title="other words") == first
    assert Alert.objects.get().title == "judge-a is not trusted any more"
    assert AlertDelivery.objects.count() == 1
    an_alert(evalset, key="run 4 grounding")
    assert (Alert.objects.count(), AlertDelivery.objects.count()) == (2, 2)


def test_an_alert_is_told_only_if_what_caused_it_holds(evalset):
    def caused_by_nothing():
        with transaction.atomic():
            an_alert(evalset)
            raise RuntimeError("the cause was not stored")

    with pytest.raises(RuntimeError):
        caused_by_nothing()
    assert not Alert.objects.exists()


def test_an_unknown_kind_is_refused(evalset):
    with pytest.raises(ValueError, match="weather"):
        an_alert(evalset, kind="weather")


def test_without_settings_the_page_alone_tells(evalset, lead):
    lead.email = "lead@example.org"
    lead.save()
    an_alert(evalset)
    assert not AlertDelivery.objects.exists()


# Webhook


def test_the_webhook_gets_signed_json(evalset, receiver):
    version = EvalSetVersion.objects.create(evalset=evalset, number=1)
    alert = an_alert(evalset, version=version, text="Grüße ✓")
    tasks.tell()
    [(headers, body)] = receiver.got
    sent = json.loads(body)
    assert sent["type"] == "alert.stale"
    assert sent["data"] == {
        "alert": alert.pk,
        "evalset": "roles",
        "version": 1,
        "title": "judge-a is not trusted any more",
        "text": "Grüße ✓",
        "link": "https://touchstone.example.org/x/",
    }
    given = {name.lower(): value for name, value in headers.items()}
    # Standard Webhooks: HMAC-SHA256 over "id.timestamp.body", base64, behind "v1,".
    signed = f"{given['webhook-id']}.{given['webhook-timestamp']}.".encode() + body
    digest = hmac.new(b"0123456789abcdef0123456789abcdef", signed, hashlib.sha256).digest()
    assert given["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert given["webhook-id"] == str(AlertDelivery.objects.get().message_id)


def test_without_a_secret_nothing_is_signed(evalset, receiver, settings):
    settings.ALERT_WEBHOOK_SECRET = ""
    an_alert(evalset)
    assert telling.tell() == 1
    assert "webhook-signature" not in {name.lower() for name in receiver.got[0][0]}


@pytest.mark.parametrize("status", [302, 400, 500])
def test_what_was_not_taken_is_tried_again_under_the_same_id(evalset, receiver, status):
    an_alert(evalset)
    receiver.statuses = [status]
    assert telling.tell() == 0
    waiting = AlertDelivery.objects.get()
    assert (waiting.state, waiting.attempts, waiting.sent_at) == ("pending", 1, None)
    assert str(status) in waiting.detail
    assert "hidden" not in waiting.detail, "the address may be a secret"
    assert telling.tell() == 0, "not before its time"
    later(not_before=True)
    assert telling.tell() == 1
    assert [len(receiver.got), AlertDelivery.objects.get().state] == [2, "sent"]
    ids = {headers.get("Webhook-Id") or headers["webhook-id"] for headers, _body in receiver.got}
    assert len(ids) == 1
    assert telling.tell() == 0


def test_an_address_that_cannot_be_asked_is_not_told(evalset, settings):
    settings.ALERT_WEBHOOK_URL = "https://hooks.example.org/a hidden key"
    an_alert(evalset)
    assert telling.tell() == 0
    detail = AlertDelivery.objects.get().detail
    assert "ALERT_WEBHOOK_URL" in detail
    assert "hidden" not in detail


def test_a_receiver_that_is_not_there_gives_up_in_the_end_and_is_asked_again_on_request(
    evalset, receiver, monkeypatch
):
    monkeypatch.setattr(telling, "ATTEMPTS", 2)
    receiver.server.shutdown()
    receiver.server.server_close()
    alert = an_alert(evalset)
    for _attempt in range(3):
        telling.tell()
        later(not_before=True)
    failed = AlertDelivery.objects.get()
    assert (failed.state, failed.attempts) == ("failed", 2)
    assert telling.tell_again(alert=alert) == 1
    assert AlertDelivery.objects.get().state == "pending"


def test_two_workers_send_it_once_and_a_dead_one_loses_nothing(evalset, receiver):
    an_alert(evalset)
    pk = AlertDelivery.objects.get().pk
    AlertDelivery.objects.update(state="claimed", lease_until=timezone.now() + timedelta(seconds=60))
    assert not telling._deliver(pk), "another worker holds it"
    assert telling.tell() == 0
    later(lease_until=True)
    assert telling.tell() == 1
    assert not telling._deliver(pk)
    assert len(receiver.got) == 1


def test_one_broken_message_does_not_hold_up_the_others(evalset, receiver, monkeypatch):
    an_alert(evalset)
    an_alert(evalset, key="second")
    right = telling.payload_of

    def breaks(alert):
        if alert.key != "second":
            raise ZeroDivisionError
        return right(alert)

    monkeypatch.setattr(telling, "payload_of", breaks)
    assert telling.tell() == 1
    assert set(AlertDelivery.objects.values_list("state", flat=True)) == {"pending", "sent"}


# E-mail


def test_leads_with_an_address_get_a_mail_and_one_who_still_grades_learns_only_of_what_kind_it_is(
    evalset, lead, member, settings
):
    settings.EMAIL_HOST, settings.PUBLIC_URL = "mail.example.org", "https://touchstone.example.org"
    silent, blind = member("silent", "lead"), member("blind", "lead", "grader")
    for person in (lead, blind):
        person.email = f"{person.username}@example.org"
        person.save()
    labelled = labelled_set(evalset=evalset, graders=("blind",))
    labelled.graders[0].person = blind
    labelled.graders[0].save()
    labelled.response("r1")
    labelled.round.assignments.update(state="pending")
    alert = an_alert(evalset, title="a title\nover two lines", text="174 of 200, now 150")
    assert telling.tell() == 2
    bodies = {message.to[0]: message for message in mail.outbox}
    assert set(bodies) == {f"{lead.username}@example.org", "blind@example.org"}
    assert bodies[f"{lead.username}@example.org"].subject == "[Touchstone] Roles: a title over two lines"
    assert "174 of 200" in bodies[f"{lead.username}@example.org"].body
    assert "https://touchstone.example.org/x/" in bodies["blind@example.org"].body
    assert "174 of 200" not in bodies["blind@example.org"].body
    assert bodies["blind@example.org"].subject == "[Touchstone] Roles: a judge is no longer trusted"
    assert "two lines" not in bodies["blind@example.org"].body, "a title may name a judge and a rate"
    assert not alert.deliveries.filter(person=silent).exists()
    assert telling.tell() == 0


# The page


def page(client, person, name="alerts", *arguments, method="get"):
    client.force_login(person)
    return getattr(client, method)(reverse(f"calibration:{name}", args=["roles", *arguments]))


def test_a_lead_takes_note_and_takes_it_back(client, evalset, lead, member):
    alert = an_alert(evalset, title="<b>bold</b>")
    shown = page(client, lead).content.decode()
    assert "1 of 1 is open" in shown
    assert "&lt;b&gt;bold" in shown
    assert "Told on this page only" in shown
    for _twice in range(2):
        page(client, lead, "acknowledge_alert", alert.pk, method="post")
    page(client, member("second", "lead"), "acknowledge_alert", alert.pk, method="post")
    alert.refresh_from_db()
    assert alert.acknowledged_by == lead, "the first stays"
    assert "0 of 1 are open" in page(client, lead).content.decode()
    for _twice in range(2):
        page(client, lead, "reopen_alert", alert.pk, method="post")
    alert.refresh_from_db()
    assert (alert.acknowledged_by, alert.acknowledged_at) == (None, None)


def test_a_message_that_was_given_up_is_sent_again_from_the_page(client, evalset, lead, settings):
    settings.ALERT_WEBHOOK_URL = "https://hooks.example.org/"
    alert = an_alert(evalset)
    AlertDelivery.objects.update(state="failed", detail="HTTP 500", attempts=12)
    shown = page(client, lead).content.decode()
    assert "12 attempts" in shown
    assert "HTTP 500" in shown
    page(client, lead, "send_alert_again", alert.pk, method="post")
    assert AlertDelivery.objects.get().state == "pending"
    assert "Send again" not in page(client, lead).content.decode()


def test_other_roles_find_no_alerts(client, evalset, grader_a, stranger, lead):
    alert = an_alert(evalset)
    for person in (grader_a, stranger):
        assert page(client, person).status_code == 404
        for name in ("acknowledge_alert", "reopen_alert", "send_alert_again"):
            assert page(client, person, name, alert.pk, method="post").status_code == 404
    assert page(client, lead, "acknowledge_alert", alert.pk).status_code == 405
    assert page(client, lead, "acknowledge_alert", 10**9, method="post").status_code == 404
    Membership.objects.filter(person=lead).delete()
    assert page(client, lead).status_code == 404


def test_a_lead_who_still_grades_finds_the_page_closed(client, evalset, member):
    both = member("both", "lead", "grader")
    labelled = labelled_set(evalset=evalset, graders=("both",))
    labelled.graders[0].person = both
    labelled.graders[0].save()
    labelled.response("r1")
    labelled.round.assignments.update(state="pending")
    an_alert(evalset)
    closed = page(client, both)
    assert closed.status_code == 403
    assert "not trusted" not in closed.content.decode()
