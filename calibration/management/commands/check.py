import sys
from typing import Any

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.check import Command as SystemChecks

from calibration.checking import LIMITED, check_judge
from calibration.management.reporting import ReportingCommand, judge_of, version_named
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion


class Command(SystemChecks):
    """With --judge: the gate and limits for a CI job. Without it: Django's own checks of the project."""

    help = (
        "check SLUG@VERSION --judge NAME fails when the judge is not trusted or a rate exceeds its limit. "
        "Without --judge it checks the project itself."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--judge", metavar="NAME")
        parser.add_argument("--max-rate", action="append", default=[], metavar="RATE=LIMIT", dest="limits")
        parser.add_argument("--unit", choices=EvalSetVersion.Unit.values)
        parser.add_argument("--dimension", choices=list(LABELS))
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *names: str, **options: Any) -> None:
        if not options["judge"]:
            if options["limits"]:
                raise CommandError("--max-rate needs --judge NAME: whose rate is limited?")
            return super().handle(*names, **options)
        if len(names) != 1:
            raise CommandError("check --judge NAME needs exactly one SLUG@VERSION.")
        JudgeCheck(stdout=self.stdout, stderr=self.stderr).handle(version=names[0], **options)


class JudgeCheck(ReportingCommand):
    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        return {"version": str(version), "judge": options["judge"]} | check_judge(
            judge=judge_of(version, options["judge"]),
            version=version,
            unit=options["unit"] or version.primary_unit,
            dimension=options["dimension"],
            limits=dict(_limit(text) for text in options["limits"]),
        )

    def sentences(self, result: dict[str, Any]) -> list[str]:
        lines = [*result["gate"], *result["rates"]]
        return [f"{'pass' if line['passed'] else 'FAIL'}  {line['message']}" for line in lines]

    def conclude(self, result: dict[str, Any]) -> None:
        if not result["passed"]:
            sys.exit(1)


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition("=")
    if name not in LIMITED:
        raise CommandError(f"--max-rate {text!r}: {name!r} is not one of {', '.join(LIMITED)}.")
    try:
        limit = float(number)
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= 1:
        raise CommandError(f"--max-rate {text!r}: the limit must be a number between 0 and 1.")
    return name, limit
