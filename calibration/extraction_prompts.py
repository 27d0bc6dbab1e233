"""The wordings that ask for claims, of an eval set: adding one, comparing two, and what is sent with one."""

from django.db import transaction
from django.utils.translation import gettext as _

from calibration.judges.extracting import ExtractionPrompt, ExtractionWording, built_in, extraction_prompt
from calibration.models import ExtractionPromptVersion
from calibration.prompt_versions import MOST_CHARACTERS, Difference, difference_of, next_number
from calibration.services import Refused
from evalsets.models import EvalSet, Response

# Where a server knows no schema, the words alone say which keys the answer has.
NEEDED = ("{nonce}", '"claims"', '"quote"', '"text"')


def extraction_wordings_of(evalset: EvalSet) -> list[ExtractionWording]:
    """The built-in one first."""
    own = ExtractionPromptVersion.objects.filter(evalset=evalset).order_by("number")
    return [built_in(), *(ExtractionWording(str(row.number), row.system, row.closing) for row in own)]


def extraction_wording_named(evalset: EvalSet, version: str = "") -> ExtractionWording:
    """The newest one where none is named."""
    known = extraction_wordings_of(evalset)
    found = next((one for one in known if one.version == version), None) if version else known[-1]
    if found is None:
        raise Refused(_("There is no extraction prompt {version} here.").format(version=version))
    return found


@transaction.atomic
def add_extraction_prompt(
    *, evalset: EvalSet, system: str, closing: str, note: str = "", person=None
) -> ExtractionPromptVersion:
    """Another wording. The fences around the response and the form of the answer are not part of it."""
    EvalSet.objects.select_for_update().get(pk=evalset.pk)
    missing = [name for name in NEEDED if name not in system]
    if missing:
        raise Refused(_("The text of the system message lacks {name}.").format(name=missing[0]))
    if not closing.strip():
        raise Refused(_("The closing sentence is empty."))
    if len(system) + len(closing) > MOST_CHARACTERS:
        raise Refused(_("A prompt has at most {n} characters.").format(n=MOST_CHARACTERS))
    for known in extraction_wordings_of(evalset):
        if (known.system, known.closing) == (system, closing):
            raise Refused(_("Version {number} has this very wording.").format(number=known.version))
    return ExtractionPromptVersion.objects.create(
        evalset=evalset,
        number=next_number(ExtractionPromptVersion.objects.filter(evalset=evalset)),
        system=system,
        closing=closing,
        note=note,
        created_by=person,
    )


def extraction_difference(old: ExtractionWording, new: ExtractionWording) -> Difference:
    return difference_of(_texts(old), _texts(new))


def _texts(wording: ExtractionWording) -> dict[str, str]:
    return {"system": wording.system, "closing": wording.closing}


def extraction_trial(*, wording: ExtractionWording, response: Response) -> ExtractionPrompt:
    """The messages that a model would get about this response, word for word. Nothing is sent."""
    return extraction_prompt(question=response.item.question, response=response.text, wording=wording)
