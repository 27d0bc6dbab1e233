"""Budgets of a run and limits of an endpoint: how many calls may begin, and when a run stops."""

import io
import json
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from calibration import leases, services, work
from calibration.models import Call, Endpoint, Judge, JudgeRun
from calibration.queries import progress_of
from calibration.services import Refused, resume_run, run_inline, set_prices, start_run
from calibration.spending import Budget, cost_of

pytestmark = pytest.mark.django_db
PRICES = {"prompt": "2.50", "completion": "10", "currency": "USD"}


@pytest.fixture
def priced(judge):
    Judge.objects.filter(pk=judge.pk).update(prices=PRICES)
    judge.refresh_from_db()
    return judge


def pending(run):
    return run.verdicts.filter(state="pending").count()


def test_cost_is_tokens_times_the_price_of_a_million():
    assert cost_of(1_000_000, 0, PRICES) == Decimal("2.50")
    assert cost_of(100, 10, PRICES) == Decimal("0.00035")
    assert cost_of(100, 10, {}) is None


def test_cached_tokens_have_a_price_of_their_own_or_that_of_the_others():
    assert cost_of(100, 10, {**PRICES, "cached": "0.25"}, cached_tokens=80) == Decimal("0.00017")
    assert cost_of(100, 10, {**PRICES, "cached": "0"}, cached_tokens=80) == Decimal("0.00015")
    assert cost_of(100, 10, PRICES, cached_tokens=80) == Decimal("0.00035")


def test_what_the_server_had_in_its_cache_costs_a_run_less(priced, version, server):
    """Of each call 20 tokens in, 80 cached and 10 out: 0.00017 USD, with a slip paid twice."""
    set_prices(judge=priced, prices={**PRICES, "cached": "0.25"})
    priced.refresh_from_db()
    server.default = "caching"
    server.script("rate_limited", "prose")
    run = run_inline(run=start_run(judge=priced, version=version))
    progress = progress_of(run)
    assert (progress.prompt_tokens, progress.cached_tokens) == (1000, 720)
    assert progress.cost == 9 * Decimal("0.00017") + Decimal("0.00035")
    assert set(run.verdicts.values_list("cached_tokens", flat=True)) == {80}
    assert run.calls.filter(cached_tokens=80).count() == 9


def test_tokens_in_the_cache_stay_with_a_verdict_that_is_asked_again(judge, version, server, no_waiting):
    """Half of what came was no answer; what both calls took from the cache is added."""
    server.default = "caching"
    run = run_inline(run=start_run(judge=judge, version=version))
    run.verdicts.update(state="failed", label="", failure="timeout")
    resume_run(run=run, retry_failed=True)
    run_inline(run=run)
    assert set(run.verdicts.values_list("prompt_tokens", "cached_tokens")) == {(200, 160)}


def test_a_budget_of_money_reckons_with_the_price_of_cached_tokens(priced, version, server):
    set_prices(judge=priced, prices={**PRICES, "cached": "0.25"})
    priced.refresh_from_db()
    server.default = "caching"
    run = run_inline(run=start_run(judge=priced, version=version, budget=Budget(money=Decimal("0.00068"))))
    assert (run.stop_reason, run.stop_detail, server.calls) == ("budget", "USD: 0.00068 of 0.00068", 4)


def test_a_budget_of_calls_stops_the_run_with_the_reason(judge, version, server):
    run = run_inline(run=start_run(judge=judge, version=version, budget=Budget(calls=4)), calls=3)
    assert (run.state, run.stop_reason, run.stop_detail) == ("stopped", "budget", "calls: 4 of 4")
    assert server.calls == 4
    assert pending(run) == 5


def test_a_budget_of_tokens_stops_the_run(judge, version, server):
    """Each call takes 110 tokens: after three the next one would not fit, and nothing is left over."""
    run = run_inline(run=start_run(judge=judge, version=version, budget=Budget(tokens=330)), calls=2)
    assert (run.stop_reason, run.stop_detail) == ("budget", "tokens: 330 of 330")
    assert server.calls == 3


def test_a_budget_of_money_stops_the_run(priced, version, server):
    """100 tokens in and 10 out cost 0.00035 USD (2.50 and 10 USD a million)."""
    run = start_run(judge=priced, version=version, budget=Budget(money=Decimal("0.0014")))
    run = run_inline(run=run)
    assert (run.stop_reason, run.stop_detail) == ("budget", "USD: 0.0014 of 0.0014")
    assert server.calls == 4
    assert progress_of(run).cost == Decimal("0.0014")


@pytest.mark.parametrize("budget", [Budget(tokens=10_000), Budget(money=Decimal(5))])
def test_a_budget_that_nobody_can_keep_stops_the_run_and_says_why(priced, version, server, budget):
    """The server tells no tokens, so that what was spent would look like nothing for ever."""
    server.default = "counting_wrong"
    run = run_inline(run=start_run(judge=priced, version=version, budget=budget))
    assert (run.state, run.stop_reason, server.calls) == ("stopped", "budget", 1)
    assert run.stop_detail.endswith("calls without a count of tokens: 1")
    with pytest.raises(Refused, match="only a budget of calls"):
        resume_run(run=run, budget=Budget(tokens=10**9))
    resume_run(run=run, budget=Budget(calls=100))
    assert run_inline(run=run).state == "complete"
    assert progress_of(run).spent.uncounted == 9


