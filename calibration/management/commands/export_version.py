import gzip
from pathlib import Path

from django.core.management.base import CommandError

from calibration.management.exchanging import ExchangeCommand
from calibration.management.reporting import version_named
from calibration.native_file import export_version


class Command(ExchangeCommand):
    help = "Write the native file of a version; importing it again gives the same content hash."
    done = "Wrote {evalset}@{version} to {out}."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("version", metavar="SLUG@VERSION")
        parser.add_argument("--out", required=True, metavar="FILE", help="gzipped when the name ends in .gz")
        parser.add_argument("--with-labels", action="store_true", help="graders' labels and verdicts too")

    def exchange(self, *, version, out, with_labels, **_rest):
        found = version_named(version)
        path = Path(out)
        unfinished = path.with_name(f"{path.name}.part")
        opener = gzip.open if path.suffix == ".gz" else open
        try:
            with opener(unfinished, "wb") as stream:
                result = export_version(version=found, out=stream, with_labels=with_labels)
            unfinished.replace(path)
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror}.") from error
        return {**result, "out": str(path)}
