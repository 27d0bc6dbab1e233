"""What a person gets from the world, and what differs between its two states."""

import re
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from django.db import connection
from django.test import Client
from django.urls import reverse

from annotate.queries import next_assignment, screen_of
from evalsets.models import ApiToken
from evalsets.tokens import make_token
from tests.annotate.blind.addresses import every_address
from tests.annotate.blind.world import NOW, at, others_do_everything, undone


@dataclass(frozen=True)
class Answer:
    status: int
    headers: str
    body: str
    queries: int

    @property
    def text(self) -> str:
        return f"{self.status}\n{self.headers}\n{self.body}"


# Random at every look, always of the same length
LETTERS = re.compile(
    r'X-CSRFToken": "[^"]*"|name="csrfmiddlewaretoken" value="[^"]*"|name="(key|seed)" value="[^"]*"'
    r"|csrftoken=[^;]*;|sessionid=[^;]*;|expires=[^;]*;|(Date|Expires): .*"
)

SIGNED = re.compile(r"(messages=[^:;]*):[^;]*")  # the time and signature behind a message's text

# A label after which everybody has labelled its target also writes gold; what is shown does not tell.
SETTLING = 4


class Queries:
    """Counts them, and does not write each out with its values, which took half of the time of a look."""

    count = 0

    def __call__(self, execute, *query):
        self.count += 1
        return execute(*query)


def ask(client, method, address, data=None, **headers) -> Answer:
    queries = Queries()
    with connection.execute_wrapper(queries):
        answer = getattr(client, method.lower())(address, data or {}, **headers)
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    told = [
        *answer.headers.items(),
        *(("Set-Cookie", morsel.OutputString()) for morsel in answer.cookies.values()),
    ]
    lines = "\n".join(f"{name}: {value}" for name, value in sorted(told))
    return Answer(
        answer.status_code,
        LETTERS.sub("", SIGNED.sub(r"\1", lines)),
        LETTERS.sub("", body.decode(errors="replace")),
        queries.count,
    )


@contextmanager
def as_person(person):
    """A browser of theirs; what is drawn anew for every form is the same at every look."""
    client = Client(raise_request_exception=False)
    with at(NOW), patch("annotate.services.new_seed", return_value=7):
        client.force_login(person)
        yield client


PAGE, FRAGMENT, JSON = {}, {"HTTP_HX_REQUEST": "true"}, {"HTTP_ACCEPT": "application/json"}
EVERY_WAY = [
    *(("GET", way) for way in (PAGE, FRAGMENT, JSON)),
    *(("POST", way) for way in (PAGE, FRAGMENT)),
    *((method, PAGE) for method in ("HEAD", "PUT", "PATCH", "DELETE", "OPTIONS")),
]
ENDS_SESSION = ("logout", "password")
API = "/api/"
OWN_ACTS = ("/take-back/",)  # a grader's own act, which needs nothing to be said


def look_everywhere(world, person, ways=EVERY_WAY) -> dict[str, Answer]:
    """What a person gets at every address, by every method, as page and as fragment."""
    seen = {}
    with as_person(person) as client:
        for address in every_address(world):
            for method, headers in ways:
                place = " ".join([method, address, *headers])
                seen[place] = ask(client, method, address, **headers)
                if any(word in address for word in ENDS_SESSION):
                    client.force_login(person)
    return seen


def look_with_token(world, person) -> dict[str, Answer]:
    """What a program of theirs gets from the API, with every scope: looking, and writing an empty object."""
    seen = {}
    with as_person(person) as client:
        _row, secret = make_token(person=person, name="mine", scopes=ApiToken.Scope.values, days=30)
        client.logout()
        token = {"HTTP_AUTHORIZATION": f"Bearer {secret}"}
        for address in every_address(world):
            if not address.startswith(API):
                continue
            for method in ("GET", "HEAD", "OPTIONS"):
                seen[f"{method} {address}"] = ask(client, method, address, **token)
            if not address.endswith(OWN_ACTS):
                seen[f"POST {address}"] = ask(
                    client, "POST", address, "{}", content_type="application/json", **token
                )
    return seen


