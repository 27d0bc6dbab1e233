from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.facts import agreement_facts
from calibration.management.reporting import ReportingCommand, round_of, version_named
from calibration.pairing import dimensions_of
from evalsets.labels import LABELS


class Command(ReportingCommand):
    help = "How far the graders agree with each other, by dimension."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--dimension", help="any dimension of the round's rubric (default: all of them)")
        self.add_round(parser)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        round = round_of(version, options["round"])
        there = dimensions_of(round)
        wanted = options["dimension"]
        if wanted and wanted not in {*there, *LABELS}:
            raise CommandError(f"{version} is not asked about {wanted!r}. It is about: {', '.join(there)}.")
        dimensions = [wanted] if wanted else there
        return agreement_facts(version=version, round=round, dimensions=dimensions)

    def sentences(self, result: dict[str, Any]) -> list[str]:
        round = result["round"]
        about = f"round {round['number']} ({round['kind']})" if round else "no grading round yet"
        words = [f"{result['version']}, {about}"]
        for dimension in result["dimensions"]:
            words.append(
                f"{dimension['dimension']}: {dimension['n_labelled_twice']} of {dimension['n_targets']} "
                f"{dimension['unit']}s labelled twice. {dimension['headline']['sentence']}"
            )
        return words
