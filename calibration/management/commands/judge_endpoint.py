import json

from django.core.management.base import BaseCommand, CommandError

from calibration.models import Endpoint
from calibration.services import limit_endpoint


class Command(BaseCommand):
    help = "Show or set what all workers together may ask of the address that judges call."

    def add_arguments(self, parser):
        parser.add_argument("base_url", metavar="BASE_URL", nargs="?", help="none: list all addresses")
        parser.add_argument("--concurrency", type=int, help="calls at the same time; 0: no limit")
        parser.add_argument("--tokens-per-minute", type=int, help="0: no limit")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, **options):
        limits = {name: options[name] for name in ("concurrency", "tokens_per_minute")}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        if any(limit < 0 for limit in given.values()):
            raise CommandError("A limit is a number of 0 or more.")
        if given and not options["base_url"]:
            raise CommandError("Name the address whose limits are to be set.")
        if given:
            limit_endpoint(base_url=options["base_url"], **given)
        endpoints = Endpoint.objects.all()
        if options["base_url"]:
            endpoints = endpoints.filter(base_url=options["base_url"].rstrip("/"))
            if not endpoints:
                raise CommandError(f"No judge has called {options['base_url']} yet, and it has no limits.")
        rows = list(endpoints.values("base_url", "concurrency", "tokens_per_minute"))
        if options["json"]:
            self.stdout.write(json.dumps({"endpoints": rows}))
            return
        for row in rows:
            at_once, tokens = row["concurrency"] or "any number", row["tokens_per_minute"] or "any number"
            self.stdout.write(f"{row['base_url']}: {at_once} at a time, {tokens} of tokens a minute")
