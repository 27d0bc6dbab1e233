"""A copy of the project in an awkward place, on which the one script is tried as a new user would."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path

from django.conf import settings

from tests.processes import OWN_VARIABLES

SCRIPT_VARIABLES = OWN_VARIABLES | {
    *("CI", "EXAMPLE", "HOST", "PORT", "PYTHON", "TOUCHSTONE_TESTING", "WORKERS"),
}
LOCKS = {"running": "requirements.lock", "tests": "tests/requirements.lock"}


class Checkout:
    def __init__(self, folder: Path):
        self.folder = folder
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        files = subprocess.run(
            listed, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True
        ).stdout
        for name in filter(None, files.split("\0")):
            source, target = Path(settings.BASE_DIR) / name, folder / name
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)

    @property
    def venv(self) -> Path:
        return self.folder / ".venv"

    def lend_environment(self) -> None:
        """An environment that has what this test run has, stamped as set up: no download."""
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(self.venv)], check=True)
        packages = sysconfig.get_path("purelib", vars={"base": str(self.venv)})
        (Path(packages) / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
        for name, lock in LOCKS.items():
            with (self.folder / lock).open("rb") as content:
                stamp = subprocess.run(
                    ["cksum"], stdin=content, capture_output=True, text=True, check=True
                ).stdout
            (self.venv / f".touchstone-{name}").write_text(stamp.strip())

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if name not in SCRIPT_VARIABLES and name not in ("DJANGO_SETTINGS_MODULE", "VIRTUAL_ENV")
        }
        return {**kept, "WORKERS": "1", **variables}

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "run"), *words],
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=240,
        )

    def processes(self) -> list[int]:
        """Process ids of everything that still runs out of this checkout."""
        listed = subprocess.run(
            ["ps", "-wweo", "pid=,args="], capture_output=True, text=True, check=True
        ).stdout
        return [int(line.split()[0]) for line in listed.splitlines() if str(self.folder) in line]


class Terminal:
    """`./run` in a terminal of its own: Ctrl-C goes to the whole foreground group, as from a keyboard."""

    def __init__(self, checkout: Checkout, **variables: str):
        self.checkout = checkout
        self.text = ""
        self.code: int | None = None
        self.pid, self.side = pty.fork()
        if self.pid == 0:
            # A test run in the background ignores it; what it starts would then never hear of Ctrl-C.
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            command = str(checkout.folder / "run")
            os.execve(command, [command], checkout.environment(**variables))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while piece := os.read(self.side, 4096):
                self.text += piece.decode(errors="replace").replace("\r\n", "\n")

    def wait_for(self, pattern: str, seconds: float = 240) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := re.search(pattern, self.text):
                return found
            if self.ended() is not None:
                raise AssertionError(f"./run ended ({self.code}) before {pattern!r} appeared:\n{self.text}")
            time.sleep(0.1)
        raise AssertionError(f"{pattern!r} did not appear in {seconds} s:\n{self.text}")

    def press_ctrl_c(self) -> None:
        os.write(self.side, b"\x03")

    def ended(self) -> int | None:
        """The exit code, once there is one."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    def wait_for_end(self, seconds: float = 60) -> int:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if (code := self.ended()) is not None:
                return code
            time.sleep(0.1)
        raise AssertionError(f"./run did not end in {seconds} s:\n{self.text}")

    def process(self, word: str) -> int:
        """The id of the youngest process of the checkout whose command holds the word."""
        listed = subprocess.run(
            ["ps", "-wweo", "pid=,args="], capture_output=True, text=True, check=True
        ).stdout
        found = [
            line for line in listed.splitlines() if str(self.checkout.folder) in line and f" {word} " in line
        ]
        return int(found[-1].split()[0])

    def close(self) -> None:
        if self.ended() is None:
            os.kill(self.pid, signal.SIGTERM)
            self.wait_for_end()
        os.close(self.side)
