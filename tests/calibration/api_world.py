"""A set with something at every address of the API, made once for the tests of a module."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from django.contrib.auth import get_user_model

from annotate import rubric_text, services
from annotate.models import Assignment, ClaimSplit
from calibration.alerts import Words, raise_alert
from calibration.extraction_runs import start_extraction
from calibration.models import Judge, JudgeRun
from calibration.reports import build_report
from calibration.summaries import build_summary
from calibration.watches import add_mark, open_watch
from evalsets.models import Membership, SystemRun
from tests.calibration.labelled import LabelledSet, judged, labelled_set, settled
from tests.calibration.test_report import as_now

V = "/evalsets/api/versions/1"
LABELS = ("supported", "contradicted", "unsupported")


@dataclass
class World:
    labelled: LabelledSet
    run: JudgeRun  # of a judge that says what people say, and is trusted for it
    lead: Any
    grader: Any
    stranger: Any

    @property
    def version(self):
        return self.labelled.version

    @property
    def evalset(self):
        return self.version.evalset

    def let_the_lead_grade(self):
        """From here on the lead has something to grade."""
        Membership.objects.create(person=self.lead, evalset=self.evalset, role="grader")
        grader = is_person(self.labelled.graders[1], self.lead)
        Assignment.objects.filter(grader=grader).update(state="pending")


def two_systems_with_gold() -> LabelledSet:
    """Twenty items, answered by two systems: three claims each, and what people say of all of it."""
    labelled = labelled_set("api")
    define(labelled)
    runs = [labelled.run(name, content_hash="") for name in ("small", "large")]
    for number in range(20):
        item = labelled.item(
            f"i{number}",
            strata={"language": "en" if number % 2 else "de"},
            answerable=number % 4 != 0,
            unanswerable_reason="" if number % 4 else "out_of_scope",
            expected_passages=[f"p{number}"],
        )
        for place, run in enumerate(runs):
            response = labelled.response(f"r{number}-{place}", item=item, run=run)
            response.passages.create(rank=1, passage_id=f"p{number}" if number % 3 else "other", text="Noon.")
            for said in LABELS[: 2 + place]:
                labelled.claim(response, said, said)
            said = "REFUSED" if (number + place) % 4 == 0 else "ANSWERED"
            labelled.verdict_on_response(response, said, said)
    labelled.freeze()
    return labelled


def is_person(grader, person):
    grader.person = person
    grader.save()
    return grader


def define(labelled):
    defined = {entry["name"]: entry["labels"] for entry in rubric_text.DIMENSIONS}
    for dimension in labelled.round.rubric_version.dimensions.all():
        dimension.labels = defined[dimension.name]
        dimension.save()


def make_world() -> World:
    labelled = two_systems_with_gold()
    people = [get_user_model().objects.create_user(name) for name in ("lena", "gus", "sid")]
    for person, role in zip(people, ("lead", "grader"), strict=False):
        Membership.objects.create(person=person, evalset=labelled.version.evalset, role=role)
    run = as_now(judged(labelled, [(row.response, row.claim, row.label) for row in settled(labelled)]))
    report = build_report(judge_run=run, round=labelled.round, dimension="grounding")
    assert report.gate_state == "TRUSTED", report.payload["gate"]["sentence"]
    return World(labelled, run, *people)


def furnish(world: World) -> None:
    """A page, a watch with a mark, an alert, a second look and an extraction of a draft, all numbered 1."""
    version, lead = world.version, world.lead
    watch = open_watch(version=version, name="production", judge=world.run.judge, person=lead)
    add_mark(watch=watch, date=date(2026, 3, 1), text="deploy", person=lead)
    words = Words("judge-a", "why")
    raise_alert(kind="stale", evalset=world.evalset, version=version, key="k", words=lambda: words)
    again = is_person(world.labelled.graders[0], world.grader)
    services.draw_second_look(round=world.labelled.round, graders=[again], n=3, seed=7, person=lead)
    extract_from_a_draft(world)
    build_summary(version=version, round=world.labelled.round, person=lead)


def extract_from_a_draft(world: World) -> JudgeRun:
    """An extraction that is stopped before it asks anybody."""
    frozen = world.labelled.runs[0]
    draft = SystemRun.objects.create(version=world.version, system=frozen.system, number=3)
    item = world.version.items.first()
    draft.responses.create(version=world.version, item=item, position=900, response_id="draft", text="Noon.")
    judge = Judge.objects.create(evalset=world.evalset, name="llm", kind="openai", model="m")
    return start_extraction(judge=judge, version=world.version, system_runs=[draft], person=world.lead)


def leave_to_decide(world: World) -> None:
    """A proposed split, a note for the rubric and a sample of the claim audit: one of each."""
    round, lead = world.labelled.round, world.lead
    claim = round.annotations.filter(claim__isnull=False).order_by("pk").first().claim
    ClaimSplit.objects.create(round=round, claim=claim, parts=["one", "other"])
    services.note_for_rubric(rubric=round.rubric_version.rubric, text="Say it.", person=lead)
    services.draw_audit(version=world.version, runs=world.labelled.runs, size=3, seed=7, person=lead)
