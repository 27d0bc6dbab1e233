import json

from django.core.management.base import BaseCommand, CommandError

from calibration.example_set import Refused, load_example


class Command(BaseCommand):
    help = "Load the built-in example (once) and print its log-ins."

    def add_arguments(self, parser):
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, *args, **options):
        try:
            told = load_example(tell=lambda sentence: self.stderr.write(f"{sentence} ..."))
        except Refused as error:
            if options["json"]:
                self.stdout.write(json.dumps({"problems": [{"message": str(error)}]}))
            raise CommandError(str(error)) from error
        if options["json"]:
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        self.stdout.write("The example is loaded. Log in as")
        for login in told["logins"]:
            self.stdout.write("  {username:<6} password {password:<16} {role}".format(**login))
