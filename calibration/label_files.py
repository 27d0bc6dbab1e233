"""Labels of a file for responses that are there already."""

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import BinaryIO

from django.db import transaction
from django.db.models import Q

from annotate import services as annotate
from annotate.models import Annotation, Grader, Round
from evalsets import services as evalsets
from evalsets.importing import ColumnMap, Findings, ImportRefused, Problem, read_labels
from evalsets.importing.records import LabelRecord
from evalsets.models import Claim, EvalSet, EvalSetVersion, SystemRun
from evalsets.queries import counts, described
from evalsets.text import is_blank

AT_ONCE = 500


@dataclass(frozen=True)
class ReadLabels:
    """A label file that was in order when it was read."""

    records: list[LabelRecord]
    findings: Findings


def import_labels(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    dimension: str | None = None,
    mapping: ColumnMap | None = None,
    dry_run: bool = False,
) -> dict:
    """Labels of a file for responses that are there already."""
    read = check_labels(
        stream=stream, filename=filename, version=version, dimension=dimension, mapping=mapping
    )
    return store_labels(read=read, version=version, dry_run=dry_run)


def check_labels(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    dimension: str | None = None,
    mapping: ColumnMap | None = None,
) -> ReadLabels:
    """The first half of `import_labels`: the whole file is read and its targets are found."""
    findings = Findings()
    records = read_labels(
        stream, filename, findings, dimension=dimension, mapping=mapping, limits=evalsets.limits()
    )
    read = ReadLabels(list(records), findings)
    _targets_of(read, version)
    return read


def store_labels(*, read: ReadLabels, version: EvalSetVersion, dry_run: bool = False) -> dict:
    """The second half: the targets are looked up again while nobody else may write labels of the version."""
    with transaction.atomic():
        version = (
            EvalSetVersion.objects.select_for_update(of=("self",))
            .select_related("evalset")
            .get(pk=version.pk)
        )
        targets = _targets_of(read, version)
        runs = list(version.runs.filter(pk__in=targets.run_pks))
        if targets.labels:
            record_annotations(version, runs, targets.labels)
        transaction.set_rollback(dry_run)
    return {
        **described(version),
        "counts": {**counts(version), "annotations": len(targets.labels), "verdicts": 0},
        "notices": targets.findings.notices,
        "problems": [],
        "dry_run": dry_run,
    }


def _targets_of(read: ReadLabels, version: EvalSetVersion) -> "_LabelTargets":
    """Raises ImportRefused with every problem of the reading, and of what the version holds."""
    targets = _LabelTargets(version, deepcopy(read.findings))
    for start in range(0, len(read.records), AT_ONCE):
        targets.resolve(read.records[start : start + AT_ONCE])
    targets.findings.raise_if_refused()
    refuse_names_that_differ_in_case(version.evalset, targets.names)
    return targets


