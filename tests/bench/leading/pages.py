"""Asks for every page of a lead in one database, and prints what each took as one line of JSON.

Run as a process: python -m tests.bench.leading.pages --responses 1000 [--repeats 5] [--only NAME ...]
The database is TEST_DATABASE_URL; the world is made in it where it is not there yet.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

SLOW = 8.0  # a page that takes longer is asked for twice only


@dataclass
class Taken:
    """Of one page: the first view in a new process, and those after it."""

    name: str
    status: int = 0
    queries: int = 0
    first: float = 0.0  # seconds
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)  # of this process; the database's own is not in it
    bare: float | None = None
    size: int = 0
    share: float = 1.0  # of a core that this process got meanwhile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--responses", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--profile", action="store_true", help="where the time of each page goes, to stderr")
    options = parser.parse_args()
    django.setup()
    made = _world(options.responses)
    for name, seconds in made.items():
        print(json.dumps({"made": name, "seconds": seconds}), flush=True)
    for name, (path, bare) in pages().items():
        if not options.only or any(wanted in name for wanted in options.only):
            taken = _taken(name, path, bare, options.repeats, options.profile)
            print(json.dumps(asdict(taken)), flush=True)


def _world(responses: int) -> dict[str, float]:
    """Making what is not there yet, and how long that took."""
    from calibration.models import CalibrationReport, JudgeRun
    from calibration.reports import build_report
    from evalsets.models import EvalSet
    from tests.bench.leading import world

    took = {}
    begin = time.perf_counter()
    if not EvalSet.objects.filter(slug=world.SLUG).exists():
        world.build(responses)
        took["the rows"] = time.perf_counter() - begin
    for run in JudgeRun.objects.order_by("number"):
        for dimension in run.dimensions:
            if not CalibrationReport.objects.filter(judge_run=run, dimension=dimension).exists():
                begin = time.perf_counter()
                build_report(judge_run=run, round=run.version.rounds.get(), dimension=dimension)
                took[f"report on {run.judge}, {dimension}"] = time.perf_counter() - begin
    return took


def pages() -> dict[str, tuple[str, str]]:
    """Name -> the address, and the bare question to the database that its figures rest on."""
    from annotate.disagreements import DisagreementQueue
    from annotate.models import Round
    from calibration.models import JudgeRun
    from tests.bench.leading.world import SLUG

    round = Round.objects.select_related("rubric_version", "version").get(version__evalset__slug=SLUG)
    run = JudgeRun.objects.get(version=round.version, number=1)
    response = round.version.responses.order_by("pk").first()
    assert response is not None
    pending = DisagreementQueue(round).first()
    assert pending is not None
    home = f"/evalsets/{SLUG}/1/"
    target = f"{home}disagreements/1/{pending.dimension}/{pending.target}/"
    judged, log = f"{home}judges/runs/{run.number}/", f"{home}disagreements/log/"
    compare = f"{home}rates/compare/?before=1:1&after=1:2"
    of_items = "GROUP BY r.item_id"
    gold = f"FROM annotate_goldlabel g JOIN evalsets_response r ON r.id = g.response_id {{}} {of_items}"
    count_gold = f"SELECT r.item_id, count(*), sum(CASE WHEN g.label = 'supported' THEN 1 ELSE 0 END) {gold}"
    of_gold = count_gold.format("WHERE g.dimension = 'grounding'")
    of_judge = (
        "SELECT r.item_id, count(*), sum(CASE WHEN v.label = 'supported' THEN 1 ELSE 0 END) "
        f"FROM calibration_verdict v JOIN evalsets_response r ON r.id = v.response_id "
        f"WHERE v.run_id = {run.pk} AND v.dimension = 'grounding' {of_items}"
    )

    def pairs(dimension: str) -> str:
        same = "b.claim_id = a.claim_id" if dimension == "grounding" else "b.response_id = a.response_id"
        return (
            "SELECT r.item_id, a.label, b.label, count(*) FROM annotate_annotation a "
            f"JOIN annotate_annotation b ON b.round_id = a.round_id AND b.dimension = a.dimension AND {same} "
            "AND b.grader_id > a.grader_id JOIN evalsets_response r ON r.id = a.response_id "
            f"WHERE a.round_id = {round.pk} AND a.dimension = '{dimension}' GROUP BY 1, 2, 3"
        )

    differ = (
        "SELECT count(*) FROM (SELECT 1 FROM annotate_annotation WHERE round_id = "
        f"{round.pk} GROUP BY dimension, response_id, claim_id HAVING min(label) <> max(label)) AS apart"
    )
    verdicts = "SELECT run_id, state, count(*) FROM calibration_verdict GROUP BY 1, 2"
    items = "SELECT count(*) FROM evalsets_item"
    claims = (
        "SELECT r.run_id, count(*) FROM evalsets_claim c JOIN evalsets_response r ON r.id = c.response_id "
        "GROUP BY 1"
    )
    assigned = "SELECT grader_id, state, count(*) FROM annotate_assignment GROUP BY 1, 2"
    decided = "SELECT count(*) FROM annotate_adjudication"
    served = (
        "SELECT r.item_id, count(*) FROM evalsets_passage p JOIN evalsets_response r ON r.id = p.response_id "
        "JOIN evalsets_item i ON i.id = r.item_id WHERE i.expected_passages IS NOT NULL GROUP BY 1"
    )
    nothing = "SELECT 1"
    return {
        "version": (home, claims),
        "items": (f"{home}items/", items),
        "items, last page": (f"{home}items/?page=99999", items),
        "items, search": (f"{home}items/?q=harbour", items),
        "response": (f"{home}responses/{response.pk}/", nothing),
        "rounds": (f"{home}rounds/", assigned),
        "round": (f"{home}rounds/1/", assigned),
        "round's responses": (f"{home}rounds/1/responses/", assigned),
        "disagreements": (f"{home}disagreements/", differ),
        "disagreements, a later page": (f"{home}disagreements/?status=all&page=40", differ),
        "disagreements, one stratum": (f"{home}disagreements/?stratum=topic%3Atopic+1", differ),
        "a disagreement": (target, differ),
        "decisions": (log, decided),
        "agreement on claims": (f"{home}agreement/?dimension=grounding", pairs("grounding")),
        "agreement on responses": (f"{home}agreement/?dimension=abstention", pairs("abstention")),
        "trust": (f"{home}trust/", nothing),
        "judges": (f"{home}judges/", verdicts),
        "judge run": (judged, verdicts),
        "verdicts": (f"{judged}verdicts/", verdicts),
        "report on claims": (f"{judged}calibration/grounding/", of_judge),
        "report on responses": (f"{judged}calibration/abstention/", of_judge),
        "cases of the report": (f"{judged}calibration/grounding/cases/", of_judge),
        "drift": (f"{judged}drift/", nothing),
        "rates by gold": (f"{home}rates/", of_gold),
        "rates by gold, response unit": (f"{home}rates/?unit=response", of_gold),
        "rates by a grader": (f"{home}rates/?source=grader:ada", of_gold),
        "rates by a judge": (f"{home}rates/?source=judge:alpha", of_judge),
        "retrieval": (f"{home}rates/retrieval/", served),
        "compare": (f"{home}rates/compare/", nothing),
        "compare by gold": (f"{compare}&source_before=gold", of_gold),
        "compare by a judge": (f"{compare}&source_before=judge:alpha", of_judge),
        "gold": (f"{home}gold/", "SELECT dimension, source, count(*) FROM annotate_goldlabel GROUP BY 1, 2"),
        "claims": (f"{home}claims/", claims),
        "claims of a run": (f"{home}claims/runs/1/", claims),
        "extraction": (f"{home}audit/result/", nothing),
        "summaries": (f"{home}summaries/", nothing),
        "plan": (f"{home}plan/", of_gold),
        "watches": (f"{home}watches/", nothing),
    }


def _taken(name: str, path: str, bare: str, repeats: int, profile: bool) -> Taken:
    from django.contrib.auth import get_user_model
    from django.test import Client

    from tests.bench.leading.world import LEAD

    client = Client(SERVER_NAME="localhost")
    client.force_login(get_user_model().objects.get(username=LEAD))
    taken = Taken(name)
    taken.first, _cpu = _asked(client, path, taken)
    before = _share_of_a_core()
    for _ in range(repeats if taken.first < SLOW else 1):
        wall, cpu = _asked(client, path, taken)
        taken.wall.append(wall)
        taken.cpu.append(cpu)
    taken.bare = statistics.median(_bare(bare) for _ in range(3))
    taken.share = (before + _share_of_a_core()) / 2
    if profile:
        _profiled(lambda: client.get(path), name)
    return taken


def _asked(client, path: str, taken: Taken) -> tuple[float, float]:
    from django.db import connection

    count = 0

    def counted(execute, sql, params, many, context):
        nonlocal count
        count += 1
        return execute(sql, params, many, context)

    with connection.execute_wrapper(counted):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = client.get(path)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if answer.status_code != 200:
        sys.exit(f"{path}: {answer.status_code}")
    taken.status, taken.queries, taken.size = answer.status_code, count, len(answer.content)
    return wall, cpu


def _bare(question: str) -> float:
    from django.db import connection

    begin = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute(question)
        cursor.fetchall()
    return time.perf_counter() - begin


def _share_of_a_core() -> float:
    """1 on a quiet machine: how much of a core a process that only counts is given."""
    wall, cpu = time.perf_counter(), time.process_time()
    while time.process_time() - cpu < 0.05:
        sum(range(1000))
    return (time.process_time() - cpu) / (time.perf_counter() - wall)


def _profiled(ask: Callable[[], object], name: str) -> None:
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.runcall(ask)
    print(f"\n=== {name}", file=sys.stderr)
    pstats.Stats(profile, stream=sys.stderr).sort_stats("cumulative").print_stats(45)


if __name__ == "__main__":
    main()
