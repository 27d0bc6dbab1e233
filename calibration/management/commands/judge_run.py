from django.core.management.base import CommandError

from calibration.estimates import estimate
from calibration.management.reporting import version_named
from calibration.management.running import (
    RunningCommand,
    budget_of,
    estimate_facts,
    estimate_in_words,
    facts_of,
    new_budget_of,
    run_in_words,
    system_runs_of,
)
from calibration.models import Judge, JudgeRun
from calibration.queries import progress_of
from calibration.services import (
    Refused,
    dimensions_of,
    judge_named,
    refuse_start,
    resume_run,
    rubric_in_force,
    start_run,
)
from calibration.targets import targets_of


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
        return facts_of(run, progress_of(run))

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
    judge, rubric_version, repeats = _judge(version, options), rubric_in_force(version), _repeats(options)
    asked = options["dimension"] or list(dimensions_of(judge, rubric_version))
    chosen = {
        "system_runs": system_runs_of(version, options) or list(version.runs.all()),
        "dimensions": asked,
        "rubric_version": rubric_version,
    }
    refuse_start(judge=judge, version=version, repeats=repeats, budget=budget_of(options), **chosen)
    if judge.kind != Judge.Kind.OPENAI:
        targets = len(targets_of(**chosen)) * repeats
        return {"dry_run": True, "judge": judge.name, "targets": targets, "calls": 0}
    found = estimate(judge=judge, repeats=repeats, use_cache=not options["no_cache"], **chosen)
    return {
        "dry_run": True,
        "judge": judge.name,
        "targets": found.targets,
        "conditional_at_most": found.conditional,
        **estimate_facts(found),
    }


def _resumed(version, options):
    run = JudgeRun.objects.select_related("judge").filter(version=version, number=options["resume"]).first()
    if run is None:
        raise CommandError(f"{version} has no judge run {options['resume']}.")
    if options["judge"] and options["judge"] != run.judge.name:
        raise CommandError(f"Run {run.number} is one of {run.judge}, not of {options['judge']}.")
    resume_run(run=run, retry_failed=options["retry_failed"], budget=new_budget_of(options))
    return run
