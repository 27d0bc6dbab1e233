"""Files in, with the labels and verdicts that they bring: a new version, or more responses to one.

Each import is one transaction over the services of `evalsets`, `annotate` and `calibration`, and returns the
JSON object that the commands print. A refused one raises ImportRefused and leaves nothing behind.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

from django.db import transaction

from calibration.imported_verdicts import record_imported_verdicts
from calibration.label_files import record_annotations, refuse_names_that_differ_in_case
from calibration.services import Refused
from evalsets import services as evalsets
from evalsets.access import LEAD
from evalsets.importing import ColumnMap, ImportRefused, Problem
from evalsets.models import EvalSetVersion, SystemRun
from evalsets.queries import described
from evalsets.storing import GRADER, JUDGE, Checked


def import_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    person=None,
    lead=None,
    with_labels: bool = False,
    freeze: bool = False,
    dry_run: bool = False,
    mapping: ColumnMap | None = None,
    on_progress=None,
    on_stored: Callable[[dict], None] | None = None,
) -> dict:
    """Import a file as a new version; `freeze` freezes the version and its system runs at once.

    `person` is who asks and needs the right to; `lead` is made a lead of the eval set by somebody who has the
    machine in hand. `on_stored` gets the object that is returned, inside the transaction, as its last word.
    """
    given = {"name": name, "with_labels": with_labels, "on_progress": on_progress}
    checked = check_evalset(stream=stream, filename=filename, mapping=mapping, **given)
    return store_evalset(
        checked=checked,
        person=person,
        lead=lead,
        freeze=freeze,
        dry_run=dry_run,
        on_stored=on_stored,
        **given,
    )


def check_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    with_labels: bool = False,
    mapping: ColumnMap | None = None,
    on_progress=None,
) -> Checked:
    """The first half of `import_evalset`: the whole file is read, and nothing is written."""
    return evalsets.check_evalset(
        stream=stream,
        filename=filename,
        name=name,
        mapping=_spoken_of(mapping, with_labels),
        on_progress=on_progress,
    )


def store_evalset(
    *,
    checked: Checked,
    name: str,
    person=None,
    lead=None,
    with_labels: bool = False,
    freeze: bool = False,
    dry_run: bool = False,
    on_progress=None,
    on_stored: Callable[[dict], None] | None = None,
) -> dict:
    """The second half: what was checked is stored."""
    with transaction.atomic():
        imported = evalsets.store_evalset(checked=checked, name=name, person=person, on_progress=on_progress)
        labelled = _store_labels(imported, with_labels=with_labels)
        version = imported.version
        if lead is not None:
            evalsets.add_member(evalset=version.evalset, person=lead, role=LEAD)
        version.notices = imported.notices
        version.save(update_fields=["notices"])
        if freeze:
            version = evalsets.freeze_version(version=version, person=person)
            imported.runs = [evalsets.freeze_run(run=run) for run in imported.runs]
        told = {
            **described(version),
            "counts": {**imported.counts, **labelled},
            "runs": [_run_described(run) for run in imported.runs],
            "notices": imported.notices,
            "problems": [],
            "dry_run": dry_run,
        }
        if on_stored:
            on_stored(told)
        transaction.set_rollback(dry_run)
    return told


def import_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    with_labels: bool = False,
    freeze: bool = False,
    dry_run: bool = False,
    mapping: ColumnMap | None = None,
    on_progress=None,
    on_stored: Callable[[dict], None] | None = None,
) -> dict:
    """Add the responses of a file to a frozen version, one draft system run for each system."""
    given = {"version": version, "with_labels": with_labels, "on_progress": on_progress}
    checked = check_responses(stream=stream, filename=filename, mapping=mapping, **given)
    return store_responses(checked=checked, freeze=freeze, dry_run=dry_run, on_stored=on_stored, **given)


def check_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    with_labels: bool = False,
    mapping: ColumnMap | None = None,
    on_progress=None,
) -> Checked:
    """The first half of `import_responses`: the whole file is read, and nothing is written."""
    return evalsets.check_responses(
        stream=stream,
        filename=filename,
        version=version,
        mapping=_spoken_of(mapping, with_labels),
        on_progress=on_progress,
    )


def store_responses(
    *,
    checked: Checked,
    version: EvalSetVersion,
    with_labels: bool = False,
    freeze: bool = False,
    dry_run: bool = False,
    on_progress=None,
    on_stored: Callable[[dict], None] | None = None,
) -> dict:
    """The second half: what was checked is stored."""
    with transaction.atomic():
        imported = evalsets.store_responses(checked=checked, version=version, on_progress=on_progress)
        labelled = _store_labels(imported, with_labels=with_labels)
        SystemRun.objects.filter(pk__in=[run.pk for run in imported.runs]).update(notices=imported.notices)
        if freeze:
            imported.runs = [evalsets.freeze_run(run=run) for run in imported.runs]
        runs = [_run_described(run) for run in imported.runs]
        told = {
            **described(imported.version),
            "run": runs[0]["run"],
            "system": runs[0]["system"],
            "runs": runs,
            "counts": {**imported.counts, **labelled},
            "notices": imported.notices,
            "problems": [],
            "dry_run": dry_run,
        }
        if on_stored:
            on_stored(told)
        transaction.set_rollback(dry_run)
    return told


def _spoken_of(mapping: ColumnMap | None, with_labels: bool) -> ColumnMap | None:
    """Where labels are asked for and the mapping does not speak of them, each of them is a problem."""
    if mapping is not None and with_labels and mapping.labels is None:
        return replace(mapping, labels={})
    return mapping


def _run_described(run: SystemRun) -> dict:
    return {
        "run": run.number,
        "system": str(run.system),
        "state": run.state,
        "content_hash": run.content_hash,
    }


def _store_labels(imported: evalsets.Imported, *, with_labels: bool) -> dict[str, int]:
    """Hand the labels of the file to their owners; without `with_labels` only say that they are there."""
    graders, judges = imported.labels[GRADER], imported.labels[JUDGE]
    if not with_labels:
        if graders or judges:
            imported.notices.append(
                f"The file holds {len(graders)} labels of graders and {len(judges)} of judges; "
                "they were not imported, since that was not asked for."
            )
        return {"annotations": 0, "verdicts": 0}
    version, runs = imported.version, imported.runs
    if graders:
        names = {name: None for name, *_rest in graders}
        refuse_names_that_differ_in_case(version.evalset, names)
        record_annotations(version, runs, graders)
    if judges:
        try:
            record_imported_verdicts(version=version, runs=runs, verdicts=judges)
        except Refused as error:
            raise ImportRefused([Problem(None, "judge_labels", str(error))]) from error
    return {"annotations": len(graders), "verdicts": len(judges)}
