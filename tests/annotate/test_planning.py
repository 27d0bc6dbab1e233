from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.planning import plan


def responses_of(slots, grader):
    return [s.response for s in sorted(slots, key=lambda s: s.order) if s.grader == grader]


def test_everything_goes_to_both_when_there_is_no_limit():
    slots = plan(responses=range(10), graders=["a", "b"], overlap=None, seed=1)
    assert sorted(responses_of(slots, "a")) == sorted(responses_of(slots, "b")) == list(range(10))


def test_each_grader_has_an_order_of_their_own():
    slots = plan(responses=range(50), graders=["a", "b"], overlap=None, seed=1)
    assert responses_of(slots, "a") != responses_of(slots, "b")
    assert responses_of(slots, "a") != list(range(50))


def test_shared_responses_are_not_recognisable_by_their_place():
    slots = plan(responses=range(200), graders=["a", "b"], overlap=20, seed=1)
    shared = {r for r, n in Counter(s.response for s in slots).items() if n == 2}
    places = [i for i, r in enumerate(responses_of(slots, "a")) if r in shared]
    assert max(places) > 55  # of 110; all in front would be 19


@given(
    n=st.integers(0, 40),
    graders=st.integers(1, 5),
    share=st.one_of(st.none(), st.integers(0, 40)),
    seed=st.integers(),
)
def test_every_response_is_planned_the_right_number_of_times(n, graders, share, seed):
    names = [f"g{i}" for i in range(graders)]
    slots = plan(responses=range(n), graders=names, overlap=share, seed=seed)
    assert slots == plan(responses=range(n), graders=names, overlap=share, seed=seed)
    times = Counter(s.response for s in slots)
    expected_shared = n if share is None else min(share, n)
    assert sorted(times.values()) == sorted([1] * (n - expected_shared) + [graders] * expected_shared)
    assert len({(s.response, s.grader) for s in slots}) == len(slots)
    assert len({(s.response, s.slot) for s in slots}) == len(slots)
    for name in names:
        orders = sorted(s.order for s in slots if s.grader == name)
        assert orders == list(range(1, len(orders) + 1))
    dealt = Counter(s.grader for s in slots if times[s.response] == 1 and graders > 1)
    if dealt:
        assert max(dealt.values()) - min(dealt.get(name, 0) for name in names) <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"graders": []}, "at least one grader"),
        ({"graders": ["a", "a"]}, "grader is named twice"),
        ({"responses": [1, 1]}, "response is named twice"),
        ({"overlap": -1}, "negative"),
    ],
)
def test_plan_refuses_nonsense(wrong, message):
    with pytest.raises(ValueError, match=message):
        plan(**{"responses": [1, 2], "graders": ["a", "b"], "overlap": None, "seed": 1, **wrong})
