"""Shared reads."""

from collections import Counter
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Count, Prefetch, Q
from django.db.models.functions import Length
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsets.labels import UNANSWERABLE_REASONS
from evalsets.models import Claim, EvalSet, EvalSetVersion, Item, Passage, Response
from evalsets.text import is_blank

PER_PAGE = 50
UNANSWERABLE_SHARE = (0.10, 0.20)
STRATA_RATIO = 3  # the largest stratum against the smallest


def evalsets_of(person):
    """The eval sets a person belongs to, each with the roles held as `roles`."""
    evalsets = EvalSet.objects.filter(memberships__person=person).distinct().prefetch_related("versions")
    roles: dict[int, list[str]] = {}
    for membership in person.memberships.all():
        roles.setdefault(membership.evalset_id, []).append(membership.role)
    for evalset in evalsets:
        evalset.roles = sorted(roles[evalset.pk])
    return list(evalsets)


def roles_in(evalset: EvalSet, person) -> list[str]:
    return sorted(evalset.memberships.filter(person=person).values_list("role", flat=True))


def whole_material() -> tuple[Prefetch, Prefetch]:
    """Prefetches for responses: passages as `served`, claims without parts of splits as `whole_claims`."""
    return (
        Prefetch("passages", Passage.objects.order_by("rank"), to_attr="served"),
        Prefetch(
            "claims",
            Claim.objects.filter(parent__isnull=True).order_by("position", "pk"),
            to_attr="whole_claims",
        ),
    )


@dataclass(frozen=True)
class Share:
    """One row of a composition table."""

    name: str
    n: int
    of: int

    @property
    def percent(self) -> float | None:
        return 100 * self.n / self.of if self.of else None


@dataclass(frozen=True)
class Composition:
    """What a version consists of, with every item counted in every table."""

    items: int
    answerable: list[Share]
    reasons: list[Share]
    strata: dict[str, list[Share]]
    without_strata: int
    without_response: int
    counts: dict[str, int]
    warnings: list[str]


def stratum_names(version: EvalSetVersion) -> list[str]:
    of_items = version.items.order_by().values_list("strata", flat=True).distinct()
    return sorted({name for strata in of_items for name in strata})


def strata_of(version: EvalSetVersion) -> list[tuple[str, str]]:
    """Every stratum of the version with each of its values, in order."""
    of_items = version.items.order_by().values_list("strata", flat=True).distinct()
    return sorted({pair for strata in of_items for pair in strata.items()})


def composition(version: EvalSetVersion) -> Composition:
    answerable: Counter[bool | None] = Counter()
    reasons: Counter[str] = Counter()
    strata: dict[str, Counter[str]] = {}
    without_strata = 0
    kinds = version.items.order_by().values_list("answerable", "unanswerable_reason", "strata")
    for is_answerable, reason, of_item, n in kinds.annotate(n=Count("pk")):
        answerable[is_answerable] += n
        if is_answerable is False:
            reasons[reason] += n
        without_strata += 0 if of_item else n
        for name, value in of_item.items():
            strata.setdefault(name, Counter())[value] += n
    items = answerable.total()
    return Composition(
        items=items,
        answerable=[
            Share(_("answerable"), answerable[True], items),
            Share(_("unanswerable"), answerable[False], items),
            Share(_("not known"), answerable[None], items),
        ],
        reasons=_reason_shares(reasons),
        strata={name: _shares(values, items) for name, values in sorted(strata.items())},
        without_strata=without_strata,
        without_response=version.items.filter(responses__isnull=True).count(),
        counts=counts(version),
        warnings=_warnings(items, answerable, reasons, strata),
    )


