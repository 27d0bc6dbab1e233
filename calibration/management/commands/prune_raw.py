import json

from django.core.management.base import BaseCommand, CommandError

from calibration.leases import prune_calls


class Command(BaseCommand):
    help = (
        "Delete the kept requests and replies of judge calls that are older than some days. "
        "Labels, failures, answers, tokens and times stay."
    )

    def add_arguments(self, parser):
        parser.add_argument("--older-than", type=int, required=True, metavar="DAYS")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, **options):
        if options["older_than"] < 0:
            raise CommandError("--older-than is a number of days, 0 or more.")
        pruned = prune_calls(days=options["older_than"])
        if options["json"]:
            self.stdout.write(json.dumps({"pruned": pruned}))
        else:
            self.stdout.write(f"Deleted the requests and replies of {pruned} calls.")
