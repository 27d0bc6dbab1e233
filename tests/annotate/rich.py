"""A round whose rubric asks of claims, citations, responses and passages, and what graders say in it."""

import copy

from annotate import presets, services
from annotate.material import content_of
from tests.annotate.worlds import grader_of, response_of

NAMES = ("hallucination_type", "citation_support", "refusal_informativeness", "context_relevance")


def open_rich(version, *people, names=NAMES, seed=7):
    first = services.rubric_v1(evalset=version.evalset)
    content = content_of(first)
    content["dimensions"] += [copy.deepcopy(presets.DIMENSION_OF[name]) for name in names]
    rubric_version, _is_new = services.write_rubric_version(rubric=first.rubric, content=content)
    return services.open_round(
        version=version,
        runs=list(version.runs.all()),
        graders=[
            services.ensure_grader(evalset=version.evalset, name=person.username, person=person)
            for person in people
        ],
        rubric_version=rubric_version,
        seed=seed,
    )


def tell(round, person, dimension, label, *, position=6, claim=1, passage=None):
    """One label of the response at this position; claim by its place in it (None: none), passage by rank."""
    response = response_of(round, position)
    target = {
        "claim": response.claims.get(position=claim, parent=None) if claim else None,
        "passage": response.passages.get(rank=passage) if passage else None,
    }
    return services.annotate(
        round=round,
        grader=grader_of(round, person),
        response=response,
        dimension=dimension,
        label=label,
        **target,
    )


def tell_all(
    round, person, grounding, kind=None, *, cited="full support", whole="ANSWERED", informative=None
):
    """Everything that is asked of response 6 (one claim, which cites passage 2; two passages)."""
    tell(round, person, "grounding", grounding)
    if kind:
        tell(round, person, "hallucination_type", kind)
    tell(round, person, "citation_support", cited, passage=2)
    tell(round, person, "abstention", whole, claim=None)
    for rank in (1, 2):
        tell(round, person, "context_relevance", "irrelevant", claim=None, passage=rank)
