"""The outside world as one small protocol, and the two ways in which it fails."""

from dataclasses import dataclass, field
from typing import Protocol

from calibration.judges.prompts import Prompt


@dataclass(frozen=True)
class Exchange:
    """One request as it was sent and what came of it, word for word; `failure` as far as the call knows."""

    request: str = ""
    reply: str = ""
    failure: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    milliseconds: int = 0


@dataclass(frozen=True)
class Answer:
    """What came back from one call, before anybody reads it."""

    text: str | None
    finish_reason: str | None = "stop"
    refusal: str | None = None
    model: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None  # those of the prompt that the server had read before
    completion_tokens: int | None = None
    effective_parameters: dict = field(default_factory=dict)
    exchanges: tuple[Exchange, ...] = ()  # several where the server had to be asked in another way first


class CallFailed(Exception):
    """The call gave no answer. `kind` is one of the failure kinds of a verdict."""

    def __init__(self, kind: str, detail: str = ""):
        self.kind = kind
        self.detail = detail
        self.exchanges: tuple[Exchange, ...] = ()
        super().__init__(f"{kind}: {detail}" if detail else kind)


class Retryable(CallFailed):
    """Worth another try later, not before `retry_after` seconds when the server named a time."""

    def __init__(self, kind: str, detail: str = "", retry_after: float | None = None):
        self.retry_after = retry_after
        super().__init__(kind, detail)


class Permanent(CallFailed):
    """The same call would fail again."""


class Client(Protocol):
    def ask(self, prompt: Prompt, *, timeout: float) -> Answer:
        """One call. Raises Retryable or Permanent, and nothing else, when there is no answer."""

    def close(self) -> None: ...
