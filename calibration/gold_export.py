"""The gold set as files: every resolved target with its history, and what is needed to recompute it.

`gold.jsonl` and `unresolved.jsonl` together hold every target of the round: what has no gold yet is listed
with its labels and the reason, because agreement rests on it as well. Graders appear by number only. An
export whose figures cannot be recomputed from its own files is not handed out.

A choice of records never moves a figure: what was not asked for stays beside the unresolved, without its
texts, so that agreement and rates are those of the whole round. Among adjudicated records nobody would agree.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.asking import CITATION, CLAIM, PASSAGE
from annotate.models import Adjudication, Annotation, Assignment, Flag, GoldLabel, Grader, Round
from calibration import goldfile
from calibration.design import design_in_force, part_of_item
from calibration.goldcard import card_of
from calibration.measures import Figures
from calibration.models import CalibrationSplit, Judge
from calibration.pairing import dimensions_of, run_names, table_of
from calibration.recompute import recompute
from calibration.reports import Standing, dimensions_judged, standing
from calibration.sightings import first_seen, had_seen
from calibration.table import Table
from evalsets.claims import origins_of
from evalsets.labels import LABELS
from evalsets.models import Claim, EvalSetVersion, Passage, Response, SystemRun

AT_ONCE = 200  # responses in memory at a time


class NotExportable(Exception):
    """The message is a sentence for the person who asked."""


@dataclass(frozen=True)
class Choice:
    """Which records are written out whole; an empty tuple leaves nothing out."""

    dimensions: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    strata: tuple[tuple[str, str], ...] = ()  # (name, value): of each name one of the values
    parts: tuple[str, ...] = ()  # calibration, tuning, few_shot
    grader_notes: bool = False

    def takes(self, row: goldfile.Row) -> bool:
        return (
            (not self.dimensions or row["dimension"] in self.dimensions)
            and (not self.sources or row["source"] in self.sources)
            and (not self.parts or row["calibration_split"] in self.parts)
            and all((name, row["strata"].get(name)) in self.strata for name, _value in self.strata)
        )

    def as_json(self) -> Figures:
        return {
            "dimensions": list(self.dimensions),
            "sources": list(self.sources),
            "strata": [list(pair) for pair in self.strata],
            "parts": list(self.parts),
            "grader_notes": self.grader_notes,
        }


WHOLE = Choice()
_LANGUAGE = re.compile(r"[a-z]{2,3}")


def export_gold(*, version: EvalSetVersion, round: Round, out: Path, choice: Choice = WHOLE) -> Figures:
    """Write the files of a round's gold set into a folder and return the manifest."""
    if not version.is_frozen:
        raise NotExportable(
            _("Freeze {version} first: gold names what it was given for.").format(version=version)
        )
    out.mkdir(parents=True, exist_ok=True)
    graded = dimensions_of(round)
    names = dict.fromkeys((*LABELS, *graded))  # a fixed dimension that nobody graded is listed as such
    tables = {name: table_of(version=version, round=round, dimension=name) for name in names}
    people = _People(round)
    rows = _Records(version, round, tables, graded, people, choice)
    unresolved, languages = _write_records(rows, out)
    pseudonymous = {name: goldfile.renamed(table, people.by_name) for name, table in tables.items()}
    manifest = _manifest(version, round, graded) | goldfile.figures_of(
        pseudonymous, graded=graded, unit=version.primary_unit
    )
    manifest |= {
        "unresolved": unresolved,
        "choice": choice.as_json(),
        "languages": languages,
        "calibration_split": _split(rows.split),
    }
    (out / goldfile.CARD).write_text(card_of(manifest), encoding="utf-8")
    written = (goldfile.CARD, goldfile.CSV, goldfile.GOLD, goldfile.PARQUET, goldfile.UNRESOLVED)
    manifest["files"] = {name: goldfile.file_facts(out / name) for name in written}
    manifest["manifest_sha256"] = goldfile.manifest_hash(manifest)
    text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, indent=1)
    (out / goldfile.MANIFEST).write_text(text + "\n", encoding="utf-8")
    again = recompute(out)
    if not again["matches"]:
        raise RuntimeError(f"the export does not match the database: {again['differences'][:3]}")
    return manifest


def gold_file(*, version: EvalSetVersion, round: Round, name: str, choice: Choice = WHOLE) -> IO[bytes]:
    """One file of the export, open and gone when it is closed."""
    with TemporaryDirectory() as folder:
        export_gold(version=version, round=round, out=Path(folder), choice=choice)
        return (Path(folder) / name).open("rb")


