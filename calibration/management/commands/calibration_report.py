from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.facts import report_facts, round_facts
from calibration.management.reporting import (
    ReportingCommand,
    judge_of,
    round_of,
    version_named,
)
from calibration.models import Judge, JudgeRun
from calibration.reports import NotReportable, build_report, dimensions_judged
from evalsets.models import EvalSetVersion


class Command(ReportingCommand):
    help = "How far a judge agrees with people, whether it may be trusted, and its rates only if it may."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--judge", required=True, metavar="NAME")
        parser.add_argument("--run", type=int, help="number of the judge run (default: the judge's latest)")
        self.add_dimension(parser)
        self.add_round(parser)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        judge = judge_of(version, options["judge"])
        asked = dimensions_judged(judge=judge, version=version)
        dimension = options["dimension"] or next(iter(asked), None)
        run = _run_of(judge, version, options["run"], dimension)
        round = round_of(version, options["round"])
        if round is None:
            raise CommandError(f"{version} has no grading round: there is nobody to compare {judge} with.")
        try:
            report = build_report(judge_run=run, round=round, dimension=dimension)
        except NotReportable as error:
            raise CommandError(str(error)) from error
        return {
            "version": str(version),
            "report": report.number,
            "round": round_facts(round),
            "dimensions_judged": asked,
            **report_facts(report),
        }

    def sentences(self, result: dict[str, Any]) -> list[str]:
        gate = result["gate"]
        words = [f"{result['judge']['name']} on {result['version']}, {result['dimension']}: {gate['state']}"]
        words += [f"  {change}" for change in gate["changes"]]
        for condition in gate["conditions"]:
            mark = {True: "pass", False: "FAIL", None: "  - "}[condition["passed"]]
            words.append(f"  {mark}  {condition['message']}")
        pairs = result["agreement"]["pairs"]
        words += [f"  {pair['sentence']}" for pair in pairs if pair["b_kind"] == "judge"]
        if "withheld" in result["rates"]:
            words.append("  Its rates are withheld until the gate is passed.")
        else:
            words.append(f"  {result['rates'].get('sentence') or result['rates']['abstention']['sentence']}")
        return words


def _run_of(judge: Judge, version: EvalSetVersion, number: int | None, dimension: str | None) -> JudgeRun:
    runs = list(judge.runs.whole().filter(version=version).order_by("-number"))
    fitting = [run for run in runs if number in (None, run.number) and dimension in run.dimensions]
    if fitting:
        return fitting[0]
    if not runs:
        raise CommandError(f"{judge} has not run over {version} yet: start it with judge_run.")
    wanted = f"run {number}" if number else "run"
    raise CommandError(f"{judge} has no {wanted} over {version} that was asked about {dimension}.")
