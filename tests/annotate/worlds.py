"""A small eval set to grade: invented, with the shapes that matter (no claims, empty, split-worthy)."""

from django.utils import timezone

from annotate import services
from annotate.models import Assignment, GoldLabel
from annotate.planning import EVERYTHING, Overlap
from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Passage, Response, System, SystemRun

# (text, claims); a passage or two each
RESPONSES = [
    (
        "The ferry leaves at nine. Bicycles travel free.",
        ["The ferry leaves at nine.", "Bicycles travel free."],
    ),
    ("The timetable does not mention winter.", []),
    ("", []),
    ("Dogs are allowed on deck, but only on a lead.", ["Dogs are allowed on deck, but only on a lead."]),
    ("Which day do you travel?", []),
    ("Tickets cost 12 euros.", ["Tickets cost 12 euros."]),
]


def make_version(evalset: EvalSet, *, responses=RESPONSES, freeze=True) -> EvalSetVersion:
    number = evalset.versions.count() + 1
    version = EvalSetVersion.objects.create(evalset=evalset, number=number)
    system = System.objects.create(
        evalset=evalset, name="loose prompt", model="invented-1", fingerprint=f"{number:064}"
    )
    run = SystemRun.objects.create(version=version, system=system, number=1)
    for position, (text, claims) in enumerate(responses, start=1):
        item = Item.objects.create(
            version=version,
            position=position,
            item_id=f"item-{position}",
            question=f"Question {position} about the ferry?",
        )
        response = Response.objects.create(
            version=version,
            run=run,
            item=item,
            position=position,
            response_id=f"response-{position}",
            text=text,
        )
        for rank in (1, 2):
            Passage.objects.create(
                response=response,
                rank=rank,
                passage_id=f"p{rank}",
                title=f"Timetable {rank}",
                text=f"The ferry leaves at nine from pier {rank}.",
            )
        for index, claim in enumerate(claims, start=1):
            Claim.objects.create(
                response=response, position=index, claim_id=f"c{index}", text=claim, source_ids=["p2"]
            )
    return freeze_all(version) if freeze else version


def freeze_all(version: EvalSetVersion) -> EvalSetVersion:
    for row in (version, *version.runs.all()):
        row.state, row.content_hash, row.frozen_at = "frozen", "f" * 64, timezone.now()
        row.save()
    return version


def make_round(version: EvalSetVersion, *people, overlap=None, seed=7, **more):
    graders = [
        services.ensure_grader(evalset=version.evalset, name=person.username, person=person)
        for person in people
    ]
    return services.open_round(
        version=version,
        runs=list(version.runs.all()),
        graders=graders,
        rubric_version=services.rubric_v1(evalset=version.evalset),
        overlap=EVERYTHING if overlap is None else Overlap("random", count=overlap),
        seed=seed,
        **more,
    )


def grader_of(round, person):
    return round.version.evalset.graders.get(person=person)


def response_of(round, position) -> Response:
    return round.version.responses.get(position=position)


def claim_of(round, position) -> Claim:
    return response_of(round, position).claims.filter(parent=None).first()


def say(round, person, position, *labels, **more):
    """One label a claim of the response in order, then the abstention label; None leaves one out."""
    response = response_of(round, position)
    targets = [(claim, "grounding") for claim in response.claims.filter(parent=None)] + [(None, "abstention")]
    made = [
        services.annotate(
            round=round,
            grader=grader_of(round, person),
            response=response,
            claim=claim,
            dimension=dimension,
            label=label,
            **more,
        ).annotation
        for (claim, dimension), label in zip(targets, labels, strict=False)
        if label
    ]
    return made[0] if len(made) == 1 else made


def gold_of(round):
    return {
        (g.dimension, g.response.position, g.claim.claim_id if g.claim else None): (g.label, g.source)
        for g in GoldLabel.objects.filter(round=round).select_related("response", "claim")
    }


def queue_of(round, person):
    return list(
        Assignment.objects.filter(round=round, grader=grader_of(round, person), state="pending")
        .order_by("skips", "order")
        .values_list("response__position", flat=True)
    )


def decide(round, person, position, label, claim="c1", **more):
    response = response_of(round, position)
    return services.adjudicate(
        round=round,
        response=response,
        claim=response.claims.get(claim_id=claim) if claim else None,
        dimension="grounding" if claim else "abstention",
        label=label,
        reason=more.pop("reason", "edge_case"),
        person=person,
        **more,
    )
