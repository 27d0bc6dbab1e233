"""The one script, tried as a new user would: in a folder with a space, on a machine that lacks things."""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import closing

import pytest
from django.contrib.auth.models import User

from annotate.models import Annotation
from evalsets.models import Claim, Response
from tests.ops.checkout import Checkout, Terminal
from tests.servers import free_port


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("fresh") / "a folder")


@pytest.fixture(scope="module")
def ready(tmp_path_factory) -> Checkout:
    checkout = Checkout(tmp_path_factory.mktemp("ready") / "a folder")
    checkout.lend_environment()
    return checkout


@pytest.fixture
def terminal(ready):
    opened: list[Terminal] = []

    def open_terminal(**variables: str) -> Terminal:
        opened.append(Terminal(ready, **variables))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.close()


def status_of(address: str) -> int:
    with urllib.request.urlopen(address, timeout=10) as answer:
        return answer.status


def sentence(outcome: subprocess.CompletedProcess[str]) -> str:
    """The one sentence that a refused start consists of."""
    assert outcome.returncode == 1
    assert "Traceback" not in outcome.stdout + outcome.stderr
    lines = [line for line in outcome.stderr.splitlines() if not line.startswith("Setting up")]
    assert len(lines) == 1, outcome.stderr
    return lines[0]


# Running


COUNTED = [model._meta.db_table for model in (User, Response, Claim, Annotation)]


def counts(data: str) -> list[int]:
    with closing(sqlite3.connect(f"{data}/touchstone.sqlite3")) as kept:
        return [kept.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COUNTED]


@pytest.mark.timeout(900)
def test_run_twice_loses_nothing_and_ctrl_c_ends_all(terminal, ready, tmp_path):
    data, port = str(tmp_path / "the data"), str(free_port())
    first = terminal(DATA_DIR=data, PORT=port)
    address = first.wait_for(r"Touchstone runs at (http://\S+)")[1]
    assert address == f"http://127.0.0.1:{port}"
    assert status_of(f"{address}/healthz") == 200
    assert status_of(f"{address}/login/") == 200
    first.wait_for(r"(?i)password")
    assert {first.process(word) for word in ("gunicorn", "worker", "beat")} <= set(ready.processes())
    secret = tmp_path / "the data" / "secret-key"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    key = secret.read_text()
    first.press_ctrl_c()
    assert first.wait_for_end() == 0
    assert ready.processes() == []

    before = counts(data)
    assert min(before) > 0
    second = terminal(DATA_DIR=data, PORT=port)
    second.wait_for("Touchstone runs at")
    second.press_ctrl_c()
    assert second.wait_for_end() == 0
    assert counts(data) == before
    assert secret.read_text() == key


@pytest.mark.timeout(900)
def test_killed_worker_and_clock_come_back_and_a_killed_web_server_ends_all(
    terminal, ready, tmp_path, migrated_sqlite
):
    session = terminal(
        DATA_DIR=str(tmp_path), DATABASE_URL=migrated_sqlite, PORT=str(free_port()), EXAMPLE="0", WORKERS="2"
    )
    session.wait_for("Touchstone runs at")
    assert workers(ready) == {"1", "2"}
    for word, name in (("worker", "worker"), ("beat", "clock")):
        killed = session.process(word)
        os.kill(killed, signal.SIGKILL)
        session.wait_for(rf"The {name} ended \(code 137\); starting it again\.")
        deadline = time.monotonic() + 30
        while (
            not any(pid > killed for pid in [_process_or_none(session, word)]) and time.monotonic() < deadline
        ):
            time.sleep(0.1)
        assert session.process(word) != killed
    assert workers(ready) == {"1", "2"}
    master = min(pid for pid in ready.processes() if _command(pid).find(" gunicorn ") > 0)
    os.kill(master, signal.SIGKILL)
    assert session.wait_for_end() == 1
    assert re.search(r"The web server ended \(code 137\); stopping everything\.", session.text)
    assert ready.processes() == []


