"""The claims of a version as a lead reviews them: where each comes from and where it stands."""

from dataclasses import dataclass
from itertools import pairwise

from django.db.models import Exists, OuterRef, Prefetch, QuerySet

from calibration.extraction_runs import Scope, extractions_under_way, scope_of
from calibration.judges.extracting import located
from calibration.judges.parsing import ReadClaim
from calibration.models import JudgeRun, Verdict
from evalsets.claims import FILE, Origin, Origins, origin_of, origins_of
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun


@dataclass(frozen=True)
class ClaimsOfRun:
    run: SystemRun
    responses: int
    without: int  # of these, for whatever reason
    origins: Origins
    scope: Scope | None  # None of a frozen run: nothing is extracted from it any more


def claims_by_run(version: EvalSetVersion) -> list[ClaimsOfRun]:
    runs = version.runs.select_related("system").order_by("number")
    return [
        ClaimsOfRun(
            run=run,
            responses=run.responses.count(),
            without=run.responses.filter(claims__isnull=True).count(),
            origins=origins_of([run]),
            scope=None if run.is_frozen else scope_of([run]),
        )
        for run in runs
    ]


def shown_responses(run: SystemRun, *, only_without: bool) -> QuerySet[Response]:
    """In order, with their claims."""
    claims = Claim.objects.filter(parent__isnull=True).order_by("position", "pk")
    found = run.responses.select_related("item", "run").order_by("position")
    if only_without:
        found = found.filter(~Exists(claims.filter(response=OuterRef("pk"))))
    return found.prefetch_related(Prefetch("claims", claims, to_attr="reviewed_claims"))


@dataclass(frozen=True)
class ReviewedClaim:
    claim: Claim
    origin: Origin
    number: int
    place: int | None  # which marked piece of the response it goes back to

    @property
    def by(self) -> str:
        return self.origin.get("by", FILE)

    @property
    def first(self) -> str:
        """What it said before it was corrected."""
        return str(self.origin.get("first", ""))


@dataclass(frozen=True)
class Piece:
    """A stretch of the response; `claims` are the numbers of those that go back to it."""

    text: str
    claims: list[int]


@dataclass(frozen=True)
class Reviewed:
    response: Response
    claims: list[ReviewedClaim]
    pieces: list[Piece]
    looked: Verdict | None  # the latest row of an extraction about it
    is_waiting: bool  # an extraction that is under way has not answered yet

    @property
    def found_none(self) -> bool:
        return bool(not self.claims and self.looked and self.looked.state == Verdict.State.VALID)

    @property
    def failed(self) -> bool:
        return bool(not self.claims and self.looked and self.looked.state == Verdict.State.FAILED)


def reviewed(response: Response) -> Reviewed:
    rows = getattr(response, "reviewed_claims", None)
    if rows is None:
        rows = list(response.claims.filter(parent__isnull=True).order_by("position", "pk"))
    spans = _spans(response, rows)
    looked = response.verdicts.filter(run__purpose=JudgeRun.Purpose.EXTRACTION).order_by("-pk").first()
    is_open = looked is not None and looked.state in (Verdict.State.PENDING, Verdict.State.CLAIMED)
    return Reviewed(
        response=response,
        claims=[
            ReviewedClaim(claim, origin_of(claim), number, number if span else None)
            for number, (claim, span) in enumerate(zip(rows, spans, strict=True), start=1)
        ],
        pieces=_pieces(response.text, spans),
        looked=looked,
        is_waiting=is_open and extractions_under_way([response.run]).exists(),
    )


def _spans(response: Response, claims: list[Claim]) -> list[tuple[int, int] | None]:
    """As they were stored, where that still makes sense; else where the claim's own words stand."""
    found = located(response.text, [ReadClaim(claim.text, "") for claim in claims])
    return [
        _stored(origin_of(claim).get("span"), len(response.text)) or own
        for claim, own in zip(claims, found, strict=True)
    ]


def _stored(span: object, length: int) -> tuple[int, int] | None:
    """A file may hold anything under this name."""
    if not (isinstance(span, list) and len(span) == 2 and all(type(end) is int for end in span)):
        return None
    start, end = span
    return (start, end) if 0 <= start < end <= length else None


def _pieces(text: str, spans: list[tuple[int, int] | None]) -> list[Piece]:
    """The response cut wherever a claim begins or ends."""
    known = [(number, span) for number, span in enumerate(spans, start=1) if span]
    cuts = sorted({0, len(text), *(end for _number, span in known for end in span)})
    return [
        Piece(text[start:end], [number for number, span in known if span[0] <= start and end <= span[1]])
        for start, end in pairwise(cuts)
    ]
