"""Whole columns are joined to the same table that comes of joining row by row."""

import random
from dataclasses import fields

import numpy as np
import pytest
from django.contrib.auth import get_user_model
from django.db import transaction
from hypothesis import given, settings
from hypothesis import strategies as st

from annotate.models import Adjudication, Annotation, GoldLabel, Round, SecondLookTarget
from calibration import pairing
from calibration.columns import int_columns, json_columns
from calibration.contents import forget_contents
from calibration.models import Verdict
from calibration.sightings import note_sighting
from calibration.table import Column, Table, Targets, row_of
from evalsets.labels import LABELS
from evalsets.models import Claim, Response
from tests.calibration import plain_pairing
from tests.calibration.labelled import LabelledSet, an_adjudicator, judged, labelled_set, stored
from tests.calibration.test_optional_rates import asks, served

pytestmark = pytest.mark.django_db

TEXTS = ("An answer.", "An answer.", "", " " * 60, " " * 60 + "and then a word", "\u00a0")
OPTIONAL = ("context_relevance", "citation_recall", "citation_support")


class World:
    """A small set in which everything happens that a table has a column or a reason for."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        kind = self.random.choice([Round.Kind.FIRST, Round.Kind.FIRST, Round.Kind.IMPORTED])
        names = ("ada", "ben", "cleo")[: self.random.randint(0, 3)]
        self.labelled: LabelledSet = asks(labelled_set(graders=names, kind=kind), *OPTIONAL)
        self.verdicts: list[tuple] = []
        for name in ("one", "two")[: self.random.randint(1, 2)]:
            self.labelled.run(name)
        self.judge_run = judged(self.labelled, [], repeats=self.random.choice([1, 1, 3]))
        items = [self.labelled.item(f"i{n}", **self.about_item()) for n in range(2)]
        for run in self.labelled.runs:
            for n, item in enumerate(items):
                self.add_response(f"{run.system.name} {n}", run, item)
        Verdict.objects.bulk_create(Verdict(run=self.judge_run, **row) for row in self.verdicts)
        if self.random.random() < 0.5:
            self.labelled.freeze()

    def about_item(self) -> dict:
        reason = self.random.choice(["", "out_of_scope"])
        answerable = False if reason else self.random.choice([True, None])
        strata = {"topic": self.random.choice("ab")} if self.random.random() < 0.8 else {}
        return {"answerable": answerable, "unanswerable_reason": reason, "strata": strata}

    def add_response(self, name, run, item) -> None:
        chance = self.random
        if chance.random() < 0.2:
            note_sighting(run=self.judge_run, person=an_adjudicator())
        text = chance.choice(TEXTS)
        response = self.labelled.response(name, item, run, text=text, assigned=chance.random() < 0.8)
        self.say(response, None, None, "abstention")
        passages = served(response, "p1", "p2")[: chance.randint(0, 2)]
        for passage in passages:
            self.say(response, None, passage, "context_relevance")
        for _ in range(chance.randint(0, 3)):
            cited = chance.sample(["p1", "p2", "not served"], k=chance.randint(0, 2))
            claim = self.labelled.claim(
                response, source_ids=cited, decision=chance.choice([True, False, None])
            )
            self.say(response, claim, None, "grounding")
            self.say(response, claim, None, "citation_recall")
            for passage in passages:
                self.say(response, claim, passage, "citation_support")
            if chance.random() < 0.3:
                for _part in range(2):
                    part = self.labelled.claim(response, parent=claim)
                    self.say(response, part, None, "grounding", graded=False)

    def say(self, response, claim, passage, dimension, *, graded=True) -> None:
        labels = (
            LABELS.get(dimension) or pairing.optional_dimension(self.labelled.round, dimension).label_names
        )
        target = {"response": response, "claim": claim, "passage": passage, "dimension": dimension}
        chance = self.random
        for grader in self.labelled.graders if graded else ():
            if chance.random() < 0.7:
                said = {"grader": grader, "label": chance.choice(labels)}
                stored(Annotation, round=self.labelled.round, **said, **target)
        if chance.random() < 0.6:
            self.decide(target, labels)
        for index in range(1, self.judge_run.repeats + 1):
            state = chance.choice(["valid", "valid", "failed", "pending", "claimed", None])
            if state is None:
                continue
            self.verdicts.append(
                target
                | {
                    "run_index": index,
                    "state": state,
                    "label": chance.choice(labels) if state == "valid" else "",
                    "failure": "timeout" if state == "failed" else "",
                }
            )

    def decide(self, target, labels) -> None:
        chance, decision = self.random, None
        for _ in range(chance.randint(0, 2)):
            by = an_adjudicator() if chance.random() < 0.7 else self.another()
            common = target | {"round": self.labelled.round, "by": by}
            seen = chance.random() < 0.2
            decision = stored(
                Adjudication, label=chance.choice(labels), reason="other", judge_seen=seen, **common
            )
            if chance.random() < 0.3:
                stored(Adjudication, label=decision.label, reason="revoked", revokes=decision, **common)
        source = "adjudicated" if decision else chance.choice(["agreed", "single"])
        label = chance.choice(labels)
        fields = {"label": label, "source": source, "adjudication": decision}
        stored(GoldLabel, round=self.labelled.round, **fields, **target)

    @staticmethod
    def another():
        people = get_user_model().objects
        return people.filter(username="another").first() or people.create_user("another")

    def second_look(self) -> Round:
        """Some of it is drawn to be graded again."""
        second = Round.objects.create(
            version=self.labelled.version,
            number=2,
            kind=Round.Kind.SECOND_LOOK,
            second_look_of=self.labelled.round,
            rubric_version=self.labelled.round.rubric_version,
        )
        second.runs.set(self.labelled.runs)
        for claim in Claim.objects.filter(parent__isnull=True)[:3]:
            SecondLookTarget.objects.create(
                round=second, response=claim.response, claim=claim, dimension="grounding"
            )
        for grader in self.labelled.graders[:1]:
            for response in Response.objects.all()[:2]:
                second.assignments.create(response=response, grader=grader, slot=1, order=response.pk)
        return second


def assert_same(made, plain, where: str) -> None:
    """Every field of two tables, also what they hold inside."""
    assert type(made) is type(plain), where
    for field in fields(plain):
        one, other = getattr(made, field.name), getattr(plain, field.name)
        name = f"{where}.{field.name}"
        if isinstance(other, np.ndarray):
            assert isinstance(one, np.ndarray), name
            assert (one.dtype, one.tolist()) == (other.dtype, other.tolist()), name
        elif isinstance(other, Column) or field.name == "targets":
            assert_same(one, other, name)
        elif field.name == "graders":
            assert len(one) == len(other), name
            for a, b in zip(one, other, strict=True):
                assert_same(a, b, name)
        else:
            assert one == other, name
            assert not isinstance(other, dict) or list(one) == list(other), name


def assert_strata_of_items(targets: Targets) -> None:
    """The groups by stratum hold the targets of the items that have the value."""
    items: dict[tuple[str, str], set[int]] = {}
    for item, facts in targets.item_facts.items():
        for stratum in facts["strata"].items():
            items.setdefault(stratum, set()).add(item)
    wanted = [(*stratum, [item in of for item in targets.item]) for stratum, of in sorted(items.items())]
    assert [(g.name, g.value, g.mask.tolist()) for g in Table(targets).by_stratum()] == wanted
    assert targets.fact("reason") == [targets.item_facts[item]["reason"] for item in targets.item.tolist()]


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_columns_give_the_table_that_rows_give(seed):
    with transaction.atomic():
        forget_contents()
        world = World(seed)
        version = world.labelled.version
        for dimension in (*LABELS, *OPTIONAL):
            asked = {"version": version, "dimension": dimension, "judge_run": world.judge_run}
            for round in (world.labelled.round, None)[: 2 if dimension in LABELS else 1]:
                made, plain = (module.table_of(round=round, **asked) for module in (pairing, plain_pairing))
                assert_same(made, plain, dimension)
                assert_strata_of_items(made.targets)
                for source in ("gold", "grader:ada", "grader:cleo", "grader:nobody"):
                    targets, column = pairing.column_said(
                        version=version, round=round, dimension=dimension, source=source
                    )
                    assert_same(targets, plain.targets, source)
                    assert_same(column, pairing.column_of(plain, source), f"{dimension} {source}")
        second = world.second_look()
        asked = {"version": version, "round": second, "dimension": "grounding"}
        assert_same(pairing.table_of(**asked), plain_pairing.table_of(**asked), "second look")
        transaction.set_rollback(True)


def test_a_column_without_a_number_is_refused():
    labelled = labelled_set()
    labelled.claim(labelled.response("r"))
    with pytest.raises(ValueError, match="NULL"):
        int_columns(Claim.objects.all(), "pk", "parent_id")


def test_texts_and_lists_come_as_whole_columns():
    labelled = labelled_set()
    for name, expected in (('say "a", b\\ü', ['"', "\n"]), ("b", []), ("c", None)):
        labelled.item(name, expected_passages=expected)
    items = labelled.version.items.order_by("position")
    assert json_columns(items, "position", "item_id", "expected_passages", "reference_answer") == [
        [1, 2, 3],
        ['say "a", b\\ü', "b", "c"],
        [['"', "\n"], [], None],
        [None, None, None],
    ]
    assert json_columns(items.filter(position=9), "pk", "item_id") == [[], []]
    assert json_columns(items.none(), "pk", "item_id") == [[], []]


def test_no_rows_are_columns_without_numbers():
    for claims in (Claim.objects.all(), Claim.objects.filter(pk__in=[]), Claim.objects.none()):
        assert [column.tolist() for column in int_columns(claims, "pk", "response_id")] == [[], []]


def test_a_label_outside_of_its_set_is_not_passed_over():
    labelled = asks(labelled_set(), "refusal_informativeness")
    response = labelled.response("r")
    labelled.graders[0].annotations.create(
        round=labelled.round, response=response, dimension="refusal_informativeness", label="made up"
    )
    with pytest.raises(ValueError, match="outside of its label set"):
        pairing.table_of(version=labelled.version, round=labelled.round, dimension="refusal_informativeness")


@given(known=st.sets(st.integers(-5, 40)), wanted=st.lists(st.integers(-9, 50)))
def test_a_number_is_found_where_it_stands(known, wanted):
    known = list(known)
    found = row_of(np.array(known, dtype=np.int64), np.array(wanted, dtype=np.int64)).tolist()
    assert found == [known.index(number) if number in known else -1 for number in wanted]
