"""The one page about a version that is passed on: what was measured, who graded, and what may be quoted.

It is put together from the figures of the gold export, the judges' gates and the claim audits, so that
whoever has the page and the gold folder finds the same numbers in both. Built once and frozen; a change of
the labels, of gold or of a judge's standing makes the next number, and the old page says so.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import translation
from django.utils.translation import gettext as _

from annotate.models import Grader, Round
from calibration import evidence, goldfile
from calibration.extraction import extraction_of, runs_graded
from calibration.gate import TRUSTED
from calibration.gold_export import gate_of, judges_of
from calibration.gold_records import utc
from calibration.measures import Figures
from calibration.models import CalibrationReport, Judge, Summary
from calibration.pairing import dimensions_of, run_names, table_of
from calibration.rate_measures import HEADLINES
from calibration.reports import (
    Standing,
    closed_systems,
    dimensions_judged,
    judge_rates,
    round_facts,
    standing,
    systems_shown_apart,
)
from calibration.summary_page import commands, limits
from calibration.table import Table
from calibration.thresholds import policy_in_force
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion
from evalsets.queries import composition, counts

PAYLOAD_VERSION = 1


class NotSummable(Exception):
    """There is nothing to put on the page yet; the message is a sentence for the person who asked."""


# Building


@transaction.atomic
def build_summary(*, version: EvalSetVersion, round: Round, person=None) -> Summary:
    """Freeze the page as of now. While nothing has changed, the latest one is returned."""
    if not version.is_frozen:
        raise NotSummable(
            _("Freeze {version} first: the page names what it was measured on.").format(version=version)
        )
    if not round.annotations.exists():
        raise NotSummable(_("Nobody has labelled anything in this round yet."))
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    payload = payload_of(version=version, round=round)
    latest = latest_summary(version=version, round=round)
    if latest and _same(latest.payload, payload):
        return latest
    last = version.summaries.aggregate(last=Max("number"))["last"] or 0
    return Summary.objects.create(
        version=version, round=round, number=last + 1, payload=payload, created_by=person
    )


def _same(stored: Figures, made: Figures) -> bool:
    return json.dumps(stored, sort_keys=True) == json.dumps(made, sort_keys=True)


def latest_summary(*, version: EvalSetVersion, round: Round) -> Summary | None:
    return version.summaries.filter(round=round).order_by("-number").first()


def payload_of(*, version: EvalSetVersion, round: Round) -> Figures:
    """Everything the page says. In one language, so that the same data give the same page."""
    with translation.override("en"):
        graded = dimensions_of(round)
        tables = _tables(version, round, graded)
        standings = _standings(version)
        names = {grader.name: grader.pseudonym for grader in Grader.objects.filter(evalset=version.evalset)}
        figures = goldfile.figures_of(
            {name: goldfile.renamed(table, names) for name, table in tables.items()},
            graded=graded,
            unit=version.primary_unit,
        )
        return {
            "payload_version": PAYLOAD_VERSION,
            "app_version": settings.APP_VERSION,
            "version": _version_facts(version),
            "round": round_facts(round),
            "systems": _system_facts(round),
            "measured": counts(version),
            "graded": graded,
            **figures,
            "bar": policy_in_force(version).min_human_agreement,
            "extraction": extraction_of(runs_graded(version, round)),
            "composition": asdict(composition(version)),
            "judges": [_judge_figures(judge, version, found) for judge, found in standings],
            "basis": _basis(tables, standings, round),
        }


def _tables(version: EvalSetVersion, round: Round, graded: list[str]) -> dict[str, Table]:
    names = dict.fromkeys((*LABELS, *graded))
    return {name: table_of(version=version, round=round, dimension=name) for name in names}


Standings = list[tuple[Judge, dict[str, Standing]]]


def _standings(version: EvalSetVersion) -> Standings:
    return [
        (
            judge,
            {
                dimension: standing(judge=judge, version=version, dimension=dimension)
                for dimension in dimensions_judged(judge=judge, version=version)
            },
        )
        for judge in judges_of(version)
    ]


def _version_facts(version: EvalSetVersion) -> Figures:
    return {
        "evalset": version.evalset.slug,
        "name": version.evalset.name,
        "number": version.number,
        "content_hash": version.content_hash,
        "frozen_at": utc(version.frozen_at) if version.frozen_at else None,
        "primary_unit": version.primary_unit,
        "source": version.source_name,
    }


def _system_facts(round: Round) -> list[Figures]:
    runs = list(round.runs.select_related("system").order_by("number"))
    names = run_names(runs)
    return [
        {
            "system_run": run.number,
            "name": names[run.pk],
            "model": run.system.model,
            "provider": run.system.provider,
            "date": run.system.date,
            "content_hash": run.content_hash,
        }
        for run in runs
    ]


def _judge_figures(judge: Judge, version: EvalSetVersion, found: Mapping[str, Standing]) -> Figures:
    """A judge at its gates; its rates are part of the page only where a gate is passed."""
    figures: Figures = {
        "name": judge.name,
        "kind": judge.kind,
        "model": judge.model,
        "provider": judge.provider,
        "gates": [_gate_figures(one, dimension) for dimension, one in found.items()],
    }
    if any(one.trusted for one in found.values()):
        rates = judge_rates(judge=judge, version=version, unit=version.primary_unit)
        figures["rates"] = _without_messages(goldfile.without(rates, goldfile.BY_NUMBER))
    return figures


def _gate_figures(found: Standing, dimension: str) -> Figures:
    payload = found.report.payload if found.report else {}
    pairs = payload.get("agreement", {}).get("pairs", ())
    return gate_of(found, dimension) | {
        "run": found.run,
        "cohen_kappa": next((pair["cohen_kappa"] for pair in pairs if pair["a_kind"] == "gold"), None),
        "same_family": payload.get("judge", {}).get("systems_of_its_family", []),
        "closed_systems": sorted(closed_systems(found.report)) if found.report and found.trusted else [],
        "corrected": payload.get("corrected") if found.trusted else None,
    }


def _without_messages(figures: Any) -> Any:
    """Sentences of conditions name graders."""
    return goldfile.without(figures, "message")


def _basis(tables: Mapping[str, Table], standings: Standings, round: Round) -> Figures:
    """What the page rests on, short enough to be asked again whenever it is opened."""
    return {
        "labels": {name: evidence.labels_hash(table) for name, table in tables.items()},
        "round_state": round.state,
        "gates": [
            [judge.name, dimension, one.state, one.report.pk if one.report else None]
            for judge, found in standings
            for dimension, one in found.items()
        ],
    }


# Reading


def superseding(summary: Summary) -> Summary | None:
    """The latest page about the same round, where it is another one."""
    latest = latest_summary(version=summary.version, round=summary.round)
    return latest if latest and latest.pk != summary.pk else None


def has_changed(summary: Summary) -> bool:
    """Whether labels, gold or a gate are no longer those that the page was built from."""
    tables = _tables(summary.version, summary.round, dimensions_of(summary.round))
    return summary.payload["basis"] != _basis(tables, _standings(summary.version), summary.round)


def shown(summary: Summary) -> Figures:
    """The frozen page, but for the rates of a judge whose gate has closed since: these are withheld again."""
    payload = dict(summary.payload)
    judges = {judge.name: judge for judge in judges_of(summary.version)}
    payload["judges"] = [
        _closed_since(entry, judges.get(entry["name"]), summary.version) for entry in payload["judges"]
    ]
    return payload


def as_json(summary: Summary) -> Figures:
    """The page for a program: the figures as shown, with its number, what came after it, and its limits."""
    payload, later = shown(summary), superseding(summary)
    with translation.override("en"):
        sentences = list(limits(payload, payload["composition"]["warnings"]))
    return {
        "report": summary.number,
        "created_at": utc(summary.created_at),
        "superseded_by": later.number if later else None,
        "changed_since": later is None and has_changed(summary),
        "limits": sentences,
        "commands": commands(payload),
        **payload,
    }


def _closed_since(entry: Figures, judge: Judge | None, version: EvalSetVersion) -> Figures:
    passed = [gate for gate in entry["gates"] if gate["state"] == TRUSTED]
    for gate in passed:
        now = standing(judge=judge, version=version, dimension=gate["dimension"]) if judge else None
        if now and now.report and now.trusted and _still_opens(now.report, gate, entry["rates"]):
            continue
        reason = {"state": now.state if now else None, "changes": now.changes if now else []}
        gates = [other | {"corrected": None} for other in entry["gates"]]
        return entry | {"gates": gates, "rates": {"withheld": reason}}
    return entry


def _still_opens(report: CalibrationReport, gate: Figures, rates: Figures) -> bool:
    """Whether the latest report opens what the page shows: all systems it counts, and those it shows apart.

    Where systems are only shown together, they have to be the same: the difference would tell one of them.
    """
    closed, apart = closed_systems(report), systems_shown_apart(report)
    if not set(closed) <= set(gate["closed_systems"]) or not _apart(rates, gate["dimension"]) <= apart:
        return False
    return bool(apart) or set(closed) == set(gate["closed_systems"])


def _apart(rates: Figures, dimension: str) -> set[str]:
    """The systems of which the page has a rate by themselves."""
    first = HEADLINES[0] if dimension == "grounding" else dimension
    return {
        entry["system"]
        for entry in rates["per_system"]
        if "withheld" not in entry.get(first, {"withheld": 1})
    }
