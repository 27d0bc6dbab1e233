import time
from decimal import Decimal

from django.core.management.base import CommandError

from calibration.estimates import estimate
from calibration.leases import concurrency_of
from calibration.management.reporting import ReportingCommand, version_named
from calibration.models import Judge, JudgeRun
from calibration.queries import progress_of, worker_seen
from calibration.services import (
    Refused,
    dimensions_of,
    judge_named,
    refuse_start,
    resume_run,
    rubric_in_force,
    run_inline,
    start_run,
)
from calibration.spending import Budget
from calibration.targets import targets_of
from calibration.work import sweep

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
        parser.add_argument("--dimension", action="append")
        parser.add_argument("--system-run", action="append", type=int, metavar="NUMBER")
        parser.add_argument("--repeats", type=int, help="calls per target; 1 when not given")
        parser.add_argument("--max-calls", type=int, help="budget: the run stops at so many calls")
        parser.add_argument("--max-tokens", type=int, help="budget: the run stops at so many tokens")
        parser.add_argument("--max-cost", type=Decimal, help="budget, in the currency of the judge's prices")
        parser.add_argument(
            "--dry-run", action="store_true", help="only tell what a new run would take: nothing is started"
        )
        parser.add_argument("--no-cache", action="store_true", help="ask even what was answered before")

    def report(self, **options):
        _refuse_words_without_effect(options)
        version = version_named(options["version"])
        try:
            if options["dry_run"]:
                return _dry(version, options)
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
            "calls": progress.spent.calls,
            "calls_without_tokens": progress.spent.uncounted,
            "cost": _money(progress.cost, run.prices.get("currency", "")),
            "stopped": {"reason": run.stop_reason, "detail": run.stop_detail} if run.stop_reason else None,
        }

    def sentences(self, result):
        if result.get("dry_run"):
            return _told(result)
        counts = result["counts"]
        failed = f" with {counts['failed']} failures" if counts["failed"] else ""
        words = [f"Run {result['run']} of {result['judge']}: {result['state']}{failed}."]
        words.append("  " + ", ".join(f"{name} {count}" for name, count in counts.items()))
        if result["stopped"]:
            words.append(f"  stopped by {result['stopped']['reason']}: {result['stopped']['detail']}")
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
    of_a_start = ["dimension", "system_run", "no_cache", "dry_run"]
    given = [name for name in of_a_start if options[name]] + ["repeats"] * (options["repeats"] is not None)
    if given:
        word = given[0].replace("_", "-")
        raise CommandError(f"--{word} belongs to the start of a run; --resume goes on as it was started.")


def _started(version, options):
    return start_run(
        judge=_judge(version, options),
        version=version,
        system_runs=_system_runs(version, options),
        dimensions=options["dimension"],
        repeats=_repeats(options),
        use_cache=not options["no_cache"],
        budget=_budget(options),
    )


def _judge(version, options):
    if not options["judge"]:
        raise CommandError("Name the judge with --judge, or a run with --resume.")
    return judge_named(evalset=version.evalset, name=options["judge"])


def _system_runs(version, options):
    if not options["system_run"]:
        return list(version.runs.all())
    system_runs = list(version.runs.filter(number__in=options["system_run"]))
    missing = sorted(set(options["system_run"]) - {run.number for run in system_runs})
    if missing:
        raise CommandError(f"{version} has no system run {missing[0]}.")
    return system_runs


def _repeats(options):
    return 1 if options["repeats"] is None else options["repeats"]


def _budget(options):
    limits = [options["max_calls"], options["max_tokens"], options["max_cost"]]
    if any(limit is not None and limit <= 0 for limit in limits):
        raise CommandError("A budget is a number above zero.")
    return Budget(*limits)


def _money(amount, currency):
    return None if amount is None else {"amount": str(amount), "currency": currency}


def _dry(version, options):
    judge, rubric_version, repeats = _judge(version, options), rubric_in_force(version), _repeats(options)
    asked = options["dimension"] or list(dimensions_of(judge, rubric_version))
    chosen = {
        "system_runs": _system_runs(version, options),
        "dimensions": asked,
        "rubric_version": rubric_version,
    }
    refuse_start(judge=judge, version=version, repeats=repeats, budget=_budget(options), **chosen)
    if judge.kind != Judge.Kind.OPENAI:
        targets = len(targets_of(**chosen)) * repeats
        return {"dry_run": True, "judge": judge.name, "targets": targets, "calls": 0}
    found = estimate(judge=judge, repeats=repeats, use_cache=not options["no_cache"], **chosen)
    return {
        "dry_run": True,
        "judge": judge.name,
        "targets": found.targets,
        "conditional_at_most": found.conditional,
        "from_cache": found.from_cache,
        "calls": found.calls,
        "tokens": {"prompt": found.prompt_tokens, "completion": found.completion_tokens},
        "cost": _money(found.cost, found.currency),
        "seconds": found.seconds,
        "measured_calls": found.measured_calls,
    }


def _told(result):
    words = [f"A run of {result['judge']} would make {result['calls']} calls; nothing was started."]
    if result["calls"]:
        tokens, cost = result["tokens"], result["cost"]
        words.append(f"  tokens: about {tokens['prompt']} in, {tokens['completion']} out")
        words.append(
            f"  cost: {cost['amount']} {cost['currency']}" if cost else "  cost: no prices are known"
        )
        seconds = result["seconds"]
        words.append("  time: not known yet" if seconds is None else f"  time: about {seconds:.0f} s")
    return words


def _resumed(version, options):
    run = JudgeRun.objects.select_related("judge").filter(version=version, number=options["resume"]).first()
    if run is None:
        raise CommandError(f"{version} has no judge run {options['resume']}.")
    if options["judge"] and options["judge"] != run.judge.name:
        raise CommandError(f"Run {run.number} is one of {run.judge}, not of {options['judge']}.")
    budget = _budget(options)
    given = budget if any(limit is not None for limit in budget.fields.values()) else None
    resume_run(run=run, retry_failed=options["retry_failed"], budget=given)
    return run
