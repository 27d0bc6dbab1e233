"""The world: a frozen set, an open round, and what everybody but grader B does in it."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from unittest.mock import patch

from django.db import transaction
from django.utils import timezone

from annotate import services
from annotate.models import (
    Adjudication,
    Assignment,
    AuditedResponse,
    ClaimSplit,
    Flag,
    Grader,
    Round,
    RubricTask,
    WarmUpCase,
)
from annotate.queries import screen_of
from calibration.alerts import Words, raise_alert
from calibration.models import Judge, JudgeRun, Verdict
from calibration.reports import build_report
from evalsets.models import Claim, Item, Passage, Response
from tests.annotate.rich import open_rich
from tests.annotate.worlds import freeze_all, grader_of, make_version, response_of

GRADED = (2, 6)  # the responses, by position, with which B and the grading lead are done
# What somebody else said, planted as words that stand nowhere else
SAID = [
    "PEERNAME",
    "PEERNOTE",
    "PEERFLAG",
    "PEERSPLIT",
    "LEADNOTE",
    "LEADTASK",
    "AUDITNOTE",
    "OTHERROUND",
    "JUDGENAME",
    "JUDGEDETAIL",
    "JUDGERAW",
    "JUDGEMODEL",
    "ORIGINALLABEL",
    "IMPORTEDGRADER",
    "2031",  # the year in which the others do everything
]
# What would tell which system answered, or what the right answer is
TOLD = [
    "METAWORD",
    "SYSTEMNAME",
    "SYSTEMMODEL",
    "SYSTEMSETTING",
    "SYSTEMPROVIDER",
    "REFERENCEANSWER",
    "EXPECTEDDOCUMENT",
    "STRATUMWORD",
    "RESPONSEID",
    "ITEMID",
    "CLAIMID",
    "PASSAGEID",
    "QUERYWORD",
    "false_premise",
]
NOW, LATER = datetime(2026, 3, 3, 10, 0, tzinfo=UTC), datetime(2031, 5, 17, 7, 7, 7, tzinfo=UTC)


@contextmanager
def at(moment):
    with patch.object(timezone, "now", return_value=moment):
        yield


@contextmanager
def undone():
    """Whatever is written inside is taken back at the end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@dataclass
class World:
    round: Round
    a: object
    b: object
    both: object
    lead: object
    case: WarmUpCase | None = None
    ids: dict = field(default_factory=dict)

    @property
    def version(self):
        return self.round.version

    def grader(self, person) -> Grader:
        return grader_of(self.round, person)

    def assignments(self, person):
        return Assignment.objects.filter(round=self.round, grader=self.grader(person)).order_by("order")


def make_world(evalset, a, b, both, lead) -> World:
    """Both states share this: the set, an open round, what B and the grading lead have said so far."""
    with at(NOW):
        Grader.objects.create(evalset=evalset, name="PEERNAME", person=a, number=1)
        version = make_version(evalset, freeze=False)
        plant_content(version)
        freeze_all(version)
        round = open_rich(version, a, b, both)
        Round.objects.filter(pk=round.pk).update(warm_up=True)
        round.refresh_from_db()
        world = World(round, a, b, both, lead)
        for person in (b, both):
            for case in round.rubric_version.warm_up_cases.all():
                services.answer_warm_up(case=case, grader=world.grader(person), label=case.label)
            label(world, person, response_of(round, 2), None, "abstention", "REFUSED")
            for position in GRADED:
                finish(world, person, position)
            # The latest labels are of a response that nobody decides: they can be taken back in both states,
            # one by the page, one by the fragment.
            first = response_of(round, 1)
            label(world, person, first, None, "abstention", "ANSWERED")
            label(world, person, first, first.claims.get(position=1), "grounding", "supported")
        own = response_of(round, 1)
        services.flag(
            round=round, grader=world.grader(b), response=own, claim=own.claims.first(), note="my own flag"
        )
        start_judge(round)
        # The lead's own work: a grading lead may know of it, not what it says of what is theirs to grade.
        audit_everything(version, lead)
        imported_labels(version)
        another_round(version, lead)
    return world


