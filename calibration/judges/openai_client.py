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
        self._missing_key = key_variable if key_variable and not api_key else ""
        self._client = openai.OpenAI(
            base_url=base_url,
            api_key=api_key or NO_KEY,
            organization="",
            project="",
            max_retries=0,
            timeout=openai.Timeout(60.0, connect=CONNECT_SECONDS),
        )

    def ask(self, prompt: Prompt, *, timeout: float) -> Answer:
        if self._missing_key:
            raise Permanent(
                "rejected", f"the environment variable {self._missing_key} is not set where the worker runs"
            )
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
                raise Retryable("unreachable", _cause_of(error)) from error
            except (self._openai.OpenAIError, ValueError) as error:
                # 200, but what came is no chat completion; a proxy's page, say.
                raise Retryable("server_error", _shortened(f"not a chat completion: {error}")) from error
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
        status, detail = error.status_code, _shortened(f"HTTP {error.status_code}: {_text_of(error)}")
        if status == 429:
            return Retryable("rate_limited", detail, retry_after=_retry_after(error.response.headers))
        if status >= 500:
            return Retryable("server_error", detail, retry_after=_retry_after(error.response.headers))
        if status == 408:
            return Retryable("timeout", detail)
        return Permanent("rejected", detail)

    def _answer(self, completion) -> Answer:
        if not getattr(completion, "choices", None):
            raise Retryable("server_error", "not a chat completion: it has no choices")
        choice, usage = completion.choices[0], completion.usage
        return Answer(
            text=choice.message.content,
            finish_reason=choice.finish_reason,
            refusal=getattr(choice.message, "refusal", None),
            model=completion.model or "",
            prompt_tokens=usage.prompt_tokens if usage else None,
            completion_tokens=usage.completion_tokens if usage else None,
            effective_parameters={
                **self._asked,
                "response_format": self._format,
                **({"not_sent": dict(self._dropped)} if self._dropped else {}),
            },
        )


def _text_of(error) -> str:
    body = error.body if error.body is not None else error.message
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def _cause_of(error: BaseException) -> str:
    return _shortened(str(error.__cause__ or error))


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
