"""Importing and freezing through the services."""

import json
import resource
import threading

import pytest
from django.db import connections

from evalsets.importing import ImportRefused
from evalsets.models import EvalSet, EvalSetVersion, Membership, SystemRun
from evalsets.services import (
    check_responses,
    freeze_run,
    freeze_version,
    import_evalset,
    import_responses,
    run_hash,
    store_responses,
    version_hash,
)
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = pytest.mark.django_db


def imported(*lines, name="Trial questions", person=None):
    return import_evalset(stream=jsonl(*lines), filename="trial.jsonl", name=name, person=person)


def refusal(call, *args, **options) -> list[tuple]:
    before = rows_of_every_table()
    with pytest.raises(ImportRefused) as refused:
        call(*args, **options)
    assert rows_of_every_table() == before
    return [(problem.line, problem.field, problem.message) for problem in refused.value.problems]


def added(version, *lines):
    return import_responses(stream=jsonl(*lines), filename="more.jsonl", version=version)


def test_import_makes_a_draft_with_a_run_for_each_system(person):
    someone = person("ada")
    made = imported(
        line(id="a", item_id="q1"),
        line(id="b", item_id="q1", system={"model": "demo-2"}),
        line(id="c", item_id="q2"),
        person=someone,
    )
    assert str(made.version) == "trial-questions@1"
    assert (made.version.state, made.version.content_hash, made.version.created_by) == ("draft", "", someone)
    assert made.version.source_name == "trial.jsonl"
    assert made.counts == {"items": 2, "responses": 3, "passages": 3, "claims": 3}
    assert [(run.number, str(run.system), run.responses.count()) for run in made.runs] == [
        (1, "demo-1", 2),
        (2, "demo-2", 1),
    ]
    assert [item.item_id for item in made.version.items.order_by("position")] == ["q1", "q2"]


def test_who_uploads_becomes_lead(person):
    someone = person("ada")
    evalset = imported(line(), person=someone).version.evalset
    assert list(Membership.objects.values_list("person", "evalset", "role")) == [
        (someone.pk, evalset.pk, "lead")
    ]


def test_an_existing_name_or_slug_makes_the_next_version(person):
    someone = person("ada")
    first = imported(line(id="a"), person=someone).version
    second = imported(line(id="a"), person=someone).version
    third = imported(line(id="a"), name="trial-questions").version
    assert [version.number for version in (first, second, third)] == [1, 2, 3]
    assert EvalSet.objects.count() == 1
    assert second.runs.get().system == first.runs.get().system


def test_only_a_lead_imports_under_an_existing_name(person):
    imported(line(), person=person("ada"))
    ((number, field, message),) = refusal(imported, line(), person=person("stranger"))
    assert (number, field) == (None, "name")
    assert "do not lead" in message


@pytest.mark.parametrize("name", ["", "  ", "x" * 201, "a\0b", "\u200b"])
def test_a_bad_name_is_refused(name):
    assert [field for _, field, _ in refusal(imported, line(), name=name)] == ["name"]


@pytest.mark.parametrize(
    ("names", "slugs"),
    [
        (["Größe", "問題集"], ["groe", "set-"]),
        (["new"], ["new-2"]),
        (["A b", "a-B!"], ["a-b", "a-b-2"]),
        (["x" * 150], ["x" * 70]),
    ],
)
def test_slugs_are_made_from_names(names, slugs):
    made = [imported(line(), name=name).version.evalset.slug for name in names]
    assert all(slug.startswith(start) for slug, start in zip(made, slugs, strict=True))
    assert len(set(made)) == len(made)


def test_freezing_a_version_gives_it_a_hash_once(person):
    someone = person("ada")
    version = imported(line(id="a")).version
    frozen = freeze_version(version=version, person=someone)
    assert (frozen.state, frozen.frozen_by, len(frozen.content_hash)) == ("frozen", someone, 64)
    again = freeze_version(version=version, person=person("ben"))
    assert (again.frozen_at, again.frozen_by) == (frozen.frozen_at, someone)


def test_the_hash_is_of_the_content_not_of_the_order_or_the_rows():
    lines = [line(id=f"r{n}", question=f"{n}?", original={"n": n, "f": 1e16, "g": 2.5}) for n in range(5)]
    one, other = imported(*lines), imported(*reversed(lines), name="Other")
    assert version_hash(one.version) == version_hash(other.version)
    assert run_hash(one.runs[0]) == run_hash(other.runs[0])
    changed = imported(*lines[:4], lines[4] | {"question": "4 ?"}, name="Changed")
    assert version_hash(one.version) != version_hash(changed.version)
    assert run_hash(one.runs[0]) == run_hash(changed.runs[0])


def test_the_hash_is_a_known_one():
    """Written down on SQLite; the same test on PostgreSQL must find the same."""
    made = imported(
        line(
            id="r1",
            question="Größe? \U0001f600 e\u0301",
            strata={"b": "2", "a": "1"},
            original={"big": 1e300, "small": 1.5e-7, "whole": 2.0, "n": 12345678901234567890},
        )
    )
    assert version_hash(made.version) == "102c9a944341526e2661977d007a1aac26a946364896505a8a1fdb492cfce43f"
    assert run_hash(made.runs[0]) == "93a9b14ca544833e6a1f8fd54196f6a1f27b36c4685f0a8e18f5edb76f2dbfc8"


