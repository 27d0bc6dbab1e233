"""From a table of labels to the figures that are shown: which statistic, of which rows, under which name.

No database and no framework: pages, commands, reports, the export and its recomputation all read these, so
that a figure is the same wherever it is met. The statistics themselves are in `calibration.stats`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibration import stats
from calibration.stats.abstention import VERDICTS
from calibration.table import (
    MISSING,
    REASON_CODE,
    Column,
    Group,
    Ints,
    Mask,
    Table,
    Targets,
    counts_per_label,
    left_out,
    reason_counts,
    row_of,
)
from evalsets.labels import EMPTY, LABELS, UNANSWERABLE_REASONS

Figures = dict[str, Any]
Words = list[str | None] | NDArray[np.object_]  # one label a target; of repeated runs, targets x runs
HEADLINES = ("hallucination", "contradicted", "unverifiable_share", "faithfulness")


# Agreement between graders


def agreement_of(table: Table) -> Figures:
    """Every agreement figure of one dimension, between graders, on the original targets."""
    table = table.originals()
    counts = counts_per_label(table.graders, table.targets)
    labelled = counts.sum(axis=1)
    twice = labelled >= 2
    pairs = [pair_figures(table.targets, a, b) for a, b in grader_pairs(table.graders)]
    figures: Figures = {
        "dimension": table.targets.dimension,
        "unit": table.targets.unit,
        "n_targets": len(table),
        "n_labelled": int((labelled >= 1).sum()),
        "n_labelled_twice": int(twice.sum()),
        "n_items": len(np.unique(table.targets.item)),
        "not_labelled_twice": _why_not_twice(table, twice),
        "graders": [_grader_figures(table, column) for column in table.graders],
        "pairs": pairs,
        "krippendorff_alpha": alpha_of(table).as_dict(),
        "label_pairs": int((labelled[twice] * (labelled[twice] - 1) // 2).sum()),
        "pairwise_agreement": _pairwise_agreement(table, counts).as_dict(),
        "majority": _majority_counts(table, counts),
        "label_costs": [cost.as_dict() for cost in _label_costs(table)],
        "label_use": [use.as_dict() for use in _label_use(table)],
    }
    if len(table.graders) == 2:
        return figures | _two_graders(table)
    return figures | _several_graders(table, counts)


def grader_pairs(graders: Iterable[Column]) -> list[tuple[Column, Column]]:
    """Pairs that have a target in common; two graders are a pair even without one, so that it is said."""
    columns = tuple(graders)
    return [(a, b) for a, b in combinations(columns, 2) if len(columns) == 2 or (a.has & b.has).any()]


def pair_figures(targets: Targets, a: Column, b: Column) -> Figures:
    """Agreement of any two raters: counts, percent, kappa, table and what could not be used."""
    kappa = kappa_of(targets, a, b)
    excluded = left_out(a, b)
    return {
        "a": a.name,
        "a_kind": a.kind,
        "b": b.name,
        "b_kind": b.kind,
        "n": kappa.n,
        "clusters": kappa.clusters,
        "observed_agreement": kappa.agreement.as_dict() | {"excluded": excluded},
        "cohen_kappa": kappa.as_number().as_dict() | {"excluded": excluded},
        "max_kappa": kappa.max_kappa,
        "confusion": confusion_figures(kappa.labels, kappa.table, a.name, b.name, kappa.n),
        "sentence": kappa.explain(),
    }


def kappa_of(targets: Targets, a: Column, b: Column) -> stats.KappaResult:
    return stats.cohen_kappa(
        a.codes,
        b.codes,
        labels=targets.labels,
        clusters=targets.item,
        unit=targets.unit,
        between=f"{_called(a)} and {_called(b)}",
    )


def _called(column: Column) -> str:
    return column.name if column.kind in ("gold", "majority") else f"{column.kind} {column.name}"


def confusion_figures(labels: Iterable, counts: Iterable, rows: str, columns: str, n: int) -> Figures:
    return {
        "labels": list(labels),
        "table": [list(row) for row in counts],
        "rows": rows,
        "columns": columns,
        "n": n,
    }


def alpha_of(table: Table) -> stats.Number:
    return stats.krippendorff_alpha(
        ratings(table),
        labels=table.targets.labels,
        clusters=table.targets.item,
        unit=table.targets.unit,
    )


def _label_costs(table: Table) -> tuple[stats.LabelPairCost, ...]:
    return stats.label_pair_costs(
        ratings(table),
        labels=table.targets.labels,
        clusters=table.targets.item,
        unit=table.targets.unit,
    )


def _label_use(table: Table) -> tuple[stats.LabelUse, ...]:
    return stats.label_use(
        ratings(table),
        labels=table.targets.labels,
        graders=[column.name for column in table.graders],
        clusters=table.targets.item,
        unit=table.targets.unit,
    )


def headline_of(table: Table) -> Figures:
    """The one number of a round: kappa of two graders, alpha of more; for a comparison of rounds."""
    table = table.originals()
    if len(table.graders) == 2:
        kappa = kappa_of(table.targets, *table.graders)
        return {"measure": "cohen_kappa", "number": kappa.as_number().as_dict()}
    return {"measure": "krippendorff_alpha", "number": alpha_of(table).as_dict()}


def ratings(table: Table) -> Ints:
    """Targets x graders, -1 where a grader gave no label."""
    if not table.graders:
        return np.zeros((len(table), 0), dtype=np.int64)
    return np.column_stack([column.codes for column in table.graders])


def _why_not_twice(table: Table, twice: Mask) -> dict[str, int]:
    """Of the targets without two labels: labelled once, or why nobody labelled them."""
    once = ~twice & (np.sum([column.has for column in table.graders], axis=0) == 1)
    never = ~twice & ~once
    why = np.min([column.why for column in table.graders], axis=0) if table.graders else None
    reasons = reason_counts(why[never]) if why is not None else {"no_label": int(never.sum())}
    counted = {"labelled_once": int(once.sum()), **reasons}
    return {reason: count for reason, count in counted.items() if count}


def _grader_figures(table: Table, column: Column) -> Figures:
    given = Counter(column.codes[column.has].tolist())
    return {
        "name": column.name,
        "n": int(column.has.sum()),
        "labels": {label: given[code] for code, label in enumerate(table.targets.labels)},
        "missing": column.missing(),
    }


def _pairwise_agreement(table: Table, counts: Ints) -> stats.Number:
    labelled = counts.sum(axis=1)
    return stats.clustered_rate(
        (counts * (counts - 1) // 2).sum(axis=1),
        labelled * (labelled - 1) // 2,
        table.targets.item,
        label="Agreement of all pairs of labels",
        unit="pair",
        definition="percent-agreement",
    )


def majority_column(table: Table) -> Column:
    """The label that more graders gave than any other; a tie is none. A companion, never gold."""
    counts = counts_per_label(table.graders, table.targets)
    best = counts.max(axis=1, initial=0)
    tied = (counts == best[:, None]).sum(axis=1) > 1
    codes = np.where((best > 0) & ~tied, counts.argmax(axis=1), -1)
    why = np.where(best > 0, REASON_CODE["unresolved"], REASON_CODE["not_labelled"])
    return Column("majority", "majority", codes, np.where(codes >= 0, 0, why).astype(np.int8))


def _majority_counts(table: Table, counts: Ints) -> dict[str, int]:
    majority = majority_column(table)
    given = Counter(majority.codes.tolist())
    by_label = {label: given[code] for code, label in enumerate(table.targets.labels)}
    tied = int((~majority.has & (counts.sum(axis=1) > 0)).sum())
    return by_label | {"tie": tied}


def _two_graders(table: Table) -> Figures:
    a, b = table.graders
    targets = table.targets
    kappa = kappa_of(targets, a, b)
    common: dict[str, Any] = {"labels": targets.labels, "clusters": targets.item, "unit": targets.unit}
    per_label = [label.as_dict() for label in stats.per_label_agreement(a.codes, b.codes, **common)]
    bias = stats.marginal_homogeneity(
        a.codes, b.codes, labels=targets.labels, rows_name=a.name, cols_name=b.name
    )
    return {
        "headline": {
            "measure": "cohen_kappa",
            "number": kappa.as_number().as_dict(),
            "sentence": kappa.explain(),
        },
        "per_label": per_label,
        "lowest_label": lowest_label(per_label, "kappa"),
        "confusion": confusion_figures(kappa.labels, kappa.table, a.name, b.name, kappa.n),
        "gwet_ac1": stats.gwet_ac1(a.codes, b.codes, **common).as_dict(),
        "pabak": stats.pabak(a.codes, b.codes, **common).as_dict(),
        "bias": bias.as_dict() | {"sentence": bias.explain() if bias.n else None},
        "per_system": list(_by_group(table, table.by_system(), _kappa_of_group)),
        "per_stratum": list(_by_group(table, table.by_stratum(), _kappa_of_group)),
    }


def _several_graders(table: Table, counts: Ints) -> Figures:
    alpha = alpha_of(table)
    per_label = [
        {
            "label": label,
            "krippendorff_alpha": _alpha_of_label(table, code).as_dict(),
            "n": int(counts[:, code].sum()),
        }
        for code, label in enumerate(table.targets.labels)
    ]
    together = counts.T @ counts - np.diag(counts.sum(axis=0))
    return {
        "headline": {
            "measure": "krippendorff_alpha",
            "number": alpha.as_dict(),
            "sentence": alpha.explain(),
        },
        "per_label": per_label,
        "lowest_label": lowest_label(per_label, "krippendorff_alpha"),
        # Every pair of labels on one target counts in both directions, so the table is symmetric.
        "confusion": confusion_figures(
            table.targets.labels, together.tolist(), "one grader", "another", int(together.sum())
        ),
        "kappa_first_two_by_name": _first_two_by_name(table),
        "per_system": list(_by_group(table, table.by_system(), _alpha_of_group)),
        "per_stratum": list(_by_group(table, table.by_stratum(), _alpha_of_group)),
    }


def lowest_label(per_label: Iterable[Figures], measure: str) -> str | None:
    """The label on which the graders agree least: the entry of the rubric to rewrite first."""
    defined = [entry for entry in per_label if entry[measure]["value"] is not None]
    return min(defined, key=lambda entry: entry[measure]["value"])["label"] if len(defined) > 1 else None


def _alpha_of_label(table: Table, code: int) -> stats.Number:
    given = ratings(table)
    return stats.krippendorff_alpha(
        np.where(given < 0, -1, (given == code).astype(np.int64)),
        labels=("rest", table.targets.labels[code]),
        clusters=table.targets.item,
        unit=table.targets.unit,
    )


def _first_two_by_name(table: Table) -> Figures | None:
    """Kappa of each target's first two labels in the order of names: other people from target to target."""
    by_name = sorted(table.graders, key=lambda column: column.name)
    if len(by_name) < 2:
        return None
    given = np.column_stack([column.codes for column in by_name])
    rank = np.cumsum(given >= 0, axis=1)
    first, second = (np.where((rank == k) & (given >= 0), given, -1).max(axis=1) for k in (1, 2))
    kappa = stats.cohen_kappa(
        first,
        second,
        labels=table.targets.labels,
        clusters=table.targets.item,
        unit=table.targets.unit,
        between="the first two labels of each target",
    )
    return {
        "n": kappa.n,
        "kappa": kappa.as_number().as_dict(),
        "observed_agreement": kappa.agreement.as_dict(),
    }


