from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.facts import plan_facts
from calibration.management.reporting import ReportingCommand, version_named
from calibration.plan_forms import PlanForm


class Command(ReportingCommand):
    help = "How many items a question needs, how many graded twice, and what a set of a size could see."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        for name, field in PlanForm.base_fields.items():
            usual = "" if field.initial is None else f" (default: {field.initial})"
            # Text, so that the form says what is wrong with a value, as it does on the page.
            words = f"{field.label}{usual}".replace("%", "%%")
            parser.add_argument(f"--{name.replace('_', '-')}", help=words)

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        given = {name: options[name] for name in PlanForm.base_fields if options[name] is not None}
        form = PlanForm(given, version=version)
        if not form.is_valid():
            wrong = (
                f"--{name.replace('_', '-')} {form.data.get(name, '')}: {' '.join(errors)}"
                for name, errors in form.errors.items()
            )
            raise CommandError(" ".join(wrong))
        return {"version": str(version), **plan_facts(form.question)}

    def sentences(self, result: dict[str, Any]) -> list[str]:
        asked, twice = result["question"], result["twice"]
        words = [
            f"{result['needed']} units per system show a drop of {asked['difference']:.1%} "
            f"from {asked['base']:.1%}, four times in five: {_cost(result['cost'])}."
        ]
        if twice is None:
            words.append("The kappa hoped for is not above the bar: no number of claims shows otherwise.")
        else:
            words.append(
                f"{twice} claims graded twice show that kappa is above {asked['bar']:g}, "
                f"if it is {asked['human_kappa']:g}: {_cost(result['cost_twice'])}."
            )
        for row in result["curve"]:
            words.append(
                f"{row['n']} units: smallest drop {_drop(row['mdd'])}, by people {_drop(row['by_people'])}"
            )
        for row in result["gate"]:
            words.append(f"{row['n']} graded twice: such a judge passes {row['joint']:.0%} of the time")
        return words


def _cost(cost: dict[str, Any]) -> str:
    money = "" if cost["money"] is None else f", {cost['money']:.0f} in money"
    return f"{cost['hours']:.1f} hours of grading{money}"


def _drop(value: float | None) -> str:
    return "none is seen" if value is None else f"{value:.1%}"
