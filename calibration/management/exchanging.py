"""What the import and export commands share: opening a file, and telling every problem."""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsets.importing import ImportRefused, Problem


class ExchangeCommand(BaseCommand, ABC):
    """A command that moves a file in or out. `exchange` does it and returns the JSON object."""

    done = ""  # one sentence, formatted with the object

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def add_import_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="JSON Lines or CSV, plain or gzipped")
        parser.add_argument("--dry-run", action="store_true", help="do everything, then undo it")

    def handle(self, *args, **options) -> None:
        try:
            result = self.exchange(**options)
        except ImportRefused as refused:
            self._tell_problems(refused, as_json=options["json"])
            raise CommandError(_summary(refused)) from refused
        except CommandError as error:
            if options["json"]:
                self.stdout.write(json.dumps({"problems": [Problem(None, "", str(error)).as_json()]}))
            raise
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, allow_nan=False))
        else:
            self._tell(result)

    @abstractmethod
    def exchange(self, **options) -> dict:
        """Do it in one transaction."""

    def _tell(self, result: dict) -> None:
        self.stdout.write(self.done.format(**result))
        self.stdout.write(", ".join(f"{n} {what}" for what, n in result["counts"].items()) + ".")
        for notice in result["notices"]:
            self.stdout.write(f"Note: {notice}")
        if result.get("dry_run"):
            self.stdout.write("This was a dry run: nothing was stored.")

    def _tell_problems(self, refused: ImportRefused, *, as_json: bool) -> None:
        if as_json:
            problems = [problem.as_json() for problem in refused.problems]
            told = {"problems": problems, "problems_left_out": refused.left_out}
            self.stdout.write(json.dumps(told, ensure_ascii=False, allow_nan=False))
        else:
            for problem in refused.problems:
                self.stderr.write(str(problem))


def _summary(refused: ImportRefused) -> str:
    n = len(refused.problems) + refused.left_out
    more = f" (the last {refused.left_out} are not listed)" if refused.left_out else ""
    return f"Refused, nothing was stored: {n} {'problem' if n == 1 else 'problems'}{more}."


def opened(path: str) -> BinaryIO:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise ImportRefused([Problem(None, "file", f"cannot be read: {error.strerror}", path)]) from error
