"""The joining of annotations, gold and verdicts row by row, as `calibration.pairing` did it at first.

What that does with whole columns has to come out the same, number by number.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from django.db.models.functions import Substr

from annotate.asking import CITATION, CLAIM, PASSAGE, RESPONSE, Question
from annotate.material import questions_of
from annotate.models import (
    Adjudication,
    Annotation,
    Assignment,
    Dimension,
    GoldLabel,
    Grader,
    Round,
    SecondLookTarget,
)
from calibration.models import JudgeRun, Verdict
from calibration.pairing import KEY_FIELDS, optional_dimension, run_names
from calibration.sightings import FirstSeen, first_seen, had_seen
from calibration.table import (
    MISSING,
    REASON_CODE,
    Column,
    Mask,
    Table,
    Targets,
    counts_per_label,
    gold_column,
    grader_column,
)
from evalsets.models import Claim, EvalSetVersion, Passage, Response, SystemRun

HEAD = 40


def table_of(
    *, version: EvalSetVersion, round: Round | None, dimension: str, judge_run: JudgeRun | None = None
) -> Table:
    """What was said in one dimension about the targets of a round, or of a version before its first round."""
    scope = round.runs if round else version.runs
    optional = optional_dimension(round, dimension)
    targets = targets_of(
        runs=scope.select_related("system").order_by("number"), dimension=dimension, optional=optional
    )
    graders = grader_columns(targets=targets, round=round) if round else ()
    gold, source, saw_judge, unseen = gold_columns(targets=targets, round=round, graders=graders)
    judge = judge_column(targets=targets, judge_run=judge_run) if judge_run else None
    table = Table(targets, graders, gold, source, saw_judge, judge, unseen)
    return _as_asked(table, version, round) if round else table


def targets_of(*, runs: Iterable[SystemRun], dimension: str, optional: Dimension | None = None) -> Targets:
    """Everything in the runs that the dimension is about, one row each, in the order of the file."""
    names = run_names(runs)
    responses, facts = _responses(list(names))
    kind = optional.target if optional else RESPONSE if dimension == "abstention" else CLAIM
    rows = _ROWS[kind](list(names), responses)
    columns = list(zip(*rows, strict=True)) if rows else [()] * 9
    target, passage, response, item, run = (np.array(column, dtype=np.int64) for column in columns[:5])
    decision, original, leaf, empty = (np.array(column, dtype=bool) for column in columns[5:])
    return Targets(
        dimension,
        target,
        response,
        item,
        run,
        decision,
        original,
        leaf,
        empty,
        names,
        facts,
        passage=passage if kind == CITATION else None,
        own_labels=optional.label_names if optional else (),
        own_unit=optional.target if optional else "",
    )


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


ResponseFacts = dict[int, tuple[int, int, bool]]  # item, run, whether it is empty


def _response_rows(runs: list[int], responses: ResponseFacts) -> list[tuple]:
    return [
        (response, 0, response, item, run, False, True, True, empty)
        for response, (item, run, empty) in responses.items()
    ]


def _claim_rows(runs: list[int], responses: ResponseFacts) -> list[tuple]:
    claims = list(_claims(runs).values_list("pk", "response_id", "parent_id", "decision"))
    parents = {parent for _, _, parent, _ in claims}
    return [
        (pk, 0, response, item, run, bool(decision), parent is None, pk not in parents, empty)
        for pk, response, parent, decision in claims
        for item, run, empty in (responses[response],)
    ]


def _passage_rows(runs: list[int], responses: ResponseFacts) -> list[tuple]:
    return [
        (passage, 0, response, item, run, False, True, True, False)
        for response, served in _served(runs).items()
        for item, run, _empty in (responses[response],)
        for passage in served.values()
    ]


def _citation_rows(runs: list[int], responses: ResponseFacts) -> list[tuple]:
    served = _served(runs)
    fields = ("pk", "response_id", "parent_id", "source_ids", "parent__source_ids")
    cited = [
        (claim, response, parent, own or of_whole or [])
        for claim, response, parent, own, of_whole in _claims(runs).values_list(*fields)
    ]
    parents = {parent for _, _, parent, _ in cited}
    return [
        (
            *(claim, served[response][passage], response, item, run, False),
            *(parent is None, claim not in parents, False),
        )
        for claim, response, parent, passages in cited
        for item, run, _empty in (responses[response],)
        for passage in dict.fromkeys(passages)
        if passage in served.get(response, ())
    ]


_ROWS = {RESPONSE: _response_rows, CLAIM: _claim_rows, PASSAGE: _passage_rows, CITATION: _citation_rows}


def _claims(runs: list[int]):
    return Claim.objects.filter(response__run__in=runs).order_by(
        "response__run__number", "response__position", "position", "pk"
    )


def _served(runs: list[int]) -> dict[int, dict[str, int]]:
    """Of each response its passages as they are asked about: one for each id."""
    served: dict[int, dict[str, int]] = {}
    passages = Passage.objects.filter(response__run__in=runs).order_by(
        "response__run__number", "response__position", "rank"
    )
    for response, name, pk in passages.values_list("response_id", "passage_id", "pk"):
        served.setdefault(response, {})[name] = pk
    return served


def _as_asked(table: Table, version: EvalSetVersion, round: Round) -> Table:
    """Say of a missing label that the question was not put, where it was not."""
    targets = table.targets
    if round.kind == Round.Kind.SECOND_LOOK:
        left_out = ~np.isin(np.arange(len(table)), _drawn_rows(targets, round))
        return replace(table, graders=tuple(column.not_asked(left_out) for column in table.graders))
    question = next((q for q in questions_of(round.rubric_version) if q.dimension == targets.dimension), None)
    if question is None or not question.after:
        return table
    before = table_of(version=version, round=round, dimension=question.after)
    at = _rows_of_condition(targets, before.targets, question)
    asked_of = {column.name: column for column in before.graders}
    graders = tuple(
        column.not_asked(_condition_fails(asked_of[column.name], at, before.targets, question))
        if column.name in asked_of
        else column
        for column in table.graders
    )
    assert table.gold is not None
    assert before.gold is not None
    gold = table.gold.not_asked(_condition_fails(before.gold, at, before.targets, question))
    return replace(table, graders=graders, gold=gold)


def _drawn_rows(targets: Targets, round: Round) -> list[int]:
    rows = _row_of_target(targets)
    drawn = SecondLookTarget.objects.filter(round=round, dimension=targets.dimension)
    found = (rows.get(_key(key)) for key in drawn.values_list(*KEY_FIELDS[targets.unit]))
    return [row for row in found if row is not None]


def _rows_of_condition(targets: Targets, before: Targets, question: Question) -> np.ndarray:
    """Of each target the row that decides whether it is asked."""
    rows = _row_of_target(before)
    same = question.after_target == question.target
    keys: Iterable[Any]
    if same:
        keys = targets.keys()
    else:  # of a citation its claim, of a passage its response
        keys = (targets.target if question.after_target == CLAIM else targets.response).tolist()
    return np.array([rows.get(key, MISSING) for key in keys], dtype=np.int64)


def _condition_fails(column: Column, at: np.ndarray, before: Targets, question: Question) -> Mask:
    """Where this rater's label leads elsewhere, or was itself not asked for."""
    if not len(column.codes):
        return np.zeros(len(at), dtype=bool)
    leads = np.array([label in question.when for label in before.labels])
    codes, why = column.codes[at], column.why[at]
    elsewhere = (codes >= 0) & ~leads[codes]
    return (at >= 0) & (elsewhere | ((codes < 0) & (why == REASON_CODE["not_asked"])))


