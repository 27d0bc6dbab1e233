"""Frozen means frozen: through models, querysets, raw SQL and the admin, on both databases."""

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.urls import reverse

from evalsets.models import Claim, EvalSetVersion, Item, Passage, Response, SystemRun
from evalsets.services import freeze_run, freeze_version, import_evalset, run_hash, version_hash
from tests.evalsets.files import jsonl, line, rows_of_every_table

pytestmark = pytest.mark.django_db


def frozen_version():
    made = import_evalset(stream=jsonl(line(id="r1", item_id="q1")), filename="f.jsonl", name="frozen")
    freeze_run(run=made.runs[0])
    return freeze_version(version=made.version)


@pytest.fixture(scope="module")
def kept_version(kept):
    return kept(frozen_version)


@pytest.fixture
def version(kept_version, db):
    return EvalSetVersion.objects.get(pk=kept_version.pk)


@pytest.fixture
def rows(version):
    response = version.responses.get()
    return {
        "version": version,
        "run": version.runs.get(),
        "item": version.items.get(),
        "response": response,
        "passage": response.passages.get(),
        "claim": response.claims.get(),
    }


CHANGES = {
    "version": {"number": 7},
    "run": {"number": 7},
    "item": {"question": "Changed?"},
    "response": {"text": "changed"},
    "passage": {"text": "changed"},
    "claim": {"text": "changed"},
}


def refused(call) -> None:
    before = rows_of_every_table()
    with pytest.raises(DatabaseError), transaction.atomic():
        call()
    assert rows_of_every_table() == before


@pytest.mark.parametrize("name", CHANGES)
def test_a_row_cannot_be_saved(rows, name):
    row = rows[name]
    for field, value in CHANGES[name].items():
        setattr(row, field, value)
    refused(row.save)


@pytest.mark.parametrize("name", CHANGES)
def test_rows_cannot_be_updated_in_bulk(rows, name):
    refused(lambda: type(rows[name]).objects.update(**CHANGES[name]))


@pytest.mark.parametrize("name", CHANGES)
def test_rows_cannot_be_updated_by_sql(rows, name):
    table = rows[name]._meta.db_table
    ((field, value),) = CHANGES[name].items()

    def update():
        with connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET {field} = %s", [value])

    refused(update)


@pytest.mark.parametrize("name", CHANGES)
def test_rows_cannot_be_deleted(rows, name):
    row = rows[name]
    table = row._meta.db_table

    def by_sql():
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {table} WHERE id = %s", [row.pk])

    refused(by_sql)
    refused(lambda: type(row).objects.filter(pk=row.pk)._raw_delete("default"))


def test_nothing_can_be_added(rows):
    response = rows["response"]
    refused(lambda: Item.objects.create(version=rows["version"], position=9, item_id="new"))
    refused(lambda: Item.objects.bulk_create([Item(version=rows["version"], position=9, item_id="new")]))
    refused(
        lambda: Response.objects.create(
            version=rows["version"],
            run=rows["run"],
            item=rows["item"],
            position=9,
            response_id="new",
            sample=2,
        )
    )
    refused(lambda: Passage.objects.create(response=response, rank=9, passage_id="new"))
    refused(lambda: Claim.objects.create(response=response, position=9, claim_id="new", text="t"))


def test_a_part_of_a_split_can_be_added_and_moves_no_hash(rows):
    Claim.objects.create(
        response=rows["response"], parent=rows["claim"], position=1, claim_id="c1.1", text="t"
    )
    assert run_hash(rows["run"]) == rows["run"].content_hash
    assert version_hash(rows["version"]) == rows["version"].content_hash


@pytest.mark.parametrize("model", [EvalSetVersion, SystemRun])
def test_a_frozen_row_cannot_be_thawed(rows, model):
    refused(lambda: model.objects.update(state="draft", content_hash="", frozen_at=None))
    refused(lambda: model.objects.update(content_hash="0" * 64))


def test_a_frozen_version_takes_a_new_run(rows):
    run = SystemRun.objects.create(version=rows["version"], system=rows["run"].system, number=2)
    Response.objects.create(
        version=rows["version"], run=run, item=rows["item"], position=9, response_id="new", text="t"
    )
    assert run.responses.count() == 1


def test_items_cannot_be_moved_into_a_frozen_version(rows):
    draft = import_evalset(stream=jsonl(line()), filename="f.jsonl", name="draft").version
    refused(lambda: draft.items.update(version=rows["version"], position=99))


@pytest.fixture
def staff(client):
    client.force_login(get_user_model().objects.create_superuser("root", password="root-password"))
    return client


MODELS = ["evalset", "evalsetversion", "item", "system", "systemrun", "response", "passage", "claim"]


@pytest.mark.parametrize("model", MODELS)
def test_the_admin_shows_and_changes_nothing(staff, rows, model):
    listing = reverse(f"admin:evalsets_{model}_changelist")
    assert staff.get(listing).status_code == 200
    pk = rows["version"].evalset.pk if model == "evalset" else _first(model).pk
    assert staff.get(reverse(f"admin:evalsets_{model}_change", args=[pk])).status_code == 200
    before = rows_of_every_table()
    assert staff.post(reverse(f"admin:evalsets_{model}_change", args=[pk]), {"text": "x"}).status_code == 403
    assert staff.get(reverse(f"admin:evalsets_{model}_add")).status_code == 403
    assert (
        staff.post(reverse(f"admin:evalsets_{model}_delete", args=[pk]), {"post": "yes"}).status_code == 403
    )
    staff.post(listing, {"action": "delete_selected", "_selected_action": pk, "post": "yes"})
    assert rows_of_every_table() == before | {"django_session": rows_of_every_table()["django_session"]}


def _first(model):
    from django.apps import apps

    return apps.get_model("evalsets", model).objects.first()


def test_the_admin_registers_nothing_that_people_or_judges_said():
    from django.contrib import admin

    names = {model.__name__ for model in admin.site._registry}
    assert not names & {
        "Annotation",
        "AnnotationEvent",
        "Adjudication",
        "GoldLabel",
        "Flag",
        "Verdict",
        "ClaimSplit",
    }


def test_the_admin_can_make_a_person_lead(staff, rows, person):
    staff.post(
        reverse("admin:evalsets_membership_add"),
        {"person": person("ada").pk, "evalset": rows["version"].evalset.pk, "role": "lead"},
    )
    assert rows["version"].evalset.memberships.get().role == "lead"
