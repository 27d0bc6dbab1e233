"""The web server is killed while two graders label: what was acknowledged is there after the next start."""

import http.client
import http.cookiejar
import threading
import time
import urllib.parse
import urllib.request

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from annotate.models import Annotation, Assignment
from tests.annotate.worlds import grader_of, make_round, make_version

pytestmark = pytest.mark.django_db(transaction=True)

RESPONSES = [
    (f"Answer {number}.", [f"Claim {part} of {number}." for part in range(4)]) for number in range(60)
]


class Session:
    """A logged-in grader who labels in queue order and remembers what was acknowledged."""

    def __init__(self, url, round, person):
        self.url, self.round, self.person = url, round, person
        self.acknowledged = []
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        self.opener.open(f"{url}/login/", timeout=20).read()
        self.post("/login/", username=person.username, password="a password")

    def post(self, path, **fields):
        token = next(cookie.value for cookie in self.jar if cookie.name == "csrftoken")
        body = urllib.parse.urlencode(fields | {"csrfmiddlewaretoken": token}).encode()
        request = urllib.request.Request(f"{self.url}{path}", data=body, headers={"HX-Request": "true"})
        with self.opener.open(request, timeout=20) as answer:
            return answer.read().decode()

    def label(self, assignment, claim):
        page = self.post(
            f"/grade/{self.round.pk}/label/", assignment=assignment, claim=claim, label="supported"
        )
        assert "Saved" in page

    def label_until_cut_off(self, targets):
        for assignment, claim in targets:
            try:
                self.label(assignment, claim)
            except (OSError, http.client.HTTPException):
                return
            self.acknowledged.append(claim)


def targets_in_queue_order(round, person):
    queue = Assignment.objects.filter(round=round, grader=grader_of(round, person)).order_by("order")
    return [
        (assignment.pk, claim)
        for assignment in queue.select_related("response")
        for claim in assignment.response.claims.values_list("pk", flat=True)
    ]


def test_every_acknowledged_label_survives_a_killed_web_server(start_web, evalset, grader_a, grader_b):
    for person in (grader_a, grader_b):  # the server knows the hashers of production only
        person.password = PBKDF2PasswordHasher().encode("a password", "salt" * 6)
        person.save()
    round = make_round(make_version(evalset, responses=RESPONSES), grader_a, grader_b)
    queues = {person: targets_in_queue_order(round, person) for person in (grader_a, grader_b)}
    web = start_web()
    sessions = [Session(web.url, round, person) for person in queues]
    threads = [
        threading.Thread(target=session.label_until_cut_off, args=[queues[session.person]])
        for session in sessions
    ]
    for thread in threads:
        thread.start()
    while min(len(session.acknowledged) for session in sessions) < 12:
        assert all(thread.is_alive() for thread in threads)
        time.sleep(0.02)
    web.kill()
    for thread in threads:
        thread.join(60)

    again = start_web()
    for session in sessions:
        queue = queues[session.person]
        mine = Annotation.objects.filter(round=round, grader=grader_of(round, session.person))
        kept = list(mine.values_list("claim", flat=True))
        assert set(session.acknowledged) <= set(kept)
        assert len(kept) <= len(session.acknowledged) + 1 < len(queue)  # one may have been under way
        Session(again.url, round, session.person).label(*queue[len(kept)])
        assert mine.count() == len(kept) + 1
