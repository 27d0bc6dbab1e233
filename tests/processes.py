"""The application's own processes (web server, worker, clock), started for a test as in production."""

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from celery import Celery
from django.conf import settings
from django.db import connection

from tests.servers import free_port

START_SECONDS = 120
_numbers = itertools.count(1)


@dataclass
class AppProcess:
    """A child in a session of its own, so that killing it never touches the test run."""

    command: list[str]
    environment: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=settings.BASE_DIR,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self) -> None:
        """SIGKILL to the process and all its children: nothing is cleaned up."""
        self._signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self, seconds: float = 15) -> int:
        """SIGTERM, and SIGKILL when that is not heeded; the exit code."""
        if self.running:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
        self._signal(signal.SIGKILL)
        return self.process.wait(10)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def wait_until(self, condition: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if not self.running:
                raise AssertionError(f"{self.command} ended with {self.process.returncode}:\n{self.output}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.command} was not there in {seconds} s:\n{self.output}")
            time.sleep(0.1)


@dataclass
class WebServer(AppProcess):
    url: str = ""

    def is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=5) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False


def current_database_url() -> str:
    """The address of the database that this test uses, for a process started beside it."""
    wanted = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{quote(str(wanted['NAME']))}"
    account = f"{quote(wanted['USER'])}:{quote(wanted['PASSWORD'])}".rstrip(":")
    return f"postgres://{account}@{wanted['HOST']}:{wanted['PORT']}/{wanted['NAME']}"


def app_environment(data_dir: Path, **variables: str) -> dict[str, str]:
    """The environment of a child: nothing of the surrounding test settings but what is named."""
    kept = {name: value for name, value in os.environ.items() if name not in OWN_VARIABLES}
    return {
        **kept,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "TOUCHSTONE_TESTING": "1",
        "DATA_DIR": str(data_dir),
        "PYTHONUNBUFFERED": "1",
        **variables,
    }


OWN_VARIABLES = {
    "CELERY_BROKER_URL",
    "DATABASE_URL",
    "DATA_DIR",
    "DEBUG",
    "DJANGO_ALLOW_ASYNC_UNSAFE",
    "JUDGE_API_KEY",
    "JUDGE_BASE_URL",
    "PUBLIC_URL",
    "SECRET_KEY",
    "TRUST_GATE",
}


def _answers(environment: dict[str, str], worker: str) -> bool:
    """Ask the worker over its own broker, without the seconds that `celery inspect ping` takes to start."""
    queue = Path(environment["DATA_DIR"]) / "queue"
    if not environment["CELERY_BROKER_URL"] and not (queue / "control").exists():
        return False  # the worker has not read its settings yet
    app = Celery(broker=environment["CELERY_BROKER_URL"] or "filesystem://localhost", set_as_current=False)
    app.conf.broker_transport_options = {
        "data_folder_in": str(queue / "messages"),
        "data_folder_out": str(queue / "messages"),
        "control_folder": str(queue / "control"),
        "polling_interval": 0.05,
    }
    with app:
        return bool(app.control.inspect([worker], timeout=1, limit=1).ping())


def start_worker(
    environment: dict[str, str], log: Path, *, concurrency: int = 2, beat: bool = False
) -> AppProcess:
    name = f"test-{next(_numbers)}@localhost"
    command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", "threads", "-l", "INFO"]
    command += ["-n", name, "--concurrency", str(concurrency)]
    if beat:
        command += ["-B", "-s", str(Path(environment["DATA_DIR"]) / "beat-schedule")]
    worker = AppProcess(command, environment, log)
    try:
        worker.wait_until(lambda: _answers(environment, name))
    except AssertionError:
        worker.kill()
        raise
    return worker


def start_web(
    environment: dict[str, str], log: Path, application: str = "config.wsgi", *, port: int | None = None
) -> WebServer:
    port = port or free_port()
    command = [sys.executable, "-m", "gunicorn", "--config", "python:config.web_server", application]
    command += ["--bind", f"127.0.0.1:{port}"]
    web = WebServer(command, environment, log, url=f"http://127.0.0.1:{port}")
    try:
        web.wait_until(web.is_healthy)
    except AssertionError:
        web.kill()
        raise
    return web