def plant_content(version):
    """Before the version is frozen: everything about the items that is not for graders."""
    secret = {"original": {"label": "ORIGINALLABEL"}, "meta": {"x": "METAWORD"}}
    for item in Item.objects.filter(version=version):
        item.item_id = f"ITEMID-{item.position}"
        item.strata = {"type": "STRATUMWORD"}
        item.reference_answer = "REFERENCEANSWER"
        item.expected_documents = item.expected_passages = ["EXPECTEDDOCUMENT"]
        item.answerable, item.unanswerable_reason = False, "false_premise"
        item.extra = secret
        item.save()
    for response in Response.objects.filter(version=version):
        response.response_id = f"RESPONSEID-{response.position}"
        response.extra, response.retrieval_query = secret, "QUERYWORD"
        response.save()
        for passage in response.passages.all():
            passage.passage_id, passage.extra = f"PASSAGEID-{passage.rank}", secret
            passage.save()
    for claim in Claim.objects.filter(response__version=version):
        claim.claim_id, claim.extra, claim.source_ids = f"CLAIMID-{claim.pk}", secret, ["PASSAGEID-2"]
        claim.save()
    system = version.runs.get().system
    system.name, system.model, system.provider = "SYSTEMNAME", "SYSTEMMODEL", "SYSTEMPROVIDER"
    system.settings = {"x": "SYSTEMSETTING"}
    system.given = {"name": "SYSTEMNAME", "model": "SYSTEMMODEL", "settings": {"x": "SYSTEMSETTING"}}
    system.save()


def start_judge(round):
    """That a judge is at work is no secret from a lead who grades; what it says is."""
    version = round.version
    judge = Judge.objects.create(
        evalset=version.evalset, name="JUDGENAME", kind="openai", model="JUDGEMODEL", prompt_version="1"
    )
    run = JudgeRun.objects.create(
        judge=judge,
        version=version,
        number=1,
        state="complete",
        requested_fingerprint="f" * 64,
        dimensions=["grounding", "abstention"],
        rubric_version=round.rubric_version,
        finished_at=timezone.now(),
    )
    run.system_runs.set(version.runs.all())


def audit_everything(version, lead):
    """The planted note is of what graders have yet to grade; of the rest a grading lead may read."""
    sample = services.draw_audit(version=version, runs=list(version.runs.all()), size=9, seed=3, person=lead)
    for audited in AuditedResponse.objects.filter(sample=sample):
        for claim in audited.response.claims.all():
            services.mark_claim(audited=audited, claim=claim, mark="not_in_response")
        note = "nothing to add" if audited.response.position in GRADED else "AUDITNOTE"
        services.finish_audited(audited=audited, missing=1, note=note, person=lead)


def imported_labels(version):
    response = version.responses.get(position=2)
    services.record_imported_labels(
        version=version,
        runs=list(version.runs.all()),
        labels=[("IMPORTEDGRADER", response.pk, None, "abstention", "CLARIFY")],
    )


# Saying things


def label(world, person, response, claim, dimension, said, passage=None, **more):
    return services.annotate(
        round=world.round,
        grader=world.grader(person),
        response=response,
        claim=claim,
        passage=passage,
        dimension=dimension,
        label=said,
        **more,
    )


def finish(world, person, position, *, choose=0, **more):
    """Everything that is still asked of one response, with the first (or another) label of each dimension."""
    response = response_of(world.round, position)
    own = Assignment.objects.get(round=world.round, grader=world.grader(person), response=response)
    while own.state == Assignment.State.PENDING:
        target = screen_of(own).current
        names = target.dimension.label_names
        label(
            world,
            person,
            response,
            Claim.objects.get(pk=target.claim.pk) if target.claim else None,
            target.dimension.name,
            names[choose % len(names)],
            passage=Passage.objects.get(pk=target.passage.pk) if target.passage else None,
            **more,
        )
        own.refresh_from_db()


def others_do_everything(world):
    """The peer labels, flags and splits all; the lead decides, in this and another round; a judge answers."""
    with at(LATER):
        _peer_grades(world)
        _lead_decides(world)
        _fill_the_other_round(world)
        _judge_answers(world)
    world.ids = {
        "split": ClaimSplit.objects.filter(grader=world.grader(world.a)).first().pk,
        "decision": Adjudication.objects.filter(round=world.round).first().pk,
        "task": RubricTask.objects.first().pk,
        "flag": Flag.objects.filter(grader=world.grader(world.a)).first().pk,
    }


