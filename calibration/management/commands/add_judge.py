import json

from django.core.management.base import BaseCommand, CommandError

from calibration.forms import JudgeForm
from calibration.judges import prompts
from calibration.services import Refused, add_judge
from evalsets.models import EvalSet


class Command(BaseCommand):
    help = "Add an LLM judge to an eval set. A judge is never changed: another setting is another judge."

    def add_arguments(self, parser):
        parser.add_argument("slug", metavar="SLUG")
        parser.add_argument("--name", required=True)
        parser.add_argument("--model", required=True, help="the model as the server names it")
        parser.add_argument("--base-url", default="", help="default: JUDGE_BASE_URL")
        parser.add_argument("--provider", default="")
        parser.add_argument("--family", default="", help="model family, to warn when it judges its own kin")
        parser.add_argument("--prompt-version", default=prompts.BUILT_IN)
        parser.add_argument("--temperature", type=float, help="not sent when not given")
        parser.add_argument("--max-tokens", type=int, help="budget of an answer, thinking included")
        parser.add_argument("--concurrency", type=int, help="calls at the same time")
        parser.add_argument("--only-cited", action="store_true", help="show only passages that a claim cites")
        parser.add_argument("--reasoning", action="store_true", help="a reasoning model: no temperature")
        parser.add_argument("--reasoning-effort", default="", help="minimal, low, medium or high")
        parser.add_argument("--price-prompt", help="of a million tokens in")
        parser.add_argument("--price-cached", help="of a million tokens in from the server's cache")
        parser.add_argument("--price-completion", help="of a million tokens out")
        parser.add_argument("--currency", default="USD")
        parser.add_argument("--api-key-variable", default="", help="default: JUDGE_API_KEY")
        parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")

    def handle(self, **options):
        evalset = EvalSet.objects.filter(slug=options["slug"]).first()
        if evalset is None:
            raise CommandError(f"There is no eval set {options['slug']!r}.")
        form = JudgeForm({name: options[name] for name in JudgeForm.base_fields}, evalset=evalset)
        if not form.is_valid():
            raise CommandError(" ".join(_problems(form)))
        try:
            judge = add_judge(evalset=evalset, **form.judge)
        except Refused as error:
            raise CommandError(str(error)) from error
        for warning in form.warnings:
            self.stderr.write(str(warning))
        if options["json"]:
            self.stdout.write(json.dumps({"judge": judge.name, "model": judge.model, "id": judge.pk}))
        else:
            self.stdout.write(f"Added the judge {judge.name} to {evalset.slug}.")


def _problems(form):
    for field, errors in form.errors.items():
        name = "" if field == "__all__" else f"--{field.replace('_', '-')}: "
        yield from (f"{name}{error}" for error in errors)
