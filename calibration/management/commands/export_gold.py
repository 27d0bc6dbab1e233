from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.gold_export import NotExportable, export_gold
from calibration.management.reporting import ReportingCommand, round_of, version_named


class Command(ReportingCommand):
    help = (
        "Write gold.jsonl, unresolved.jsonl, gold.csv and manifest.json of a round, and print the manifest."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        self.add_round(parser)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        round = round_of(version, options["round"])
        if round is None:
            raise CommandError(f"{version} has no grading round: there is no gold to export.")
        try:
            return export_gold(version=version, round=round, out=options["out"])
        except NotExportable as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{options['out']} cannot be written: {error}") from error

    def sentences(self, result: dict[str, Any]) -> list[str]:
        words = []
        for dimension, counts in result["counts"].items():
            words.append(f"{dimension}: {counts['gold']} of {counts['targets']} targets have gold.")
            for reason, count in result["unresolved"][dimension].items():
                words.append(f"  {count} without: {reason.replace('_', ' ')}")
        return [*words, f"Files: {', '.join(result['files'])}, manifest.json"]