def both_states(world, look):
    """What a look finds while the others have done nothing, and once they have done everything."""
    with undone():
        others_do_everything(world)
        after = look()
    with undone():
        before = look()
    return before, after


def differences(before: dict[str, Answer], after: dict[str, Answer]) -> list[str]:
    assert before.keys() == after.keys()
    return [
        f"{place}: {_difference(before[place], after[place])}"
        for place in before
        if not _is_same(place, before[place], after[place])
    ]


def _is_same(place: str, one: Answer, other: Answer) -> bool:
    if one.text != other.text:
        return False
    return abs(one.queries - other.queries) <= (SETTLING if "POST" in place else 0)


def _difference(one: Answer, other: Answer) -> str:
    if one.status != other.status:
        return f"status {one.status} became {other.status}"
    if one.headers != other.headers:
        changed = set(one.headers.splitlines()) ^ set(other.headers.splitlines())
        return f"headers {sorted(changed)}, body {len(one.body)} and {len(other.body)} characters"
    if one.body != other.body:
        at = next((i for i, (x, y) in enumerate(zip(one.body, other.body, strict=False)) if x != y), 0)
        return f"{one.body[max(0, at - 60) : at + 60]!r} became {other.body[max(0, at - 60) : at + 60]!r}"
    return f"{one.queries} queries became {other.queries}"


DESCRIBES_THE_API = "/api/v1/schema/"  # to everybody, without a log-in; it names choices that words stand for


def words_in(answers: dict[str, Answer], words) -> list[str]:
    texts = {
        place: re.sub("Content-Length: .*", "", answer.text)
        for place, answer in answers.items()
        if DESCRIBES_THE_API not in place
    }
    return [f"{word} at {place}" for place, text in texts.items() for word in words if word in text]


# A grader at work


def grade_to_the_end(world, person) -> dict[str, Answer]:
    """Everything a grader does, from the first page to the empty queue: as fragments and as plain forms."""
    seen: dict[str, Answer] = {}
    round, grader = world.round, world.grader(person)

    with as_person(person) as client:

        def tell(name, method, data=None, **headers):
            place = reverse(f"annotate:{name}", args=[round.pk])
            answer = ask(client, method, place, data, **headers)
            seen[f"{len(seen)} {method} {name}"] = answer
            moved = re.search("Location: (.*)", answer.headers)
            if moved:
                seen[f"{len(seen)} after {name}"] = ask(client, "GET", moved[1])
            return answer

        tell("grade", "GET")
        tell("grader_rubric", "GET")
        tell("warm_up", "GET")
        for step in range(200):
            assignment = next_assignment(round, grader)
            if assignment is None:
                break
            headers = FRAGMENT if step % 2 else PAGE
            target = screen_of(assignment).current
            names = target.dimension.label_names
            fields = {
                "assignment": assignment.pk,
                "claim": target.claim.pk if target.claim else "",
                "passage": target.passage.pk if target.passage else "",
                "dimension": target.dimension.name,
                "label": names[step % len(names)],
                "note": f"my note {step}",
                "evidence": "1",
            }
            where = {name: fields[name] for name in ("assignment", "claim", "passage")}
            if step == 2:
                tell("skip", "POST", where, **headers)
                continue
            tell("label", "POST", fields, **headers)
            if step in (1, 4):
                tell("take_back", "POST", **headers)
                tell("label", "POST", fields, **headers)
            tell("flag", "POST", where | {"note": "my flag"}, **headers)
            if target.claim:
                tell("split", "POST", where | {"parts": "one\ntwo"}, **headers)
            if step == 3:
                tell("advance", "POST", where, **headers)
            tell("grade", "GET", {"at": assignment.pk}, **headers)
        tell("grade", "GET")
        tell("take_back", "POST", **FRAGMENT)
        for own in world.assignments(person):
            tell("grade", "GET", {"at": own.pk})
        seen["home"] = ask(client, "GET", "/")
    return seen
