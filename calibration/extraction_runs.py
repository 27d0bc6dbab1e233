"""Extracting claims with a judge's model: which responses, what it would take, start, resume and cancel.

An extraction is a judge run of its own purpose: its rows are leased, swept, budgeted and retried as verdicts
are (see `work`). Only draft system runs have claims to be extracted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calibration.estimates import Estimate, reckoned, spread
from calibration.extraction_prompts import extraction_wording_named
from calibration.judges import extracting
from calibration.judges.extracting import ExtractionWording, extraction_prompt
from calibration.judges.parsing import PARSER_VERSION
from calibration.models import Judge, JudgeRun, Verdict
from calibration.services import Refused, address_of, asked_parameters, open_run, refuse_budget, resume_run
from calibration.spending import NO_BUDGET, Budget
from calibration.work import finish_run, halt
from evalsets.claims import FILE, ClaimRefused, kind_of, labelled, lock_draft
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun

MOST_TOKENS = 8192  # of an answer, unless somebody says otherwise: claims are longer than a label

State = Verdict.State


@dataclass(frozen=True)
class Scope:
    """The responses of some draft runs by what an extraction would do with them; each is counted once."""

    without_claims: list[int]  # never extracted, or never with an answer
    found_none: list[int]  # an extraction looked and found no claim
    extracted: list[int]  # their claims are all from an extraction or by hand
    with_claims: int  # came with claims: those stay as they are
    labelled: int  # somebody, or a judge, has labelled a claim
    empty: int

    def asked(self, again: bool) -> list[int]:
        return sorted(
            [*self.without_claims, *self.found_none, *self.extracted] if again else self.without_claims
        )

    @property
    def total(self) -> int:
        listed = len(self.without_claims) + len(self.found_none) + len(self.extracted)
        return listed + self.with_claims + self.labelled + self.empty


def scope_of(system_runs: Iterable[SystemRun], responses: Iterable[int] | None = None) -> Scope:
    found = Response.objects.filter(run__in=list(system_runs))
    if responses is not None:
        found = found.filter(pk__in=list(responses))
    kinds: dict[int, set[str]] = {}
    claims = Claim.objects.filter(response__in=found, parent__isnull=True).order_by()
    for claim in claims.only("response_id", "extra").iterator(chunk_size=2000):
        kinds.setdefault(claim.response_id, set()).add(kind_of(claim))
    looked = Verdict.objects.filter(
        response__in=found, run__purpose=JudgeRun.Purpose.EXTRACTION, state=State.VALID
    )
    looked_at = set(looked.values_list("response_id", flat=True))
    said = labelled(found)
    sorted_out: dict[str, list[int]] = {}
    for response in found.order_by("run__number", "position").only("pk", "text").iterator(chunk_size=500):
        place = _place(response, kinds.get(response.pk, set()), response.pk in looked_at, response.pk in said)
        sorted_out.setdefault(place, []).append(response.pk)
    return Scope(
        without_claims=sorted_out.get("without", []),
        found_none=sorted_out.get("none", []),
        extracted=sorted_out.get("extracted", []),
        with_claims=len(sorted_out.get("file", [])),
        labelled=len(sorted_out.get("labelled", [])),
        empty=len(sorted_out.get("empty", [])),
    )


def _place(response: Response, kinds: set[str], was_looked_at: bool, is_labelled: bool) -> str:
    if FILE in kinds:
        return "file"
    if is_labelled:
        return "labelled"
    if kinds:
        return "extracted"
    if response.is_empty:
        return "empty"
    return "none" if was_looked_at else "without"


def requested_of_extraction(judge: Judge, wording: ExtractionWording, max_tokens: int | None = None) -> dict:
    """What is asked of whom: the parts of the fingerprint."""
    parameters = asked_parameters(judge) | {"max_tokens": max_tokens or MOST_TOKENS}
    return {
        "kind": judge.kind,
        "task": extracting.DIMENSION,
        "provider": judge.provider,
        "base_url": address_of(judge),
        "model": judge.model,
        "prompt_version": wording.version,
        "prompt_sha256": wording.sha256,
        "parameters": parameters,
        "parser_version": PARSER_VERSION,
    }


def estimate_extraction(
    *,
    judge: Judge,
    responses: Sequence[int],
    prompt_version: str = "",
    max_tokens: int | None = None,
    use_cache: bool = True,
) -> Estimate:
    wording = extraction_wording_named(judge.evalset, prompt_version)
    texts = Response.objects.filter(pk__in=spread(list(responses))).select_related("item")
    return reckoned(
        judge=judge,
        requested=requested_of_extraction(judge, wording, max_tokens),
        prompts=[
            extraction_prompt(question=one.item.question, response=one.text, wording=wording) for one in texts
        ],
        targets=len(responses),
        use_cache=use_cache,
        purpose=JudgeRun.Purpose.EXTRACTION,
    )


@transaction.atomic
def start_extraction(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    again: bool = False,
    responses: Sequence[int] | None = None,
    prompt_version: str = "",
    max_tokens: int | None = None,
    use_cache: bool = True,
    budget: Budget = NO_BUDGET,
    person=None,
) -> JudgeRun:
    """Ask about every response without claims; with `again` also about those that were extracted before."""
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    wording = extraction_wording_named(judge.evalset, prompt_version)
    _hold(system_runs)
    asked = refuse_extraction(
        judge=judge,
        version=version,
        system_runs=system_runs,
        again=again,
        responses=responses,
        budget=budget,
    )
    return open_run(
        judge=judge,
        version=version,
        system_runs=system_runs,
        requested=requested_of_extraction(judge, wording, max_tokens),
        rows=[(1, {"response_id": pk, "dimension": extracting.DIMENSION}) for pk in asked],
        budget=budget,
        purpose=JudgeRun.Purpose.EXTRACTION,
        dimensions=[extracting.DIMENSION],
        use_cache=use_cache,
        created_by=person,
    )


def refuse_extraction(
    *,
    judge: Judge,
    version: EvalSetVersion,
    system_runs: Sequence[SystemRun],
    again: bool = False,
    responses: Sequence[int] | None = None,
    budget: Budget = NO_BUDGET,
) -> list[int]:
    """The responses that would be asked about; refuses what could not be started so."""
    if judge.evalset_id != version.evalset_id:
        raise Refused(_("{judge} belongs to another eval set.").format(judge=judge))
    if judge.kind != Judge.Kind.OPENAI:
        raise Refused(_("{judge} is no LLM: it cannot extract claims.").format(judge=judge))
    if not system_runs:
        raise Refused(_("There is no draft system run to extract claims from."))
    for run in system_runs:
        if run.version_id != version.pk:
            raise Refused(_("{run} belongs to another version.").format(run=run))
        if run.is_frozen:
            raise Refused(_("{run} is frozen: its claims can no longer change.").format(run=run))
    _refuse_two_at_once(system_runs)
    refuse_budget(budget, judge.prices)
    asked = scope_of(system_runs, responses).asked(again)
    if not asked:
        raise Refused(_("No response is left to extract claims from."))
    return asked


def _hold(system_runs: Iterable[SystemRun]) -> None:
    for run in sorted(system_runs, key=lambda run: run.pk):
        try:
            lock_draft(run)
        except ClaimRefused as error:
            raise Refused(str(error)) from error


def _refuse_two_at_once(system_runs: Iterable[SystemRun], other_than: JudgeRun | None = None) -> None:
    running = extractions_under_way(system_runs).exclude(pk=other_than.pk if other_than else None).first()
    if running:
        raise Refused(_("Extraction {number} is still under way.").format(number=running.number))


def extractions_under_way(system_runs: Iterable[SystemRun]):
    """Those that may still store claims: running, or stopped while calls have yet to come back."""
    extractions = JudgeRun.every.filter(
        purpose=JudgeRun.Purpose.EXTRACTION, system_runs__in=list(system_runs)
    ).distinct()
    asked = Verdict.objects.filter(state=State.CLAIMED, lease_until__gt=timezone.now())
    return extractions.filter(state=JudgeRun.State.RUNNING) | extractions.filter(
        state=JudgeRun.State.STOPPED, pk__in=asked.values("run")
    )


def what_hinders_freezing(run: SystemRun) -> str:
    """Claims that are paid for and on their way should not come too late."""
    under_way = extractions_under_way([run]).first()
    if under_way is None:
        return ""
    return _("Extraction %(number)s is still under way: wait for its end, or cancel it.") % {
        "number": under_way.number
    }


@transaction.atomic
def resume_extraction(*, run: JudgeRun, retry_failed: bool = False, budget: Budget | None = None) -> None:
    """As any judge run; refused once there is nothing left that it could store."""
    system_runs = list(run.system_runs.select_related("system"))
    if all(one.is_frozen for one in system_runs):
        raise Refused(_("Its system runs are frozen: their claims can no longer change."))
    _hold(one for one in system_runs if not one.is_frozen)
    _refuse_two_at_once(system_runs, other_than=run)
    resume_run(run=run, retry_failed=retry_failed, budget=budget)


@transaction.atomic
def cancel_extraction(*, run: JudgeRun) -> int:
    """Ask about nothing more, for good; how many were left. Calls under way end and count."""
    halt(run=run)
    JudgeRun.every.select_for_update().get(pk=run.pk)
    left = run.verdicts.filter(state=State.PENDING).update(
        state=State.FAILED, failure=Verdict.Failure.CANCELLED, not_before=None, updated_at=timezone.now()
    )
    finish_run(run=run)
    run.refresh_from_db()
    return left


def cancelled_in_words(left: int) -> str:
    return ngettext(
        "%(n)s response was not asked about. It can be asked about later.",
        "%(n)s responses were not asked about. They can be asked about later.",
        left,
    ) % {"n": left}
