"""One target, one call, and at most one more when the answer could not be read."""

import time
from dataclasses import dataclass, field, replace

from calibration.judges.clients import Answer, CallFailed, Client, Exchange
from calibration.judges.parsing import AMBIGUOUS, OFF_MENU, UNPARSEABLE, Reading
from calibration.judges.prompts import Prompt

# A refusal or a cut-off answer would come back the same; these may have been a slip.
WORTH_A_SECOND_CALL = {UNPARSEABLE, AMBIGUOUS, OFF_MENU}


@dataclass(frozen=True)
class Outcome:
    reading: Reading
    raw_output: str
    resolved_model: str
    effective_parameters: dict = field(default_factory=dict)
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    milliseconds: int = 0
    exchanges: tuple[Exchange, ...] = ()


def judge_target(client: Client, prompt: Prompt, *, timeout: float) -> Outcome:
    """Ask, read, and ask once more with the very same prompt when the output was invalid.

    Raises what the client raises: a call without an answer has no outcome.
    """
    started = time.monotonic()
    answer = client.ask(prompt, timeout=timeout)
    reading = _read(answer, prompt)
    exchanges = _told(answer, reading)
    answers = [answer]
    if reading.failure in WORTH_A_SECOND_CALL:
        try:
            answer = client.ask(prompt, timeout=timeout)
        except CallFailed as failed:
            failed.exchanges = exchanges + failed.exchanges
            raise
        reading = _read(answer, prompt)
        exchanges += _told(answer, reading)
        answers.append(answer)
    return Outcome(
        reading=reading,
        raw_output=answer.text or answer.refusal or "",
        resolved_model=answer.model,
        effective_parameters={**answer.effective_parameters, "calls": len(answers)},
        prompt_tokens=_sum(each.prompt_tokens for each in answers),
        cached_tokens=_sum(each.cached_tokens for each in answers),
        completion_tokens=_sum(each.completion_tokens for each in answers),
        milliseconds=round((time.monotonic() - started) * 1000),
        exchanges=exchanges,
    )


def _told(answer: Answer, reading: Reading) -> tuple[Exchange, ...]:
    """The exchanges of an answer; only its reader knows whether the last of them was any use."""
    if not answer.exchanges:
        return ()
    *earlier, last = answer.exchanges
    return (*earlier, replace(last, failure=reading.failure))


def _read(answer: Answer, prompt: Prompt) -> Reading:
    return prompt.read(text=answer.text, finish_reason=answer.finish_reason, refusal=answer.refusal)


def _sum(numbers) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
