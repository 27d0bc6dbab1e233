"""What the commands that run a model share: budgets, waiting, and a run and an estimate in words."""

import time
from decimal import Decimal
from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.leases import concurrency_of
from calibration.management.reporting import ReportingCommand
from calibration.models import JudgeRun
from calibration.queries import progress_of, worker_seen
from calibration.services import run_inline
from calibration.spending import Budget
from calibration.work import sweep
from evalsets.models import EvalSetVersion, SystemRun

POLL_SECONDS = 0.5
TELL_SECONDS = 5


class RunningCommand(ReportingCommand):
    """A command that starts a run or goes on with one."""

    of_a_start: tuple[str, ...] = ("no_cache", "dry_run")  # options that mean nothing beside --resume

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--judge", metavar="NAME", help="needed for a new run")
        parser.add_argument("--wait", action="store_true", help="return when the run is complete")
        parser.add_argument("--resume", type=int, metavar="RUN", help="go on with this run of the version")
        parser.add_argument("--retry-failed", action="store_true", help="with --resume: what failed, too")
        parser.add_argument("--system-run", action="append", type=int, metavar="NUMBER")
        parser.add_argument("--max-calls", type=int, help="budget: the run stops at so many calls")
        parser.add_argument("--max-tokens", type=int, help="budget: the run stops at so many tokens")
        parser.add_argument("--max-cost", type=Decimal, help="budget, in the currency of the judge's prices")
        parser.add_argument(
            "--dry-run", action="store_true", help="only tell what a new run would take: nothing is started"
        )
        parser.add_argument("--no-cache", action="store_true", help="ask even what was answered before")

    def refuse_words_without_effect(self, options: dict[str, Any]) -> None:
        if options["resume"] is None:
            if options["retry_failed"]:
                raise CommandError("--retry-failed goes with --resume RUN.")
            return
        given = [name for name in self.of_a_start if options[name] not in (None, False)]
        if given:
            word = given[0].replace("_", "-")
            raise CommandError(f"--{word} belongs to the start of a run; --resume goes on as it was started.")

    def wait(self, run: JudgeRun) -> None:
        if not worker_seen():
            self.stderr.write("No worker was seen in the last 30 s: working through it in this process.")
            _work_here(run)
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
                _work_here(run)
            time.sleep(POLL_SECONDS)


def _work_here(run: JudgeRun) -> None:
    """As many calls at a time as the judge allows; what dead workers held comes back first."""
    sweep()
    run_inline(run=run, calls=concurrency_of(run))


def budget_of(options: dict[str, Any]) -> Budget:
    limits = [options["max_calls"], options["max_tokens"], options["max_cost"]]
    if any(limit is not None and limit <= 0 for limit in limits):
        raise CommandError("A budget is a number above zero.")
    return Budget(*limits)


def new_budget_of(options: dict[str, Any]) -> Budget | None:
    """Of a run that goes on: None leaves it the one that it has."""
    budget = budget_of(options)
    return budget if any(limit is not None for limit in budget.fields.values()) else None


def system_runs_of(version: EvalSetVersion, options: dict[str, Any]) -> list[SystemRun]:
    """Those that were named; none where none was."""
    wanted = set(options["system_run"] or ())
    found = list(version.runs.filter(number__in=wanted))
    if missing := sorted(wanted - {run.number for run in found}):
        raise CommandError(f"{version} has no system run {missing[0]}.")
    return found


def run_in_words(result: dict[str, Any]) -> list[str]:
    words = ["  " + ", ".join(f"{name} {count}" for name, count in result["counts"].items())]
    if result["stopped"]:
        words.append(f"  stopped by {result['stopped']['reason']}: {result['stopped']['detail']}")
    return words + [f"  failed, {kind}: {count}" for kind, count in result["failures"].items()]


def estimate_in_words(result: dict[str, Any]) -> list[str]:
    if not result["calls"]:
        return []
    tokens, cost, seconds = result["tokens"], result["cost"], result["seconds"]
    return [
        f"  tokens: about {tokens['prompt']} in, {tokens['completion']} out",
        f"  cost: {cost['amount']} {cost['currency']}" if cost else "  cost: no prices are known",
        "  time: not known yet" if seconds is None else f"  time: about {seconds:.0f} s",
    ]