def test_freezing_a_run_leaves_out_the_parts_of_splits():
    made = imported(line(id="a"))
    claim = made.runs[0].responses.get().claims.get()
    before = run_hash(made.runs[0])
    frozen = freeze_run(run=made.runs[0])
    assert frozen.content_hash == before
    claim.response.claims.create(parent=claim, position=1, claim_id="c1.1", text="half")
    assert run_hash(frozen) == before
    assert freeze_run(run=made.runs[0]).frozen_at == frozen.frozen_at


@pytest.fixture
def frozen():
    made = imported(
        line(id="a", item_id="q1", question="One?", strata={"language": "en"}),
        line(id="q2", question=None, response=..., claims=..., answerable=None),
    )
    return freeze_version(version=made.version)


def test_responses_are_added_to_a_frozen_version(frozen):
    bare = {"id": "b", "item_id": "q1", "response": "r", "system": {"model": "demo-2"}}
    whole = line(id="c", item_id="q2", question=None, answerable=None, system={"model": "demo-2"})
    made = added(frozen, bare, whole)
    assert made.counts == {"items": 0, "responses": 2, "passages": 1, "claims": 1}
    (run,) = made.runs
    assert (run.number, run.state, run.responses.count()) == (2, "draft", 2)
    assert version_hash(frozen) == frozen.content_hash


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"item_id": "q9"}, "item_id"),
        ({"item_id": "q1", "question": "Other?"}, "question"),
        ({"item_id": "q1", "question": None}, "question"),
        ({"item_id": "q1", "answerable": False}, "answerable"),
        ({"item_id": "q1", "strata": {}}, "strata"),
        ({"item_id": "q1", "stratum": "x"}, "strata"),
        ({"item_id": "q1", "reference_answer": "yes"}, "reference_answer"),
        ({"item_id": "q1", "expected_documents": []}, "expected_documents"),
        ({"item_id": "q1", "item_extra": {"a": 1}}, "extra"),
        ({"item_id": "q1", "id": "a"}, "id"),
    ],
)
def test_a_response_that_contradicts_the_frozen_items_is_refused(frozen, fields, field):
    given = {"id": "b", "response": "r", "system": {"model": "demo-2"}} | fields
    assert [(number, where) for number, where, _ in refusal(added, frozen, given)] == [(1, field)]


def test_a_line_without_a_response_adds_nothing(frozen):
    assert [where for _, where, _ in refusal(added, frozen, {"id": "q1"})] == ["response"]


def test_responses_are_not_added_to_a_draft():
    version = imported(line(id="a")).version
    ((_, _, message),) = refusal(added, version, {"id": "b", "item_id": "a", "response": "r"})
    assert "freeze it first" in message


def test_a_second_run_of_the_same_system_is_a_run_of_its_own(frozen):
    made = added(frozen, {"id": "b", "item_id": "q1", "response": "r", "system": {"model": "demo-1"}})
    assert made.runs[0].number == 2
    assert SystemRun.objects.filter(version=frozen, system=made.runs[0].system).count() == 2


def test_an_id_that_was_taken_since_the_check_is_refused(frozen):
    given = {"item_id": "q1", "response": "r", "system": {"model": "demo-2"}}
    stream = jsonl({"id": "b", **given}, {"id": "c", **given, "sample": 2})
    late = check_responses(stream=stream, filename="late.jsonl", version=frozen)
    added(frozen, {"id": "c", **given})
    ((number, field, message),) = refusal(store_responses, checked=late, version=frozen)
    assert (number, field) == (2, "id") and "already has a response" in message
    other = check_responses(stream=jsonl({"id": "d", **given}), filename="d.jsonl", version=frozen)
    added(frozen, {"id": "e", **given})
    assert store_responses(checked=other, version=frozen).counts["responses"] == 1


def test_progress_is_told():
    seen = []
    import_evalset(
        stream=jsonl(*(line() for _ in range(1200))), filename="x.jsonl", name="x", on_progress=seen.append
    )
    assert seen == [500, 1000, 1200]


@pytest.mark.django_db(transaction=True)
def test_two_imports_at_once_get_two_numbers():
    errors = []

    def work():
        try:
            imported(line(id="a"))
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(EvalSetVersion.objects.values_list("number", flat=True)) == [1, 2, 3, 4]
    assert EvalSet.objects.count() == 1


@pytest.mark.parametrize("responses", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_large_file_is_streamed(responses, tmp_path):
    path = tmp_path / "large.jsonl"
    with path.open("w") as file:
        for n in range(responses):
            given = line(id=f"r{n}", item_id=f"q{n // 2}", sample=1 + n % 2, response="word " * 200)
            file.write(json.dumps(given) + "\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with path.open("rb") as stream:
        made = import_evalset(stream=stream, filename=path.name, name="large")
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert made.counts["responses"] == responses
    assert grown < 60 * 1024 + responses * 1.2, f"{grown} kB"  # kB: batches, and ids with their digests
    assert path.stat().st_size > responses * 1200
