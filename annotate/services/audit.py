"""Checking how claims were extracted: a drawn sample of responses, marked claim by claim."""

from collections.abc import Sequence
from random import Random

from django.db import transaction
from django.db.models import Max
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from annotate.models import AuditedResponse, AuditSample, ClaimAudit
from annotate.services.rounds import new_seed
from annotate.services.targets import BATCH, Refused
from evalsets.models import Claim, EvalSetVersion, Response, SystemRun
from evalsets.text import is_blank


@transaction.atomic
def draw_audit(
    *,
    version: EvalSetVersion,
    runs: Sequence[SystemRun],
    size: int,
    seed: int | None = None,
    person,
) -> AuditSample:
    """A sample of responses with text, drawn at random from all of the runs together, in random order.

    The seed is taken for the name of the submit: a sample of this version that has it is returned.
    """
    version = EvalSetVersion.objects.select_for_update().get(pk=version.pk)
    seed = new_seed() if seed is None else seed
    if before := version.audit_samples.filter(seed=seed).first():
        return before
    drawn = _drawn(runs, size, seed)
    if not drawn:
        raise Refused(_("These runs hold no response with text, so there is no extraction to check."))
    number = (version.audit_samples.aggregate(last=Max("number"))["last"] or 0) + 1
    sample = AuditSample.objects.create(version=version, number=number, seed=seed, created_by=person)
    sample.runs.set(runs)
    AuditedResponse.objects.bulk_create(
        (
            AuditedResponse(sample=sample, response_id=response, position=position)
            for position, response in enumerate(drawn, start=1)
        ),
        batch_size=BATCH,
    )
    return sample


def _drawn(runs: Sequence[SystemRun], size: int, seed: int) -> list[int]:
    """The first `size` with text of a seeded shuffle; texts are read only as far as that."""
    responses = Response.objects.filter(run__in=list(runs)).order_by("run__number", "position")
    shuffled = list(responses.values_list("pk", flat=True))
    Random(f"{seed}:audit").shuffle(shuffled)
    drawn: list[int] = []
    for start in range(0, len(shuffled), BATCH):
        if len(drawn) == size:
            break
        some = shuffled[start : start + BATCH]
        texts = dict(Response.objects.filter(pk__in=some).values_list("pk", "text"))
        drawn += [pk for pk in some if not is_blank(texts[pk])][: size - len(drawn)]
    return drawn


@transaction.atomic
def mark_claim(*, audited: AuditedResponse, claim: Claim, mark: str) -> ClaimAudit:
    """How well this claim was extracted; a later mark takes the place of an earlier one."""
    audited = AuditedResponse.objects.select_for_update().get(pk=audited.pk)
    if claim.response_id != audited.response_id or claim.parent_id is not None:
        raise Refused(_("This claim was not extracted from this response."))
    if mark not in ClaimAudit.Mark.values:
        raise Refused(_("%(mark)s is not a mark of the audit.") % {"mark": mark})
    before = audited.claims.filter(claim=claim).first()
    if before and before.text != claim.text:
        raise Refused(
            _("This claim was corrected after it was marked. The mark stays: it tells how it was extracted.")
        )
    made, _created = ClaimAudit.objects.update_or_create(
        audited=audited, claim=claim, defaults={"mark": mark, "text": claim.text}
    )
    return made


@transaction.atomic
def forget_audits(*, response: Response) -> None:
    """The claims of the response are extracted anew: what was marked of the earlier ones is about nothing."""
    ClaimAudit.objects.filter(audited__response=response).delete()
    response.audits.filter(done_at__isnull=False).update(missing=None, by=None, done_at=None)


@transaction.atomic
def finish_audited(*, audited: AuditedResponse, missing: int, note: str = "", person) -> AuditedResponse:
    """Every claim is marked, and so many are missing: from here on the response counts."""
    audited = AuditedResponse.objects.select_for_update().get(pk=audited.pk)
    extracted = Claim.objects.filter(response=audited.response_id, parent__isnull=True)
    unmarked = extracted.exclude(audits__audited=audited).count()
    if unmarked and not audited.done_at:  # later ones were added since, and not there to be marked
        raise Refused(
            ngettext(
                "%(n)s claim is not marked yet. Mark it before you go on.",
                "%(n)s claims are not marked yet. Mark them before you go on.",
                unmarked,
            )
            % {"n": unmarked}
        )
    audited.missing, audited.note, audited.by = missing, note.strip(), person
    audited.done_at = timezone.now()
    audited.save(update_fields=["missing", "note", "by", "done_at"])
    return audited
