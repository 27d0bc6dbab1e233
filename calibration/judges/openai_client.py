"""Any server that speaks the chat completions protocol: OpenAI, vLLM, Ollama, llama.cpp.

Servers differ in what they accept. A parameter that a server rejects by name is not sent again, and the
answer says so in `effective_parameters`; what was asked for stands in the run.
"""

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from calibration.judges.clients import Answer, Permanent, Retryable
from calibration.judges.prompts import Prompt

REJECTING = (400, 422)
NO_KEY = "not-needed"  # local servers take any key; the library insists on one
CONNECT_SECONDS = 10.0
DETAIL_CHARACTERS = 1000
SECRET_CHARACTERS = 8  # a shorter key is a local server's placeholder, and may be a part of any word
MOST_TOKENS = 10**7  # of one call; more is no count, and sums of such would not fit every database
SCHEMA, OBJECT = "json_schema", "json_object"
ABOUT_THE_FORMAT = ("response_format", "schema", "grammar", "structured output")


class OpenAIClient:
    def __init__(
        self, *, base_url: str, model: str, parameters: dict, api_key: str = "", key_variable: str = ""
    ):
        # Slow to import, and a web process that only shows verdicts never needs it.
        import openai

        self._openai = openai
        self._model = model
        self._asked = dict(parameters)
        self._dropped: dict[str, str] = {}
        self._format = SCHEMA
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
            raise Permanent("rejected", self._problem_of_key)
        before = (dict(self._asked), dict(self._dropped), self._format)
        while True:
            request = self._request(prompt)
            try:
                completion = self._client.chat.completions.create(
                    **request,
                    timeout=self._openai.Timeout(timeout, connect=min(timeout, CONNECT_SECONDS)),
                )
            except self._openai.APIStatusError as error:
                if not self._gives_way(error):
                    if error.status_code in REJECTING:  # giving way was no cure
                        self._asked, self._dropped, self._format = before
                    raise self._failed(error) from error
            except self._openai.APITimeoutError as error:
                raise Retryable("timeout", f"no answer within {timeout:g} s") from error
            except self._openai.APIConnectionError as error:
                raise Retryable("unreachable", self._told(str(error.__cause__ or error))) from error
            except (self._openai.OpenAIError, ValueError) as error:
                # 200, but what came is no chat completion; a proxy's page, say.
                raise Retryable("server_error", self._told(f"not a chat completion: {error}")) from error
            else:
                return self._answer(completion)

    def close(self) -> None:
        self._client.close()

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        response_format: dict[str, Any] = {"type": self._format}
        if self._format == SCHEMA:
            response_format["json_schema"] = {"name": "verdict", "strict": True, "schema": prompt.schema}
        return {
            "model": self._model,
            "messages": [{"role": role, "content": content} for role, content in prompt.messages],
            "response_format": response_format,
            **self._asked,
        }

    def _gives_way(self, error) -> bool:
        """Whether a rejected request can be asked in another way: each way is tried once."""
        if error.status_code not in REJECTING:
            return False
        about = _text_of(error)[:DETAIL_CHARACTERS].lower()
        if self._format == SCHEMA and any(word in about for word in ABOUT_THE_FORMAT):
            self._format = OBJECT
            return True
        if "max_tokens" in self._asked and "max_completion_tokens" in about:
            self._asked["max_completion_tokens"] = self._asked.pop("max_tokens")
            self._dropped["max_tokens"] = "sent as max_completion_tokens"
            return True
        for name in [name for name in self._asked if name in about]:
            del self._asked[name]
            self._dropped[name] = "rejected by the server, not sent"
            return True
        return False

    def _failed(self, error) -> Retryable | Permanent:
        status, detail = error.status_code, self._told(f"HTTP {error.status_code}: {_text_of(error)}")
        if status == 429:
            return Retryable("rate_limited", detail, retry_after=_retry_after(error.response.headers))
        if status >= 500:
            return Retryable("server_error", detail, retry_after=_retry_after(error.response.headers))
        if status == 408:
            return Retryable("timeout", detail)
        return Permanent("rejected", detail)

    def _answer(self, completion) -> Answer:
        """The library hands on whatever JSON came, so each part is looked at before it is used."""
        try:
            choice = completion.choices[0]
            text, refusal = choice.message.content, getattr(choice.message, "refusal", None)
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise Retryable("server_error", "not a chat completion: it has no message") from error
        if not (isinstance(text, str | None) and isinstance(refusal, str | None)):
            raise Retryable("server_error", "not a chat completion: its message is no text")
        usage = completion.usage
        return Answer(
            text=self._without_key(text) if text else text,
            finish_reason=choice.finish_reason,
            refusal=self._without_key(refusal) if refusal else None,
            model=self._without_key(str(completion.model or "")),
            prompt_tokens=_tokens(getattr(usage, "prompt_tokens", None)),
            completion_tokens=_tokens(getattr(usage, "completion_tokens", None)),
            effective_parameters={
                **self._asked,
                "response_format": self._format,
                **({"not_sent": dict(self._dropped)} if self._dropped else {}),
            },
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


def _tokens(number: object) -> int | None:
    """A count as the server reported it; None for what can be none."""
    return number if type(number) is int and 0 <= number <= MOST_TOKENS else None


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