def _by_group(table: Table, groups: Iterable, figures: Callable[[Table], Figures]) -> Iterator[Figures]:
    for group in groups:
        part = table.select(group.mask)
        yield {"name": group.name, "value": group.value, "n_targets": len(part), **figures(part)}


def _kappa_of_group(part: Table) -> Figures:
    a, b = part.graders
    kappa = kappa_of(part.targets, a, b)
    return {
        "n": kappa.n,
        "cohen_kappa": kappa.as_number().as_dict(),
        "observed_agreement": kappa.agreement.as_dict(),
    }


def _alpha_of_group(part: Table) -> Figures:
    alpha = alpha_of(part)
    counts = counts_per_label(part.graders, part.targets)
    return {
        "n": alpha.n,
        "krippendorff_alpha": alpha.as_dict(),
        "observed_agreement": _pairwise_agreement(part, counts).as_dict(),
    }


# A judge beside the people


def judge_agreement_of(table: Table) -> Figures:
    """The judge against each grader and against gold, on the leaves, with the graders among themselves."""
    among_graders = agreement_of(table)
    leaves = table.leaves()
    assert leaves.judge is not None
    judge, targets = leaves.judge, leaves.targets
    gold = leaves.blind_gold()
    against = [pair_figures(targets, column, judge) for column in (*leaves.graders, gold)]
    scores = judge_scores(targets, gold, judge)
    return {
        "dimension": targets.dimension,
        "unit": targets.unit,
        "n_targets": len(leaves),
        "n_labelled_twice": among_graders["n_labelled_twice"],
        "n_judged": int(judge.has.sum()),
        "not_judged": judge.missing(),
        "gold_missing": gold.missing(),
        "split_targets": int((~table.targets.leaf).sum()),
        "pairs": [*among_graders["pairs"], *against],
        "krippendorff_alpha": among_graders["krippendorff_alpha"],
        "per_label": scores["per_label"],
        "confusion": confusion_figures(
            targets.labels, scores["confusion"]["table"], "gold", judge.name, scores["n"]
        ),
        "judge_vs_gold": scores,
        "judge_vs_majority": pair_figures(targets, majority_column(leaves), judge),
    }