def _shares(values: Counter[str], items: int) -> list[Share]:
    shares = [
        Share(name, n, items) for name, n in sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    missing = items - values.total()
    return [*shares, Share(_("(none given)"), missing, items)] if missing else shares


def _reason_shares(reasons: Counter[str]) -> list[Share]:
    total = reasons.total()
    shares = [Share(_words(reason), reasons[reason], total) for reason in UNANSWERABLE_REASONS]
    return [*shares, Share(_("(no reason given)"), reasons[""], total)] if reasons[""] else shares


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def abstention_warnings(version: EvalSetVersion) -> list[str]:
    """What the mix of questions leaves unsaid about over-answering and over-refusal."""
    answerable: Counter[bool | None] = Counter()
    reasons: Counter[str] = Counter()
    kinds = version.items.order_by().values_list("answerable", "unanswerable_reason").annotate(n=Count("pk"))
    for is_answerable, reason, n in kinds:
        answerable[is_answerable] += n
        if is_answerable is False:
            reasons[reason] += n
    return _abstention_warnings(answerable.total(), answerable, reasons)


def _abstention_warnings(items, answerable, reasons) -> list[str]:
    warnings = []
    low, high = UNANSWERABLE_SHARE
    unanswerable = answerable[False]
    if items and not low <= unanswerable / items <= high:
        warnings.append(
            _(
                "%(percent).1f %% of the items are unanswerable (%(n)d of %(items)d); between 10 and 20 %% "
                "lets over-answering be measured without drowning the rest."
            )
            % {"percent": 100 * unanswerable / items, "n": unanswerable, "items": items}
        )
    if missing := [reason for reason in UNANSWERABLE_REASONS if not reasons[reason]]:
        warnings.append(
            _("No unanswerable item has the reason %(reasons)s: nothing can be said about that kind.")
            % {"reasons": ", ".join(map(_words, missing))}
        )
    if reasons[""]:
        warnings.append(
            ngettext(
                "%(n)d unanswerable item has no reason.",
                "%(n)d unanswerable items have no reason.",
                reasons[""],
            )
            % {"n": reasons[""]}
        )
    if answerable[None]:
        warnings.append(
            ngettext(
                "%(n)d item is not known to be answerable or not; abstention rates leave it out.",
                "%(n)d items are not known to be answerable or not; abstention rates leave them out.",
                answerable[None],
            )
            % {"n": answerable[None]}
        )
    return warnings


def _warnings(items, answerable, reasons, strata) -> list[str]:
    warnings = _abstention_warnings(items, answerable, reasons)
    for name, values in sorted(strata.items()):
        ranked = sorted(values.items(), key=lambda pair: (-pair[1], pair[0]))
        (largest, most), (smallest, least) = ranked[0], ranked[-1]
        if len(values) > 1 and most > STRATA_RATIO * least:
            warnings.append(
                _(
                    "%(name)s is out of balance: %(largest)s has %(most)d items, %(smallest)s has %(least)d; "
                    "read rates per stratum, not one average."
                )
                % {"name": name, "largest": largest, "most": most, "smallest": smallest, "least": least}
            )
    return warnings


def counts(version: EvalSetVersion) -> dict[str, int]:
    """How much there is; parts of split claims are not counted, they are an overlay."""
    return {
        "items": version.items.count(),
        "responses": version.responses.count(),
        "passages": Passage.objects.filter(response__version=version).count(),
        "claims": Claim.objects.filter(response__version=version, parent__isnull=True).count(),
    }


def described(version: EvalSetVersion) -> dict:
    return {
        "evalset": version.evalset.slug,
        "version": version.number,
        "state": version.state,
        "content_hash": version.content_hash,
    }


def runs_of(version: EvalSetVersion):
    """The system runs with how much each holds."""
    runs = list(
        version.runs.select_related("system").annotate(n_responses=Count("responses")).order_by("number")
    )
    claims = dict(
        Claim.objects.filter(response__version=version, parent__isnull=True)
        .order_by()
        .values_list("response__run")
        .annotate(n=Count("pk"))
    )
    empty: Counter[int] = Counter()
    # A blank text is a short one; the database narrows down, Python decides what can be seen.
    short = version.responses.order_by().annotate(length=Length("text")).filter(length__lte=64)
    for run, text in short.values_list("run", "text").iterator():
        empty[run] += is_blank(text)
    for run in runs:
        run.n_claims, run.n_empty = claims.get(run.pk, 0), empty[run.pk]
    return runs


@dataclass(frozen=True)
class Step:
    """One thing to do before anybody can grade."""

    name: str
    done: bool


def next_steps(version: EvalSetVersion, runs: list) -> list[Step]:
    graders = version.evalset.memberships.filter(role="grader").count()
    return [
        Step("freeze", version.is_frozen),
        Step("responses", bool(runs)),
        Step("freeze_runs", bool(runs) and all(run.is_frozen for run in runs)),
        Step("graders", graders >= 2),
    ]


def items_of(version: EvalSetVersion, *, search: str = "", answerable: bool | None = None, reason: str = ""):
    items = Item.objects.filter(version=version)
    if search:
        items = items.filter(Q(item_id__icontains=search) | Q(question__icontains=search))
    if answerable is not None:
        items = items.filter(answerable=answerable)
    return items.filter(unanswerable_reason=reason) if reason else items


def items_page(version: EvalSetVersion, *, number: object, search: str = "") -> Page:
    """One page of items, with the number of responses, without their long texts."""
    items = (
        items_of(version, search=search)
        .annotate(n_responses=Count("responses"))
        .defer("reference_answer", "extra", "expected_documents", "expected_passages")
        .order_by("position")
    )
    page = Paginator(items, PER_PAGE).get_page(number)
    page.object_list = list(page.object_list)
    responses = Response.objects.filter(item__in=page.object_list).order_by("run__number", "sample")
    of_item: dict[int, list[Response]] = {}
    for response in responses.select_related("run__system").defer("text", "retrieval_query", "extra"):
        of_item.setdefault(response.item_id, []).append(response)
    for item in page.object_list:
        item.answers = of_item.get(item.pk, [])
    return page


def response_in(version: EvalSetVersion, pk: int) -> Response | None:
    """A response with everything that is shown of it: its item, run, passages and claims."""
    return (
        version.responses.filter(pk=pk)
        .select_related("item", "run__system")
        .defer("extra", "item__extra")
        .prefetch_related(*whole_material())
        .first()
    )


def responses_of(version: EvalSetVersion, *, run: int | None = None):
    """Whole responses, of one system run or of all."""
    found = version.responses.select_related("item", "run").defer("extra", "item__extra")
    if run is not None:
        found = found.filter(run__number=run)
    return found.prefetch_related(*whole_material())


def neighbours_of(response: Response) -> dict[str, int | None]:
    """The responses before and after this one, in the order of import."""
    others = Response.objects.filter(version=response.version_id).values_list("pk", flat=True)
    return {
        "previous": others.filter(position__lt=response.position).order_by("-position").first(),
        "next": others.filter(position__gt=response.position).order_by("position").first(),
    }


def versions_of(evalset: EvalSet):
    """Newest first, with counts."""
    return (
        evalset.versions.annotate(n_items=Count("items", distinct=True), n_runs=Count("runs", distinct=True))
        .select_related("created_by", "frozen_by")
        .order_by("-number")
    )


def members_of(evalset: EvalSet):
    return evalset.memberships.select_related("person").order_by("person__username", "role")
