"""What spans the apps: files with labels and verdicts in, the native file out.

Each import is one transaction over the services of `evalsets`, `annotate` and `calibration`, and returns the
JSON object that the commands print. A refused one raises ImportRefused and leaves nothing behind.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

from django.db import transaction
from django.db.models import Q

from annotate import services as annotate
from annotate.models import Annotation, Grader, Round
from calibration.imported_verdicts import record_imported_verdicts
from calibration.models import JudgeRun, Verdict
from calibration.services import Refused
from evalsets import services as evalsets
from evalsets.access import LEAD
from evalsets.importing import ColumnMap, Findings, ImportRefused, Problem, read_labels
from evalsets.importing.records import ITEM_FIELDS, LabelRecord
from evalsets.importing.validate import restored
from evalsets.labels import LABELS
from evalsets.material import OF_ITEM, ClaimRow, ItemRow, PassageRow, ResponseRow, chunks_of
from evalsets.models import Claim, EvalSet, EvalSetVersion, SystemRun
from evalsets.prepared import Prepared
from evalsets.queries import counts
from evalsets.storing import GRADER, JUDGE, Checked
from evalsets.text import is_blank

AT_ONCE = 500


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
            **_described(version),
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
            **_described(imported.version),
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


def _described(version: EvalSetVersion) -> dict:
    return {
        "evalset": version.evalset.slug,
        "version": version.number,
        "state": version.state,
        "content_hash": version.content_hash,
    }


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
        _refuse_names_that_differ_in_case(version.evalset, names)
        _record_annotations(version, runs, graders)
    if judges:
        try:
            record_imported_verdicts(version=version, runs=runs, verdicts=judges)
        except Refused as error:
            raise ImportRefused([Problem(None, "judge_labels", str(error))]) from error
    return {"annotations": len(graders), "verdicts": len(judges)}


def _record_annotations(version: EvalSetVersion, runs: list[SystemRun], labels: Iterable) -> Round:
    try:
        return annotate.record_imported_labels(version=version, runs=runs, labels=labels)
    except annotate.Refused as error:
        raise ImportRefused([Problem(None, "human_labels", str(error))]) from error


def _refuse_names_that_differ_in_case(evalset: EvalSet, names: dict[str, int | None]) -> None:
    held = {grader.name.casefold(): grader.name for grader in Grader.objects.filter(evalset=evalset)}
    findings = Findings()
    for name, line in names.items():
        known = held.get(name.casefold(), name)
        if known != name:
            message = f"differs only in case from the grader {known!r} of this eval set"
            findings.problem(line, "grader", message, name)
    findings.raise_if_refused()


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
    source = {"stream": stream, "filename": filename, "version": version}
    source |= {"dimension": dimension, "mapping": mapping}
    check_labels(**source)
    return store_labels(**source, dry_run=dry_run)


def check_labels(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    dimension: str | None = None,
    mapping: ColumnMap | None = None,
) -> "_LabelTargets":
    """The first half of `import_labels`: the whole file is read and its targets are found."""
    targets = _LabelTargets(version)
    records = read_labels(
        stream, filename, targets.findings, dimension=dimension, mapping=mapping, limits=evalsets.limits()
    )
    while batch := list(islice(records, AT_ONCE)):
        targets.resolve(batch)
    targets.findings.raise_if_refused()
    _refuse_names_that_differ_in_case(version.evalset, targets.names)
    return targets


def store_labels(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    dimension: str | None = None,
    mapping: ColumnMap | None = None,
    dry_run: bool = False,
) -> dict:
    """The second half: the file is checked again while nobody else may write labels of the version."""
    with transaction.atomic():
        version = (
            EvalSetVersion.objects.select_for_update(of=("self",))
            .select_related("evalset")
            .get(pk=version.pk)
        )
        targets = check_labels(
            stream=stream, filename=filename, version=version, dimension=dimension, mapping=mapping
        )
        runs = list(version.runs.filter(pk__in=targets.run_pks))
        if targets.labels:
            _record_annotations(version, runs, targets.labels)
        transaction.set_rollback(dry_run)
    return {
        **_described(version),
        "counts": {**counts(version), "annotations": len(targets.labels), "verdicts": 0},
        "notices": targets.findings.notices,
        "problems": [],
        "dry_run": dry_run,
    }


class _LabelTargets:
    """Finds what each line of a label file is about, a batch of lines at a time."""

    def __init__(self, version: EvalSetVersion):
        self.version = version
        self.findings = Findings()
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


def export_version(*, version: EvalSetVersion, out: BinaryIO, with_labels: bool = False) -> dict:
    """Write the native file of a version; importing it gives the same content hashes."""
    export = Export(version, with_labels=with_labels)
    for line in export.lines():
        out.write(line)
    return {**_described(version), "counts": export.counts, "notices": export.notices}


class Export:
    """The native file, a line at a time; `counts` and `notices` are complete after the last one."""

    def __init__(self, version: EvalSetVersion, *, with_labels: bool = False):
        self.version, self.with_labels = version, with_labels
        self.counts = dict.fromkeys(
            ("items", "responses", "passages", "claims", "annotations", "verdicts"), 0
        )
        self._left_out: Counter[str] = Counter()
        self._run_marks = _run_marks(version)
        self._systems = dict(version.runs.values_list("pk", "system__given"))
        self._items_seen: set[int] = set()

    @property
    def notices(self) -> list[str]:
        return [f"{n} {what}" for what, n in sorted(self._left_out.items())]

    def lines(self) -> Iterator[bytes]:
        encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
        for fields in self._records():
            yield encode(fields).encode("utf-8") + b"\n"

    def _records(self) -> Iterator[dict]:
        """Responses in the order of import, with each item that has none at its own place."""
        alone = self.version.items.filter(responses__isnull=True).order_by("position")
        lonely = map(ItemRow._make, alone.values_list(*OF_ITEM).iterator(AT_ONCE))
        waiting = next(lonely, None)
        labels = _Labels(self.version, self.counts, self._left_out) if self.with_labels else None
        for chunk in chunks_of(self.version.responses.order_by("position")):
            said = labels.of(chunk) if labels else {}
            for response in chunk:
                while waiting is not None and waiting.position < response.item.position:
                    yield self._item_alone(waiting)
                    waiting = next(lonely, None)
                yield self._response(response, said)
        while waiting is not None:
            yield self._item_alone(waiting)
            waiting = next(lonely, None)

    def _item_alone(self, item: ItemRow) -> dict:
        self.counts["items"] += 1
        extra = dict(item.extra)
        if extra.get("context"):
            extra["context"] = [restored(passage) for passage in extra["context"]]
        return {"id": item.item_id, **_item_fields(item), **extra}

    def _response(self, response: ResponseRow, labels: "_ByTarget") -> dict:
        self.counts["items"] += response.item.pk not in self._items_seen
        self._items_seen.add(response.item.pk)
        self.counts["responses"] += 1
        self.counts["passages"] += len(response.passages)
        self.counts["claims"] += len(response.claims)
        human, judge = labels.get((response.pk, None), _UNSAID)
        fields = {
            "id": response.response_id,
            "item_id": response.item.item_id,
            **_item_fields(response.item),
            "item_extra": response.item.extra,
            "context": [_passage_fields(passage) for passage in response.passages],
            "response": response.text,
            "system": self._systems[response.run],
            "run": self._run_marks.get(response.run),
            "retrieval_query": response.retrieval_query,
            "sample": response.sample,
            "claims": [
                _claim_fields(claim, *labels.get((response.pk, claim.pk), _UNSAID))
                for claim in response.claims
            ],
            "response_labels": human,
            "response_judge_labels": judge,
        }
        for key in (
            "item_extra",
            "system",
            "run",
            "retrieval_query",
            "response_labels",
            "response_judge_labels",
        ):
            if fields[key] in (None, {}):
                del fields[key]
        return {**fields, **response.extra}


_ByTarget = dict[tuple[int, int | None], tuple[dict[str, str], dict[str, str]]]
_UNSAID: tuple[dict[str, str], dict[str, str]] = ({}, {})


class _Labels:
    """What graders and judges said, by response and claim (or None): labels by grader's and judge's name."""

    def __init__(self, version: EvalSetVersion, counts: dict[str, int], left_out: Counter[str]):
        self.version, self.counts, self.left_out = version, counts, left_out
        self.graders = dict(Grader.objects.filter(evalset=version.evalset_id).values_list("pk", "name"))
        # A second look repeats what a first round asked: the first answer goes out.
        self.rounds = {
            pk: (kind == Round.Kind.SECOND_LOOK, number)
            for pk, kind, number in version.rounds.values_list("pk", "kind", "number")
        }
        self.runs = {
            pk: (number, name, plan is not None)
            for pk, number, name, plan in JudgeRun.objects.filter(version=version).values_list(
                "pk", "number", "judge__name", "sentinel_plan"
            )
        }

    def of(self, responses: list[ResponseRow]) -> _ByTarget:
        keys = [response.pk for response in responses]
        between = {"version": self.version.pk, "first": min(keys), "last": max(keys)}
        found: _ByTarget = {(response.pk, None): ({}, {}) for response in responses}
        found |= {(response.pk, claim.pk): ({}, {}) for response in responses for claim in response.claims}
        asked = set(keys)  # others of the version may have keys in between
        self._annotations(found, [row for row in _annotations(**between) if row[1] in asked])
        self._verdicts(found, [row for row in _verdicts(**between) if row[1] in asked])
        return found

    def _annotations(self, found: _ByTarget, rows: list[tuple]) -> None:
        rows.sort(key=lambda row: self.rounds[row[0]])
        for _round, response, claim, dimension, grader, label in rows:
            if dimension not in LABELS:
                self.left_out[
                    "labels of optional dimensions were left out: the native file holds grounding and "
                    "abstention, the gold export all of them"
                ] += 1
            elif labels := self._at(found, response, claim):
                name = self.graders[grader]
                self._take(
                    labels[0], name, label, "annotations", "labels of a later round for the same target"
                )

    def _verdicts(self, found: _ByTarget, rows: list[tuple]) -> None:
        rows.sort(key=lambda row: -self.runs[row[0]][0])
        for run, response, claim, dimension, label in rows:
            _number, name, is_sentinel = self.runs[run]
            if dimension not in LABELS:
                continue
            if is_sentinel:
                self.left_out["verdicts of sentinel runs were left out"] += 1
            elif labels := self._at(found, response, claim):
                self._take(labels[1], name, label, "verdicts", "verdicts of earlier runs or repeated calls")

    def _at(self, found: _ByTarget, response: int, claim: int | None):
        labels = found.get((response, claim))
        if labels is None:
            self.left_out[
                "labels of parts of split claims were left out: the native file holds whole claims"
            ] += 1
        return labels

    def _take(self, labels: dict[str, str], name: str, label: str, what: str, if_there: str) -> None:
        if name in labels:
            self.left_out[f"{if_there} were left out: the native file holds one"] += 1
            return
        labels[name] = label
        self.counts[what] += 1


_BETWEEN = {"version": int, "first": int, "last": int}
_annotations = Prepared(
    lambda version, first, last: (
        Annotation.objects.filter(response__version=version, response__gte=first, response__lte=last)
        .order_by("pk")
        .values_list("round_id", "response_id", "claim_id", "dimension", "grader_id", "label")
    ),
    **_BETWEEN,
)
_verdicts = Prepared(
    lambda version, first, last: (
        Verdict.objects.filter(
            response__version=version,
            response__gte=first,
            response__lte=last,
            state=Verdict.State.VALID,
        )
        .order_by("run_index", "pk")
        .values_list("run_id", "response_id", "claim_id", "dimension", "label")
    ),
    **_BETWEEN,
)


def _run_marks(version: EvalSetVersion) -> dict[int, int]:
    """Which run of its system a run is, for systems that have several runs in the version."""
    by_system: dict[int, list[int]] = defaultdict(list)
    for pk, system in version.runs.order_by("number").values_list("pk", "system"):
        by_system[system].append(pk)
    return {pk: mark for runs in by_system.values() if len(runs) > 1 for mark, pk in enumerate(runs, start=1)}


def _item_fields(item: ItemRow) -> dict:
    fields = {name: getattr(item, name) for name in ITEM_FIELDS}
    fields["unanswerable_reason"] = item.unanswerable_reason or None
    fields["variant_of"] = item.variant_of or None
    fields["strata"] = item.strata or None
    always = {"question", "answerable", "unanswerable_reason"}
    return {name: value for name, value in fields.items() if name in always or value is not None}


def _passage_fields(passage: PassageRow) -> dict:
    fields = {
        "id": passage.passage_id,
        "title": passage.title,
        "document": passage.document,
        "text": passage.text,
    }
    return restored({key: value for key, value in fields.items() if value is not None} | passage.extra)


def _claim_fields(claim: ClaimRow, human: dict, judge: dict) -> dict:
    fields = {"id": claim.claim_id, "text": claim.text, "source_ids": claim.source_ids}
    if claim.decision is not None:
        fields["decision"] = claim.decision
    fields |= claim.extra
    if human:
        fields["human_labels"] = human
    if judge:
        fields["judge_labels"] = judge
    return fields
