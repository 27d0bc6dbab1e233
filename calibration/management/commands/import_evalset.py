from pathlib import Path

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from calibration import exchange
from calibration.management.exchanging import ExchangeCommand, mapping_asked_for, opened


class Command(ExchangeCommand):
    help = "Import a file as a new eval set, or as the next version of the one that has this name."
    done = "Imported {evalset}@{version} ({state})."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        self.add_import_arguments(parser)
        parser.add_argument("--name", required=True)
        parser.add_argument(
            "--with-labels", action="store_true", help="import graders' labels and verdicts too"
        )
        parser.add_argument("--lead", metavar="USERNAME", help="make this person lead of the eval set")
        parser.add_argument("--freeze", action="store_true", help="freeze the version and its system runs")

    def exchange(self, *, file, name, lead, with_labels, freeze, dry_run, **rest):
        with opened(file) as stream:
            return exchange.import_evalset(
                stream=stream,
                filename=Path(file).name,
                name=name,
                lead=_person(lead) if lead else None,
                with_labels=with_labels,
                freeze=freeze,
                mapping=mapping_asked_for(file=file, **rest),
                dry_run=dry_run,
            )


def _person(username):
    person = get_user_model().objects.filter(username=username, is_active=True).first()
    if person is None:
        raise CommandError(f"There is no active account called {username!r}.")
    return person
