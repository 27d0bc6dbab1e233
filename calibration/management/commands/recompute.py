import json
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from calibration.recompute import recompute


class Command(BaseCommand):
    help = "Recompute every figure of a gold export from its files alone; exit 1 when something differs."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, metavar="DIR")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args: Any, **options: Any) -> None:
        result = recompute(options["folder"])
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, allow_nan=False, indent=1))
        else:
            self._tell(result)
        if not result["matches"]:
            sys.exit(1)

    def _tell(self, result: dict[str, Any]) -> None:
        if result["matches"]:
            self.stdout.write(f"{result['folder']}: every figure matches.")
        for difference in result["differences"]:
            self.stdout.write(
                f"{difference['where']}: recorded {difference['recorded']!r}, "
                f"recomputed {difference['recomputed']!r}"
            )
        hidden = result["n_differences"] - len(result["differences"])
        if hidden:
            self.stdout.write(f"... and {hidden} more differences")
        if result["quoted"]:
            self.stdout.write(f"Quoted, not recomputed: {', '.join(result['quoted'])}")
