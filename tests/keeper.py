"""Runs one server for a test session and ends it with the session, even if that was killed.

python tests/keeper.py WATCHED_PID FOLDER USER COMMAND...      (USER may be "-")
"""

import os
import shutil
import signal
import subprocess
import sys

POLL_SECONDS = 0.5
GRACE_SECONDS = 10


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _end(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)  # for PostgreSQL the "fast" shutdown, for Redis a plain one
    try:
        server.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def keep(watched: int, folder: str, user: str | None, command: list[str]) -> None:
    told_to_end = False

    def note_end(*_: object) -> None:
        nonlocal told_to_end
        told_to_end = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, note_end)
    identity = {"user": user, "extra_groups": []} if user else {}
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=folder, **identity)
    while server.poll() is None:
        if told_to_end or not _alive(watched):
            _end(server)
            break
        try:
            server.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _, pid, place, account, *rest = sys.argv
    keep(int(pid), place, None if account == "-" else account, rest)
