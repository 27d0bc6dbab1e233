"""Each condition of the gate, measured on one calibration sample."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration.gate.terms import Condition, DimensionRules, GateEvidence, GatePolicy
from calibration.stats.agreement import Pairs, kappa_of_pairs, leave_one_out_kappas, pair_up
from calibration.stats.arrays import encode_clusters, encode_labels
from calibration.stats.judging import JudgeVsGold, judge_vs_gold
from calibration.stats.power import kappa_sample_size
from calibration.stats.quantiles import exact_lower_bound_of_all
from calibration.stats.reliability import krippendorff_alpha
from calibration.stats.resampling import Jackknife, jackknife
from calibration.stats.results import UNDEFINED_REASONS, beside, plural, whole_or_float, written_bar


@dataclass(frozen=True)
class Sample:
    """The evidence with its columns encoded once."""

    evidence: GateEvidence
    policy: GatePolicy
    columns: Mapping[str, NDArray[np.integer]] = field(init=False)
    judge: NDArray[np.integer] = field(init=False)
    gold: NDArray[np.integer] | None = field(init=False)
    clusters: NDArray[np.integer] = field(init=False)

    def __post_init__(self) -> None:
        labels, evidence = self.evidence.rules.labels, self.evidence
        columns = {
            name: encode_labels(column, labels, f"graders[{name!r}]")
            for name, column in evidence.graders.items()
        }
        # Who said nothing here is no grader of this sample, whatever they said about other systems.
        present = {name: codes for name, codes in columns.items() if (codes >= 0).any()}
        object.__setattr__(self, "columns", present)
        gold = encode_labels(evidence.gold, labels, "gold") if evidence.gold_complete else None
        if gold is not None and (gold[self.overlap()] < 0).any():
            # Gold with holes is gold selected on the outcome, whatever the caller believes.
            gold = None
        object.__setattr__(self, "judge", encode_labels(evidence.judge, labels, "judge"))
        object.__setattr__(self, "gold", gold)
        object.__setattr__(self, "clusters", encode_clusters(evidence.clusters, len(evidence.judge))[0])

    @property
    def rules(self) -> DimensionRules:
        return self.evidence.rules

    @property
    def many_graders(self) -> bool:
        return len(self.columns) > 2

    def ratings(self) -> NDArray[np.integer]:
        """Shape (targets, graders), -1 where a grader gave no label."""
        if not self.columns:
            return np.full((len(self.evidence.judge), 0), -1)
        return np.column_stack(list(self.columns.values()))

    def overlap(self) -> NDArray[np.bool_]:
        """Targets with labels of at least two graders."""
        return (self.ratings() >= 0).sum(axis=1) >= 2

    def usable(self) -> NDArray[np.bool_]:
        """Overlap targets with a verdict."""
        return self.overlap() & (self.judge >= 0)

    def references(self) -> dict[str, NDArray[np.integer]]:
        """What the judge is held against: gold, or the graders while gold is incomplete.

        More than two graders leave gaps, and one who saw little would decide alone how much was labelled. Two
        of each target's graders, its first and its last, make two full columns instead.
        """
        if self.gold is not None:
            return {"gold": self.gold}
        if self.many_graders:
            return {
                "each target's first grader": self.first_labels(),
                "each target's last grader": self.last_labels(),
            }
        return dict(self.columns)

    def first_labels(self) -> NDArray[np.integer]:
        ratings = self.ratings()
        return ratings[np.arange(len(ratings)), (ratings >= 0).argmax(axis=1)]

    def last_labels(self) -> NDArray[np.integer]:
        ratings = self.ratings()[:, ::-1]
        return ratings[np.arange(len(ratings)), (ratings >= 0).argmax(axis=1)]

    def pairs(self, rows: NDArray[np.integer], cols: NDArray[np.integer]) -> Pairs:
        return pair_up(rows, cols, self.rules.labels, self.clusters)

    def against(self, reference: NDArray[np.integer]) -> JudgeVsGold:
        usable = self.usable()
        return judge_vs_gold(
            reference[usable],
            self.judge[usable],
            labels=self.rules.labels,
            clusters=self.clusters[usable],
            positive=self.rules.positive,
            level=self.policy.level,
            unit=self.rules.unit,
        )


def identity(sample: Sample) -> list[Condition]:
    evidence, policy = sample.evidence, sample.policy
    matches = evidence.fingerprint_matches
    message = {
        True: "The judge is the one that was calibrated.",
        False: "The judge changed since it was calibrated: model, prompt, rubric, labels or settings.",
        None: "The judge was imported without a fingerprint, so it cannot be known to be the same.",
    }[matches]
    age = evidence.age_days
    recent = None if age is None else age <= policy.max_age_days
    return [
        Condition("fingerprint", matches, None, None, message),
        Condition(
            "calibration_age",
            recent,
            age,
            policy.max_age_days,
            "The age of the calibration is not known."
            if age is None
            else f"The calibration is {age:.0f} {plural(round(age), 'day')} old; "
            f"at most {policy.max_age_days} are allowed.",
        ),
    ]


def sufficiency(sample: Sample) -> list[Condition]:
    return [_valid_verdicts(sample), _targets(sample), _responses(sample), *_classes(sample)]


def _valid_verdicts(sample: Sample) -> Condition:
    valid, total = sample.evidence.valid_and_total()
    bar = sample.policy.min_valid_rate
    share = beside(100 * valid / total, 100 * bar, digits=1)
    message = f"{valid} of {total} calibration targets have a valid verdict ({share}%); "
    return Condition(
        "valid_verdicts", valid / total >= bar, valid / total, bar, f"{message}{100 * bar:g}% are needed."
    )


def _targets(sample: Sample) -> Condition:
    found = int(sample.usable().sum())
    return _enough(
        "targets", found, sample.policy.min_targets, sample.rules.unit, "with two graders and a verdict"
    )


def _responses(sample: Sample) -> Condition:
    evidence = sample.evidence
    if sample.rules.unit != "claim":
        message = "Not asked for where responses themselves are labelled."
        return Condition("responses", None, None, None, message)
    of_target = evidence.responses if evidence.responses is not None else evidence.clusters
    seen = {of_target[int(row)] for row in np.flatnonzero(sample.usable())}
    return _enough("responses", len(seen), sample.policy.min_responses, "response", "behind these claims")


def _classes(sample: Sample) -> list[Condition]:
    rules, policy, usable = sample.rules, sample.policy, sample.usable()
    if not rules.positive:
        message = "Not asked for where no label counts as the bad one."
        return [Condition(name, None, None, None, message) for name in ("gold_positive", "gold_negative")]
    counts = [
        Counter(rules.labels[code] for code in reference[usable & (reference >= 0)].tolist())
        for reference in sample.references().values()
    ]
    source = "gold" if sample.gold is not None else "the worse grader's"

    def fewest(wanted: frozenset[str]) -> int:
        return min((sum(count[label] for label in wanted) for count in counts), default=0)

    return [
        _enough(name, fewest(wanted), minimum, rules.unit, f"that {source} labels call {words}")
        for name, wanted, words, minimum in (
            ("gold_positive", rules.positive, rules.positive_name, policy.min_positive),
            ("gold_negative", rules.negative, rules.negative_name, policy.min_negative),
        )
    ]


def _enough(name: str, found: int, minimum: int, unit: str, what: str) -> Condition:
    short = max(0, minimum - found)
    message = f"{found} {plural(found, unit)} {what}; {minimum} are needed"
    message += f", {short} {'is' if short == 1 else 'are'} missing." if short else "."
    return Condition(name, short == 0, found, minimum, message, missing=short or None)


def human_agreement(sample: Sample) -> list[Condition]:
    bar = sample.policy.min_human_agreement
    if sample.many_graders:
        measure = krippendorff_alpha(
            sample.ratings(), labels=sample.rules.labels, clusters=sample.clusters, level=sample.policy.level
        )
        name, value, n, undefined = "Krippendorff's alpha", measure.value, measure.n, measure.undefined
    elif len(sample.columns) == 2:
        first, second = sample.columns.values()
        kappa = kappa_of_pairs(sample.pairs(first, second), level=sample.policy.level)
        name, value, n, undefined = "Human-human kappa", kappa.value, kappa.n, kappa.undefined
    else:
        name, value, n, undefined = "Human-human kappa", None, 0, "empty_overlap"
    if value is None:
        message = f"{name} is undefined: {UNDEFINED_REASONS[undefined or '']}."
        return [Condition("human_agreement", False, None, bar, message)]
    found = f"{name} is {beside(value, bar)} on {n} {plural(n, sample.rules.unit)}"
    message = f"{found}; at least {written_bar(bar)} is needed."
    return [Condition("human_agreement", value >= bar, value, bar, message)]


def trust(sample: Sample) -> list[Condition]:
    return [_judge_agreement(sample), _non_inferiority(sample), _youden(sample)]


def _judge_agreement(sample: Sample) -> Condition:
    bar, level = sample.policy.min_judge_agreement, sample.policy.level
    value, low, pairs = _judge_kappa(sample)
    what = "Judge-gold kappa" if sample.gold is not None else "Mean judge-grader kappa"
    if sample.many_graders and sample.gold is None:
        what = "Kappa of the judge with a random grader"
    if value is None:
        return Condition("judge_agreement", False, None, bar, f"{what} is undefined.")
    if low is None:
        return Condition(
            "judge_agreement",
            False,
            None,
            bar,
            f"{what} is {value:.3f} without an interval; nothing can be shown.",
        )
    message = (
        f"{what} is {value:.3f}, lower limit {beside(low, bar)}; "
        f"the lower limit must reach {written_bar(bar)}."
    )
    more = None
    if low < bar <= value:
        more = _more_for_kappa(value, bar, pairs, level)
        message += _too_few(more, sample.rules.unit)
    return Condition("judge_agreement", low >= bar, low, bar, message, estimate=value, missing=more)


def _judge_kappa(sample: Sample) -> tuple[float | None, float | None, Pairs]:
    level, usable = sample.policy.level, sample.usable()
    if sample.gold is not None:
        pairs = _masked_pairs(sample, sample.gold, usable)
        kappa = kappa_of_pairs(pairs, interval="jackknife", level=level)
        return kappa.value, kappa.low, pairs
    if sample.many_graders:
        group = _Group(sample)
        return (
            group.judge_value,
            group.judge_lower(level),
            _masked_pairs(sample, sample.first_labels(), usable),
        )
    all_pairs = [_masked_pairs(sample, column, usable) for column in sample.columns.values()]
    kappas = [kappa_of_pairs(pairs, interval="jackknife", level=level) for pairs in all_pairs]
    if any(kappa.value is None for kappa in kappas):
        return None, None, all_pairs[0]
    value = float(np.mean([kappa.value for kappa in kappas]))
    if value == 1.0:
        return value, min(kappa.low if kappa.low is not None else -1.0 for kappa in kappas), all_pairs[0]
    spread = jackknife(np.mean([leave_one_out_kappas(pairs) for pairs in all_pairs], axis=0))
    interval = spread.interval(value, level)
    return value, max(-1.0, interval[0]) if interval else None, all_pairs[0]


def _masked_pairs(sample: Sample, reference: NDArray[np.integer], usable: NDArray[np.bool_]) -> Pairs:
    return pair_up(reference[usable], sample.judge[usable], sample.rules.labels, sample.clusters[usable])


def _more_for_kappa(value: float, bar: float, pairs: Pairs, level: float) -> int | None:
    kappa = kappa_of_pairs(pairs, interval="jackknife", level=level)
    if value <= bar or not kappa.fce_se or kappa.jackknife_se is None or not -1 < value < 1:
        return None
    table = pairs.table()
    margins = (table.sum(axis=0) + table.sum(axis=1)) / (2 * table.sum())
    design_effect = max(1.0, (kappa.jackknife_se / kappa.fce_se) ** 2)
    return max(1, kappa_sample_size(value, bar, margins, design_effect=design_effect, level=level) - pairs.n)


def _more_by_scaling(n: int, value: float, low: float, bar: float) -> int | None:
    """Intervals shrink with the square root of n: how many more until the limit reaches the bar."""
    if value <= bar:
        return None
    return max(1, math.ceil(n * ((value - low) / (value - bar)) ** 2) - n)


def _too_few(more: int | None, unit: str) -> str:
    if more is None:
        return " Too few to tell."
    return f" Too few to tell: about {more} more {plural(more, unit)}."


def _non_inferiority(sample: Sample) -> Condition:
    margin, level = -sample.policy.non_inferiority_margin, sample.policy.level
    value, spread, n = _judge_minus_human(sample)
    if value is None or spread is None:
        return Condition(
            "non_inferiority",
            False,
            None,
            margin,
            "The judge cannot be compared with a second person: undefined.",
        )
    low = spread.lower_bound(value, level)
    if low is None:
        return Condition(
            "non_inferiority",
            False,
            None,
            margin,
            f"Judge minus human agreement is {value:+.3f} without a lower bound: too few items.",
        )
    message = (
        f"Judge minus human agreement is {value:+.3f}, one-sided lower bound {_signed(beside(low, margin))}; "
        f"it must not fall below {_signed(written_bar(margin))}."
    )
    more = None
    if low < margin <= value:
        more = _more_by_scaling(n, value, low, margin)
        message += _too_few(more, sample.rules.unit)
    return Condition("non_inferiority", low >= margin, low, margin, message, estimate=value, missing=more)


def _signed(written: str) -> str:
    return written if written.startswith("-") else f"+{written}"


def _judge_minus_human(sample: Sample) -> tuple[float | None, Jackknife | None, int]:
    """Judge-grader minus grader-grader agreement on the targets that all of them labelled."""
    usable = sample.usable()
    if sample.many_graders:
        group = _Group(sample)
        return group.difference, group.difference_spread, int(usable.sum())
    first, second = (column[usable] for column in sample.columns.values())
    judge, clusters = sample.judge[usable], sample.clusters[usable]
    labels = sample.rules.labels
    all_pairs = [
        pair_up(x, y, labels, clusters) for x, y in ((first, judge), (second, judge), (first, second))
    ]
    values = [value for pairs in all_pairs if (value := kappa_of_pairs(pairs).value) is not None]
    if len(values) < len(all_pairs):
        return None, None, int(usable.sum())
    with_first, with_second, human = (leave_one_out_kappas(pairs) for pairs in all_pairs)
    difference = (values[0] + values[1]) / 2 - values[2]
    return difference, jackknife((with_first + with_second) / 2 - human), int(usable.sum())


class _Group:
    """Many graders: the judge against a random grader, and two random graders against each other.

    Both are chance-corrected on the pooled label shares (Vanbelle and Albert 2009), every target weighing the
    same, so that the difference is on kappa's scale.
    """

    def __init__(self, sample: Sample) -> None:
        usable = sample.usable()
        q = len(sample.rules.labels)
        ratings, judge = sample.ratings()[usable], sample.judge[usable]
        clusters, number = encode_clusters(sample.clusters[usable], int(usable.sum()))
        counts = np.stack([(ratings == label).sum(axis=1) for label in range(q)], axis=1).astype(float)
        given = counts.sum(axis=1)
        rows = np.column_stack(
            [
                np.ones(len(judge)),
                counts[np.arange(len(judge)), judge] / given,
                ((counts**2).sum(axis=1) - given) / (given * (given - 1)),
                counts / given[:, None],
                np.eye(q)[judge],
            ]
        )
        sums = np.zeros((number, rows.shape[1]))
        np.add.at(sums, clusters, rows)
        totals = sums.sum(axis=0)
        self.number, self.q = number, q
        judge_value, human_value = self._values(totals)
        left_judge, left_human = self._values(totals - sums)
        self.judge_value = None if math.isnan(judge_value) else float(judge_value)
        self.judge_spread = jackknife(left_judge)
        difference = judge_value - human_value
        self.difference = None if math.isnan(difference) else float(difference)
        self.difference_spread = jackknife(left_judge - left_human)
        self.judge_chance = self._chance(totals)

    def _chance(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        q = self.q
        return (sums[..., 3 : 3 + q] * sums[..., 3 + q :]).sum(axis=-1) / sums[..., 0] ** 2

    def _values(self, sums: NDArray[np.float64]) -> tuple[Any, Any]:
        q = self.q
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = sums[..., 3 : 3 + q] / sums[..., :1]
            judge_chance, human_chance = self._chance(sums), (shares**2).sum(axis=-1)
            judge = (sums[..., 1] / sums[..., 0] - judge_chance) / (1 - judge_chance)
            human = (sums[..., 2] / sums[..., 0] - human_chance) / (1 - human_chance)
        return (
            np.where(judge_chance < 1 - 1e-12, judge, np.nan),
            np.where(human_chance < 1 - 1e-12, human, np.nan),
        )

    def judge_lower(self, level: float) -> float | None:
        if self.judge_value is None or self.number < 2:
            return None
        if self.judge_value > 1 - 1e-12:
            chance = float(self.judge_chance)
            return max(-1.0, (exact_lower_bound_of_all(self.number, level) - chance) / (1 - chance))
        interval = self.judge_spread.interval(self.judge_value, level)
        return max(-1.0, interval[0]) if interval else None


def _youden(sample: Sample) -> Condition:
    bar = sample.policy.min_youden
    if not sample.rules.positive:
        return Condition("youden", None, None, None, "Not asked for where no label counts as the bad one.")
    results = {name: sample.against(reference) for name, reference in sample.references().items()}
    undefined = [name for name, result in results.items() if result.youden.low is None]
    if undefined:
        return Condition(
            "youden",
            False,
            None,
            bar,
            f"Sensitivity + specificity - 1 has no lower limit against {', '.join(undefined)}.",
        )
    name, worst = min(results.items(), key=lambda entry: entry[1].youden.low or 0.0)
    low, value = worst.youden.low, worst.youden.value
    if low is None or value is None:
        raise AssertionError("a Youden index with a lower limit has a value")
    against = "gold" if sample.gold is not None else f"the worse of the graders ({name})"
    message = (
        f"Sensitivity + specificity - 1 against {against} is {value:.3f}, lower limit {beside(low, bar)}; "
        f"the lower limit must reach {whole_or_float(bar):g}."
    )
    more = None
    if low < bar <= value:
        more = _more_by_scaling(worst.n, value, low, bar)
        message += _too_few(more, sample.rules.unit)
    return Condition("youden", low >= bar, low, bar, message, estimate=value, missing=more)