def judge_scores(targets: Targets, gold: Column, judge: Column) -> Figures:
    positive = {"grounding": stats.BAD_LABELS, "abstention": {"REFUSED"}}.get(
        targets.dimension, {targets.labels[0]}
    )
    scores = stats.judge_vs_gold(
        gold.codes,
        judge.codes,
        labels=targets.labels,
        clusters=targets.item,
        positive=positive,
        unit=targets.unit,
        between=f"{judge.name} and gold",
    )
    return scores.as_dict() | {"sentence": scores.explain(), "excluded": left_out(gold, judge)}


def costly_cell(confusion: Figures) -> Figures | None:
    """The largest disagreement of a confusion table."""
    labels, counts = confusion["labels"], confusion["table"]
    cells = [
        {"row": labels[i], "column": labels[j], "n": counts[i][j]}
        for i in range(len(labels))
        for j in range(len(labels))
        if i != j and counts[i][j]
    ]
    return max(cells, key=lambda cell: cell["n"]) if cells else None


# Rates


@dataclass(frozen=True)
class Questions:
    """Of each response what class its question is of and why it is unanswerable, as `stats` numbers them."""

    classes: Ints
    reasons: Ints

    @classmethod
    def of(cls, responses: Targets) -> "Questions":
        kinds, kind = responses.kinds
        reasons = [facts["reason"] or None for facts in kinds]
        classes = [
            stats.question_class(facts["answerable"], reason)
            for facts, reason in zip(kinds, reasons, strict=True)
        ]
        return cls(
            _places(classes, stats.QUESTION_CLASSES)[kind], _places(reasons, UNANSWERABLE_REASONS)[kind]
        )

    def select(self, mask: Mask) -> "Questions":
        return Questions(self.classes[mask], self.reasons[mask])


