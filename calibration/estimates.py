"""What a judge run would take, before it starts: calls, tokens, money and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Avg, Sum
from django.db.models.functions import Length

from annotate.models import RubricVersion
from annotate.services.targets import Target
from calibration.judges.material import Setup, prompt_of, setup_of
from calibration.judges.prompts import CHARACTERS_OF_A_TOKEN, Prompt
from calibration.leases import DEFAULT_CONCURRENCY
from calibration.models import Call, Endpoint, Judge, JudgeRun, Verdict
from calibration.services import fingerprint_of, requested_of
from calibration.spending import cost_of
from calibration.targets import conditional_targets_of, targets_of
from evalsets.models import Claim, Passage, Response, SystemRun

SAMPLE = 300  # prompts that are built; the rest is reckoned from them
MEASURED_CALLS = 500


@dataclass(frozen=True)
class Measured:
    """What earlier calls of the judge took; where there are none, a rule of thumb, and no time."""

    calls: int
    tokens_a_character: float
    cached_share: float  # of the tokens of a prompt
    completion_tokens: float
    milliseconds: float | None


@dataclass(frozen=True)
class Estimate:
    targets: int
    conditional: int  # asked only where the judge's own verdict leads there: so many at most
    from_cache: int
    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: Decimal | None
    currency: str
    seconds: float | None
    measured_calls: int

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def minutes(self) -> float | None:
        return None if self.seconds is None else self.seconds / 60


def estimate(
    *,
    judge: Judge,
    rubric_version: RubricVersion,
    system_runs: Sequence[SystemRun],
    dimensions: Sequence[str],
    repeats: int = 1,
    use_cache: bool = True,
) -> Estimate:
    """Of a judge that calls somebody. Conditional questions are reckoned as if all were asked."""
    asked = {"system_runs": system_runs, "dimensions": dimensions, "rubric_version": rubric_version}
    return estimate_of(
        judge=judge,
        rubric_version=rubric_version,
        targets=targets_of(**asked),  # type: ignore[arg-type]
        conditional=conditional_targets_of(**asked),  # type: ignore[arg-type]
        repeats=repeats,
        use_cache=use_cache,
    )


def estimate_of(
    *,
    judge: Judge,
    rubric_version: RubricVersion,
    targets: list[Target],
    conditional: Sequence[Target] = (),
    repeats: int = 1,
    use_cache: bool = False,
) -> Estimate:
    """Of these targets."""
    everything = [*targets, *conditional]
    return reckoned(
        judge=judge,
        requested=requested_of(judge, rubric_version),
        prompts=_prompts(spread(everything), setup_of(judge, rubric_version)),
        targets=len(targets) * repeats,
        conditional=len(conditional) * repeats,
        repeats=repeats,
        use_cache=use_cache,
    )


def reckoned(
    *,
    judge: Judge,
    requested: Mapping[str, Any],
    prompts: Sequence[Prompt],
    targets: int,
    conditional: int = 0,
    repeats: int = 1,
    use_cache: bool = True,
    purpose: str = JudgeRun.Purpose.JUDGING,
) -> Estimate:
    """From some of the prompts, and from what calls for this purpose took before."""
    total = targets + conditional
    share = _share_in_cache(judge, fingerprint_of(dict(requested)), prompts, repeats) if use_cache else 0.0
    calls = round(total * (1 - share))
    measured = measured_calls(judge, prompts, purpose)
    prompt_tokens = round(calls * _mean(_characters(prompts)) * measured.tokens_a_character)
    cached_tokens = round(prompt_tokens * measured.cached_share)
    completion_tokens = round(calls * measured.completion_tokens)
    return Estimate(
        targets=targets,
        conditional=conditional,
        from_cache=total - calls,
        calls=calls,
        prompt_tokens=prompt_tokens,
        cached_tokens=cached_tokens,
        completion_tokens=completion_tokens,
        cost=cost_of(prompt_tokens, completion_tokens, judge.prices, cached_tokens=cached_tokens),
        currency=judge.prices.get("currency", ""),
        seconds=_seconds(judge, requested["base_url"], calls, prompt_tokens + completion_tokens, measured),
        measured_calls=measured.calls,
    )


def _characters(prompts: Sequence[Prompt]) -> list[int]:
    return [sum(len(text) for _role, text in prompt.messages) for prompt in prompts]


def _mean(numbers: Sequence[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def measured_calls(judge: Judge, prompts: Sequence[Prompt], purpose: str) -> Measured:
    answered = Call.objects.filter(run__judge=judge, run__purpose=purpose, failure="")
    latest = answered.order_by("-pk")[:MEASURED_CALLS]
    calls = Call.objects.filter(pk__in=list(latest.values_list("pk", flat=True)))
    sums = calls.aggregate(
        completion=Avg("completion_tokens"),
        milliseconds=Avg("milliseconds"),
        prompt=Sum("prompt_tokens"),
        cached=Sum("cached_tokens", default=0),
    )
    kept = calls.exclude(request="").filter(prompt_tokens__isnull=False)
    sent = kept.aggregate(tokens=Sum("prompt_tokens"), characters=Sum(Length("request")))
    known = sent["tokens"] and sent["characters"]
    return Measured(
        calls=calls.count(),
        tokens_a_character=sent["tokens"] / sent["characters"] if known else 1 / CHARACTERS_OF_A_TOKEN,
        cached_share=sums["cached"] / sums["prompt"] if sums["prompt"] else 0.0,
        completion_tokens=sums["completion"] or _mean([prompt.answer_tokens for prompt in prompts]),
        milliseconds=sums["milliseconds"],
    )


def spread(targets: list) -> list:
    return targets[:: max(1, len(targets) // SAMPLE)][:SAMPLE]


def _prompts(targets: list[Target], setup: Setup) -> list[Prompt]:
    return [prompt_of(verdict, setup) for verdict in verdicts_for(targets)]


def verdicts_for(targets: Sequence[Target]) -> list[Verdict]:
    """Rows as they would be made, with their material, and not stored."""
    responses = (
        Response.objects.select_related("item")
        .prefetch_related("passages")
        .in_bulk([target.response_id for target in targets])
    )
    claims = Claim.objects.select_related("parent").in_bulk([t.claim_id for t in targets if t.claim_id])
    passages = Passage.objects.in_bulk([t.passage_id for t in targets if t.passage_id])
    return [
        Verdict(
            dimension=target.dimension,
            response=responses[target.response_id],
            claim=claims.get(target.claim_id),
            passage=passages.get(target.passage_id),
        )
        for target in targets
    ]


def _share_in_cache(judge: Judge, fingerprint: str, prompts: Sequence[Prompt], repeats: int) -> float:
    if not prompts:
        return 0.0
    found = Verdict.objects.filter(
        input_sha256__in={prompt.sha256 for prompt in prompts},
        run__requested_fingerprint=fingerprint,
        run__version__evalset=judge.evalset_id,
        run_index__lte=repeats,
        state=Verdict.State.VALID,
        from_cache=False,
    )
    return found.values("input_sha256", "run_index").distinct().count() / (len(prompts) * repeats)


def _seconds(judge: Judge, base_url: str, calls: int, tokens: int, measured: Measured) -> float | None:
    """As many at a time as the judge and its endpoint allow, and no more tokens a minute than it does."""
    if measured.milliseconds is None:
        return None
    at_once = int(judge.parameters.get("concurrency", DEFAULT_CONCURRENCY))
    endpoint = Endpoint.objects.filter(base_url=base_url).first()
    if endpoint and endpoint.concurrency:
        at_once = min(at_once, endpoint.concurrency)
    seconds = calls * measured.milliseconds / 1000 / max(1, at_once)
    if endpoint and endpoint.tokens_per_minute:
        seconds = max(seconds, 60 * tokens / endpoint.tokens_per_minute)
    return seconds
