"""A label, a step back, a skip and the first page cost as many queries with many responses as with few."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from annotate.models import Annotation, AnnotationEvent, Assignment
from tests.annotate.worlds import grader_of, make_round, make_version

pytestmark = pytest.mark.once

HTMX = {"HTTP_HX_REQUEST": "true"}
MOST = {"first page": 23, "label": 25, "take back": 35, "skip": 26}  # the next response included


def big_round(evalset, people, responses, done):
    """Of `done` responses the first grader has labelled everything, and taken back as much before."""
    claims = [[f"Ferry {n} leaves.", "It is late."] for n in range(responses)]
    texts = [(" ".join(parts), parts) for parts in claims]
    round = make_round(make_version(evalset, responses=texts), *people)
    own = grader_of(round, people[0])
    queue = Assignment.objects.filter(round=round, grader=own).order_by("order")[:done]
    said = []
    for assignment in queue.prefetch_related("response__claims"):
        where = {"round": round, "grader": own, "response_id": assignment.response_id}
        said += [
            {**where, "claim": claim, "dimension": "grounding", "label": "supported"}
            for claim in assignment.response.claims.all()
        ]
        said.append({**where, "claim": None, "dimension": "abstention", "label": "ANSWERED"})
    for action in ("labelled", "taken_back", "labelled"):
        AnnotationEvent.objects.bulk_create(AnnotationEvent(**label, action=action) for label in said)
    Annotation.objects.bulk_create(Annotation(**label) for label in said)
    Assignment.objects.filter(pk__in=[a.pk for a in queue]).update(state="done")
    return round


def counts(client, round, person):
    """The queries of one of each, once a first one has filled what a process keeps."""

    def ask(name, **fields):
        url = reverse(f"annotate:{name}", args=[round.pk])
        with CaptureQueriesContext(connection) as captured:
            answer = client.post(url, fields, **HTMX) if fields else client.get(url)
        assert answer.status_code == 200
        return len(captured)

    def head():
        own = Assignment.objects.filter(round=round, grader=grader_of(round, person), state="pending")
        return own.order_by("skips", "order").first()

    def label():
        first = head()
        told = set(Annotation.objects.filter(response=first.response_id).values_list("claim", flat=True))
        claim = next(c for c in first.response.claims.all() if c.pk not in told)
        return ask("label", assignment=first.pk, claim=claim.pk, label="supported")

    client.force_login(person)
    ask("grade")
    label()
    return {
        "first page": ask("grade"),
        "label": label(),
        "take back": ask("take_back", key=""),
        "skip": ask("skip", assignment=head().pk),
    }


def test_a_label_costs_as_many_queries_with_300_responses_as_with_10(client, evalset, grader_a, grader_b):
    people = grader_a, grader_b
    few = counts(client, big_round(evalset, people, responses=10, done=3), grader_a)
    many = counts(client, big_round(evalset, people, responses=300, done=290), grader_a)
    assert many == few
    assert {name: n for name, n in few.items() if n > MOST[name]} == {}
