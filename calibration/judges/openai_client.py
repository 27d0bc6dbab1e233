"""Any server that speaks the chat completions protocol: OpenAI, vLLM, Ollama, llama.cpp.

Servers differ in what they accept. A parameter that a server rejects by name is not sent again, and the
answer says so in `effective_parameters`; what was asked for stands in the run.
"""

import json
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from calibration.judges.clients import Answer, CallFailed, Exchange, Permanent, Retryable
from calibration.judges.prompts import Prompt

REJECTING = (400, 422)
NO_KEY = "not-needed"  # local servers take any key; the library insists on one
CONNECT_SECONDS = 10.0
DETAIL_CHARACTERS = 1000
SECRET_CHARACTERS = 8  # a shorter key is a local server's placeholder, and may be a part of any word
MOST_TOKENS = 10**7  # of one call; more is no count, and sums of such would not fit every database
SCHEMA, OBJECT, TEXT = "json_schema", "json_object", "text"
NEXT_FORMAT = {SCHEMA: OBJECT, OBJECT: TEXT}
ABOUT_THE_FORMAT = ("response_format", "schema", "grammar", "structured output")
ABOUT_THE_LENGTH = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "too long",
    "too many tokens",
    "prompt is longer",
)
ABOUT_THE_CREDIT = ("insufficient_quota", "insufficient credit", "insufficient balance", "credit balance")


@dataclass(frozen=True)
class Way:
    """How a server is asked, after what it has rejected so far."""

    asked: dict[str, Any]
    format: str = SCHEMA
    dropped: dict[str, str] = field(default_factory=dict)

    def after(self, status: int, about: str) -> "Way | None":
        """The next way to try, or None; each step is taken once."""
        if status not in REJECTING:
            return None
        if self.format in NEXT_FORMAT and any(word in about for word in ABOUT_THE_FORMAT):
            return replace(self, format=NEXT_FORMAT[self.format])
        if "max_tokens" in self.asked and "max_completion_tokens" in about:
            renamed = {"max_completion_tokens": self.asked["max_tokens"]}
            return self._without("max_tokens", "sent as max_completion_tokens", renamed)
        named = next((name for name in self.asked if name in about), None)
        return self._without(named, "rejected by the server, not sent", {}) if named else None

    def _without(self, name: str, why: str, instead: dict[str, Any]) -> "Way":
        rest = {key: value for key, value in self.asked.items() if key != name}
        return replace(self, asked={**rest, **instead}, dropped={**self.dropped, name: why})

    @property
    def effective(self) -> dict[str, Any]:
        not_sent = {"not_sent": dict(self.dropped)} if self.dropped else {}
        return {**self.asked, "response_format": self.format, **not_sent}


def first_way(parameters: dict[str, Any]) -> Way:
    """What is sent of what was asked for: a reasoning model takes no temperature, and its own limit."""
    sent = {name: value for name, value in parameters.items() if name != "reasoning"}
    way = Way(asked=sent)
    if not parameters.get("reasoning"):
        return way
    if "temperature" in sent:
        way = way._without("temperature", "a reasoning model takes none", {})
    if "max_tokens" in sent:
        renamed = {"max_completion_tokens": sent["max_tokens"]}
        way = way._without("max_tokens", "sent as max_completion_tokens", renamed)
    return way


