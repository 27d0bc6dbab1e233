"""The gate's thresholds: set before a run is looked at, kept with it, and every later change in the open."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from calibration.gate import GatePolicy
from calibration.models import CalibrationReport, GateThresholds, JudgeRun
from evalsets.models import EvalSetVersion

NAMES = tuple(field.name for field in fields(GatePolicy))


class BadThresholds(Exception):
    """The thresholds cannot be used; the message is a sentence for the person who set them."""


def server_policy() -> GatePolicy:
    return GatePolicy(**settings.TRUST_GATE)


def policy_in_force(version: EvalSetVersion) -> GatePolicy:
    """The version's own thresholds where it has any, else the server's."""
    own = version.thresholds.order_by("-pk").first()
    return GatePolicy(**{**settings.TRUST_GATE, **(own.thresholds if own else {})})


@transaction.atomic
def set_thresholds(
    *, version: EvalSetVersion, thresholds: Mapping[str, float], reason: str, person=None
) -> GateThresholds | None:
    """Set every threshold of a version; one that equals the server's is not kept. None: nothing changed."""
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    try:
        wanted = GatePolicy(**{**settings.TRUST_GATE, **thresholds})
    except (TypeError, ValueError) as error:
        raise BadThresholds(str(error)) from error
    if wanted == policy_in_force(version):
        return None
    if not reason.strip():
        raise BadThresholds(_("Say why the thresholds change: it stands in every report from now on."))
    server = server_policy().as_dict()
    own = {name: value for name, value in wanted.as_dict().items() if value != server[name]}
    return GateThresholds.objects.create(version=version, thresholds=own, reason=reason.strip(), by=person)


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The thresholds that are not what they were."""
    return [
        {"name": name, "before": before[name], "now": now[name]}
        for name in NAMES
        if name in before and before[name] != now[name]
    ]


def in_words(changed: list[dict[str, Any]]) -> str:
    return ", ".join(f"{change['name']} {change['before']:g} → {change['now']:g}" for change in changed)


def thresholds_of_run(judge_run: JudgeRun) -> dict[str, Any]:
    """What held when the run was started, what changed since, and whether it had been looked at by then."""
    now = policy_in_force(judge_run.version).as_dict()
    changed = differences(judge_run.policy, now)
    facts: dict[str, Any] = {"at_start": judge_run.policy or None, "changed": changed, "after_seen": False}
    if not changed:
        return facts
    later = judge_run.version.thresholds.filter(at__gt=judge_run.created_at).select_related("by")
    facts["changes"] = [
        {
            "at": row.at.isoformat(),
            "by": row.by.get_username() if row.by else None,
            "reason": row.reason,
            "thresholds": row.thresholds,
        }
        for row in later
    ]
    return facts | {"after_seen": _was_seen_before(judge_run, list(later), now)}


def _was_seen_before(judge_run: JudgeRun, later: list[GateThresholds], now: dict[str, Any]) -> bool:
    """A report under other thresholds, or a look at verdicts before the last change, came first.

    When the server's own thresholds changed is not known; a look at any time counts as earlier then.
    """
    reports = CalibrationReport.objects.filter(judge_run=judge_run).values_list(
        "payload__gate__policy", flat=True
    )
    if any(policy != now for policy in reports):
        return True
    looks = judge_run.sightings.all()
    return looks.filter(at__lt=later[-1].at).exists() if later else looks.exists()
