"""Other tools' files through the commands: what was understood, the mapping, and what comes of it."""

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command

from annotate.models import Annotation
from evalsets.models import EvalSetVersion
from tests.evalsets.files import rows_of_every_table

pytestmark = pytest.mark.django_db

TASKS = [
    {
        "id": number,
        "data": {"question": f"Who {number}?", "answer": "Two keepers."},
        "annotations": [
            {
                "completed_by": {"email": f"{who}@example.org"},
                "result": [{"from_name": "kind", "type": "choices", "value": {"choices": [value]}}],
            }
            for who, value in (("ada", "answers"), ("ben", "answers" if number == 1 else "refuses"))
        ],
    }
    for number in (1, 2)
]


@pytest.fixture
def tasks(tmp_path):
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(TASKS))
    return path


def run(*words):
    out = io.StringIO()
    call_command(*(str(word) for word in words), stdout=out)
    return json.loads(out.getvalue())


def test_show_map_prints_a_mapping_to_fill_in_and_stores_nothing(tasks):
    before = rows_of_every_table()
    shown = run("import_evalset", tasks, "--name", "Vault", "--show-map")
    assert shown["format"] == "label_studio"
    assert shown["columns"] == {"id": "id", "question": "question", "answer": "response"}
    assert shown["labels"]["kind"]["values"] == {"answers": None, "refuses": None}
    assert shown["names"] == {"ada@example.org": "ada@example.org", "ben@example.org": "ben@example.org"}
    assert rows_of_every_table() == before


def test_a_mapping_that_was_filled_in_imports_texts_and_labels(tasks, tmp_path):
    mapping = run("import_evalset", tasks, "--name", "Vault", "--show-map")
    rule = {"dimension": "abstention", "values": {"answers": "ANSWERED", "refuses": "REFUSED"}}
    mapping["labels"]["kind"] = rule
    mapping["names"]["ada@example.org"] = "ada"
    path = tmp_path / "map.json"
    path.write_text(json.dumps(mapping))
    told = run("import_evalset", tasks, "--name", "Vault", "--map", path, "--with-labels", "--json")
    assert told["counts"] | {"passages": 0} == {
        "items": 2,
        "responses": 2,
        "passages": 0,
        "claims": 0,
        "annotations": 4,
        "verdicts": 0,
    }
    said = Annotation.objects.order_by("response__position", "grader__name")
    assert list(said.values_list("grader__name", "label")) == [
        ("ada", "ANSWERED"),
        ("ben@example.org", "ANSWERED"),
        ("ada", "ANSWERED"),
        ("ben@example.org", "REFUSED"),
    ]


def test_a_suggestion_that_nobody_filled_in_is_refused_line_by_line(tasks, tmp_path):
    mapping = run("import_evalset", tasks, "--name", "Vault", "--show-map")
    mapping["labels"]["kind"]["dimension"] = "abstention"
    path = tmp_path / "map.json"
    path.write_text(json.dumps(mapping))
    before = rows_of_every_table()
    out = io.StringIO()
    with pytest.raises(CommandError, match="4 problems"):
        call_command(
            "import_evalset",
            str(tasks),
            "--name=Vault",
            f"--map={path}",
            "--with-labels",
            "--json",
            stdout=out,
        )
    assert {problem["field"] for problem in json.loads(out.getvalue())["problems"]} == {"kind"}
    assert rows_of_every_table() == before


def test_labels_that_are_wanted_need_a_mapping(tasks):
    with pytest.raises(CommandError, match="4 problems"):
        call_command(
            "import_evalset",
            str(tasks),
            "--name=Vault",
            "--format=auto",
            "--with-labels",
            stderr=io.StringIO(),
        )


def test_columns_can_be_told_one_by_one(tmp_path):
    path = tmp_path / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerows([["Fall", "Frage", "Antwort"], ["1", "Wer?", "Zwei."]])
    words = ["--map", "Fall=id", "--map", "Frage=question", "--map", "Antwort=response"]
    told = run("import_evalset", path, "--name", "Tresor", *words, "--json")
    assert told["counts"]["responses"] == 1
    version = EvalSetVersion.objects.get(evalset__slug=told["evalset"])
    assert version.items.get().question == "Wer?"


def test_annotations_of_another_tool_go_to_the_responses_that_are_there(tasks, tmp_path):
    told = run("import_evalset", tasks, "--name", "Vault", "--format", "auto", "--freeze", "--json")
    scores = tmp_path / "scores.jsonl"
    score = {"traceId": "2", "source": "ANNOTATION", "name": "kind", "dataType": "CATEGORICAL"}
    scores.write_text(json.dumps(score | {"stringValue": "refuses", "authorUserName": "Ada"}) + "\n")
    path = tmp_path / "map.json"
    rule = {"dimension": "abstention", "values": {"refuses": "REFUSED"}}
    path.write_text(json.dumps({"format": "langfuse", "labels": {"kind": rule}}))
    into = f"{told['evalset']}@{told['version']}"
    told = run("import_labels", scores, "--into", into, "--map", path, "--json")
    assert told["counts"]["annotations"] == 1
    assert Annotation.objects.get().label == "REFUSED"
