"""How far a judge agrees with itself when it is asked the same more than once.

Agreement uses the first call of each target, rates the mean of all (see `pairing`). What stands here tells
nothing of how often which label was given: the split of the variance only as shares.
"""

from collections import defaultdict
from dataclasses import dataclass

from calibration.models import JudgeRun, Verdict
from calibration.stats.consistency import SelfConsistency, self_consistency
from calibration.stats.labels import BAD_LABELS
from calibration.stats.results import Number
from evalsets.labels import LABELS

DECIDING = {"grounding": tuple(BAD_LABELS), "abstention": ("REFUSED",)}


@dataclass(frozen=True)
class Repeated:
    dimension: str
    found: SelfConsistency

    @property
    def share_within(self) -> Number | None:
        """Of the variance of the deciding outcome, the share that comes from asking again; None where no
        label decides.
        """
        return self.found.share_within if self.dimension in DECIDING else None


def repeats_of(run: JudgeRun) -> list[Repeated]:
    """One entry per dimension with an answer; empty where everything was asked once."""
    if run.repeats < 2:
        return []
    entries = [_repeated(run, dimension) for dimension in run.dimensions]
    return [entry for entry in entries if entry is not None]


def _repeated(run: JudgeRun, dimension: str) -> Repeated | None:
    labels = _labels_of(run, dimension)
    said: dict[tuple, list[str | None]] = defaultdict(lambda: [None] * run.repeats)
    verdicts = run.verdicts.filter(dimension=dimension, state=Verdict.State.VALID)
    for item, *target, index, label in verdicts.order_by("pk").values_list(
        "response__item_id", "response_id", "claim_id", "passage_id", "run_index", "label"
    ):
        said[(item, *target)][index - 1] = label
    if not said:
        return None
    return Repeated(
        dimension,
        self_consistency(
            list(said.values()),
            labels=labels,
            positive=DECIDING.get(dimension, labels[:1]),
            clusters=[item for item, *_target in said],
        ),
    )


def _labels_of(run: JudgeRun, dimension: str) -> tuple[str, ...]:
    if dimension in LABELS or run.rubric_version is None:
        return LABELS[dimension]
    return run.rubric_version.dimensions.get(name=dimension).label_names
