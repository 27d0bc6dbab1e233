"""Writes: import, and freezing what was imported."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext as _

from evalsets.access import LEAD, has_role
from evalsets.hashing import item_content, response_content, set_hash
from evalsets.importing import (
    ColumnMap,
    Findings,
    Frozen,
    ImportRefused,
    Limits,
    Problem,
    read_records,
)
from evalsets.importing.ledger import digests_of, packed
from evalsets.importing.records import LineRecord, ResponseRecord, SystemRecord
from evalsets.importing.strictjson import NotStrictJSON, refuse_unstorable_text
from evalsets.models import (
    Claim,
    EvalSet,
    EvalSetVersion,
    Item,
    Membership,
    Passage,
    Response,
    State,
    System,
    SystemRun,
)
from evalsets.queries import whole_material
from evalsets.spool import Spool
from evalsets.text import is_blank

LINES_AT_ONCE = 500
CHARACTERS_AT_ONCE = 4_000_000
LONGEST_NAME = 200
_TAKEN_SLUGS = {"new", "sample"}  # pages at /evalsets/

Progress = Callable[[int], None]


@dataclass
class Imported:
    """What an import stored. `labels` holds (kind, name, response, claim or None, dimension, label)."""

    version: EvalSetVersion
    runs: list[SystemRun]
    counts: dict[str, int]
    notices: list[str]
    labels: Spool = field(default_factory=Spool)


def import_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    person=None,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """A new eval set, or the next version of the one that has this name; the version is a draft.

    The file is checked to its end before anything is written, so that a refused file holds no lock.
    """
    check_evalset(stream=stream, filename=filename, name=name, mapping=mapping)
    return store_evalset(
        stream=stream, filename=filename, name=name, person=person, mapping=mapping, on_progress=on_progress
    )


def check_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Read the whole file without touching the database; raises ImportRefused with every problem."""
    _checked_name(name)
    _check(stream, filename, None, mapping, on_progress)


@transaction.atomic
def store_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    person=None,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """The second half of `import_evalset`; what the file says is checked again while it is written."""
    evalset = _evalset_named(_checked_name(name), person)
    version = EvalSetVersion.objects.create(
        evalset=evalset, number=_next_number(evalset), source_name=filename[-255:], created_by=person
    )
    return _Writer(version, filename, mapping=mapping).write(stream, on_progress)


def import_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """More responses to the items of a frozen version, as draft system runs."""
    check_responses(stream=stream, filename=filename, version=version, mapping=mapping)
    return store_responses(
        stream=stream, filename=filename, version=version, mapping=mapping, on_progress=on_progress
    )


def check_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> None:
    """Read the whole file against the version as it is; raises ImportRefused with every problem."""
    if not version.is_frozen:
        message = f"{version} is a draft: freeze it first, then responses can be added to it"
        raise ImportRefused([Problem(None, "", message)])
    _check(stream, filename, frozen_content(version), mapping, on_progress)


@transaction.atomic
def store_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """The second half of `import_responses`; the version is locked and checked against again."""
    locked = (
        EvalSetVersion.objects.select_for_update(of=("self",)).select_related("evalset").get(pk=version.pk)
    )
    return _Writer(locked, filename, frozen_content(locked), mapping).write(stream, on_progress)


def frozen_content(version: EvalSetVersion) -> Frozen:
    """The items of a version as digests, and its response ids: what new responses are checked against."""
    items = {item.item_id: packed(digests_of(item)) for item in version.items.iterator(chunk_size=500)}
    return Frozen(items, set(version.responses.values_list("response_id", flat=True).iterator()))


def _check(
    stream: BinaryIO,
    filename: str,
    frozen: Frozen | None,
    mapping: ColumnMap | None,
    on_progress: Progress | None,
) -> None:
    findings = Findings()
    records = read_records(stream, filename, findings, limits=limits(), frozen=frozen, mapping=mapping)
    for number, (record, _is_new) in enumerate(records):
        if on_progress and number % LINES_AT_ONCE == 0:
            on_progress(record.line)
    findings.raise_if_refused()