def warm_up(world, person):
    for case in world.round.rubric_version.warm_up_cases.all():
        labels = world.round.rubric_version.dimensions.get(name=case.dimension).label_names
        services.answer_warm_up(case=case, grader=world.grader(person), label=labels[-1])


def _peer_grades(world):
    grader = world.grader(world.a)
    warm_up(world, world.a)
    for own in world.assignments(world.a).select_related("response"):
        response = own.response
        finish(world, world.a, response.position, choose=1, note="PEERNOTE", evidence=[2], milliseconds=2031)
        services.flag(round=world.round, grader=grader, response=response, claim=None, note="PEERFLAG")
        for claim in response.claims.filter(parent=None):
            services.flag(round=world.round, grader=grader, response=response, claim=claim, note="PEERFLAG")
            services.propose_split(
                round=world.round, grader=grader, claim=claim, parts=["PEERSPLIT one", "two"]
            )


def _lead_decides(world):
    """Of what everybody has labelled: the responses with which B is done."""
    for position, claim in ((2, None), (6, response_of(world.round, 6).claims.get())):
        target = {
            "round": world.round,
            "response": response_of(world.round, position),
            "claim": claim,
            "dimension": "grounding" if claim else "abstention",
        }
        services.open_for_adjudication(**target, person=world.lead)
        decision = services.adjudicate(
            **target,
            label="contradicted" if claim else "CLARIFY",
            reason="guideline_gap",
            note="LEADNOTE",
            person=world.lead,
        )
    services.note_for_rubric(
        rubric=world.round.rubric_version.rubric, adjudication=decision, text="LEADTASK", person=world.lead
    )


def another_round(version, lead):
    """A round of somebody else over the very targets that B has yet to grade. That it exists is no secret."""
    alone = services.ensure_grader(evalset=version.evalset, name="OTHERROUND", person=None)
    round = Round.objects.create(
        version=version,
        number=version.rounds.count() + 1,
        rubric_version=services.rubric_v1(evalset=version.evalset),
        created_by=lead,
    )
    round.runs.set(version.runs.all())
    for position in (1, 4, 5):
        Assignment.objects.create(
            round=round, response=response_of(round, position), grader=alone, slot=1, order=position
        )
    services.close_round(round=round)


def _fill_the_other_round(world):
    """Gold and decisions about the very targets that B has yet to grade."""
    rounds = Round.objects.filter(assignments__grader__name="OTHERROUND")
    round = rounds.distinct().get()
    rounds.update(state="open")
    for assignment in round.assignments.select_related("response"):
        response = assignment.response
        for claim, dimension, said in [
            *((claim, "grounding", "unverifiable") for claim in response.claims.filter(parent=None)),
            (None, "abstention", "CLARIFY"),
        ]:
            target = {"response": response, "claim": claim, "dimension": dimension}
            services.annotate(round=round, grader=assignment.grader, label=said, note="OTHERROUND", **target)
            services.adjudicate(
                round=round, label=said, reason="other", note="OTHERROUND", person=world.lead, **target
            )
    rounds.update(state="closed")


def _judge_answers(world):
    run = JudgeRun.objects.get(judge__name="JUDGENAME")
    raise_alert(
        kind="stale",
        evalset=world.version.evalset,
        version=world.version,
        key="JUDGENAME",
        words=lambda: Words("JUDGENAME", "JUDGEDETAIL"),
    )
    for response in Response.objects.filter(version=world.version).exclude(text=""):
        for claim in [None, *response.claims.filter(parent=None)]:
            Verdict.objects.create(
                run=run,
                response=response,
                claim=claim,
                dimension="grounding" if claim else "abstention",
                state="valid",
                label="contradicted" if claim else "CLARIFY",
                raw_output="JUDGERAW",
                detail="JUDGEDETAIL",
            )
    build_report(judge_run=run, round=world.round, dimension="grounding", person=world.lead)
