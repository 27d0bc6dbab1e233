from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.management.reporting import ReportingCommand
from calibration.models import Watch
from calibration.watch_facts import series_facts


class Command(ReportingCommand):
    help = "The series of a watch: shares of responses by day, with intervals and the step test."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("watch", metavar="NAME")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def report(self, **options: Any) -> dict[str, Any]:
        watch = Watch.objects.filter(name=options["watch"]).select_related("version__evalset").first()
        if watch is None:
            names = ", ".join(Watch.objects.values_list("name", flat=True)) or "none"
            raise CommandError(f"There is no watch {options['watch']!r}. There are: {names}.")
        return series_facts(watch)

    def sentences(self, result: dict[str, Any]) -> list[str]:
        words = [series["step"]["sentence"] for series in result["series"]]
        words += [
            f"{one['judge']}, {one['dimension']}: withheld, {one['state']}." for one in result["withheld"]
        ]
        return words or ["Nothing has been judged yet."]
