"""REST: label files, draws from a traffic log, and that nothing is locked while a file is read."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from annotate.models import Annotation
from calibration import exchange, label_files
from calibration.api import files
from evalsets.models import EvalSetVersion, KeptAnswer
from tests.api import Api, problem
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = pytest.mark.django_db
VERSIONS = "/evalsets/roles/versions/"
LABELS = f"{VERSIONS}1/labels/"
LOG = b"\n".join(
    json.dumps({"question": f"How far is it to {number}?", "lang": "en" if number % 4 else "de"}).encode()
    for number in range(40)
)


@pytest.fixture
def api(lead):
    return Api(lead)


@pytest.fixture
def imported(api):
    lines = [line(id=f"r{n}", claims=[{"id": "c", "text": "So."}]) for n in range(3)]
    assert api.send_file(f"{VERSIONS}?freeze=true", jsonl(*lines).getvalue()).status_code == 201


def labels(*said, grader="ada"):
    rows = [
        {"response": f"r{n}", "claim": "c", "grader": grader, "label": label} for n, label in enumerate(said)
    ]
    return jsonl(*rows).getvalue()


# Labels


def test_a_label_file_is_stored_and_its_repetition_changes_nothing(api, imported):
    answer = api.send_file(LABELS, labels("supported", "contradicted"), key="labels")
    assert answer.status_code == 201
    assert answer.json()["counts"]["annotations"] == 2
    assert api.send_file(LABELS, labels("supported", "contradicted"), key="labels").content == answer.content
    again = api.send_file(LABELS, labels("supported", "contradicted")).json()
    assert (again["counts"]["annotations"], len(again["notices"])) == (0, 1)
    csv = b"response,claim,grader,label\nr2,c,ada,supported\n"
    assert api.send_file(LABELS, csv, content_type="text/csv").status_code == 201
    assert Annotation.objects.count() == 3


def test_a_label_file_that_is_wrong_names_line_and_value_and_stores_nothing(api, imported):
    before = rows_of_every_table()
    content = (
        labels("supported", "splendid", "supported") + jsonl({"response": "r9", "label": "x"}).getvalue()
    )
    told = problem(api.send_file(LABELS, content), 422)
    assert (2, "splendid") in {(error["line"], error["value"]) for error in told["errors"]}
    problem(api.send_file(f"{LABELS}?dimension=colour", labels("supported")), 400)
    dry = api.send_file(f"{LABELS}?dry_run=true", labels("supported"))
    assert (dry.json()["dry_run"], dry.json()["counts"]["annotations"]) == (True, 1)
    assert rows_of_every_table() == before


def test_labels_of_others_are_for_leads(imported, grader_a, stranger, lead):
    for somebody in (grader_a, stranger):
        problem(Api(somebody).send_file(LABELS, labels("supported")), 404)
    problem(Api(lead, "read").send_file(LABELS, labels("supported")), 403)


# A draw from a log


def draw(api, key=None, **fields):
    """As a form with the log in it."""
    form = {"file": SimpleUploadedFile("log.jsonl", LOG), "name": "Drawn", "strata": "lang"} | fields
    headers = api.headers | ({"Idempotency-Key": key} if key else {})
    return api.client.post("/api/v1/samples/", form, headers=headers)


def test_a_draw_is_seeded_balanced_and_stored_once(api):
    shown = draw(api, size=8, seed=3, dry_run="true")
    assert (shown.status_code, shown.json()["version"]) == (200, None)
    made = draw(api, size=8, seed=3, key="draw")
    assert made.status_code == 201
    assert made.json() == shown.json() | {"evalset": "drawn", "version": 1, "dry_run": False}
    assert [stratum["drawn"] for stratum in made.json()["strata"]] == [4, 4]
    assert api.client.get(made["Location"]).json()["counts"]["items"] == 8
    assert draw(api, size=8, seed=3, key="draw").content == made.content
    assert EvalSetVersion.objects.filter(evalset__slug="drawn").count() == 1


def test_a_draw_that_cannot_be_made_is_refused(api, lead):
    problem(draw(api, strata="colour"), 422)
    problem(draw(api, size="many"), 400)
    problem(draw(api, size=0), 400)
    problem(draw(Api(lead, "read")), 403)
    assert not EvalSetVersion.objects.exists()


# The key


@pytest.fixture
def when_read(monkeypatch):
    """What was read, and whether the write of the same request had begun by then."""
    seen = []

    def watched(module, name):
        original = getattr(module, name)

        def reading(*args, **kwargs):
            seen.append((name, KeptAnswer.objects.filter(status=None).exists()))
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, reading)

    watched(label_files, "_targets_of")
    watched(exchange.evalsets, "check_evalset")
    watched(exchange.evalsets, "check_responses")
    watched(files, "draw_sample")
    return seen


def test_with_a_key_a_file_is_read_before_anything_is_locked(api, imported, when_read):
    more = jsonl(*(line(id=f"s{n}", item_id=f"r{n}") for n in range(3))).getvalue()
    assert api.send_file(VERSIONS, more, key="1").status_code == 201
    assert api.send_file(f"{VERSIONS}1/runs/", more, key="2").status_code == 201
    assert draw(api, key="3").status_code == 201
    assert api.send_file(LABELS, labels("supported"), key="4").status_code == 201
    before = [name for name, writing in when_read if not writing]
    assert before == ["check_evalset", "check_responses", "draw_sample", "_targets_of"]
    # Labels are looked up once more while nobody else may write any.
    assert [name for name, writing in when_read if writing] == ["_targets_of"]


def test_with_a_key_a_refused_file_opens_no_write(api, imported, monkeypatch):
    def opened(**fields):
        raise AssertionError("a refused file opens a transaction for the write")

    monkeypatch.setattr(KeptAnswer.objects, "create", opened)
    for path in (VERSIONS, f"{VERSIONS}1/runs/", LABELS):
        problem(api.send_file(path, b"{", key=path), 422)


def test_a_replayed_key_reads_no_file_again(api, imported, when_read):
    content = jsonl(line(id="a")).getvalue()
    first = api.send_file(VERSIONS, content, key="k")
    reads = len(when_read)
    assert api.send_file(VERSIONS, content, key="k").content == first.content
    assert len(when_read) == reads
