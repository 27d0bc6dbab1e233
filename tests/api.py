"""A client of the API, as a program or a browser would be one."""

import json

from django.test import Client

from evalsets.tokens import make_token

ROOT = "/api/v1"


class Api:
    def __init__(self, person, *scopes, client=None):
        self.client = client or Client()
        self.headers = {}
        if scopes:
            _row, secret = make_token(person=person, name="test", scopes=scopes, days=7)
            self.headers = {"Authorization": f"Bearer {secret}"}
        else:
            self.client.force_login(person)

    def get(self, path, **query):
        return self.client.get(ROOT + path, query, headers=self.headers)

    def post(self, path, body=None, *, key=None, content_type="application/json"):
        data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {})
        headers = self.headers | ({"Idempotency-Key": key} if key else {})
        return self.client.post(ROOT + path, data, content_type=content_type, headers=headers)

    def send_file(self, path, content, *, key=None, content_type="application/x-ndjson"):
        return self.post(path, content, key=key, content_type=content_type)


def problem(answer, status):
    """The problem document of an answer that has to be one."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert {"type", "title", "detail", "errors"} <= told.keys()
    return told
