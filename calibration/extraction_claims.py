"""What becomes of extracted claims: stored with where they come from, unless the response was settled."""

from collections.abc import Iterable, Sequence

from annotate.services import forget_audits
from calibration.judges.clients import Permanent
from calibration.judges.extracting import located
from calibration.judges.parsing import ReadClaim
from calibration.models import JudgeRun, Verdict
from evalsets.claims import (
    EXTRACTION,
    FILE,
    NewClaim,
    kind_of,
    labelled,
    now_in_words,
    replace_claims,
    settled_at,
)
from evalsets.models import Claim, Response, SystemRun


def overtaken(run: JudgeRun, responses: Iterable[int], *, hold: bool = False) -> dict[int, Permanent]:
    """Those of the responses whose claims the extraction may no longer settle, and why.

    With `hold` nobody can freeze their system runs before the transaction ends.
    """
    wanted = set(responses)
    system_runs = SystemRun.objects.filter(responses__in=wanted).distinct()
    if hold:
        ids = list(system_runs.values_list("pk", flat=True))
        system_runs = SystemRun.objects.select_for_update(no_key=True).filter(pk__in=ids).order_by("pk")
    frozen = [one.pk for one in system_runs if one.is_frozen]
    of_frozen = Response.objects.filter(pk__in=wanted, run__in=frozen)
    gone = dict.fromkeys(
        of_frozen.values_list("pk", flat=True),
        "the system run was frozen",
    )
    claims = Claim.objects.filter(response__in=wanted, parent__isnull=True).only("response_id", "extra")
    for claim in claims.order_by("response_id", "position"):
        at = settled_at(claim)
        if kind_of(claim) == FILE:
            gone.setdefault(claim.response_id, "it came with claims")
        elif at and at > run.created_at:
            gone.setdefault(claim.response_id, "its claims were changed after the extraction began")
    for pk in labelled(wanted):
        gone.setdefault(pk, "its claims have labels")
    return {pk: Permanent(Verdict.Failure.OVERTAKEN, why) for pk, why in gone.items()}


def store_extracted(
    *, run: JudgeRun, response: Response, claims: Sequence[ReadClaim], resolved_model: str
) -> list[Claim]:
    """Instead of what an earlier extraction stored; what was marked of that says nothing about these."""
    asked = run.requested
    origin = {
        "by": EXTRACTION,
        "extraction": run.number,
        "prompt_version": asked["prompt_version"],
        "prompt_sha256": asked["prompt_sha256"],
        "provider": asked["provider"],
        "model": asked["model"],
        "resolved_model": resolved_model,
        "at": now_in_words(),
    }
    forget_audits(response=response)
    spans = located(response.text, claims)
    return replace_claims(
        response=response,
        claims=[
            NewClaim(claim.text, {**origin, "span": list(span) if span else None})
            for claim, span in zip(claims, spans, strict=True)
        ],
    )
