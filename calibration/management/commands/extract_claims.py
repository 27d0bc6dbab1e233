from django.core.management.base import CommandError

from calibration.extraction_runs import MOST_TOKENS, resume_extraction, start_extraction
from calibration.facts import dry_extraction_facts, extraction_facts
from calibration.management.reporting import judge_of, version_named
from calibration.management.running import (
    RunningCommand,
    budget_of,
    estimate_in_words,
    new_budget_of,
    run_in_words,
    system_runs_of,
)
from calibration.models import JudgeRun
from calibration.services import Refused
from evalsets.models import State


class Command(RunningCommand):
    help = "Extract the claims of a version's draft runs: start it, go on with it, or wait for the end."
    of_a_start = ("system_run", "again", "prompt_version", "answer_tokens", "no_cache", "dry_run")

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("--again", action="store_true", help="replace what was extracted before, too")
        parser.add_argument(
            "--prompt-version",
            metavar="NUMBER",
            help="of the wording that asks for claims; the newest when not given",
        )
        parser.add_argument(
            "--answer-tokens", type=int, help=f"most tokens of an answer; {MOST_TOKENS} when not given"
        )

    def report(self, **options):
        self.refuse_words_without_effect(options)
        version = version_named(options["version"])
        try:
            if options["dry_run"]:
                return _dry(version, options)
            run = _started(version, options) if options["resume"] is None else _resumed(version, options)
        except Refused as error:
            raise CommandError(str(error)) from error
        if options["wait"]:
            self.wait(run)
        run.refresh_from_db()
        return extraction_facts(run)

    def sentences(self, result):
        if result.get("dry_run"):
            by = f"{result['judge']}, prompt {result['prompt_version']},"
            said = f"An extraction by {by} would make {result['calls']} calls"
            return [f"{said} for {result['targets']} responses; nothing was started.", *_left(result)]
        responses = result["responses"]
        return [
            f"Extraction {result['run']} by {result['judge']}, prompt {result['prompt_version']}: "
            f"{result['state']}.",
            f"  responses with claims {responses['with_claims']}, that make none {responses['without']}",
            *run_in_words(result),
        ]


def _left(result):
    kinds = [f"{kind.replace('_', ' ')} {n}" for kind, n in result["responses"].items()]
    return ["  responses: " + ", ".join(kinds), *estimate_in_words(result)]


def _asked(version, options):
    if not options["judge"]:
        raise CommandError(
            "Name the judge whose model is asked with --judge, or an extraction with --resume."
        )
    if options["answer_tokens"] is not None and options["answer_tokens"] < 1:
        raise CommandError("--answer-tokens is a number above zero.")
    drafts = version.runs.exclude(state=State.FROZEN)
    return {
        "judge": judge_of(version, options["judge"]),
        "version": version,
        "system_runs": system_runs_of(version, options) or list(drafts),
        "again": options["again"],
        "budget": budget_of(options),
    }


def _told(options):
    return {
        "prompt_version": options["prompt_version"] or "",
        "max_tokens": options["answer_tokens"],
        "use_cache": not options["no_cache"],
    }


def _started(version, options):
    return start_extraction(**_asked(version, options), **_told(options))


def _dry(version, options):
    return dry_extraction_facts(**_asked(version, options), **_told(options))


def _resumed(version, options):
    runs = JudgeRun.every.select_related("judge").filter(version=version, purpose=JudgeRun.Purpose.EXTRACTION)
    run = runs.filter(number=options["resume"]).first()
    if run is None:
        raise CommandError(f"{version} has no extraction {options['resume']}.")
    if options["judge"] and options["judge"] != run.judge.name:
        raise CommandError(f"Extraction {run.number} is one of {run.judge}, not of {options['judge']}.")
    resume_extraction(run=run, retry_failed=options["retry_failed"], budget=new_budget_of(options))
    return run
