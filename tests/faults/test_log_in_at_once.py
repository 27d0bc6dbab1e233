"""Eight graders log in at the same moment: on a server that has just started, then on kept connections."""

import http.cookiejar
import threading
import urllib.parse
import urllib.request
from collections import Counter

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher

from tests.annotate.worlds import make_round, make_version

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once, pytest.mark.slow]

EIGHT = [f"grader_{number}" for number in range(8)]
PASSWORD = "a password"


def log_in_and_open(url, round, name, together):
    """A browser without a history: the log-in, then the round; the last answer's status."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    together.wait(30)
    opener.open(f"{url}/login/", timeout=30).read()
    token = next(cookie.value for cookie in jar if cookie.name == "csrftoken")
    fields = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    together.wait(30)
    opener.open(f"{url}/login/", data=urllib.parse.urlencode(fields).encode(), timeout=30).read()
    with opener.open(f"{url}/grade/{round.pk}/", timeout=30) as page:
        return page.status, b'id="label-form"' in page.read()


def all_at_once(url, round):
    together, seen = threading.Barrier(len(EIGHT)), Counter()

    def one(name):
        try:
            seen[log_in_and_open(url, round, name, together)] += 1
        except Exception as error:
            seen[repr(error)] += 1

    threads = [threading.Thread(target=one, args=[name]) for name in EIGHT]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return seen


def test_eight_log_ins_at_the_same_moment_all_succeed(start_web, evalset, member):
    people = [member(name, "grader") for name in EIGHT]
    for person in people:  # the server knows the hashers of production only
        person.password = PBKDF2PasswordHasher().encode(PASSWORD, "salt" * 6, iterations=1000)
        person.save()
    round = make_round(make_version(evalset, responses=[("It floats.", ["It floats."])]), *people)
    web = start_web()
    for _ in range(3):
        assert all_at_once(web.url, round) == {(200, True): len(EIGHT)}, web.output
