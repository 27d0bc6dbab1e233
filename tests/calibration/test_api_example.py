"""The example of docs/api.md, run as a CI job runs it: against a live server."""

import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest
from django.conf import settings
from django.db import connections

from calibration import exchange, services
from calibration.models import CalibrationReport, JudgeRun
from evalsets.models import Membership, SystemRun
from evalsets.tokens import make_token
from tests.evalsets.files import jsonl, line

pytestmark = pytest.mark.once

EXAMPLE = Path(settings.BASE_DIR) / "docs" / "push_and_check.py"
CLAIMS = {
    "supported": "The trial lasts 14 days.",
    "contradicted": "The trial lasts 30 days.",
    "unsupported": "Bananas ripen underwater.",
}
SMALL = {
    "min_targets": 30,
    "min_targets_per_system": 20,
    "min_responses": 20,
    "min_positive": 8,
    "min_negative": 8,
}


def responses(system, labelled=True):
    lines = []
    for number in range(36):
        label = list(CLAIMS)[number % 3]
        said = {"human_labels": {"ada": label, "ben": label}} if labelled else {}
        claim = {"id": "c", "text": CLAIMS[label], **said}
        name = f"{system}-{number}"
        lines.append(line(id=name, item_id=f"i{number}", system={"model": system}, claims=[claim]))
    return jsonl(*lines).getvalue()


@pytest.fixture
def workers(monkeypatch):
    """Whoever rings is answered by a thread that works through the run."""
    threads = []

    def work(pk):
        services.run_inline(run=JudgeRun.objects.get(pk=pk))
        connections.close_all()

    def ring(run, bells):
        threads.append(Thread(target=work, args=[run.pk]))
        threads[-1].start()

    monkeypatch.setattr(services, "ring", ring)
    yield
    for thread in threads:
        thread.join()


@pytest.fixture
def job(live_server, workers, settings, person, tmp_path):
    """Runs the example: job(content, limit) -> the finished process."""
    settings.TRUST_GATE = SMALL
    lead = person("lead")
    items = jsonl(*(line(id=f"i{number}", response=..., claims=..., system=...) for number in range(36)))
    exchange.import_evalset(stream=items, filename="items.jsonl", name="bot", person=lead, freeze=True)
    assert Membership.objects.get().person == lead
    _token, secret = make_token(person=lead, name="job", scopes=["read", "import", "judge"], days=1)
    file = tmp_path / "responses.jsonl"

    def run(content, limit, token=secret):
        file.write_bytes(content)
        return subprocess.run(
            [
                sys.executable,
                str(EXAMPLE),
                "bot",
                "1",
                str(file),
                "lexical-baseline",
                f"hallucination={limit}",
            ],
            env=os.environ | {"TOUCHSTONE_URL": live_server.url, "TOUCHSTONE_TOKEN": token},
            capture_output=True,
            text=True,
            timeout=60,
        )

    return run


@pytest.mark.django_db(transaction=True)
def test_the_job_ends_as_gate_and_rates_say(job):
    good = job(responses("build-1"), 0.9)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "FAIL" not in good.stdout
    over = job(responses("build-1"), 0.1)  # the same content again: nothing is pushed or started twice
    assert over.returncode == 1
    assert "FAIL hallucination is 0.6667, limit 0.1." in over.stdout
    assert (SystemRun.objects.count(), JudgeRun.objects.count()) == (1, 1)
    ungraded = job(responses("build-2", labelled=False), 0.9)
    assert ungraded.returncode == 1
    assert "UNCALIBRATED on build-2" in ungraded.stdout
    assert CalibrationReport.objects.exists()
    broken = job(b'{"id": 7}\n', 0.9)
    assert broken.returncode == 1
    assert '"line":1' in broken.stderr
    nobody = job(responses("build-3"), 0.9, token="ts_wrong")
    assert nobody.returncode == 1
    assert "401" in nobody.stderr


def test_the_example_is_short():
    code = EXAMPLE.read_text().split('"""')[2]
    assert len([text for text in code.splitlines() if text.strip() and not text.startswith("import")]) <= 30
