"""The one place where annotations, gold and verdicts are joined: by target id, never by position.

Human-human agreement uses the original claims, gold, rates and judge agreement the leaves (the parts of a
split instead of their parent): the table holds both and says which is which. Nothing is dropped in silence: a
target without a label keeps its row and the reason. A handful of queries; no text is loaded.
"""

from collections import Counter
from collections.abc import Iterable

import numpy as np
from django.db.models.functions import Substr

from annotate.models import Annotation, Assignment, GoldLabel, Grader, Round
from calibration.models import JudgeRun, Verdict
from calibration.table import MISSING, REASON_CODE, Column, Table, Targets, gold_column, grader_column
from evalsets.labels import LABELS
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun

HEAD = 40  # characters that decide whether a response is empty, nearly always


def chosen_round(*, version: EvalSetVersion, number: int | None = None) -> Round | None:
    """The round asked for; else the latest first grading with labels, else the imported one, else any."""
    rounds = Round.objects.filter(version=version).select_related(
        "rubric_version__rubric", "version__evalset"
    )
    if number is not None:
        return rounds.filter(number=number).first()
    graded = rounds.filter(kind=Round.Kind.FIRST, annotations__isnull=False)
    imported = rounds.filter(kind=Round.Kind.IMPORTED)
    opened = rounds.filter(kind=Round.Kind.FIRST)
    for candidates in (graded, imported, opened):
        found = candidates.order_by("-number").first()
        if found:
            return found
    return None


def dimensions_of(round: Round | None) -> list[str]:
    """The dimensions that the round's rubric asks for or that somebody labelled, in fixed order."""
    if round is None:
        return list(LABELS)
    asked = set(Annotation.objects.filter(round=round).values_list("dimension", flat=True).distinct())
    if round.kind != Round.Kind.IMPORTED:
        asked |= set(round.rubric_version.dimensions.values_list("name", flat=True))
    return [dimension for dimension in LABELS if dimension in asked]


def run_names(runs: Iterable[SystemRun]) -> dict[int, str]:
    """A name of its own for each run: the system's, with date or run number where two share it."""
    runs = list(runs)
    names = {run.pk: str(run.system) for run in runs}
    for more in (lambda run: run.system.date, lambda run: f"run {run.number}"):
        uses = Counter(names.values())
        for run in runs:
            if uses[names[run.pk]] > 1 and more(run):
                names[run.pk] = f"{names[run.pk]} ({more(run)})"
    return names


def table_of(
    *, version: EvalSetVersion, round: Round | None, dimension: str, judge_run: JudgeRun | None = None
) -> Table:
    """What was said in one dimension about the targets of a round, or of a version before its first round."""
    scope = round.runs if round else version.runs
    targets = targets_of(runs=scope.select_related("system").order_by("number"), dimension=dimension)
    graders = grader_columns(targets=targets, round=round) if round else ()
    gold, source, saw_judge = gold_columns(targets=targets, round=round, graders=graders)
    judge = judge_column(targets=targets, judge_run=judge_run) if judge_run else None
    return Table(targets, graders, gold, source, saw_judge, judge)


def targets_of(*, runs: Iterable[SystemRun], dimension: str) -> Targets:
    """Every claim or response of the runs as one row, in the order of the file."""
    names = run_names(runs)
    responses, facts = _responses(list(names))
    if dimension == "abstention":
        rows = [
            (response, response, item, run, False, True, True, empty)
            for response, (item, run, empty) in responses.items()
        ]
    else:
        rows = _claim_rows(list(names), responses)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 8
    target, response, item, run = (np.array(column, dtype=np.int64) for column in columns[:4])
    decision, original, leaf, empty = (np.array(column, dtype=bool) for column in columns[4:])
    return Targets(dimension, target, response, item, run, decision, original, leaf, empty, names, facts)


def _responses(runs: list[int]) -> tuple[dict[int, tuple[int, int, bool]], dict[int, dict]]:
    rows = (
        Response.objects.filter(run__in=runs)
        .order_by("run__number", "position")
        .annotate(head=Substr("text", 1, HEAD))
        .values_list(
            "pk",
            "item__pk",
            "run__pk",
            "head",
            "item__strata",
            "item__answerable",
            "item__unanswerable_reason",
        )
    )
    responses, facts, undecided = {}, {}, []
    for pk, item, run, head, strata, answerable, reason in rows:
        blank = not head.strip()
        if blank and len(head) == HEAD:
            undecided.append(pk)
        responses[pk] = (item, run, blank)
        facts[item] = {"strata": strata, "answerable": answerable, "reason": reason}
    for pk, text in Response.objects.filter(pk__in=undecided).values_list("pk", "text"):
        item, run, _ = responses[pk]
        responses[pk] = (item, run, not text.strip())
    return responses, facts


