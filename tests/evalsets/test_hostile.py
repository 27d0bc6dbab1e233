"""Every file of the hostile collection, through the service and through the command."""

import json
import resource

import pytest
from django.core.management import CommandError, call_command

from evalsets.importing import ImportRefused
from evalsets.models import EvalSet, Item, Response
from evalsets.services import import_evalset
from tests.evalsets.files import rows_of_every_table
from tests.evalsets.hostile import ACCEPTED, REFUSED

pytestmark = [pytest.mark.django_db, pytest.mark.once]


@pytest.fixture
def hostile(shared):
    return shared / "hostile"


def _import(path):
    with path.open("rb") as stream:
        return import_evalset(stream=stream, filename=path.name, name=path.name)


def _matches(problem: dict, expected) -> bool:
    line, field, message = expected
    return (problem["line"], problem["field"]) == (line, field) and message in problem["message"]


def test_every_file_of_the_collection_is_tried(hostile):
    files = {path.name for path in hostile.iterdir() if path.name[:2].isdigit()}
    assert files == ACCEPTED.keys() | REFUSED.keys()


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(hostile, name):
    imported = _import(hostile / name)
    assert imported.counts["items"] == imported.version.items.count() == ACCEPTED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_every_problem_and_nothing_stored(hostile, name):
    before = rows_of_every_table()
    with pytest.raises(ImportRefused) as refused:
        _import(hostile / name)
    problems = [problem.as_json() for problem in refused.value.problems]
    assert len(problems) == len(REFUSED[name])
    assert all(map(_matches, problems, REFUSED[name])), problems
    assert all(len(problem["value"]) <= 80 for problem in problems)
    assert rows_of_every_table() == before


@pytest.mark.parametrize("name", sorted(ACCEPTED.keys() | REFUSED.keys()))
def test_the_command_prints_one_json_object(hostile, name, capsys):
    before = rows_of_every_table()
    arguments = ["import_evalset", str(hostile / name), "--name", "hostile", "--json"]
    if name in ACCEPTED:
        call_command(*arguments)
        told = json.loads(capsys.readouterr().out)
        assert (told["evalset"], told["version"], told["state"]) == ("hostile", 1, "draft")
        assert told["counts"]["items"] == ACCEPTED[name]
        return
    with pytest.raises(CommandError):
        call_command(*arguments)
    told = json.loads(capsys.readouterr().out)
    assert len(told["problems"]) == len(REFUSED[name])
    assert all(map(_matches, told["problems"], REFUSED[name]))
    assert rows_of_every_table() == before


def test_the_byte_order_mark_is_no_part_of_the_first_key(hostile):
    version = _import(hostile / "01_bom.jsonl").version
    assert version.items.get(position=1).item_id == "q1"


def test_a_csv_cell_keeps_its_lines_commas_and_quotes(hostile):
    version = _import(hostile / "03_embedded_newlines_quotes.csv").version
    assert version.responses.get(response_id="1").text == "Two lines:\nfirst, second\r\nthird"
    assert version.items.get(item_id="1").question == 'What does "net 30" mean?'


def test_empty_responses_are_kept_and_seen_as_empty(hostile):
    imported = _import(hostile / "08_empty_response.jsonl")
    assert all(response.is_empty for response in imported.version.responses.all())
    assert [r.text for r in imported.version.responses.order_by("position")] == [
        "",
        "   \n\t",
        "",
        "\u200b\u200d\ufeff",
    ]
    assert imported.notices == ["The response is null; it is stored as an empty response. (line 3)"]


def test_a_long_response_is_kept_whole(hostile):
    assert len(_import(hostile / "09_response_200kB.jsonl").version.responses.get().text) == 204_800


def test_code_points_are_kept_exactly(hostile):
    path = hostile / "10_rtl_emoji_combining.jsonl"
    version = _import(path).version
    for given in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        assert version.responses.get(response_id=given["id"]).text == given["response"]


def test_formulas_are_stored_as_they_are(hostile):
    version = _import(hostile / "12_formula_injection.csv").version
    assert version.items.get(item_id="1").question == '=HYPERLINK("http://example.invalid","x")'
    assert version.responses.get(response_id="3").text == "\t=1+1"


def test_zero_claims_are_accepted(hostile, tmp_path):
    lines = (hostile / "18_empty_claim_text.jsonl").read_text().splitlines()
    path = tmp_path / "zero.jsonl"
    path.write_text("\n".join(lines[1:]))
    assert _import(path).counts["claims"] == 0


def test_ids_that_differ_in_case_are_two_items(hostile, tmp_path):
    lines = (hostile / "17_ids_case_whitespace.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "case.jsonl"
    path.write_text("\n".join([lines[0], lines[1], lines[5]]), encoding="utf-8")
    version = _import(path).version
    assert set(version.items.values_list("item_id", flat=True)) == {"Q1", "q1", "\uff311"}
    assert version.items.filter(item_id="Q1").count() == 1


def test_a_gzip_bomb_does_not_fill_the_memory(hostile):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ImportRefused):
        _import(hostile / "29_gzip_bomb.jsonl.gz")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 40 * 1024  # kB; the file unpacks to 60 MB, the limit of a line is 16 MB


def test_a_refused_next_version_leaves_the_first_alone(hostile):
    _import(hostile / "01_bom.jsonl")
    EvalSet.objects.update(name="same", slug="same")
    before = rows_of_every_table()
    with (hostile / "05_missing_fields.jsonl").open("rb") as stream, pytest.raises(ImportRefused):
        import_evalset(stream=stream, filename="x.jsonl", name="same")
    assert rows_of_every_table() == before
    assert (Item.objects.count(), Response.objects.count()) == (2, 2)
