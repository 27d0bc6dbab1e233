"""Small labelled eval sets, written straight into the tables: fast, and without the import in between."""

import json
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from django.contrib.auth import get_user_model
from django.utils import timezone

from annotate.models import (
    Adjudication,
    Annotation,
    Assignment,
    GoldLabel,
    Grader,
    Round,
    Rubric,
    RubricVersion,
)
from calibration.models import Judge, JudgeRun, Verdict
from evalsets.labels import GROUNDING
from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Response, System, SystemRun
from evalsets.prepared import PreparedInsert

insert_of = cache(PreparedInsert)


def stored(model, **fields):
    """As `objects.create`; a set has a thousand rows, and Django would write their SQL a thousand times."""
    made = model(**fields)
    given = {model._meta.get_field(name).attname for name in fields}
    made.pk = insert_of(model)(**{name: getattr(made, name) for name in given})
    made._state.adding = False
    return made


@dataclass
class LabelledSet:
    version: EvalSetVersion
    round: Round
    graders: list[Grader]
    runs: list[SystemRun] = field(default_factory=list)
    placed: dict[tuple, int] = field(default_factory=dict)  # how many rows of a kind a row has

    def next_place(self, rows):
        """The position of one more among the related rows."""
        within = type(rows.instance), rows.instance.pk
        self.placed[within] = (self.placed[within] if within in self.placed else rows.count()) + 1
        return self.placed[within]

    def run(self, name="sys", **fields):
        system = System.objects.create(
            evalset=self.version.evalset, name=name, model=name, fingerprint=f"system {name}"
        )
        made = SystemRun.objects.create(
            version=self.version, system=system, number=len(self.runs) + 1, **fields
        )
        self.runs.append(made)
        self.round.runs.add(made)
        return made

    def item(self, name, **fields):
        position = self.next_place(self.version.items)
        return stored(
            Item,
            version=self.version,
            item_id=name,
            position=position,
            question=f"question {name}",
            **fields,
        )

    def response(self, name, item=None, run=None, text="An answer.", assigned=True, **fields):
        run = run or (self.runs[0] if self.runs else self.run())
        response = stored(
            Response,
            version=self.version,
            run=run,
            item=item or self.item(name),
            response_id=name,
            position=self.next_place(run.responses),
            text=text,
            **fields,
        )
        self.placed[Response, response.pk] = 0
        if assigned and self.round.kind != Round.Kind.IMPORTED:
            for slot, grader in enumerate(self.graders, 1):
                stored(
                    Assignment,
                    round=self.round,
                    response=response,
                    grader=grader,
                    slot=slot,
                    order=response.pk,
                    state=Assignment.State.DONE,
                )
        return response

    def claim(self, response, *labels, gold=None, **fields):
        """A claim with one label per grader (None: not labelled), gold settled as the services would."""
        number = self.next_place(response.claims)
        claim = stored(
            Claim,
            response=response,
            claim_id=f"c{number}",
            position=number,
            text=f"claim {number}",
            **fields,
        )
        self.label(response, claim, "grounding", labels, gold)
        return claim

    def verdict_on_response(self, response, *labels, gold=None):
        self.label(response, None, "abstention", labels, gold)

    def label(self, response, claim, dimension, labels, gold=None):
        target = {"response": response, "claim": claim, "dimension": dimension}
        for grader, label in zip(self.graders, labels, strict=False):
            if label:
                stored(Annotation, round=self.round, grader=grader, label=label, **target)
        given = [label for label in labels if label]
        if gold or (given and len(given) == len(labels) and len(set(given)) == 1):
            self.settle(target, given, gold)

    def settle(self, target, given, gold):
        adjudication = None
        source = "agreed" if len(given) > 1 else "single"
        if gold:
            source = "adjudicated"
            adjudication = stored(
                Adjudication,
                round=self.round,
                label=gold,
                reason="edge_case",
                note="why",
                by=self.adjudicator,
                **target,
            )
        stored(
            GoldLabel,
            round=self.round,
            label=gold or given[0],
            source=source,
            adjudication=adjudication,
            **target,
        )

    @cached_property
    def adjudicator(self) -> Any:
        return an_adjudicator()

    def freeze(self):
        """Closes what a frozen set has closed; the hashes only have to be there."""
        SystemRun.objects.filter(version=self.version).update(
            state="frozen", content_hash="a" * 64, frozen_at=timezone.now()
        )
        EvalSetVersion.objects.filter(pk=self.version.pk).update(
            state="frozen", content_hash="b" * 64, frozen_at=timezone.now()
        )
        self.version.refresh_from_db()


