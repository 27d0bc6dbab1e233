"""Writers on SQLite stand in line: each is served, none waits on after an error, and the wait has an end."""

import threading
import time

import pytest
from django.db import DatabaseError, connection, transaction

from evalsets.models import EvalSet

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL locks rows"),
]


def in_threads(work, *each):
    """Runs `work` for each argument in a thread with a connection of its own; what they raised."""
    raised = []

    def one(argument):
        try:
            work(argument)
        except Exception as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=one, args=[argument]) for argument in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return raised


def busy_timeout():
    with connection.cursor() as cursor:
        return cursor.execute("PRAGMA busy_timeout").fetchone()[0]


def test_every_writer_is_served_and_reads_what_was_written_before(evalset):
    def add(_number):
        for _ in range(5):
            with transaction.atomic():
                before = len(EvalSet.objects.get(pk=evalset.pk).description)
                time.sleep(0.002)
                EvalSet.objects.filter(pk=evalset.pk).update(description="x" * (before + 1))

    assert in_threads(add, *range(8)) == []
    evalset.refresh_from_db()
    assert len(evalset.description) == 40


def test_statement_is_rewritten_to_marks_once_and_rightly():
    with connection.cursor() as cursor:
        for value in (1, "%s"):
            assert cursor.execute("SELECT %s, '%%', '%%s'", [value]).fetchone() == (value, "%", "%s")
        assert cursor.execute("SELECT '%s'").fetchone() == ("%s",)
        assert cursor.execute("SELECT %(a)s", {"a": 2}).fetchone() == (2,)


def test_transaction_that_fails_gives_its_place_up(evalset):
    def fail(_number):
        with transaction.atomic():
            EvalSet.objects.update(name="never")
            raise ArithmeticError

    assert [type(error) for error in in_threads(fail, 1)] == [ArithmeticError]
    assert in_threads(lambda name: EvalSet.objects.update(name=name), "other") == []
    with transaction.atomic():
        assert EvalSet.objects.get().name == "other"


def test_connection_closed_within_a_transaction_gives_its_place_up(evalset):
    def leave(_number):
        with transaction.atomic():
            connection.close()

    assert in_threads(leave, 1) == []
    with transaction.atomic():
        EvalSet.objects.update(name="after")


def test_wait_ends_with_an_error_and_the_usual_patience_returns(evalset):
    usual = busy_timeout()

    def wait_in_vain(_number):
        connection.settings_dict = {**connection.settings_dict, "OPTIONS": {"timeout": 0.2}}
        with pytest.raises(DatabaseError, match="database is locked"), transaction.atomic():
            raise AssertionError("two writers at once")
        assert busy_timeout() == 200

    with transaction.atomic():
        EvalSet.objects.update(name="held")
        started = time.monotonic()
        assert in_threads(wait_in_vain, 1) == []
        assert 0.2 <= time.monotonic() - started < 5
    assert busy_timeout() == usual == 20_000


def test_reader_waits_for_no_writer_and_no_writer_for_a_reader(evalset):
    def read(_number):
        assert EvalSet.objects.get().name == "Roles"

    started = time.monotonic()
    with transaction.atomic():
        EvalSet.objects.update(name="held")
        assert in_threads(read, 1) == []
    with connection.cursor() as reading:
        reading.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
        assert reading.fetchone() == (1,)
        assert in_threads(lambda name: EvalSet.objects.update(name=name), "written meanwhile") == []
    assert time.monotonic() - started < 10  # a wait would end after twenty seconds


def test_writer_of_another_process_is_waited_for(evalset):
    """Another connection that stands in no line of ours, as a worker process has it."""
    other = connection.get_new_connection(connection.get_connection_params())
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.1, other.rollback).start()
    with transaction.atomic():
        EvalSet.objects.update(name="in the end")
    assert EvalSet.objects.get().name == "in the end"
    assert busy_timeout() == 20_000
    other.close()
