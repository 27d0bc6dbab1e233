from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.planning import Overlap, overlapping, plan, share_of, to_take

NAMES = [f"g{i}" for i in range(8)]


def responses_of(slots, grader):
    return [s.response for s in sorted(slots, key=lambda s: s.order) if s.grader == grader]


def planned(n, graders, shared, *, each=None, seed=1):
    return plan(
        responses=range(n), graders=graders, overlapping=frozenset(shared), graders_each=each, seed=seed
    )


@st.composite
def efforts(draw):
    """Some responses of a set to several of the graders."""
    n, graders = draw(st.integers(0, 40)), draw(st.integers(1, 6))
    shared = draw(st.sets(st.integers(0, n - 1))) if n else set()
    each = draw(st.one_of(st.none(), st.integers(2, graders))) if graders > 1 else None
    return n, NAMES[:graders], shared, each, draw(st.integers())


def test_everything_goes_to_both():
    slots = planned(10, ["a", "b"], range(10))
    assert sorted(responses_of(slots, "a")) == sorted(responses_of(slots, "b")) == list(range(10))


def test_each_grader_has_an_order_of_their_own():
    slots = planned(50, ["a", "b"], range(50))
    assert responses_of(slots, "a") != responses_of(slots, "b")
    assert responses_of(slots, "a") != list(range(50))


def test_overlapping_responses_are_not_recognisable_by_their_place():
    slots = planned(200, ["a", "b"], range(20))
    places = [place for place, response in enumerate(responses_of(slots, "a")) if response < 20]
    assert max(places) > 55  # of 110; all in front would be 19


@given(efforts(), st.data())
def test_place_in_the_queue_does_not_depend_on_the_overlap(effort, data):
    n, graders, shared, each, seed = effort
    another = data.draw(st.sets(st.sampled_from(range(n)))) if n else set()
    one = planned(n, graders, shared, each=each, seed=seed)
    other = planned(n, graders, another, seed=seed)
    for grader in graders:
        both = set(responses_of(one, grader)) & set(responses_of(other, grader))
        kept = [[r for r in responses_of(slots, grader) if r in both] for slots in (one, other)]
        assert kept[0] == kept[1]


@given(efforts())
def test_every_response_is_planned_exactly_as_often_as_asked(effort):
    n, graders, shared, each, seed = effort
    slots = planned(n, graders, shared, each=each, seed=seed)
    times = Counter(s.response for s in slots)
    assert times == {r: (each or len(graders)) if r in shared else 1 for r in range(n)}
    assert len({(s.response, s.grader) for s in slots}) == len(slots)
    for response, k in times.items():
        assert sorted(s.slot for s in slots if s.response == response) == list(range(1, k + 1))
    for grader in graders:
        orders = sorted(s.order for s in slots if s.grader == grader)
        assert orders == list(range(1, len(orders) + 1))


@given(efforts())
def test_nobody_gets_two_responses_more_than_somebody_else(effort):
    n, graders, shared, each, seed = effort
    loads = Counter(s.grader for s in planned(n, graders, shared, each=each, seed=seed))
    assert max(loads.values(), default=0) - min(loads[grader] for grader in graders) <= 1


@given(efforts())
def test_same_seed_same_plan(effort):
    n, graders, shared, each, seed = effort
    assert planned(n, graders, shared, each=each, seed=seed) == planned(
        n, graders, shared, each=each, seed=seed
    )


@pytest.mark.parametrize("graders", range(3, 9))
@pytest.mark.parametrize("seed", [1, 2])
def test_all_pairs_meet_about_equally_often(graders, seed):
    for each in range(2, graders):
        slots = planned(300, NAMES[:graders], range(300), each=each, seed=seed)
        teams = {}
        for slot in slots:
            teams.setdefault(slot.response, set()).add(slot.grader)
        met = Counter(pair for team in teams.values() for pair in combinations(sorted(team), 2))
        often = [met[pair] for pair in combinations(NAMES[:graders], 2)]
        mean = 300 * each * (each - 1) / (graders * (graders - 1))
        assert max(often) - min(often) <= (2 if each == 2 else 4), (graders, each, mean)


def test_no_grader_always_has_the_first_slot():
    firsts = Counter(s.grader for s in planned(30, NAMES[:3], range(30)) if s.slot == 1)
    assert set(firsts.values()) == {10}


