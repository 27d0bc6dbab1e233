"""docker-compose.yml: complete, nothing secret by default, and every command really runs."""

import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
import yaml
from django.conf import settings

from tests import servers
from tests.processes import AppProcess, WebServer, app_environment

COMPOSE = Path(settings.BASE_DIR) / "docker-compose.yml"
OURS, THEIRS = ["web", "worker", "beat"], ["database", "queue"]
VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\}")


def interpolated(node: object, variables: dict[str, str]) -> object:
    """What Compose does with ${NAME}, ${NAME:-default} and ${NAME:?message}; $$ is a plain dollar sign."""
    if isinstance(node, dict):
        return {key: interpolated(value, variables) for key, value in node.items()}
    if isinstance(node, list):
        return [interpolated(value, variables) for value in node]
    if not isinstance(node, str):
        return node

    def fill(match: re.Match[str]) -> str:
        if value := variables.get(match["name"]):
            return value
        if match["kind"] == "?":
            raise LookupError(match["rest"])
        return match["rest"] or ""

    return VARIABLE.sub(fill, node).replace("$$", "$")


@pytest.fixture(scope="module")
def compose() -> dict:
    return yaml.safe_load(COMPOSE.read_text())


@pytest.mark.parametrize("name", OURS + THEIRS)
def test_service_has_command_health_check_and_named_volume(compose, name):
    service = compose["services"][name]
    assert service["command"]
    assert service["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert service["restart"] == "unless-stopped"
    mounted = [volume.split(":")[0] for volume in service["volumes"]]
    assert mounted
    assert set(mounted) <= set(compose["volumes"])


def test_services_are_the_five(compose):
    assert sorted(compose["services"]) == sorted(OURS + THEIRS)


def test_all_our_services_share_settings_and_data(compose):
    services = [compose["services"][name] for name in OURS]
    assert all(service["environment"] == services[0]["environment"] for service in services)
    assert all("data:/data" in service["volumes"] for service in services)
    assert services[0]["environment"]["DATA_DIR"] == "/data"


@pytest.mark.parametrize("missing", ["SECRET_KEY", "POSTGRES_PASSWORD"])
def test_secret_without_value_stops_the_start(compose, missing):
    given = {"SECRET_KEY": "k" * 40, "POSTGRES_PASSWORD": "p"}
    interpolated(compose, given)
    del given[missing]
    with pytest.raises(LookupError, match=f"set {missing}"):
        interpolated(compose, given)


def test_nothing_but_the_web_server_is_published_and_that_only_here(compose):
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert list(ports) == ["web"]
    assert all(port.startswith("127.0.0.1:") for port in ports["web"])


@pytest.mark.parametrize("name", OURS)
def test_dependencies_are_waited_for_until_healthy(compose, name):
    assert {after["condition"] for after in compose["services"][name]["depends_on"].values()} == {
        "service_healthy"
    }


# Every command once, outside a container


class Deployment:
    """The services' commands as written, on this machine's PostgreSQL, Redis and folders."""

    def __init__(self, compose: dict, database_url: str, redis_url: str, folder: Path):
        self.services = interpolated(compose["services"], {"SECRET_KEY": "k" * 40, "POSTGRES_PASSWORD": "p"})
        self.folder = folder
        self.port = servers.free_port()
        self.replaced = {
            "postgres://touchstone:p@database:5432/touchstone": database_url,
            "redis://queue:6379/0": redis_url,
            "0.0.0.0:8000": f"127.0.0.1:{self.port}",
            "127.0.0.1:8000": f"127.0.0.1:{self.port}",
            "'/data'": f"{str(folder)!r}",
            "/data": str(folder),
        }
        self.running: list[AppProcess] = []

    def _here(self, text: str) -> str:
        for theirs, ours in self.replaced.items():
            if theirs in text:
                return text.replace(theirs, ours)
        return text

    def environment(self, name: str) -> dict[str, str]:
        given = {key: self._here(value) for key, value in self.services[name]["environment"].items()}
        surroundings = app_environment(self.folder)
        del surroundings["TOUCHSTONE_TESTING"]
        return {**surroundings, **given, "PATH": f"{Path(sys.executable).parent}:{surroundings['PATH']}"}

    def command(self, words: list[str]) -> list[str]:
        return [self._here(word) for word in words]

    def start(self, name: str) -> AppProcess:
        command, environment = self.command(self.services[name]["command"]), self.environment(name)
        log = self.folder / f"{name}.log"
        if name == "web":
            process = WebServer(command, environment, log, url=f"http://127.0.0.1:{self.port}")
        else:
            process = AppProcess(command, environment, log)
        self.running.append(process)
        return process

    def is_healthy(self, name: str) -> bool:
        kind, *words = self.services[name]["healthcheck"]["test"]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        outcome = subprocess.run(
            self.command(command),
            env=self.environment(name),
            cwd=settings.BASE_DIR,
            capture_output=True,
            timeout=60,
        )
        return outcome.returncode == 0


@pytest.fixture
def deployment(compose, postgres_database, redis_url, tmp_path) -> Iterator[Deployment]:
    folder = tmp_path / "data"
    folder.mkdir()
    made = Deployment(compose, postgres_database, redis_url, folder)
    yield made
    for process in reversed(made.running):
        process.stop()


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.own_database
@pytest.mark.timeout(900)
def test_every_command_runs_and_is_healthy(deployment, redis_url):
    web = deployment.start("web")
    web.wait_until(web.is_healthy, 120)
    assert deployment.is_healthy("web")

    # The clock rings once before anybody works, and the bell is in the queue.
    beat = deployment.start("beat")
    with redis.Redis.from_url(redis_url) as client:
        beat.wait_until(lambda: client.llen("touchstone") > 0, 60)
        assert b"calibration.tasks.sweep" in client.lindex("touchstone", 0)
        assert deployment.is_healthy("beat")

        worker = deployment.start("worker")
        worker.wait_until(lambda: client.llen("touchstone") == 0, 120)  # asking it costs a start each time
        worker.wait_until(lambda: deployment.is_healthy("worker"), 120)


@pytest.mark.redis
def test_queue_command_is_understood_by_redis(compose, tmp_path):
    command = compose["services"]["queue"]["command"]
    assert command[0] == "redis-server"
    port = servers.free_port()
    program = [servers.redis_program(), *command[1:], "--port", str(port), "--dir", str(tmp_path)]
    process = subprocess.Popen(program, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(port=port) as client:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                try:
                    assert client.config_get("appendonly") == {"appendonly": "yes"}
                    break
                except redis.exceptions.ConnectionError:
                    time.sleep(0.1)
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    finally:
        process.terminate()
        process.wait(10)


def test_image_installs_from_the_lock_and_does_not_run_as_root():
    lines = (COMPOSE.parent / "Dockerfile").read_text().splitlines()
    installs = [line for line in lines if "pip install" in line]
    assert installs
    assert all("--require-hashes" in shlex.split(line) for line in installs)
    assert "USER touchstone" in lines