def test_failed_calls_count_for_the_budget(judge, version, server, no_waiting):
    server.default = "server_error"
    run = run_inline(run=start_run(judge=judge, version=version, budget=Budget(calls=5)))
    assert (server.calls, run.stop_reason) == (5, "budget")


def test_a_larger_budget_lets_the_run_go_on(judge, version, server):
    run = run_inline(run=start_run(judge=judge, version=version, budget=Budget(calls=4)))
    with pytest.raises(Refused, match="larger"):
        resume_run(run=run)
    run.refresh_from_db()
    assert run.state == JudgeRun.State.STOPPED
    resume_run(run=run, budget=Budget(calls=100))
    run = run_inline(run=run)
    assert (run.state, run.stop_reason, server.calls) == ("complete", "", 9)


def test_money_without_prices_is_refused(judge, version):
    with pytest.raises(Refused, match="prices"):
        start_run(judge=judge, version=version, budget=Budget(money=Decimal(1)))


def test_the_price_of_a_run_is_that_of_its_start(priced, version, server):
    run = start_run(judge=priced, version=version)
    Judge.objects.filter(pk=priced.pk).update(prices={**PRICES, "prompt": "100"})
    assert progress_of(run_inline(run=run)).cost == Decimal("0.00315")  # nine times 0.00035


def test_tokens_of_the_last_minute_leave_room_for_so_many_calls(judge, version):
    run = start_run(judge=judge, version=version)
    Judge.objects.filter(pk=judge.pk).update(parameters={"concurrency": 50})
    run.judge.refresh_from_db()
    Endpoint.objects.update(tokens_per_minute=1000)

    def used(tokens, seconds_ago):
        Call.objects.create(
            run=run,
            verdict=run.verdicts.first(),
            at=timezone.now() - timedelta(seconds=seconds_ago),
            prompt_tokens=tokens,
            completion_tokens=0,
        )

    assert leases.free_places(run, tokens_each=100) == 1  # nothing is known of this minute: one call at least
    used(5000, 61)
    assert leases.free_places(run, tokens_each=100) == 1
    used(400, 30)
    assert leases.free_places(run, tokens_each=100) == 6
    leases.claim_verdicts(run=run, verdicts=run.verdicts.all()[:2])
    assert leases.free_places(run, tokens_each=100) == 4
    used(600, 1)
    assert leases.free_places(run, tokens_each=100) == 0


def test_a_call_without_a_count_of_tokens_is_reckoned_in_the_minute(judge, version):
    run = start_run(judge=judge, version=version)
    Judge.objects.filter(pk=judge.pk).update(parameters={"concurrency": 50})
    run.judge.refresh_from_db()
    Endpoint.objects.update(tokens_per_minute=1000)
    for _call in range(4):
        Call.objects.create(run=run, verdict=run.verdicts.first(), at=timezone.now())
    assert leases.free_places(run, tokens_each=100) == 6


def test_a_turn_that_finds_no_place_leaves_the_rows_alone(judge, version, server, monkeypatch):
    monkeypatch.setattr(work, "PATIENCE_SECONDS", 0.01)
    run = start_run(judge=judge, version=version)
    Endpoint.objects.update(concurrency=0)
    assert work.work_through(run_id=run.pk, calls=4) == 0
    assert (server.calls, pending(run)) == (0, 9)


def test_sweep_stops_a_run_whose_budget_is_used_up(judge, version):
    run = start_run(judge=judge, version=version, budget=Budget(calls=1))
    Call.objects.create(run=run, verdict=run.verdicts.first(), at=timezone.now())
    work.sweep()
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == ("stopped", "budget")


def test_a_stop_by_hand_is_told_from_one_by_itself(judge, version):
    run = start_run(judge=judge, version=version)
    services.stop_run(run=run)
    assert run.stop_reason == "asked"


# Commands


def command(*arguments):
    out = io.StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_prune_raw_deletes_only_old_requests_and_replies(judge, version, server):
    run = run_inline(run=start_run(judge=judge, version=version))
    old = run.calls.order_by("pk")[:4].values_list("pk", flat=True)
    Call.objects.filter(pk__in=list(old)).update(at=timezone.now() - timedelta(days=31))
    assert command("prune_raw", "--older-than", "30") == {"pruned": 4}
    assert command("prune_raw", "--older-than", "30") == {"pruned": 0}
    assert run.calls.filter(request="", reply="").count() == 4
    assert run.calls.filter(prompt_tokens=100).count() == 9
    assert not run.verdicts.filter(raw_output="").exists()


def test_judge_endpoint_sets_and_takes_away_limits(judge, version, server):
    start_run(judge=judge, version=version)
    limits = command("judge_endpoint", server.url, "--concurrency", "3", "--tokens-per-minute", "9000")
    assert limits == {"endpoints": [{"base_url": server.url, "concurrency": 3, "tokens_per_minute": 9000}]}
    assert command("judge_endpoint", server.url, "--concurrency", "0")["endpoints"][0]["concurrency"] is None
    assert command("judge_endpoint")["endpoints"][0]["tokens_per_minute"] == 9000


def test_judge_endpoint_of_an_address_that_nobody_calls_is_refused(db):
    with pytest.raises(CommandError, match=r"No judge has called http://localhost:1/v1"):
        command("judge_endpoint", "http://localhost:1/v1")


def test_judge_endpoint_with_a_limit_and_no_address_is_refused(db):
    with pytest.raises(CommandError, match="Name the address"):
        command("judge_endpoint", "--concurrency", "3")
