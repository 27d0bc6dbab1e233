"""Reads of the claim audit. What was marked of a response is closed to a lead who still has to grade it."""

from dataclasses import dataclass

from django.db.models import Count, QuerySet

from annotate.access import responses_to_grade
from annotate.models import AuditedResponse, AuditSample, ClaimAudit
from evalsets.models import Claim, EvalSetVersion, SystemRun


@dataclass(frozen=True)
class SampleProgress:
    """How far a sample is, and where this person goes on (None: nothing is left for them)."""

    sample: AuditSample
    runs: list[SystemRun]
    total: int
    done: int
    closed: int  # not looked at, and closed to this person until they have graded the response
    next_position: int | None

    @property
    def is_done(self) -> bool:
        return self.done == self.total


@dataclass(frozen=True)
class MarkedClaim:
    number: int
    claim: Claim
    mark: str  # empty: not marked yet
    is_now: bool
    text: str  # as it was marked: the claim of a draft may have been corrected since

    @property
    def was_corrected(self) -> bool:
        return self.text != self.claim.text

    @property
    def says(self) -> str:
        return str(ClaimAudit.Mark(self.mark).label) if self.mark else ""


@dataclass(frozen=True)
class AuditScreen:
    """One response of a sample with its claims; `now` is the one to mark, None when all are marked."""

    audited: AuditedResponse
    claims: list[MarkedClaim]
    now: MarkedClaim | None
    progress: SampleProgress
    before: int | None
    after: int | None
    removed: list[ClaimAudit]  # marked, and removed by hand since: these marks count as well

    @property
    def back(self) -> int | None:
        """The claim before the one to mark."""
        earlier = self.claims[: self.now.number - 1] if self.now else self.claims
        return earlier[-1].claim.pk if earlier else None


def progress_of_sample(sample: AuditSample, person) -> SampleProgress:
    counts = sample.responses.aggregate(total=Count("pk"), done=Count("done_at"))
    waiting = sample.responses.filter(done_at__isnull=True)
    still = waiting.filter(response__in=responses_to_grade(person, sample.version))
    following = waiting.exclude(pk__in=still.values("pk")).order_by("position").first()
    return SampleProgress(
        sample=sample,
        runs=list(sample.runs.select_related("system").order_by("number")),
        total=counts["total"],
        done=counts["done"],
        closed=still.count(),
        next_position=following.position if following else None,
    )


def samples_of(version: EvalSetVersion, person) -> list[SampleProgress]:
    """Newest first."""
    samples = version.audit_samples.select_related("created_by", "version").order_by("-number")
    return [progress_of_sample(sample, person) for sample in samples]


def audit_screen(audited: AuditedResponse, person, claim_id: int | None = None) -> AuditScreen:
    """The response; the claim asked for is the one to mark, else the first without a mark."""
    given = list(audited.claims.order_by("pk"))
    marks = {marked.claim_id: marked for marked in given if marked.claim_id}
    extracted = list(audited.response.claims.filter(parent__isnull=True))
    # What was added after the audit was not there to be marked.
    unmarked = [claim.pk for claim in extracted if claim.pk not in marks and not audited.done_at]
    asked = [claim.pk for claim in extracted if claim.pk == claim_id]
    now = next(iter([*asked, *unmarked]), None)
    claims = [
        _marked(number, claim, marks.get(claim.pk), claim.pk == now)
        for number, claim in enumerate(extracted, start=1)
    ]
    position, total = audited.position, audited.sample.responses.count()
    return AuditScreen(
        audited=audited,
        claims=claims,
        now=next((claim for claim in claims if claim.is_now), None),
        progress=progress_of_sample(audited.sample, person),
        before=position - 1 if position > 1 else None,
        after=position + 1 if position < total else None,
        removed=[marked for marked in given if marked.claim_id is None],
    )


def _marked(number: int, claim: Claim, marked: ClaimAudit | None, is_now: bool) -> MarkedClaim:
    if marked is None:
        return MarkedClaim(number, claim, "", is_now, claim.text)
    return MarkedClaim(number, claim, marked.mark, is_now, marked.text)


def drawn_audits(runs: list[SystemRun]) -> QuerySet[AuditedResponse]:
    return AuditedResponse.objects.filter(response__run__in=runs).order_by()


def latest_audits(runs: list[SystemRun]) -> QuerySet[AuditedResponse]:
    """What counts: of each response the latest audit that was finished."""
    drawn = drawn_audits(runs)
    finished = drawn.filter(done_at__isnull=False).order_by("sample__number").values_list("response_id", "pk")
    return drawn.filter(pk__in=dict(finished).values())


def faulty_claims(runs: list[SystemRun], person, version: EvalSetVersion) -> QuerySet[ClaimAudit]:
    """The claims that are not well split, as far as this person may see what was said of them."""
    return (
        ClaimAudit.objects.filter(audited__in=latest_audits(runs))
        .exclude(mark=ClaimAudit.Mark.WELL_SPLIT)
        .exclude(audited__response__in=responses_to_grade(person, version))
        .select_related("claim", "audited__response", "audited__sample")
        .order_by("audited__sample__number", "audited__position", "claim__position")
    )
