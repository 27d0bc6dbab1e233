"""The client against a real HTTP server that misbehaves."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from calibration.judges.asking import judge_target
from calibration.judges.clients import Permanent, Retryable
from calibration.judges.openai_client import OpenAIClient
from calibration.judges.parsing import read_answer
from tests.calibration.judges.conftest import prompt
from tests.calibration.judges.fake_server import MODEL

KEY = "sk-very-secret-key"


@pytest.fixture
def client(server):
    made = OpenAIClient(
        base_url=server.url, model="judge-alias", parameters={"temperature": 0, "max_tokens": 50}, api_key=KEY
    )
    yield made
    made.close()


def ask(client, timeout=5.0):
    return client.ask(prompt(), timeout=timeout)


def test_one_call_with_schema_model_and_parameters(client, server):
    answer = ask(client)
    assert (answer.model, answer.finish_reason) == (MODEL, "stop")
    assert (answer.prompt_tokens, answer.completion_tokens) == (100, 10)
    assert answer.effective_parameters == {
        "temperature": 0,
        "max_tokens": 50,
        "response_format": "json_schema",
    }
    [request] = server.requests
    assert request["model"] == "judge-alias"
    menu = request["response_format"]["json_schema"]["schema"]["properties"]["label"]["enum"]
    assert menu == ["supported", "contradicted", "unsupported", "unverifiable"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_a_reply_is_read_as_json_is_written(client, server):
    server.default = "marked"
    assert "Fähre" in ask(client).text


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [
        ("rate_limited", "rate_limited"),
        ("server_error", "transport"),
        ("overloaded", "transport"),
        ("closing", "transport"),
        ("html", "transport"),
        ("no_choices", "transport"),
        ("no_message", "transport"),
        ("null_choice", "transport"),
        ("parts", "transport"),
        ("refusing_in_an_object", "transport"),
    ],
)
def test_transport_failures_are_retryable_and_not_retried_here(client, server, behaviour, kind):
    server.default = behaviour
    with pytest.raises(Retryable) as failed:
        ask(client)
    assert failed.value.kind == kind
    assert server.calls == 1


def test_the_time_a_rate_limit_names_is_kept(client, server):
    server.default, server.retry_after = "rate_limited", 7
    with pytest.raises(Retryable) as failed:
        ask(client)
    assert failed.value.retry_after == 7


def test_a_rate_limit_may_name_a_date(client, server):
    server.default, server.retry_after = "rate_limited", "Wed, 21 Oct 2015 07:28:00 GMT"
    with pytest.raises(Retryable) as failed:
        ask(client)
    assert failed.value.retry_after == 0


def test_a_hanging_server_is_a_timeout(client, server):
    server.default = "hanging"
    started = time.monotonic()
    with pytest.raises(Retryable) as failed:
        ask(client, timeout=0.3)
    assert failed.value.kind == "timeout"
    assert time.monotonic() - started < 3


def test_nobody_listening_is_a_transport_failure(server):
    client = OpenAIClient(base_url="http://127.0.0.1:9/v1", model="m", parameters={})
    with pytest.raises(Retryable) as failed:
        ask(client)
    assert failed.value.kind == "transport"


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("unauthorized", "auth", "Incorrect API key"),
        ("forbidden", "auth", "no access to this model"),
        ("rejecting", "too_long", "context length"),
        ("no_such_model", "rejected", "does not exist"),
        ("out_of_credit", "budget", "insufficient_quota"),
    ],
)
def test_a_rejected_request_is_permanent_and_says_what_the_server_said(
    client, server, behaviour, kind, words
):
    server.default = behaviour
    with pytest.raises(Permanent) as failed:
        ask(client)
    assert failed.value.kind == kind
    assert words in failed.value.detail
    assert KEY not in failed.value.detail
    assert server.calls == 1


def test_a_server_without_schemas_is_asked_for_an_object(client, server):
    server.default = "rejecting_schema"
    answer = ask(client)
    assert answer.effective_parameters["response_format"] == "json_object"
    assert [r["response_format"]["type"] for r in server.requests] == ["json_schema", "json_object"]
    ask(client)
    assert server.calls == 3  # what was learned is not tried again


@pytest.mark.parametrize(
    ("behaviour", "name"), [("rejecting_temperature", "temperature"), ("rejecting_max_tokens", "max_tokens")]
)
def test_a_rejected_parameter_is_not_sent_and_the_answer_says_so(client, server, behaviour, name):
    server.default = behaviour
    effective = ask(client).effective_parameters
    assert name not in effective
    assert name in effective["not_sent"]
    assert name not in server.requests[-1]
    if name == "max_tokens":
        assert server.requests[-1]["max_completion_tokens"] == 50


def test_a_named_but_unset_variable_of_a_key_fails_without_a_call(server):
    client = OpenAIClient(base_url=server.url, model="m", parameters={}, key_variable="OTHER_API_KEY")
    with pytest.raises(Permanent, match="OTHER_API_KEY is not set"):
        ask(client)
    assert server.calls == 0


@pytest.mark.parametrize("key", ["sk-very\nsecret", "sk-very-s\u00e9cret", "sk-very\x00secret"])
def test_a_key_that_no_header_can_carry_fails_without_a_call_and_is_not_shown(server, key):
    client = OpenAIClient(base_url=server.url, model="m", parameters={}, api_key=key)
    with pytest.raises(Permanent, match="the key in JUDGE_API_KEY holds a character") as failed:
        ask(client)
    assert "sk-very" not in str(failed.value)
    assert server.calls == 0


def test_the_line_break_after_a_key_in_a_file_is_not_sent(server):
    ask(OpenAIClient(base_url=server.url, model="m", parameters={}, api_key=f"{KEY}\n"))
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("behaviour", ["echoing", "echoing_at_the_cut"])
def test_a_key_that_the_server_repeats_is_not_kept(client, server, behaviour):
    server.default = behaviour
    with pytest.raises(Permanent) as failed:
        ask(client)
    assert "Bearer [the key]" in failed.value.detail
    assert KEY[:6] not in failed.value.detail


def test_a_key_that_the_answer_repeats_is_not_kept(client, server):
    server.default = "echoing_in_the_answer"
    outcome = judge_target(client, prompt(), timeout=5)
    assert outcome.reading.label == "supported"
    assert outcome.raw_output == '{"reason": "Bearer [the key]", "label": "supported"}'
    assert outcome.resolved_model == "model of Bearer [the key]"


def test_a_placeholder_for_a_key_leaves_the_answer_as_it_is(server):
    client = OpenAIClient(base_url=server.url, model="m", parameters={}, api_key="support")
    assert judge_target(client, prompt(), timeout=5).reading.label == "supported"


@pytest.mark.parametrize("behaviour", ["counting_wrong", "usage_in_a_list"])
def test_a_usage_that_cannot_be_is_not_known(client, server, behaviour):
    server.default = behaviour
    outcome = judge_target(client, prompt(), timeout=5)
    assert outcome.reading.label == "supported"
    assert (outcome.prompt_tokens, outcome.completion_tokens) == (None, None)
    assert isinstance(outcome.resolved_model, str)


def test_what_the_server_had_in_its_cache_is_told(client, server):
    server.default = "caching"
    outcome = judge_target(client, prompt(), timeout=5)
    assert (outcome.prompt_tokens, outcome.cached_tokens) == (100, 80)
    assert outcome.exchanges[0].cached_tokens == 80


@pytest.mark.parametrize("what", ["more_than_it_read", "less_than_nothing", "words", "in_a_list"])
def test_cached_tokens_that_cannot_be_are_not_known(client, server, what):
    server.default = f"caching_{what}"
    outcome = judge_target(client, prompt(), timeout=5)
    assert (outcome.prompt_tokens, outcome.cached_tokens, outcome.completion_tokens) == (100, None, 10)


def test_cached_tokens_of_no_prompt_tokens_are_not_known(client, server):
    server.default = "caching_what_it_does_not_count"
    outcome = judge_target(client, prompt(), timeout=5)
    assert (outcome.prompt_tokens, outcome.cached_tokens) == (None, None)


def test_keys_are_not_logged(client, server, caplog):
    caplog.set_level("DEBUG")
    server.script("unauthorized")
    with pytest.raises(Permanent):
        ask(client)
    ask(client)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("behaviour", "kind", "calls"),
    [
        ("truncated", "truncated", 1),
        ("truncated_to_nothing", "truncated", 1),
        ("refusing", "refused_to_judge", 1),
        ("filtered", "refused_to_judge", 1),
        ("empty", "unparseable", 2),
        ("off_menu", "off_menu", 2),
        ("prose", "unparseable", 2),
        ("not_an_object", "unparseable", 2),
        ("two_objects", "ambiguous", 2),
        ("duplicate_key", "ambiguous", 2),
        ("number", "unparseable", 2),
    ],
)
def test_an_unusable_answer_is_asked_for_once_more_at_most(client, server, behaviour, kind, calls):
    """Asking again cannot help against a cut-off or a refusal; otherwise the same prompt goes out again."""
    server.default = behaviour
    outcome = judge_target(client, prompt(), timeout=5)
    assert (outcome.reading.label, outcome.reading.failure) == ("", kind)
    assert server.calls == calls
    assert len({str(request["messages"]) for request in server.requests}) == 1
    assert outcome.prompt_tokens == 100 * calls
    assert outcome.effective_parameters["calls"] == calls


def test_a_second_answer_that_is_right_counts(client, server):
    server.script("prose")
    outcome = judge_target(client, prompt(), timeout=5)
    assert outcome.reading.label == "supported"
    assert server.calls == 2


def test_the_resolved_model_is_the_one_that_answered(client, server):
    server.default = "other_model"
    assert judge_target(client, prompt(), timeout=5).resolved_model == "fake-judge-2026-09-09"


def test_the_raw_answer_is_kept_word_for_word(client, server):
    server.default = "prose"
    outcome = judge_target(client, prompt(), timeout=5)
    assert outcome.raw_output == "The claim is supported."
    assert read_answer(
        text=outcome.raw_output, finish_reason="stop", refusal=None, labels=("supported",)
    ).failure


def test_every_request_is_kept_word_for_word_with_what_came_back(client, server):
    server.script("rejecting_schema", "prose")
    outcome = judge_target(client, prompt(), timeout=5)
    assert [exchange.failure for exchange in outcome.exchanges] == ["rejected", "unparseable", ""]
    for exchange, request in zip(outcome.exchanges, server.requests, strict=True):
        assert json.loads(exchange.request) == request
        assert KEY not in exchange.request
    last = outcome.exchanges[-1]
    assert json.loads(last.reply)["model"] == MODEL
    assert (last.finish_reason, last.prompt_tokens, last.completion_tokens) == ("stop", 100, 10)


def test_a_call_that_failed_is_kept_with_what_the_server_said(client, server):
    server.script("prose", "rate_limited")
    with pytest.raises(Retryable) as failed:
        judge_target(client, prompt(), timeout=5)
    assert [exchange.failure for exchange in failed.value.exchanges] == ["unparseable", "rate_limited"]
    assert "Rate limit reached" in failed.value.exchanges[-1].reply


def test_a_reasoning_model_gets_no_temperature_and_its_own_limit(server):
    asked = {"temperature": 0, "max_tokens": 50, "reasoning": True, "reasoning_effort": "low"}
    client = OpenAIClient(base_url=server.url, model="m", parameters=asked)
    server.default = "thinking"
    outcome = judge_target(client, prompt(), timeout=5)
    [request] = server.requests
    assert "temperature" not in request and "max_tokens" not in request and "reasoning" not in request
    assert (request["max_completion_tokens"], request["reasoning_effort"]) == (50, "low")
    assert outcome.reading.label == "supported"
    assert outcome.exchanges[0].reasoning_tokens == 7
    assert outcome.effective_parameters["reasoning_tokens"] == 7
    assert set(outcome.effective_parameters["not_sent"]) == {"temperature", "max_tokens"}


def test_a_server_that_knows_no_format_is_asked_in_words_only(client, server):
    server.default = "rejecting_formats"
    outcome = judge_target(client, prompt(), timeout=5)
    assert outcome.reading.label == "supported"
    assert outcome.effective_parameters["response_format"] == "text"
    assert [request.get("response_format", {}).get("type") for request in server.requests] == [
        "json_schema",
        "json_object",
        None,
    ]


def test_many_threads_ask_through_one_client_while_it_learns(client, server):
    server.default = "rejecting_temperature"
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(judge_target, client, prompt(), timeout=5) for _ in range(24)]
    assert {done.result().reading.label for done in asked} == {"supported"}
    assert all("temperature" in done.result().effective_parameters["not_sent"] for done in asked)