def _row_of_target(targets: Targets) -> dict[Any, int]:
    return {key: row for row, key in enumerate(targets.keys())}


def _key(fields: Iterable[int]) -> Any:
    key = tuple(fields)
    return key[0] if len(key) == 1 else key


def _codes(targets: Targets, labels: Iterable[tuple[Any, str]], rows: dict[Any, int]) -> np.ndarray:
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
    given: dict[int, list[tuple[Any, str]]] = {}
    labels = Annotation.objects.filter(round=round, dimension=targets.dimension)
    for grader, label, *key in labels.values_list("grader_id", "label", *KEY_FIELDS[targets.unit]):
        given.setdefault(grader, []).append((_key(key), label))
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
) -> tuple[Column, np.ndarray, np.ndarray, np.ndarray]:
    """Gold, where it came from, whether a verdict was in view when it was decided, and what held before."""
    rows = _row_of_target(targets)
    seen = first_seen(round.version_id) if round else {}
    settled = list(
        GoldLabel.objects.filter(round=round, dimension=targets.dimension).values_list(
            "label",
            "source",
            "adjudication__judge_seen",
            "adjudication__by",
            "adjudication__at",
            *KEY_FIELDS[targets.unit],
        )
    )
    codes = _codes(targets, [(_key(key), label) for label, _, _, _, _, *key in settled], rows)
    source = np.full(len(targets), "", dtype=object)
    saw_judge = np.zeros(len(targets), dtype=bool)
    for _label, where_from, judge_seen, by, at, *key in settled:
        row = rows.get(_key(key))
        if row is not None:
            source[row] = where_from
            saw_judge[row] = bool(judge_seen) or had_seen(seen, by, at)
    unseen = _gold_before_verdicts(targets, round, graders, saw_judge, seen)
    return gold_column(codes, targets, graders), source, saw_judge, unseen


