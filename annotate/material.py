"""Rows as the pure modules want them: what decides what is asked of a response, and what a rubric says."""

from functools import lru_cache

from annotate.asking import CITATION, PASSAGE, Material, Place, Question
from annotate.models import Dimension, Round, RubricVersion, SecondLookTarget
from annotate.rubric_rules import Content
from evalsets.models import Response


def dimensions_of(rubric_version: RubricVersion) -> list[Dimension]:
    """In order. A rubric version never changes, so a process reads it once."""
    return list(_dimensions(rubric_version.pk, rubric_version.sha256))


@lru_cache(maxsize=64)
def _dimensions(pk: int, sha256: str) -> tuple[Dimension, ...]:
    return tuple(Dimension.objects.filter(rubric_version=pk).order_by("position"))


forget_dimensions = _dimensions.cache_clear


def questions_of(rubric_version: RubricVersion) -> list[Question]:
    return as_questions(dimensions_of(rubric_version))


def as_questions(dimensions: list[Dimension]) -> list[Question]:
    target_of = {dimension.name: dimension.target for dimension in dimensions}
    return [
        Question(
            dimension.name,
            dimension.target,
            after=(when := dimension.asked_when or {}).get("dimension", ""),
            after_target=target_of.get(when.get("dimension", ""), ""),
            when=frozenset(when.get("labels", ())),
        )
        for dimension in dimensions
    ]


def material_of(response: Response, questions: list[Question]) -> Material:
    """Passages are looked up only where the rubric asks about them."""
    targets = {question.target for question in questions}
    passages: dict[str, int] = {}
    if targets & {CITATION, PASSAGE}:
        passages = {passage.passage_id: passage.pk for passage in response.ranked_passages}
    return Material(
        claims={
            claim.pk: [passages[i] for i in dict.fromkeys(claim.source_ids) if i in passages]
            for claim in response.whole_claims
        },
        passages=list(passages.values()) if PASSAGE in targets else [],
        is_empty=response.is_empty,
    )


def drawn_of(round: Round, response_id: int) -> set[Place] | None:
    """Of a second look, what was drawn of this response; None where everything is asked."""
    if round.kind != Round.Kind.SECOND_LOOK:
        return None
    rows = SecondLookTarget.objects.filter(round=round, response=response_id)
    return {Place(*place) for place in rows.values_list(*PLACE)}


PLACE = ("dimension", "claim_id", "passage_id")


def content_of(rubric_version: RubricVersion) -> Content:
    """All that a rubric version says, as data; the warm-up cases are what a judge may be tried on too."""
    cases = rubric_version.warm_up_cases.all()
    return {
        "decisions": rubric_version.decisions,
        "reference_based": rubric_version.reference_based,
        "dimensions": [
            {
                "name": dimension.name,
                "target": dimension.target,
                "question": dimension.question,
                "asked_when": dimension.asked_when,
                "labels": dimension.labels,
            }
            for dimension in rubric_version.dimensions.all()
        ],
        "warm_up_cases": [{name: getattr(case, name) for name in CASE_FIELDS} for case in cases],
    }


CASE_FIELDS = ("dimension", "question", "passages", "response", "claim", "label", "explanation")
