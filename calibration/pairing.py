"""The one place where annotations, gold and verdicts are joined: by target id, never by position.

Human-human agreement uses the original claims, gold, rates and judge agreement the leaves (the parts of a
split instead of their parent): the table holds both and says which is which. Nothing is dropped in silence: a
target without a label keeps its row and the reason. A handful of queries; no text is loaded.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from django.db.models import Exists, Max, OuterRef, Q
from django.db.models.functions import Coalesce

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
from annotate.splits import parts_that_count
from calibration.columns import Among, Small, code_of, int_columns
from calibration.contents import IS_DECISION, Contents, contents_of, facts_of
from calibration.models import JudgeRun, Verdict
from calibration.sightings import FirstSeen, first_seen, had_seen
from calibration.table import (
    MISSING,
    REASON_CODE,
    Column,
    Ints,
    Mask,
    Table,
    Targets,
    counts_per_label,
    gold_column,
    grader_column,
    nobody,
    row_of,
)
from evalsets.labels import LABELS
from evalsets.models import Claim, EvalSetVersion, Passage, SystemRun

MOST_RUNS = 2**15  # what the database keeps of the number of a repeat
LOOKED_UP = 20_000  # targets: of more than these all labels are read, which is faster then
KEY_FIELDS = {
    CLAIM: ("claim_id",),
    RESPONSE: ("response_id",),
    PASSAGE: ("passage_id",),
    CITATION: ("claim_id", "passage_id"),
}


def chosen_round(*, version: EvalSetVersion, number: int | None = None) -> Round | None:
    """The round asked for; else the latest first grading with labels, else the imported one, else any."""
    rounds = Round.objects.filter(version=version).select_related(
        "rubric_version__rubric", "version__evalset"
    )
    if number is not None:
        return rounds.filter(number=number).first()
    graded = rounds.filter(Exists(Annotation.objects.filter(round=OuterRef("pk"))), kind=Round.Kind.FIRST)
    imported = rounds.filter(kind=Round.Kind.IMPORTED)
    opened = rounds.filter(kind=Round.Kind.FIRST)
    for candidates in (graded, imported, opened):
        found = candidates.order_by("-number").first()
        if found:
            return found
    return None


def dimensions_of(round: Round | None) -> list[str]:
    """The dimensions that the round's rubric asks for or that somebody labelled; the two fixed ones first."""
    if round is None:
        return list(LABELS)
    of_rubric = [dimension.name for dimension in round.rubric_version.dimensions.all()]
    names = [*LABELS, *(name for name in of_rubric if name not in LABELS)]
    asked = set() if round.kind == Round.Kind.IMPORTED else set(of_rubric)
    labels = Annotation.objects.filter(round=round)
    return [name for name in names if name in asked or labels.filter(dimension=name).exists()]


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
    optional = optional_dimension(round, dimension)
    targets = targets_of(
        runs=scope.select_related("system").order_by("number"), dimension=dimension, optional=optional
    )
    graders = grader_columns(targets=targets, round=round) if round else ()
    gold, source, saw_judge, unseen = gold_columns(targets=targets, round=round, graders=graders)
    judge = judge_column(targets=targets, judge_run=judge_run) if judge_run else None
    table = Table(targets, graders, gold, source, saw_judge, judge, unseen)
    return _as_asked(table, version, round) if round else table


def column_said(
    *, version: EvalSetVersion, round: Round | None, dimension: str, source: str
) -> tuple[Targets, Column]:
    """What gold or grader:NAME says of all targets: as the whole table has it, and no more is looked up."""
    if round is None or round.kind == Round.Kind.SECOND_LOOK or _is_conditional(round, dimension):
        table = table_of(version=version, round=round, dimension=dimension)
        return table.targets, column_of(table, source)
    targets = targets_of(
        runs=round.runs.select_related("system").order_by("number"),
        dimension=dimension,
        optional=optional_dimension(round, dimension),
    )
    if source == "gold":
        return targets, _gold_alone(targets, round)
    found = grader_columns(targets=targets, round=round, name=source.removeprefix("grader:"))
    return targets, column_of(Table(targets, found), source)


def _is_conditional(round: Round, dimension: str) -> bool:
    return any(q.after for q in questions_of(round.rubric_version) if q.dimension == dimension)