def _claim_rows(runs: list[int], responses: dict[int, tuple[int, int, bool]]) -> list[tuple]:
    claims = list(
        Claim.objects.filter(response__run__in=runs)
        .order_by("response__run__number", "response__position", "position", "pk")
        .values_list("pk", "response_id", "parent_id", "decision")
    )
    parents = {parent for _, _, parent, _ in claims}
    return [
        (pk, response, item, run, bool(decision), parent is None, pk not in parents, empty)
        for pk, response, parent, decision in claims
        for item, run, empty in (responses[response],)
    ]


def _row_of_target(targets: Targets) -> dict[int, int]:
    return {target: row for row, target in enumerate(targets.target.tolist())}


def _target_field(targets: Targets) -> str:
    return f"{targets.unit}_id"


def _codes(targets: Targets, labels: Iterable[tuple[int, str]], rows: dict[int, int]) -> np.ndarray:
    position = {label: code for code, label in enumerate(targets.labels)}
    codes = np.full(len(targets), MISSING, dtype=np.int64)
    for target, label in labels:
        row = rows.get(target)
        if row is not None:
            codes[row] = position[label]
    return codes


def grader_columns(*, targets: Targets, round: Round) -> tuple[Column, ...]:
    """One column per grader of the round, in the order of their numbers."""
    rows = _row_of_target(targets)
    given: dict[int, list[tuple[int, str]]] = {}
    labels = Annotation.objects.filter(round=round, dimension=targets.dimension)
    for grader, target, label in labels.values_list("grader_id", _target_field(targets), "label"):
        given.setdefault(grader, []).append((target, label))
    assigned: dict[int, set[int]] = {}
    for grader, response in Assignment.objects.filter(round=round).values_list("grader_id", "response_id"):
        assigned.setdefault(grader, set()).add(response)
    graders = Grader.objects.filter(pk__in={*given, *assigned}).order_by("number")
    imported = round.kind == Round.Kind.IMPORTED
    return tuple(
        _grader_column(
            targets, grader.name, given.get(grader.pk, []), rows, assigned.get(grader.pk), imported
        )
        for grader in graders
    )


def _grader_column(targets, name, given, rows, assigned, imported) -> Column:
    theirs = None if imported else np.isin(targets.response, list(assigned or ()))
    return grader_column(name, _codes(targets, given, rows), targets, theirs)


def gold_columns(
    *, targets: Targets, round: Round | None, graders: tuple[Column, ...]
) -> tuple[Column, np.ndarray, np.ndarray]:
    """Gold, where it came from, and whether a verdict was in view when it was decided."""
    rows = _row_of_target(targets)
    settled = list(
        GoldLabel.objects.filter(round=round, dimension=targets.dimension).values_list(
            _target_field(targets), "label", "source", "adjudication__judge_seen"
        )
    )
    codes = _codes(targets, [(target, label) for target, label, _, _ in settled], rows)
    source = np.full(len(targets), "", dtype=object)
    saw_judge = np.zeros(len(targets), dtype=bool)
    for target, _, where_from, judge_seen in settled:
        if target in rows:
            source[rows[target]], saw_judge[rows[target]] = where_from, bool(judge_seen)
    return gold_column(codes, targets, graders), source, saw_judge


def judge_column(*, targets: Targets, judge_run: JudgeRun) -> Column:
    """The first verdict on each target; further runs of the same input serve self-consistency only."""
    rows = _row_of_target(targets)
    verdicts = Verdict.objects.filter(run=judge_run, dimension=targets.dimension, run_index=1)
    codes = np.full(len(targets), MISSING, dtype=np.int64)
    why = np.full(len(targets), REASON_CODE["not_judged"], dtype=np.int8)
    position = {label: code for code, label in enumerate(targets.labels)}
    reason = {
        Verdict.State.VALID: 0,
        Verdict.State.FAILED: REASON_CODE["verdict_failed"],
        Verdict.State.PENDING: REASON_CODE["verdict_pending"],
        Verdict.State.CLAIMED: REASON_CODE["verdict_pending"],
    }
    for target, state, label in verdicts.values_list(_target_field(targets), "state", "label"):
        row = rows.get(target)
        if row is None:
            continue
        why[row] = reason[state]
        if state == Verdict.State.VALID:
            codes[row] = position[label]
    why[targets.empty & (why == REASON_CODE["not_judged"])] = REASON_CODE["empty_response"]
    return Column(judge_run.judge.name, "judge", codes, why)