def _gold_before_verdicts(
    targets: Targets, round: Round | None, graders: tuple[Column, ...], saw_judge: np.ndarray, seen: FirstSeen
) -> np.ndarray:
    """Where gold was decided with a verdict in view: the decision before, else what all graders said."""
    unseen = np.full(len(targets), MISSING, dtype=np.int64)
    if not saw_judge.any():
        return unseen
    given = counts_per_label(graders, targets)
    agreed = saw_judge & (given.sum(axis=1) >= 2) & ((given > 0).sum(axis=1) == 1)
    unseen[agreed] = given[agreed].argmax(axis=1)
    earlier = Adjudication.objects.filter(
        round=round, dimension=targets.dimension, judge_seen=False, revokes__isnull=True
    )
    decided = earlier.order_by("pk").values_list(
        "label", "by", "at", "revoked_by__by", "revoked_by__at", *KEY_FIELDS[targets.unit]
    )
    blind = [
        (_key(key), label)
        for label, by, at, taken_by, taken_at, *key in decided
        if not had_seen(seen, by, at) and (taken_at is None or had_seen(seen, taken_by, taken_at))
    ]
    before = _codes(targets, blind, _row_of_target(targets))
    return np.where(saw_judge & (before >= 0), before, unseen)


def judge_column(*, targets: Targets, judge_run: JudgeRun) -> Column:
    """The first verdict on each target: what agreement is computed from. Where each target was asked about
    more than once, the verdicts of all runs stand beside it: what rates are computed from.
    """
    rows = _row_of_target(targets)
    verdicts = Verdict.objects.filter(run=judge_run, dimension=targets.dimension)
    said = np.full((len(targets), judge_run.repeats), MISSING, dtype=np.int64)
    why = np.full(len(targets), REASON_CODE["not_judged"], dtype=np.int8)
    position = {label: code for code, label in enumerate(targets.labels)}
    reason = {
        Verdict.State.VALID: 0,
        Verdict.State.FAILED: REASON_CODE["verdict_failed"],
        Verdict.State.PENDING: REASON_CODE["verdict_pending"],
        Verdict.State.CLAIMED: REASON_CODE["verdict_pending"],
    }
    for index, state, label, *key in verdicts.values_list(
        "run_index", "state", "label", *KEY_FIELDS[targets.unit]
    ):
        row = rows.get(_key(key))
        if row is None:
            continue
        if index == 1:
            why[row] = reason[state]
        if state == Verdict.State.VALID:
            said[row, index - 1] = position[label]
    why[targets.empty & (why == REASON_CODE["not_judged"])] = REASON_CODE["empty_response"]
    repeats = said if judge_run.repeats > 1 else None
    return Column(judge_run.judge.name, "judge", said[:, 0], why, repeats)
