from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.facts import rates_by_judge, rates_by_people
from calibration.management.reporting import (
    ReportingCommand,
    judge_of,
    round_of,
    sentence_of,
    version_named,
)
from calibration.rate_measures import HEADLINES
from calibration.rates import grader_names
from evalsets.models import EvalSetVersion


class Command(ReportingCommand):
    help = "Hallucination and abstention rates by gold, by one grader, or by a judge that is trusted."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--source", default="gold", metavar="gold|grader:NAME|judge:NAME")
        parser.add_argument("--unit", choices=EvalSetVersion.Unit.values, help="default: the version's own")
        self.add_round(parser)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        unit, source = options["unit"] or version.primary_unit, options["source"]
        if source.startswith("judge:"):
            judge = judge_of(version, source.removeprefix("judge:"))
            return rates_by_judge(judge=judge, version=version, unit=unit)
        round = round_of(version, options["round"])
        _check_source(source, grader_names(round))
        return rates_by_people(version=version, round=round, source=source, unit=unit)

    def sentences(self, result: dict[str, Any]) -> list[str]:
        words = [f"{result['version']}, by {result['source']}, unit: {result['unit']}"]
        if "withheld" in result:
            state = result["withheld"]["state"]
            words.append(f"Withheld: the judge is {state}. calibration_report says what is missing.")
            return words + _optional_sentences(result)
        if len(result["systems"]) > 1:
            words.append(f"Pooled over {len(result['systems'])} systems; each apart below.")
        words += _sentences_of(result) + _optional_sentences(result)
        for system in result["per_system"] if len(result["systems"]) > 1 else ():
            words.append(f"{system['system']}:")
            words += [f"  {sentence}" for sentence in _sentences_of(system)]
        return words


def _sentences_of(figures: dict[str, Any]) -> list[str]:
    words = []
    if "sentence" in figures and "withheld" not in figures["hallucination"]:
        words.append(figures["sentence"])
        words.append(figures["extraction"]["sentence"])
    elif "withheld" in figures.get("hallucination", {}):
        words.append(f"{', '.join(HEADLINES)}: withheld, {figures['hallucination']['withheld']['state']}.")
    for dimension, behind in figures.get("repeats", {}).items():
        lost = ""
        if behind["targets_of_fewer_runs"]:
            lost = f"; {behind['targets_of_fewer_runs']} lack {behind['labels_lost']} valid verdicts in some"
        words.append(
            f"{dimension}: the mean of {behind['runs']} runs of each of {behind['targets']} targets{lost}."
        )
    abstention = figures.get("abstention", {})
    if "withheld" in abstention:
        words.append(f"abstention: withheld, {abstention['withheld']['state']}.")
    elif abstention:
        words.append(abstention["sentence"])
        words += [sentence_of(abstention["answer_rate"]), abstention["answer_length"]["sentence"]]
    return words


def _optional_sentences(figures: dict[str, Any]) -> list[str]:
    words = []
    for entry in figures.get("optional", ()):
        if "withheld" in entry:
            words.append(f"{entry['name']}: withheld, {entry['withheld']['state']}.")
        else:
            words += [f"{entry['name']}, {sentence_of(number)}" for number in entry["numbers"]]
    return words


def _check_source(source: str, graders: list[str]) -> None:
    if source == "gold":
        return
    kind, _, name = source.partition(":")
    if kind != "grader":
        raise CommandError(f"--source must be gold, grader:NAME or judge:NAME, got {source!r}.")
    if name not in graders:
        raise CommandError(f"There is no grader {name!r} in this round: {', '.join(graders) or 'none'}.")