def workers(checkout: Checkout) -> set[str]:
    """The numbers that the running ones have in their names."""
    names = (re.search(r" worker .*--hostname \S+-(\d+)@", _command(pid)) for pid in checkout.processes())
    return {name[1] for name in names if name}


def _process_or_none(session: Terminal, word: str) -> int:
    try:
        return session.process(word)
    except IndexError:
        return 0


def _command(pid: int) -> str:
    listed = subprocess.run(["ps", "-wwo", "args=", "-p", str(pid)], capture_output=True, text=True)
    return listed.stdout


def test_second_set_up_is_quick(ready):
    def seconds() -> float:
        start = time.monotonic()
        assert ready.run("setup").returncode == 0
        return time.monotonic() - start

    assert min(seconds() for _ in range(3)) < 1


def test_manage_finds_its_tables_on_a_fresh_checkout_and_keeps_stdout_and_exit_code(ready, tmp_path):
    data, command = (
        str(tmp_path / "x y"),
        "from evalsets.models import EvalSet; print(EvalSet.objects.count())",
    )
    outcome = ready.run("manage", "shell", "--verbosity", "0", "--command", command, DATA_DIR=data)
    assert json.loads(outcome.stdout) == 0
    assert ready.run("manage", "migrate", "no-such-app", DATA_DIR=data).returncode == 1


# Starts that are refused


def test_taken_port_is_named_with_a_way_out(ready, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        outcome = ready.run(DATA_DIR=str(tmp_path / "data"), PORT=str(port))
    assert f"Port {port} is taken" in sentence(outcome)
    assert "PORT=" in sentence(outcome)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_port_that_is_none_is_refused(ready, port):
    assert sentence(ready.run(PORT=port)) == f"PORT must be a number from 1 to 65535, not '{port}'."


@pytest.mark.parametrize("workers", ["two", "0", "100", "-1"])
def test_workers_that_are_no_number_are_refused(ready, workers):
    said = sentence(ready.run(WORKERS=workers, PORT=str(free_port())))
    assert said == f"WORKERS must be a number from 1 to 99, not '{workers}'."


def test_host_of_another_machine_is_refused(ready):
    assert "HOST=192.0.2.1 is not an address of this machine" in sentence(ready.run(HOST="192.0.2.1"))


def test_machine_without_python_is_told_what_to_install(fresh, tmp_path):
    for tool in ("bash", "cat", "cksum", "dirname", "env", "grep", "mkdir", "tail"):
        (tmp_path / tool).symlink_to(shutil.which(tool))
    said = sentence(fresh.run("setup", PATH=str(tmp_path)))
    assert "needs Python 3.11 or newer" in said


def test_python_that_is_too_old_is_refused(fresh, tmp_path):
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    assert (
        sentence(fresh.run("setup", PYTHON=str(old)))
        == f"PYTHON={old} is not a Python of version 3.11 or newer."
    )


def test_machine_without_network_is_told_so(fresh, tmp_path):
    """Nobody listens on the address that stands for the package index, and no cache helps out."""
    nowhere = f"http://127.0.0.1:{free_port()}/simple"
    outcome = fresh.run(
        "setup",
        DATA_DIR=str(tmp_path / "data"),
        UV_DEFAULT_INDEX=nowhere,
        UV_NO_CACHE="1",
        UV_HTTP_RETRIES="0",
        PIP_INDEX_URL=nowhere,
        PIP_NO_CACHE_DIR="1",
        PIP_RETRIES="0",
    )
    assert "there is no network, or the package index cannot be reached" in sentence(outcome)


def test_data_folder_that_cannot_be_written_is_named(ready):
    assert "DATA_DIR (/dev/null/x) cannot be written" in sentence(ready.run("manage", DATA_DIR="/dev/null/x"))


def test_unknown_word_shows_the_usage(ready):
    outcome = ready.run("fly")
    assert outcome.returncode == 1
    assert "./run does not know 'fly'." in outcome.stderr
    assert "./run manage" in outcome.stderr


def test_unknown_benchmark_is_named(ready):
    assert "There is no benchmark named nothing" in sentence(ready.run("bench", "nothing"))
