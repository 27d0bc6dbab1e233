"""The lead's queue of disagreements: what is in it, what comes first, and the way through it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate import services
from annotate.disagreement_kinds import Pair, Wanted
from annotate.disagreements import DisagreementQueue
from annotate.models import Adjudication, Annotation
from tests.annotate.deciding import decision, disagreements, positions, url
from tests.annotate.pages import soup
from tests.annotate.worlds import claim_of, freeze_all, grader_of, make_round, make_version, response_of, say

# The list of disagreements


def test_total_disagreement_puts_everything_in_the_list(round, grader_a, grader_b):
    for position in (1, 2, 4, 5, 6):
        claims = response_of(round, position).claims.count()
        say(round, grader_a, position, *["supported"] * claims, "ANSWERED")
        say(round, grader_b, position, *["contradicted"] * claims, "REFUSED")
    found = disagreements(round)
    assert len(found) == Annotation.objects.count() / 2 == 9
    assert {d.status for d in found} == {"pending"}


def test_list_holds_what_differs_to_decide_first(round, lead, grader_a, grader_b, member):
    say(round, grader_a, 1, "supported", "supported", "ANSWERED")
    say(round, grader_b, 1, "supported", "contradicted", "REFUSED")
    say(round, grader_a, 4, "supported")
    services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["a", "b"]
    )
    response = response_of(round, 1)
    services.adjudicate(
        round=round,
        response=response,
        claim=None,
        dimension="abstention",
        label="REFUSED",
        reason="other",
        person=lead,
    )
    found = [(d.status, d.dimension, d.proposed) for d in disagreements(round)]
    assert found == [
        ("pending", "grounding", False),
        ("waiting", "grounding", True),
        ("done", "abstention", False),
    ]
    assert [d.status for d in disagreements(round, dimension="grounding", status="pending")] == ["pending"]


def test_list_of_three_graders_puts_the_least_agreed_first(version, grader_a, grader_b, member):
    third = member("third", "grader")
    round = make_round(version, grader_a, grader_b, third)
    for person, one, two in [
        (grader_a, "ANSWERED", "ANSWERED"),
        (grader_b, "ANSWERED", "REFUSED"),
        (third, "REFUSED", "CLARIFY"),
    ]:
        say(round, person, 2, one)
        say(round, person, 5, two)
    assert [d.response_id for d in disagreements(round)] == [
        response_of(round, 5).pk,
        response_of(round, 2).pk,
    ]


def test_labels_of_a_target_that_waits_are_not_shown(round, as_, lead, grader_a):
    say(round, grader_a, 4, "unverifiable")
    services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["a", "b"]
    )
    page = soup(as_(lead).get(url(round, "disagreements"), {"status": "all"}))
    assert "shown when all are in" in page.select_one("table").get_text()
    assert "unverifiable" not in page.select_one("table").get_text()


@pytest.mark.parametrize("query", [{"round": "9"}, {"round": "x"}])
def test_list_of_an_unknown_round_is_not_found(round, as_, lead, query):
    assert as_(lead).get(url(round, "disagreements"), query).status_code == 404


# What comes first


@pytest.fixture
def twelve(evalset, grader_a, grader_b):
    """Twelve responses without claims, of two kinds, to be labelled by two."""
    version = make_version(evalset, responses=[("A ferry.", [])] * 12, freeze=False)
    for item in version.items.all():
        item.strata = {"type": "even" if item.position % 2 == 0 else "odd", "it's": "x"}
        item.save()
    return make_round(freeze_all(version), grader_a, grader_b)


def differ(round, one, two, pairs):
    for position, (first, second) in pairs.items():
        say(round, one, position, first)
        say(round, two, position, second)


def test_the_pair_that_costs_most_comes_first(twelve, grader_a, grader_b):
    differ(
        twelve,
        grader_a,
        grader_b,
        {
            1: ("ANSWERED", "CLARIFY"),
            2: ("REFUSED", "ANSWERED"),
            3: ("ANSWERED", "REFUSED"),
            4: ("REFUSED", "CLARIFY"),
            5: ("ANSWERED", "ANSWERED"),
        },
    )
    queue = DisagreementQueue(twelve)
    assert positions(queue) == [2, 3, 4, 1]  # then in the order of the label set
    assert queue.pairs == [
        (Pair("abstention", "REFUSED", "ANSWERED"), 2),
        (Pair("abstention", "REFUSED", "CLARIFY"), 1),
        (Pair("abstention", "ANSWERED", "CLARIFY"), 1),
    ]


def test_notes_and_flags_come_first_and_rushed_labels_last(twelve, grader_a, grader_b):
    for position, more in {1: {"milliseconds": 1999}, 2: {}, 3: {"note": "odd"}, 4: {}}.items():
        say(twelve, grader_a, position, "REFUSED", **more)
        say(twelve, grader_b, position, "ANSWERED")
    flagged = response_of(twelve, 4)
    services.flag(round=twelve, grader=grader_of(twelve, grader_b), response=flagged, claim=None, note="?")
    assert positions(disagreements(twelve)) == [3, 4, 2, 1]


def test_queue_is_narrowed_by_stratum_system_labels_and_dimension(twelve, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys((1, 2, 3), ("REFUSED", "ANSWERED")))
    differ(twelve, grader_a, grader_b, {4: ("REFUSED", "CLARIFY")})
    assert positions(disagreements(twelve, stratum=("type", "even"))) == [2, 4]
    assert positions(disagreements(twelve, stratum=("it's", "x"))) == [1, 2, 3, 4]
    assert disagreements(twelve, stratum=("type", "neither")) == []
    assert positions(disagreements(twelve, run=1)) == [1, 2, 3, 4]
    assert disagreements(twelve, run=2) == []
    assert disagreements(twelve, dimension="grounding") == []
    queue = DisagreementQueue(twelve, Wanted(pair=Pair("abstention", "REFUSED", "CLARIFY")))
    assert positions(queue) == [4]
    assert dict(queue.counts) == {"pending": 1, "waiting": 0, "done": 0}


def test_list_page_takes_its_filter_from_the_address(twelve, as_, lead, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys((1, 2, 3), ("REFUSED", "ANSWERED")))
    place = url(twelve, "disagreements")
    for query, rows in [
        ({"stratum": "type:even"}, 1),
        ({"run": "1", "pair": "abstention:REFUSED:ANSWERED"}, 3),
        ({"dimension": "grounding"}, 0),
        ({"status": "done"}, 0),
        ({"run": "x", "pair": "x", "stratum": "x", "status": "x", "dimension": "x"}, 3),
    ]:
        page = soup(as_(lead).get(place, query))
        assert len(page.select("tbody tr")) == rows, query


def test_list_takes_the_same_few_queries_however_long_it_is(twelve, as_, lead, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, {1: ("REFUSED", "ANSWERED")})
    as_(lead).get(url(twelve, "disagreements"))
    taken = []
    for positions_so_far in ((2, 3), range(4, 13)):
        differ(twelve, grader_a, grader_b, dict.fromkeys(positions_so_far, ("REFUSED", "ANSWERED")))
        with CaptureQueriesContext(connection) as queries:
            as_(lead).get(url(twelve, "disagreements"))
        taken.append(len(queries))
    assert taken[0] == taken[1]


def test_queue_is_paged_without_loss(twelve, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys(range(1, 13), ("REFUSED", "ANSWERED")))
    queue = DisagreementQueue(twelve)
    assert len(queue) == 12
    assert positions([*queue[:5], *queue[5:10], *queue[10:15]]) == list(range(1, 13))


# Next and previous


def test_neighbours_lead_through_the_queue_without_deciding(twelve, as_, lead, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys((3, 7, 9), ("REFUSED", "ANSWERED")))
    place = url(twelve, "adjudicate", "abstention", response_of(twelve, 3).pk)
    seen = []
    while place:
        page = soup(as_(lead).get(place))
        seen.append(page.select_one("nav.head .num").get_text())
        after = page.select_one('[data-action="next"]')
        place = after and after["href"]
    assert seen == ["1 of 3", "2 of 3", "3 of 3"]
    back = page.select_one('[data-action="previous"]')["href"]
    assert f"/abstention/{response_of(twelve, 7).pk}/" in back
    assert Adjudication.objects.count() == 0


def test_deciding_goes_on_in_the_queue_and_ends_at_the_list(twelve, as_, lead, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys((3, 7, 9), ("REFUSED", "ANSWERED")))
    place = url(twelve, "adjudicate", "abstention", response_of(twelve, 7).pk)
    went = []
    for _ in range(3):
        page = soup(as_(lead).get(place))
        place = as_(lead).post(place, decision(page, label="REFUSED")).url
        went.append(place)
    assert f"/{response_of(twelve, 9).pk}/" in went[0]
    assert f"/{response_of(twelve, 3).pk}/" in went[1]  # begins again with what was passed over
    assert went[2].startswith(url(twelve, "disagreements"))


def test_the_latest_decision_is_one_key_away(twelve, as_, lead, grader_a, grader_b):
    differ(twelve, grader_a, grader_b, dict.fromkeys((3, 7), ("REFUSED", "ANSWERED")))
    place = url(twelve, "adjudicate", "abstention", response_of(twelve, 3).pk)
    page = soup(as_(lead).get(place))
    page = soup(as_(lead).get(as_(lead).post(place, decision(page, label="REFUSED")).url))
    assert page.select_one('[data-action="latest"]')["href"].startswith(place)
    for wrong in ("x", "999999", "9" * 30):
        page = soup(as_(lead).get(f"{place}?decided={wrong}"))
        assert page.select('[data-action="latest"]') == []
