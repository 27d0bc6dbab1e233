"""The pages and headers that belong to no app: log-in, home, health, policy."""

import re

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from evalsets.models import EvalSet

pytestmark = [pytest.mark.django_db, pytest.mark.once]
LOG_IN = {"username": "lead", "password": "lead-password"}
WRONG = {"username": "lead", "password": "not it"}


def test_log_in_and_out(client, lead):
    answer = client.post(reverse("login"), LOG_IN, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("home")
    assert client.post(reverse("logout")).status_code == 302
    assert client.get(reverse("home")).status_code == 302


def test_log_in_is_throttled_after_too_many_attempts(client, lead):
    for _attempt in range(settings.AXES_FAILURE_LIMIT - 1):
        assert client.post(reverse("login"), WRONG).status_code == 200
    locked = client.post(reverse("login"), WRONG)
    assert locked.status_code == 429
    assert "Too many failed log-ins" in locked.content.decode()
    assert client.post(reverse("login"), LOG_IN).status_code == 429  # the right one too, until the time is up


def test_log_in_of_somebody_else_is_not_throttled(client, lead, stranger):
    for _attempt in range(settings.AXES_FAILURE_LIMIT):
        client.post(reverse("login"), WRONG)
    answer = client.post(reverse("login"), {"username": "stranger", "password": "stranger-password"})
    assert answer.status_code == 302


def test_log_ins_are_shown_only_where_the_example_is_loaded(client):
    assert "norrwick-lead" not in client.get(reverse("login")).content.decode()
    EvalSet.objects.create(slug="example", name="Example", is_example=True)
    assert "norrwick-lead" in client.get(reverse("login")).content.decode()


@pytest.mark.parametrize("name", ["login", "home", "healthz"])
def test_policy_allows_nothing_inline_and_nothing_evaluated(client, lead, name):
    if name != "login":
        client.force_login(lead)
    policy = client.get(reverse(name)).headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_home_names_the_eval_sets_and_links_a_lead_to_them(client, lead, evalset):
    client.force_login(lead)
    assert reverse("evalsets:evalset", args=[evalset.slug]) in client.get(reverse("home")).content.decode()


def test_home_of_a_grader_names_the_eval_set_without_a_link_to_the_leads_pages(client, grader_a, evalset):
    client.force_login(grader_a)
    page = client.get(reverse("home")).content.decode()
    assert evalset.name in page
    assert reverse("evalsets:evalset", args=[evalset.slug]) not in page


def test_home_of_a_stranger_says_what_to_do(client, stranger, evalset):
    client.force_login(stranger)
    page = client.get(reverse("home")).content.decode()
    assert "You belong to no eval set yet" in page
    assert evalset.name not in re.sub(r"<title>.*?</title>", "", page)


def test_health_needs_no_log_in(client):
    assert client.get(reverse("healthz")).json()["status"] == "ok"


def test_missing_token_is_explained_and_names_the_setting():
    client = Client(enforce_csrf_checks=True, headers={"origin": "https://grading.example.org"})
    answer = client.post(reverse("login"), LOG_IN)
    assert answer.status_code == 403
    page = answer.content.decode()
    assert "The form was not accepted" in page
    assert "PUBLIC_URL" in page
    assert "https://grading.example.org" in page


def test_missing_page_leads_home(client, stranger):
    client.force_login(stranger)
    answer = client.get("/evalsets/there-is-none/")
    assert answer.status_code == 404
    assert "not yours to open" in answer.content.decode()
