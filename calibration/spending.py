"""What calls cost, and what a run may still spend. Prices are for a million tokens."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, Sum

from calibration.models import JudgeRun

MILLION = Decimal(1_000_000)
# Answered calls of which the server told no tokens: nobody knows what they cost.
UNCOUNTED = Q(failure="") & (Q(prompt_tokens=None) | Q(completion_tokens=None))


@dataclass(frozen=True)
class Budget:
    """What a run may take at most; None: no limit. Calls under way when it is reached end and count."""

    calls: int | None = None
    tokens: int | None = None
    money: Decimal | None = None

    @property
    def fields(self) -> dict[str, Any]:
        return {"budget_calls": self.calls, "budget_tokens": self.tokens, "budget_money": self.money}


NO_BUDGET = Budget()


@dataclass(frozen=True)
class Spent:
    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    uncounted: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def cost(self, prices: dict[str, str]) -> Decimal | None:
        return cost_of(self.prompt_tokens, self.completion_tokens, prices, cached_tokens=self.cached_tokens)


def cost_of(
    prompt_tokens: int, completion_tokens: int, prices: dict[str, str], *, cached_tokens: int = 0
) -> Decimal | None:
    """The price of these tokens, or None where the judge has no prices.

    Cached tokens are some of the prompt's, and cost as much as the others where they have no price.
    """
    if not prices:
        return None
    asked, answered = Decimal(prices["prompt"]), Decimal(prices["completion"])
    known = Decimal(prices.get("cached", asked))
    read = (prompt_tokens - cached_tokens) * asked + cached_tokens * known
    return (read + completion_tokens * answered) / MILLION


def spent_in(run: JudgeRun) -> Spent:
    sums = run.calls.aggregate(
        calls=Count("pk"),
        uncounted=Count("pk", filter=UNCOUNTED),
        prompt_tokens=Sum("prompt_tokens", default=0),
        cached_tokens=Sum("cached_tokens", default=0),
        completion_tokens=Sum("completion_tokens", default=0),
    )
    return Spent(**sums)


def has_budget(run: JudgeRun) -> bool:
    return any(limit is not None for limit in (run.budget_calls, run.budget_tokens, run.budget_money))


def calls_left(run: JudgeRun, *, under_way: int, tokens_each: int) -> int | None:
    """How many more calls the run's budget allows beside those under way; None without a budget.

    Tokens and money are known only after a call: they are reckoned with what a call took so far. Where the
    server tells no tokens they are never known, and such a limit allows nothing more.
    """
    if not has_budget(run):
        return None
    spent = spent_in(run)
    left: list[Decimal] = []
    if run.budget_calls is not None:
        left.append(Decimal(run.budget_calls - spent.calls))
    if cannot_be_kept(run, spent):
        left.append(Decimal(0))
    if run.budget_tokens is not None:
        each = max(1, spent.tokens // spent.calls if spent.calls else tokens_each)
        left.append(_times(Decimal(run.budget_tokens - spent.tokens), Decimal(each)))
    cost = spent.cost(run.prices)
    if run.budget_money is not None and cost is not None:
        expected = cost_of(tokens_each, 0, run.prices) or Decimal(0)
        left.append(_times(run.budget_money - cost, cost / spent.calls if spent.calls else expected))
    return max(0, int(min(left)) - under_way) if left else None


def cannot_be_kept(run: JudgeRun, spent: Spent) -> bool:
    """Whether a limit of tokens or money meets a server that does not count tokens."""
    return bool(spent.uncounted) and (run.budget_tokens is not None or run.budget_money is not None)


def _times(rest: Decimal, each: Decimal) -> Decimal:
    """How often what a call takes is in the rest; once more, at least, while there is any."""
    if rest <= 0:
        return Decimal(0)
    return max(Decimal(1), rest // each) if each > 0 else Decimal(1_000_000)


def budget_in_words(run: JudgeRun) -> str:
    """As it stands in the reason of a stop; no language's words, only the figures."""
    spent = spent_in(run)
    words = []
    if run.budget_calls is not None:
        words.append(f"calls: {spent.calls} of {run.budget_calls}")
    if run.budget_tokens is not None:
        words.append(f"tokens: {spent.tokens} of {run.budget_tokens}")
    cost = spent.cost(run.prices)
    if run.budget_money is not None and cost is not None:
        currency = run.prices.get("currency", "")
        words.append(f"{currency}: {cost.normalize():f} of {run.budget_money.normalize():f}".strip(": "))
    if cannot_be_kept(run, spent):
        words.append(f"calls without a count of tokens: {spent.uncounted}")
    return "; ".join(words)
