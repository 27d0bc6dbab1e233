"""A prepared query gives what its queryset gives, whatever the values, and asks the database once."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest
from django.contrib.sessions.models import Session
from django.db import connection

from annotate.models import AnnotationEvent
from evalsets.models import Claim, EvalSet, Membership
from evalsets.prepared import Prepared, PreparedInsert
from tests.annotate.worlds import make_version

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


def test_objects_are_those_of_the_queryset(evalset, grader_a, django_assert_num_queries):
    """Related ones, none where there is none, and what was left out is read when it is asked for."""

    def narrow(pk):
        return (
            Membership.objects.select_related("person", "evalset")
            .only("person__username", "evalset__slug")
            .filter(pk=pk)
        )

    pk = Membership.objects.get(person=grader_a).pk
    [made], usual = Prepared(narrow, pk=int)(pk=pk), narrow(pk).get()
    for one, other in ((made, usual), (made.person, usual.person), (made.evalset, usual.evalset)):
        assert (one, one.get_deferred_fields()) == (other, other.get_deferred_fields())
        assert vars(one._state).keys() == vars(other._state).keys()
        assert (one._state.db, one._state.adding) == (other._state.db, False)
    with django_assert_num_queries(0):
        assert made.person.username == "grader_a"
    with django_assert_num_queries(1):
        assert made.role == "grader"
    made.role = "lead"
    made.save()
    assert Membership.objects.get(pk=pk).role == "lead"


def test_what_is_related_to_nothing_is_none(evalset):
    claim = make_version(evalset).responses.first().claims.first()
    claims = Prepared(lambda pk: Claim.objects.select_related("parent", "response").filter(pk=pk), pk=int)
    [made] = claims(pk=claim.pk)
    assert (made.parent, made.response) == (None, claim.response)


def test_moments_and_keys_are_compared_as_the_database_keeps_them(db):
    Session.objects.create(session_key="a", session_data="", expire_date=datetime(2030, 1, 2, tzinfo=UTC))
    valid = Prepared(lambda at: Session.objects.filter(expire_date__gt=at), at=datetime)
    assert valid(at=datetime(2030, 1, 1, 23, 59, tzinfo=UTC))
    assert not valid(at=datetime(2030, 1, 2, tzinfo=UTC))
    events = Prepared(lambda key: AnnotationEvent.objects.filter(key=key), key=UUID)
    assert events(key=uuid4()) == []


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite plans in no time")
def test_postgresql_keeps_one_plan_for_short_and_long_numbers_and_none_of_other_querysets(evalset, lead):
    for pk in (evalset.pk, 2**20, 2**40):
        members(evalset=pk, role="lead")
    list(EvalSet.objects.filter(slug="unprepared"))
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        kept = [statement for (statement,) in cursor.fetchall()]
    assert len([statement for statement in kept if "evalsets_membership" in statement]) == 1
    assert not any("unprepared" in statement for statement in kept)


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