def zipped_gold(*, version: EvalSetVersion, round: Round, choice: Choice = WHOLE) -> IO[bytes]:
    """The same files in one zip archive: an open file without a name, gone when it is closed."""
    archive = TemporaryFile()  # noqa: SIM115  (the response closes it)
    with TemporaryDirectory() as folder, ZipFile(archive, "w", ZIP_DEFLATED) as zipped:
        export_gold(version=version, round=round, out=Path(folder), choice=choice)
        for path in sorted(Path(folder).iterdir()):
            zipped.write(path, path.name)
    archive.seek(0)
    return archive


def _write_records(rows: "_Records", out: Path) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Why records are not in `gold.jsonl`, by dimension; and the languages, where every record says one."""
    reasons: dict[str, Counter[str]] = {dimension: Counter() for dimension in rows.tables}
    languages: set[str] = set()
    with ExitStack() as files:
        gold = files.enter_context((out / goldfile.GOLD).open("wb"))
        unresolved = files.enter_context((out / goldfile.UNRESOLVED).open("wb"))
        sheet = files.enter_context((out / goldfile.CSV).open("w", encoding="utf-8", newline=""))
        columns = files.enter_context(goldfile.ParquetFile(out / goldfile.PARQUET))
        writer = csv.writer(sheet)
        writer.writerow(goldfile.FIELDS)
        for row in rows:
            if "reason" not in row and not rows.choice.takes(row):
                row = goldfile.without_texts(row)
            if "reason" in row:
                reasons[row["dimension"]][row["reason"]] += 1
                unresolved.write(goldfile.line_of(row))
            else:
                gold.write(goldfile.line_of(row))
                writer.writerow(goldfile.csv_cells(row))
                columns.write(row)
                languages.add(row["strata"].get("language", ""))
    known = all(_LANGUAGE.fullmatch(language) for language in languages)
    counted = {dimension: dict(sorted(found.items())) for dimension, found in reasons.items()}
    return counted, sorted(languages) if known else []


def _split(split: CalibrationSplit | None) -> Figures | None:
    """What the parts of the items follow from; see `calibration.partition`."""
    if split is None:
        return None
    return {
        "design": split.design,
        "seed": split.seed,
        "tuning_share": split.tuning_share,
        "few_shot": split.few_shot,
    }


class _People:
    """Pseudonyms: graders by their number in the eval set, deciders by the order of their accounts."""

    def __init__(self, round: Round):
        graders = list(Grader.objects.filter(evalset=round.version.evalset))
        self.by_pk = {grader.pk: grader.pseudonym for grader in graders}
        self.by_name = {grader.name: grader.pseudonym for grader in graders}
        leads = set(Adjudication.objects.filter(round=round).values_list("by_id", flat=True))
        self.leads = {pk: f"lead {number}" for number, pk in enumerate(sorted(leads), 1)}


class _Records:
    """One record for every target of the round, in the order of the files, a few responses at a time."""

    def __init__(
        self,
        version: EvalSetVersion,
        round: Round,
        tables: dict[str, Table],
        graded: list[str],
        people: _People,
        choice: Choice,
    ):
        self.version, self.round, self.tables, self.people = version, round, tables, people
        self.choice, self.split = choice, design_in_force(round)
        self.facts = {name: _facts(table, name in graded, people) for name, table in tables.items()}
        self.responses = list(dict.fromkeys(tables["abstention"].targets.response.tolist()))

    def __iter__(self) -> Iterator[goldfile.Row]:
        for start in range(0, len(self.responses), AT_ONCE):
            chunk = self.responses[start : start + AT_ONCE]
            said = _Said(self.round, chunk, self.people, notes=self.choice.grader_notes)
            found = (
                Response.objects.select_related("item", "run__system")
                .prefetch_related("passages", "claims")
                .in_bulk(chunk)
            )
            for pk in chunk:
                yield from self._of_response(found[pk], said)

    def _of_response(self, response: Response, said: "_Said") -> Iterator[goldfile.Row]:
        passages = {passage.pk: passage for passage in response.passages.all()}
        context = [_passage(passage) for passage in passages.values()]
        claims = {claim.pk: claim for claim in response.claims.all()}
        for dimension, facts in self.facts.items():
            kind = self.tables[dimension].targets.unit
            for key, fact in facts.get(response.pk, {}).items():
                about = _About(response, key, kind, claims, passages)
                yield self._row(about, (dimension, key), fact, context, said)

    def _row(
        self,
        about: "_About",
        key: tuple[str, Any],
        fact: "_Fact",
        context: list[Figures],
        said: "_Said",
    ) -> goldfile.Row:
        response, claim, passage = about.response, about.claim, about.passage
        gold, item, run = said.gold.get(key), response.item, response.run
        row: goldfile.Row = {
            "evalset": self.version.evalset.slug,
            "version": self.version.number,
            "content_hash": self.version.content_hash,
            "round": self.round.number,
            "system_run": run.number,
            "system_run_hash": run.content_hash,
            "sample": response.sample,
            "split": {"of": about.parent.claim_id} if about.parent else None,
            "flag": said.flags.get(key, []),
            "item_id": item.item_id,
            "response_id": response.response_id,
            "claim_id": claim.claim_id if claim else None,
            "passage": {"id": passage.passage_id, "rank": passage.rank} if passage else None,
            "dimension": key[0],
            "label": gold.label if gold else None,
            "source": gold.source if gold else None,
            "annotations": said.annotations.get(key, []),
            "adjudication": said.adjudication(gold),
            "rubric_version": str(self.round.rubric_version),
            "strata": item.strata,
            "answerable": item.answerable,
            "unanswerable_reason": item.unanswerable_reason or None,
            "system": _system(run),
            "question": item.question,
            "response": response.text,
            "claim": claim.text if claim else None,
            "context": context,
            "assigned": said.assigned(response.pk),
            "not_asked": fact.not_asked,
            "decision": claim.decision if claim else None,
            "calibration_split": part_of_item(self.split, item.item_id) if self.split else None,
        }
        if fact.reason:
            row |= {"reason": fact.reason, "empty": fact.is_empty}
            return {name: row[name] for name in goldfile.UNRESOLVED_FIELDS}
        row["target_sha256"] = goldfile.target_hash(row)
        return {name: row[name] for name in goldfile.FIELDS}


class _About:
    """The claim and the passage that a target names, by what its dimension is asked of."""

    def __init__(
        self,
        response: Response,
        key: Any,
        kind: str,
        claims: dict[int, Claim],
        passages: dict[int, Passage],
    ):
        claim_id, passage_id = key if kind == CITATION else (key, key)
        self.response = response
        self.claim = claims[claim_id] if kind in (CLAIM, CITATION) else None
        self.passage = passages[passage_id] if kind in (PASSAGE, CITATION) else None
        self.parent = claims.get(self.claim.parent_id) if self.claim and self.claim.parent_id else None


class _Fact(NamedTuple):
    """What the table knows of a target that its rows do not tell."""

    reason: str  # why it has no gold; "" where it has
    not_asked: list[str]  # whom it was not put to: a condition was not met, or it was not drawn
    is_empty: bool


def _facts(table: Table, is_graded: bool, people: _People) -> dict[int, dict[Any, _Fact]]:
    """By response, and there by target."""
    assert table.gold is not None
    not_asked: dict[int, list[str]] = {}
    for column in table.graders:
        for row, reason in enumerate(column.reasons()):
            if reason == "not_asked":
                not_asked.setdefault(row, []).append(people.by_name[column.name])
    found: dict[int, dict[Any, _Fact]] = {}
    targets = table.targets
    columns = (targets.response.tolist(), targets.keys(), table.gold.reasons(), targets.empty.tolist())
    for row, (response, key, reason, empty) in enumerate(zip(*columns, strict=True)):
        reason = "not_graded" if reason == "not_labelled" and not is_graded else reason
        found.setdefault(response, {})[key] = _Fact(reason, not_asked.get(row, []), empty)
    return found


class _Said:
    """What people said about some responses, by dimension and target."""

    def __init__(self, round: Round, responses: list[int], people: _People, *, notes: bool):
        self.people = people
        self.seen = first_seen(round.version_id)
        self.imported = round.kind == Round.Kind.IMPORTED
        about: Any = {"round": round, "response__in": responses}
        self.gold = {
            _key(gold): gold for gold in GoldLabel.objects.filter(**about).select_related("adjudication")
        }
        self.annotations: dict[tuple[str, Any], list[Figures]] = {}
        for annotation in Annotation.objects.filter(**about).order_by("grader__number"):
            self.annotations.setdefault(_key(annotation), []).append(
                {
                    "grader": people.by_pk[annotation.grader_id],
                    "label": annotation.label,
                    "note": annotation.note if notes else None,
                    "at": utc(annotation.updated_at),
                }
            )
        self.flags: dict[tuple[str, Any], list[Figures]] = {}
        for flag in Flag.objects.filter(**about).order_by("pk"):
            key = ("grounding", flag.claim_id) if flag.claim_id else ("abstention", flag.response_id)
            self.flags.setdefault(key, []).append(
                {
                    "grader": people.by_pk[flag.grader_id],
                    "note": flag.note if notes else None,
                    "at": utc(flag.created_at),
                }
            )
        self._assigned: dict[int, list[str]] = {}
        for response, grader in (
            Assignment.objects.filter(**about).order_by("slot").values_list("response_id", "grader_id")
        ):
            self._assigned.setdefault(response, []).append(people.by_pk[grader])

    def assigned(self, response: int) -> list[str] | None:
        return None if self.imported else self._assigned.get(response, [])

    def adjudication(self, gold: GoldLabel | None) -> Figures | None:
        decided = gold.adjudication if gold else None
        if decided is None:
            return None
        return {
            "by": self.people.leads[decided.by_id],
            "reason": decided.reason,
            "note": decided.note,
            "at": utc(decided.at),
            "judge_seen": decided.judge_seen or had_seen(self.seen, decided.by_id, decided.at),
        }


def _key(row: Any) -> tuple[str, Any]:
    if row.claim_id and row.passage_id:
        return row.dimension, (row.claim_id, row.passage_id)
    return row.dimension, row.claim_id or row.passage_id or row.response_id


def _passage(passage: Any) -> Figures:
    whole = {
        "id": passage.passage_id,
        "title": passage.title,
        "document": passage.document,
        "text": passage.text,
    }
    return {name: value for name, value in whole.items() if value is not None}


def _system(run: SystemRun) -> Figures:
    system = run.system
    return {
        "name": system.name,
        "model": system.model,
        "provider": system.provider,
        "family": system.family,
        "date": system.date,
        "settings": system.settings,
    }


def utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


# The manifest


def _manifest(version: EvalSetVersion, round: Round, graded: list[str]) -> Figures:
    rubric = round.rubric_version
    runs = list(round.runs.select_related("system").order_by("number"))
    names = run_names(runs)
    return {
        "app": {"name": "touchstone", "version": settings.APP_VERSION},
        "created_at": utc(timezone.now()),
        "evalset": version.evalset.slug,
        "evalset_name": version.evalset.name,
        "version": version.number,
        "content_hash": version.content_hash,
        "primary_unit": version.primary_unit,
        "round": {
            "number": round.number,
            "kind": round.kind,
            "state": round.state,
            "overlap": round.overlap,
            "seed": round.seed,
        },
        "seeds": {"assignment": round.seed},
        "graded": graded,
        "rubric": {
            "version": str(rubric),
            "sha256": rubric.sha256,
            "decisions": rubric.decisions,
            "reference_based": rubric.reference_based,
            "dimensions": list(
                rubric.dimensions.values("name", "target", "question", "asked_when", "labels")
            ),
        },
        "systems": [
            {
                "system_run": run.number,
                "name": names[run.pk],
                "state": run.state,
                "content_hash": run.content_hash,
                "claims": origins_of([run]).as_dict(),
                "system": _system(run),
            }
            for run in runs
        ],
        "judges": [_judge(judge, version) for judge in judges_of(version)],
        "quoted": ["judges"],
    }


def _judge(judge: Judge, version: EvalSetVersion) -> Figures:
    """A judge with its fingerprint and where it stands at its gate. Its rates are not part of a gold set."""
    decisions = [
        gate_of(standing(judge=judge, version=version, dimension=dimension), dimension)
        for dimension in dimensions_judged(judge=judge, version=version)
    ]
    return {"name": judge.name, "kind": judge.kind, "model": judge.model, "gate": decisions}


def gate_of(found: Standing, dimension: str) -> Figures:
    """A decision of the gate without its sentences, which name graders."""
    facts = found.report.payload["judge"] if found.report else {}
    return {
        "dimension": dimension,
        "state": found.state,
        "changes": found.changes,
        "report": found.report.number if found.report else None,
        "conditions": [
            {name: value for name, value in condition.items() if name != "message"}
            for condition in found.conditions
        ],
        "fingerprint": facts.get("requested_fingerprint"),
        "requested": facts.get("requested"),
        "resolved_models": facts.get("resolved_models", []),
    }


# The page


def gold_overview(*, version: EvalSetVersion, round: Round) -> Figures:
    """What the gold set of a round holds and what is missing, before anything is written."""
    graded = dimensions_of(round)
    tables = {name: table_of(version=version, round=round, dimension=name).leaves() for name in graded}
    return {
        "dimensions": [
            {"name": name, **goldfile.gold_counts(table), "reasons": _reasons_of(table)}
            for name, table in tables.items()
        ],
        "not_graded": [name for name in LABELS if name not in graded],
        "judges": [_judge(judge, version) for judge in judges_of(version)],
    }


def _reasons_of(table: Table) -> dict[str, int]:
    assert table.gold is not None
    return table.gold.missing()


def judges_of(version: EvalSetVersion) -> list[Judge]:
    return list(Judge.objects.filter(runs__version=version).distinct())
