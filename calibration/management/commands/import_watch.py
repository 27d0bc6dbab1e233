from datetime import date as Date
from pathlib import Path

from django.core.management.base import CommandError

from calibration.management.exchanging import ExchangeCommand, opened
from calibration.management.reporting import judge_of, version_named
from calibration.models import Watch
from calibration.queries import worker_seen
from calibration.watch_facts import judging_facts
from calibration.watch_series import series_of
from calibration.watches import WatchRefused, check_watches, import_batch, judge_here, open_watch


class Command(ExchangeCommand):
    help = (
        "Import a day of production responses into a watch, and ask its judge about them while it is trusted."
    )
    done = "Watch {watch}, {date}: {state}."

    def add_arguments(self, parser):
        super().add_arguments(parser)
        parser.add_argument("file", metavar="FILE", help="JSON Lines or CSV, plain or gzipped")
        parser.add_argument("--watch", required=True, metavar="NAME")
        parser.add_argument("--date", required=True, metavar="YYYY-MM-DD")
        parser.add_argument("--of", metavar="SLUG@VERSION", help="open the watch on this version if need be")
        parser.add_argument("--judge", metavar="NAME", help="with --of: the judge to ask")
        parser.add_argument("--wait", action="store_true", help="return when the batch is judged")

    def exchange(self, *, file, watch, date, of, judge, wait, **_rest):
        found = _watch_named(watch, of, judge)
        with opened(file) as stream:
            batch, imported = import_batch(
                watch=found, stream=stream, filename=Path(file).name, date=_day(date)
            )
        if wait or not worker_seen():
            judge_here(batch=batch)
            check_watches()
        return {
            "watch": found.name,
            "date": batch.date.isoformat(),
            "state": "imported" if imported else "was there already, from the same file",
            "counts": imported.counts if imported else {},
            "notices": imported.notices if imported else [],
            "content_hash": batch.material.content_hash,
            "judged": [
                judging_facts(judging) for judging in batch.judgings.select_related("judge", "judge_run")
            ],
            "steps": [
                {"series": one.name, **one.step.as_dict(), "sentence": one.step.explain()}
                for one in series_of(found)
            ],
        }

    def _tell(self, result):
        super()._tell(result)
        for entry in result["judged"]:
            what = (
                f"run {entry['run']}, {entry['run_state']}"
                if entry["run"]
                else f"not asked: {entry['reason']}"
            )
            self.stdout.write(f"{entry['judge']}, {entry['dimension']}: {what}")
        for step in result["steps"]:
            self.stdout.write(step["sentence"])


def _watch_named(name: str, of: str | None, judge: str | None) -> Watch:
    found = Watch.objects.filter(name=name).select_related("version__evalset", "judge", "material").first()
    if found:
        return found
    if of is None:
        names = ", ".join(Watch.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"There is no watch {name!r} (there are: {names}); --of SLUG@VERSION opens it.")
    version = version_named(of)
    try:
        return open_watch(version=version, name=name, judge=judge_of(version, judge) if judge else None)
    except WatchRefused as error:
        raise CommandError(str(error)) from error


def _day(text: str) -> Date:
    try:
        return Date.fromisoformat(text)
    except ValueError as error:
        raise CommandError(f"--date {text!r} is not a day like 2026-03-14.") from error
