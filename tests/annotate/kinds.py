"""A rubric that asks of every kind of target, as a lead might write it."""

from annotate import services
from annotate.models import Dimension, RubricVersion

TYPES = ("evident conflict", "subtle conflict", "evident baseless info", "subtle baseless info")
MANY = (
    "why",
    "where else",
    "what there is",
    "premise",
    "bare",
    "blunt",
    "wrong reason",
    "off topic",
    "other",
)


def labels(names) -> list[dict]:
    return [
        {"name": name, "key": str(key), "definition": f"Said of {name}.", "examples": []}
        for key, name in enumerate(names, start=1)
    ]


def ask_everything(evalset) -> RubricVersion:
    """Grounding and abstention, and five optional dimensions; the conditional ones after the labels named."""
    rubric = services.rubric_v1(evalset=evalset)
    wrong = {"dimension": "grounding", "labels": ["contradicted", "unsupported"]}
    more = [
        ("error type", "claim", "Of which kind is the error?", TYPES, wrong),
        ("citation support", "citation", "Does this passage bear out the claim?", ("full", "none"), None),
        (
            "correctness",
            "response",
            "Is the response right?",
            ("right", "wrong"),
            {"dimension": "abstention", "labels": ["ANSWERED"]},
        ),
        (
            "informativeness",
            "response",
            "How informative is the refusal?",
            MANY,
            {"dimension": "abstention", "labels": ["REFUSED"]},
        ),
        ("context relevance", "passage", "Is this passage of use?", ("of use", "of no use"), None),
    ]
    position = rubric.dimensions.count()
    for number, (name, target, question, names, when) in enumerate(more, start=position + 1):
        Dimension.objects.create(
            rubric_version=rubric,
            name=name,
            target=target,
            question=question,
            labels=labels(names),
            asked_when=when,
            position=number,
        )
    return rubric
