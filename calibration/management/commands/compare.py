from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.comparing import release_note
from calibration.management.reporting import ReportingCommand, version_named
from calibration.rates_scope import COMPARED_BY, CompareForm


class Command(ReportingCommand):
    help = "Two system runs on the same items: paired differences, what the set could show, the verdict."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        for side in ("before", "after"):
            parser.add_argument(f"--{side}", required=True, metavar="VERSION:RUN", help="e.g. 1:2")
            parser.add_argument(f"--source-{side}", metavar="gold|grader:NAME|judge:NAME")
            parser.add_argument(f"--unit-{side}", metavar="claim|response|decision")
            parser.add_argument(f"--round-{side}", metavar="VERSION:ROUND")
        parser.add_argument("--family", type=int, help="comparisons that are made together (default: 1)")

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        form = CompareForm({name: options.get(name) for name in COMPARED_BY}, version=version)
        if not form.is_valid():
            raise CommandError(
                " ".join(f"--{name}: {' '.join(errors)}" for name, errors in form.errors.items())
            )
        return form.compared()

    def sentences(self, result: dict[str, Any]) -> list[str]:
        if "refused" in result:
            return ["Not compared.", *result["refused"]]
        words = [f"{name}: withheld, {why['state']}." for name, why in result.get("withheld", {}).items()]
        return [*words, release_note(result)] if result.get("rates") else [*words, "Nothing to compare."]
