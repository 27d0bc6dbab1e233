"""Reads for the rubric pages and the warm-up."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Prefetch, QuerySet
from django.utils.translation import gettext as _

from annotate.access import labels_of, unfinished_anywhere
from annotate.disagreement_kinds import target_in_address
from annotate.models import (
    Annotation,
    Dimension,
    Grader,
    Round,
    RubricTask,
    RubricVersion,
    WarmUpAnswer,
    WarmUpCase,
)
from evalsets.models import Claim, EvalSet, EvalSetVersion, Passage, Response

SHORT = 300  # characters of a text in an example


def own_versions(evalset: EvalSet) -> QuerySet[RubricVersion]:
    """The versions of the eval set's own rubric, newest first, each with the rounds that use it."""
    rounds = Round.objects.select_related("version__evalset").order_by("version__number", "number")
    return (
        RubricVersion.objects.filter(rubric__evalset=evalset, rubric__is_imported=False)
        .select_related("rubric", "created_by")
        .prefetch_related("dimensions", "warm_up_cases", Prefetch("rounds", queryset=rounds))
        .order_by("-number")
    )


# The to-do list of the rubric


@dataclass(frozen=True)
class ShownTask:
    """A note for the rubric, with the decision that gave rise to it and how often each label was given."""

    task: RubricTask
    text: str  # the claim, or the question
    labels: dict[str, int]

    @property
    def address(self) -> str:
        """How the page of the decision names its target."""
        decision = self.task.adjudication
        if decision is None:
            return ""
        return target_in_address(decision.response_id, decision.claim_id, decision.passage_id)


def open_tasks(evalset: EvalSet) -> list[ShownTask]:
    return _shown(_tasks_of(evalset).filter(settled_in=None, dismissed_at=None))


def dismissed_tasks(evalset: EvalSet) -> list[ShownTask]:
    return _shown(_tasks_of(evalset).filter(settled_in=None, dismissed_at__isnull=False))


def to_do_of(person, version: EvalSetVersion) -> dict[str, Any]:
    """Notes for the rubric tell what was said of a claim: nothing for somebody who still grades."""
    if unfinished_anywhere(person, version.evalset).exists():
        return {"still_grading": True, "tasks": [], "dismissed": []}
    tasks, dismissed = open_tasks(version.evalset), dismissed_tasks(version.evalset)
    told = {
        shown.task.adjudication.round.version.number for shown in tasks + dismissed if shown.task.adjudication
    }
    for number in told:
        labels_of(person, version.evalset.slug, number)
    return {"still_grading": False, "tasks": tasks, "dismissed": dismissed}


def _tasks_of(evalset: EvalSet) -> QuerySet[RubricTask]:
    return RubricTask.objects.filter(rubric__evalset=evalset).select_related(
        "created_by",
        "adjudication__claim",
        "adjudication__response__item",
        "adjudication__round__version__evalset",
    )


def _shown(tasks: QuerySet[RubricTask]) -> list[ShownTask]:
    said: dict[tuple, Counter[str]] = {}
    decisions = [task.adjudication for task in tasks if task.adjudication]
    fields = ("round_id", "dimension", "response_id", "claim_id", "passage_id")
    rows = Annotation.objects.filter(
        round__in={d.round_id for d in decisions}, response__in={d.response_id for d in decisions}
    )
    for *place, label in rows.values_list(*fields, "label"):
        said.setdefault(tuple(place), Counter())[label] += 1
    shown = []
    for task in tasks:
        decision = task.adjudication
        if decision is None:
            shown.append(ShownTask(task, "", {}))
            continue
        place = tuple(getattr(decision, name) for name in fields)
        text = decision.claim.text if decision.claim else decision.response.item.question or ""
        shown.append(ShownTask(task, text, dict(said.get(place, {}))))
    return shown


# Examples from what was graded


def examples_of(version: EvalSetVersion, target: str, ids: Sequence[str]) -> list[str]:
    """Graded targets as texts for the rubric. A claim is named by its id, a citation by claim-passage."""
    made = (EXAMPLE_OF[target](version, *_numbers(given)) for given in ids if _numbers(given))
    return [text for text in made if text]


def _numbers(given: str) -> list[int]:
    parts = given.split("-")
    return [int(part) for part in parts] if all(p.isdecimal() and len(p) < 10 for p in parts) else []