class _LabelTargets:
    """Finds what each line of a label file is about, a batch of lines at a time."""

    def __init__(self, version: EvalSetVersion, findings: Findings):
        self.version, self.findings = version, findings
        self.labels: list[tuple[str, int, int | None, str, str]] = []
        self.names: dict[str, int | None] = {}
        self.run_pks: set[int] = set()
        self._lines: dict[tuple, int] = {}

    def resolve(self, batch: list[LabelRecord]) -> None:
        by_response, by_item = self._responses(batch)
        claims = self._claims({pk for response in by_response.values() for pk in [response["pk"]]})
        found = []
        for record in batch:
            response = self._response_of(record, by_response, by_item)
            if response is None:
                continue
            claim_pk = claims.get((response["pk"], record.claim_id)) if record.claim_id else None
            if record.claim_id and claim_pk is None:
                message = f"the response {response['response_id']!r} has no claim {record.claim_id!r}"
                self.findings.problem(record.line, "claim", message, record.claim_id)
            elif record.claim_id is None and is_blank(response["text"]):
                self.findings.notice(
                    "Labels of an empty response were left out: it is recorded as EMPTY, not labelled.",
                    record.line,
                )
            elif self._said_once(record, response["pk"], claim_pk):
                found.append((record, response, claim_pk))
        held = self._held({response["pk"] for _record, response, _claim in found})
        for record, response, claim_pk in found:
            self._keep(record, response, claim_pk, held)

    def _responses(self, batch: list[LabelRecord]) -> tuple[dict[str, dict], dict[str, list[str]]]:
        asked = Q(response_id__in={record.response_id for record in batch if record.response_id}) | Q(
            item__item_id__in={record.item_id for record in batch if record.item_id}
        )
        rows = (
            self.version.responses.filter(asked)
            .order_by("position")
            .values("pk", "response_id", "item__item_id", "run_id", "text")
        )
        by_response: dict[str, dict] = {}
        by_item: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            by_response[row["response_id"]] = row
            by_item[row["item__item_id"]].append(row["response_id"])
        return by_response, by_item

    def _claims(self, response_pks: set[int]) -> dict[tuple[int, str], int]:
        rows = Claim.objects.filter(response__in=response_pks, parent__isnull=True)
        return {(response, name): pk for response, name, pk in rows.values_list("response", "claim_id", "pk")}

    def _response_of(self, record: LabelRecord, by_response: dict, by_item: dict) -> dict | None:
        if record.response_id:
            response = by_response.get(record.response_id)
            if response is None:
                message = f"the version has no response {record.response_id!r}"
                self.findings.problem(record.line, "response", message, record.response_id)
            elif record.item_id and response["item__item_id"] != record.item_id:
                message = f"the response {record.response_id!r} is not about this item"
                self.findings.problem(record.line, "item", message, record.item_id)
                return None
            return response
        names = by_item.get(record.item_id, [])
        if len(names) == 1:
            return by_response[names[0]]
        message = f"the version has no item {record.item_id!r} with a response"
        if names:
            message = (
                f"the item has {len(names)} responses; name the response instead ({', '.join(names[:5])})"
            )
        self.findings.problem(record.line, "item", message, record.item_id)
        return None

    def _said_once(self, record: LabelRecord, response_pk: int, claim_pk: int | None) -> bool:
        key = (record.grader, record.dimension, response_pk, claim_pk)
        first = self._lines.setdefault(key, record.line)
        if first == record.line:
            return True
        message = (
            f"{record.grader} has a label for this target on line {first} and again on line {record.line}"
        )
        self.findings.problem(record.line, "label", message, record.label)
        return False

    def _held(self, response_pks: set[int]) -> dict[tuple, str]:
        rows = Annotation.objects.filter(
            round__version=self.version, round__kind=Round.Kind.IMPORTED, response__in=response_pks
        ).values_list("grader__name", "dimension", "response", "claim", "label")
        return {tuple(target): label for *target, label in rows}

    def _keep(
        self, record: LabelRecord, response: dict, claim_pk: int | None, held: dict[tuple, str]
    ) -> None:
        before = held.get((record.grader, record.dimension, response["pk"], claim_pk))
        if before is None:
            self.names.setdefault(record.grader, record.line)
            self.run_pks.add(response["run_id"])
            self.labels.append((record.grader, response["pk"], claim_pk, record.dimension, record.label))
        elif before == record.label:
            self.findings.notice("Labels that were imported before were left out.", record.line)
        else:
            message = f"{record.grader} has the label {before!r} for this target from an earlier import"
            self.findings.problem(record.line, "label", message, record.label)


def record_annotations(version: EvalSetVersion, runs: list[SystemRun], labels: Iterable) -> Round:
    try:
        return annotate.record_imported_labels(version=version, runs=runs, labels=labels)
    except annotate.Refused as error:
        raise ImportRefused([Problem(None, "human_labels", str(error))]) from error


def refuse_names_that_differ_in_case(evalset: EvalSet, names: dict[str, int | None]) -> None:
    held = {grader.name.casefold(): grader.name for grader in Grader.objects.filter(evalset=evalset)}
    findings = Findings()
    for name, line in names.items():
        known = held.get(name.casefold(), name)
        if known != name:
            message = f"differs only in case from the grader {known!r} of this eval set"
            findings.problem(line, "grader", message, name)
    findings.raise_if_refused()