def column_of(table: Table, source: str) -> Column:
    """The column of gold or of grader:NAME; of a grader who said nothing here, one without a label."""
    if source == "gold":
        assert table.gold is not None
        return table.gold
    name = source.removeprefix("grader:")
    found = [column for column in table.graders if column.name == name]
    return found[0] if found else nobody(table.targets, name, "grader", "not_assigned")


def optional_dimension(round: Round | None, dimension: str) -> Dimension | None:
    """The dimension's row in the round's rubric; None for the two whose labels are fixed."""
    if dimension in LABELS:
        return None
    if round is None:
        raise ValueError(f"without a round there is no rubric that asks for {dimension}")
    return round.rubric_version.dimensions.get(name=dimension)


def targets_of(*, runs: Iterable[SystemRun], dimension: str, optional: Dimension | None = None) -> Targets:
    """Everything in the runs that the dimension is about, one row each, in the order of the file."""
    runs = list(runs)
    contents = contents_of(runs)
    kind = optional.target if optional else RESPONSE if dimension == "abstention" else CLAIM
    rows = _ROWS[kind]([run.pk for run in runs], contents)
    return Targets(
        dimension,
        rows.target,
        contents.response[rows.at],
        contents.item[rows.at],
        contents.run[rows.at],
        rows.decision,
        rows.original,
        rows.leaf,
        contents.empty[rows.at] if kind in (RESPONSE, CLAIM) else _none(rows.target),
        run_names(runs),
        facts_of(contents, runs),
        passage=rows.passage if kind == CITATION else None,
        own_labels=optional.label_names if optional else (),
        own_unit=optional.target if optional else "",
    )


@dataclass(frozen=True)
class _Rows:
    """The targets of one kind, each with the row of its response."""

    target: Ints
    at: Ints
    decision: Mask
    original: Mask
    leaf: Mask
    passage: Ints | None = None


def _none(rows: Ints) -> Mask:
    return np.zeros(len(rows), dtype=bool)


def _whole(target: Ints, at: Ints, passage: Ints | None = None) -> _Rows:
    """Targets that nobody splits."""
    return _Rows(target, at, _none(target), ~_none(target), ~_none(target), passage)


def _response_rows(runs: list[int], contents: Contents) -> _Rows:
    return _whole(contents.response, np.arange(len(contents.response)))


def _claim_rows(runs: list[int], contents: Contents) -> _Rows:
    """The claims as they came, and among them the parts of those that were split."""
    parts = parts_that_count().filter(response__run__in=runs).order_by()
    part, of, parent, position, decision = int_columns(
        parts, "pk", "response_id", "parent_id", "position", IS_DECISION
    )
    target = np.concatenate([contents.claim, part])
    at = np.concatenate([contents.claim_at, row_of(contents.response, of)])
    flags = np.concatenate([contents.decision, decision.astype(bool)])
    original = np.arange(len(target)) < len(contents.claim)
    leaf = ~np.isin(target, parent) if len(part) else ~_none(target)
    if not len(part):
        return _Rows(target, at, flags, original, leaf)
    order = np.lexsort((target, np.concatenate([contents.claim_position, position]), at))
    return _Rows(target[order], at[order], flags[order], original[order], leaf[order])


def _passage_rows(runs: list[int], contents: Contents) -> _Rows:
    served = _served(runs)
    pairs = [(passage, response) for response, of in served.items() for passage in of.values()]
    target, response = _columns(pairs, 2)
    return _whole(target, row_of(contents.response, response))


def _citation_rows(runs: list[int], contents: Contents) -> _Rows:
    """What the claims cite as they came; of those that were split also what their parts do."""
    served = _served(runs)
    cited = _claims(runs).filter(withdrawal__isnull=True)
    of_claim = cited.values_list("pk", "response_id", "parent_id", "source_ids", "parent__source_ids")
    rows = [
        (claim, served[response][passage], response, parent or 0)
        for claim, response, parent, own, of_whole in of_claim
        for passage in dict.fromkeys(own or of_whole or ())
        if passage in served.get(response, ())
    ]
    target, passage, response, parent = _columns(rows, 4)
    at = row_of(contents.response, response)
    return _Rows(target, at, _none(target), parent == 0, ~np.isin(target, parent), passage)


