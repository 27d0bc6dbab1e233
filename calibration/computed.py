"""Judges that call nobody: those that learn from people's labels, and panels of other judges.

Their verdicts follow from rows that are there already, so one worker fills a whole run.
"""

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db import DatabaseError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import RubricVersion
from calibration.judges import panel, trained
from calibration.models import Judge, JudgeRun, Verdict
from calibration.pairing import chosen_round, table_of
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion, SystemRun

LEARNING = frozenset({Judge.Kind.TRAINED, Judge.Kind.MAJORITY})
KINDS = LEARNING | {Judge.Kind.PANEL}
BATCH = 200
LEASE_SECONDS = 600  # whoever has not written by then has died, and another one begins anew

log = logging.getLogger(__name__)

State = Verdict.State
Outcome = dict[str, Any]  # the fields of a verdict
Labels = Mapping[int, str]  # target -> what people say


class NotComputable(Exception):
    """A run of this judge cannot be started; the message is a sentence for the person who asked."""


# Before a run


def members_of(judge: Judge) -> list[Judge]:
    """The judges of a panel, in the order of their names; of any other judge none."""
    if judge.kind != Judge.Kind.PANEL:
        return []
    return list(
        Judge.objects.filter(evalset=judge.evalset, name__in=judge.parameters["members"]).order_by("name")
    )


def prepared(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    dimensions: Sequence[str],
    rubric_version: RubricVersion,
) -> dict[str, Any]:
    """What a run of the judge will rest on, kept with it: a panel's runs. Refuses where there is nothing."""
    if judge.kind in LEARNING:
        for dimension in dimensions:
            if not human_labels(version, dimension):
                raise NotComputable(
                    _("{judge} learns from people, and nobody has labelled {dimension} here yet.").format(
                        judge=judge, dimension=dimension
                    )
                )
    if judge.kind != Judge.Kind.PANEL:
        return {}
    members = [
        _run_of_member(member, version, system_runs, dimensions, rubric_version)
        for member in members_of(judge)
    ]
    return {"member_runs": [run.number for run in members]}


def _run_of_member(
    member: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    dimensions: Sequence[str],
    rubric_version: RubricVersion,
) -> JudgeRun:
    """The latest complete run that covers what the panel is asked; imported verdicts have no rubric."""
    wanted = {run.pk for run in system_runs}
    for run in member.runs.whole().filter(version=version, state=JudgeRun.State.COMPLETE).order_by("-number"):
        covered = wanted <= set(run.system_runs.values_list("pk", flat=True))
        same_rubric = run.origin == JudgeRun.Origin.IMPORTED or run.rubric_version_id == rubric_version.pk
        if covered and same_rubric and set(dimensions) <= set(run.dimensions):
            return run
    raise NotComputable(
        _(
            "{judge} has no complete run over these system runs, in these dimensions and under the rubric "
            "{rubric}: run it first, then the panel."
        ).format(judge=member, rubric=rubric_version)
    )


def human_labels(version: EvalSetVersion, dimension: str) -> dict[int, str]:
    """What people say of each target: gold that no verdict influenced, else the first grader's label."""
    round = chosen_round(version=version)
    if round is None:
        return {}
    table = table_of(version=version, round=round, dimension=dimension).leaves()
    gold, first = table.blind_gold().codes, table.first_labels()
    said = [code if code >= 0 else other for code, other in zip(gold.tolist(), first.tolist(), strict=True)]
    labels = table.targets.labels
    return {
        target: labels[code]
        for target, code in zip(table.targets.target.tolist(), said, strict=True)
        if code >= 0
    }


# The run itself


def compute(*, run: JudgeRun) -> int:
    """Fill what is pending in the run; how many. A second worker finds nothing pending and leaves it alone.

    The work is done outside of any transaction, and written row by row under the token of the claim.
    """
    token = uuid4()
    waiting = _claimed(run, token)
    for dimension in run.dimensions:
        asked = [verdict for verdict in waiting if verdict.dimension == dimension]
        outcomes = _outcomes(run, dimension, asked) if asked else []
        for start in range(0, len(asked), BATCH):
            part = slice(start, start + BATCH)
            _record(token, zip(asked[part], outcomes[part], strict=True))
    return len(waiting)


def _claimed(run: JudgeRun, token: UUID) -> list[Verdict]:
    now = timezone.now()
    run.verdicts.filter(state=State.PENDING).update(
        state=State.CLAIMED,
        claim_token=token,
        lease_until=now + timedelta(seconds=LEASE_SECONDS),
        attempts=F("attempts") + 1,
        updated_at=now,
    )
    return list(run.verdicts.filter(claim_token=token).order_by("pk"))


def _outcomes(run: JudgeRun, dimension: str, verdicts: list[Verdict]) -> list[Outcome]:
    say = _say_panel if run.judge.kind == Judge.Kind.PANEL else _say_learnt
    try:
        return say(run, dimension, verdicts)
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("judge run %s cannot be computed", run.pk)
        detail = f"{type(error).__name__}: {error}"
        return [
            _failed(Verdict.Failure.INTERNAL, detail=detail, model="", parameters={}) for _one in verdicts
        ]