def _places(words: Iterable[str | None], known: Sequence[str]) -> Ints:
    return np.array([MISSING if word is None else known.index(word) for word in words], dtype=np.int64)


@dataclass(frozen=True)
class Companions:
    """Of each response what its rates are read beside: its length, which repeat it is, and a grade."""

    words: Ints
    sample: Ints
    informative: Sequence[bool | None] | None = None  # of a refusal; None where the rubric does not ask

    def select(self, mask: Mask) -> "Companions":
        grades = self.informative
        if grades is not None:
            grades = [grades[row] for row in np.flatnonzero(mask).tolist()]
        return Companions(self.words[mask], self.sample[mask], grades)


def rates_of(
    *,
    claims: Table,
    responses: Table,
    said: Column,
    verdict: Column,
    unit: str,
    dimensions: Iterable[str] = tuple(LABELS),
    companions: Companions | None = None,
    strata: bool = True,
) -> Figures:
    """Rates of one source of labels: over all systems, of each system and, with `strata`, stratum and sample.

    `said` labels the rows of `claims` (the leaves), `verdict` those of `responses`. Grounding gives the
    hallucination rates, abstention the abstention rates.
    """
    wanted = tuple(dimensions)

    questions = Questions.of(responses.targets)

    def part(of_claims: Mask, of_responses: Mask) -> Figures:
        return _rates(
            claims.targets.select(of_claims),
            said.select(of_claims),
            responses.targets.select(of_responses),
            verdict.select(of_responses),
            unit,
            wanted,
            questions.select(of_responses),
            companions.select(of_responses) if companions else None,
        )

    figures = _rates(claims.targets, said, responses.targets, verdict, unit, wanted, questions, companions)
    figures["systems"] = list(responses.targets.run_names.values())
    figures["per_system"] = [
        {"system": name} | part(claims.targets.run == run, responses.targets.run == run)
        for run, name in responses.targets.run_names.items()
    ]
    figures["per_stratum"] = []
    if not strata:
        return figures
    figures["per_stratum"] = [
        {"name": group.name, "value": group.value} | part(mask, group.mask)
        for group, mask in _with_claims(responses.by_stratum(), responses.targets.item, claims.targets.item)
    ]
    if companions and (companions.sample > 1).any():
        figures["per_sample"] = [
            {"system": responses.targets.run_names[run], "sample": sample}
            | part(np.isin(claims.targets.response, responses.targets.response[mask]), mask)
            for run, sample, mask in _samples(responses.targets, companions)
        ]
    return figures


