"""How well the claims were extracted, by the claim audits: it stands beside every rate of claims."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Count

from annotate.auditing import drawn_audits, latest_audits
from annotate.models import ClaimAudit, Round
from calibration import stats
from calibration.measures import Figures
from calibration.pairing import run_names
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun


@dataclass(frozen=True)
class Audited:
    """One response of a sample. `missing` is None until it is finished: none of its marks count before."""

    item: int
    run: int
    strata: dict[str, str]
    marks: tuple[str | None, ...]  # one for each extracted claim
    missing: int | None


def extraction_of(runs: Iterable[SystemRun]) -> Figures:
    """Extraction error and missed claims of these runs, and of each system and stratum apart."""
    runs = list(runs)
    names = run_names(runs)
    audited = list(_audited(runs))
    strata = sorted({pair for one in audited for pair in one.strata.items()})
    return _figures(audited) | {
        "responses": Response.objects.filter(run__in=runs).count(),
        "per_system": [
            {"system": name} | _figures([one for one in audited if one.run == run])
            for run, name in names.items()
        ],
        "per_stratum": [
            {"name": name, "value": value}
            | _figures([one for one in audited if one.strata.get(name) == value])
            for name, value in strata
        ],
    }


def with_extraction(figures: Figures, runs: Iterable[SystemRun]) -> Figures:
    """Rates of claims with the extraction error of what they count: of all, of each system and stratum.

    Where there is no rate of claims, or it is withheld as a whole, there is nothing for it to stand beside.
    """
    if "hallucination" not in figures or "systems" not in figures:
        return figures
    runs = list(runs)
    names = run_names(runs)
    left_out = {entry["system"] for entry in figures.get("left_out_systems", {}).get("grounding", ())}
    whole = extraction_of(runs)
    apart = {entry.pop("system"): entry for entry in whole["per_system"]}
    counted = extraction_of(run for run in runs if names[run.pk] not in left_out) if left_out else whole
    del counted["per_system"]
    by_stratum = {(entry.pop("name"), entry.pop("value")): entry for entry in counted.pop("per_stratum")}
    nobody = _figures([])
    return figures | {
        "extraction": counted,
        "per_system": [
            entry | {"extraction": apart.get(entry["system"], nobody)} for entry in figures["per_system"]
        ],
        "per_stratum": [
            entry | {"extraction": by_stratum.get((entry["name"], entry["value"]), nobody)}
            for entry in figures["per_stratum"]
        ],
    }


def runs_graded(version: EvalSetVersion, round: Round | None) -> list[SystemRun]:
    """The system runs behind the rates of people."""
    return list((round.runs if round else version.runs).select_related("system").order_by("number"))


def _figures(audited: Sequence[Audited]) -> Figures:
    done = [one for one in audited if one.missing is not None]
    extraction = stats.extraction_error(
        [mark for one in audited for mark in one.marks],
        [one.item for one in audited for _mark in one.marks],
        [one.missing or 0 for one in done],
        [one.item for one in done],
    )
    return extraction.as_dict() | {
        "responses_audited": len(done),
        "responses_waiting": len(audited) - len(done),
        "marks": dict(Counter(mark for one in done for mark in one.marks if mark)),
        "sentence": extraction.explain(),
    }


def _audited(runs: list[SystemRun]) -> Iterator[Audited]:
    """Of each drawn response the latest finished audit, else one that waits.

    What was marked counts, not what is there now: a correction mends the claims that somebody looked at, and
    says nothing about the others.
    """
    fields = (
        "pk",
        "response_id",
        "response__item_id",
        "response__run_id",
        "response__item__strata",
        "missing",
    )
    finished = {row[1]: row for row in latest_audits(runs).values_list(*fields)}
    waiting = {row[1]: row for row in drawn_audits(runs).values_list(*fields) if row[1] not in finished}
    marks: dict[int, list[str | None]] = {}
    given = ClaimAudit.objects.filter(audited__in=[row[0] for row in finished.values()])
    for response, mark in given.order_by("pk").values_list("audited__response_id", "mark"):
        marks.setdefault(response, []).append(mark)
    unmarked = Claim.objects.filter(response__in=waiting, parent__isnull=True).order_by()
    for response, count in unmarked.values_list("response_id").annotate(n=Count("pk")):
        marks[response] = [None] * count
    for response, (_pk, _response, item, run, strata, missing) in (finished | waiting).items():
        is_done = response in finished
        yield Audited(
            item=item,
            run=run,
            strata=strata,
            marks=tuple(marks.get(response, ())),
            missing=missing if is_done else None,
        )
