"""The queue of disagreements against its definition, target by target, on labels drawn at random."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from annotate.disagreement_kinds import Pair, Wanted
from annotate.disagreements import DisagreementQueue
from annotate.models import Adjudication, Annotation, Assignment, ClaimSplit, Flag
from evalsets.labels import LABELS
from evalsets.models import Claim
from tests.annotate.deciding import url
from tests.annotate.worlds import make_round, make_version

ORDER = {"pending": 0, "waiting": 1, "done": 2}


@pytest.fixture
def drawn(evalset, grader_a, grader_b, member, lead):
    """40 responses of three claims; most are graded twice, some by three, and not everybody is done."""
    people = grader_a, grader_b, member("third", "grader")
    round = make_round(make_version(evalset, responses=[("A ferry.", ["a", "b", "c"])] * 40), *people)
    draw = Random(20)
    targets = [
        (response, claim, dimension)
        for response in round.version.responses.order_by("pk")
        for claim, dimension in [
            *((claim, "grounding") for claim in response.claims.all()),
            (None, "abstention"),
        ]
    ]
    graders = list(evalset.graders.order_by("number"))
    Assignment.objects.filter(round=round, grader=graders[2], response__position__gt=12).delete()
    Annotation.objects.bulk_create(
        Annotation(
            round=round,
            response=response,
            claim=claim,
            dimension=dimension,
            grader=grader,
            label=draw.choice(LABELS[dimension]),
            note=draw.choice(["", "", "", "?"]),
            milliseconds=draw.choice([None, 1000, 1999, 2000, 9000]),
        )
        for response, claim, dimension in targets
        for grader in (graders if response.position <= 12 else graders[:2])
        if draw.random() < 0.93
    )
    for response, claim, dimension in draw.sample(targets, 50):
        part = claim and draw.random() < 0.2 and _part_of(claim)
        about = {"round": round, "response": response, "claim": part or claim, "dimension": dimension}
        about |= {"label": LABELS[dimension][0], "by": lead}
        decision = Adjudication.objects.create(**about, reason="edge_case")
        if draw.random() < 0.2:
            Adjudication.objects.create(**about, reason="revoked", revokes=decision)
    claims = [claim for _response, claim, _dimension in targets if claim]
    for claim in draw.sample(claims, 15):
        state = draw.choice(["proposed", "proposed", "declined"])
        ClaimSplit.objects.create(round=round, claim=claim, grader=graders[0], parts=["x", "y"], state=state)
    for response, claim, _dimension in draw.sample(targets, 15):
        Flag.objects.create(round=round, response=response, claim=claim, grader=graders[1], note="!")
    return round


def _part_of(claim):
    return Claim.objects.create(
        response=claim.response,
        parent=claim,
        position=claim.position,
        claim_id=f"{claim.claim_id}.1",
        text="x",
    )


def listed(round):
    """Every target in the queue with all that its place follows from, as the module says it."""
    said = {}
    for a in Annotation.objects.filter(round=round):
        said.setdefault((a.dimension, a.response_id, a.claim_id), []).append(a)
    revoked = set(Adjudication.objects.filter(revokes__isnull=False).values_list("revokes", flat=True))
    decided = {
        (d.dimension, d.response_id, d.claim and (d.claim.parent_id or d.claim_id))
        for d in Adjudication.objects.filter(round=round, revokes=None).select_related("claim")
        if d.pk not in revoked
    }
    proposed = set(ClaimSplit.objects.filter(round=round, state="proposed").values_list("claim", flat=True))
    flagged = set(Flag.objects.filter(round=round).values_list("response", "claim"))
    asked = Counter(Assignment.objects.filter(round=round).values_list("response", flat=True))
    for (dimension, response, claim), labels in said.items():
        is_proposed = dimension == "grounding" and claim in proposed
        is_decided = (dimension, response, claim) in decided
        counts = Counter(a.label for a in labels)
        if len(counts) == 1 and not is_proposed and not is_decided:
            continue
        done = "done" if is_decided and not is_proposed else "pending"
        noted, is_flagged = any(a.note for a in labels), (response, claim) in flagged
        yield {
            "target": (dimension, response, claim),
            "status": "waiting" if len(labels) < asked[response] else done,
            "pairs": [
                Pair(dimension, *pair)
                for pair in combinations(LABELS[dimension], 2)
                if set(pair) <= set(counts)
            ],
            "shown": (dict(counts), is_proposed, noted, is_flagged),
            "explained": noted or is_flagged or is_proposed,
            "rushed": any(a.milliseconds is not None and a.milliseconds < 2000 for a in labels),
            "alike": sum(n * n for n in counts.values()) / len(labels) ** 2,
        }


def by_hand(round, wanted):
    """The targets in order, how many have each status, and the pairs with their counts."""
    found = [t for t in listed(round) if wanted.dimension in ("", t["target"][0])]
    pairs = Counter(pair for t in found if t["status"] != "waiting" for pair in t["pairs"])
    every = [
        Pair(name, *two) for name in ("grounding", "abstention") for two in combinations(LABELS[name], 2)
    ]
    rank = {
        pair: number for number, pair in enumerate(sorted(pairs, key=lambda p: (-pairs[p], every.index(p))))
    }
    of_pair = [t for t in found if wanted.pair is None or wanted.pair in t["pairs"]]
    counts = {status: sum(t["status"] == status for t in of_pair) for status in ORDER}

    def place(t):
        first = min((rank.get(pair, len(rank)) for pair in t["pairs"]), default=len(rank))
        dimension, response, claim = t["target"]
        key = (ORDER[t["status"]], first, not t["explained"], t["rushed"], t["alike"])
        return (*key, response, claim or 0, dimension)

    shown = sorted((t for t in of_pair if wanted.status in ("", t["status"])), key=place)
    return [(t["target"], t["shown"]) for t in shown], counts, [(pair, pairs[pair]) for pair in rank]


WANTED = [
    Wanted(),
    Wanted(status=""),
    Wanted(status="done"),
    Wanted(status="waiting", dimension="abstention"),
    Wanted(status="", pair=Pair("grounding", "supported", "unverifiable")),
]


def test_queue_is_what_its_definition_says(drawn):
    sizes = [_compared(drawn, wanted) for wanted in WANTED]
    assert min(sizes) > 1
    assert max(sizes) > 80


def _compared(drawn, wanted):
    expected, counts, pairs = by_hand(drawn, wanted)
    queue = DisagreementQueue(drawn, wanted)
    assert [_described(d) for d in queue] == expected
    assert (dict(queue.counts), queue.pairs, len(queue)) == (counts, pairs, len(expected))
    middle = len(expected) // 2
    ahead = DisagreementQueue(drawn, wanted)
    ahead.read_ahead("2", middle)
    assert [_described(d) for d in ahead[middle : len(ahead)]] == expected[middle : 2 * middle + 1]
    for number in (0, middle, len(expected) - 1):
        (dimension, response, claim), _shown = expected[number]
        place = DisagreementQueue(drawn, wanted).around(dimension, response, claim, None)
        near = [expected[k] if 0 <= k < len(expected) else None for k in (number - 1, number + 1)]
        assert (place.number, place.total) == (number + 1, len(expected))
        assert [d and _described(d) for d in (place.before, place.after)] == near
    return len(expected)


def _described(d):
    return (d.dimension, d.response_id, d.claim_id), (d.counts, d.proposed, d.noted, d.flagged)


def test_a_page_asks_for_the_queue_once(drawn, as_, lead):
    as_(lead).get(url(drawn, "disagreements"))
    for query in ({}, {"status": "all", "page": "2"}, {"status": "all", "page": "x"}):
        with CaptureQueriesContext(connection) as queries:
            as_(lead).get(url(drawn, "disagreements"), query)
        assert sum("apart AS" in query["sql"] for query in queries) == 1, query
