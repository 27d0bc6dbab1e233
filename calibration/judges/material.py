"""From rows to what a judge reads: the rubric's wording and the target with its passages."""

from dataclasses import dataclass

from annotate.models import RubricVersion
from calibration.judges import extracting
from calibration.judges.extracting import ExtractionWording, extraction_prompt
from calibration.judges.prompts import (
    BUILT_IN,
    DimensionText,
    LabelText,
    Prompt,
    Served,
    Target,
    Wording,
    build_prompt,
    built_in,
)
from calibration.models import ExtractionPromptVersion, Judge, JudgeRun, PromptVersion, Verdict
from evalsets.models import EvalSet, Passage


@dataclass(frozen=True)
class Setup:
    """What holds for all prompts of a run: the rubric as the graders read it, our wording, which passages."""

    rubric: dict[str, DimensionText]
    wording: Wording
    only_cited: bool = False


@dataclass(frozen=True)
class Extracting:
    """The prompts of an extraction: they need no rubric, and no passages."""

    wording: ExtractionWording


def asking_of(run: JudgeRun) -> Setup | Extracting | None:
    """How the run asks; None for one that asks nothing, whose verdicts were imported."""
    if run.extracts:
        return Extracting(extraction_wording_of(run.judge.evalset, run.requested["prompt_version"]))
    return setup_of(run.judge, run.rubric_version) if run.rubric_version else None


def setup_of(judge: Judge, rubric_version: RubricVersion) -> Setup:
    return Setup(
        rubric=dimension_texts(rubric_version),
        wording=wording_of(judge.evalset, judge.prompt_version),
        only_cited=bool(judge.parameters.get("only_cited")),
    )


def dimension_texts(rubric_version: RubricVersion) -> dict[str, DimensionText]:
    return {
        dimension.name: DimensionText(
            name=dimension.name,
            question=dimension.question,
            labels=tuple(
                LabelText(label["name"], label.get("definition", ""), tuple(label.get("examples", ())))
                for label in dimension.labels
            ),
            target=dimension.target,
            decisions=rubric_version.decisions,
            reference_based=rubric_version.reference_based,
        )
        for dimension in rubric_version.dimensions.all()
    }


def wording_of(evalset: EvalSet, version: str) -> Wording:
    """The built-in wording, or a version of the eval set's own."""
    if version in ("", BUILT_IN):
        return built_in()
    row = PromptVersion.objects.get(evalset=evalset, number=int(version))
    return Wording(version, row.system, row.methods, row.closing)


def extraction_wording_of(evalset: EvalSet, version: str) -> ExtractionWording:
    if version == extracting.BUILT_IN:
        return extracting.built_in()
    row = ExtractionPromptVersion.objects.get(evalset=evalset, number=int(version))
    return ExtractionWording(version, row.system, row.closing)


def prompt_of(verdict: Verdict, asking: Setup | Extracting) -> Prompt:
    if isinstance(asking, Extracting):
        response = verdict.response
        return extraction_prompt(
            question=response.item.question, response=response.text, wording=asking.wording
        )
    return build_prompt(asking.rubric[verdict.dimension], _target_of(verdict, asking), asking.wording)


def _target_of(verdict: Verdict, setup: Setup) -> Target:
    response, claim = verdict.response, verdict.claim
    only_cited = setup.only_cited and claim is not None
    cited = set(_cited_by(claim)) if only_cited else set()
    return Target(
        question=response.item.question,
        response=response.text,
        claim=claim.text if claim else None,
        passages=tuple(
            _served(passage)
            for passage in response.passages.all()
            if not only_cited or passage.passage_id in cited
        ),
        reference_answer=response.item.reference_answer,
        passage=_served(verdict.passage) if verdict.passage else None,
        only_cited=only_cited,
    )


def _cited_by(claim) -> list[str]:
    """A part of a split claim cites what the whole claim cites."""
    return claim.source_ids or (claim.parent.source_ids if claim.parent_id else [])


def _served(passage: Passage) -> Served:
    return Served(passage.text, passage.title or "", passage.document or "")
