"""A prepared query gives what its queryset gives, whatever the values, and asks the database once."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from django.contrib.sessions.models import Session

from annotate.models import AnnotationEvent
from evalsets.models import EvalSet, Membership
from evalsets.prepared import Prepared, PreparedInsert

members = Prepared(
    lambda evalset, role: (
        Membership.objects.filter(evalset=evalset, role=role).select_related("person").order_by("pk")
    ),
    evalset=int,
    role=str,
)


def test_objects_come_with_what_was_selected(evalset, grader_a, grader_b, lead, django_assert_num_queries):
    for role, people in (("grader", [grader_a, grader_b]), ("lead", [lead]), ("nobody", [])):
        with django_assert_num_queries(1):
            assert [member.person for member in members(evalset=evalset.pk, role=role)] == people


def test_values_come_as_rows_and_flat(evalset, lead):
    rows = Prepared(lambda pk: EvalSet.objects.filter(pk=pk).values_list("slug", "is_example"), pk=int)
    flat = Prepared(lambda pk: EvalSet.objects.filter(pk=pk).values_list("slug", flat=True), pk=int)
    assert [tuple(row) for row in rows(pk=evalset.pk)] == [("roles", False)]
    assert (flat.first(pk=evalset.pk), flat.first(pk=0)) == ("roles", None)


def test_moments_and_keys_are_compared_as_the_database_keeps_them(db):
    Session.objects.create(session_key="a", session_data="", expire_date=datetime(2030, 1, 2, tzinfo=UTC))
    valid = Prepared(lambda at: Session.objects.filter(expire_date__gt=at), at=datetime)
    assert valid(at=datetime(2030, 1, 1, 23, 59, tzinfo=UTC))
    assert not valid(at=datetime(2030, 1, 2, tzinfo=UTC))
    events = Prepared(lambda key: AnnotationEvent.objects.filter(key=key), key=UUID)
    assert events(key=uuid4()) == []


def test_number_that_no_column_holds_finds_nothing(evalset, lead):
    assert members(evalset=10**40, role="lead") == []


@pytest.mark.parametrize(
    "values", [{"evalset": 1}, {"evalset": 1, "role": None}, {"role": "lead", "evalsets": 1}]
)
def test_call_without_a_value_for_each_name_is_refused(values):
    """Nothing equals NULL: the query would find nothing, where its queryset asks for the rows without one."""
    with pytest.raises(TypeError, match="a value each for evalset, role"):
        members(**values)


def test_value_that_the_query_leaves_out_is_refused(db):
    with pytest.raises(TypeError, match="leaves out role"):
        Prepared(lambda role: Membership.objects.all(), role=str)(role="lead")


def test_insert_stores_defaults_and_refuses_unknown_columns(db):
    store = PreparedInsert(EvalSet)
    kept = EvalSet.objects.get(pk=store(slug="prepared", name="Prepared"))
    assert (kept.slug, kept.description, kept.is_example) == ("prepared", "", False)
    assert kept.created_at.tzinfo is not None
    with pytest.raises(TypeError, match="has no colour"):
        store(slug="other", name="Other", colour="red")
