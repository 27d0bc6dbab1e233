"""From rows to what a judge reads: the rubric's wording and the target with its passages."""

from annotate.models import RubricVersion
from calibration.judges.prompts import DimensionText, LabelText, Prompt, Served, Target, build_prompt
from calibration.models import Verdict


def dimension_texts(rubric_version: RubricVersion) -> dict[str, DimensionText]:
    return {
        dimension.name: DimensionText(
            name=dimension.name,
            question=dimension.question,
            labels=tuple(
                LabelText(label["name"], label.get("definition", ""), tuple(label.get("examples", ())))
                for label in dimension.labels
            ),
            decisions=rubric_version.decisions,
            reference_based=rubric_version.reference_based,
        )
        for dimension in rubric_version.dimensions.all()
    }


def prompt_of(verdict: Verdict, rubric: dict[str, DimensionText]) -> Prompt:
    response = verdict.response
    target = Target(
        question=response.item.question,
        response=response.text,
        claim=verdict.claim.text if verdict.claim else None,
        passages=tuple(
            Served(passage.text, passage.title or "", passage.document or "")
            for passage in response.passages.all()
        ),
        reference_answer=response.item.reference_answer,
    )
    return build_prompt(rubric[verdict.dimension], target)
