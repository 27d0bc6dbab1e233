"""What later runs have said about the judge of a report, in words."""

from collections.abc import Iterable

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calibration.models import DriftFinding, JudgeRun

CORRECTNESS = "correctness"  # the same targets, judged right less or more often
FLAGGED, UNVERIFIABLE = "flagged", "unverifiable"  # shares on the control chart
VALID = "valid"  # too few valid verdicts
FRESH = "fresh"  # agreement with people on targets labelled since
FRESH_GATE = "fresh_gate"  # the gate itself, on those


def alarms_about(runs: Iterable[JudgeRun], dimension: str) -> list[str]:
    """Why the trust of these runs' reports has ended, a sentence for each run that sounded an alarm."""
    found = DriftFinding.objects.filter(judge_run__in=list(runs), dimension=dimension).exclude(alarms=[])
    return [sentence_of(finding) for finding in found.select_related("observed", "round").order_by("pk")]


def sentence_of(finding: DriftFinding) -> str:
    """What a finding says; without an alarm, that nothing was found."""
    parts = [_part(alarm, finding.payload) for alarm in finding.alarms] or [_("nothing has changed")]
    said = "; ".join(parts)
    if finding.is_sentinel:
        return _("sentinel run {number}: {said}").format(number=finding.observed.number, said=said)
    return _("judge run {number} against people in round {round}: {said}").format(
        number=finding.observed.number, round=finding.round.number, said=said
    )


def _part(alarm: str, payload: dict) -> str:
    if alarm == CORRECTNESS:
        drift = payload["sentinel"]
        return _("right on {now} of {n} targets with gold, {before} before (exact McNemar p {p:.4f})").format(
            now=drift["correct_now"], before=drift["correct_before"], n=drift["n"], p=drift["mcnemar"]["p"]
        )
    if alarm in (FLAGGED, UNVERIFIABLE):
        point = payload["shares"][alarm]
        return _("{share} {value:.1%}, outside the limits {lower:.1%} to {upper:.1%}").format(
            share=share_words(alarm, payload["dimension"]),
            value=point["share"]["value"],
            lower=point["lower"],
            upper=point["upper"],
        )
    if alarm == VALID:
        return _("only {valid} of {n} verdicts are valid").format(**payload["valid"])
    if alarm == FRESH_GATE:
        return _("the gate is not passed on the fresh targets")
    change = payload["agreement"]
    return ngettext(
        "agrees with gold on {now} of {n} fresh target, {before} of {n_before} before (p {p:.4f})",
        "agrees with gold on {now} of {n} fresh targets, {before} of {n_before} before (p {p:.4f})",
        change["n"],
    ).format(**change)


def share_words(name: str, dimension: str) -> str:
    if name == UNVERIFIABLE:
        return _("unverifiable share")
    return _("flagged share") if dimension == "grounding" else _("share of refusals")
