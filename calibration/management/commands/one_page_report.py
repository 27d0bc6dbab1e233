from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.management.reporting import ReportingCommand, round_of, version_named
from calibration.summaries import NotSummable, as_json, build_summary


class Command(ReportingCommand):
    help = (
        "The one page about a version as of now, frozen with a number; the same number while nothing changes."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        self.add_round(parser)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        round = round_of(version, options["round"])
        if round is None:
            raise CommandError(f"{version} has no grading round: there is nothing to report.")
        try:
            return as_json(build_summary(version=version, round=round))
        except NotSummable as error:
            raise CommandError(str(error)) from error

    def sentences(self, result: dict[str, Any]) -> list[str]:
        facts = result["version"]
        words = [f"One-page report {result['report']} on {facts['evalset']}@{facts['number']}"]
        words += [f"  {found['headline']['sentence']}" for found in result["agreement"].values()]
        words += [f"  {result['rates']['sentence']}"]
        words += [
            f"  {gate['dimension']}: {judge['name']} is {gate['state']}"
            for judge in result["judges"]
            for gate in judge["gates"]
        ]
        return [*words, "Limits:", *(f"  {limit}" for limit in result["limits"])]
