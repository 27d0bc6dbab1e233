from pathlib import Path

from calibration.label_files import import_labels
from calibration.management.exchanging import ExchangeCommand, mapping_asked_for, opened
from calibration.management.reporting import version_named
from evalsets.labels import LABELS


class Command(ExchangeCommand):
    help = "Import labels (item or response, claim, grader, label) for responses that are there already."
    done = "Imported labels into {evalset}@{version}."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        self.add_import_arguments(parser)
        parser.add_argument("--into", required=True, metavar="SLUG@VERSION")
        parser.add_argument("--dimension", choices=list(LABELS), help="what all labels of the file are about")

    def exchange(self, *, file, into, dimension, dry_run, **rest):
        version = version_named(into)
        with opened(file) as stream:
            return import_labels(
                stream=stream,
                filename=Path(file).name,
                version=version,
                dimension=dimension,
                mapping=mapping_asked_for(file=file, **rest),
                dry_run=dry_run,
            )
