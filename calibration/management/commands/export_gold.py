from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from annotate.models import GoldLabel, Round
from calibration.gold_export import Choice, NotExportable, export_gold
from calibration.management.reporting import ReportingCommand, round_of, version_named
from calibration.pairing import dimensions_of
from calibration.partition import PARTS
from evalsets.labels import LABELS


class Command(ReportingCommand):
    help = (
        "Write gold.jsonl, gold.csv, gold.parquet, unresolved.jsonl, README.md and manifest.json of a round, "
        "and print the manifest."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--out", required=True, type=Path, metavar="DIR")
        self.add_round(parser)
        parser.add_argument("--dimension", action="append", default=[], help="only records of this one")
        parser.add_argument("--source", action="append", default=[], choices=GoldLabel.Source.values)
        parser.add_argument("--stratum", action="append", default=[], metavar="NAME=VALUE")
        parser.add_argument("--split", action="append", default=[], choices=PARTS)
        parser.add_argument("--with-notes", action="store_true", help="what graders noted, too")

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        round = round_of(version, options["round"])
        if round is None:
            raise CommandError(f"{version} has no grading round: there is no gold to export.")
        choice = _choice(round, options)
        try:
            return export_gold(version=version, round=round, out=options["out"], choice=choice)
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


def _choice(round: Round, options: dict[str, Any]) -> Choice:
    unknown = sorted(set(options["dimension"]) - {*LABELS, *dimensions_of(round)})
    if unknown:
        raise CommandError(f"Round {round.number} does not ask about {unknown[0]!r}.")
    pairs = [part.partition("=") for part in options["stratum"]]
    if any(not name or not equals for name, equals, _value in pairs):
        raise CommandError("--stratum is NAME=VALUE, such as language=en.")
    return Choice(
        dimensions=tuple(options["dimension"]),
        sources=tuple(options["source"]),
        strata=tuple((name, value) for name, _equals, value in pairs),
        parts=tuple(options["split"]),
        grader_notes=options["with_notes"],
    )
