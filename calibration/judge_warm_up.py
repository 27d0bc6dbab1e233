"""Known cases for a judge, before it costs money on the real set; they count for no calibration number.

The cases are those that graders warm up on. Each is a row: claimed under a lease before it is asked about, so
that of two workers one asks, and asked again when its worker has died.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from celery import current_app
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from kombu.exceptions import OperationalError as BrokerError

from annotate.models import RubricVersion, WarmUpCase
from calibration.judges.asking import judge_target
from calibration.judges.clients import CallFailed
from calibration.judges.material import setup_of
from calibration.judges.prompts import Prompt, Served, Target, build_prompt
from calibration.leases import storable
from calibration.models import Judge, JudgeRun, Verdict, WarmUpVerdict
from calibration.services import Refused, fingerprint_of, requested_of
from calibration.work import client_of

log = logging.getLogger(__name__)

KINDS = (Judge.Kind.OPENAI, Judge.Kind.LEXICAL, Judge.Kind.PHRASES)
CALLS_OF_A_CASE = 2  # a second one where the answer cannot be read
State = Verdict.State


@dataclass(frozen=True)
class WarmUp:
    """What a judge, as it would be asked today, said of the cases of a rubric version."""

    judge: Judge
    cases: Sequence[WarmUpCase]
    verdicts: Sequence[WarmUpVerdict]

    @property
    def waiting(self) -> int:
        return sum(verdict.state in (State.PENDING, State.CLAIMED) for verdict in self.verdicts)

    @property
    def failed(self) -> int:
        return sum(verdict.state == State.FAILED for verdict in self.verdicts)

    @property
    def right(self) -> int:
        return sum(verdict.is_right for verdict in self.verdicts)

    @property
    def is_done(self) -> bool:
        return bool(self.verdicts) and len(self.verdicts) == len(self.cases) and not self.waiting

    @property
    def calls_at_most(self) -> int:
        return CALLS_OF_A_CASE * len(self.cases)


def cases_for(judge: Judge, rubric_version: RubricVersion) -> list[WarmUpCase]:
    """The cases of the rubric version in the dimensions that a judge of this kind can be asked about."""
    cases = rubric_version.warm_up_cases.order_by("position")
    if judge.kind == Judge.Kind.LEXICAL:
        cases = cases.filter(dimension="grounding")
    if judge.kind == Judge.Kind.PHRASES:
        cases = cases.filter(dimension="abstention")
    return list(cases) if judge.kind in KINDS else []


def warm_up_of(judge: Judge, rubric_version: RubricVersion) -> WarmUp:
    cases = cases_for(judge, rubric_version)
    fingerprint = fingerprint_of(requested_of(judge, rubric_version)) if cases else ""
    verdicts = WarmUpVerdict.objects.filter(judge=judge, case__in=cases, fingerprint=fingerprint)
    return WarmUp(judge, cases, list(verdicts.select_related("case").order_by("case__position")))


def needs_warm_up(judge: Judge, rubric_version: RubricVersion) -> bool:
    """Whether an LLM judge, as it would be asked today, has neither run nor seen all known cases."""
    if judge.kind != Judge.Kind.OPENAI:
        return False
    fingerprint = fingerprint_of(requested_of(judge, rubric_version))
    if judge.runs.filter(requested_fingerprint=fingerprint).exists():
        return False
    found = warm_up_of(judge, rubric_version)
    return bool(found.cases) and not found.is_done


@transaction.atomic
def start_warm_up(*, judge: Judge, rubric_version: RubricVersion, person=None, again: bool = False) -> int:
    """Ask about every case that has not been asked about, with `again` also what failed; how many that is."""
    cases = cases_for(judge, rubric_version)
    if not cases:
        raise Refused(_("There is no known case for {judge} in this rubric.").format(judge=judge))
    fingerprint = fingerprint_of(requested_of(judge, rubric_version))
    Judge.objects.select_for_update().get(pk=judge.pk)
    rows = WarmUpVerdict.objects.filter(judge=judge, case__in=cases, fingerprint=fingerprint)
    known = set(rows.values_list("case", flat=True))
    made = WarmUpVerdict.objects.bulk_create(
        WarmUpVerdict(judge=judge, case=case, fingerprint=fingerprint, asked_by=person)
        for case in cases
        if case.pk not in known
    )
    failed = rows.filter(state=State.FAILED) if again else rows.none()
    retried = failed.update(state=State.PENDING, failure="", detail="", raw_output="")
    if made or retried:
        transaction.on_commit(_ring)
    return len(made) + retried


def _ring() -> None:
    """With the broker down the clock finds the rows later."""
    try:
        current_app.send_task("calibration.tasks.warm_up_judges", expires=60, retry=False)
    except (BrokerError, OSError) as error:
        log.warning("could not ring for a warm-up: %s", error)


def ask_waiting() -> int:
    """Ask about every case that waits; how many were settled here. Any number of workers may do this."""
    waiting = list(_waiting().order_by("pk").values_list("pk", flat=True))
    return sum(_ask(pk) for pk in waiting)


def _waiting():
    lost = Q(state=State.CLAIMED, lease_until__lte=timezone.now())
    return WarmUpVerdict.objects.filter(Q(state=State.PENDING) | lost)


def _ask(pk: int) -> bool:
    token, now = uuid4(), timezone.now()
    until = now + timedelta(seconds=settings.JUDGE_LEASE_SECONDS)
    if not _waiting().filter(pk=pk).update(state=State.CLAIMED, claim_token=token, lease_until=until):
        return False
    row = WarmUpVerdict.objects.select_related("judge__evalset", "case__rubric_version__rubric").get(pk=pk)
    changes = _answer_to(row)
    held = WarmUpVerdict.objects.filter(pk=pk, claim_token=token, state=State.CLAIMED)
    return bool(held.update(claim_token=None, lease_until=None, **changes))


def _answer_to(row: WarmUpVerdict) -> dict:
    judge, rubric_version = row.judge, row.case.rubric_version
    client = client_of(JudgeRun(judge=judge, requested=requested_of(judge, rubric_version)))
    try:
        outcome = judge_target(client, prompt_of_case(row), timeout=settings.JUDGE_TIMEOUT_SECONDS)
    except CallFailed as failed:
        return {"state": State.FAILED, "failure": failed.kind, "detail": storable(failed.detail)}
    except Exception as error:
        log.exception("a known case could not be judged")
        kind = Verdict.Failure.INTERNAL
        return {"state": State.FAILED, "failure": kind, "detail": f"{type(error).__name__}: {error}"}
    finally:
        client.close()
    reading = outcome.reading
    return {
        "state": State.FAILED if reading.failure else State.VALID,
        "label": reading.label,
        "failure": reading.failure,
        "detail": storable(reading.detail),
        "raw_output": storable(outcome.raw_output),
        "prompt_tokens": outcome.prompt_tokens,
        "completion_tokens": outcome.completion_tokens,
    }


def prompt_of_case(row: WarmUpVerdict) -> Prompt:
    """As for a target of the set: the same rubric, wording and fences."""
    setup, case = setup_of(row.judge, row.case.rubric_version), row.case
    target = Target(
        question=case.question or None,
        response=case.response,
        claim=case.claim or None,
        passages=tuple(Served(text, "", "") for text in case.passages),
    )
    return build_prompt(setup.rubric[case.dimension], target, setup.wording)


def warning_about(judge: Judge) -> str:
    """In one sentence, that a judge called known answers refusals: what it would do with every hedge."""
    latest = WarmUpVerdict.objects.filter(judge=judge).order_by("-pk").first()
    if latest is None:
        return ""
    said = WarmUpVerdict.objects.filter(
        judge=judge, fingerprint=latest.fingerprint, state=State.VALID, case__label="ANSWERED"
    )
    refused, n = said.filter(label="REFUSED").count(), said.count()
    if not refused:
        return ""
    return ngettext(
        "On known cases {judge} called {refused} of {n} hedged, partial or advising answer a refusal: "
        "its refusal rates would be too high.",
        "On known cases {judge} called {refused} of {n} hedged, partial or advising answers refusals: "
        "its refusal rates would be too high.",
        n,
    ).format(judge=judge, refused=refused, n=n)