class OpenAIClient:
    """Any number of threads may ask through one client."""

    def __init__(
        self, *, base_url: str, model: str, parameters: dict, api_key: str = "", key_variable: str = ""
    ):
        # Slow to import, and a web process that only shows verdicts never needs it.
        import openai

        self._openai = openai
        self._model = model
        self._way = first_way(parameters)
        self._key = api_key.strip()
        self._problem_of_key = _problem_of_key(self._key, key_variable)
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=self._key or NO_KEY,
            organization="",
            project="",
            max_retries=0,
            timeout=openai.Timeout(60.0, connect=CONNECT_SECONDS),
        )

    def ask(self, prompt: Prompt, *, timeout: float) -> Answer:
        if self._problem_of_key:
            raise Permanent("auth", self._problem_of_key)
        way: Way | None = self._way
        exchanges: list[Exchange] = []
        while way is not None:
            body = json.dumps(self._request(prompt, way), ensure_ascii=False)
            done, started = Exchange(request=self._without_key(body)), time.monotonic()
            try:
                reply = self._call(body, timeout)
                completion = _completion(reply)
                answer = self._answer(completion, way)
            except CallFailed as failed:
                rejection = failed.__cause__
                status, reply = getattr(rejection, "status_code", 0), failed.detail
                exchanges.append(_ended(done, started, reply=reply, failure=failed.kind))
                failed.exchanges = tuple(exchanges)
                way = way.after(status, _text_of(rejection)[:DETAIL_CHARACTERS].lower()) if status else None
                if way is None:
                    raise
            else:
                self._way = way  # what was learned is not tried again
                counts = _counts(completion)
                exchanges.append(
                    _ended(
                        done,
                        started,
                        reply=self._without_key(reply),
                        finish_reason=str(answer.finish_reason or "")[:50],
                        **counts,
                    )
                )
                return replace(answer, exchanges=tuple(exchanges))
        raise AssertionError("every way ends in an answer or in an error")

    def close(self) -> None:
        self._client.close()

    def _request(self, prompt: Prompt, way: Way) -> dict[str, Any]:
        response_format: dict[str, Any] = {"type": way.format}
        if way.format == SCHEMA:
            response_format["json_schema"] = {"name": "verdict", "strict": True, "schema": prompt.schema}
        return {
            "model": self._model,
            "messages": [{"role": role, "content": content} for role, content in prompt.messages],
            **({} if way.format == TEXT else {"response_format": response_format}),
            **way.asked,
        }

    def _call(self, body: str, timeout: float) -> str:
        """The reply word for word. The library's typed door would check what is sent and what comes against
        its models first, at twice the cost of the call, and we look at each part ourselves anyway.
        """
        limits = self._openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS))
        try:
            reply = self._client.post(
                "/chat/completions", cast_to=bytes, content=body.encode(), options={"timeout": limits}
            )
        except self._openai.APIStatusError as error:
            raise self._failed(error) from error
        except self._openai.APITimeoutError as error:
            raise Retryable("timeout", f"no answer within {timeout:g} s") from error
        except self._openai.APIConnectionError as error:
            raise Retryable("transport", self._told(str(error.__cause__ or error))) from error
        except self._openai.OpenAIError as error:
            raise Retryable("transport", self._told(str(error))) from error
        return reply.decode("utf-8-sig", "replace")  # JSON, whatever character set the server names

    def _failed(self, error) -> Retryable | Permanent:
        status, about = error.status_code, _text_of(error)
        detail = self._told(f"HTTP {status}: {about}")
        about = about.lower()
        if status == 402 or any(words in about for words in ABOUT_THE_CREDIT):
            return Permanent("budget", detail)
        if status == 429:
            return Retryable("rate_limited", detail, retry_after=_retry_after(error.response.headers))
        if status >= 500:
            return Retryable("transport", detail, retry_after=_retry_after(error.response.headers))
        if status == 408:
            return Retryable("timeout", detail)
        if status in (401, 403):
            return Permanent("auth", detail)
        if status == 413 or any(words in about for words in ABOUT_THE_LENGTH):
            return Permanent("too_long", detail)
        return Permanent("rejected", detail)

    def _answer(self, completion: dict[str, Any], way: Way) -> Answer:
        """It may be any JSON, so each part is looked at before it is used."""
        try:
            choice = completion["choices"][0]
            text, refusal = choice["message"].get("content"), choice["message"].get("refusal")
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise Retryable("transport", "not a chat completion: it has no message") from error
        if not (isinstance(text, str | None) and isinstance(refusal, str | None)):
            raise Retryable("transport", "not a chat completion: its message is no text")
        counts = _counts(completion)
        thought = {name: counts[name] for name in ("reasoning_tokens",) if counts[name] is not None}
        return Answer(
            text=self._without_key(text) if text else text,
            finish_reason=choice.get("finish_reason"),
            refusal=self._without_key(refusal) if refusal else None,
            model=self._without_key(str(completion.get("model") or "")),
            prompt_tokens=counts["prompt_tokens"],
            cached_tokens=counts["cached_tokens"],
            completion_tokens=counts["completion_tokens"],
            effective_parameters={**way.effective, **thought},
        )

    def _told(self, text: str) -> str:
        """What went wrong, fit to be shown; the key goes first, lest half of it stays at the cut."""
        return _shortened(self._without_key(text))

    def _without_key(self, text: str) -> str:
        """Servers and proxies that repeat the request's headers exist; the key must not be kept that way."""
        return text.replace(self._key, "[the key]") if len(self._key) >= SECRET_CHARACTERS else text


def _problem_of_key(key: str, variable: str) -> str:
    if variable and not key:
        return f"the environment variable {variable} is not set where the worker runs"
    if key and not (key.isascii() and key.isprintable()):
        return f"the key in {variable or 'JUDGE_API_KEY'} holds a character that cannot be sent"
    return ""


def _ended(exchange: Exchange, started: float, **outcome: Any) -> Exchange:
    return replace(exchange, milliseconds=round((time.monotonic() - started) * 1000), **outcome)


def _completion(reply: str) -> dict[str, Any]:
    """200, but what came may be no chat completion; a proxy's page, say."""
    try:
        completion = json.loads(reply)
    except (ValueError, RecursionError) as error:
        raise Retryable("transport", f"not a chat completion: {error}") from error
    if not isinstance(completion, dict):
        raise Retryable("transport", f"not a chat completion: {type(completion).__name__}")
    return completion


def _counts(completion: dict[str, Any]) -> dict[str, int | None]:
    usage = _object(completion.get("usage"))
    asked = _object(usage.get("prompt_tokens_details"))
    thought = _object(usage.get("completion_tokens_details"))
    prompt_tokens = _tokens(usage.get("prompt_tokens"))
    return {
        "prompt_tokens": prompt_tokens,
        "cached_tokens": _tokens(asked.get("cached_tokens"), most=prompt_tokens or 0),
        "completion_tokens": _tokens(usage.get("completion_tokens")),
        "reasoning_tokens": _tokens(thought.get("reasoning_tokens")),
    }


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _tokens(number: object, most: int = MOST_TOKENS) -> int | None:
    """A count as the server reported it; None for what can be none."""
    return number if type(number) is int and 0 <= number <= most else None


def _text_of(error) -> str:
    body = error.body if error.body is not None else error.message
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _shortened(text: str) -> str:
    return text if len(text) <= DETAIL_CHARACTERS else f"{text[:DETAIL_CHARACTERS]} [...]"


def _retry_after(headers) -> float | None:
    """Seconds from a Retry-After header, which is a number or a date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    for read in (float, _seconds_until):
        try:
            return max(0.0, read(value))
        except (TypeError, ValueError):
            continue
    return None


def _seconds_until(date: str) -> float:
    return (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
