"""Tokens: the page on which a person makes them, and what they open."""

from datetime import timedelta

import pytest
from bs4 import BeautifulSoup
from django.db.models import ProtectedError
from django.urls import reverse
from django.utils import timezone

from evalsets.models import ApiToken
from evalsets.tokens import make_token
from tests.api import Api, problem

pytestmark = pytest.mark.django_db
PAGE = "/tokens/"
GOOD = {"name": "nightly CI job", "scopes": ["read", "import"], "days": "30"}


def secret_on(page) -> str:
    return BeautifulSoup(page.content, "html.parser").select_one("code").text


def test_make_a_token_and_use_it(client, lead, evalset):
    client.force_login(lead)
    secret = secret_on(client.post(PAGE, GOOD))
    client.logout()
    for scheme in ("Bearer", "Token"):
        answer = client.get("/api/v1/evalsets/", headers={"Authorization": f"{scheme} {secret}"})
        assert answer.json()["results"][0]["slug"] == evalset.slug


def test_a_token_is_shown_once_and_kept_as_a_hash(client, lead):
    client.force_login(lead)
    secret = secret_on(client.post(PAGE, GOOD))
    page = client.get(PAGE).content.decode()
    assert "nightly CI job" in page
    assert secret not in page
    assert secret not in str(ApiToken.objects.values().get())


@pytest.mark.parametrize("bad", [{"name": ""}, {"scopes": []}, {"scopes": ["all"]}, {"days": "9999"}])
def test_a_bad_form_makes_no_token(client, lead, bad):
    client.force_login(lead)
    assert client.post(PAGE, GOOD | bad).status_code == 422
    assert not ApiToken.objects.exists()


def test_revoke_a_token(client, lead, stranger):
    token, secret = make_token(person=lead, name="old", scopes=["read"], days=7)
    place = reverse("evalsets:revoke_token", args=[token.token_key])
    client.force_login(stranger)
    assert client.post(place).status_code == 404
    client.force_login(lead)
    assert client.get(place).status_code == 405
    assert client.post(place).status_code == 302
    assert client.post(place).status_code == 404
    client.logout()
    problem(client.get("/api/v1/evalsets/", headers={"Authorization": f"Bearer {secret}"}), 401)


def test_a_token_opens_its_scopes_only(lead, evalset):
    told = problem(Api(lead, "read").post("/evalsets/", {"name": "x"}), 403)
    assert told["type"].endswith(":scope")
    assert "import" in told["detail"]
    assert Api(lead, "import").post("/evalsets/", {"name": "x"}).status_code == 201
    problem(Api(lead, "import").get("/evalsets/"), 403)


def test_an_expired_token_opens_nothing(client, lead):
    token, secret = make_token(person=lead, name="old", scopes=["read"], days=7)
    ApiToken.objects.filter(pk=token.pk).update(expiry=timezone.now() - timedelta(seconds=1))
    client.force_login(lead)
    assert "expired" in client.get(PAGE).content.decode()
    client.logout()
    problem(client.get("/api/v1/evalsets/", headers={"Authorization": f"Bearer {secret}"}), 401)


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer x", "Bearer ts_" + "0" * 64, "Bearer \xe4\xf6", "Bearer a b"]
)
def test_a_wrong_token_opens_nothing(client, lead, header):
    answer = client.get("/api/v1/evalsets/", headers={"Authorization": header})
    problem(answer, 401)
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_deactivated_person_s_token_opens_nothing(lead):
    api = Api(lead, "read")
    lead.is_active = False
    lead.save()
    problem(api.get("/evalsets/"), 401)


def test_a_person_with_a_token_cannot_be_deleted(stranger):
    make_token(person=stranger, name="t", scopes=["read"], days=7)
    with pytest.raises(ProtectedError):
        stranger.delete()


def test_the_name_of_a_token_is_text(client, lead):
    client.force_login(lead)
    client.post(PAGE, GOOD | {"name": "<img onerror=x>"})
    assert "<img onerror" not in client.get(PAGE).content.decode()
