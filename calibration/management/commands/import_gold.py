from collections.abc import Iterable
from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError
from django.http import Http404

from annotate.access import ClosedWhileGrading, labels_of
from calibration.gold_compare import compare_gold
from calibration.gold_given import gold_in_folder
from calibration.gold_reimport import changes_on, listed, take_over
from calibration.management.exchanging import ExchangeCommand
from calibration.management.reporting import version_named
from evalsets.models import EvalSetVersion
from evalsets.services import limits


class Command(ExchangeCommand):
    help = "Tell what changed in an edited gold set; with --take-over its labels become decisions of the log."
    done = "{file[name]} against round {round} of {evalset}@{version}."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("path", type=Path, metavar="DIR or FILE", help="of export_gold, or its zip")
        parser.add_argument("--into", required=True, metavar="SLUG@VERSION")
        parser.add_argument("--round", type=int, help="number of the grading round to compare with")
        parser.add_argument("--take-over", action="store_true", help="store what changed")
        parser.add_argument(
            "--by", metavar="USER", help="with --take-over: the lead whose decisions these are"
        )
        parser.add_argument(
            "--judge-seen",
            choices=("yes", "no"),
            help="with --take-over: had the editors seen verdicts of a judge (yes: or not known)",
        )
        parser.add_argument(
            "--line",
            type=int,
            action="append",
            help="with --take-over: only the change on this line; again for more",
        )
        parser.add_argument("--note", default="", help="with --take-over: why, for the log of decisions")

    def exchange(self, *, path, into, round, **options):
        version = version_named(into)
        if not options["take_over"]:
            _refuse_what_would_do_nothing(options)
        person = _lead_of(version, options) if options["take_over"] else None
        with gold_in_folder(path, limits()) as given:
            found = compare_gold(given=given, version=version, round_number=round)
        told = listed(found) | {"problems": [], "taken": 0}
        if person:
            made = take_over(
                round=found.round,
                changes=changes_on(found, options["line"]),
                origin=found.origin,
                note=options["note"],
                judge_seen=options["judge_seen"] == "yes",
                person=person,
            )
            told["taken"] = len(made)
        return told

    def _tell(self, result):
        super()._tell(result)
        for change in result["changed"] + result["new"]:
            self.stdout.write(_in_words(change))
        for gone in result["missing"]:
            self.stdout.write(f"not in the file: {gone['dimension']} of {_names(gone)}: {gone['label']}")
        for problem in result["unusable"]:
            self.stdout.write("line {line}, {field}: {message} [{value}]".format(**problem))
        for kind, n in result["not_listed"].items():
            if n:
                self.stdout.write(f"{n} more {kind} are not listed.")
        if result["differing"]:
            fields = ", ".join(f"{name} ({n})" for name, n in result["differing"].items())
            self.stdout.write(f"Other fields that differ, and are not taken over: {fields}")
        taken = result["taken"]
        self.stdout.write(f"{taken} labels were taken over." if taken else "Nothing was stored.")


def _names(target: dict) -> str:
    passage = f"passage {target['passage']['rank']}" if target["passage"] else None
    return "/".join(filter(None, (target["response_id"], target["claim_id"], passage)))


def _in_words(change: dict) -> str:
    before = change["from"] or f"no gold ({change['why_no_gold']})"
    return f"line {change['line']}, {change['dimension']} of {_names(change)}: {before} -> {change['to']}"


def _refuse_what_would_do_nothing(options: dict) -> None:
    given = [name for name in ("by", "judge_seen", "line", "note") if options[name]]
    if given:
        raise CommandError(f"without --take-over nothing is stored, and {_options(given)} would do nothing.")


def _lead_of(version: EvalSetVersion, options: dict):
    """Who may decide here, and sees the labels of others already."""
    missing = [name for name in ("by", "judge_seen") if not options[name]]
    if missing:
        raise CommandError(f"--take-over needs {_options(missing)}.")
    person = get_user_model().objects.filter(username=options["by"], is_active=True).first()
    try:
        if person is None:
            raise Http404
        labels_of(person, version.evalset.slug, version.number)
    except Http404:
        raise CommandError(f"{options['by']!r} is no lead of {version.evalset.slug}.") from None
    except ClosedWhileGrading as closed:
        rounds = ", ".join(str(round.number) for round in closed.rounds)
        raise CommandError(f"{options['by']} first has to finish grading round {rounds}.") from None
    return person


def _options(names: Iterable[str]) -> str:
    return " and ".join("--" + name.replace("_", "-") for name in names)
