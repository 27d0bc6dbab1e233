"""Every error of the API is a problem document, whoever found it."""

import pytest
from django.test import Client
from rest_framework.throttling import UserRateThrottle

from config import api as api_of_the_project
from evalsets.api import views
from tests.api import Api, problem

pytestmark = pytest.mark.django_db


def test_no_such_address(client, lead):
    problem(client.get("/api/v1/nothing/"), 404)
    problem(client.post("/api/v1/nothing/"), 404)
    told = problem(Api(lead).get("/evalsets"), 404)
    assert "slash" in told["detail"]
    problem(client.get("/api"), 404)
    problem(client.get("/api/v1/with%0Aa%0Abreak"), 404)


def test_nobody_is_logged_in(client, lead):
    answer = client.get("/api/v1/evalsets/")
    problem(answer, 401)
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_method_that_is_not_there(lead):
    answer = Api(lead).client.put("/api/v1/evalsets/")
    problem(answer, 405)
    assert answer["Allow"] == "GET, POST, HEAD, OPTIONS"
    options = Api(lead).client.options("/api/v1/evalsets/")
    assert (options.status_code, options.content) == (204, b"")


def test_a_content_type_that_is_not_read(lead):
    problem(Api(lead).post("/evalsets/", b"name=x", content_type="application/x-www-form-urlencoded"), 415)


def test_a_content_type_that_is_not_written(lead):
    answer = Api(lead).client.get("/api/v1/evalsets/", headers={"Accept": "text/html"})
    problem(answer, 406)


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 5000,
        b'{"name": NaN}',
        b"\xff",
        b'{"name": "a\\u0000"}',
        b'{"name": "\\ud800"}',
        b"7",
        b"[]",
    ],
)
def test_a_body_that_is_not_what_is_read(lead, body):
    problem(Api(lead).post("/evalsets/", body), 400)


def test_a_body_that_is_too_large(lead, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
    settings.IMPORT_MAX_BYTES = 1024 * 1024
    large = b'"' + b"x" * 1024 * 1024 + b'"'
    problem(Api(lead).post("/evalsets/", large), 413)
    problem(Api(lead).send_file("/evalsets/roles/versions/", large), 413)


def test_a_session_needs_the_token_of_its_form(lead):
    strict = Api(lead, client=Client(enforce_csrf_checks=True))
    assert "CSRF" in problem(strict.post("/evalsets/", {"name": "x"}), 403)["detail"]
    assert Api(lead, "import", client=Client(enforce_csrf_checks=True)).post("/evalsets/", {"name": "x"})


def test_a_fault_of_our_own_tells_nothing(lead, monkeypatch):
    def fault(self):
        raise RuntimeError("the secret of the server")

    monkeypatch.setattr(views.EvalSets, "rows", fault)
    api = Api(lead, client=Client(raise_request_exception=False))
    told = problem(api.get("/evalsets/"), 500)
    assert "secret" not in str(told)
    assert api.client.get("/nothing/").status_code == 404


def test_a_host_that_is_not_ours(client):
    problem(client.get("/api/v1/", headers={"Host": "elsewhere.example"}), 400)
    assert api_of_the_project.ROOT == "/api/"


def test_too_many_requests(lead, monkeypatch):
    monkeypatch.setattr(UserRateThrottle, "THROTTLE_RATES", {"user": "2/min"})
    api = Api(lead)
    answers = [api.get("/evalsets/") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    problem(answers[-1], 429)
    assert 0 < int(answers[-1]["Retry-After"]) <= 61


def test_answers_are_kept_by_no_cache(lead):
    answer = Api(lead).get("/evalsets/")
    assert answer["Cache-Control"] == "no-store"
    assert "ETag" not in answer
