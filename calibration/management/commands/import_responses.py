from pathlib import Path

from calibration import exchange
from calibration.management.exchanging import ExchangeCommand, mapping_asked_for, opened
from calibration.management.reporting import version_named


class Command(ExchangeCommand):
    help = "Add the responses of a file to a frozen version, as one draft system run for each system."
    done = "Added run {run} ({system}) to {evalset}@{version}."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        self.add_import_arguments(parser)
        parser.add_argument("--into", required=True, metavar="SLUG@VERSION")
        parser.add_argument(
            "--with-labels", action="store_true", help="import graders' labels and verdicts too"
        )
        parser.add_argument("--freeze", action="store_true", help="freeze the new system runs at once")

    def exchange(self, *, file, into, with_labels, freeze, dry_run, **rest):
        version = version_named(into)
        with opened(file) as stream:
            return exchange.import_responses(
                stream=stream,
                filename=Path(file).name,
                version=version,
                with_labels=with_labels,
                freeze=freeze,
                mapping=mapping_asked_for(file=file, **rest),
                dry_run=dry_run,
            )
