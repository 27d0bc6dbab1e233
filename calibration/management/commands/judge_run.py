from django.core.management.base import CommandError

from calibration.facts import dry_run_facts, judge_run_facts
from calibration.management.reporting import version_named
from calibration.management.running import (
    RunningCommand,
    budget_of,
    estimate_in_words,
    new_budget_of,
    run_in_words,
    system_runs_of,
)
from calibration.models import JudgeRun
from calibration.services import (
    Refused,
    judge_named,
    resume_run,
    start_run,
)


class Command(RunningCommand):
    help = "Run a judge over a version: start it, go on with a stopped run, or wait for the end."
    of_a_start = ("dimension", "system_run", "no_cache", "dry_run", "repeats")

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("--dimension", action="append")
        parser.add_argument("--repeats", type=int, help="calls per target; 1 when not given")

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
        return judge_run_facts(run)

    def sentences(self, result):
        if result.get("dry_run"):
            said = f"A run of {result['judge']} would make {result['calls']} calls; nothing was started."
            return [said, *estimate_in_words(result)]
        failed = f" with {result['counts']['failed']} failures" if result["counts"]["failed"] else ""
        return [
            f"Run {result['run']} of {result['judge']}: {result['state']}{failed}.",
            *run_in_words(result),
        ]


def _started(version, options):
    return start_run(
        judge=_judge(version, options),
        version=version,
        system_runs=system_runs_of(version, options) or list(version.runs.all()),
        dimensions=options["dimension"],
        repeats=_repeats(options),
        use_cache=not options["no_cache"],
        budget=budget_of(options),
    )


def _judge(version, options):
    if not options["judge"]:
        raise CommandError("Name the judge with --judge, or a run with --resume.")
    return judge_named(evalset=version.evalset, name=options["judge"])


def _repeats(options):
    return 1 if options["repeats"] is None else options["repeats"]


def _dry(version, options):
    return dry_run_facts(
        judge=_judge(version, options),
        version=version,
        system_runs=system_runs_of(version, options) or list(version.runs.all()),
        dimensions=options["dimension"],
        repeats=_repeats(options),
        use_cache=not options["no_cache"],
        budget=budget_of(options),
    )


def _resumed(version, options):
    run = JudgeRun.objects.select_related("judge").filter(version=version, number=options["resume"]).first()
    if run is None:
        raise CommandError(f"{version} has no judge run {options['resume']}.")
    if options["judge"] and options["judge"] != run.judge.name:
        raise CommandError(f"Run {run.number} is one of {run.judge}, not of {options['judge']}.")
    resume_run(run=run, retry_failed=options["retry_failed"], budget=new_budget_of(options))
    return run
