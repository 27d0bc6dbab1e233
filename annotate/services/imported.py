"""Labels given elsewhere."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import (
    Annotation,
    AnnotationEvent,
    ClaimSplit,
    GoldLabel,
    Grader,
    Round,
)
from annotate.services.rounds import next_round_number
from annotate.services.rubrics import ensure_grader, imported_rubric
from annotate.services.targets import BATCH, Action, Refused, Target, echo, outcome_of
from evalsets.bulk import Bulk
from evalsets.labels import LABELS
from evalsets.models import EvalSet, EvalSetVersion, SystemRun

_TARGET = ("round", "response", "claim", "dimension")
_ANNOTATIONS = Bulk(Annotation, *_TARGET, "grader", "label")
_EVENTS = Bulk(AnnotationEvent, *_TARGET, "grader", "label", "action")
_GOLD = Bulk(GoldLabel, *_TARGET, "label", "source")


class ImportedLabel(NamedTuple):
    grader_name: str
    response_pk: int
    claim_pk: int | None
    dimension: str
    label: str


@transaction.atomic
def record_imported_labels(
    *, version: EvalSetVersion, runs: Sequence[SystemRun], labels: Iterable[tuple]
) -> Round:
    """Labels given elsewhere, into the version's closed round of kind imported; one it has is not doubled."""
    version = EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    round = version.rounds.filter(kind=Round.Kind.IMPORTED).first() or Round.objects.create(
        version=version,
        number=next_round_number(version),
        kind=Round.Kind.IMPORTED,
        state=Round.State.CLOSED,
        closed_at=timezone.now(),
        rubric_version=imported_rubric(evalset=version.evalset),
    )
    round.runs.add(*runs)
    label_of = {
        (grader, Target(*target)): label
        for *target, grader, label in round.annotations.values_list(
            "dimension", "response_id", "claim_id", "grader_id", "label"
        )
    }
    fresh = _fresh_labels(version.evalset, map(ImportedLabel._make, labels), label_of)
    for slots in _in_batches(fresh):
        rows = [
            (
                round.pk,
                target.response_id,
                target.claim_id,
                target.dimension,
                grader,
                label_of[grader, target],
            )
            for grader, target in slots
        ]
        _ANNOTATIONS.insert(rows)
        _EVENTS.insert([(*row, Action.IMPORTED.value) for row in rows])
    _settle_imported(round, {target for _grader, target in fresh}, label_of)
    return round


def _fresh_labels(evalset, labels: Iterable[ImportedLabel], label_of: dict) -> list[tuple[int, Target]]:
    """What is not in `label_of` yet, in file order; adds it there."""
    graders: dict[str, int] = {}
    fresh = []
    for given in labels:
        if given.label not in LABELS.get(given.dimension, ()):
            raise Refused(
                _("%(label)s is not a label of %(dimension)s.")
                % echo(label=given.label, dimension=given.dimension)
            )
        if given.grader_name not in graders:
            graders[given.grader_name] = _imported_grader(evalset, given.grader_name).pk
        slot = graders[given.grader_name], Target(given.dimension, given.response_pk, given.claim_pk)
        if slot not in label_of:
            label_of[slot] = given.label
            fresh.append(slot)
        elif label_of[slot] != given.label:
            raise Refused(
                _("%(grader)s has two labels for one target: %(one)s and %(other)s.")
                % echo(grader=given.grader_name, one=label_of[slot], other=given.label)
            )
    return fresh


def _imported_grader(evalset: EvalSet, name: str) -> Grader:
    """A grader without a log-in; somebody with a log-in and the same name may be somebody else."""
    if Grader.objects.filter(evalset=evalset, name=name, person__isnull=False).exists():
        name = f"{name} (imported)"
    return ensure_grader(evalset=evalset, name=name)


def _settle_imported(round: Round, targets: set[Target], label_of: dict) -> None:
    said: dict[Target, list[str]] = defaultdict(list)
    for (_grader, target), label in label_of.items():
        if target in targets:
            said[target].append(label)
    settled = {
        Target(*target): pk
        for *target, pk in round.gold.values_list("dimension", "response_id", "claim_id", "pk")
    }
    decided = {
        Target(*target)
        for target in round.adjudications.values_list("dimension", "response_id", "claim_id").distinct()
    }
    split = set(
        ClaimSplit.objects.filter(round=round, state=ClaimSplit.State.ACCEPTED).values_list(
            "claim", flat=True
        )
    )
    open_targets = [t for t in said if t not in decided and t.claim_id not in split]
    for pks in _in_batches(settled[target] for target in open_targets if target in settled):
        GoldLabel.objects.filter(pk__in=pks).delete()
    rows = (
        (round.pk, target.response_id, target.claim_id, target.dimension, *map(str, outcome))
        for target in open_targets
        if (outcome := outcome_of(said[target]))
    )
    for batch in _in_batches(rows):
        _GOLD.insert(batch)


def _in_batches(rows: Iterable) -> Iterator[list]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch
