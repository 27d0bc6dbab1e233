"""How much of an endpoint's ideal rate the judge's workers reach, and that no failure is miscounted.

Run with ``./run bench judge`` or ``python -m tests.bench.bench_judge --targets 10000``. A scripted endpoint
answers every call after 200 ms; with 64 calls at the same time the ideal is 320 a second. Then the same with
5 % rate limits, 2 % silence and 1 % garbage: what the database counted is compared with what the endpoint
did. What the bare library reaches with as many threads in as many processes is measured first: it reaches
0.965 of the ideal where the goals were set, and where it reaches less the goals move with it.
It exits 1 when a goal is missed.
"""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

GOALS = {"embedded": 0.7, "servers": 0.88}
BARE = 0.965  # of the ideal, by the bare library where the goals were set
FAULTS = ("0.05", "0.02", "0.01")
SILENT_CALL_SECONDS = "2"
CLAIMS = 10
ROOT = Path(__file__).resolve().parents[2]


@contextlib.contextmanager
def scripted_endpoint(folder: Path, milliseconds: int, shares: tuple[str, ...]) -> Iterator[str]:
    port_file = folder / f"endpoint-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "tests.bench.endpoint", str(port_file), str(milliseconds), *shares]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        while not port_file.exists():
            assert process.poll() is None, "the endpoint did not start"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port_file.read_text()}"
    finally:
        process.kill()
        process.wait()


def counts_of(address: str) -> dict:
    with urllib.request.urlopen(f"{address}/counts", timeout=10) as answer:
        return json.load(answer)


def memory_of(pid: int) -> float:
    """Resident megabytes of a process; 0 where the system does not tell."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1000
    return 0.0


def cpu_seconds_of(pid: int) -> float:
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


@contextlib.contextmanager
def backends(kind: str, folder: Path) -> Iterator[dict[str, str]]:
    """DATABASE_URL and CELERY_BROKER_URL: the embedded defaults, or PostgreSQL and Redis."""
    if kind == "embedded":
        yield {"DATABASE_URL": f"sqlite:///{folder / 'bench.sqlite3'}", "CELERY_BROKER_URL": ""}
        return
    from tests import servers

    with servers.session():
        yield {
            "DATABASE_URL": servers.postgres_url(servers.postgres()),
            "CELERY_BROKER_URL": servers.redis_url(servers.redis_server(), 0),
        }


def share_of_bare_calls(options: argparse.Namespace) -> float:
    calls, ideal = min(options.targets, 2_000), options.concurrency / (options.milliseconds / 1000)
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-bench-") as name,
        scripted_endpoint(Path(name), options.milliseconds, ("0", "0", "0")) as address,
    ):
        numbers = [str(number // options.workers) for number in (calls, options.concurrency)]
        command = [sys.executable, "-m", "tests.bench.bare_calls", address, *numbers]
        processes = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) for _ in range(options.workers)
        ]
        made = [json.loads(process.communicate()[0]) for process in processes]
    rate = sum(calls / options.workers / one["seconds"] for one in made)
    print(f"The bare library in {options.workers} x {numbers[1]} threads: {calls:,} calls")
    print(f"    {rate:.0f} a second: {rate / ideal:.3f} of the ideal {ideal:.0f}", end="; ")
    print(f"{1000 * sum(one['cpu'] for one in made) / calls:.1f} ms of CPU a call", flush=True)
    return rate / ideal


def measure(kind: str, options: argparse.Namespace, bare: float) -> bool:
    """In a process of its own, since settings are read once."""
    code = os.spawnv(
        os.P_WAIT,
        sys.executable,
        [sys.executable, "-m", "tests.bench.bench_judge", "--one", kind]
        + ["--targets", str(options.targets), "--concurrency", str(options.concurrency)]
        + ["--milliseconds", str(options.milliseconds), "--workers", str(options.workers)]
        + ["--bare", str(bare)],
    )
    return code == 0


def measure_here(kind: str, options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="touchstone-bench-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        with backends(kind, folder) as addresses:
            os.environ.update(addresses, DATA_DIR=name, DJANGO_SETTINGS_MODULE="config.settings")
            os.environ["TOUCHSTONE_TESTING"] = "1"
            import django
            from django.core.management import call_command

            django.setup()
            call_command("migrate", verbosity=0)
            share = one_run(folder, addresses, options, ("0", "0", "0"))
            right = one_run(folder, addresses, options, FAULTS) >= 0
    reached = told_of_goal(GOALS[kind], share, options.bare)
    return 0 if reached and right else 1


def told_of_goal(goal: float, share: float, bare: float) -> bool:
    here = goal * min(1.0, bare / BARE)
    print(f"  goal {goal:.2f} of the ideal: {'reached' if share >= goal else 'MISSED'}", end="")
    if here < goal:
        print(f"; {here:.2f} where the bare library reaches {bare:.2f}", end="")
        print(f": {'held' if share >= here else 'MISSED'}", end="")
    print()
    return share >= here


def one_run(folder: Path, addresses: dict, options: argparse.Namespace, shares: tuple[str, ...]) -> float:
    """The share of the ideal rate; with faults -1 when a count is wrong."""
    from calibration.models import JudgeRun
    from calibration.services import add_judge, start_run
    from evalsets.models import EvalSet
    from tests.calibration.judges.conftest import make_version
    from tests.processes import app_environment, start_worker

    with_faults = shares == FAULTS
    evalset = EvalSet.objects.create(slug=f"bench-{int(with_faults)}", name="Bench")
    version = make_version(evalset, responses=options.targets // CLAIMS, claims=CLAIMS)
    workers = []
    with scripted_endpoint(folder, options.milliseconds, shares) as address:
        judge = add_judge(
            evalset=evalset,
            name="scripted",
            model="m",
            base_url=f"{address}/v1",
            parameters={"concurrency": options.concurrency},
        )
        environment = app_environment(folder, JUDGE_TIMEOUT_SECONDS=SILENT_CALL_SECONDS, **addresses)
        try:
            for number in range(options.workers):
                workers.append(
                    start_worker(environment, folder / f"worker-{number}.log", concurrency=4, beat=not number)
                )
            run = start_run(judge=judge, version=version, dimensions=["grounding"])
            early = late = 0.0
            before = sum(cpu_seconds_of(worker.process.pid) for worker in workers)
            while run.state == JudgeRun.State.RUNNING:
                time.sleep(0.2)
                run.refresh_from_db()
                memory = sum(memory_of(worker.process.pid) for worker in workers)
                if not early and run.verdicts.filter(state="valid").count() > options.targets // 4:
                    early = memory
                late = memory or late
            done = counts_of(address)
            cpu = sum(cpu_seconds_of(worker.process.pid) for worker in workers) - before
        finally:
            for worker in workers:
                worker.stop()
        return told(run, done, options, (early, late, cpu), with_faults)


def told(
    run, done: dict, options: argparse.Namespace, used: tuple[float, float, float], with_faults: bool
) -> float:
    from django.db.models import Max

    ended = run.verdicts.aggregate(at=Max("updated_at"))["at"].timestamp()
    seconds = ended - done["first"]
    ideal = options.concurrency / (options.milliseconds / 1000)
    calls = sum(done.get(name, 0) for name in ("good", "limited", "silent", "garbage"))
    share = calls / seconds / ideal
    states = Counter(run.verdicts.values_list("state", flat=True))
    counted = Counter(run.calls.values_list("failure", flat=True))
    early, late, cpu = used
    name = "with faults" if with_faults else "without faults"
    print(f"  {name}: {options.targets:,} targets, {calls:,} calls in {seconds:.1f} s")
    print(f"    {calls / seconds:.0f} a second: {share:.3f} of the ideal {ideal:.0f}")
    print(f"    most at once {done['most_at_once']}; {1000 * cpu / calls:.1f} ms of CPU a call")
    print(f"    memory {early:.0f} MB after a quarter, {late:.0f} MB at the end")
    did = {
        "": done.get("good", 0),
        "rate_limited": done.get("limited", 0),
        "timeout": done.get("silent", 0),
        "unparseable": done.get("garbage", 0),
    }
    did = {kind: n for kind, n in did.items() if n}
    lost = options.targets - states["valid"] - states["failed"]
    print(f"    verdicts {dict(states)}, {lost} lost; calls in the database {dict(counted)}")
    if counted != did or lost or done["most_at_once"] > options.concurrency:
        print(f"    WRONG: the endpoint did {did}, at most {options.concurrency} may run at once")
        return -1.0
    return share


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1_000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--milliseconds", type=int, default=200)
    parser.add_argument(
        "--workers", type=int, default=min(2, os.cpu_count() or 1), help="worker processes, as ./run has them"
    )
    parser.add_argument("--bare", type=float, default=BARE, help="what the bare library reaches here")
    parser.add_argument("--one", choices=list(GOALS), help="measure only this, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        return measure_here(options.one, options)
    bare, reached = share_of_bare_calls(options), []
    for kind, words in (("embedded", "SQLite and the embedded broker"), ("servers", "PostgreSQL and Redis")):
        print(words, flush=True)
        reached.append(measure(kind, options, bare))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
