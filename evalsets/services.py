"""Writes: import, and freezing what was imported."""

import hashlib
from collections.abc import Callable
from itertools import chain
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
from evalsets.importing.ledger import digest_of, refuse_taken_id
from evalsets.importing.strictjson import NotStrictJSON, refuse_unstorable_text
from evalsets.material import OF_ITEM, ItemRow, chunks_of
from evalsets.models import EvalSet, EvalSetVersion, Membership, State, SystemRun
from evalsets.storing import Checked, Imported, Progress, Writer
from evalsets.text import is_blank

LONGEST_NAME = 200
TOLD_AFTER = 500  # lines
_TAKEN_SLUGS = {"new", "sample"}  # pages at /evalsets/


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
    checked = check_evalset(stream=stream, filename=filename, name=name, mapping=mapping)
    return store_evalset(checked=checked, name=name, person=person, on_progress=on_progress)


def check_evalset(
    *,
    stream: BinaryIO,
    filename: str,
    name: str,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Checked:
    """Read the whole file without touching the database; raises ImportRefused with every problem."""
    _checked_name(name)
    return _check(stream, filename, None, mapping, on_progress)


@transaction.atomic
def store_evalset(
    *, checked: Checked, name: str, person=None, on_progress: Progress | None = None
) -> Imported:
    """The second half of `import_evalset`."""
    evalset = _evalset_named(_checked_name(name), person)
    version = EvalSetVersion.objects.create(
        evalset=evalset,
        number=_next_number(evalset),
        source_name=checked.filename[-255:],
        notices=checked.notices,
        created_by=person,
    )
    return Writer(version, checked).write(on_progress)


def import_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Imported:
    """More responses to the items of a frozen version, as draft system runs."""
    checked = check_responses(stream=stream, filename=filename, version=version, mapping=mapping)
    return store_responses(checked=checked, version=version, on_progress=on_progress)


def check_responses(
    *,
    stream: BinaryIO,
    filename: str,
    version: EvalSetVersion,
    mapping: ColumnMap | None = None,
    on_progress: Progress | None = None,
) -> Checked:
    """Read the whole file against the version as it is; raises ImportRefused with every problem."""
    if not version.is_frozen:
        message = f"{version} is a draft: freeze it first, then responses can be added to it"
        raise ImportRefused([Problem(None, "", message)])
    newest = _newest_response(version)  # before the ids are read: what comes meanwhile is looked at twice
    checked = _check(stream, filename, frozen_content(version), mapping, on_progress)
    checked.newest = newest
    return checked


@transaction.atomic
def store_responses(
    *, checked: Checked, version: EvalSetVersion, on_progress: Progress | None = None
) -> Imported:
    """The second half of `import_responses`; what the version got since the check is looked at first."""
    locked = (
        EvalSetVersion.objects.select_for_update(of=("self",)).select_related("evalset").get(pk=version.pk)
    )
    _refuse_ids_taken_since(checked, locked)
    imported = Writer(locked, checked).write(on_progress)
    runs = [run.pk for run in imported.runs]
    SystemRun.objects.filter(pk__in=runs).update(notices=imported.notices)
    return imported


def _newest_response(version: EvalSetVersion) -> int:
    return version.responses.aggregate(newest=Max("pk"))["newest"] or 0


def _refuse_ids_taken_since(checked: Checked, version: EvalSetVersion) -> None:
    since = version.responses.filter(pk__gt=checked.newest).values_list("response_id", flat=True)
    taken = set(since.iterator())
    if not taken:
        return
    findings = Findings()
    for line in chain.from_iterable(checked.lines()):
        if line.response and line.response[0] in taken:
            refuse_taken_id(findings, line.line, line.response[0])
    findings.raise_if_refused()


def frozen_content(version: EvalSetVersion) -> Frozen:
    """The items of a version as digests, and its response ids: what new responses are checked against."""
    items = {item.item_id: digest_of(item) for item in version.items.iterator(chunk_size=500)}
    return Frozen(items, set(version.responses.values_list("response_id", flat=True).iterator()))


def _check(
    stream: BinaryIO,
    filename: str,
    frozen: Frozen | None,
    mapping: ColumnMap | None,
    on_progress: Progress | None,
) -> Checked:
    findings, checked = Findings(), Checked(filename)
    records = read_records(stream, filename, findings, limits=limits(), frozen=frozen, mapping=mapping)
    for number, (record, is_new) in enumerate(records):
        if on_progress and number % TOLD_AFTER == 0:
            on_progress(record.line)
        if not findings.refused:
            checked.add(record, brings_item=is_new)
    findings.raise_if_refused()
    checked.notices = findings.notices
    return checked


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


def version_hash(version: EvalSetVersion) -> str:
    """The content hash of a version, computed from its rows as they are now."""
    items = map(ItemRow._make, version.items.order_by().values_list(*OF_ITEM).iterator(chunk_size=500))
    return set_hash((item.item_id, item_content(item)) for item in items)


def run_hash(run: SystemRun) -> str:
    """The content hash of a system run, computed from its rows as they are now."""
    responses = chain.from_iterable(chunks_of(run.responses.order_by("pk")))
    return set_hash(
        (
            response.response_id,
            response_content(
                response,
                item_id=response.item.item_id,
                passages=response.passages,
                claims=response.claims,
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
        raise LastLead(_("An eval set needs a lead: make somebody else lead first."))
    membership.delete()
