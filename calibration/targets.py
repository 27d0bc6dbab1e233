"""What a judge is asked: every place that the rubric asks about, conditions answered by its own verdicts."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE, Material, Place, Question, places
from annotate.material import questions_of
from annotate.models import RubricVersion
from annotate.services.targets import Target
from annotate.splits import leaves
from calibration.models import Verdict
from evalsets.labels import LABELS, TARGET_OF
from evalsets.models import Claim, Passage, Response, SystemRun


def questions_about(dimensions: Sequence[str], rubric_version: RubricVersion | None) -> list[Question]:
    """The questions of these dimensions, in the rubric's order; without a rubric those of the fixed ones."""
    if rubric_version is None:
        return [Question(name, TARGET_OF[name]) for name in LABELS if name in dimensions]
    return [question for question in questions_of(rubric_version) if question.dimension in dimensions]


def targets_of(
    *,
    system_runs: Iterable[SystemRun],
    dimensions: Sequence[str],
    rubric_version: RubricVersion | None = None,
) -> list[Target]:
    """Every target of the dimensions without a condition. A split claim is judged by its parts."""
    questions = [question for question in questions_about(dimensions, rubric_version) if not question.after]
    return _targets(list(system_runs), questions)


def conditional_targets_of(
    *, system_runs: Iterable[SystemRun], dimensions: Sequence[str], rubric_version: RubricVersion
) -> list[Target]:
    """Those of the dimensions with a condition, as if it were met everywhere: at most so many are asked."""
    questions = [question for question in questions_about(dimensions, rubric_version) if question.after]
    return _targets(list(system_runs), questions)


def _targets(runs: list[SystemRun], questions: Sequence[Question]) -> list[Target]:
    kinds = {question.target for question in questions}
    if not kinds:
        return []
    passages: dict[int, dict[str, int]] = defaultdict(dict)
    if kinds & {CITATION, PASSAGE}:
        rows = Passage.objects.filter(response__run__in=runs).order_by("response", "rank")
        for of, name, pk in rows.values_list("response_id", "passage_id", "pk"):
            passages[of].setdefault(name, pk)
    claims: dict[int, dict[int, list[int]]] = defaultdict(dict)
    if kinds & {CITATION, CLAIM}:
        counting = leaves(Claim.objects.filter(response__run__in=runs)).order_by("position", "pk")
        for pk, of, own, whole in counting.values_list(
            "pk", "response_id", "source_ids", "parent__source_ids"
        ):
            claims[of][pk] = _served(own or whole or [], passages[of])
    found: list[Target] = []
    responses = Response.objects.filter(run__in=runs).order_by("run", "position", "sample", "pk")
    for response in responses.only("pk", "text"):
        material = Material(
            claims=claims[response.pk],
            passages=list(passages[response.pk].values()),
            is_empty=response.is_empty,
        )
        found += [Target.at(response.pk, place) for _question, place in places(questions, material)]
    return found


def _served(cited: Sequence[str], passages: dict[str, int]) -> list[int]:
    return [passages[name] for name in dict.fromkeys(cited) if name in passages]


def what_follows(verdict: Verdict, label: str, questions: Sequence[Question]) -> list[Target]:
    """The targets whose condition this label meets: the judge goes where its own verdict leads."""
    found = []
    for question in questions:
        if question.after != verdict.dimension or label not in question.when:
            continue
        for claim, passage in _places_after(verdict, question):
            found.append(Target.at(verdict.response_id, Place(question.dimension, claim, passage)))
    return found


def _places_after(verdict: Verdict, question: Question) -> list[tuple[int | None, int | None]]:
    """The same place; of a claim also its citations, of a response also its passages."""
    if question.target == question.after_target or question.target in (CLAIM, RESPONSE):
        return [(verdict.claim_id, verdict.passage_id)]
    served = dict(verdict.response.passages.order_by("rank").values_list("passage_id", "pk"))
    if question.target == PASSAGE:
        return [(None, pk) for pk in served.values()]
    claim = verdict.claim
    assert claim is not None
    cited = claim.source_ids or (claim.parent.source_ids if claim.parent else [])
    return [(claim.pk, pk) for pk in _served(cited, served)]
