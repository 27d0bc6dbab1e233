"""Once the lead has opened a response, its labels are final."""

import threading

import pytest
from django.db import connection
from django.urls import reverse

from annotate import services
from annotate.cases import Case
from annotate.models import Annotation, AnnotationEvent, Opening
from tests.annotate.deciding import url
from tests.annotate.worlds import claim_of, grader_of, make_round, make_version, response_of, say

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