def limits() -> Limits:
    """How much of a file may be unpacked, by the settings."""
    return Limits(total=settings.IMPORT_MAX_BYTES)


class NameTaken(Exception):
    """The message is a sentence for the person who asked."""


@transaction.atomic
def create_evalset(*, name: str, description: str = "", person) -> EvalSet:
    """An eval set without a version, which the person leads."""
    name = _checked_name(name)
    if EvalSet.objects.filter(Q(slug=name) | Q(name=name)).exists():
        raise NameTaken(_("There is an eval set of this name already."))
    made = _new_evalset(name, person)
    made.description = description
    made.save(update_fields=["description"])
    return made


def _checked_name(name: str) -> str:
    name = name.strip()
    problem = ""
    if is_blank(name):
        problem = "an eval set needs a name"
    elif len(name) > LONGEST_NAME:
        problem = f"the name is longer than {LONGEST_NAME} characters"
    else:
        try:
            refuse_unstorable_text(name, "name")
        except NotStrictJSON as error:
            problem = str(error)
    if problem:
        raise ImportRefused([Problem(None, "name", problem, name[:80].replace("\0", ""))])
    return name


def _evalset_named(name: str, person) -> EvalSet:
    """The eval set of this name (or slug), locked; where there is none, a new one that the person leads."""
    found = EvalSet.objects.select_for_update().filter(slug=name).first()
    found = found or EvalSet.objects.select_for_update().filter(name=name).order_by("pk").first()
    if found is None:
        return _new_evalset(name, person)
    if person is not None and not has_role(person, found, LEAD):
        raise ImportRefused(
            [
                Problem(
                    None,
                    "name",
                    "the name of an eval set that you do not lead; choose another",
                    name,
                )
            ]
        )
    return found


def _new_evalset(name: str, person) -> EvalSet:
    stem = slugify(name)[:70] or f"set-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    taken = _TAKEN_SLUGS | set(EvalSet.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    slug, suffix = stem, 2
    while slug in taken:
        slug, suffix = f"{stem}-{suffix}", suffix + 1
    evalset, made = EvalSet.objects.get_or_create(slug=slug, defaults={"name": name})
    if not made:  # somebody else was faster: theirs counts, under the same rules as any other
        return _evalset_named(name, person)
    if person is not None:
        Membership.objects.create(person=person, evalset=evalset, role=Membership.Role.LEAD)
    return evalset


def _next_number(evalset: EvalSet) -> int:
    """The next version number; the caller holds the lock on the eval set's row."""
    return (evalset.versions.aggregate(last=Max("number"))["last"] or 0) + 1


