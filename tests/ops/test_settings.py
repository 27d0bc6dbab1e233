"""Settings come from the environment, and a wrong value stops the start with its name."""

import json
import runpy
import stat
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from tests.processes import OWN_VARIABLES, app_environment

SHOW = (
    "import json; from django.conf import settings as s; "
    "print(json.dumps({name: str(getattr(s, name, None)) for name in "
    "('ALLOWED_HOSTS', 'CSRF_TRUSTED_ORIGINS', 'SESSION_COOKIE_SECURE', 'CSRF_COOKIE_SECURE', "
    "'SECURE_PROXY_SSL_HEADER', 'DEBUG', 'SECRET_KEY', 'CELERY_BROKER_URL', 'DATABASES')}))"
)


def python(data_dir, *arguments, **variables):
    environment = app_environment(data_dir, **variables)
    del environment["TOUCHSTONE_TESTING"]
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def manage(data_dir, *arguments, **variables):
    return python(data_dir, "manage.py", *arguments, **variables)


def shown(data_dir, **variables):
    outcome = python(data_dir, "-c", SHOW, **variables)  # without the applications, which take long to load
    assert outcome.returncode == 0, outcome.stderr
    return json.loads(outcome.stdout)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DEBUG", "perhaps"),
        ("SECRET_KEY", "short"),
        ("PUBLIC_URL", "touchstone.example.org"),
        ("PUBLIC_URL", "https://touchstone.example.org/below"),
        ("DATABASE_URL", "mysql://user:pw@host/db"),
        ("DATABASE_URL", "touchstone"),
        ("DATABASE_URL", "postgres://touchstone@127.0.0.1:1/nowhere?prepare_threshold=often"),
        ("CELERY_BROKER_URL", "amqp://host"),
        ("TRUST_GATE", "0.7"),
        ("TRUST_GATE", '{"min_kappa": 0.7}'),
        ("TRUST_GATE", '{"min_youden": 7}'),
        ("DATA_DIR", "/dev/null/below"),
        ("IMPORT_MAX_MB", "0"),
        ("JUDGE_TIMEOUT_SECONDS", "1.5"),
        ("JUDGE_LEASE_SECONDS", "-1"),
        ("JUDGE_MAX_ATTEMPTS", "many"),
        ("ALERT_WEBHOOK_URL", "file:///etc/passwd"),
        ("ALERT_WEBHOOK_SECRET", "not base64!"),
        ("ALERT_WEBHOOK_SECRET", "c2hvcnQ="),
        ("EMAIL_PORT", "smtp"),
        ("EMAIL_USE_TLS", "starttls"),
    ],
)
def test_wrong_value_is_refused_with_its_name(tmp_path, monkeypatch, name, value):
    for other in OWN_VARIABLES | {"TOUCHSTONE_TESTING"}:
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=f"^{name} "):
        runpy.run_path(str(settings.BASE_DIR / "config" / "settings.py"))


def test_refused_value_stops_the_start_with_a_sentence_and_no_traceback(tmp_path):
    outcome = manage(tmp_path, "diffsettings", TRUST_GATE='{"min_youden": 7}')
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("The settings are wrong: TRUST_GATE ")
    assert "Traceback" not in outcome.stderr


def test_public_address_sets_all_that_depends_on_it(tmp_path):
    found = shown(tmp_path, PUBLIC_URL="https://touchstone.example.org/")
    assert "touchstone.example.org" in found["ALLOWED_HOSTS"]
    assert found["CSRF_TRUSTED_ORIGINS"] == "['https://touchstone.example.org']"
    assert found["SESSION_COOKIE_SECURE"] == found["CSRF_COOKIE_SECURE"] == "True"
    assert "HTTP_X_FORWARDED_PROTO" in found["SECURE_PROXY_SSL_HEADER"]


def test_postgresql_compiles_no_query_and_keeps_the_options_of_its_address(tmp_path):
    address = "postgres://touchstone@127.0.0.1:1/nowhere?options=-c%20work_mem%3D8MB"  # nothing connects
    found = shown(tmp_path, DATABASE_URL=address)
    assert "'options': '-c jit=off -c work_mem=8MB'" in found["DATABASES"]
    assert "'prepare_threshold': 0" in found["DATABASES"]


def test_postgresql_keeps_no_plan_where_a_pooler_could_lose_it(tmp_path):
    address = "postgres://touchstone@127.0.0.1:1/nowhere?prepare_threshold=off"
    assert "'prepare_threshold': None" in shown(tmp_path, DATABASE_URL=address)["DATABASES"]


def test_without_public_address_only_this_machine_is_served(tmp_path):
    found = shown(tmp_path)
    assert found["ALLOWED_HOSTS"] == "['localhost', '127.0.0.1', '[::1]']"
    assert found["SESSION_COOKIE_SECURE"] == "False"
    assert found["DEBUG"] == "False"


def test_thresholds_of_the_trust_gate_come_from_the_environment(tmp_path):
    show = "from calibration.thresholds import server_policy; print(server_policy().min_judge_agreement)"
    outcome = manage(
        tmp_path, "shell", "--verbosity", "0", "--command", show, TRUST_GATE='{"min_judge_agreement": 0.7}'
    )
    assert outcome.stdout.strip() == "0.7", outcome.stderr


def test_secret_key_is_made_once_and_read_by_nobody_else(tmp_path):
    first = shown(tmp_path)["SECRET_KEY"]
    assert len(first) >= 50
    assert shown(tmp_path)["SECRET_KEY"] == first
    assert shown(tmp_path / "another")["SECRET_KEY"] != first
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) == 0o600


# What a proxy with TLS in front decides: redirects, and whether subdomains and preload lists are bound.
LEFT_TO_THE_PROXY = {"security.W005", "security.W008", "security.W021"}
DEPLOYMENT_CHECKS = (
    "import json; from django.core.checks import run_checks; "
    "print(json.dumps([found.id for found in run_checks(include_deployment_checks=True)]))"
)


def test_deployment_checks_have_no_complaint_behind_tls(tmp_path):
    command = ["shell", "--verbosity", "0", "--command", DEPLOYMENT_CHECKS]
    outcome = manage(tmp_path, *command, PUBLIC_URL="https://touchstone.example.org")
    assert outcome.returncode == 0, outcome.stderr
    assert set(json.loads(outcome.stdout)) <= LEFT_TO_THE_PROXY
