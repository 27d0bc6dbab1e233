"""The gold set as files: every resolved target with its history, and what is needed to recompute it.

`gold.jsonl` and `unresolved.jsonl` together hold every target of the round: what has no gold yet is listed
with its labels and the reason, because agreement rests on it as well. Graders appear by number only. An
export whose figures cannot be recomputed from its own files is not handed out.

A choice of records never moves a figure: what was not asked for stays beside the unresolved, without its
texts, so that agreement and rates are those of the whole round. Among adjudicated records nobody would agree.
"""

import json
import re
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO
from zipfile import ZIP_DEFLATED, ZipFile

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from annotate.models import Round
from calibration import goldfile
from calibration.gold_lines import (
    CSV_HEADER,
    FILTERED_FORM,
    GOLD_FORM,
    UNRESOLVED_FORM,
    Form,
    ParquetFile,
    Row,
    Shared,
    cells_of,
    json_of,
    texts_of,
)
from calibration.gold_records import Records, records_of, system_facts, utc
from calibration.goldcard import card_of
from calibration.measures import Figures
from calibration.models import CalibrationSplit, Judge
from calibration.pairing import dimensions_of, run_names, table_of
from calibration.recompute import recompute
from calibration.reports import Standing, dimensions_judged, standing
from calibration.table import Table
from evalsets.claims import origins_of
from evalsets.labels import LABELS
from evalsets.models import EvalSetVersion


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

    def takes(self, shared: Row, own: Row) -> bool:
        return (
            (not self.dimensions or own["dimension"] in self.dimensions)
            and (not self.sources or own["source"] in self.sources)
            and (not self.parts or shared["calibration_split"] in self.parts)
            and all((name, shared["strata"].get(name)) in self.strata for name, _value in self.strata)
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
    rows = records_of(version=version, round=round, notes=choice.grader_notes)
    unresolved, languages = _write_records(rows, choice, out)
    pseudonymous = {name: goldfile.renamed(table, rows.people.by_name) for name, table in rows.tables.items()}
    manifest = _manifest(version, round, rows.graded) | goldfile.figures_of(
        pseudonymous, graded=rows.graded, unit=version.primary_unit
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


def _write_records(rows: Records, choice: Choice, out: Path) -> tuple[dict[str, dict[str, int]], list[str]]:
    """Why records are not in `gold.jsonl`, by dimension; and the languages, where every record says one."""
    reasons: dict[str, Counter[str]] = {dimension: Counter() for dimension in rows.tables}
    languages: set[str] = set()
    with ExitStack() as stack:
        files = _Files(stack, out)
        for shared, own in rows:
            if "reason" not in own and choice.takes(shared.row, own):
                files.write_gold(shared, own)
                languages.add(shared.row["strata"].get("language", ""))
            else:
                own, form = _left_out(shared, own)
                reasons[own["dimension"]][own["reason"]] += 1
                files.write_unresolved(shared, own, form)
    known = all(_LANGUAGE.fullmatch(language) for language in languages)
    counted = {dimension: dict(sorted(found.items())) for dimension, found in reasons.items()}
    return counted, sorted(languages) if known else []


def _left_out(shared: Shared, own: Row) -> tuple[Row, Form]:
    """As it stands beside the unresolved; figures rest on a gold record that was not asked for, too."""
    if "reason" in own:
        return own, UNRESOLVED_FORM
    said = {"reason": goldfile.FILTERED, "empty": not shared.row["response"].strip()}
    return own | said, FILTERED_FORM


class _Files:
    """The records in each form."""

    def __init__(self, stack: ExitStack, out: Path):
        self.gold = stack.enter_context((out / goldfile.GOLD).open("wb"))
        self.unresolved = stack.enter_context((out / goldfile.UNRESOLVED).open("wb"))
        self.sheet = stack.enter_context((out / goldfile.CSV).open("wb"))
        self.columns = stack.enter_context(ParquetFile(out / goldfile.PARQUET))
        self.sheet.write(CSV_HEADER.encode())

    def write_gold(self, shared: Shared, own: Row) -> None:
        values = GOLD_FORM.own_of(own)
        cells = cells_of(values)
        self.gold.write(shared.line(GOLD_FORM, texts_of(values, cells)))
        self.sheet.write(shared.sheet_line(cells).encode("utf-8"))
        self.columns.write(shared, cells)

    def write_unresolved(self, shared: Shared, own: Row, form: Form) -> None:
        self.unresolved.write(shared.line(form, [json_of(value) for value in form.own_of(own)]))


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
                "system": system_facts(run),
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
