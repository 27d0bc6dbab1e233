"""What the reporting commands share: naming a version, and one JSON object or plain sentences on stdout."""

import json
from abc import ABC, abstractmethod
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotate.models import Round
from calibration.models import Judge
from calibration.pairing import chosen_round
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion


def version_named(name: str) -> EvalSetVersion:
    """The version behind SLUG@NUMBER; SLUG alone is its latest version."""
    slug, _, number = name.partition("@")
    versions = EvalSetVersion.objects.select_related("evalset").filter(evalset__slug=slug)
    if number and not number.isdecimal():
        raise CommandError(f"{name!r} is not SLUG@VERSION: {number!r} is not a version number.")
    version = versions.filter(number=number).first() if number else versions.order_by("-number").first()
    if version is None:
        there = [str(other) for other in versions] or sorted(
            EvalSetVersion.objects.values_list("evalset__slug", flat=True).distinct()
        )
        raise CommandError(f"There is no version {name!r}. Known: {', '.join(there) or 'none'}.")
    return version


def judge_of(version: EvalSetVersion, name: str) -> Judge:
    judges = Judge.objects.filter(evalset=version.evalset)
    judge = judges.filter(name=name).first()
    if judge is None:
        names = ", ".join(judges.values_list("name", flat=True)) or "none"
        raise CommandError(f"{version.evalset.slug} has no judge {name!r}. It has: {names}.")
    return judge


def round_of(version: EvalSetVersion, number: int | None) -> Round | None:
    """The round asked for or the one that holds by default; None while nobody has been asked to label."""
    round = chosen_round(version=version, number=number)
    if round is None and number is not None:
        raise CommandError(f"{version} has no round {number}.")
    return round


def sentence_of(number: dict[str, Any]) -> str:
    """The number object of a share in one sentence."""
    if number["value"] is None:
        return f"{number['label']}: undefined ({number['undefined']})."
    interval = "no interval" if number["low"] is None else f"[{number['low']:.1%}, {number['high']:.1%}]"
    return f"{number['label']}: {number['value']:.1%} {interval}, n = {number['n']}."


class ReportingCommand(BaseCommand, ABC):
    """A command about one version. `report` returns the JSON object, `sentences` the words for people."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("version", metavar="SLUG@VERSION")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def add_dimension(self, parser: CommandParser) -> None:
        parser.add_argument("--dimension", choices=list(LABELS))

    def add_round(self, parser: CommandParser) -> None:
        parser.add_argument("--round", type=int, help="number of the grading round (default: the latest)")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            result = self.report(**options)
        except CommandError as error:
            if options["json"]:
                self.stdout.write(json.dumps({"problems": [{"message": str(error)}]}, ensure_ascii=False))
            raise
        if options["json"]:
            self.stdout.write(json.dumps(result, ensure_ascii=False, allow_nan=False, indent=1))
        else:
            for sentence in self.sentences(result):
                self.stdout.write(sentence)
        self.conclude(result)

    @abstractmethod
    def report(self, **options: Any) -> dict[str, Any]:
        """The JSON object of the command."""

    @abstractmethod
    def sentences(self, result: dict[str, Any]) -> list[str]:
        """The same for a reader."""

    def conclude(self, result: dict[str, Any]) -> None:
        """A report exits 0 whatever it finds; a command that judges overrides this."""
