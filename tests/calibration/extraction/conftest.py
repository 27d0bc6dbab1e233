import pytest

from annotate.models import Assignment, Grader, Round
from annotate.services import rubric_v1
from evalsets.models import Response, System, SystemRun
from tests.calibration.judges.conftest import judge, make_version, no_waiting, server

__all__ = ["judge", "no_waiting", "server"]

TEXTS = {
    1: "The ferry leaves at noon. Dogs travel free.",
    2: "Bicycles cost two crowns.",
    3: "I cannot find this in the sources.",
    4: " \n",
    5: "It came with a claim.",
}


def make_draft(evalset, texts=TEXTS):
    """A frozen version with one draft run: the last response came with a claim, the others with none."""
    version = make_version(evalset, responses=len(texts), systems=0)
    system = System.objects.create(evalset=evalset, fingerprint="1" * 64, name="system 1", family="alpaca")
    run = SystemRun.objects.create(version=version, system=system, number=1)
    Response.objects.bulk_create(
        Response(
            version=version,
            run=run,
            item=item,
            position=item.position,
            response_id=f"r{item.position}",
            text=texts[item.position],
        )
        for item in version.items.order_by("position")
    )
    return version


@pytest.fixture
def version(evalset):
    made = make_draft(evalset)
    last = made.responses.get(response_id="r5")
    last.claims.create(position=1, claim_id="own", text="It came with a claim.", extra={"meta": {"page": 3}})
    return made


@pytest.fixture
def run(version):
    """The draft system run."""
    return version.runs.get()


def claims_of(run):
    rows = run.responses.order_by("position")
    return {one.response_id: list(one.claims.values_list("text", flat=True)) for one in rows}


def let_grade(version, lead):
    """From now on the lead has an unfinished assignment in the version."""
    rubric = rubric_v1(evalset=version.evalset)
    round = Round.objects.create(version=version, number=1, rubric_version=rubric, state="open")
    grader = Grader.objects.create(evalset=version.evalset, name="lead", person=lead, number=1)
    response = version.responses.first()
    Assignment.objects.create(round=round, response=response, grader=grader, slot=1, order=1)
