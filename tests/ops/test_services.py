"""The servers and processes that other tests lean on are real and go away."""

import os
import subprocess
import sys
import time

import psycopg
import pytest
import redis
from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from tests import processes, servers


@pytest.mark.postgres
def test_postgres_fixture_gives_an_empty_database_of_its_own(postgres_database):
    with psycopg.connect(postgres_database) as session:
        assert session.execute("SHOW server_version_num").fetchone()
        tables = session.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)


@pytest.mark.redis
def test_redis_fixture_gives_an_empty_database(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        assert client.dbsize() == 0
        assert client.set("key", "value")


def _survivors(folder):
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if folder in line]


@pytest.mark.postgres
@pytest.mark.redis
@pytest.mark.parametrize("end", ["exit", "kill"])
def test_servers_end_with_the_session_that_started_them(tmp_path, end):
    """Also when it was killed and could not clean up."""
    script = (
        "import os, signal, sys; from tests import servers\n"
        "with servers.session():\n"
        "    servers.postgres(); servers.redis_server()\n"
        f"    print(os.environ[servers.FOLDER_VARIABLE], flush=True)\n"
        f"    if {end!r} == 'kill': os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = {name: value for name, value in os.environ.items() if "TOUCHSTONE_SERVICES" not in name}
    outcome = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    folder = outcome.stdout.strip()
    assert folder, outcome.stderr
    deadline = time.monotonic() + 20
    while _survivors(folder) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert _survivors(folder) == []


@pytest.mark.own_database
@pytest.mark.parametrize(
    ("database", "broker"),
    [
        ("migrated_sqlite", "embedded"),
        pytest.param("migrated_postgres", "redis", marks=[pytest.mark.postgres, pytest.mark.redis]),
    ],
)
def test_worker_starts_and_survives_nothing_less_than_sigkill(request, start_worker, database, broker):
    url = request.getfixturevalue(database)
    broker_url = request.getfixturevalue("redis_url") if broker == "redis" else ""
    worker = start_worker(database_url=url, broker_url=broker_url)
    assert worker.running
    worker.kill()
    assert not worker.running
    again = start_worker(database_url=url, broker_url=broker_url)
    assert again.stop() == 0


@pytest.mark.django_db(transaction=True)
def test_web_process_sees_the_rows_of_the_test(start_web, manage, lead):
    assert start_web().running
    outcome = manage(
        "shell", "-v", "0", "-c", "from django.contrib.auth.models import User; print(User.objects.get())"
    )
    assert outcome.stdout.strip() == lead.username, outcome.stderr


@pytest.mark.django_db(transaction=True)
def test_database_address_is_understood_by_the_settings():
    import dj_database_url

    parsed = dj_database_url.parse(processes.current_database_url())
    assert parsed["NAME"] == str(connection.settings_dict["NAME"])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", [1, 2])
def test_flush_empties_tables_that_have_triggers(evalset, lead, turn):
    """Run twice: the second finds what the first left, if the flush between them failed."""
    from evalsets.models import EvalSet, EvalSetVersion

    assert EvalSet.objects.count() == 1
    assert get_user_model().objects.count() == 1
    version = EvalSetVersion.objects.create(evalset=evalset, number=1)
    EvalSetVersion.objects.filter(pk=version.pk).update(
        state="frozen", content_hash="0" * 64, frozen_at=timezone.now()
    )
    with pytest.raises(Exception, match="frozen"):
        EvalSetVersion.objects.filter(pk=version.pk).update(state="draft")


def test_missing_server_is_named(monkeypatch):
    monkeypatch.setattr(servers.shutil, "which", lambda name: None)
    with pytest.raises(servers.ServerMissing, match="Chromium is missing: install the package chromium"):
        servers.chromium_program()


@pytest.mark.parametrize("there", ["chromium", "chromium-headless-shell"])
def test_any_chromium_will_do_and_one_without_windows_is_asked_for(monkeypatch, there):
    monkeypatch.setattr(servers.shutil, "which", lambda name: f"/bin/{name}" if name == there else None)
    assert servers.headless_program() == servers.chromium_program() == f"/bin/{there}"
    assert "chromium" not in servers.missing_packages()
    monkeypatch.setattr(servers.shutil, "which", lambda name: None)
    assert "chromium-headless-shell" in servers.missing_packages().split()
