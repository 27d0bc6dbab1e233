from typing import Any

from django.core.management.base import CommandError, CommandParser

from calibration.facts import retrieval_facts
from calibration.management.reporting import ReportingCommand, round_of, version_named
from calibration.rates import grader_names
from calibration.retrieving import DEPTH, with_response_names


class Command(ReportingCommand):
    help = "Retrieval beside generation: what was served, and to whom each wrong answer points."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        self.add_round(parser)
        parser.add_argument("--source", default="gold", metavar="gold|grader:NAME")
        parser.add_argument("--k", type=int, default=DEPTH, help=f"depth (default: {DEPTH})")

    def report(self, **options: Any) -> dict[str, Any]:
        version = version_named(options["version"])
        round, source, k = round_of(version, options["round"]), options["source"], options["k"]
        known = ["gold", *(f"grader:{name}" for name in grader_names(round))]
        if source not in known:
            raise CommandError(f"--source must be one of {', '.join(known)}, got {source!r}.")
        if k < 1:
            raise CommandError(f"--k must be at least 1, got {k}.")
        facts = retrieval_facts(version=version, round=round, source=source, k=k)
        facts["wrong_answers"]["cases"] = with_response_names(facts["wrong_answers"]["cases"])
        return facts

    def sentences(self, result: dict[str, Any]) -> list[str]:
        retrieval, wrong = result["retrieval"], result["wrong_answers"]
        words = [f"{result['version']}, retrieval at k = {retrieval['k']}"]
        for name in ("document_recall", "recall", "precision", "ndcg"):
            number = retrieval[name]
            value = "undefined" if number["value"] is None else f"{number['value']:.3f}"
            words.append(f"{number['label']}: {value}, n = {number['n']}")
        causes = ", ".join(f"{cause}: {count}" for cause, count in wrong["by_cause"].items()) or "none"
        return [*words, f"Wrong answers by {result['source']}: {wrong['wrong']} ({causes})"]
