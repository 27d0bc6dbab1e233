"""How fast grading is: one grader, eight at once, and the first page in Chromium, on the real server.

Run with ``./run bench grade`` or ``python -m tests.bench.bench_grade``; it exits 1 when a bar is missed.
A bare Django view that inserts a label and renders the next item is measured beside it, in turns: it takes
1 ms on the machine the bars were set on, and on a slower or busier one the bars of time move with it.
"""

import argparse
import contextlib
import os
import statistics
import sys
from dataclasses import dataclass, field

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

from tests.bench.grading import browser, load, stand
from tests.bench.grading.world import EIGHT
from tests.servers import ServerMissing

BARE_MS = 1.0  # of the bare view where the bars were set
LABEL_MS, LABEL_BYTES = 8.0, 15_000
BETWEEN_MS, AT_ONCE_MS = 5.0, 100.0  # 200 labels a second; p99 of one
FIRST_BYTES, FIRST_REQUESTS, FIRST_MS, KEY_MS = 100_000, 9, 400.0, 50.0
GROWTH = 1.3
TURN = 24  # labels a turn: four responses


def median(seconds: list[float]) -> float:
    return 1000 * statistics.median(seconds)


def p99(seconds: list[float]) -> float:
    return 1000 * statistics.quantiles(seconds, n=100)[98]


@dataclass
class Findings:
    missed: list[str] = field(default_factory=list)

    def bar(self, name: str, value: float, most: float, unit: str, *, slow: float = 1.0) -> None:
        """`slow`: how many times slower than there the bare view is just now."""
        held = value <= most * max(1.0, slow)
        note = (
            "" if value <= most else f"   held: this machine is {slow:.1f} x slower" if held else "   MISSED"
        )
        print(f"  {name:<44}{value:12,.2f} {unit:<2}   at most {most:,g}{note}")
        if not held:
            self.missed.append(name)


def figures(name: str, seconds: list[float], more: str = "") -> None:
    print(f"  {name:<44}{median(seconds):12,.2f} ms   p99 {p99(seconds):,.2f} ms{more}")


# One grader


@dataclass
class Turns:
    """`new`, `old` and the bare view take turns on every database: a busy moment hits all of them."""

    place: stand.Stand

    def __post_init__(self) -> None:
        self.bare = load.Bare(self.place.bare_port)
        self.new, self.old = (load.Grader(self.place.port, name, 1) for name in ("new", "old"))
        self.cpu = {self.bare: 0.0, self.new: 0.0, self.old: 0.0}
        self.take()
        for each in self.cpu:
            each.said.seconds.clear()
            each.said.sizes.clear()
            self.cpu[each] = 0.0

    def take(self) -> None:
        for each in self.cpu:
            web = self.place.bare if each is self.bare else self.place.web
            before = stand.cpu_seconds(web)
            for _ in range(TURN):
                each.label()
            self.cpu[each] += stand.cpu_seconds(web) - before

    def report(self, findings: Findings) -> None:
        place, new, old, bare = self.place, *(each.said.seconds for each in (self.new, self.old, self.bare))
        print(f"\nOne grader, {place.items:,} items, {place.database}, {len(new):,} labels each")
        for name, each in (("bare view", self.bare), ("first labels", self.new), ("after 5,000", self.old)):
            seconds = each.said.seconds
            cpu = 1000 * self.cpu[each] / len(seconds)
            ratio = median(seconds) / median(bare)
            figures(name, seconds, f"   server's CPU {cpu:.2f} ms   {ratio:.1f} x bare")
        slow = median(bare) / BARE_MS
        findings.bar("a label", median(new), LABEL_MS, "ms", slow=slow)
        findings.bar("a label after 5,000", median(old), LABEL_MS, "ms", slow=slow)
        findings.bar("after 5,000 to first labels", median(old) / median(new), GROWTH, "x")
        sizes = self.new.said.sizes + self.old.said.sizes
        findings.bar("bytes a label, sent and received (mean)", statistics.mean(sizes), LABEL_BYTES, "B")
        print(f"  {'bytes, median and largest':<44}{statistics.median(sizes):12,.0f} B    {max(sizes):,} B")

    def end(self) -> None:
        self.place.said += [self.new.said, self.old.said]
        for each in self.cpu:
            each.connection.close()