def _of_claim(version: EvalSetVersion, claim_id: int, passage_id: int | None = None) -> str:
    claim = Claim.objects.filter(pk=claim_id, response__version=version).first()
    if claim is None:
        return ""
    said = [_passage(passage.text, claim.text) for passage in _deciding_passages(claim, passage_id)]
    return " ".join([*said, _("Claim: “%(text)s”") % {"text": shortened(claim.text)}])


def _deciding_passages(claim: Claim, passage_id: int | None) -> list[Passage]:
    """The passage asked for; else those marked as evidence, else the cited ones."""
    passages = list(claim.response.passages.order_by("rank"))
    if passage_id is not None:
        return [passage for passage in passages if passage.pk == passage_id]
    marks = Annotation.objects.filter(claim=claim, passage=None).values_list("evidence", flat=True)
    marked = {rank for ranks in marks for rank in ranks}
    if marked:
        return [passage for passage in passages if passage.rank in marked]
    return [passage for passage in passages if passage.passage_id in claim.source_ids]


def _of_response(version: EvalSetVersion, response_id: int, *_more: int) -> str:
    response = Response.objects.filter(pk=response_id, version=version).select_related("item").first()
    if response is None:
        return ""
    return _("Question: “%(question)s” Response: “%(response)s”") % {
        "question": shortened(response.item.question or ""),
        "response": shortened(response.text),
    }


def _of_passage(version: EvalSetVersion, passage_id: int, *_more: int) -> str:
    passage = (
        Passage.objects.filter(pk=passage_id, response__version=version)
        .select_related("response__item")
        .first()
    )
    if passage is None:
        return ""
    question = passage.response.item.question or ""
    said = _passage(passage.text, question)
    return _("Question: “%(question)s”") % {"question": shortened(question)} + " " + said


EXAMPLE_OF: dict[str, Callable[..., str]] = {
    Dimension.Target.CLAIM: _of_claim,
    Dimension.Target.CITATION: _of_claim,
    Dimension.Target.RESPONSE: _of_response,
    Dimension.Target.PASSAGE: _of_passage,
}


def _passage(text: str, beside: str) -> str:
    return _("Passage: “%(text)s”") % {"text": shortened(text, beside)}


def shortened(text: str, beside: str = "") -> str:
    """At most SHORT characters on one line, from where most words of another text stand together."""
    text = " ".join(text.split())
    if len(text) <= SHORT:
        return text
    wanted = {word.casefold() for word in re.findall(r"\w{4,}", beside)}
    hits = [m.start() for m in re.finditer(r"\w{4,}", text) if m.group().casefold() in wanted]
    start = max(hits, key=lambda at: sum(at <= hit < at + SHORT for hit in hits), default=0)
    start = max(0, min(start - SHORT // 5, len(text) - SHORT))
    piece = text[start : start + SHORT]
    return ("… " if start else "") + piece.strip() + (" …" if start + SHORT < len(text) else "")


# The warm-up


class OwnCase(NamedTuple):
    """A known case with this grader's answer; None: not yet."""

    case: WarmUpCase
    own: WarmUpAnswer | None


def warm_up_cases(rubric_version: RubricVersion, grader: Grader) -> list[OwnCase]:
    own = {answer.case_id: answer for answer in WarmUpAnswer.objects.filter(grader=grader)}
    return [OwnCase(case, own.get(case.pk)) for case in rubric_version.warm_up_cases.all()]


@dataclass(frozen=True)
class WarmUpResult:
    """What every grader of a round said of every known case."""

    graders: list[Grader]
    rows: list[tuple[WarmUpCase, list[tuple[Grader, WarmUpAnswer | None]]]]

    @property
    def right(self) -> list[tuple[Grader, int, int]]:
        """Each grader with how many of the answered cases they got right, and how many they answered."""
        given: dict[Grader, list[bool]] = {grader: [] for grader in self.graders}
        for case, answers in self.rows:
            for grader, answer in answers:
                if answer is not None:
                    given[grader].append(answer.label == case.label)
        return [(grader, sum(right), len(right)) for grader, right in given.items()]


def warm_up_result(round: Round) -> WarmUpResult:
    graders = list(Grader.objects.filter(assignments__round=round).distinct().order_by("number"))
    answers = {
        (answer.case_id, answer.grader_id): answer
        for answer in WarmUpAnswer.objects.filter(
            case__rubric_version=round.rubric_version_id, grader__in=graders
        )
    }
    cases = round.rubric_version.warm_up_cases.all()
    rows = [(case, [(grader, answers.get((case.pk, grader.pk))) for grader in graders]) for case in cases]
    return WarmUpResult(graders, rows)