def _with_claims(
    groups: Iterable[Group], of_responses: Ints, of_claims: Ints
) -> Iterator[tuple[Group, Mask]]:
    """Each group of responses with its claims: those of the same items as one of the responses."""
    known, place = np.unique(of_responses, return_inverse=True)
    place_of_claim = row_of(known, of_claims)
    for group in groups:
        chosen = np.zeros(len(known) + 1, dtype=bool)  # the last is that of a claim of another item
        chosen[place[group.mask]] = True
        yield group, chosen[place_of_claim]


def _samples(responses: Targets, companions: Companions) -> Iterator[tuple[int, int, Mask]]:
    """Each repeat of each system that was run more than once."""
    for run in responses.run_names:
        repeats = np.unique(companions.sample[responses.run == run]).tolist()
        for sample in repeats if len(repeats) > 1 else ():
            yield run, sample, (responses.run == run) & (companions.sample == sample)


def _rates(
    claims: Targets,
    said: Column,
    responses: Targets,
    verdict: Column,
    unit: str,
    wanted: tuple[str, ...],
    questions: Questions,
    companions: Companions | None,
) -> Figures:
    figures: Figures = {"n_responses": len(responses), "n_claims": len(claims)}
    first = verdict_positions(responses, verdict.run(0))
    verdicts = first if verdict.repeats is None else verdict_positions(responses, verdict)
    if "grounding" in wanted:
        hallucination = stats.hallucination_rates(
            said.runs,
            claims.response,
            responses=responses.response,
            items=responses.item,
            verdicts=first,
            empty=responses.empty,
            decision=claims.decision if unit == "decision" else None,
            missing_reason=said.reasons(),
            unit=unit,
        )
        figures |= hallucination.as_dict()
        figures["sentence"] = hallucination.explain()
        figures |= _repeats_of_both(figures, repeats_behind("grounding", said))
    if "abstention" in wanted:
        abstention = stats.abstention_rates(
            questions.classes,
            verdicts,
            reason=questions.reasons,
            informative=companions.informative if companions else None,
            clusters=responses.item,
        )
        figures["abstention"] = abstention.as_dict() | {"sentence": abstention.explain()}
        if companions:
            figures["abstention"] |= _answers(responses, verdicts, companions)
        figures |= _repeats_of_both(figures, repeats_behind("abstention", verdict))
    return figures


