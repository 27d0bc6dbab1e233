"""The native file of a version: what an import takes, with everything that the version holds."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import BinaryIO

from annotate.models import Annotation, Grader, Round
from calibration.models import JudgeRun, Verdict
from evalsets.importing.records import ITEM_FIELDS
from evalsets.importing.validate import restored
from evalsets.labels import LABELS
from evalsets.material import OF_ITEM, ClaimRow, ItemRow, PassageRow, ResponseRow, chunks_of
from evalsets.models import EvalSetVersion
from evalsets.prepared import Prepared
from evalsets.queries import described

AT_ONCE = 500


def export_version(*, version: EvalSetVersion, out: BinaryIO, with_labels: bool = False) -> dict:
    """Write the native file of a version; importing it gives the same content hashes."""
    export = Export(version, with_labels=with_labels)
    for line in export.lines():
        out.write(line)
    return {**described(version), "counts": export.counts, "notices": export.notices}


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
            if is_sentinel:
                self.left_out["verdicts of sentinel runs were left out"] += 1
            elif dimension not in LABELS:
                self.left_out["verdicts of optional dimensions were left out"] += 1
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
