"""What a turn looks at: verdicts that may be claimed, with what is to be asked, and how each came out."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DatabaseError

from calibration.extraction_claims import overtaken
from calibration.judges.asking import Outcome
from calibration.judges.clients import CallFailed, Exchange, Permanent
from calibration.judges.extracting import read_claims
from calibration.judges.material import Extracting, Setup, prompt_of
from calibration.judges.parsing import Reading
from calibration.judges.prompts import CHARACTERS_OF_A_TOKEN, TOKENS_OF_AN_ANSWER, Prompt
from calibration.leases import Claimed, as_failed_call, as_recorded, calls_somebody
from calibration.models import JudgeRun, Verdict

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Candidate:
    """A verdict that may be claimed, with what is to be asked; `known` where nobody has to be asked."""

    verdict: Verdict
    prompt: Prompt | None
    sha256: str = ""
    known: Outcome | CallFailed | None = None

    @property
    def tokens(self) -> int:
        if self.prompt is None:
            return TOKENS_OF_AN_ANSWER
        text = sum(len(content) for _role, content in self.prompt.messages)
        return text // CHARACTERS_OF_A_TOKEN + self.prompt.answer_tokens


@dataclass(frozen=True)
class Ended:
    claimed: Claimed
    candidate: Candidate
    came: Outcome | CallFailed

    @property
    def exchanges(self) -> Sequence[Exchange]:
        """Where nothing could be sent, that is told as well."""
        if self.candidate.known is not None:
            return ()
        if isinstance(self.came, CallFailed) and not self.came.exchanges:
            return (Exchange(reply=self.came.detail, failure=self.came.kind),)
        return self.came.exchanges

    @property
    def changes(self) -> dict[str, Any]:
        sha256 = self.candidate.sha256
        if isinstance(self.came, CallFailed):
            return as_failed_call(self.came, attempts=self.claimed.attempts, input_sha256=sha256)
        return as_recorded(self.came, input_sha256=sha256, from_cache=self.candidate.known is not None)

    @property
    def label(self) -> str:
        return "" if isinstance(self.came, CallFailed) else self.came.reading.label

    @property
    def failure(self) -> str:
        return self.came.kind if isinstance(self.came, CallFailed) else self.came.reading.failure


def with_material(verdicts):
    """The claims of a response share it: it is read, and made a row's object, once."""
    return verdicts.select_related("claim__parent", "claim__withdrawal", "passage").prefetch_related(
        "response__item", "response__passages"
    )


def candidates_of(run: JudgeRun, verdicts: list[Verdict], setup: Setup | Extracting) -> list[Candidate]:
    """What is to be asked about these, with the labels that the same request got before."""
    gone = overtaken(run, [verdict.response_id for verdict in verdicts]) if run.extracts else {}
    candidates = [
        Candidate(verdict, None, known=gone[verdict.response_id])
        if verdict.response_id in gone
        else _candidate(verdict, setup)
        for verdict in verdicts
    ]
    cached = _cached(run, candidates)
    return [
        Candidate(one.verdict, one.prompt, one.sha256, cached.get((one.sha256, one.verdict.run_index)))
        if one.known is None
        else one
        for one in candidates
    ]


def _candidate(verdict: Verdict, setup: Setup | Extracting) -> Candidate:
    if verdict.claim is not None and hasattr(verdict.claim, "withdrawal"):
        return Candidate(verdict, None, known=Permanent(Verdict.Failure.WITHDRAWN))
    try:
        prompt = prompt_of(verdict, setup)
        return Candidate(verdict, prompt, prompt.sha256)
    except DatabaseError:
        raise
    except Exception as error:
        return Candidate(verdict, None, known=broken(error))


def _cached(run: JudgeRun, candidates: Sequence[Candidate]) -> dict[tuple[str, int], Outcome]:
    """Labels that the same requests got before, in this eval set. Nothing was spent on them this time."""
    if not run.use_cache or not calls_somebody(run):
        return {}
    found = Verdict.objects.filter(
        input_sha256__in={candidate.sha256 for candidate in candidates if candidate.sha256},
        run__requested_fingerprint=run.requested_fingerprint,
        run__version__evalset=run.version.evalset_id,
        state=Verdict.State.VALID,
        from_cache=False,
    )
    known = {
        (verdict.input_sha256, verdict.run_index): Outcome(
            reading=_read_again(run, verdict),
            raw_output=verdict.raw_output,
            resolved_model=verdict.resolved_model,
            effective_parameters=verdict.effective_parameters,
        )
        for verdict in found.order_by("pk")
    }
    return {request: outcome for request, outcome in known.items() if outcome.reading.label}


def _read_again(run: JudgeRun, verdict: Verdict) -> Reading:
    """An extraction needs the claims as well: without a label where they were too long to be kept."""
    if run.extracts:
        return read_claims(text=verdict.raw_output, finish_reason="stop", refusal=None)
    return Reading(label=verdict.label)


def broken(error: Exception) -> Permanent:
    log.error("a verdict could not be judged", exc_info=error)
    return Permanent(Verdict.Failure.INTERNAL, f"{type(error).__name__}: {error}")