class _Writer:
    """Writes checked lines in batches that are bounded in lines and in characters."""

    def __init__(
        self,
        version: EvalSetVersion,
        filename: str,
        frozen: Frozen | None = None,
        mapping: ColumnMap | None = None,
    ):
        self.version, self.filename, self.frozen, self.mapping = version, filename, frozen, mapping
        self.findings = Findings()
        self.runs: dict[tuple[str, int], SystemRun] = {}
        self.item_pks: dict[str, int] = {}
        if frozen is not None:
            self.item_pks = dict(version.items.values_list("item_id", "pk").iterator())
        self.position = (version.responses.aggregate(last=Max("position"))["last"] or 0) + 1
        self.last_run = version.runs.aggregate(last=Max("number"))["last"] or 0
        self.labels = Spool()
        self.counts = {"items": 0, "responses": 0, "passages": 0, "claims": 0}

    def write(self, stream: BinaryIO, on_progress: Progress | None) -> Imported:
        records = read_records(
            stream,
            self.filename,
            self.findings,
            limits=limits(),
            frozen=self.frozen,
            mapping=self.mapping,
        )
        for batch in _batches(records):
            self._items([record for record, is_new in batch if is_new])
            self._responses([record for record, _is_new in batch if record.response])
            if on_progress:
                on_progress(batch[-1][0].line)
        self.findings.raise_if_refused()
        return self._finish()

    def _finish(self) -> Imported:
        notices, runs = self.findings.notices, list(self.runs.values())
        if self.frozen is None:
            self.version.notices = notices
            self.version.save(update_fields=["notices"])
        else:
            SystemRun.objects.filter(pk__in=[run.pk for run in runs]).update(notices=notices)
        return Imported(self.version, runs, self.counts, notices, self.labels)

    def _items(self, records: list[LineRecord]) -> None:
        first = len(self.item_pks) + 1
        made = Item.objects.bulk_create(
            Item(
                version=self.version,
                position=first + index,
                item_id=record.item.item_id,
                question=record.item.question,
                strata=record.item.strata,
                answerable=record.item.answerable,
                unanswerable_reason=record.item.unanswerable_reason,
                reference_answer=record.item.reference_answer,
                expected_documents=record.item.expected_documents,
                expected_passages=record.item.expected_passages,
                variant_of=record.item.variant_of,
                extra=record.item.extra,
            )
            for index, record in enumerate(records)
        )
        self.item_pks |= {item.item_id: item.pk for item in made}
        self.counts["items"] += len(made)

    def _responses(self, records: list[LineRecord]) -> None:
        made = Response.objects.bulk_create(
            Response(
                version=self.version,
                run=self._run_of(record.response.system),
                item_id=self.item_pks[record.item.item_id],
                position=self.position + index,
                response_id=record.response.response_id,
                sample=record.response.sample,
                text=record.response.text,
                retrieval_query=record.response.retrieval_query,
                extra=record.response.extra,
            )
            for index, record in enumerate(records)
        )
        self.position += len(made)
        self.counts["responses"] += len(made)
        pairs = [(response, record.response) for response, record in zip(made, records, strict=True)]
        passages = Passage.objects.bulk_create(
            Passage(
                response=response,
                rank=rank,
                passage_id=passage.passage_id,
                title=passage.title,
                document=passage.document,
                text=passage.text,
                extra=passage.extra,
            )
            for response, record in pairs
            for rank, passage in enumerate(record.passages, start=1)
        )
        claims = Claim.objects.bulk_create(
            Claim(
                response=response,
                position=position,
                claim_id=claim.claim_id,
                text=claim.text,
                source_ids=claim.source_ids,
                decision=claim.decision,
                extra=claim.extra,
            )
            for response, record in pairs
            for position, claim in enumerate(record.claims, start=1)
        )
        self.counts["passages"] += len(passages)
        self.counts["claims"] += len(claims)
        claim_pks = iter(claims)
        for response, record in pairs:
            self._spool_labels(response.pk, record, claim_pks)

    def _spool_labels(self, response_pk: int, record: ResponseRecord, claims: Iterator[Claim]) -> None:
        for kind, labels in (("grader", record.human_labels), ("judge", record.judge_labels)):
            for name, label in labels.items():
                self.labels.append((kind, name, response_pk, None, "abstention", label))
        for claim in record.claims:
            claim_pk = next(claims).pk
            for kind, labels in (("grader", claim.human_labels), ("judge", claim.judge_labels)):
                for name, label in labels.items():
                    self.labels.append((kind, name, response_pk, claim_pk, "grounding", label))

    def _run_of(self, system: SystemRecord) -> SystemRun:
        if system.key not in self.runs:
            self.last_run += 1
            self.runs[system.key] = SystemRun.objects.create(
                version=self.version,
                system=_system_row(self.version.evalset, system),
                number=self.last_run,
                source_name=self.filename[-255:],
            )
        return self.runs[system.key]


def _system_row(evalset: EvalSet, system: SystemRecord) -> System:
    given = system.given
    row, _made = System.objects.get_or_create(
        evalset=evalset,
        fingerprint=system.fingerprint,
        defaults={
            "name": given.get("name") or "",
            "model": given.get("model"),
            "provider": given.get("provider") or "",
            "family": given.get("family") or "",
            "date": given.get("date") or "",
            "settings": given.get("settings") or {},
            "given": given,
        },
    )
    return row