def repeats_behind(dimension: str, *columns: Column) -> Figures:
    """Of labels given more than once: how many runs are behind a rate, and which targets lack some."""
    asked = [column.repeats for column in columns if column.repeats is not None]
    if not asked:
        return {}
    runs = asked[0].shape[1]
    times = np.concatenate([(repeats >= 0).sum(axis=1) for repeats in asked])
    some = (times > 0) & (times < runs)
    return {
        "repeats": {
            dimension: {
                "runs": runs,
                "targets": int((times > 0).sum()),
                "labels": int(times.sum()),
                "targets_of_fewer_runs": int(some.sum()),
                "labels_lost": int((runs - times[some]).sum()),
            }
        }
    }


def _answers(responses: Targets, verdicts: Ints, companions: Companions) -> Figures:
    """How often it answers and at what length: a rate of claims means little without the two."""
    lengths = stats.lengths_in_words(companions.words, verdicts, clusters=responses.item)
    return {
        "answer_rate": stats.answer_rate(verdicts, clusters=responses.item).as_dict(),
        "answer_length": lengths.as_dict() | {"sentence": lengths.explain()},
    }


_GROUPS = {
    "per_system": ("system",),
    "per_stratum": ("name", "value"),
    "per_sample": ("system", "sample"),
}


def merged(first: Figures, second: Figures) -> Figures:
    """Rates of two dimensions in one object, their groups matched by name."""
    figures = first | second
    for key, names in _GROUPS.items():
        if key not in first and key not in second:
            continue
        groups: dict[tuple, Figures] = {}
        for entry in (*first.get(key, ()), *second.get(key, ())):
            place = tuple(entry[name] for name in names)
            groups[place] = groups.get(place, {}) | entry | _repeats_of_both(groups.get(place, {}), entry)
        figures[key] = list(groups.values())
    figures |= _repeats_of_both(first, second)
    figures["left_out_systems"] = first.get("left_out_systems", {}) | second.get("left_out_systems", {})
    figures["left_out_strata"] = sorted(
        {*first.get("left_out_strata", ()), *second.get("left_out_strata", ())}
    )
    return figures


def _repeats_of_both(first: Figures, second: Figures) -> Figures:
    both = first.get("repeats", {}) | second.get("repeats", {})
    return {"repeats": both} if both else {}


def verdict_words(responses: Targets, verdict: Column) -> Words:
    """The label of each response; EMPTY where there is no text, whatever was said about it."""
    if verdict.repeats is not None:
        words = words_of_runs(verdict, LABELS["abstention"])
        words[responses.empty] = EMPTY
        return words
    said = verdict.words(LABELS["abstention"])
    return [EMPTY if empty else label for empty, label in zip(responses.empty.tolist(), said, strict=True)]


def words_of_runs(column: Column, labels: Sequence[str]) -> NDArray[np.object_]:
    """The labels themselves, targets x runs, None where there is none."""
    return np.array([*labels, None], dtype=object)[column.runs]


def verdict_positions(responses: Targets, verdict: Column) -> Ints:
    """The same as positions in `stats.abstention.VERDICTS`, -1 where there is nothing."""
    place = np.array([*(VERDICTS.index(label) for label in LABELS["abstention"]), MISSING])
    found = place[verdict.codes if verdict.repeats is None else verdict.repeats]
    found[responses.empty] = VERDICTS.index(EMPTY)
    return found


def question_classes(responses: Targets) -> list[str | None]:
    return [
        None if place < 0 else stats.QUESTION_CLASSES[place]
        for place in Questions.of(responses).classes.tolist()
    ]
