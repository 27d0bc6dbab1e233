"""Who is asking: a session holds until it ends, and for somebody who may still come in."""

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

pytestmark = pytest.mark.django_db


@pytest.fixture
def status(client, lead):
    """The status of the person's first page: 302 leads to the log-in."""
    client.force_login(lead)
    return lambda: client.get("/").status_code


def test_session_that_has_ended_is_none(status):
    assert status() == 200
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert status() == 302


def test_session_of_somebody_who_is_deactivated_is_none(status, lead):
    lead.is_active = False
    lead.save()
    assert status() == 302


def test_session_of_somebody_who_is_gone_is_none(client, stranger):
    client.force_login(stranger)
    stranger.delete()
    assert client.get("/").status_code == 302


def test_session_ends_with_a_new_password(status, lead):
    lead.set_password("another password")
    lead.save()
    assert status() == 302
