"""The lead's queue of disagreements, and deciding: what is shown, opened, kept, and taken back."""

import csv
import io
import threading

import pytest
from bs4 import BeautifulSoup
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotate import services
from annotate.cases import Case
from annotate.disagreements import DisagreementQueue, Pair, Wanted
from annotate.models import (
    Adjudication,
    Annotation,
    AnnotationEvent,
    ClaimSplit,
    GoldLabel,
    Opening,
    RubricTask,
)
from evalsets.models import Claim, Item
from tests.annotate.rich import open_rich, tell_all
from tests.annotate.worlds import freeze_all, grader_of, make_round, make_version, response_of, say


@pytest.fixture
def as_(client):
    def log_in(person):
        client.force_login(person)
        return client

    return log_in


def url(round, name, *more):
    place = [round.version.evalset.slug, round.version.number]
    if name not in ("disagreements", "decisions", "decisions_csv"):
        place.append(round.number)
    if name == "adjudicate":
        more = more or ("grounding", claim_of(round, 6).pk)
    return reverse(f"annotate:{name}", args=[*place, *more])


def claim_of(round, position) -> Claim:
    return response_of(round, position).claims.filter(parent=None).first()


def soup(answer):
    return BeautifulSoup(answer.content, "html.parser")


def disagreements(round, **wanted):
    return list(DisagreementQueue(round, Wanted(**{"status": "", **wanted})))


def positions(found):
    return [Item.objects.get(responses=d.response_id).position for d in found]


def decision(page, **fields):
    """The fields of the decision form on the page."""
    return {
        "label": "contradicted",
        "reason": "edge_case",
        "note": "",
        "seen": page.select_one("#decision [name=seen]")["value"],
        **fields,
    }


def adjudicate(round, position, label, person, claim=None, dimension=None, **more):
    claim = claim_of(round, position) if claim is None else claim
    return services.adjudicate(
        round=round,
        response=response_of(round, position),
        claim=claim or None,
        dimension=dimension or ("grounding" if claim else "abstention"),
        label=label,
        reason="edge_case",
        person=person,
        **more,
    )


@pytest.fixture
def split_over_six(round, grader_a, grader_b):
    say(round, grader_a, 6, "supported")
    say(round, grader_b, 6, "contradicted")
    return round


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


# Deciding


def test_decide_stores_gold_and_goes_on_to_the_next(split_over_six, as_, lead, grader_a, grader_b):
    round = split_over_six
    say(round, grader_a, 2, "REFUSED")
    say(round, grader_b, 2, "ANSWERED")
    place = url(round, "adjudicate")
    page = soup(as_(lead).get(place))
    answer = as_(lead).post(place, decision(page, note="see passage 2"))
    assert answer.status_code == 302
    assert f"/abstention/{response_of(round, 2).pk}/" in answer.url
    row = Adjudication.objects.get()
    assert (row.label, row.reason, row.note, row.by, row.judge_seen) == (
        "contradicted",
        "edge_case",
        "see passage 2",
        lead,
        False,
    )
    assert GoldLabel.objects.get(claim__isnull=False).source == "adjudicated"
    assert f"decided={row.pk}" in answer.url


