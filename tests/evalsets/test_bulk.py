"""Rows past the objects are the rows that the objects would have made."""

import pytest
from django.db import IntegrityError, connection, transaction

from evalsets.bulk import Bulk, new_keys
from evalsets.models import Claim, EvalSet, KeptAnswer, Passage
from evalsets.services import import_evalset
from evalsets.spool import Spool
from tests.evalsets.files import jsonl, line

pytestmark = pytest.mark.django_db

NAMES = ("response", "rank", "passage_id", "title", "document", "text", "extra")


@pytest.fixture
def response():
    imported = import_evalset(stream=jsonl(line(context=[], claims=[])), filename="f.jsonl", name="set")
    return imported.runs[0].responses.get()


def test_rows_are_as_the_model_stores_them(response):
    extra = {"score": 0.5, "é": ["\\", None, True]}
    made = Passage.objects.create(response=response, rank=1, passage_id="a\tb", text="x\ny\\N", extra=extra)
    Bulk(Passage, *NAMES).insert(
        [(response.pk, 2, "c", None, "", "x\ny\\N", '{"score": 0.5, "é": ["\\\\", null, true]}')]
    )
    stored = Passage.objects.get(rank=2)
    assert (stored.extra, stored.text, stored.title, stored.document) == (extra, made.text, None, "")


def test_what_is_not_named_has_its_default(response):
    Bulk(Claim, "response", "position", "claim_id", "text").insert([(response.pk, 1, "c1", "x")])
    claim = Claim.objects.get()
    assert (claim.source_ids, claim.decision, claim.extra, claim.parent) == ([], None, {}, None)
    Bulk(EvalSet, "slug", "name").insert([("s", "S")])
    evalset = EvalSet.objects.get(slug="s")
    assert (evalset.is_example, evalset.description) == (False, "")
    assert evalset.created_at >= EvalSet.objects.exclude(slug="s").get().created_at


def test_a_broken_rule_is_an_error_of_django(response):
    rows = [(response.pk, 1, "a", None, None, "", "{}"), (response.pk, 1, "b", None, None, "", "{}")]
    with pytest.raises(IntegrityError), transaction.atomic():
        Bulk(Passage, *NAMES).insert(rows)
    assert Passage.objects.count() == 0


def test_nobody_else_gets_a_new_key(response):
    keys = new_keys(Claim, 3)
    rows = [(key, response.pk, n, f"c{n}", "x") for n, key in enumerate(keys)]
    Bulk(Claim, "id", "response", "position", "claim_id", "text").insert(rows)
    later = Claim.objects.create(response=response, position=9, claim_id="later", text="x")
    assert len({*keys, later.pk, *new_keys(Claim, 2)}) == 6
    assert list(new_keys(Claim, 0)) == []


@pytest.mark.django_db(transaction=True)
def test_keys_are_held_by_a_transaction():
    if connection.vendor == "sqlite":
        with pytest.raises(RuntimeError, match="transaction"):
            new_keys(KeptAnswer, 1)
    with transaction.atomic():
        assert len(new_keys(KeptAnswer, 1)) == 1


def test_a_spool_gives_back_what_it_got_in_batches_of_a_bounded_size():
    spool = Spool()
    rows = [("grader", n, None, 2**70, 0.1, {"a": [True, "\ud83d\ude00"]}) for n in range(1201)]
    for row in rows:
        spool.append(row)
    assert (len(spool), list(spool), list(spool)) == (1201, rows, rows)
    assert [len(batch) for batch in spool.batches()] == [500, 500, 201]
    next(spool.batches())
    spool.append(("more",))
    assert list(spool) == [*rows, ("more",)]
    large = Spool()
    for n in range(3):
        large.append((n,), characters=3_000_000)
    assert [len(batch) for batch in large.batches()] == [2, 1]
