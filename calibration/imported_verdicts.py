"""Verdicts that came with a file: a complete run per judge that is named there."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from calibration.models import Judge, JudgeRun, Verdict
from calibration.services import BATCH, BUILT_IN, Refused, next_run_number
from evalsets.bulk import Bulk
from evalsets.labels import LABELS, TARGET_OF
from evalsets.models import EvalSet, EvalSetVersion, SystemRun

_VERDICTS = Bulk(Verdict, "run", "response", "claim", "dimension", "label", "state")


@transaction.atomic
def record_imported_verdicts(
    *,
    version: EvalSetVersion,
    runs: Sequence[SystemRun],
    verdicts: Iterable[tuple[str, int, int | None, str, str]],
) -> list[JudgeRun]:
    """Store (judge name, response, claim or None, dimension, label) rows: one complete run per judge.

    A later import into the same version extends the judge's imported run.
    """
    EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    rows: dict[str, list[tuple[int, int | None, str, str]]] = defaultdict(list)
    for judge_name, response, claim, dimension, label in verdicts:
        _refuse_label(dimension, label, claim)
        rows[judge_name].append((response, claim, dimension, label))
    return [_import_run(version, runs, name, own) for name, own in rows.items()]


def _refuse_label(dimension: str, label: str, claim: int | None) -> None:
    if label not in LABELS.get(dimension, ()) or (TARGET_OF[dimension] == "claim") != (claim is not None):
        raise Refused(
            _("{label!r} is not a label of the dimension {dimension!r}.").format(
                label=label, dimension=dimension
            )
        )


def _import_run(version, runs, name, rows) -> JudgeRun:
    run = JudgeRun.objects.filter(
        version=version, judge=_imported_judge(version.evalset, name), origin=JudgeRun.Origin.IMPORTED
    ).first()
    now = timezone.now()
    if run is None:
        run = JudgeRun.objects.create(
            judge=_imported_judge(version.evalset, name),
            version=version,
            number=next_run_number(version),
            origin=JudgeRun.Origin.IMPORTED,
            state=JudgeRun.State.COMPLETE,
            finished_at=now,
        )
    _refuse_known_targets(run, name, rows)
    run.system_runs.add(*runs)
    run.dimensions = sorted(
        {*run.dimensions, *(dimension for _, _, dimension, _ in rows)}, key=list(LABELS).index
    )
    run.save(update_fields=["dimensions"])
    for start in range(0, len(rows), BATCH):
        _VERDICTS.insert([(run.pk, *row, Verdict.State.VALID.value) for row in rows[start : start + BATCH]])
    return run


def _imported_judge(evalset: EvalSet, name: str) -> Judge:
    """A judge of kind imported; "(imported)" is added where a judge to be run has the name."""
    taken = Judge.objects.filter(evalset=evalset, name=name).exclude(kind=Judge.Kind.IMPORTED).exists()
    judge, _made = Judge.objects.get_or_create(
        evalset=evalset,
        name=f"{name} (imported)" if taken or name in BUILT_IN else name,
        defaults={"kind": Judge.Kind.IMPORTED},
    )
    return judge


def _refuse_known_targets(run, name, rows) -> None:
    known = set(run.verdicts.values_list("response_id", "claim_id", "dimension"))
    again = Counter((response, claim, dimension) for response, claim, dimension, _ in rows)
    double = [target for target, times in again.items() if times > 1 or target in known]
    if double:
        raise Refused(
            _("The judge {name!r} has more than one verdict for {count} of the targets.").format(
                name=name, count=len(double)
            )
        )