@transaction.atomic
def _record(token: UUID, outcomes: Iterable[tuple[Verdict, Outcome]]) -> None:
    free = {"claim_token": None, "lease_until": None, "updated_at": timezone.now()}
    for verdict, outcome in outcomes:
        held = Verdict.objects.filter(pk=verdict.pk, state=State.CLAIMED, claim_token=token)
        held.update(**free, **outcome)


def _valid(label: str, *, detail: str, reason: str, model: str, parameters: Outcome) -> Outcome:
    return {
        "state": State.VALID,
        "label": label,
        "failure": "",
        "detail": detail,
        "raw_output": json.dumps({"reason": reason, "label": label}, ensure_ascii=False),
        "resolved_model": model,
        "effective_parameters": parameters,
        "milliseconds": 0,
    }


def _failed(failure: str, *, detail: str, model: str, parameters: Outcome) -> Outcome:
    return {
        "state": State.FAILED,
        "label": "",
        "failure": failure,
        "detail": detail,
        "raw_output": "",
        "resolved_model": model,
        "effective_parameters": parameters,
        "milliseconds": 0,
    }


def _say_learnt(run: JudgeRun, dimension: str, verdicts: list[Verdict]) -> list[Outcome]:
    said = human_labels(run.version, dimension)
    everything = list(_with_texts(run.verdicts.filter(dimension=dimension, run_index=1)))
    targets = [verdict.claim_id or verdict.response_id for verdict in everything]
    labels = [said.get(target) for target in targets]
    items = [verdict.response.item.item_id for verdict in everything]
    seed = int(run.judge.parameters.get("seed", 0))
    if run.judge.kind == Judge.Kind.TRAINED:
        version = trained.TRAINED_VERSION
        guesses = trained.cross_fitted(
            [_text_of(verdict) for verdict in everything], labels, items, seed=seed
        )
    else:
        version = trained.MAJORITY_VERSION
        guesses = trained.majority_labels(labels, items, order=LABELS[dimension], seed=seed)
    learnt = hashlib.sha256(json.dumps(sorted(said.items())).encode()).hexdigest()[:8]
    model = f"{version}, labels {learnt}"
    parameters = {"folds": trained.FOLDS, "seed": seed}
    guessed = dict(zip(targets, guesses, strict=True))
    return [_learnt(guessed[v.claim_id or v.response_id], model, parameters) for v in verdicts]


def _with_texts(verdicts: QuerySet[Verdict]) -> QuerySet[Verdict]:
    found = verdicts.select_related("response__item", "claim").prefetch_related("response__passages")
    return found.order_by("pk")


def _learnt(guess: trained.Guess | None, model: str, parameters: Outcome) -> Outcome:
    if guess is None:
        detail = "the items of the other folds have no human label to learn from"
        return _failed(Verdict.Failure.INTERNAL, detail=detail, model=model, parameters=parameters)
    reason = f"learnt from {guess.learnt_from} labels of other items; share {guess.share:.2f}"
    known = parameters | {"learnt_from": guess.learnt_from}
    return _valid(guess.label, detail="", reason=reason, model=model, parameters=known)


def _text_of(verdict: Verdict) -> trained.Text:
    response = verdict.response
    return trained.Text(
        text=verdict.claim.text if verdict.claim else response.text,
        question=response.item.question or "",
        passages=tuple(passage.text for passage in response.passages.all()),
    )


def _say_panel(run: JudgeRun, dimension: str, verdicts: list[Verdict]) -> list[Outcome]:
    members = list(
        JudgeRun.objects.filter(version=run.version, number__in=run.requested["member_runs"])
        .select_related("judge")
        .order_by("judge__name")
    )
    said: dict[str, dict[int, list[str]]] = {}
    models: set[str] = set()
    for member in members:
        own = said.setdefault(member.judge.name, {})
        rows = member.verdicts.filter(dimension=dimension, state=State.VALID).order_by("run_index")
        for claim, response, label, model in rows.values_list(
            "claim_id", "response_id", "label", "resolved_model"
        ):
            own.setdefault(claim or response, []).append(label)
            models.add(model)
    resolved = f"{panel.VERSION}: {', '.join(sorted(models - {''})) or 'imported'}"[:300]
    rule = run.judge.parameters["rule"]
    return [
        _of_panel(
            {name: own.get(verdict.claim_id or verdict.response_id, []) for name, own in said.items()},
            rule,
            dimension,
            resolved,
        )
        for verdict in verdicts
    ]


def _of_panel(votes: Mapping[str, list[str]], rule: str, dimension: str, model: str) -> Outcome:
    says = panel.panel_says(votes, rule=rule, labels=LABELS[dimension])
    parameters = {"rule": rule, "votes": dict(votes)}
    if says.failure:
        return _failed(says.failure, detail=says.detail, model=model, parameters=parameters)
    return _valid(says.label, detail="", reason=says.detail, model=model, parameters=parameters)