def _columns(rows: list[tuple], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width).T


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


def _drawn_rows(targets: Targets, round: Round) -> Ints:
    drawn = SecondLookTarget.objects.filter(round=round, dimension=targets.dimension).order_by()
    rows = rows_of(targets, int_columns(drawn, *_key_of(targets)))
    return rows[rows >= 0]


def _rows_of_condition(targets: Targets, before: Targets, question: Question) -> Ints:
    """Of each target the row that decides whether it is asked."""
    if question.after_target == question.target:
        return rows_of(before, [targets.target, *([] if targets.passage is None else [targets.passage])])
    # of a citation its claim, of a passage its response
    return row_of(before.target, targets.target if question.after_target == CLAIM else targets.response)


def _condition_fails(column: Column, at: np.ndarray, before: Targets, question: Question) -> Mask:
    """Where this rater's label leads elsewhere, or was itself not asked for."""
    if not len(column.codes):
        return np.zeros(len(at), dtype=bool)
    leads = np.array([label in question.when for label in before.labels])
    codes, why = column.codes[at], column.why[at]
    elsewhere = (codes >= 0) & ~leads[codes]
    return (at >= 0) & (elsewhere | ((codes < 0) & (why == REASON_CODE["not_asked"])))


def rows_of(targets: Targets, keys: Sequence[Ints]) -> Ints:
    """The row of each target that is named by its ids; -1 where it is none of these."""
    if targets.passage is None:
        return row_of(targets.target, keys[0])
    claims, passages = np.unique(targets.target), np.unique(targets.passage)

    def number(claim: Ints, passage: Ints) -> Ints:
        at, among = row_of(claims, claim), row_of(passages, passage)
        return np.where((at >= 0) & (among >= 0), at * len(passages) + among, MISSING)

    return row_of(number(targets.target, targets.passage), number(keys[0], keys[1]))


def _grader() -> Small:
    return Small("grader_id", 1 + (Grader.objects.aggregate(last=Max("pk"))["last"] or 0))


def _key_of(targets: Targets) -> list[Coalesce]:
    return [Coalesce(field, 0) for field in KEY_FIELDS[targets.unit]]


def _placed(targets: Targets, rows: Ints, said: Ints) -> Ints:
    """Codes of labels at their rows; what is about none of the targets is left out."""
    codes = np.full(len(targets), MISSING, dtype=np.int64)
    ours = rows >= 0
    if (said[ours] >= len(targets.labels)).any():
        raise ValueError(f"{targets.dimension} has a label outside of its label set")
    codes[rows[ours]] = said[ours]
    return codes


def grader_columns(*, targets: Targets, round: Round, name: str | None = None) -> tuple[Column, ...]:
    """One column per grader of the round, in the order of their numbers; or that of the grader named."""
    only = {} if name is None else {"grader__name": name}
    labels = Annotation.objects.filter(round=round, dimension=targets.dimension, **only).order_by()
    *key, by, said = int_columns(labels, *_key_of(targets), _grader(), code_of("label", targets.labels))
    rows = rows_of(targets, key)
    assignments = Assignment.objects.filter(round=round, **only).order_by()
    response, assigned = int_columns(assignments, "response_id", _grader())
    graders = Grader.objects.filter(pk__in={*np.unique(by).tolist(), *np.unique(assigned).tolist()})
    imported = round.kind == Round.Kind.IMPORTED
    columns = []
    for grader in graders.order_by("number"):
        own = by == grader.pk
        theirs = None if imported else np.isin(targets.response, response[assigned == grader.pk])
        codes = _placed(targets, rows[own], said[own])
        columns.append(grader_column(grader.name, codes, targets, theirs))
    return tuple(columns)


def _gold_alone(targets: Targets, round: Round) -> Column:
    """Gold; labels are looked up only of the targets without it, to say why they have none."""
    settled = GoldLabel.objects.filter(round=round, dimension=targets.dimension).order_by()
    *key, said = int_columns(settled, *_key_of(targets), code_of("label", targets.labels))
    codes = _placed(targets, rows_of(targets, key), said)
    labels = Annotation.objects.filter(round=round, dimension=targets.dimension).order_by()
    open_ones = np.flatnonzero(codes < 0)
    if len(open_ones) <= LOOKED_UP:
        labels = labels.filter(Among("response_id", np.unique(targets.response[open_ones])))
    *key, by, said = int_columns(labels, *_key_of(targets), _grader(), code_of("label", targets.labels))
    rows = rows_of(targets, key)
    graders = [
        grader_column("", _placed(targets, rows[by == grader], said[by == grader]), targets, None)
        for grader in np.unique(by).tolist()
    ]
    return gold_column(codes, targets, graders)


