from pathlib import Path

from calibration.facts import sample_facts
from calibration.management.exchanging import ExchangeCommand, opened
from evalsets.traffic import draw_sample, store_sample


class Command(ExchangeCommand):
    help = "Draw items from a traffic log, balanced over its strata, into a draft version."
    done = "{state}: {n} items."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        self.add_import_arguments(parser)
        parser.add_argument(
            "--name", required=True, help="of the eval set; one that exists gets its next version"
        )
        parser.add_argument("--size", type=int, default=250)
        parser.add_argument("--seed", type=int, required=True)
        parser.add_argument("--question", default="", metavar="COLUMN")
        parser.add_argument("--stratum", action="append", default=[], metavar="COLUMN", dest="strata")

    def exchange(self, *, file, name, size, seed, question, strata, dry_run, **_rest):
        with opened(file) as stream:
            sample = draw_sample(
                stream=stream,
                filename=Path(file).name,
                size=size,
                seed=seed,
                question=question,
                strata=strata,
            )
        version = None
        if not dry_run:
            version = store_sample(content=sample.content, source_name=sample.source_name, name=name)
        state = str(version) if version else "would be drawn"
        return sample_facts(sample, version=version) | {"state": state}