def an_adjudicator():
    people = get_user_model().objects
    return people.filter(username="adjudicator").first() or people.create_user("adjudicator")


def labelled_set(slug="set", graders=("ada", "ben"), kind=Round.Kind.FIRST, evalset=None):
    evalset = evalset or EvalSet.objects.create(slug=slug, name=slug.title())
    version = EvalSetVersion.objects.create(evalset=evalset, number=1)
    rubric = Rubric.objects.create(evalset=evalset, name="rubric", is_imported=kind == Round.Kind.IMPORTED)
    rubric_version = RubricVersion.objects.create(rubric=rubric, number=1, sha256="c" * 64)
    for position, (name, target) in enumerate((("grounding", "claim"), ("abstention", "response")), 1):
        rubric_version.dimensions.create(
            name=name, target=target, question=f"{name}?", labels=[], position=position
        )
    round = Round.objects.create(version=version, number=1, kind=kind, rubric_version=rubric_version)
    people = [
        Grader.objects.create(evalset=evalset, name=name, number=number)
        for number, name in enumerate(graders, 1)
    ]
    return LabelledSet(version, round, people)


def judged(labelled, verdicts, *, name="judge-a", dimension="grounding", origin="run", **fields):
    """A complete judge run with the given verdicts: (response, claim or None, label or failure kind).

    With `repeats` the last is a tuple, one of them a run.
    """
    kind = Judge.Kind.IMPORTED if origin == "imported" else Judge.Kind.OPENAI
    judge = Judge.objects.create(evalset=labelled.version.evalset, name=name, kind=kind, model="model-x")
    run = JudgeRun.objects.create(
        judge=judge,
        version=labelled.version,
        number=labelled.version.judge_runs.count() + 1,
        origin=origin,
        state=JudgeRun.State.COMPLETE,
        rubric_version=labelled.round.rubric_version,
        dimensions=[dimension],
        requested={} if origin == "imported" else {"model": "model-x"},
        requested_fingerprint="" if origin == "imported" else "d" * 64,
        **fields,
    )
    run.system_runs.set(labelled.runs)
    Verdict.objects.bulk_create(
        Verdict(
            run=run,
            response=response,
            claim=claim,
            dimension=dimension,
            run_index=index,
            resolved_model="" if origin == "imported" else "model-x-2026",
            **({"state": "failed", "failure": one} if one in Verdict.Failure.values else {}),
            **({"state": "valid", "label": one} if one not in Verdict.Failure.values else {}),
        )
        for response, claim, said in verdicts
        for index, one in enumerate(said if isinstance(said, tuple) else (said,), 1)
    )
    return run


def settled(labelled, dimension="grounding"):
    """The gold labels as they were made, each with what it is about."""
    rows = labelled.round.gold.filter(dimension=dimension)
    return rows.select_related("response", "claim").order_by("pk")


def from_codes(rows, *, slug="set", origin="run", gold_from_graders=False):
    """A set and its judge run from (response, grader 1, grader 2, judge) codes."""
    labelled = labelled_set(slug)
    responses, verdicts = {}, []
    for name, first, second, judge in rows:
        response = responses.get(name) or labelled.response(f"r{name}")
        responses[name] = response
        gold = GROUNDING[first] if gold_from_graders and first != second else None
        claim = labelled.claim(response, GROUNDING[first], GROUNDING[second], gold=gold)
        verdicts.append((response, claim, GROUNDING[judge]))
    return labelled, judged(labelled, verdicts, origin=origin)


def records(path):
    """The records of a file of a gold export."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