def test_decide_needs_a_label_and_a_reason(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    for wrong in ({"label": ""}, {"label": "REFUSED"}, {"reason": ""}, {"reason": "split"}):
        assert as_(lead).post(place, decision(page, **wrong)).status_code == 400
    assert Adjudication.objects.count() == 0


def test_decide_before_all_labels_are_in_is_a_conflict(round, as_, lead, grader_a):
    say(round, grader_a, 6, "unverifiable")
    place = url(round, "adjudicate")
    page = soup(as_(lead).get(place))
    assert "Not yet: the label of one grader is still missing." in page.get_text()
    assert page.select("#decision") == page.select(".voices") == []
    seen = Case(round.version, round.number, "grounding", str(claim_of(round, 6).pk)).fingerprint
    fields = {"label": "supported", "reason": "other", "seen": seen}
    assert as_(lead).post(place, fields).status_code == 409
    assert Adjudication.objects.count() == 0


def test_decide_about_labels_that_have_changed_is_a_conflict(split_over_six, as_, lead, grader_a):
    place = url(split_over_six, "adjudicate")
    fields = decision(soup(as_(lead).get(place)))
    Annotation.objects.filter(grader=grader_of(split_over_six, grader_a)).update(label="unsupported")
    answer = as_(lead).post(place, fields)
    assert answer.status_code == 409
    assert "changed a label meanwhile" in answer.content.decode()
    assert Adjudication.objects.count() == 0


def test_names_are_revealed_in_the_log_only(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    as_(lead).post(place, decision(page))
    decided = soup(as_(lead).get(place)).get_text(" ", strip=True)
    for text in (
        page.get_text(),
        decided,
        as_(lead).get(url(split_over_six, "disagreements")).content.decode(),
    ):
        assert "grader_a" not in text
    assert "lead: an edge case" in decided
    log = soup(as_(lead).get(url(split_over_six, "decisions"))).select_one("tbody").get_text(" ", strip=True)
    assert "grader_a : supported" in log.replace("grader_a:", "grader_a :")


def test_grader_one_is_not_always_the_same_person(evalset, as_, lead, grader_a, grader_b):
    version = make_version(evalset, responses=[("A ferry.", [])] * 12)
    round = make_round(version, grader_a, grader_b)
    firsts = set()
    for position in range(1, 13):
        say(round, grader_a, position, "REFUSED")
        say(round, grader_b, position, "ANSWERED")
        place = url(round, "adjudicate", "abstention", response_of(round, position).pk)
        said = [chip["data-choose"] for chip in soup(as_(lead).get(place)).select("[data-choose]")]
        assert said == [c["data-choose"] for c in soup(as_(lead).get(place)).select("[data-choose]")]
        firsts.add(said[0])
    assert firsts == {"REFUSED", "ANSWERED"}


def test_rushed_labels_are_marked(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported", milliseconds=1999)
    say(round, grader_b, 6, "contradicted", milliseconds=2000)
    badges = soup(as_(lead).get(url(round, "adjudicate"))).select(".voices .badge")
    assert [badge.get_text() for badge in badges] == ["in 2.0 s"]


def test_unknown_target_is_not_found(round, as_, lead):
    for place in [("grounding", 999), ("abstention", 999), ("correctness", claim_of(round, 6).pk)]:
        assert as_(lead).get(url(round, "adjudicate", *place)).status_code == 404


# Splits


@pytest.fixture
def proposed(round, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    return services.propose_split(
        round=round, grader=grader_of(round, grader_a), claim=claim_of(round, 4), parts=["Dogs.", "Leads."]
    )


def parts(split, *labels):
    prefix = f"split-{split.pk}"
    fields = {f"{prefix}-note": ""}
    for number, (text, label) in enumerate(zip(split.parts, labels, strict=True), start=1):
        fields |= {f"{prefix}-text-{number}": text, f"{prefix}-label-{number}": label}
    return fields


def test_accept_split_makes_the_parts(round, as_, lead, proposed):
    place = url(round, "decide_split", proposed.pk)
    as_(lead).post(place, parts(proposed, "supported", "unsupported"))
    assert list(Claim.objects.filter(parent=proposed.claim).values_list("claim_id", "text")) == [
        ("c1.1", "Dogs."),
        ("c1.2", "Leads."),
    ]
    assert as_(lead).post(place, parts(proposed, "supported", "unsupported")).status_code == 409
    page = soup(as_(lead).get(url(round, "adjudicate", "grounding", proposed.claim_id)))
    assert "its parts count in its place" in page.get_text()
    assert page.select("#decision") == []
    part = Claim.objects.get(claim_id="c1.2")
    page = soup(as_(lead).get(url(round, "adjudicate", "grounding", part.pk)))
    assert "Part of claim 1" in page.get_text()
    as_(lead).post(url(round, "adjudicate", "grounding", part.pk), decision(page))
    assert GoldLabel.objects.get(claim=part).label == "contradicted"


def test_accept_split_needs_a_label_for_every_part(round, as_, lead, proposed):
    answer = as_(lead).post(url(round, "decide_split", proposed.pk), parts(proposed, "supported", ""))
    assert answer.status_code == 400
    assert soup(answer).select(".errorlist")
    assert not Claim.objects.filter(parent__isnull=False).exists()


def test_decline_split(round, as_, lead, proposed):
    as_(lead).post(url(round, "decide_split", proposed.pk), {"decline": "1"})
    assert ClaimSplit.objects.get().state == "declined"
    assert disagreements(round)[0].proposed is False


def test_lead_splits_a_claim_that_nobody_proposed_to_split(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    claim = claim_of(round, 4)
    place = url(round, "split_claim", claim.pk)
    fields = {
        "own-split-text-1": "Dogs are allowed on deck.",
        "own-split-label-1": "supported",
        "own-split-text-2": "Only on a lead.",
        "own-split-label-2": "",
    }
    answer = as_(lead).post(place, fields)
    assert answer.status_code == 400
    assert "Choose a label for every part." in soup(answer).select_one(".errorlist").get_text()
    assert as_(lead).post(place, fields | {"own-split-label-2": "unsupported"}).status_code == 302
    gold = GoldLabel.objects.filter(dimension="grounding").values_list("claim__text", "label")
    assert sorted(gold) == [("Dogs are allowed on deck.", "supported"), ("Only on a lead.", "unsupported")]
    assert Annotation.objects.filter(claim=claim).count() == 2  # kappa keeps the whole claim
    assert as_(lead).post(place, fields | {"own-split-label-2": "unsupported"}).status_code == 409


def test_lead_cannot_split_into_one_part_nor_before_all_labels_are_in(round, as_, lead, grader_a):
    say(round, grader_a, 4, "unsupported")
    one = {"own-split-text-1": "Dogs.", "own-split-label-1": "supported"}
    two = one | {"own-split-text-2": "Leads.", "own-split-label-2": "supported"}
    for fields in (one, two):
        assert as_(lead).post(url(round, "split_claim", claim_of(round, 4).pk), fields).status_code == 409
    assert not ClaimSplit.objects.exists()
    assert not Claim.objects.filter(parent__isnull=False).exists()


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


# Opening


def test_opening_makes_the_labels_of_a_response_final(split_over_six, as_, lead, grader_a):
    round = split_over_six
    as_(lead).get(url(round, "adjudicate"))
    opening = Opening.objects.get()
    assert (opening.response, opening.by) == (response_of(round, 6), lead)
    with pytest.raises(services.Conflict, match="opened this response for adjudication"):
        say(round, grader_a, 6, "unsupported")
    with pytest.raises(services.Conflict, match="opened this response for adjudication"):
        services.take_back(round=round, grader=grader_of(round, grader_a))
    assert set(Annotation.objects.values_list("label", flat=True)) == {"supported", "contradicted"}


def test_grader_is_told_why_with_a_409(split_over_six, as_, lead, grader_a):
    round = split_over_six
    as_(lead).get(url(round, "adjudicate"))
    own = grader_of(round, grader_a).assignments.get(response=response_of(round, 6))
    fields = {"assignment": own.pk, "claim": claim_of(round, 6).pk, "label": "unsupported"}
    place = reverse("annotate:label", args=[round.pk])
    answer = as_(grader_a).post(place, fields, HTTP_HX_REQUEST="true")
    assert answer.status_code == 409
    assert "opened this response for adjudication" in answer.content.decode()


def test_a_first_label_is_never_refused(split_over_six, as_, lead, grader_a):
    as_(lead).get(url(split_over_six, "adjudicate"))
    response = response_of(split_over_six, 6)
    services.annotate(
        round=split_over_six,
        grader=grader_of(split_over_six, grader_a),
        response=response,
        claim=None,
        dimension="abstention",
        label="ANSWERED",
    )
    assert Annotation.objects.filter(response=response, claim=None).count() == 1


def test_opening_twice_is_once(split_over_six, as_, lead):
    for _ in range(2):
        as_(lead).get(url(split_over_six, "adjudicate"))
    assert Opening.objects.count() == 1


@pytest.mark.parametrize(
    "headers",
    [
        {"HTTP_SEC_PURPOSE": "prefetch"},
        {"HTTP_SEC_PURPOSE": "prefetch;prerender"},
        {"HTTP_PURPOSE": "prefetch"},
        {"HTTP_X_MOZ": "prefetch"},
    ],
)
def test_prefetching_neither_opens_nor_shows(split_over_six, as_, lead, headers):
    answer = as_(lead).get(url(split_over_six, "adjudicate"), **headers)
    assert (answer.status_code, answer.content) == (503, b"")
    assert answer["Cache-Control"] == "no-store"
    assert not Opening.objects.exists()


def test_asking_for_the_head_does_not_open(split_over_six, as_, lead):
    assert as_(lead).head(url(split_over_six, "adjudicate")).status_code == 200
    assert not Opening.objects.exists()


def test_list_and_log_do_not_open(split_over_six, as_, lead):
    for name in ("disagreements", "decisions", "decisions_csv"):
        as_(lead).get(url(split_over_six, name))
    assert not Opening.objects.exists()


def test_what_waits_for_a_grader_is_not_opened(round, as_, lead, grader_a):
    say(round, grader_a, 6, "supported")
    as_(lead).get(url(round, "adjudicate"))
    assert not Opening.objects.exists()
    say(round, grader_a, 6, "contradicted")


# Taking a decision back


def test_revoke_restores_what_the_labels_say(round, as_, lead, grader_a, grader_b):
    for person in (grader_a, grader_b):
        say(round, person, 6, "supported", "ANSWERED")
    entry = adjudicate(round, 6, "contradicted", lead)
    gold = GoldLabel.objects.get(claim=claim_of(round, 6))
    assert (gold.label, gold.source) == ("contradicted", "adjudicated")
    as_(lead).post(url(round, "revoke", entry.pk), {"note": "wrong key"})
    gold = GoldLabel.objects.get(claim=claim_of(round, 6))
    assert (gold.label, gold.source, gold.adjudication) == ("supported", "agreed", None)
    further = Adjudication.objects.get(revokes=entry)
    assert (further.by, further.note, further.reason) == (lead, "wrong key", "revoked")
    assert Adjudication.objects.count() == 2


def test_revoke_leaves_a_disagreement_to_decide_again(split_over_six, lead):
    entry = adjudicate(split_over_six, 6, "contradicted", lead)
    assert [d.status for d in disagreements(split_over_six)] == ["done"]
    services.revoke(adjudication=entry, person=lead)
    assert not GoldLabel.objects.exists()
    assert [d.status for d in disagreements(split_over_six)] == ["pending"]


def test_revoke_restores_the_decision_before(split_over_six, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead)
    second = adjudicate(split_over_six, 6, "unverifiable", lead)
    services.revoke(adjudication=second, person=lead)
    gold = GoldLabel.objects.get()
    assert (gold.label, gold.adjudication) == ("contradicted", first)
    services.revoke(adjudication=first, person=lead)
    assert not GoldLabel.objects.exists()


def test_revoke_takes_back_only_what_holds_and_only_once(split_over_six, as_, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead)
    second = adjudicate(split_over_six, 6, "unverifiable", lead)
    with pytest.raises(services.Conflict, match="Another decision holds"):
        services.revoke(adjudication=first, person=lead)
    services.revoke(adjudication=second, person=lead)
    answer = as_(lead).post(url(split_over_six, "revoke", second.pk), follow=True)
    assert "Another decision holds" in answer.content.decode()
    assert Adjudication.objects.filter(revokes__isnull=False).count() == 1


def test_labels_stay_final_after_a_decision_was_taken_back(split_over_six, lead, grader_a):
    services.revoke(adjudication=adjudicate(split_over_six, 6, "contradicted", lead), person=lead)
    with pytest.raises(services.Conflict):
        say(split_over_six, grader_a, 6, "unsupported")


def test_part_of_a_split_claim_is_decided_anew_not_taken_back(round, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    made = services.split_claim(
        round=round,
        claim=claim_of(round, 4),
        parts=[("Dogs.", "supported"), ("Leads.", "unsupported")],
        person=lead,
    )
    with pytest.raises(services.Conflict, match="decide it anew"):
        services.revoke(adjudication=made[0], person=lead)
    anew = adjudicate(round, 4, "contradicted", lead, claim=made[0].claim)
    services.revoke(adjudication=anew, person=lead)
    assert GoldLabel.objects.get(claim=made[0].claim).label == "supported"


# For the rubric


def test_the_rubric_should_say_this_makes_a_task(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    page = soup(as_(lead).get(place))
    as_(lead).post(place, decision(page, note="A pier is a place.", for_rubric="on"))
    task = RubricTask.objects.get()
    assert (task.text, task.adjudication) == ("A pier is a place.", Adjudication.objects.get())


def test_without_the_tick_there_is_no_task(split_over_six, as_, lead):
    place = url(split_over_six, "adjudicate")
    as_(lead).post(place, decision(soup(as_(lead).get(place)), note="A pier is a place."))
    assert not RubricTask.objects.exists()


# What graders marked


def test_marked_passages_are_named_with_the_graders_number(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 6, "supported", evidence=[2])
    say(round, grader_b, 6, "contradicted", evidence=[1, 2])
    page = soup(as_(lead).get(url(round, "adjudicate")))
    number = next(v.number for v in _voices(round) if v.annotation.grader == grader_of(round, grader_b))
    marks = [mark.get_text() for mark in page.select(".evidence .marked .badge")]
    assert f"Grader {number}: passage 1" in marks
    assert {"Grader 1: passage 2", "Grader 2: passage 2"} <= set(marks)
    assert page.select_one('.voices a[href="#passage-1"]')


def _voices(round):
    return Case(round.version, round.number, "grounding", str(claim_of(round, 6).pk)).voices


# The log


def test_log_has_every_entry_in_order_and_says_what_was_taken_back(split_over_six, as_, lead):
    first = adjudicate(split_over_six, 6, "contradicted", lead, note="see <b>p2</b>")
    services.revoke(adjudication=first, person=lead)
    adjudicate(split_over_six, 6, "unverifiable", lead)
    rows = [
        row.get_text(" ", strip=True)
        for row in soup(as_(lead).get(url(split_over_six, "decisions"))).select("tbody tr")
    ]
    assert len(rows) == 3
    assert "see <b>p2</b>" in rows[0]
    assert "taken back by entry 2" in rows[0]
    assert "takes entry 1 back" in rows[1]
    assert "unverifiable" in rows[2]
    for row in rows:
        assert "grader_a" in row
        assert "grader_b" in row
        assert "rubric Standard 1" in row or "round 1, rubric" in row


def test_log_as_csv_is_inert_and_complete(split_over_six, as_, lead):
    adjudicate(split_over_six, 6, "contradicted", lead, note="=1+1")
    answer = as_(lead).get(url(split_over_six, "decisions_csv"))
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert len(rows) == 1
    row = rows[0]
    assert row["labels"] == "grader_a: supported; grader_b: contradicted"
    assert (row["by"], row["decision"], row["note"], row["response_id"]) == (
        "lead",
        "contradicted",
        "'=1+1",
        "response-6",
    )
    assert row["at"].endswith("Z")


def test_log_of_parts_says_what_was_said_of_the_claim(round, as_, lead, grader_a, grader_b):
    say(round, grader_a, 4, "unsupported")
    say(round, grader_b, 4, "supported")
    parts = [("Dogs.", "supported"), ("Leads.", "unsupported")]
    services.split_claim(round=round, claim=claim_of(round, 4), parts=parts, person=lead)
    rows = soup(as_(lead).get(url(round, "decisions"))).select("tbody tr")
    assert len(rows) == 2
    assert all("unsupported" in row.select("td")[3].get_text() for row in rows)


@pytest.mark.parametrize("name", ["decisions", "decisions_csv", "revoke", "split_claim"])
def test_others_find_nothing(split_over_six, as_, lead, grader_a, stranger, name):
    entry = adjudicate(split_over_six, 6, "contradicted", lead)
    more = {"revoke": [entry.pk], "split_claim": [claim_of(split_over_six, 6).pk]}.get(name, [])
    place = url(split_over_six, name, *more)
    for person in (grader_a, stranger):
        client = as_(person)
        answer = client.post(place) if more else client.get(place)
        assert answer.status_code == 404
    assert Adjudication.objects.count() == 1


def test_decisions_of_another_version_are_not_found(split_over_six, as_, lead):
    assert as_(lead).post(url(split_over_six, "revoke", 999)).status_code == 404


# Optional dimensions


@pytest.fixture
def rich(evalset, grader_a, grader_b):
    """One rubric that also asks about citations, passages and, of a bad claim, what kind of bad it is."""
    return open_rich(make_version(evalset), grader_a, grader_b)


def test_citations_and_passages_are_decided_at_addresses_of_their_own(rich, as_, lead, grader_a, grader_b):
    tell_all(rich, grader_a, "supported", cited="full support")
    tell_all(rich, grader_b, "supported", cited="no support")
    response = response_of(rich, 6)
    claim, passage = response.claims.get().pk, response.passages.get(rank=2).pk
    assert [(d.dimension, d.target) for d in disagreements(rich)] == [
        ("citation_support", f"{claim}-{passage}")
    ]
    place = url(rich, "adjudicate", "citation_support", f"{claim}-{passage}")
    page = soup(as_(lead).get(place))
    assert "Claim 1 with passage 2" in page.get_text()
    assert page.select_one(".passage.asked")["id"] == "passage-2"
    assert as_(lead).post(place, decision(page, label="partial support")).status_code == 302
    gold = GoldLabel.objects.get(dimension="citation_support")
    assert (gold.label, gold.claim_id, gold.passage_id) == ("partial support", claim, passage)
    assert as_(lead).get(url(rich, "adjudicate", "context_relevance", passage)).status_code == 200


def test_addresses_that_do_not_fit_the_dimension_are_not_found(rich, as_, lead, grader_a):
    claim, passage = claim_of(rich, 6).pk, response_of(rich, 6).passages.get(rank=2).pk
    elsewhere = response_of(rich, 1).passages.get(rank=2).pk
    for dimension, target in [
        ("citation_support", claim),
        ("citation_support", f"{claim}-{elsewhere}"),
        ("citation_support", f"{claim}-{passage}-1"),
        ("grounding", f"{claim}-{passage}"),
        ("context_relevance", "x"),
        ("context_relevance", "9" * 30),
        ("context_relevance", 999_999),
        ("unheard_of", claim),
    ]:
        assert as_(lead).get(url(rich, "adjudicate", dimension, target)).status_code == 404


def test_conditional_question_waits_for_the_label_it_rests_on(rich, as_, lead, grader_a, grader_b):
    tell_all(rich, grader_a, "contradicted", "subtle conflict")
    tell_all(rich, grader_b, "unsupported", "evident baseless info")

    def statuses():
        return {d.dimension: d.status for d in disagreements(rich)}

    assert statuses() == {"grounding": "pending", "hallucination_type": "waiting"}
    claim = claim_of(rich, 6).pk
    page = soup(as_(lead).get(url(rich, "adjudicate", "hallucination_type", claim)))
    assert "once grounding is settled" in page.get_text()
    assert page.select("#decision") == []
    bad = adjudicate(rich, 6, "contradicted", lead)
    assert statuses() == {"grounding": "done", "hallucination_type": "pending"}
    services.revoke(adjudication=bad, person=lead)
    adjudicate(rich, 6, "supported", lead)
    assert statuses() == {"grounding": "done"}  # nobody is to say which kind of bad a good claim is


# Two at once


@pytest.mark.django_db(transaction=True)
def test_a_change_and_an_opening_at_once_never_both_win(evalset, lead, grader_a, grader_b):
    """Whoever comes first: what the lead saw is what stays."""
    version = make_version(evalset, responses=[("A ferry.", ["A ferry."])] * 8)
    round = make_round(version, grader_a, grader_b)
    for position in range(1, 9):
        say(round, grader_a, position, "supported")
        say(round, grader_b, position, "contradicted")
    outcomes = []
    for position in range(1, 9):
        response, claim = response_of(round, position), claim_of(round, position)
        barrier, seen, refused = threading.Barrier(2), [], []

        def change(response=response, claim=claim, barrier=barrier, refused=refused):
            try:
                barrier.wait(10)
                services.annotate(
                    round=round,
                    grader=grader_of(round, grader_a),
                    response=response,
                    claim=claim,
                    dimension="grounding",
                    label="unverifiable",
                )
            except services.Conflict as conflict:
                refused.append(str(conflict))
            finally:
                connection.close()

        def look(response=response, claim=claim, barrier=barrier, seen=seen):
            try:
                barrier.wait(10)
                services.open_for_adjudication(
                    round=round, response=response, claim=claim, dimension="grounding", person=lead
                )
                case = Case(version, round.number, "grounding", str(claim.pk))
                seen.append({v.annotation.label for v in case.voices})
            finally:
                connection.close()

        threads = [threading.Thread(target=target) for target in (change, look)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        now = set(Annotation.objects.filter(claim=claim).values_list("label", flat=True))
        assert seen == [now]
        assert bool(refused) == ("supported" in now)
        outcomes.append(bool(refused))
    assert Opening.objects.count() == 8
    changes = AnnotationEvent.objects.filter(action="changed").count()
    assert changes == outcomes.count(False)
