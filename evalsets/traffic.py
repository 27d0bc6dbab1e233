"""A draw from a traffic log into a draft version: shown first, stored when somebody says so."""

import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from evalsets.access import LEAD, has_role
from evalsets.importing import Limits
from evalsets.importing.traffic import Key, Log, items_of, read_log
from evalsets.models import EvalSet, EvalSetVersion
from evalsets.sampling import Draw, draw
from evalsets.services import check_evalset, store_evalset


@dataclass(frozen=True)
class Sample:
    """A draw with its log: `content` is the native file of the drawn lines, and all that is ever stored."""

    filename: str
    log: Log
    draw: Draw[int, Key]
    content: bytes

    @property
    def source_name(self) -> str:
        """Names the draw: the same log, columns, size and seed give the same name."""
        digest = hashlib.sha256(self.content).hexdigest()[:12]
        return f"{self.filename[-180:]} (drawn: {len(self.draw.drawn)}, seed {self.draw.seed}, {digest})"


def draw_sample(
    *,
    stream: BinaryIO,
    filename: str,
    size: int,
    seed: int,
    question: str = "",
    strata: Sequence[str] = (),
) -> Sample:
    """Read a log and draw from it; stores nothing. Raises ImportRefused."""
    limits = Limits(total=settings.IMPORT_MAX_BYTES)
    log = read_log(stream, filename, question=question, strata=strata, limits=limits)
    drawn = draw(log.candidates, size=size, seed=seed)
    content = items_of(stream, filename, log, drawn.drawn, limits=limits)
    return Sample(filename, log, drawn, content)


@transaction.atomic
def store_sample(*, content: bytes, source_name: str, name: str, person=None) -> EvalSetVersion:
    """The drawn items as a draft version. The same draw into the same eval set again is the same version."""
    stream = io.BytesIO(content)
    checked = check_evalset(stream=stream, filename="draw.jsonl", name=name)
    evalset = EvalSet.objects.select_for_update().filter(name=name.strip()).order_by("pk").first()
    there = EvalSetVersion.objects.filter(evalset=evalset, source_name=source_name).first()
    if evalset and there and (person is None or has_role(person, evalset, LEAD)):
        return there
    version = store_evalset(checked=checked, name=name, person=person).version
    EvalSetVersion.objects.filter(pk=version.pk).update(source_name=source_name)
    version.source_name = source_name
    return version


def lacks(sample: Sample) -> list[str]:
    """What the log did not have, and what became of its lines: everything that was not drawn is counted."""
    log, said = sample.log, []
    if log.blank:
        said.append(ngettext("{n} line is blank.", "{n} lines are blank.", log.blank).format(n=log.blank))
    said += log.notices
    if log.unreadable:
        said.append(
            ngettext(
                "{n} line cannot be read and was left out.",
                "{n} lines cannot be read and were left out.",
                log.unreadable,
            ).format(n=log.unreadable)
        )
    if log.without_question:
        said.append(
            ngettext("{n} line has no question.", "{n} lines have no question.", log.without_question).format(
                n=log.without_question
            )
        )
    if log.repeated:
        said.append(
            ngettext(
                "{n} line repeats a question that stood there before: the first one counts.",
                "{n} lines repeat a question that stood there before: the first one counts.",
                log.repeated,
            ).format(n=log.repeated)
        )
    for column, count in log.without_stratum.items():
        said.append(_("{n} lines do not say {column}.").format(n=count, column=column))
    return [*said, *_lacks_of_draw(sample)]


def _lacks_of_draw(sample: Sample) -> list[str]:
    said = []
    if len(sample.draw.drawn) < sample.draw.size:
        said.append(
            _("Only {n} different questions were there; {size} were asked for.").format(
                n=len(sample.draw.drawn), size=sample.draw.size
            )
        )
    short = [", ".join(stratum.key) for stratum in sample.draw.strata if stratum.short]
    if short:
        said.append(_("Too few to be balanced: {strata}.").format(strata="; ".join(short)))
    if not sample.log.strata:
        said.append(_("No stratum was named, so the draw follows the traffic and rare kinds stay rare."))
    said.append(
        _(
            "A log does not say whether a question can be answered, nor its documents or a reference answer: "
            "add unanswerable questions of every kind, 10 to 20 % of the set."
        )
    )
    return said
