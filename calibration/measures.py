"""From a table of labels to the figures that are shown: which statistic, of which rows, under which name.

No database and no framework: pages, commands, reports, the export and its recomputation all read these, so
that a figure is the same wherever it is met. The statistics themselves are in `calibration.stats`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from calibration import stats
from calibration.table import (
    REASON_CODE,
    Column,
    Ints,
    Mask,
    Table,
    Targets,
    counts_per_label,
    left_out,
    reason_counts,
)

Figures = dict[str, Any]
FLATTERED = "What is not settled yet has no gold, which flatters the judge."


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
    if not gold_is_settled(leaves, gold):
        against[-1] = with_incomplete_gold(against[-1])
        scores = with_incomplete_gold(scores)
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


def gold_is_settled(table: Table, gold: Column) -> bool:
    """Whether everything that two graders labelled has gold: what they agreed on at once flatters a judge."""
    return bool(gold.has[table.labels_per_target() >= 2].all())


def with_incomplete_gold(figures: Figures) -> Figures:
    """The same with the flag ``gold_incomplete`` on every number, and a word in the sentence."""
    flagged = {
        name: with_incomplete_gold(figure) if isinstance(figure, dict) else figure
        for name, figure in figures.items()
    }
    if "clusters" in figures and "flags" in figures:
        flagged["flags"] = [*figures["flags"], "gold_incomplete"]
    if "sentence" in figures:
        flagged["sentence"] = f"{figures['sentence']} {FLATTERED}"
    return flagged


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
