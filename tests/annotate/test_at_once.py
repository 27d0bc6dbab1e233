"""What people do at the same time."""

import threading
import uuid

import pytest
from django.db import connection

from annotate import services
from annotate.models import Adjudication, Annotation, AnnotationEvent
from tests.annotate.worlds import (
    decide,
    gold_of,
    grader_of,
    say,
)

# At the same time


def at_once(*calls):
    """Run the calls in threads that start together; what each returned or raised."""
    outcomes = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index, call):
        barrier.wait()
        try:
            outcomes[index] = call()
        except Exception as error:
            outcomes[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    def test_the_same_submit_is_stored_once(self, round, grader_a):
        key = uuid.uuid4()
        same = [lambda: say(round, grader_a, 6, "supported", key=key)] * 4
        rows = at_once(*same)
        assert {row.pk for row in rows} == {Annotation.objects.get().pk}
        assert AnnotationEvent.objects.count() == 1

    def test_the_same_submit_without_key_is_stored_once(self, round, grader_a):
        rows = at_once(*[lambda: say(round, grader_a, 6, "supported")] * 4)
        assert {row.pk for row in rows} == {Annotation.objects.get().pk}

    def test_two_graders_on_one_target_settle_gold(self, round, grader_a, grader_b):
        for position, label in [(2, "REFUSED"), (5, "CLARIFY"), (6, None)]:
            labels = [label] if label else ["supported"]
            at_once(
                lambda p=position, x=labels: say(round, grader_a, p, *x),
                lambda p=position, x=labels: say(round, grader_b, p, *x),
            )
        assert set(gold_of(round).values()) == {
            ("REFUSED", "agreed"),
            ("CLARIFY", "agreed"),
            ("supported", "agreed"),
        }

    def test_no_label_lands_after_the_round_is_closed(self, round, grader_a):
        outcomes = at_once(
            lambda: services.close_round(round=round), lambda: say(round, grader_a, 2, "REFUSED")
        )
        closed_at = outcomes[0].closed_at
        for event in AnnotationEvent.objects.all():
            assert event.at <= closed_at

    def test_adjudication_and_change_do_not_cross(self, round, lead, grader_a, grader_b):
        say(round, grader_a, 2, "REFUSED")
        say(round, grader_b, 2, "ANSWERED")
        at_once(
            lambda: decide(round, lead, 2, "ANSWERED", claim=None),
            lambda: services.take_back(round=round, grader=grader_of(round, grader_a)),
        )
        both = Annotation.objects.filter(response__position=2).count() == 2
        assert both == Adjudication.objects.exists() == bool(gold_of(round))

    def test_two_take_backs_withdraw_two_labels(self, round, grader_a):
        say(round, grader_a, 1, "supported", "supported", "ANSWERED")
        grader = grader_of(round, grader_a)
        taken = at_once(*[lambda: services.take_back(round=round, grader=grader)] * 2)
        assert Annotation.objects.count() == 1
        assert {event.label for event in taken} == {"ANSWERED", "supported"}

    def test_ensure_grader_makes_one(self, evalset, grader_a):
        made = at_once(*[lambda: services.ensure_grader(evalset=evalset, name="x", person=grader_a)] * 3)
        assert len({grader.pk for grader in made}) == 1