def gold_columns(
    *, targets: Targets, round: Round | None, graders: tuple[Column, ...]
) -> tuple[Column, np.ndarray, np.ndarray, np.ndarray]:
    """Gold, where it came from, whether a verdict was in view when it was decided, and what held before."""
    seen = first_seen(round.version_id) if round else {}
    settled = GoldLabel.objects.filter(round=round, dimension=targets.dimension).order_by()
    *key, said, where_from = int_columns(
        settled,
        *_key_of(targets),
        code_of("label", targets.labels),
        code_of("source", GoldLabel.Source.values),
    )
    rows = rows_of(targets, key)
    codes = _placed(targets, rows, said)
    source = np.full(len(targets), "", dtype=object)
    source[rows[rows >= 0]] = np.array(GoldLabel.Source.values, dtype=object)[where_from[rows >= 0]]
    saw_judge = np.zeros(len(targets), dtype=bool)
    saw_judge[_rows_decided_after_a_look(targets, round, seen)] = True
    unseen = _gold_before_verdicts(targets, round, graders, saw_judge, seen)
    return gold_column(codes, targets, graders), source, saw_judge, unseen


def _rows_decided_after_a_look(targets: Targets, round: Round | None, seen: FirstSeen) -> Ints:
    """Where a verdict was in view for the decision, or whoever took it had seen verdicts."""
    in_view = Q(adjudication__judge_seen=True)
    for person, first in seen.items():
        in_view |= Q(adjudication__by=person, adjudication__at__gt=first)
    decided = GoldLabel.objects.filter(in_view, round=round, dimension=targets.dimension).order_by()
    rows = rows_of(targets, int_columns(decided, *_key_of(targets)))
    return rows[rows >= 0]


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
        (targets.labels.index(label), *(pk or 0 for pk in key))
        for label, by, at, taken_by, taken_at, *key in decided
        if not had_seen(seen, by, at) and (taken_at is None or had_seen(seen, taken_by, taken_at))
    ]
    said, *key = _columns(blind, 1 + len(KEY_FIELDS[targets.unit]))
    before = _placed(targets, rows_of(targets, key), said)
    return np.where(saw_judge & (before >= 0), before, unseen)


_WHY = {
    Verdict.State.VALID.value: 0,
    Verdict.State.FAILED.value: REASON_CODE["verdict_failed"],
    Verdict.State.PENDING.value: REASON_CODE["verdict_pending"],
    Verdict.State.CLAIMED.value: REASON_CODE["verdict_pending"],
}


def judge_column(*, targets: Targets, judge_run: JudgeRun) -> Column:
    """The first verdict on each target: what agreement is computed from. Where each target was asked about
    more than once, the verdicts of all runs stand beside it: what rates are computed from.
    """
    verdicts = Verdict.objects.filter(run=judge_run, dimension=targets.dimension).order_by()
    *key, index, state, label = int_columns(
        verdicts,
        *_key_of(targets),
        Small("run_index", MOST_RUNS),
        code_of("state", list(_WHY)),
        code_of("label", targets.labels),
    )
    rows = rows_of(targets, key)
    valid = state == list(_WHY).index(Verdict.State.VALID)
    runs = range(1, judge_run.repeats + 1)
    said = np.column_stack(
        [_placed(targets, rows[valid & (index == run)], label[valid & (index == run)]) for run in runs]
    )
    first = (rows >= 0) & (index == 1)
    why = np.full(len(targets), REASON_CODE["not_judged"], dtype=np.int8)
    why[rows[first]] = np.array(list(_WHY.values()), dtype=np.int8)[state[first]]
    why[targets.empty & (why == REASON_CODE["not_judged"])] = REASON_CODE["empty_response"]
    repeats = said if judge_run.repeats > 1 else None
    return Column(judge_run.judge.name, "judge", said[:, 0], why, repeats)
