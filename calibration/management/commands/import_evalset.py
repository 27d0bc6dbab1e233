from pathlib import Path

from calibration import exchange
from calibration.management.exchanging import ExchangeCommand, opened


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
        parser.add_argument("--freeze", action="store_true", help="freeze the version and its system runs")

    def exchange(self, *, file, name, with_labels, freeze, dry_run, **_rest):
        with opened(file) as stream:
            return exchange.import_evalset(
                stream=stream,
                filename=Path(file).name,
                name=name,
                with_labels=with_labels,
                freeze=freeze,
                dry_run=dry_run,
            )
