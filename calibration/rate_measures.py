"""From tables of labels to rates: which statistic, of which rows, under which name; beside `measures`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibration import stats
from calibration.measures import Figures
from calibration.stats.abstention import VERDICTS
from calibration.table import (
    MISSING,
    Column,
    Group,
    Ints,
    Mask,
    Table,
    Targets,
    row_of,
)
from evalsets.labels import EMPTY, LABELS, UNANSWERABLE_REASONS

Words = list[str | None] | NDArray[np.object_]  # one label a target; of repeated runs, targets x runs
HEADLINES = ("hallucination", "contradicted", "unverifiable_share", "faithfulness")


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
            known = groups.get(place, {})
            groups[place] = known | entry | _counts_of_both(known, entry) | _repeats_of_both(known, entry)
        figures[key] = list(groups.values())
    figures |= _counts_of_both(first, second) | _repeats_of_both(first, second)
    figures["left_out_systems"] = first.get("left_out_systems", {}) | second.get("left_out_systems", {})
    figures["left_out_strata"] = sorted(
        {*first.get("left_out_strata", ()), *second.get("left_out_strata", ())}
    )
    return figures


def _counts_of_both(first: Figures, second: Figures) -> Figures:
    """What the first counts; where a judge is trusted on other systems in the second, its responses, too."""
    counted: Figures = {name: first[name] for name in ("n_responses", "n_claims") if name in first}
    others = second.get("n_responses")
    if counted and others not in (None, counted["n_responses"]):
        counted["n_responses_abstention"] = others
    return counted


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