def one_grader(places: list[stand.Stand], labels: int, findings: Findings) -> None:
    everywhere = [Turns(place) for place in places]
    for _ in range(0, labels, TURN):
        for turns in everywhere:
            turns.take()
    for turns in everywhere:
        turns.report(findings)
        turns.end()
    first, *larger = everywhere
    for turns in larger:
        name = f"{turns.place.items:,} items to {first.place.items:,}"
        for kind in ("new", "old"):
            growth = median(getattr(turns, kind).said.seconds) / median(getattr(first, kind).said.seconds)
            findings.bar(f"{name} ({kind})", growth, GROWTH, "x")


# Eight graders


def eight_graders(place: stand.Stand, seconds: float, findings: Findings) -> None:
    print(f"\nEight graders at once, {place.items:,} items, {place.database}, {seconds:g} s")
    between = {}
    for name, web, makers in (
        ("bare view", place.bare, [(load.Bare, place.bare_port, 1 + 100 * n) for n in range(8)]),
        ("eight graders", place.web, [(load.Grader, place.port, name, 2) for name in EIGHT]),
    ):
        try:
            said, cpu = load.at_once(makers, seconds, lambda web=web: stand.cpu_seconds(web))
        except load.Refused:
            print(web.output[-4000:], file=sys.stderr)
            raise
        taken = [second for one in said for second in one.seconds]
        rate = sum(len(one.seconds) / (one.ended - one.started) for one in said)
        between[name] = 1000 / rate
        spent = 1000 * cpu / len(taken)
        figures(name, taken, f"   server's CPU {spent:.2f} ms   {rate:,.0f} a second")
    place.said += said
    slow = between["bare view"] / BARE_MS
    findings.bar(
        "from one label to the next, of all eight", between["eight graders"], BETWEEN_MS, "ms", slow=slow
    )
    findings.bar("p99 of a label", p99(taken), AT_ONCE_MS, "ms", slow=slow)


# Chromium


def first_load(place: stand.Stand, findings: Findings) -> None:
    print(f"\nChromium, {place.items:,} items, {place.database}")
    try:
        seen = browser.look(place.web.url, loads=7, labels=60)
    except ServerMissing as missing:
        print(f"  left out: {missing}")
        return
    bare = load.Bare(place.bare_port)
    for _ in range(60):
        bare.label()
    slow = median(bare.said.seconds) / BARE_MS
    figures("bare view, without a browser", bare.said.seconds)
    findings.bar("first load, bytes", seen.bytes, FIRST_BYTES, "B")
    findings.bar("first load, requests", seen.requests, FIRST_REQUESTS, "")
    findings.bar("first load until usable (median)", median(seen.usable), FIRST_MS, "ms", slow=slow)
    findings.bar("key to next claim on screen (median)", median(seen.key_to_claim), KEY_MS, "ms", slow=slow)
    print(f"  {'p99 of it':<44}{p99(seen.key_to_claim):12,.2f} ms")
    findings.bar("requests a label", seen.requests_a_label, 1, "")


def check(place: stand.Stand, findings: Findings) -> None:
    labels = sum(len(one.labels) for one in place.said)
    wrong = stand.faults(place)
    print(f"\nThe {labels:,} acknowledged labels in the database ({place.items:,} items, {place.database})")
    print(
        "  " + ("MISSED: " + "; ".join(wrong) if wrong else "none lost, none doubled, none over its overlap")
    )
    findings.missed += wrong


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000])
    parser.add_argument("--database", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite"])
    parser.add_argument("--labels", type=int, default=480, help="of one grader")
    parser.add_argument("--seconds", type=float, default=8, help="of eight graders")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--all", action="store_true", help="10,000 and 100,000 items, both databases")
    options = parser.parse_args(arguments)
    if options.all:
        options.items, options.database = [10_000, 100_000], ["sqlite", "postgresql"]
    findings = Findings()
    for database in options.database:
        with contextlib.ExitStack() as stack:
            places = [stack.enter_context(stand.stand(items, database)) for items in options.items]
            one_grader(places, options.labels, findings)
            for place in places:
                eight_graders(place, options.seconds, findings)
                check(place, findings)
                if not options.no_browser:
                    first_load(place, findings)
    print("\nMissed: " + "; ".join(findings.missed) if findings.missed else "\nEvery bar is held.")
    return 1 if findings.missed else 0


if __name__ == "__main__":
    sys.exit(main())
