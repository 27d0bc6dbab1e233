from collections import Counter
from collections.abc import Sequence

import pytest
from django.utils import timezone

from calibration import leases, work
from calibration.judges.asking import Outcome
from calibration.judges.parsing import Reading
from calibration.judges.prompts import DimensionText, LabelText, Prompt, Served, Target, build_prompt
from calibration.models import Verdict
from calibration.services import add_judge
from evalsets.labels import LABELS, TARGET_OF
from evalsets.models import (
    Claim,
    EvalSet,
    EvalSetVersion,
    Item,
    Passage,
    Response,
    State,
    System,
    SystemRun,
)
from tests.calibration.judges.fake_server import FakeServer


def freeze(row):
    row.state, row.content_hash, row.frozen_at = State.FROZEN, "c" * 64, timezone.now()
    row.save()


def make_version(
    evalset: EvalSet,
    *,
    responses: int = 3,
    claims: int = 2,
    systems: int = 1,
    number: int = 1,
    passages: int = 1,
    first_cites: Sequence[str] = (),
):
    """A frozen version: every response has passages, and claims of which the first repeats them."""
    version = EvalSetVersion.objects.create(evalset=evalset, number=number)
    items = Item.objects.bulk_create(
        Item(version=version, position=n, item_id=f"item-{n}", question=f"What about {n}?")
        for n in range(1, responses + 1)
    )
    for system_number in range(1, systems + 1):
        system, _made = System.objects.get_or_create(
            evalset=evalset,
            fingerprint=f"{system_number}" * 64,
            defaults={"name": f"system {system_number}", "model": "answerer-1", "family": "alpaca"},
        )
        run = SystemRun.objects.create(version=version, system=system, number=system_number)
        made = Response.objects.bulk_create(
            Response(
                version=version,
                run=run,
                item=item,
                position=item.position,
                response_id=f"r{system_number}-{item.position}",
                text=f"The ferry number {item.position} leaves at noon.",
            )
            for item in items
        )
        Passage.objects.bulk_create(
            Passage(response=r, rank=p, passage_id=f"p{p}", text=f"{r.text} Dogs travel free.")
            for r in made
            for p in range(1, passages + 1)
        )
        Claim.objects.bulk_create(
            Claim(
                response=r,
                position=c,
                claim_id=f"c{c}",
                text=r.text if c == 1 else f"Invented statement {c} on harbour taxes.",
                source_ids=list(first_cites) if c == 1 else [],
            )
            for r in made
            for c in range(1, claims + 1)
        )
        freeze(run)
    freeze(version)
    return version


def rubric(dimension: str) -> DimensionText:
    labels = tuple(LabelText(name, f"definition of {name}", ("an example",)) for name in LABELS[dimension])
    return DimensionText(dimension, f"question of {dimension}?", labels, target=TARGET_OF[dimension])


def prompt(dimension: str = "grounding", **changes) -> Prompt:
    """A prompt for the pure modules."""
    target = {
        "question": "When does the ferry leave?",
        "response": "The ferry leaves at noon.",
        "claim": "The ferry leaves at noon." if dimension == "grounding" else None,
        "passages": (Served("Ferries leave at noon.", "Timetable", "ferries.md"),),
    }
    return build_prompt(rubric(dimension), Target(**{**target, **changes}))


@pytest.fixture
def server():
    with FakeServer() as fake:
        yield fake


@pytest.fixture
def version(evalset):
    return make_version(evalset)


@pytest.fixture
def judge(version, server):
    """An LLM judge behind the fake server."""
    return add_judge(
        evalset=version.evalset,
        name="fake",
        model="judge-alias",
        base_url=server.url,
        provider="fake",
        family="camel",
        parameters={"temperature": 0},
    )


@pytest.fixture
def no_waiting(monkeypatch):
    """Back-offs of milliseconds."""
    monkeypatch.setattr(leases, "BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(leases, "LONGEST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(work, "LONGEST_PAUSE_SECONDS", 0.01)


def kinds_of(run):
    return Counter(run.verdicts.filter(state=Verdict.State.FAILED).values_list("failure", flat=True))


def states_of(run):
    return Counter(run.verdicts.values_list("state", flat=True))


def claim_one(run, verdict=None):
    """One verdict, as a worker takes it; None when there is none, or somebody else has it."""
    claimed = leases.claim_verdicts(run=run, verdicts=[verdict] if verdict else leases.due(run)[:1])
    return claimed[0] if claimed else None


def outcome(label="supported"):
    return Outcome(reading=Reading(label=label), raw_output="{}", resolved_model="m")
