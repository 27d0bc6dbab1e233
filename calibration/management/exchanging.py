"""What the import and export commands share: opening a file, and telling every problem."""

import json
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalsets.importing import ColumnMap, Findings, ImportRefused, Problem
from evalsets.importing.mapped import AUTO, FORMATS, NATIVE, Plan, plan_of
from evalsets.importing.mapping import mapping_of, overruled
from evalsets.importing.shapes import PLAIN
from evalsets.services import limits


class ExchangeCommand(BaseCommand, ABC):
    """A command that moves a file in or out. `exchange` does it and returns the JSON object."""

    done = ""  # one sentence, formatted with the object

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def add_import_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", metavar="FILE", help="JSON Lines or CSV, plain or gzipped; with --format other files too"
        )
        parser.add_argument(
            "--format",
            choices=FORMATS,
            default=NATIVE,
            help="what wrote the file: auto finds it, native (the default) is this product's own",
        )
        parser.add_argument(
            "--map",
            action="append",
            default=[],
            metavar="FILE or COLUMN=FIELD",
            help="which column is which field, and which label is which of ours; may be given again",
        )
        parser.add_argument(
            "--show-map",
            action="store_true",
            help="import nothing: print what was understood, as a mapping to fill in",
        )
        parser.add_argument("--dry-run", action="store_true", help="do everything, then undo it")

    def handle(self, *args, **options) -> None:
        try:
            if options.get("show_map"):
                self.stdout.write(json.dumps(_shown_map(**options), ensure_ascii=False, indent=1))
                return
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


def mapping_asked_for(*, file: str, format: str, map: list[str], **_rest) -> ColumnMap | None:
    """The mapping of `--format` and `--map`; None for a native file.

    Single columns are told over the mapping's own or, where it has none, over what is suggested.
    """
    if format == NATIVE and not map:
        return None
    findings = Findings()
    given = ColumnMap()
    pairs = {}
    for part in map:
        column, equals, target = part.partition("=")
        if equals and not Path(part).is_file():
            pairs[column] = target
        else:
            given = mapping_of(_read_json(part), findings)
    findings.raise_if_refused()
    if format not in (NATIVE, AUTO) or not given.shape:
        given = replace(given, shape=AUTO if format == NATIVE else format)
    if not pairs:
        return given
    if given.columns is None:
        plan = _plan(file, given.shape)
        given = replace(
            given, shape=plan.shape if plan.shape != NATIVE else PLAIN.name, columns=plan.suggested
        )
    return replace(given, columns=overruled(given.columns or {}, pairs))


def _read_json(path: str) -> object:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ImportRefused([Problem(None, "map", f"cannot be read: {error}", path)]) from error


def _shown_map(*, file: str, format: str, **_rest) -> dict:
    shape = AUTO if format == NATIVE else format
    return _plan(file, shape).as_json()


def _plan(file: str, shape: str) -> Plan:
    with opened(file) as stream:
        plan = plan_of(stream, Path(file).name, shape=shape, limits=limits())
    plan.findings.raise_if_refused()
    return plan
