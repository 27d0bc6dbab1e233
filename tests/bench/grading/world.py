"""The eval set of the grading benchmark, invented from a seed and written in bulk.

Round 1 gives every response to two graders: `new` has labelled nothing yet, `old` more than 5,000 targets.
Round 2 gives every response to two of eight graders.

Run as a process: python -m tests.bench.grading.world --items 10000
"""

import argparse
import itertools
import os
import random
import uuid
from collections.abc import Iterator

import django

CLAIMS = 5
CLAIM_CHARACTERS = 120  # five of them are the response
PASSAGES = 3
PASSAGE_CHARACTERS = 633  # three of them are 1.9 kB
LABELLED_BEFORE = 834  # responses of `old`: five claims and the response itself make 5,004 labels
EIGHT = [f"grader{number}" for number in range(1, 9)]
PEOPLE = ["new", "old", *EIGHT]
PASSWORD = "a password of the benchmark"
BATCH = 2000
WORDS = (
    "the a of to and in ferry harbour timetable ticket platform morning evening island bicycle weather pier "
    "crossing departs arrives costs allows carries closes opens repairs delays refunds promises mentions "
    "every no some each single return winter summer northern southern early late free reduced covered"
).split()


def sentence(rng: random.Random, characters: int) -> str:
    text = " ".join(rng.choices(WORDS, k=characters // 4))
    return text[: characters - 1].rstrip().ljust(characters - 1, "e").capitalize() + "."


def build(items: int) -> None:
    from django.db import transaction

    with transaction.atomic():
        version, run = _frozen_version(items)
        people = _people(version.evalset)
        _rounds(version, run, people)


def _frozen_version(items: int):
    from django.utils import timezone

    from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Passage, Response, System, SystemRun

    evalset = EvalSet.objects.create(slug="bench", name="Benchmark")
    version = EvalSetVersion.objects.create(evalset=evalset, number=1)
    system = System.objects.create(evalset=evalset, name="invented", fingerprint="0" * 64)
    run = SystemRun.objects.create(version=version, system=system, number=1)
    rng = random.Random("items")
    for numbers in _chunks(range(1, items + 1)):
        Item.objects.bulk_create(
            Item(pk=n, version=version, position=n, item_id=f"item-{n}", question=sentence(rng, 70))
            for n in numbers
        )
        claims = {n: [sentence(rng, CLAIM_CHARACTERS) for _ in range(CLAIMS)] for n in numbers}
        Response.objects.bulk_create(
            Response(
                pk=n,
                version=version,
                run=run,
                item_id=n,
                position=n,
                response_id=f"response-{n}",
                text=" ".join(claims[n]),
            )
            for n in numbers
        )
        Claim.objects.bulk_create(
            (
                Claim(
                    response_id=n,
                    position=k,
                    claim_id=f"c{k}",
                    text=text,
                    source_ids=[f"p{k % PASSAGES + 1}"],
                )
                for n in numbers
                for k, text in enumerate(claims[n], start=1)
            ),
            batch_size=BATCH,
        )
        Passage.objects.bulk_create(
            (
                Passage(
                    response_id=n,
                    rank=rank,
                    passage_id=f"p{rank}",
                    title=f"Timetable {rank}",
                    text=sentence(rng, PASSAGE_CHARACTERS),
                )
                for n in numbers
                for rank in range(1, PASSAGES + 1)
            ),
            batch_size=BATCH,
        )
    for row in (version, run):
        row.state, row.content_hash, row.frozen_at = "frozen", "f" * 64, timezone.now()
        row.save()
    return version, run


def _people(evalset) -> dict:
    from django.contrib.auth import get_user_model
    from django.contrib.auth.hashers import make_password

    from annotate import services
    from evalsets.models import Membership

    hashed = make_password(PASSWORD)
    graders = {}
    for name in PEOPLE:
        person = get_user_model().objects.create(username=name, password=hashed)
        Membership.objects.create(person=person, evalset=evalset, role=Membership.Role.GRADER)
        graders[name] = services.ensure_grader(evalset=evalset, name=name, person=person)
    return graders


def _rounds(version, run, graders) -> None:
    from annotate import services
    from annotate.models import Assignment, Round

    responses = list(run.responses.order_by("pk").values_list("pk", flat=True))
    rubric_version = services.rubric_v1(evalset=version.evalset)
    rounds = [
        Round.objects.create(
            version=version,
            number=number,
            rubric_version=rubric_version,
            overlap_kind=Round.Overlap.ALL,
            graders_each=2,
        )
        for number in (1, 2)
    ]
    for round in rounds:
        round.runs.set([run])
    both = [(response, ["new", "old"]) for response in responses]
    two_of_eight = [(pk, [EIGHT[n % 8], EIGHT[(n + 1 + n // 8 % 7) % 8]]) for n, pk in enumerate(responses)]
    for round, plan in zip(rounds, (both, two_of_eight), strict=True):
        random.Random(f"round {round.number}").shuffle(plan)
        order = {name: itertools.count(1) for name in PEOPLE}
        slots = (
            Assignment(
                round=round, response_id=response, grader=graders[name], slot=slot, order=next(order[name])
            )
            for response, names in plan
            for slot, name in enumerate(names, start=1)
        )
        for chunk in _chunks(slots):
            Assignment.objects.bulk_create(chunk)
    _history(rounds[0], graders["old"])


def _history(round, grader) -> None:
    """What `old` has said already, as the services would have left it."""
    from django.utils import timezone

    from annotate.models import Annotation, AnnotationEvent, Assignment

    rng = random.Random("history")
    own = Assignment.objects.filter(round=round, grader=grader).order_by("order")[:LABELLED_BEFORE]
    done = list(own.select_related("response").prefetch_related("response__claims"))
    said = []
    for assignment in done:
        where = {"round": round, "grader": grader, "response": assignment.response, "milliseconds": 4000}
        said += [
            {
                **where,
                "claim": claim,
                "dimension": "grounding",
                "label": rng.choice(["supported", "unsupported"]),
            }
            for claim in assignment.response.claims.all()
        ]
        said.append({**where, "claim": None, "dimension": "abstention", "label": "ANSWERED"})
    Annotation.objects.bulk_create((Annotation(**label) for label in said), batch_size=BATCH)
    AnnotationEvent.objects.bulk_create(
        (
            AnnotationEvent(**label, action="labelled", key=uuid.UUID(int=rng.getrandbits(128)))
            for label in said
        ),
        batch_size=BATCH,
    )
    Assignment.objects.filter(pk__in=[a.pk for a in done]).update(state="done", done_at=timezone.now())


def _chunks(rows) -> Iterator[list]:
    rows = iter(rows)
    while chunk := list(itertools.islice(rows, BATCH)):
        yield chunk


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, required=True)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    build(options.items)
