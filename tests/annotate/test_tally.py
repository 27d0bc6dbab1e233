"""The tally of a grader's queue is what counting the queue gives, whoever writes the assignments."""

import itertools

from django.db.models import Count, Q
from hypothesis import given, settings
from hypothesis import strategies as st

from annotate import services
from annotate.models import Assignment, Tally
from annotate.queries import progress_of
from tests.annotate.worlds import grader_of, make_round, make_version, say

RESPONSES = [(f"Ferry {number} leaves.", [f"Ferry {number} leaves."]) for number in range(4)]
DONE, PENDING = Assignment.State.DONE, Assignment.State.PENDING


def counted():
    rows = Assignment.objects.values_list("round", "grader").order_by("round", "grader")
    return set(rows.annotate(total=Count("pk"), done=Count("pk", filter=Q(state=DONE))))


def tallied():
    """A grader whose last assignment has gone keeps a tally of nothing."""
    return set(Tally.objects.exclude(total=0, done=0).values_list("round", "grader", "total", "done"))


def test_a_new_round_is_tallied(round):
    assert tallied() == counted() != set()


def test_labels_and_their_taking_back_move_the_tally(round, grader_a, grader_b):
    own = grader_of(round, grader_a)
    before = progress_of(round, own)
    say(round, grader_a, 6, "supported", "ANSWERED")
    assert (progress_of(round, own).done, progress_of(round, own).total) == (before.done + 1, before.total)
    services.take_back(round=round, grader=own)
    assert progress_of(round, own) == before
    assert tallied() == counted()


def test_handing_over_moves_the_tally(round, grader_a, member):
    newcomer = services.ensure_grader(
        evalset=round.version.evalset, name="newcomer", person=member("newcomer", "grader")
    )
    services.reassign_unfinished(round=round, grader=grader_of(round, grader_a), to=newcomer, at_most=2)
    assert progress_of(round, newcomer).total == 2
    assert tallied() == counted()


def test_nothing_assigned_is_no_progress(round, lead):
    stranger = services.ensure_grader(evalset=round.version.evalset, name="nobody")
    assert (progress_of(round, stranger).done, progress_of(round, stranger).total) == (0, 0)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from([DONE, PENDING, "hand over", "remove", "add", "skip"]),
        st.sets(st.integers(0, 7), max_size=4),
    ),
    max_size=8,
)


def test_whatever_is_written_the_tally_is_the_count(evalset, grader_a, grader_b):
    round = make_round(make_version(evalset, responses=RESPONSES), grader_a, grader_b)
    first, second = (grader_of(round, person) for person in (grader_a, grader_b))
    slots = itertools.count(10)
    responses = list(round.version.responses.values_list("pk", flat=True))

    def act(action, chosen):
        ids = list(Assignment.objects.filter(round=round).order_by("pk").values_list("pk", flat=True))
        rows = Assignment.objects.filter(pk__in=[ids[n] for n in chosen if n < len(ids)])
        held = {
            grader: set(
                Assignment.objects.filter(round=round, grader=grader).values_list("response", flat=True)
            )
            for grader in (first, second)
        }
        if action in (DONE, PENDING):
            rows.update(state=action)
        elif action == "skip":
            rows.update(skips=7)
        elif action == "remove":
            rows.delete()
        elif action == "hand over":
            rows.filter(grader=first).exclude(response__in=held[second]).update(grader=second)
        else:
            Assignment.objects.bulk_create(
                Assignment(round=round, response_id=pk, grader=first, slot=next(slots), order=1, state=DONE)
                for n, pk in enumerate(responses)
                if n in chosen and pk not in held[first]
            )

    @settings(max_examples=25, deadline=None)
    @given(ACTIONS)
    def check(actions):
        for action, chosen in actions:
            act(action, chosen)
        assert tallied() == counted()

    check()
