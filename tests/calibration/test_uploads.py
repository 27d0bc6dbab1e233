"""Files of other tools through the browser: columns, preview, one import; and large files by a worker."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse
from django.utils import timezone

from annotate.models import Annotation
from calibration import exchange, uploads
from calibration.mapping_form import mark_of
from calibration.models import Upload
from evalsets.models import EvalSet, EvalSetVersion
from tests.evalsets.files import jsonl, line
from tests.evalsets.shapes.test_tables import MAPPING, as_csv, as_parquet, as_xlsx

pytestmark = pytest.mark.django_db

NEW = "/evalsets/new/"
COLUMNS = {f"column-{index}": target for index, target in enumerate(MAPPING.columns.values())}
LABELS = {
    f"value-{index}-{place}": ours
    for index, values in enumerate((("supported", "contradicted"), ("supported", "unverifiable")))
    for place, ours in enumerate(values)
} | {"question-0": "grounding", "question-1": "grounding", "name-0": "ada", "name-1": "ben"}
ASKED = {f"asked-{index}": mark_of(name) for index, name in enumerate(("Urteil Ada", "Urteil Ben"))}
LABELS |= ASKED


@pytest.fixture(autouse=True)
def _files_of_the_test(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"


@pytest.fixture
def sender(client, person):
    made = person("sender")
    client.force_login(made)
    return made


def send(client, stream, name, **more):
    file = SimpleUploadedFile(name, stream.getvalue())
    return client.post(NEW, {"name": "Tresor", "file": file, **more})


def sent(client, write=as_csv) -> str:
    answer = send(client, *write())
    assert answer.status_code == 302, answer.content.decode()[:400]
    assert answer.url == reverse("calibration:upload_page", args=[Upload.objects.get().pk])
    return answer.url


@pytest.mark.parametrize("write", [as_csv, as_xlsx, as_parquet])
def test_a_table_waits_for_its_columns_and_nothing_is_imported_before(client, sender, write):
    page = client.get(sent(client, write)).content.decode()
    for words in ("Urteil Ada", "Sie dauert 14 Tage.", "What this shape cannot say", "3 records"):
        assert words in page
    assert EvalSet.objects.count() == 0


def test_the_labels_of_a_column_are_asked_for_once_it_is_one(client, sender):
    url = sent(client)
    answer = client.post(url, {**COLUMNS, "act": "import"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Say what its labels are here" in page
    assert 'name="value-0-1"' in page
    assert EvalSet.objects.count() == 0


def test_labels_called_as_ours_stand_chosen_and_are_not_imported_before_they_were_seen(client, sender):
    url = sent(client, lambda: as_csv([["1", "Wer?", "Zwei.", "Es sind zwei.", "supported", "ja", ""]]))
    page = client.post(url, {**COLUMNS, "act": "import"}).content.decode()
    assert EvalSet.objects.count() == 0
    for chosen in ("grounding", "supported"):
        assert page.count(f'<option value="{chosen}" selected>') == 1  # Ada's; what Ben means nobody knows
    assert 'name="name-0" value="Urteil Ada"' in page
    assert 'name="name-1" value="' not in page
    labels = {"question-0": "grounding", "name-0": "Ada", "value-0-0": "supported", "question-1": "-"} | ASKED
    client.post(url, {**COLUMNS, **labels, "act": "import"})
    assert list(Annotation.objects.values_list("grader__name", "label")) == [("Ada", "supported")]


def test_answers_about_one_column_are_not_taken_for_those_about_another(client, sender):
    """Ben's column is the first of labels now; what was said of Ada's stands at its place on the page."""
    columns = COLUMNS | {"column-4": "-"}
    answer = client.post(sent(client), {**columns, **LABELS, "act": "import"})
    assert answer.status_code == 422
    assert "Say what its labels are here" in answer.content.decode()
    assert EvalSet.objects.count() == 0


def test_a_label_without_a_choice_is_an_error_of_the_form(client, sender):
    answer = client.post(sent(client), {**COLUMNS, **LABELS, "value-1-1": "", "act": "import"})
    assert answer.status_code == 422
    assert "Say which label this is here" in answer.content.decode()
    assert EvalSet.objects.count() == 0


def test_the_preview_shows_the_first_records_and_stores_nothing(client, sender):
    page = client.post(sent(client), {**COLUMNS, **LABELS, "act": "preview"}).content.decode()
    assert "The first records, as they would be imported" in page
    assert "14 Tage, kostenlos." in page
    assert EvalSet.objects.count() == 0


def test_a_mapped_table_is_imported_with_its_labels_in_one_go(client, sender):
    url = sent(client)
    assert client.post(url, {**COLUMNS, **LABELS, "act": "import"}).url == url
    version = EvalSetVersion.objects.get()
    assert client.get(url).url == reverse("evalsets:version", args=[version.evalset.slug, 1])
    assert version.responses.count() == 2
    assert Annotation.objects.count() == 5
    upload = Upload.objects.get()
    assert (upload.state, upload.result, upload.counts["annotations"]) == ("done", version, 5)
    assert not upload.file


def test_importing_twice_imports_once(client, sender):
    url = sent(client)
    for _again in range(2):
        client.post(url, {**COLUMNS, **LABELS, "act": "import"})
    assert EvalSetVersion.objects.count() == 1


def test_a_file_that_is_refused_names_its_lines_and_can_be_mapped_again(client, sender):
    url = sent(
        client, lambda: as_csv([["1", "Wer?", "Zwei.", "", "", "", ""], ["1", "Was?", "", "", "", "", ""]])
    )
    columns = COLUMNS | {"column-4": "meta", "column-5": "meta"}
    client.post(url, {**columns, "act": "import"})
    answer = client.get(url)
    assert answer.status_code == 422
    assert "differs from line 2" in answer.content.decode()
    assert EvalSet.objects.count() == 0
    client.post(url, {**columns, "column-0": "item_id", "act": "import"})
    assert Upload.objects.get().state == "refused"  # two questions of one item are refused as well


def test_what_reading_a_file_leaves_out_is_told_before_it_is_imported(client, sender):
    task = {"id": 1, "data": {"question": "Who?", "answer": "Two."}, "annotations": [{"was_cancelled": True}]}
    file = SimpleUploadedFile("export.json", json.dumps([task]).encode())
    page = client.post(NEW, {"name": "Tresor", "file": file}, follow=True).content.decode()
    assert "1 annotations that were cancelled were left out." in page


@pytest.mark.parametrize(
    ("content", "name", "told"),
    [
        (b'[{"scenario": "s", "turns": [{"role": "user"}]}]', "goldens.json", "a conversation of 1 turns"),
        (b"evalId: e\n", "results.yaml", "are not read"),
        (b'{"user_input": {"0": "Who?"}, "response": {"0": "Two."}}', "frame.json", "column by column"),
    ],
)
def test_another_tools_file_that_cannot_be_read_is_told_at_once(client, sender, content, name, told):
    file = SimpleUploadedFile(name, content)
    answer = client.post(NEW, {"name": "Tresor", "file": file})
    assert answer.status_code == 422
    assert told in answer.content.decode()
    assert not Upload.objects.exists()


def test_a_mapping_with_two_questions_is_told_on_the_page(client, sender):
    answer = client.post(sent(client), {**COLUMNS, **LABELS, "column-2": "question", "act": "import"})
    assert answer.status_code == 422
    assert "two columns are to be question" in answer.content.decode()


@pytest.mark.parametrize("method", ["get", "post"])
def test_nobody_else_finds_the_upload(client, sender, person, method):
    url = sent(client)
    client.force_login(person("other"))
    for path in (url, f"{url}progress/", f"{url}discard/"):
        if (method, path) != ("get", f"{url}discard/"):
            assert getattr(client, method)(path).status_code in (404, 405)
    assert getattr(client, method)(url).status_code == 404
    assert Upload.objects.count() == 1


def test_a_file_can_be_thrown_away(client, sender):
    url = sent(client)
    path = Upload.objects.get().file.path
    assert client.get(f"{url}discard/").status_code == 405
    client.post(f"{url}discard/")
    assert Upload.objects.count() == 0
    assert not uploads.Path(path).exists()
    assert client.get(url).status_code == 404


def test_other_peoples_text_stays_text(client, sender):
    row = ["1", "<img src=x onerror=alert(1)>", "{{ 7*7 }}", "", "", "", ""]
    stream, _name = as_csv([row])
    page = client.get(sent(client, lambda: (stream, "<b>x</b>.csv"))).content.decode()
    assert "<img src=x" not in page and "<b>x</b>" not in page
    assert "{{ 7*7 }}" in page


def test_responses_of_another_tool_go_to_a_frozen_version(client, evalset, lead):
    told = exchange.import_evalset(
        stream=jsonl(line(id="q1", item_id="q1")), filename="f.jsonl", name=evalset.slug, freeze=True
    )
    client.force_login(lead)
    version = EvalSetVersion.objects.get(number=told["version"])
    url = reverse("calibration:upload_responses", args=[evalset.slug, version.number])
    case = [{"name": "n1", "input": "x", "actual_output": "Two.", "item": "q1"}]
    file = SimpleUploadedFile("run.json", json.dumps(case).encode())
    page = client.post(url, {"file": file}).url
    plan = uploads.plan_of_upload(Upload.objects.get())
    wanted = {"name": "id", "input": "-", "actual_output": "response", "item": "item_id"}
    columns = {f"column-{index}": wanted[name] for index, name in enumerate(plan.columns)}
    client.post(page, {**columns, "act": "import"})
    assert version.responses.count() == 2
    assert client.get(page).status_code == 302


# Large files


@pytest.fixture
def large(settings, monkeypatch):
    """Every file is large, and no worker is told: the test is the worker."""
    settings.IMPORT_INLINE_BYTES = 10
    rung = []
    monkeypatch.setattr(uploads, "ring", lambda upload: rung.append(upload.pk))
    return rung


def native(client, *lines):
    return send(client, jsonl(*lines), "set.jsonl").url


def test_a_large_native_file_is_left_to_a_worker(client, sender, large):
    url = native(client, line(), line())
    upload = Upload.objects.get()
    assert (upload.state, large) == ("queued", [upload.pk])
    page = client.get(url).content.decode()
    assert "waits for a worker" in page and "No worker was seen" in page
    assert EvalSet.objects.count() == 0

    uploads.import_upload(upload_id=upload.pk)
    assert "Imported." in client.get(f"{url}progress/").content.decode()
    assert client.get(url).status_code == 302
    assert EvalSetVersion.objects.get().responses.count() == 2


def test_a_doubled_or_late_message_changes_nothing(client, sender, large):
    native(client, line())
    for _again in range(3):
        uploads.import_upload(upload_id=Upload.objects.get().pk)
    assert EvalSetVersion.objects.count() == 1
    uploads.import_upload(upload_id=999)


def test_a_refused_large_file_lists_its_problems(client, sender, large):
    url = native(client, line(), line(response=5))
    uploads.import_upload(upload_id=Upload.objects.get().pk)
    page = client.get(url).content.decode()
    assert "Refused: 1 problem" in page and "a string is expected" in page
    assert EvalSet.objects.count() == 0


def test_an_attempt_that_was_overtaken_stores_nothing(client, sender, large, monkeypatch):
    native(client, line())
    upload = Upload.objects.get()
    real = exchange.import_evalset

    def slow(**words):
        Upload.objects.update(attempt=2)  # another worker takes it over meanwhile
        return real(**words)

    monkeypatch.setattr(exchange, "import_evalset", slow)
    uploads.import_upload(upload_id=upload.pk)
    assert EvalSet.objects.count() == 0
    assert Upload.objects.get().state == "running"


def test_a_fault_of_ours_is_said_and_stores_nothing(client, sender, large, monkeypatch):
    url = native(client, line())

    def broken(**_words):
        raise ZeroDivisionError

    monkeypatch.setattr(exchange, "import_evalset", broken)
    uploads.import_upload(upload_id=Upload.objects.get().pk)
    assert "a fault of this program" in client.get(url).content.decode()
    assert EvalSet.objects.count() == 0


def test_the_sweep_rings_again_and_gives_back_what_a_lost_worker_held(client, sender, large):
    native(client, line())
    large.clear()
    uploads.sweep()
    assert large == [Upload.objects.get().pk]

    long_ago = timezone.now() - timedelta(hours=1)
    Upload.objects.update(state="running", attempt=1, changed_at=long_ago)
    uploads.sweep()
    assert Upload.objects.get().state == "queued"

    Upload.objects.update(state="running", attempt=3, changed_at=long_ago)
    uploads.sweep()
    assert Upload.objects.get().state == "failed"


def test_a_worker_that_still_speaks_is_left_alone(client, sender, large):
    native(client, line())
    Upload.objects.update(state="running", attempt=1, changed_at=timezone.now() - timedelta(hours=1))
    uploads._Progress(Upload.objects.get()).note(500)
    uploads.sweep()
    assert Upload.objects.get().state == "running"
    assert uploads.progress_of(Upload.objects.get()).line == 500


def test_files_that_nobody_came_back_for_are_forgotten(client, sender):
    sent(client)
    Upload.objects.update(changed_at=timezone.now() - timedelta(days=8))
    uploads.sweep()
    assert Upload.objects.count() == 0
