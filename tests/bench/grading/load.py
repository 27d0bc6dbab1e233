"""A grader without a face: it logs in as a browser does and labels what the screen shows."""

import contextlib
import http.client
import multiprocessing
import random
import re
import threading
import time
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.bench.grading.world import PASSWORD

HIDDEN = re.compile(r'<input type="hidden" name="(assignment|dimension|claim|passage|key)" value="([^"]*)"')
HELD = re.compile(r'id="screen" data-assignment="(\d+)"')
LABEL = re.compile(r'name="label" value="([^"]+)"')
SENT_AGAIN = 40  # every so many labels one is sent twice, as after a lost answer


class Refused(AssertionError):
    """The server answered a label with something else than the next thing to label."""


@dataclass
class Said:
    """What a grader sent and the server acknowledged."""

    seconds: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # bytes of request and answer, headers included
    labels: list[tuple[int, int | None, str, str]] = field(default_factory=list)
    started: float = 0.0
    ended: float = 0.0


class Grader:
    """One browser of one grader: a kept connection, cookies, the token of the form."""

    def __init__(self, port: int, name: str, round_id: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.cookies: dict[str, str] = {}
        self.round_id = round_id
        self.rng = random.Random(name)
        self.held: list[str] = []
        self.said = Said()
        self._request("GET", "/login/")
        status, _page = self._request("POST", "/login/", {"username": name, "password": PASSWORD})
        if status != 302:
            raise Refused(f"{name} could not log in: {status}")
        status, page = self._request("GET", f"/grade/{round_id}/")
        if status != 200:
            raise Refused(f"{name} could not open round {round_id}: {status}")
        self._read(page)

    def label(self) -> None:
        """One key: the label goes out, and its answer brings what is labelled next."""
        label = self.rng.choices(self.choices, weights=[6, *(1 for _ in self.choices[1:])])[0]
        fields = {**self.form, "label": label, "milliseconds": "4000"}
        started = time.perf_counter()
        status, page = self._request("POST", f"/grade/{self.round_id}/label/", fields, htmx=True)
        self.said.seconds.append(time.perf_counter() - started)
        self.said.sizes.append(self.size)
        if status != 200 or "Saved" not in page:
            raise Refused(f"{fields} was answered with {status}: {page[:2000]}")
        claim = int(fields["claim"]) if fields["claim"] else None
        self.said.labels.append((int(fields["assignment"]), claim, fields["dimension"], label))
        self._read(page)
        if len(self.said.labels) % SENT_AGAIN == 0:
            self._request("POST", f"/grade/{self.round_id}/label/", fields, htmx=True)

    def _read(self, page: str) -> None:
        """As the page's script does: the form on the screen, and the responses that it holds."""
        start = page.index('id="label-form"')
        form = page[start : page.index("</form>", start)]
        self.form, self.choices = dict(HIDDEN.findall(form)), LABEL.findall(form)
        self.held = [*self.held, *HELD.findall(page)][-3:]  # the script keeps a few, too
        if not self.choices:
            raise Refused(f"nothing to label: {page[:2000]}")

    def _request(self, method: str, path: str, fields: dict | None = None, *, htmx=False) -> tuple[int, str]:
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        body = None
        if fields is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            token = self.cookies["csrftoken"]
            if htmx:
                held = ",".join(self.held)
                headers |= {"HX-Request": "true", "X-CSRFToken": token, "Touchstone-Held": held}
            body = urllib.parse.urlencode({**fields, "csrfmiddlewaretoken": token})
        self.connection.request(method, path, body=body, headers=headers)
        answer = self.connection.getresponse()
        text = answer.read()
        lines = [*headers.items(), *answer.getheaders()]
        self.size = len(path) + len(body or "") + len(text) + sum(len(n) + len(v) + 4 for n, v in lines)
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status, text.decode()


class Bare:
    """The same for the bare view beside it: one label in, the next item out."""

    def __init__(self, port: int, first: int = 1) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.item = first
        self.said = Said()

    def label(self) -> None:
        started = time.perf_counter()
        body = urllib.parse.urlencode({"item": self.item, "label": "supported"})
        self.connection.request(
            "POST", "/", body=body, headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
        answer = self.connection.getresponse()
        text = answer.read()
        self.said.seconds.append(time.perf_counter() - started)
        self.said.sizes.append(len(body) + len(text))
        if answer.status != 200:
            raise Refused(f"the bare view answered {answer.status}: {text[:2000]!r}")
        self.item += 1


def at_once(makers: list, seconds: float, cpu: Callable[[], float]) -> tuple[list[Said], float]:
    """Each in a process of its own, all at work for the same time; what they said, and the server's CPU."""
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(len(makers) + 1)
    answers = context.Queue()
    processes = [
        context.Process(target=_work, args=(maker, seconds, start, answers), daemon=True) for maker in makers
    ]
    for process in processes:
        process.start()
    with contextlib.suppress(threading.BrokenBarrierError):
        start.wait(120)
    before = cpu()
    said = [answers.get(timeout=seconds + 120) for _ in processes]
    spent = cpu() - before
    for process in processes:
        process.join()
    if broken := [text for text in said if isinstance(text, str)]:
        raise Refused("\n".join(broken))
    return said, spent


def _work(maker, seconds: float, start, answers) -> None:
    try:
        kind, *arguments = maker
        grader = kind(*arguments)
        for _ in range(5):
            grader.label()
        grader.said.seconds.clear()
        grader.said.sizes.clear()
        start.wait(120)
        grader.said.started = time.time()
        while time.time() - grader.said.started < seconds:
            grader.label()
        grader.said.ended = time.time()
        answers.put(grader.said)
    except Exception as error:
        start.abort()
        answers.put(f"{type(error).__name__}: {error}")