# Which responses overlap


@given(
    n=st.integers(0, 60),
    count=st.integers(0, 60),
    kind=st.sampled_from(["first", "random"]),
    seed=st.integers(),
)
def test_overlap_is_never_larger_than_asked(n, count, kind, seed):
    overlap = Overlap(kind, count=count)
    if count > n:
        with pytest.raises(ValueError, match=f"{count}, of {n}"):
            overlapping(responses=range(n), overlap=overlap, seed=seed)
    else:
        drawn = overlapping(responses=range(n), overlap=overlap, seed=seed)
        assert len(drawn) == count
        assert drawn <= set(range(n))
        assert drawn == overlapping(responses=range(n), overlap=overlap, seed=seed)


def test_first_are_the_first_of_the_set():
    assert overlapping(responses="dbca", overlap=Overlap("first", count=2), seed=1) == {"d", "b"}


def test_random_are_others_with_another_seed():
    draws = {
        overlapping(responses=range(100), overlap=Overlap("random", count=5), seed=seed) for seed in range(9)
    }
    assert len(draws) == 9


@given(
    strata=st.lists(st.sampled_from(["en", "de", ""]), max_size=60),
    share=st.floats(0.001, 1),
    seed=st.integers(),
)
def test_share_draws_of_every_stratum_what_it_says(strata, share, seed):
    stratum_of = dict(enumerate(strata))
    drawn = overlapping(
        responses=range(len(strata)),
        overlap=Overlap("share", share=share, stratum="language"),
        stratum_of=stratum_of,
        seed=seed,
    )
    got = Counter(stratum_of[response] for response in drawn)
    assert got == {value: share_of(n, share) for value, n in Counter(strata).items()}
    assert all(1 <= got[value] <= n for value, n in Counter(strata).items())


@pytest.mark.parametrize(
    ("n", "share", "expected"),
    [(0, 0.5, 0), (1, 0.01, 1), (10, 0.25, 3), (10, 0.24, 2), (10, 1, 10), (7, 0.5, 4), (100, 0.29, 29)],
)
def test_share_is_rounded_half_up_but_never_to_nothing(n, share, expected):
    assert share_of(n, share) == expected


def test_a_stratum_is_drawn_alike_whatever_the_others_hold():
    """So that a set that grows in one language keeps the draw of the other."""
    share = Overlap("share", share=0.3, stratum="language")
    few, many = ({r: "en" if r < 50 else "de" for r in range(size)} for size in (60, 90))
    draws = [
        overlapping(responses=list(of), overlap=share, stratum_of=of, seed=4) & set(range(50))
        for of in (few, many)
    ]
    assert draws[0] == draws[1]


# Nonsense


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"graders": []}, "at least one grader"),
        ({"graders": ["a", "a"]}, "grader is named twice"),
        ({"responses": [1, 1]}, "response is named twice"),
        ({"graders_each": 3}, "3 graders each, of 2"),
    ],
)
def test_plan_refuses_nonsense(wrong, message):
    usual = {"responses": [1, 2], "graders": ["a", "b"], "overlapping": {1, 2}, "seed": 1}
    with pytest.raises(ValueError, match=message):
        plan(**usual | wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"kind": "some"}, "no overlap of the kind"),
        ({"kind": "first"}, "has to be given"),
        ({"kind": "random", "count": -1}, "negative"),
        ({"kind": "share"}, "above 0"),
        ({"kind": "share", "share": 0}, "above 0"),
        ({"kind": "share", "share": 1.01}, "at most 1"),
        ({"kind": "all", "graders_each": 1}, "at least two"),
    ],
)
def test_overlap_refuses_nonsense(wrong, message):
    with pytest.raises(ValueError, match=message):
        Overlap(**wrong)


# Somebody joins


@given(left=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 30)), own=st.integers(0, 30))
def test_newcomer_ends_with_as_much_as_those_who_gave(left, own):
    taken = to_take(left, own)
    after = {name: n - taken[name] for name, n in left.items()}
    assert all(n >= 0 for n in taken.values())
    newcomer = own + sum(taken.values())
    assert all(n <= newcomer + 1 for n in after.values())
    assert all(newcomer <= after[name] + 1 for name, n in taken.items() if n)