def _batches(records: Iterator[tuple[LineRecord, bool]]) -> Iterator[list[tuple[LineRecord, bool]]]:
    batch: list[tuple[LineRecord, bool]] = []
    size = 0
    for record, is_new in records:
        batch.append((record, is_new))
        size += record.size
        if len(batch) >= LINES_AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def version_hash(version: EvalSetVersion) -> str:
    """The content hash of a version, computed from its rows as they are now."""
    items = version.items.iterator(chunk_size=500)
    return set_hash((item.item_id, item_content(item)) for item in items)


def run_hash(run: SystemRun) -> str:
    """The content hash of a system run, computed from its rows as they are now."""
    responses = (
        run.responses.order_by("pk")
        .select_related("item")
        .only("response_id", "sample", "text", "retrieval_query", "extra", "run_id", "item__item_id")
        .prefetch_related(*whole_material())
        .iterator(chunk_size=200)
    )
    return set_hash(
        (
            response.response_id,
            response_content(
                response,
                item_id=response.item.item_id,
                passages=response.served,
                claims=response.whole_claims,
            ),
        )
        for response in responses
    )


class HashMoved(Exception):
    """The rows are not what the hash was computed from."""


class NotYet(Exception):
    """Something stands against freezing now; the message is a sentence for the person who asked."""


# What the apps above have against freezing a run: a sentence each, or nothing.
hindrances: list[Callable[[SystemRun], str]] = []


@transaction.atomic
def freeze_version(
    *, version: EvalSetVersion, person=None, primary_unit: str | None = None
) -> EvalSetVersion:
    """Make the items of a version immutable; freezing a frozen version changes nothing."""
    version = (
        EvalSetVersion.objects.select_for_update(of=("self",)).select_related("evalset").get(pk=version.pk)
    )
    if version.is_frozen:
        return version
    version.content_hash = version_hash(version)
    version.state, version.frozen_at, version.frozen_by = State.FROZEN, timezone.now(), person
    version.primary_unit = primary_unit or version.primary_unit
    version.save(update_fields=["content_hash", "state", "frozen_at", "frozen_by", "primary_unit"])
    if version_hash(version) != version.content_hash:
        raise HashMoved(str(version))
    return version


@transaction.atomic
def freeze_run(*, run: SystemRun) -> SystemRun:
    """Make the responses, passages and claims of a run immutable; freezing a frozen run changes nothing."""
    run = (
        SystemRun.objects.select_for_update(of=("self",))
        .select_related("version__evalset", "system")
        .get(pk=run.pk)
    )
    if run.is_frozen:
        return run
    for says in hindrances:
        if words := says(run):
            raise NotYet(words)
    run.content_hash = run_hash(run)
    run.state, run.frozen_at = State.FROZEN, timezone.now()
    run.save(update_fields=["content_hash", "state", "frozen_at"])
    if run_hash(run) != run.content_hash:
        raise HashMoved(str(run))
    return run


@transaction.atomic
def freeze_runs(*, version: EvalSetVersion) -> list[SystemRun]:
    """Freeze the runs of a version that are drafts."""
    return [freeze_run(run=run) for run in version.runs.filter(state=State.DRAFT)]


@transaction.atomic
def add_member(*, evalset: EvalSet, person, role: str) -> Membership:
    membership, _made = Membership.objects.get_or_create(evalset=evalset, person=person, role=role)
    return membership


class LastLead(Exception):
    """Without this person nobody could open the eval set any more."""


@transaction.atomic
def remove_member(*, membership: Membership) -> None:
    """Take a role away. What the person has said stays: labels hang on the grader, not on the role."""
    EvalSet.objects.select_for_update().get(pk=membership.evalset_id)
    leads = Membership.objects.filter(evalset=membership.evalset_id, role=LEAD, person__is_active=True)
    if membership.role == LEAD and not leads.exclude(pk=membership.pk).exists():
        raise LastLead
    membership.delete()
