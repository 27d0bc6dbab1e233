import time

from django.core.management.base import CommandError

from calibration.leases import concurrency_of
from calibration.management.reporting import ReportingCommand, version_named
from calibration.models import JudgeRun
from calibration.queries import progress_of, worker_seen
from calibration.services import Refused, judge_named, resume_run, run_inline, start_run
from calibration.work import sweep
from evalsets.labels import LABELS

POLL_SECONDS = 0.5
TELL_SECONDS = 5


class Command(ReportingCommand):
    help = "Run a judge over a version: start it, go on with a stopped run, or wait for the end."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("--judge", metavar="NAME", help="needed for a new run")
        parser.add_argument("--wait", action="store_true", help="return when the run is complete")
        parser.add_argument("--resume", type=int, metavar="RUN", help="go on with this run of the version")
        parser.add_argument("--retry-failed", action="store_true", help="with --resume: failed verdicts too")
        parser.add_argument("--dimension", action="append", choices=list(LABELS))
        parser.add_argument("--system-run", action="append", type=int, metavar="NUMBER")
        parser.add_argument("--repeats", type=int, help="calls per target; 1 when not given")
        parser.add_argument("--no-cache", action="store_true", help="ask even what was answered before")

    def report(self, **options):
        _refuse_words_without_effect(options)
        version = version_named(options["version"])
        try:
            run = _started(version, options) if options["resume"] is None else _resumed(version, options)
        except Refused as error:
            raise CommandError(str(error)) from error
        if options["wait"]:
            self._wait(run)
        run.refresh_from_db()
        progress = progress_of(run)
        return {
            "run": run.number,
            "judge": run.judge.name,
            "state": run.state,
            "counts": {"valid": progress.valid, "failed": progress.failed, "pending": progress.pending},
            "failures": progress.failures_by_kind,
            "resolved_models": progress.resolved_models,
            "from_cache": progress.from_cache,
            "tokens": {"prompt": progress.prompt_tokens, "completion": progress.completion_tokens},
        }

    def sentences(self, result):
        counts = result["counts"]
        failed = f" with {counts['failed']} failures" if counts["failed"] else ""
        words = [f"Run {result['run']} of {result['judge']}: {result['state']}{failed}."]
        words.append("  " + ", ".join(f"{name} {count}" for name, count in counts.items()))
        words += [f"  failed, {kind}: {count}" for kind, count in result["failures"].items()]
        return words

    def _wait(self, run):
        if not worker_seen():
            self.stderr.write("No worker was seen in the last 30 s: working through it in this process.")
            self._work_here(run)
        told = 0.0
        while True:
            run.refresh_from_db()
            progress = progress_of(run)
            if time.monotonic() - told > TELL_SECONDS or run.state != JudgeRun.State.RUNNING:
                told = time.monotonic()
                done = f"{progress.done} of {progress.total}, {progress.failed} failed"
                self.stderr.write(f"{done}, {run.get_state_display()}")
            if run.state != JudgeRun.State.RUNNING:
                return
            if progress.nobody_works:
                self.stderr.write("No worker was seen for 30 s: going on in this process.")
                self._work_here(run)
            time.sleep(POLL_SECONDS)

    def _work_here(self, run):
        """As many calls at a time as the judge allows; what dead workers held comes back first."""
        sweep()
        run_inline(run=run, calls=concurrency_of(run))


def _refuse_words_without_effect(options):
    if options["resume"] is None:
        if options["retry_failed"]:
            raise CommandError("--retry-failed goes with --resume RUN.")
        return
    of_a_start = ["dimension", "system_run", "no_cache"]
    given = [name for name in of_a_start if options[name]] + ["repeats"] * (options["repeats"] is not None)
    if given:
        word = given[0].replace("_", "-")
        raise CommandError(f"--{word} belongs to the start of a run; --resume goes on as it was started.")


def _started(version, options):
    if not options["judge"]:
        raise CommandError("Name the judge with --judge, or a run with --resume.")
    system_runs = None
    if options["system_run"]:
        system_runs = list(version.runs.filter(number__in=options["system_run"]))
        missing = sorted(set(options["system_run"]) - {run.number for run in system_runs})
        if missing:
            raise CommandError(f"{version} has no system run {missing[0]}.")
    return start_run(
        judge=judge_named(evalset=version.evalset, name=options["judge"]),
        version=version,
        system_runs=system_runs,
        dimensions=options["dimension"],
        repeats=1 if options["repeats"] is None else options["repeats"],
        use_cache=not options["no_cache"],
    )


def _resumed(version, options):
    run = JudgeRun.objects.select_related("judge").filter(version=version, number=options["resume"]).first()
    if run is None:
        raise CommandError(f"{version} has no judge run {options['resume']}.")
    if options["judge"] and options["judge"] != run.judge.name:
        raise CommandError(f"Run {run.number} is one of {run.judge}, not of {options['judge']}.")
    resume_run(run=run, retry_failed=options["retry_failed"])
    return run
